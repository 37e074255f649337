//! What the actions of a campaign say: texts and bodies with the values of an event filled in.
//!
//! The values are those of the decision and of the event, and lookups such as `table.users.name`,
//! which a service asks for behind the decision, for granted actions alone. A lookup that fails is
//! a value that is missing: a template says with `default` what stands in its place.

use crate::body::Content;
use crate::campaign::{Action, ActionKind, Campaign};
use crate::decision::Decision;
use crate::engine::{Lookup, LookupKey, LookupRule, field_of, scalar_at};
use crate::limits::TEMPLATES_MAX;
use crate::rule::Lhs;
use crate::template::{RenderError, Templates, Texts};
use raingauge_core::counter::Problem;
use raingauge_core::event::Event;
use raingauge_core::field::{Field, Scalar, extract};
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

/// Names of the values that templates may use.
pub const ROOTS: [&str; 12] = [
    "subject", "campaign", "step", "variant", "cost", "event", "data", "var", "table", "db",
    "http", "segment",
];
/// The locale of texts in bodies, which have one each.
const ANY_LOCALE: &str = "default";

/// The texts of a campaign, compiled.
#[derive(Debug)]
pub struct Messages {
    templates: Templates,
    /// The texts within bodies, by step and action: each by its number.
    bodies: BTreeMap<(String, String), Templates>,
}

/// Answers of lookups. `None` for one that failed.
pub type Answer<'a> = &'a dyn Fn(&LookupKey) -> Option<Json>;

/// How many campaigns emitted events up to this one.
pub fn chain_depth(event: &Event<'_>) -> u32 {
    let field = Field::of_path("data.campaign.depth").expect("it is a path");
    let depth = value_at(event, &field).and_then(|value| value.as_text().parse().ok());
    depth.unwrap_or(0)
}

fn value_at<'e>(event: &Event<'e>, field: &Field) -> Option<Scalar<'e>> {
    let mut values = Vec::new();
    extract(event, std::slice::from_ref(field), &mut values);
    values.pop().flatten()
}

impl Messages {
    /// Compiles the templates and bodies of a campaign, or says what is wrong with them.
    pub fn compile(campaign: &Campaign) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut note = |at: &str, found: Vec<String>| {
            problems.extend(found.into_iter().map(|detail| Problem::new(at.to_owned(), detail)));
        };

        let templates = Templates::compile(&campaign.templates, &ROOTS);
        let templates = templates.map_err(|found| note("templates", found)).ok();
        let mut bodies = BTreeMap::new();
        for (place, step) in campaign.steps.iter().enumerate() {
            for (of_step, action) in step.actions.iter().enumerate() {
                let texts = texts_of(action);
                if texts.is_empty() {
                    continue;
                }
                let at = format!("steps[{place}].actions[{of_step}].body");
                if texts.len() > TEMPLATES_MAX {
                    let detail = format!("a body has at most {TEMPLATES_MAX} templates");
                    note(&at, vec![detail]);
                    continue;
                }
                match Templates::compile(&texts, &ROOTS) {
                    Ok(body) => {
                        bodies.insert((step.name.clone(), action.name.clone()), body);
                    }
                    Err(found) => note(&at, found),
                }
            }
        }

        match templates {
            Some(templates) if problems.is_empty() => Ok(Self { templates, bodies }),
            _ => Err(problems),
        }
    }

    /// Names of all values that the texts use.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.templates.values().chain(self.bodies.values().flat_map(Templates::values))
    }

    /// Names of the values that an action uses, with its locale.
    fn values_of<'m>(&'m self, step: &str, action: &'m Action) -> BTreeSet<&'m str> {
        let mut values = BTreeSet::new();
        values.extend(action.locale.as_deref());
        if let Some(template) = &action.template {
            values.extend(self.templates.values_of(template));
        }
        let body = self.bodies.get(&(step.to_owned(), action.name.clone()));
        values.extend(body.into_iter().flat_map(Templates::values));
        values
    }

    /// What has to be looked up to fill in the texts of an action.
    pub fn wants(
        &self,
        campaign: &Campaign,
        (step, action): (&str, &Action),
        event: &Event<'_>,
        rules: &BTreeMap<String, LookupRule>,
    ) -> Vec<LookupKey> {
        let Some(subject) = field_of(&campaign.subject) else { return Vec::new() };
        let keys = self
            .values_of(step, action)
            .into_iter()
            .filter_map(|value| Lookup::of(&Lhs::parse(value)?, rules, &subject)?.key_in(event));
        let keys: BTreeSet<LookupKey> = keys.collect();
        keys.into_iter().collect()
    }

    /// Fills in the texts of an action that was granted.
    pub fn content(
        &self,
        campaign: &Campaign,
        decision: &Decision,
        action: &Action,
        event: &Event<'_>,
        (rules, answer): (&BTreeMap<String, LookupRule>, Answer<'_>),
    ) -> Result<Content, RenderError> {
        let found = Found { campaign, event, rules, answer };
        let names = self.values_of(&decision.step, action);
        let values = Json::Object(found.values(decision, &names));

        let text = match &action.template {
            Some(template) if action.kind == ActionKind::Message => {
                let locale = action.locale.as_deref().and_then(|lhs| found.text(lhs));
                Some(self.templates.render(template, locale.as_deref(), &values)?)
            }
            _ => None,
        };
        let recipient = action.recipient.as_deref().map(|path| {
            let missing = || RenderError(format!("the event has no recipient in `{path}`"));
            found.text(path).ok_or_else(missing)
        });
        let amount = action.amount.as_deref().map(|path| {
            let missing = || RenderError(format!("the event has no amount in `{path}`"));
            found.json(path).ok_or_else(missing)
        });

        Ok(Content {
            text,
            recipient: recipient.transpose()?,
            amount: amount.transpose()?,
            body: self.body(decision, action, &values)?,
            depth: chain_depth(event),
        })
    }

    fn body(
        &self,
        decision: &Decision,
        action: &Action,
        values: &Json,
    ) -> Result<Option<Map<String, Json>>, RenderError> {
        let Some(body) = &action.body else { return Ok(None) };
        let key = (decision.step.clone(), decision.name.clone());
        let Some(templates) = self.bodies.get(&key) else { return Ok(Some(body.clone())) };

        let mut number = 0;
        let mut failed = None;
        let mut rendered = Json::Object(body.clone());
        each_template(&mut rendered, &mut |text| {
            match templates.render(&number.to_string(), None, values) {
                Ok(made) => *text = made,
                Err(error) => failed = Some(error),
            }
            number += 1;
        });
        match (failed, rendered) {
            (Some(error), _) => Err(error),
            (None, Json::Object(body)) => Ok(Some(body)),
            (None, _) => Ok(None),
        }
    }
}

/// The texts of a body that have anything to fill in, by their numbers.
fn texts_of(action: &Action) -> Texts {
    let mut texts = Texts::new();
    if let Some(body) = &action.body {
        each_template(&mut Json::Object(body.clone()), &mut |text| {
            let by_locale = BTreeMap::from([(ANY_LOCALE.to_owned(), text.clone())]);
            texts.insert(texts.len().to_string(), by_locale);
        });
    }
    texts
}

/// Visits the texts in JSON that have anything to fill in, always in the same order.
fn each_template(json: &mut Json, visit: &mut dyn FnMut(&mut String)) {
    match json {
        Json::String(text) if ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)) => {
            visit(text);
        }
        Json::Array(items) => items.iter_mut().for_each(|item| each_template(item, visit)),
        Json::Object(members) => {
            members.values_mut().for_each(|member| each_template(member, visit));
        }
        _ => {}
    }
}

/// Where the values of an action come from.
struct Found<'f, 'e> {
    campaign: &'f Campaign,
    event: &'f Event<'e>,
    rules: &'f BTreeMap<String, LookupRule>,
    answer: Answer<'f>,
}

impl Found<'_, '_> {
    /// The values of these names, and those that every text may use.
    fn values(&self, decision: &Decision, names: &BTreeSet<&str>) -> Map<String, Json> {
        let Event { source, id, kind, .. } = self.event;
        let data = serde_json::from_str::<Json>(self.event.data).unwrap_or(Json::Null);
        let event = json!({"source": source, "id": id, "type": kind});
        let mut values = Map::new();
        values.insert("subject".into(), decision.subject.as_str().into());
        values.insert("campaign".into(), self.campaign.name.as_str().into());
        values.insert("step".into(), decision.step.as_str().into());
        values.insert("variant".into(), decision.variant.as_deref().into());
        values.insert("event".into(), event);
        if let Some(cost) = &decision.cost {
            values.insert("cost".into(), cost.amount.into());
        }
        if names.iter().any(|name| name.split('.').next() == Some("var")) {
            values.insert("var".into(), data.clone());
        }
        values.insert("data".into(), data);

        for name in names {
            if let Some(lhs) = Lhs::parse(name)
                && !matches!(lhs, Lhs::Field(_))
            {
                self.put(&mut values, name, &lhs);
            }
        }
        values
    }

    /// Puts the answer of a lookup in its place, or leaves the value out and makes the way to it.
    fn put(&self, values: &mut Map<String, Json>, name: &str, lhs: &Lhs) {
        let mut steps = name.split('.');
        let (Some(class), Some(lookup)) = (steps.next(), steps.next()) else { return };
        let of_class = values.entry(class).or_insert_with(|| json!({}));
        let Json::Object(of_class) = of_class else { return };
        if let Some(answer) = self.answer_of(lhs) {
            of_class.insert(lookup.to_owned(), answer);
            return;
        }
        if matches!(lhs, Lhs::Segment(_)) {
            return;
        }

        let mut at = of_class.entry(lookup).or_insert_with(|| json!({}));
        let path: Vec<&str> = steps.collect();
        for step in path.iter().take(path.len().saturating_sub(1)) {
            let Json::Object(members) = at else { return };
            at = members.entry(*step).or_insert_with(|| json!({}));
        }
    }

    fn answer_of(&self, lhs: &Lhs) -> Option<Json> {
        let subject = field_of(&self.campaign.subject)?;
        let key = Lookup::of(lhs, self.rules, &subject)?.key_in(self.event)?;
        (self.answer)(&key).filter(|answer| !answer.is_null())
    }

    /// The text of a field or of a lookup.
    fn text(&self, lhs: &str) -> Option<String> {
        let lhs = Lhs::parse(lhs)?;
        let path: Vec<Box<str>> = match &lhs {
            Lhs::Field(field) => {
                return value_at(self.event, field).map(|value| value.as_text().to_owned());
            }
            Lhs::Table { column, .. } | Lhs::Database { column, .. } => vec![column.clone()],
            Lhs::Http { path, .. } => path.split('.').map(Box::from).collect(),
            _ => Vec::new(),
        };
        let answer = self.answer_of(&lhs)?;
        scalar_at(&answer, &path).map(|value| value.as_text().to_owned())
    }

    /// The value of a field, with its kind.
    fn json(&self, path: &str) -> Option<Json> {
        let value = value_at(self.event, &field_of(path)?)?;
        Some(match value {
            Scalar::Number(number) => serde_json::from_str(&number).ok()?,
            Scalar::Bool(flag) => flag.into(),
            Scalar::Text(text) => text.into_owned().into(),
        })
    }
}

#[cfg(test)]
mod tests;

//! The form of a counter: the typed text, and the configuration that it describes.
//!
//! ```text
//!   Counter ──▶ Form ──▶ fields of the page ──▶ Form ──▶ Counter, or problems and their fields
//! ```
//!
//! This module does no I/O. The conversion is lossless: every valid configuration comes back
//! unchanged.

mod examples;
mod filter;
#[cfg(test)]
mod tests;

pub use examples::{Examples, examples};
pub use filter::Node;

use crate::fields::Fields;
use crate::times::{EnteredTime, FORMS, moment_of};
use jiff::tz::TimeZone;
use raingauge_core::counter::{Counter, Problem};
use raingauge_core::field::Field;
use raingauge_core::limits::COUNTER_ID_MAX;
use raingauge_core::value::{FieldValue, Value};
use raingauge_counters::observed::Kind;
use serde_json::{Value as Json, json};

/// Looks up the kind of a field; `None` when it is unknown.
pub type Kinds<'a> = &'a dyn Fn(&str) -> Option<Kind>;

/// The counter form, as text. The default is an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// The id of the counter being edited; 0 for a new one.
    pub id: u32,
    /// The version of the counter that the form was loaded from; 0 for a new one.
    pub base_version: u32,
    /// The id chosen for a new counter; empty lets the catalog assign one.
    pub chosen_id: String,
    /// The draft being edited, and the revision that was loaded; 0 while there is none.
    pub draft: u64,
    pub revision: u32,
    pub name: String,
    pub template: String,
    pub event_type: String,
    pub filter: Option<Node>,
    pub adds: Adds,
    /// The value of [`Adds::Number`].
    pub number: String,
    /// The path of [`Adds::Field`].
    pub field: String,
    pub scale: String,
    /// Retention in days; empty keeps the buckets forever.
    pub quarter: String,
    pub hour: String,
    pub day: String,
    pub active_from: String,
    pub active_until: String,
    pub state: String,
    pub owner: String,
    pub description: String,
}

raingauge_core::names! {
    /// What each event adds.
    #[derive(Default)]
    pub enum Adds {
        #[default]
        One = "one",
        Number = "number",
        Field = "field",
    }
}

impl Form {
    /// The form of a new counter, with the usual values.
    pub fn usual() -> Self {
        Self {
            number: "1".to_owned(),
            scale: "1".to_owned(),
            quarter: "90".to_owned(),
            hour: "400".to_owned(),
            state: "active".to_owned(),
            ..Self::default()
        }
    }

    /// The form filled from a configuration.
    pub fn of_counter(counter: &Counter, base_version: u32) -> Self {
        let usual = Self::usual();
        let days = |days: Option<u32>| days.map(|days| days.to_string()).unwrap_or_default();
        let in_field = |at_s| EnteredTime::fixed(at_s).in_field(&TimeZone::UTC);
        let instant = |at: Option<i64>| at.map(in_field).unwrap_or_default();
        let (adds, number, field, scale) = match &counter.value {
            Value::Fixed(1) => (Adds::One, usual.number, usual.field, usual.scale),
            Value::Fixed(number) => (Adds::Number, number.to_string(), usual.field, usual.scale),
            Value::Field(FieldValue { field, scale }) => {
                (Adds::Field, usual.number, field.clone(), scale.to_string())
            }
        };

        let state = counter.state.name().to_owned();
        let (id, chosen_id) = match (base_version, counter.id) {
            (0, 0) => (0, String::new()),
            (0, chosen) => (0, chosen.to_string()),
            (_, id) => (id, String::new()),
        };

        Self {
            id,
            base_version,
            chosen_id,
            name: counter.name.clone(),
            template: counter.template.clone(),
            event_type: counter.event_type.clone(),
            filter: counter.filter.as_ref().map(Node::of_condition),
            adds,
            number,
            field,
            scale,
            quarter: days(counter.retention_days.quarter),
            hour: days(counter.retention_days.hour),
            day: days(counter.retention_days.day),
            active_from: instant(counter.active_from),
            active_until: instant(counter.active_until),
            state,
            owner: counter.owner.clone(),
            description: counter.description.clone(),
            ..Self::default()
        }
    }

    /// Reads a submitted form. Missing fields get the values of a new form.
    pub fn of_fields(fields: &Fields) -> Self {
        let usual = Self::usual();
        let text = |name: &str| fields.exact(name).to_owned();
        let or = |name: &str, usual: String| {
            if fields.pairs().iter().any(|(known, _)| known == name) {
                fields.text(name).to_owned()
            } else {
                usual
            }
        };

        let adds = Adds::from_name(fields.text("adds")).unwrap_or(Adds::One);
        Self {
            id: fields.text("id").parse().unwrap_or(0),
            base_version: fields.text("base").parse().unwrap_or(0),
            chosen_id: text("chosenId"),
            draft: fields.text("draft").parse().unwrap_or(0),
            revision: fields.text("revision").parse().unwrap_or(0),
            name: text("name"),
            template: text("template"),
            event_type: text("eventType"),
            filter: Node::of_fields(fields),
            adds,
            number: or("number", usual.number),
            field: or("valueField", usual.field),
            scale: or("scale", usual.scale),
            quarter: or("quarter", usual.quarter),
            hour: or("hour", usual.hour),
            day: or("day", usual.day),
            active_from: or("activeFrom", usual.active_from),
            active_until: or("activeUntil", usual.active_until),
            state: or("state", usual.state),
            owner: text("owner"),
            // Browsers send line ends as CR LF.
            description: text("description").replace("\r\n", "\n"),
        }
    }

    /// The fields as a page sends them, without those of buttons.
    #[cfg(test)]
    pub fn to_fields(&self) -> Vec<(String, String)> {
        let fields = [
            ("id", self.id.to_string()),
            ("base", self.base_version.to_string()),
            ("chosenId", self.chosen_id.clone()),
            ("draft", self.draft.to_string()),
            ("revision", self.revision.to_string()),
            ("name", self.name.clone()),
            ("template", self.template.clone()),
            ("eventType", self.event_type.clone()),
            ("adds", self.adds.name().to_owned()),
            ("number", self.number.clone()),
            ("valueField", self.field.clone()),
            ("scale", self.scale.clone()),
            ("quarter", self.quarter.clone()),
            ("hour", self.hour.clone()),
            ("day", self.day.clone()),
            ("activeFrom", self.active_from.clone()),
            ("activeUntil", self.active_until.clone()),
            ("state", self.state.clone()),
            ("owner", self.owner.clone()),
            ("description", self.description.clone()),
        ];

        let own = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
        own.chain(self.filter.iter().flat_map(Node::to_fields)).collect()
    }

    /// Returns the counter that the form describes, or all of its problems. Relative times become
    /// fixed at this moment.
    pub fn counter(&self, kinds: Kinds<'_>, now_s: i64) -> Result<Counter, Vec<Problem>> {
        let mut reading = Reading { problems: Vec::new(), now_s };
        let id = if self.base_version == 0 {
            reading.chosen_id(&self.chosen_id)
        } else {
            json!(self.id)
        };

        let mut counter = json!({
            "id": id, "name": self.name, "template": self.template, "eventType": self.event_type,
            "state": self.state, "owner": self.owner, "description": self.description,
        });
        counter["value"] = reading.value(self);
        counter["retentionDays"] = json!({
            "quarter": reading.days("retentionDays.quarter", &self.quarter),
            "hour": reading.days("retentionDays.hour", &self.hour),
            "day": reading.days("retentionDays.day", &self.day),
        });
        counter["activeFrom"] = reading.instant("activeFrom", &self.active_from);
        counter["activeUntil"] = reading.instant("activeUntil", &self.active_until);

        if let Some(filter) = &self.filter {
            counter["filter"] = filter.to_json("filter", kinds, &mut reading.problems);
        }
        let mut problems = reading.problems;

        match Counter::from_json(&counter) {
            Ok(counter) if problems.is_empty() => Ok(counter),
            Ok(_) => Err(problems),
            Err(more) => {
                for problem in more {
                    if !problems.iter().any(|known| is_alike(known, &problem)) {
                        problems.push(problem);
                    }
                }

                Err(problems)
            }
        }
    }
}

/// Whether two problems concern the same place of the same field.
fn is_alike(one: &Problem, other: &Problem) -> bool {
    let place = |problem: &Problem| problem.detail.split(' ').next().map(str::to_owned);
    one.field == other.field && place(one) == place(other)
}

/// Parses texts, and collects the problems.
struct Reading {
    problems: Vec<Problem>,
    now_s: i64,
}

impl Reading {
    fn chosen_id(&mut self, text: &str) -> Json {
        match (text.trim(), text.trim().parse::<u32>()) {
            ("", _) => json!(0),
            (_, Ok(id @ 1..=COUNTER_ID_MAX)) => json!(id),
            _ => {
                let detail = format!(
                    "must be a whole number from 1 to {COUNTER_ID_MAX}, or empty for the next free id"
                );
                self.problems.push(Problem::new("id", detail));
                json!(0)
            }
        }
    }

    fn value(&mut self, form: &Form) -> Json {
        match form.adds {
            Adds::One => json!(1),
            Adds::Number => self.whole("value", &form.number),
            Adds::Field => {
                json!({ "field": path_of(&form.field), "scale": self.whole("value.scale", &form.scale) })
            }
        }
    }

    fn whole(&mut self, field: &str, text: &str) -> Json {
        match text.trim().parse::<i64>() {
            Ok(number) => json!(number),
            Err(_) => {
                self.problems.push(Problem::new(field, "must be a whole number, such as 1 or 100"));
                json!(1)
            }
        }
    }

    fn days(&mut self, field: &str, text: &str) -> Json {
        match (text.trim(), text.trim().parse::<u32>()) {
            ("", _) => Json::Null,
            (_, Ok(days)) => json!(days),
            (_, Err(_)) => {
                self.problems.push(Problem::new(
                    field,
                    "must be a number of days, or empty to keep forever",
                ));
                Json::Null
            }
        }
    }

    fn instant(&mut self, field: &str, text: &str) -> Json {
        let text = text.trim();
        match moment_of(text, &TimeZone::UTC, self.now_s) {
            _ if text.is_empty() => Json::Null,
            Some(seconds) => json!(seconds),
            None => {
                let detail = format!("must be a time in UTC: {FORMS}");
                self.problems.push(Problem::new(field, detail));
                Json::Null
            }
        }
    }
}

/// Completes a typed path: `fare` becomes `data.fare`.
pub fn path_of(typed: &str) -> String {
    let typed = typed.trim();
    let inside = || format!("data.{typed}");
    if Field::of_path(typed).is_none() && Field::of_path(&inside()).is_some() {
        inside()
    } else {
        typed.to_owned()
    }
}

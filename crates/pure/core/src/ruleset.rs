//! All counters together, compiled: which counters an event concerns, and which counter a key
//! belongs to.

use crate::counter::{Counter, Problem};
use crate::event::Event;
use crate::field::{Field, Scalar, extract};
use crate::filter::Filter;
use crate::limits::KEY_LEN_MAX;
use crate::retention::Horizons;
use crate::router::Router;
use crate::template::Template;
use crate::value::{FieldValue, Value, scaled};
use std::collections::HashMap;

/// One compiled counter.
#[derive(Clone, Debug)]
pub struct Rule {
    pub counter: Counter,
    template: Template,
    /// Where the template's fields stand among the fields of all counters of the same event type.
    template_fields: Vec<usize>,
    filter: Option<Filter>,
    value: RuleValue,
}

#[derive(Clone, Debug)]
enum RuleValue {
    Fixed(i64),
    Field { index: usize, scale: i64 },
}

crate::names! {
    /// Why a counter did not count an event that it listens to.
    #[derive(Hash)]
    pub enum Skip {
        /// The event happened before `activeFrom`, or at or after `activeUntil`.
        OutsideActivity = "outside_activity",
        /// The filter does not hold.
        Filtered = "filtered",
        /// A field of the template is missing or null, or the key grew too long.
        NoKey = "no_key",
        /// The field to add is missing, or no whole number after scaling.
        NoValue = "no_value",
        /// The key was new when the event was accepted, and the counter had as many as it may have.
        TooManyKeys = "too_many_keys",
    }
}

/// Counters that listen to one event type, and the fields that they read between them.
#[derive(Clone, Debug, Default)]
struct Listeners {
    fields: Vec<Field>,
    rules: Vec<usize>,
}

/// The compiled counters. A new one is made when a configuration changes.
#[derive(Clone, Debug, Default)]
pub struct Ruleset {
    rules: Vec<Rule>,
    by_id: HashMap<u32, usize>,
    by_type: HashMap<Box<str>, Listeners>,
    /// Counters that answer, by their templates.
    router: Router,
}

impl Ruleset {
    /// Compiles counters, which have been checked before; one that does not compile is left out.
    pub fn new(counters: impl IntoIterator<Item = Counter>) -> Self {
        let mut ruleset = Self::default();
        for counter in counters {
            ruleset.insert(counter);
        }
        ruleset
    }

    fn insert(&mut self, counter: Counter) {
        let index = self.rules.len();
        let listeners = self.by_type.entry(counter.event_type.as_str().into()).or_default();
        let Some(rule) = Rule::compile(counter, &mut listeners.fields) else {
            return;
        };
        if rule.counter.state.counts() {
            listeners.rules.push(index);
        }

        if rule.counter.state.answers() {
            self.router.insert(&rule.template, index);
        }
        self.by_id.insert(rule.counter.id, index);
        self.rules.push(rule);
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Where a counter stands among [`rules`](Self::rules).
    pub fn index_of(&self, id: u32) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Where the counter that `key` belongs to stands among [`rules`](Self::rules). Only counters
    /// that answer have keys. A key that is longer than any that is rendered has none.
    pub fn index_of_key(&self, key: &str) -> Option<usize> {
        if key.len() > KEY_LEN_MAX {
            return None;
        }
        self.router.find(key, |index| self.rules[index].template.matches(key))
    }

    /// Whether any counter counts events of this type.
    pub fn listens_to(&self, event_type: &str) -> bool {
        self.by_type.get(event_type).is_some_and(|listeners| !listeners.rules.is_empty())
    }

    /// The earliest time at which an event of this type still falls into a bucket of some counter.
    /// `None` when no counter listens.
    pub fn earliest_s(&self, event_type: &str, now_s: i64) -> Option<i64> {
        let listeners = self.by_type.get(event_type)?;
        listeners.rules.iter().map(|index| self.rules[*index].horizons(now_s).earliest_s()).min()
    }

    /// Applies an event: calls `count` with each key and value, and `skip` with the reason why a
    /// counter of its type did not count. Both also get the place of the counter among
    /// [`rules`](Self::rules).
    pub fn apply<'e>(
        &self,
        event: &Event<'e>,
        scratch: &mut Scratch<'e>,
        mut count: impl FnMut(usize, &str, i64),
        mut skip: impl FnMut(usize, Skip),
    ) {
        let Some(listeners) = self.by_type.get(&*event.kind) else {
            return;
        };
        if listeners.rules.is_empty() {
            return;
        }
        extract(event, &listeners.fields, &mut scratch.fields);

        for index in &listeners.rules {
            match self.rules[*index].apply(event.time_s(), &scratch.fields, &mut scratch.key) {
                Ok(_) if event.refuses(&scratch.key) => skip(*index, Skip::TooManyKeys),
                Ok(value) => count(*index, &scratch.key, value),
                Err(reason) => skip(*index, reason),
            }
        }
    }
}

/// Memory that [`Ruleset::apply`] uses again for each event.
#[derive(Debug, Default)]
pub struct Scratch<'e> {
    fields: Vec<Option<Scalar<'e>>>,
    key: String,
}

impl Rule {
    fn compile(counter: Counter, fields: &mut Vec<Field>) -> Option<Self> {
        let mut index_of = |field: Field| {
            fields.iter().position(|known| *known == field).unwrap_or_else(|| {
                fields.push(field);
                fields.len() - 1
            })
        };

        let template = Template::parse(&counter.template).ok()?;
        let template_fields = template.fields().map(|field| index_of(field.clone())).collect();
        let filter = counter
            .filter
            .as_ref()
            .map(|filter| Filter::compile(filter, &mut index_of))
            .transpose()
            .ok()?;

        let value = match &counter.value {
            Value::Fixed(value) => RuleValue::Fixed(*value),
            Value::Field(FieldValue { field, scale }) => {
                RuleValue::Field { index: index_of(Field::of_path(field)?), scale: *scale }
            }
        };
        Some(Self { counter, template, template_fields, filter, value })
    }

    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The earliest times that the counter's buckets are kept for.
    pub fn horizons(&self, now_s: i64) -> Horizons {
        self.counter.retention_days.horizons(now_s)
    }

    /// Renders the key into `key` and answers the value to add.
    fn apply(
        &self,
        time_s: i64,
        fields: &[Option<Scalar<'_>>],
        key: &mut String,
    ) -> Result<i64, Skip> {
        if !self.counter.is_active_at(time_s) {
            return Err(Skip::OutsideActivity);
        }

        if self.filter.as_ref().is_some_and(|filter| !filter.holds(fields)) {
            return Err(Skip::Filtered);
        }
        let value = match self.value {
            RuleValue::Fixed(value) => value,
            RuleValue::Field { index, scale } => {
                scaled(fields[index].as_ref(), scale).ok_or(Skip::NoValue)?
            }
        };

        key.clear();
        let values = self.template_fields.iter().map(|index| fields[*index].as_ref());
        if self.template.render(values, key) { Ok(value) } else { Err(Skip::NoKey) }
    }
}

/// What keeps `counter` from standing beside `others`: the same id apart, a template that could
/// render their keys.
pub fn conflicts<'a>(
    counter: &Counter,
    others: impl IntoIterator<Item = &'a Counter>,
) -> Vec<Problem> {
    let Ok(template) = Template::parse(&counter.template) else {
        return Vec::new();
    };
    let archived = |counter: &Counter| counter.state == crate::counter::State::Archived;
    if archived(counter) {
        return Vec::new();
    }

    others
        .into_iter()
        .filter(|other| other.id != counter.id && !archived(other))
        .filter(|other| {
            Template::parse(&other.template).is_ok_and(|other| other.overlaps(&template))
        })
        .map(|other| {
            let detail = format!(
                "could render the same key as `{}` of counter {} ({}): change its literal text, or archive that counter",
                other.template, other.id, other.name
            );
            Problem::new("template", detail)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    fn counter(json: Json) -> Counter {
        let mut whole = json!({"name": "n", "eventType": "ride", "state": "active"});
        whole.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
        Counter::from_json(&whole).unwrap()
    }

    type Counted = (Vec<(u32, String, i64)>, Vec<(u32, Skip)>);

    fn counted(ruleset: &Ruleset, data: &str) -> Counted {
        let mut counts = Vec::new();
        let mut skips = Vec::new();
        let event = Event::of_data("ride", 5_000_000, data);
        ruleset.apply(
            &event,
            &mut Scratch::default(),
            |index, key, value| {
                counts.push((ruleset.rules[index].counter.id, key.to_owned(), value))
            },
            |index, skip| skips.push((ruleset.rules[index].counter.id, skip)),
        );
        (counts, skips)
    }

    #[test]
    fn one_event_concerns_many_counters() {
        let ruleset = Ruleset::new([
            counter(json!({"id": 1, "template": "rides"})),
            counter(
                json!({"id": 2, "template": "city:{city}", "filter": {"operator": "gt", "lhs": "data.fare", "rhs": 10}}),
            ),
            counter(
                json!({"id": 3, "template": "fare:{city}:{source}", "value": {"field": "data.fare", "scale": 100}}),
            ),
            counter(json!({"id": 4, "template": "paused", "state": "paused"})),
            counter(json!({"id": 5, "template": "later", "activeFrom": 5_001})),
            counter(json!({"id": 6, "template": "other", "eventType": "walk"})),
        ]);

        let (counts, skips) = counted(&ruleset, r#"{"city": 7, "fare": 10.50}"#);
        assert_eq!(
            counts,
            [(1, "rides".into(), 1), (2, "city:7".into(), 1), (3, "fare:7:test".into(), 1_050)]
        );
        assert_eq!(skips, [(5, Skip::OutsideActivity)]);

        let (counts, skips) = counted(&ruleset, r#"{"fare": 10.505}"#);
        assert_eq!(counts, [(1, "rides".into(), 1)]);
        assert_eq!(skips, [(2, Skip::NoKey), (3, Skip::NoValue), (5, Skip::OutsideActivity)]);
    }

    #[test]
    fn an_event_does_not_count_under_a_key_that_was_one_too_many() {
        let ruleset = Ruleset::new([
            counter(json!({"id": 1, "template": "rides"})),
            counter(json!({"id": 2, "template": "city:{city}"})),
        ]);
        let refused_keys = crate::event::key_hash("city:7").to_le_bytes().to_vec().into();
        let event = Event { refused_keys, ..Event::of_data("ride", 5_000_000, r#"{"city": 7}"#) };
        let mut counts = Vec::new();
        let mut skips = Vec::new();
        let count = |_, key: &str, _| counts.push(key.to_owned());
        ruleset.apply(&event, &mut Scratch::default(), count, |_, skip| skips.push(skip));
        assert_eq!((counts, skips), (vec!["rides".to_owned()], vec![Skip::TooManyKeys]));
    }

    #[test]
    fn a_key_leads_back_to_the_counter_that_answers_for_it() {
        let ruleset = Ruleset::new([
            counter(json!({"id": 1, "template": "a:{x}:b"})),
            counter(json!({"id": 2, "template": "a:{x}:c", "state": "paused"})),
            counter(json!({"id": 3, "template": "{x}:d"})),
            counter(json!({"id": 4, "template": "e", "state": "draft"})),
        ]);
        let of = |key: &str| ruleset.index_of_key(key).map(|index| ruleset.rules[index].counter.id);
        assert_eq!(
            [of("a:1:b"), of("a:1:c"), of("a:d"), of("z:d"), of("e"), of("a:1")],
            [Some(1), Some(2), Some(3), Some(3), None, None]
        );
        assert_eq!(of(&format!("a:{}:b", "x".repeat(KEY_LEN_MAX))), None);
    }

    #[test]
    fn the_second_of_two_conflicting_templates_is_refused() {
        let old = [
            counter(json!({"id": 1, "template": "a:{x}"})),
            counter(json!({"id": 2, "template": "b:{x}", "state": "archived"})),
        ];
        assert_eq!(conflicts(&counter(json!({"id": 3, "template": "a:{y}"})), &old).len(), 1);
        assert_eq!(conflicts(&counter(json!({"id": 1, "template": "a:{y}"})), &old).len(), 0);
        assert_eq!(conflicts(&counter(json!({"id": 3, "template": "b:{y}"})), &old).len(), 0);
    }

    #[test]
    fn the_longest_retention_decides_how_late_an_event_may_be() {
        let day = crate::bucket::DAY_S;
        let keep = |id, days| {
            counter(
                json!({"id": id, "template": format!("k{id}"), "retentionDays": {"quarter": 1, "hour": 1, "day": days}}),
            )
        };
        let ruleset = Ruleset::new([keep(1, 2), keep(2, 5)]);
        assert_eq!(ruleset.earliest_s("ride", 10 * day + 5), Some(5 * day));
        assert_eq!(ruleset.earliest_s("walk", 0), None);
    }
}

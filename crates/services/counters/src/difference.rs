//! The differences between two configurations, field by field, in words.

use raingauge_core::counter::Counter;
use raingauge_core::filter::Condition;
use raingauge_core::number::grouped;
use raingauge_core::value::{FieldValue, Value};
use serde_json::Value as Json;

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// The name in the configuration, such as `retentionDays.quarter`.
    pub field: &'static str,
    /// The name for people.
    pub label: &'static str,
    pub before: String,
    pub after: String,
}

/// One field of a configuration in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldText {
    pub field: &'static str,
    pub label: &'static str,
    pub words: String,
}

/// Describes a configuration field by field, without the id.
pub fn say(counter: &Counter) -> Vec<FieldText> {
    let said = |field, label, words| FieldText { field, label, words };
    let text = |text: &str| {
        if text.is_empty() { "nothing".to_owned() } else { text.to_owned() }
    };
    let at = |instant: Option<i64>, otherwise: &str| {
        instant.map_or_else(|| otherwise.to_owned(), |seconds| format!("{} UTC", minute(seconds)))
    };

    vec![
        said("name", "Name", counter.name.clone()),
        said("eventType", "Event type", counter.event_type.clone()),
        said("template", "Template", counter.template.clone()),
        said("filter", "Filter", filter_sentence(counter.filter.as_ref())),
        said("value", "Value", value_sentence(&counter.value)),
        said(
            "retentionDays.quarter",
            "Quarter hours are kept",
            kept(counter.retention_days.quarter),
        ),
        said("retentionDays.hour", "Hours are kept", kept(counter.retention_days.hour)),
        said("retentionDays.day", "Days are kept", kept(counter.retention_days.day)),
        said("activeFrom", "Counts from", at(counter.active_from, "the first event on")),
        said("activeUntil", "Counts until", at(counter.active_until, "it is changed")),
        said("state", "State", counter.state.name().to_owned()),
        said("owner", "Owner", text(&counter.owner)),
        said("description", "Description", text(&counter.description)),
    ]
}

/// Returns the fields in which two configurations differ.
pub fn between(before: &Counter, after: &Counter) -> Vec<FieldChange> {
    let fields = say(before).into_iter().zip(say(after)).zip(differing(before, after));
    let changed = fields.filter(|(_, differs)| *differs).map(|(words, _)| words);
    let told = |(old, new): (FieldText, FieldText)| FieldChange {
        field: old.field,
        label: old.label,
        before: old.words,
        after: new.words,
    };
    changed.map(told).collect()
}

/// Whether each field of [`say`] differs, compared by value and not by wording.
pub fn differing(before: &Counter, after: &Counter) -> [bool; 13] {
    let (old, new) = (&before.retention_days, &after.retention_days);
    [
        before.name != after.name,
        before.event_type != after.event_type,
        before.template != after.template,
        before.filter != after.filter,
        before.value != after.value,
        old.quarter != new.quarter,
        old.hour != new.hour,
        old.day != new.day,
        before.active_from != after.active_from,
        before.active_until != after.active_until,
        before.state != after.state,
        before.owner != after.owner,
        before.description != after.description,
    ]
}

/// Applies the changes from `base` to `mine` to `theirs`. Where both changed a field, `mine` wins.
pub fn on_top(base: &Counter, theirs: &Counter, mine: &Counter) -> Counter {
    let mut merged = theirs.clone();
    let changed = differing(base, mine);
    let parts: [fn(&mut Counter, &Counter); 13] = [
        |to, from| to.name.clone_from(&from.name),
        |to, from| to.event_type.clone_from(&from.event_type),
        |to, from| to.template.clone_from(&from.template),
        |to, from| to.filter.clone_from(&from.filter),
        |to, from| to.value.clone_from(&from.value),
        |to, from| to.retention_days.quarter = from.retention_days.quarter,
        |to, from| to.retention_days.hour = from.retention_days.hour,
        |to, from| to.retention_days.day = from.retention_days.day,
        |to, from| to.active_from = from.active_from,
        |to, from| to.active_until = from.active_until,
        |to, from| to.state = from.state,
        |to, from| to.owner.clone_from(&from.owner),
        |to, from| to.description.clone_from(&from.description),
    ];

    for (take, changed) in parts.iter().zip(changed) {
        if changed {
            take(&mut merged, mine);
        }
    }

    merged
}

fn kept(days: Option<u32>) -> String {
    match days {
        None => "forever".to_owned(),
        Some(1) => "1 day".to_owned(),
        Some(days) => format!("{} days", grouped(days.into())),
    }
}

fn minute(seconds: i64) -> String {
    let text = raingauge_core::time::format_rfc3339(seconds);
    let seconds_are_shown = seconds % 60 != 0;
    text.trim_end_matches('Z')
        .replace('T', " ")
        .chars()
        .take(if seconds_are_shown { 19 } else { 16 })
        .collect()
}

/// Describes what each event adds: `1 for each event`, `amount × 100`.
pub fn value_sentence(value: &Value) -> String {
    match value {
        Value::Fixed(1) => "1 for each event".to_owned(),
        Value::Fixed(number) => format!("{} for each event", grouped((*number).into())),
        Value::Field(FieldValue { field, scale: 1 }) => name_of(field).to_owned(),
        Value::Field(FieldValue { field, scale }) => {
            format!("{} × {}", name_of(field), grouped((*scale).into()))
        }
    }
}

/// Describes a filter: `fare ≥ 10 and (city is "SG" or city is missing)`.
pub fn filter_sentence(filter: Option<&Condition>) -> String {
    match filter {
        None => "every event".to_owned(),
        Some(condition) => sentence(condition, false),
    }
}

fn sentence(condition: &Condition, inside: bool) -> String {
    let inner = condition.conditions.as_deref().unwrap_or_default();
    let joined = |word: &str| {
        let all: Vec<String> = inner.iter().map(|inner| sentence(inner, true)).collect();
        let text = all.join(word);
        if inside && all.len() > 1 { format!("({text})") } else { text }
    };

    match condition.operator.as_str() {
        "and" => joined(" and "),
        "or" => joined(" or "),
        // Brackets around the inner condition show what the `not` covers.
        "not" => format!(
            "not ({})",
            inner.first().map(|inner| sentence(inner, false)).unwrap_or_default()
        ),
        _ => comparison(condition),
    }
}

fn comparison(condition: &Condition) -> String {
    let field = name_of(condition.lhs.as_deref().unwrap_or_default());
    let constant = condition.rhs.as_ref();
    let said = constant.map(ToString::to_string).unwrap_or_default();

    match condition.operator.as_str() {
        "eq" => format!("{field} is {said}"),
        "ne" => format!("{field} is not {said}"),
        "gt" => format!("{field} > {said}"),
        "gte" => format!("{field} ≥ {said}"),
        "lt" => format!("{field} < {said}"),
        "lte" => format!("{field} ≤ {said}"),
        "prefix" => format!("{field} begins with {said}"),
        "exists" if constant == Some(&Json::Bool(false)) => format!("{field} is missing"),
        "exists" => format!("{field} exists"),
        "in" => {
            let values = constant.and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
            let values: Vec<String> = values.iter().map(Json::to_string).collect();
            if values.is_empty() {
                "no event".to_owned()
            } else {
                format!("{field} is one of {}", values.join(", "))
            }
        }
        other => format!("{field} {other} {said}"),
    }
}

/// A field without the `data.` prefix that nearly all of them have.
fn name_of(path: &str) -> &str {
    path.strip_prefix("data.")
        .filter(|name| !matches!(*name, "id" | "source" | "type" | "subject"))
        .unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn counter(changes: Json) -> Counter {
        let mut counter = json!({ "id": 7, "name": "n", "template": "a:{b}", "eventType": "t" });
        counter
            .as_object_mut()
            .expect("an object")
            .extend(changes.as_object().expect("an object").clone());
        Counter::from_json(&counter).expect("a counter")
    }

    fn said(filter: Json) -> String {
        filter_sentence(counter(json!({ "filter": filter })).filter.as_ref())
    }

    #[test]
    fn filters_read_as_sentences() {
        assert_eq!(filter_sentence(None), "every event");
        let compared = |operator: &str, rhs: Json| {
            said(json!({ "operator": operator, "lhs": "data.a.b", "rhs": rhs }))
        };
        assert_eq!(compared("gte", json!(1.5)), "a.b ≥ 1.5");
        assert_eq!(compared("eq", json!("x \"y\"")), r#"a.b is "x \"y\"""#);
        assert_eq!(compared("in", json!(["a", 2, true])), r#"a.b is one of "a", 2, true"#);
        assert_eq!(compared("in", json!([])), "no event");
        assert_eq!(compared("exists", json!(false)), "a.b is missing");
        assert_eq!(
            said(json!({ "operator": "exists", "lhs": "data.source" })),
            "data.source exists"
        );
        assert_eq!(
            said(json!({ "operator": "prefix", "lhs": "source", "rhs": "/a" })),
            r#"source begins with "/a""#
        );

        let nested = json!({ "operator": "and", "conditions": [
            { "operator": "gt", "lhs": "data.fare", "rhs": 10 },
            { "operator": "or", "conditions": [
                { "operator": "eq", "lhs": "data.city", "rhs": "SG" },
                { "operator": "not", "conditions": [{ "operator": "exists", "lhs": "data.city" }] } ] } ] });
        assert_eq!(said(nested), r#"fare > 10 and (city is "SG" or not (city exists))"#);
    }

    #[test]
    fn only_differences_are_reported() {
        let before = counter(json!({ "value": 1, "retentionDays": { "quarter": 1, "hour": 400 } }));
        assert_eq!(between(&before, &before), []);

        let after =
            counter(json!({ "value": { "field": "data.fare", "scale": 100 }, "owner": "weather",
            "retentionDays": { "quarter": 1_000, "hour": null }, "activeFrom": 1_727_215_200 }));
        let told: Vec<(&str, String, String)> = between(&before, &after)
            .into_iter()
            .map(|changed| (changed.field, changed.before, changed.after))
            .collect();
        let expected = [
            ("value", "1 for each event", "fare × 100"),
            ("retentionDays.quarter", "1 day", "1,000 days"),
            ("retentionDays.hour", "400 days", "forever"),
            ("activeFrom", "the first event on", "2024-09-24 22:00 UTC"),
            ("owner", "nothing", "weather"),
        ];

        assert_eq!(
            told,
            expected.map(|(field, before, after)| (field, before.to_owned(), after.to_owned()))
        );
    }

    #[test]
    fn what_reads_alike_is_distinguished() {
        let one = counter(json!({ "filter": { "operator": "exists", "lhs": "data.a" } }));
        let other =
            counter(json!({ "filter": { "operator": "exists", "lhs": "data.a", "rhs": true } }));
        assert_eq!(between(&one, &other).len(), 1);
    }

    #[test]
    fn a_change_is_done_again_on_top_of_another() {
        let base = counter(json!({ "owner": "a", "description": "a", "value": 1 }));
        let theirs =
            counter(json!({ "owner": "b", "description": "b", "value": 1, "name": "theirs" }));
        let mine = counter(json!({ "owner": "a", "description": "c", "value": 2 }));
        let merged = on_top(&base, &theirs, &mine);
        assert_eq!(
            merged,
            counter(json!({ "owner": "b", "description": "c", "value": 2, "name": "theirs" }))
        );
        assert_eq!(on_top(&base, &base, &mine), mine);
        assert_eq!(on_top(&base, &theirs, &base), theirs);
    }
}

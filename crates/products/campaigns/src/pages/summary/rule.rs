//! Conditions in plain words.

use maud::{Markup, html};
use raingauge_campaigns::rule::{Lhs, TimePart};
use raingauge_core::field::Field;
use raingauge_core::filter::Condition;
use serde_json::Value as Json;

/// A condition as a sentence, or as a list of sentences where it has several.
pub fn condition(condition: &Condition) -> Markup {
    let inner = condition.conditions.as_deref().unwrap_or_default();
    match condition.operator.as_str() {
        "and" => group("all of these hold", inner),
        "or" => group("one of these holds", inner),
        "not" if inner.len() == 1 && !is_group(&inner[0]) => html! { "not: " (leaf(&inner[0])) },
        "not" => group("this does not hold", inner),
        _ => html! { (leaf(condition)) },
    }
}

fn is_group(condition: &Condition) -> bool {
    matches!(condition.operator.as_str(), "and" | "or" | "not")
}

fn group(words: &str, inner: &[Condition]) -> Markup {
    if let [only] = inner
        && words != "this does not hold"
    {
        return condition(only);
    }
    html! {
        (words) ":"
        ul.conditions { @for one in inner { li { (condition(one)) } } }
    }
}

/// A single condition: `country is sg`.
pub fn leaf(condition: &Condition) -> String {
    let text = condition.lhs.as_deref().unwrap_or_default();
    let lhs = Lhs::parse(text);
    let rhs = condition.rhs.as_ref();

    if let (Some(Lhs::Segment(name)), Some(Json::Bool(value))) = (&lhs, rhs) {
        let is_in = *value == (condition.operator == "eq");
        return format!(
            "the subject {} in the segment {name}",
            if is_in { "is" } else { "is not" }
        );
    }
    let named = lhs.as_ref().map_or_else(|| text.to_owned(), subject_of);
    format!("{named} {}", predicate(&condition.operator, rhs))
}

/// What a left-hand side reads, in words.
pub fn subject_of(lhs: &Lhs) -> String {
    match lhs {
        Lhs::Field(Field::Data(steps)) => steps.join("."),
        Lhs::Field(field) => format!("the event's {field}"),
        Lhs::Time(TimePart::Hour) => "the hour of the day".to_owned(),
        Lhs::Time(TimePart::MinuteOfDay) => "the minute of the day".to_owned(),
        Lhs::Time(TimePart::Weekday) => "the day of the week".to_owned(),
        Lhs::Time(TimePart::Date) => "the date".to_owned(),
        Lhs::Count(name) => format!("the count {name}"),
        Lhs::Usage(name) => format!("how often the subject was given {name} before"),
        Lhs::Segment(name) => format!("membership in the segment {name}"),
        Lhs::Table { name, column } => format!("{column} in the table {name}"),
        Lhs::Database { name, column } => format!("{column} in the database {name}"),
        Lhs::Http { name, path } => format!("{path} from the service {name}"),
    }
}

/// An operator and its right-hand side: `is at least 3`.
pub fn predicate(operator: &str, rhs: Option<&Json>) -> String {
    let value = rhs.map(value).unwrap_or_default();
    match operator {
        "eq" => format!("is {value}"),
        "ne" => format!("is not {value}"),
        "gt" => format!("is more than {value}"),
        "gte" => format!("is at least {value}"),
        "lt" => format!("is less than {value}"),
        "lte" => format!("is at most {value}"),
        "in" => format!("is one of {value}"),
        "prefix" => format!("begins with {value}"),
        "exists" if rhs == Some(&Json::Bool(false)) => "is missing".to_owned(),
        "exists" => "is present".to_owned(),
        "reaches" => format!("reaches {value}"),
        "every" => format!("passes a multiple of {value}"),
        other => format!("{other} {value}"),
    }
}

/// A constant as people write it.
pub fn value(json: &Json) -> String {
    match json {
        Json::String(text) => text.clone(),
        Json::Bool(true) => "yes".to_owned(),
        Json::Bool(false) => "no".to_owned(),
        Json::Null => "nothing".to_owned(),
        Json::Array(values) => values.iter().map(value).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words(condition: Json) -> String {
        leaf(&serde_json::from_value(condition).unwrap())
    }

    #[test]
    fn conditions_read_as_sentences() {
        let leaf = |operator: &str, lhs: &str, rhs: Json| {
            words(json!({"operator": operator, "lhs": lhs, "rhs": rhs}))
        };
        assert_eq!(leaf("eq", "var.country", json!("sg")), "country is sg");
        assert_eq!(leaf("reaches", "count.orders", json!(3)), "the count orders reaches 3");
        assert_eq!(
            leaf("in", "time.weekday", json!(["sat", "sun"])),
            "the day of the week is one of sat, sun"
        );
        assert_eq!(
            leaf("ne", "segment.staff", json!(true)),
            "the subject is not in the segment staff"
        );
        assert_eq!(leaf("eq", "segment.staff", json!(true)), "the subject is in the segment staff");
        assert_eq!(
            leaf("gte", "table.users.age", json!(18)),
            "age in the table users is at least 18"
        );
        assert_eq!(leaf("exists", "var.coupon", json!(false)), "coupon is missing");
        assert_eq!(leaf("strange", "whatever", json!(5)), "whatever strange 5");
    }

    #[test]
    fn groups_are_lists_and_text_stays_text() {
        let both = json!({"operator": "and", "conditions": [
            {"operator": "eq", "lhs": "var.a", "rhs": "<b>"},
            {"operator": "not", "conditions": [{"operator": "eq", "lhs": "var.c", "rhs": 1}]}]});
        let markup = condition(&serde_json::from_value(both).unwrap()).into_string();
        assert!(markup.starts_with("all of these hold:<ul"), "{markup}");
        assert!(markup.contains("a is &lt;b&gt;") && markup.contains("not: c is 1"), "{markup}");
    }
}

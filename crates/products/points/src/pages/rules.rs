//! A programme in plain words: its rules, its tables, and what happens to points over time.

use super::view::ProgrammeView;
use maud::{Markup, html};
use raingauge_core::filter::Condition;
use raingauge_counters::difference::filter_sentence;
use raingauge_portal::html::parts::{self, Column};
use raingauge_portal::html::words;
use serde_json::Value as Json;

/// Rows of a table that a page shows; the text has all of them.
const ROWS_MAX: usize = 200;

/// The rules as sentences.
pub fn rules(programme: &ProgrammeView) -> Markup {
    let rules = list(&programme.configuration["rules"]);
    html! {
        @if rules.is_empty() {
            p { "It has no rules, so nothing is earned by events. Points can still be awarded by API and by campaigns." }
        }
        div.stack {
            @for rule in rules {
                div.plain {
                    h3 { (text(&rule["name"])) span.quiet { " rule " (rule["id"]) } }
                    (rule_sentences(rule, programme))
                }
            }
        }
    }
}

fn rule_sentences(rule: &Json, programme: &ProgrammeView) -> Markup {
    let kind = text(&rule["eventType"]);
    let filter = filter_of(rule);
    html! {
        p {
            @if kind.is_empty() { "For awards by API" } @else { "When " code { (kind) } " arrives" }
            @if let Some(filter) = &filter { ", and " (filter_sentence(Some(filter))) }
            ", " (effect(rule, programme)) "."
        }
        @let details = details(rule, programme);
        @if !details.is_empty() { p.quiet { (details.join(" ")) } }
    }
}

fn filter_of(rule: &Json) -> Option<Condition> {
    serde_json::from_value(rule["filter"].clone()).ok().flatten()
}

/// What a rule does with the points of a member.
fn effect(rule: &Json, programme: &ProgrammeView) -> Markup {
    let member = field(&rule["member"]);
    if rule["reverses"].is_string() {
        return html! {
            "what " code { (field(&rule["reverses"])) } " earned is taken back"
            @if rule["amount"].is_string() { ", as far as " code { (field(&rule["amount"])) } " was refunded" }
        };
    }
    if !rule["points"].is_null() {
        let points = words::cut(&text_of(&rule["points"]), 40);
        return html! { "the member in " code { (member) } " gets " strong { (points) " " (programme.unit) } };
    }
    let factors = list(&rule["factors"]);
    html! {
        "the member in " code { (member) } " gets " code { (field(&rule["amount"])) }
        @for factor in factors { " × " strong { (text(factor)) } }
    }
}

/// What else a rule says, each as a sentence.
fn details(rule: &Json, programme: &ProgrammeView) -> Vec<String> {
    let mut details = Vec::new();
    if !rule["perEventMax"].is_null() {
        let most = text_of(&rule["perEventMax"]);
        details.push(format!("At most {most} {} for one event.", programme.unit));
    }
    if let Some(budget) = rule["budget"].as_str() {
        details.push(format!("Paid from the budget {budget}."));
    }
    if is_by_activity(programme) && !rule["reverses"].is_string() {
        let extends = rule["extends"].as_bool().unwrap_or(true);
        let sentence = if extends {
            "It keeps all points of the member alive."
        } else {
            "It does not move the date at which points expire."
        };
        details.push(sentence.to_owned());
    }
    if rule["qualifies"] == false {
        details.push("It does not count towards a tier.".to_owned());
    }
    if let Some(days) = rule["pendingDays"].as_u64() {
        let days = words::count_of(days.into(), "day", "days");
        details.push(format!("The points can be spent after {days}."));
    }
    if let Some(from) = rule["activeFrom"].as_str() {
        details.push(format!("From {from}."));
    }
    if let Some(until) = rule["activeUntil"].as_str() {
        details.push(format!("Until {until}."));
    }
    details
}

fn is_by_activity(programme: &ProgrammeView) -> bool {
    programme.configuration["expiry"]["kind"] == "activity"
}

/// Each table of factors, most specific rows first, as they are looked up.
pub fn tables(programme: &ProgrammeView) -> Markup {
    let tables = members(&programme.configuration["tables"]);
    html! {
        @for (place, (name, table)) in tables.enumerate() {
            @let id = format!("table-{place}");
            section.card aria-labelledby=(id) {
                h2 id=(id) { "Table " (name) }
                p.quiet { (looked_up(table)) }
                (rows(&id, table))
            }
        }
    }
}

/// How a row of a table is found.
fn looked_up(table: &Json) -> String {
    let by: Vec<String> = list(&table["by"]).iter().map(field).collect();
    let rest = match &table["default"] {
        Json::Null => "Without a row, the event waits until there is one.".to_owned(),
        value => format!("Without a row, it is {}.", text_of(value)),
    };
    format!("Looked up by {}; the most specific row counts. {rest}", by.join(" and "))
}

fn rows(title_id: &str, table: &Json) -> Markup {
    let mut rows: Vec<(&str, &Json)> = members(&table["rows"]).collect();
    rows.sort_by_key(|(key, _)| (stars(key), key.to_owned()));
    let count = rows.len();
    let by: Vec<String> = list(&table["by"]).iter().map(field).collect();
    html! {
        (parts::table(title_id, &[Column::Text(&by.join(", ")), Column::Number("Factor")], &html! {
            @for (key, value) in rows.into_iter().take(ROWS_MAX) {
                tr { th scope="row" { code { (key) } } td.number { "× " (text_of(value)) } }
            }
        }))
        @if count > ROWS_MAX { p.quiet { "The first " (ROWS_MAX) " of " (words::number(count as i128)) " rows." } }
    }
}

/// How many parts of a row stand for anything.
fn stars(key: &str) -> usize {
    key.split('.').filter(|part| *part == "*").count()
}

/// What happens to points over time, and to balances that fall below zero.
pub fn life(programme: &ProgrammeView) -> Markup {
    let configuration = &programme.configuration;
    html! {
        dl.facts {
            dt { "Points are called" } dd { (programme.unit) }
            dt { "Rounded" } dd { (rounding(configuration)) }
            dt { "Expire" } dd { (expiry(&configuration["expiry"])) }
            @if let Some(days) = configuration["pendingDays"].as_u64().filter(|days| *days > 0) {
                dt { "Can be spent" } dd { "after " (words::count_of(days.into(), "day", "days")) }
            }
            dt { "A refund after spending" } dd { (negative(configuration)) }
            @if let Some(levels) = configuration["tiers"]["levels"].as_array() {
                dt { "Tiers" } dd { (tiers(levels, configuration)) }
            }
            dt { "Days and months" } dd { "are those of " (words::zone(&programme.zone)) }
        }
    }
}

fn rounding(configuration: &Json) -> String {
    let mode = match configuration["rounding"].as_str() {
        Some("down") => "down",
        Some("up") => "up",
        Some("half_even") => "to the nearest, a half to the even one",
        _ => "to the nearest, a half up",
    };
    match configuration["decimals"].as_u64() {
        None | Some(0) => format!("{mode}, once, to a whole number"),
        Some(decimals) => format!("{mode}, once, to {decimals} decimals"),
    }
}

/// When points expire, as a sentence.
pub fn expiry(expiry: &Json) -> String {
    let months = expiry["months"].as_u64().unwrap_or(0);
    let months = words::count_of(months.into(), "month", "months");
    match expiry["kind"].as_str() {
        Some("activity") => format!(
            "all together, on the last day of the month, {months} after the month of the last \
             transaction"
        ),
        Some("fixed") if expiry["until"] == "day" => {
            format!("{months} after they were earned, to the day")
        }
        Some("fixed") => {
            format!("{months} after they were earned, on the last day of that month")
        }
        Some("yearly") => {
            let date = expiry["date"].as_str().unwrap_or("the same date");
            format!("every year on {date}")
        }
        _ => "never".to_owned(),
    }
}

fn negative(configuration: &Json) -> &'static str {
    match configuration["negative"].as_str() {
        Some("cap") => "takes what is left; the rest is written off",
        Some("refuse") => "is refused",
        _ => "is owed, and paid by the next points",
    }
}

fn tiers(levels: &[Json], configuration: &Json) -> Markup {
    let tiers = &configuration["tiers"];
    let months = tiers["keepMonths"].as_u64();
    html! {
        @for (place, level) in levels.iter().enumerate() {
            @if place > 0 { ", " }
            (text(&level["name"])) " from " (amount_of(&level["from"]))
        }
        @if let Some(months) = months { span.quiet { "; kept for " (words::count_of(months.into(), "month", "months")) } }
    }
}

/// The examples, which have come out: the document could not be saved otherwise.
pub fn examples(programme: &ProgrammeView) -> Markup {
    let examples = list(&programme.configuration["examples"]);
    if examples.is_empty() {
        return html! {};
    }
    html! {
        section.card aria-labelledby="examples-title" {
            h2 #examples-title { "Examples" }
            p.quiet { "Every version must come out with these points, or it cannot be saved." }
            (parts::table("examples-title", &[Column::Text("Facts"), Column::Text("Tier"), Column::Number("Points")], &html! {
                @for example in examples {
                    tr {
                        td.wrap { (facts(&example["data"])) }
                        td { (example["tier"].as_str().unwrap_or("–")) }
                        td.number { strong { (amount_of(&example["points"])) } }
                    }
                }
            }))
        }
    }
}

/// The examples in a sentence, for a page that has no room for a table.
pub fn examples_line(programme: &ProgrammeView) -> Markup {
    let count = list(&programme.configuration["examples"]).len();
    html! {
        @if count > 0 {
            p.quiet { (words::count_of(count as i128, "example comes", "examples come")) " out as expected." }
        } @else {
            p.quiet { "There are no examples. Add some to " code { "examples" } ": a version that comes to something else cannot be saved." }
        }
    }
}

/// The members of an object in one line.
pub fn facts(data: &Json) -> String {
    let said: Vec<String> =
        members(data).map(|(name, value)| format!("{name} {}", text_of(value))).collect();
    words::cut(&said.join(", "), 200)
}

/// The budgets with their bounds.
pub fn budgets(programme: &ProgrammeView) -> impl Iterator<Item = (&str, String)> {
    members(&programme.configuration["budgets"]).map(|(name, budget)| {
        let limit = amount_of(&budget["limit"]);
        (name, limit)
    })
}

/// A field without the prefix that all fields of an event have.
fn field(path: &Json) -> String {
    let path = path.as_str().unwrap_or_default();
    path.strip_prefix("data.").unwrap_or(path).to_owned()
}

/// A number as it is written, grouped where it is whole.
pub fn amount_of(value: &Json) -> String {
    match value.as_i64() {
        Some(whole) => words::number(whole.into()),
        None => text_of(value),
    }
}

fn text_of(value: &Json) -> String {
    match value {
        Json::Null => "–".to_owned(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Json) -> &[Json] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn members(value: &Json) -> impl Iterator<Item = (&str, &Json)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::view::tests::programme;
    use serde_json::json;

    #[test]
    fn a_rule_is_a_sentence() {
        let programme = programme(json!({
            "unit": "GRP", "expiry": {"kind": "activity", "months": 6},
            "rules": [
                {"id": 1, "name": "food", "eventType": "order.completed", "member": "data.consumer_id",
                 "amount": "data.amount", "factors": ["vertical", "tier"], "extends": true, "perEventMax": 20000},
                {"id": 2, "name": "<b>", "eventType": "booking.cancelled", "member": "data.consumer_id", "points": 100},
                {"id": 3, "name": "refund", "eventType": "order.refunded", "member": "data.consumer_id",
                 "amount": "data.refunded_amount", "reverses": "data.order_id"},
            ],
        }));
        let shown = rules(&programme).into_string();
        for words in [
            "gets <code>amount</code> × <strong>vertical</strong> × <strong>tier</strong>",
            "At most 20000 GRP for one event. It keeps all points of the member alive.",
            "<strong>100 GRP</strong>",
            "&lt;b&gt;",
            "what <code>order_id</code> earned is taken back, as far as <code>refunded_amount</code> was refunded",
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
    }

    #[test]
    fn the_most_specific_rows_of_a_table_come_first() {
        let programme = programme(json!({"tables": {"vertical": {
            "by": ["data.country", "data.vertical"], "rows": {"*": 1, "SG.*": 1.5, "SG.food": 2}}}}));
        let shown = tables(&programme).into_string();
        let place = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text}: {shown}"));
        assert!(place("SG.food") < place("SG.*") && place("× 2") < place("× 1.5"));
        assert!(shown.contains("Looked up by country and vertical"), "{shown}");
        assert!(shown.contains("Without a row, the event waits"), "{shown}");
    }

    #[test]
    fn expiry_has_words() {
        let said = expiry(&json!({"kind": "activity", "months": 6}));
        assert!(said.contains("6 months after the month of the last transaction"), "{said}");
        let said = expiry(&json!({"kind": "fixed", "months": 1, "until": "day"}));
        assert_eq!(said, "1 month after they were earned, to the day");
        assert_eq!(expiry(&Json::Null), "never");
    }

    #[test]
    fn any_document_is_shown() {
        for odd in
            [json!(null), json!([]), json!({"rules": 7, "tables": [1], "tiers": {"levels": [3]}})]
        {
            let programme = programme(odd);
            let shown =
                [rules(&programme), tables(&programme), life(&programme), examples(&programme)];
            assert!(shown.iter().all(|markup| !markup.0.contains("null")));
        }
    }
}

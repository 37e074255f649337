//! The guided beginning of a campaign: a few questions, whose answers become a document.

use maud::{Markup, html};
use raingauge_portal::Fields;
use raingauge_portal::html::parts::Field;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// Conditions that the form asks for.
const CONDITIONS: usize = 3;

const OPERATORS: [(&str, &str); 8] = [
    ("eq", "is"),
    ("ne", "is not"),
    ("gt", "is more than"),
    ("gte", "is at least"),
    ("lt", "is less than"),
    ("lte", "is at most"),
    ("in", "is one of (separated by commas)"),
    ("prefix", "begins with"),
];

const OCCASIONS: [(&str, &str); 3] = [
    ("each", "each of these events"),
    ("reaches", "the Nth of these events"),
    ("every", "every Nth event"),
];

const WINDOWS: [(&str, &str); 4] = [
    ("campaign", "in the whole campaign"),
    ("day", "in a day"),
    ("week", "in a week"),
    ("month", "in a month"),
];

const KINDS: [(&str, &str); 3] =
    [("message", "send a message"), ("reward", "award a reward"), ("points", "award points")];

/// What the form offers from what is there.
pub struct Offers {
    pub event_types: Vec<String>,
    pub fields: Vec<String>,
    pub destinations: Vec<String>,
}

/// What to do about answers that are missing, by the names of their fields.
pub type Gaps = BTreeMap<&'static str, &'static str>;

/// The answers that a campaign cannot do without.
pub fn gaps(fields: &Fields) -> Gaps {
    let what = match fields.text("kind") {
        "reward" => "Name the reward.",
        "points" => "Say how many points.",
        _ => "Write the message.",
    };
    let is_counted = matches!(fields.text("occasion"), "reaches" | "every");
    let is_paid = fields.given("cost").is_some();
    let wanted = [
        ("name", true, "Give it a name."),
        ("type", true, "Say which events it is about."),
        ("number", is_counted, "Say which one: N is missing."),
        ("to", true, "Name the destination."),
        ("what", true, what),
        ("budget", is_paid, "Say how much there is for all of them."),
        ("unit", is_paid, "Say what the budget is measured in."),
    ];
    let missing = |(name, is_wanted, words)| {
        let is_missing = is_wanted && fields.given(name).is_none();
        is_missing.then_some((name, words))
    };
    wanted.into_iter().filter_map(missing).collect()
}

/// The questions, as they were answered.
pub fn questions(fields: &Fields, gaps: &Gaps, offers: &Offers) -> Markup {
    let text = |name: &'static str, label: &'static str, hint: &'static str| {
        Field { name, label, hint, problem: gaps.get(name).copied() }.text(fields.text(name))
    };
    let suggested =
        |name: &'static str, label: &'static str, hint: &'static str, list: &'static str| {
            let problem = gaps.get(name).copied();
            Field { name, label, hint, problem }.around(&html! {
                input type="text" id=(name) name=(name) value=(fields.text(name)) list=(list)
                    autocomplete="off" spellcheck="false"
                    aria-invalid=[problem.map(|_| "true")] aria-describedby={ (name) "-words" };
            })
        };

    html! {
        (datalist("event-types", &offers.event_types))
        (datalist("event-fields", &offers.fields))
        (datalist("destinations", &offers.destinations))
        section.card { fieldset.form {
            legend.card-legend { "What is it called?" }
            div.row.top { (text("name", "Name", "Such as third_order")) (text("owner", "Owner", "The team that answers for it")) }
            (text("description", "Description", ""))
        } }
        section.card { fieldset.form {
            legend.card-legend { "When does it act?" }
            div.row.top {
                (suggested("type", "When this happens", "A type of events, such as mart.order", "event-types"))
                (suggested("subject", "For the subject in this field", "Such as data.user_id; the subject of the event if this is empty", "event-fields"))
            }
            @for place in 0..CONDITIONS { (condition(fields, place)) }
            div.row.top {
                (choice(fields, "occasion", "On", &OCCASIONS))
                (text("number", "N", "Such as 3, for the third"))
                (choice(fields, "window", "Counted", &WINDOWS))
            }
            (text("zone", "Time zone of days and weeks", "An IANA name, such as Asia/Singapore; UTC if it is empty"))
        } }
        section.card { fieldset.form {
            legend.card-legend { "What does it do?" }
            div.row.top {
                (choice(fields, "kind", "Then", &KINDS))
                (suggested("to", "Through", "The destination that carries it out", "destinations"))
                (text("wait", "Minutes later", "Empty: at once"))
            }
            (text("what", "The message, the reward, or the number of points", "A message may use {{ subject }} and {{ data.… }}"))
        } }
        section.card { fieldset.form {
            legend.card-legend { "What bounds it?" }
            div.row.top { (text("most", "At most this often for each subject", "Empty: without a limit")) (choice(fields, "period", "Counted", &WINDOWS)) }
            div.row.top {
                (text("cost", "Each one costs", "Empty: nothing"))
                (text("budget", "Budget for all of them", ""))
                (text("unit", "Unit of both", "Such as SGD_cents"))
            }
        } }
    }
}

fn datalist(id: &str, values: &[String]) -> Markup {
    html! { datalist id=(id) { @for value in values { option value=(value) {} } } }
}

fn choice(
    fields: &Fields,
    name: &'static str,
    label: &'static str,
    choices: &[(&str, &str)],
) -> Markup {
    let chosen = fields.text(name);
    html! {
        div.field {
            label for=(name) { (label) }
            select id=(name) name=(name) {
                @for (value, words) in choices {
                    option value=(value) selected[*value == chosen] { (words) }
                }
            }
        }
    }
}

fn condition(fields: &Fields, place: usize) -> Markup {
    let name = |part: &str| format!("{part}.{place}");
    let operator = fields.text(&name("operator")).to_owned();
    html! {
        div.condition {
            span.quiet { @if place == 0 { "if" } @else { "and" } }
            input type="text" name=(name("field")) value=(fields.text(&name("field")))
                list="event-fields" placeholder="field" aria-label="Field" autocomplete="off"
                spellcheck="false";
            select name=(name("operator")) aria-label="Comparison" {
                @for (value, words) in OPERATORS {
                    option value=(value) selected[value == operator] { (words) }
                }
            }
            input type="text" name=(name("value")) value=(fields.text(&name("value")))
                placeholder="value" aria-label="Value" autocomplete="off" spellcheck="false";
        }
    }
}

/// The document that the answers describe. What is missing in it is found by the check of all
/// documents.
pub fn document(fields: &Fields) -> Json {
    let mut document = Map::new();
    let mut put = |name: &str, value: Json| document.insert(name.to_owned(), value);
    put("name", json!(fields.text("name")));
    put("eventTypes", json!([fields.text("type")]));
    if let Some(subject) = fields.given("subject") {
        put("subject", json!(subject));
    }
    put("zone", json!(fields.given("zone").unwrap_or("UTC")));
    put("state", json!("draft"));
    put("owner", json!(fields.text("owner")));
    put("description", json!(fields.text("description")));

    let conditions: Vec<Json> =
        (0..CONDITIONS).filter_map(|place| one_condition(fields, place)).collect();
    let rule = match conditions.len() {
        0 => None,
        1 => conditions.into_iter().next(),
        _ => Some(json!({"operator": "and", "conditions": conditions})),
    };
    let mut step =
        json!({"name": fields.given("kind").unwrap_or("step"), "actions": [action(fields)]});
    counted(fields, rule, &mut document, &mut step);

    bounds(fields, &mut document, &mut step);
    if fields.text("kind") == "message" {
        document.insert("templates".to_owned(), json!({"text": {"en": fields.text("what")}}));
    }
    document.insert("steps".to_owned(), json!([step]));
    Json::Object(document)
}

fn one_condition(fields: &Fields, place: usize) -> Option<Json> {
    let field = fields.given(&format!("field.{place}"))?;
    let operator = fields.text(&format!("operator.{place}"));
    let typed = fields.text(&format!("value.{place}"));
    let lhs = match field.strip_prefix("data.") {
        Some(path) => format!("var.{path}"),
        None => field.to_owned(),
    };
    let rhs = match operator {
        "in" => typed.split(',').map(|value| constant(value.trim())).collect(),
        "prefix" => json!(typed),
        _ => constant(typed),
    };
    Some(json!({"operator": operator, "lhs": lhs, "rhs": rhs}))
}

/// A number or a truth value where the text is one.
fn constant(text: &str) -> Json {
    match serde_json::from_str(text) {
        Ok(value @ (Json::Number(_) | Json::Bool(_))) => value,
        _ => json!(text),
    }
}

/// Without a number, the rule gates the campaign; with one, it filters what is counted.
fn counted(fields: &Fields, rule: Option<Json>, document: &mut Map<String, Json>, step: &mut Json) {
    let occasion = fields.text("occasion");
    if !matches!(occasion, "reaches" | "every") {
        if let Some(rule) = rule {
            document.insert("rule".to_owned(), rule);
        }
        return;
    }

    let window = match fields.text("window") {
        period @ ("day" | "week" | "month") => json!({"calendar": period}),
        _ => json!("campaign"),
    };
    let mut count = json!({"window": window});
    if let Some(filter) = rule {
        count["filter"] = filter;
    }
    document.insert("counts".to_owned(), json!({"events": count}));
    step["when"] = json!({"operator": occasion, "lhs": "count.events", "rhs": constant(fields.text("number"))});
}

fn action(fields: &Fields) -> Json {
    let kind = fields.text("kind");
    let mut action = json!({"name": "action", "kind": kind, "to": fields.text("to")});
    match kind {
        "message" => action["template"] = json!("text"),
        "points" => action["points"] = constant(fields.text("what")),
        _ => action["reward"] = json!(fields.text("what")),
    }
    if let Some(minutes) = fields.given("wait") {
        action["delay"] = json!({"after": format!("PT{minutes}M")});
    }
    action
}

fn bounds(fields: &Fields, document: &mut Map<String, Json>, step: &mut Json) {
    if let Some(most) = fields.given("most") {
        let period = fields.given("period").unwrap_or("campaign");
        let limit = json!({"step": step["name"], "max": constant(most), "period": period});
        document.insert("limits".to_owned(), json!([limit]));
    }

    if let Some(cost) = fields.given("cost") {
        let max = constant(fields.text("budget"));
        let budget = json!({"unit": fields.text("unit"), "max": max, "period": "campaign"});
        document.insert("budgets".to_owned(), json!({"total": budget}));
        step["actions"][0]["cost"] = json!({"budget": "total", "amount": constant(cost)});
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_campaigns::campaign::Campaign;

    const ANSWERS: &[u8] = b"name=third_order&owner=mart&type=mart.order&subject=data.user_id\
        &field.0=data.status&operator.0=eq&value.0=completed&field.1=total&operator.1=gte&value.1=5\
        &occasion=reaches&number=3&window=week&zone=Asia/Singapore&kind=reward&to=rewards&what=MART5\
        &wait=10&most=1&period=month&cost=500&budget=1000&unit=SGD_cents";

    #[test]
    fn the_answers_are_a_campaign() {
        let answers =
            String::from_utf8_lossy(ANSWERS).replace("field.1=total", "field.1=data.total");
        let json = document(&Fields::parse(answers.as_bytes()));
        let campaign = Campaign::from_json(&json).unwrap_or_else(|problems| panic!("{problems:?}"));

        assert_eq!(json["counts"]["events"]["filter"]["conditions"][0]["lhs"], "var.status");
        assert_eq!(json["counts"]["events"]["filter"]["conditions"][1]["rhs"], 5);
        assert_eq!(json["steps"][0]["when"]["rhs"], 3);
        assert_eq!(json["steps"][0]["actions"][0]["delay"]["after"], "PT10M");
        assert_eq!(campaign.budgets["total"].max, 1_000);
        assert_eq!(campaign.limits[0].max, 1);
    }

    #[test]
    fn a_message_for_each_event_needs_little() {
        let answers = b"name=hello&type=t&kind=message&to=m&what=Hi&occasion=each&field.0=data.a&operator.0=in&value.0=1,+x";
        let json = document(&Fields::parse(answers));
        assert!(Campaign::from_json(&json).is_ok(), "{json}");
        assert_eq!(json["rule"]["rhs"], json!([1, "x"]));
        assert_eq!(json["templates"]["text"]["en"], "Hi");
    }

    #[test]
    fn every_gap_has_words_beside_its_field() {
        let asked = |answers: &str| {
            let fields = Fields::parse(answers.as_bytes());
            let gaps = gaps(&fields);
            let offers = Offers { event_types: vec![], fields: vec![], destinations: vec![] };
            let page = questions(&fields, &gaps, &offers).into_string();
            assert!(gaps.values().all(|words| page.contains(words)), "{page}");
            gaps.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(asked(""), ["name", "to", "type", "what"]);
        assert_eq!(
            asked("name=n&to=d&type=t&what=w&occasion=every&cost=5"),
            ["budget", "number", "unit"]
        );
        assert_eq!(asked(&String::from_utf8_lossy(ANSWERS)), [""; 0]);
    }

    #[test]
    fn what_is_missing_is_a_problem_of_the_document() {
        let json = document(&Fields::default());
        assert!(Campaign::from_json(&json).is_err());
    }
}

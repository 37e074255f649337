//! Why not: what became of an event or a subject, step by step, in plain words.

use super::decisions::trace;
use super::desk::Explained;
use super::reasons::{self, Meaning};
use super::summary::rule;
use super::visit::{Answer, Tab, Visit, encoded};
use maud::{Markup, html};
use raingauge_portal::html::parts::{self, Field, Mood};
use raingauge_portal::html::words;
use serde_json::{Value as Json, json};

/// `GET /campaigns/why?campaign=7&subject=u-7&source=mart&event=o-3`
pub async fn page(visit: Visit) -> Answer {
    let fields = &visit.query;
    let campaign = fields.given("campaign").and_then(|id| id.parse().ok());
    let found = match (campaign, fields.given("subject")) {
        (Some(campaign), Some(subject)) => {
            let mut request = json!({"subject": subject});
            if let (Some(source), Some(id)) = (fields.given("source"), fields.given("event")) {
                request["event"] = json!({"source": source, "id": id});
                if let Some(time) = fields.given("time") {
                    request["event"]["time"] = json!(time);
                }
            }
            answer(&visit, visit.desk.explain(campaign, &request, &visit.person).await?)
        }
        _ => html! {},
    };

    let body = html! {
        div.page-head { h1 { "Why not?" } }
        p.lead { "Choose a campaign and a subject: a customer, a driver, a zone. The answer says what the campaign decided on its newest event, or on the event that you name by its source and id, and which condition or bound was the reason." }
        (form(&visit))
        div #answer { (found) }
    };
    Ok(visit.show(Tab::WhyNot, "Why not?", &body))
}

fn form(visit: &Visit) -> Markup {
    let fields = &visit.query;
    let chosen = fields.text("campaign");
    let text = |name: &'static str, label: &'static str, hint: &'static str| {
        Field { name, label, hint, problem: None }.text(fields.text(name))
    };
    html! {
        section.card {
            form.form method="get" action="/campaigns/why" {
                div.row {
                    div.field {
                        label for="campaign" { "Campaign" }
                        select id="campaign" name="campaign" required {
                            @for listed in visit.desk.campaigns() {
                                @let id = listed.campaign.id.to_string();
                                option value=(id) selected[chosen == id] {
                                    (words::cut(&listed.campaign.name, 60))
                                }
                            }
                        }
                    }
                    (text("subject", "Subject", ""))
                }
                div.row {
                    (text("source", "Source of the event", ""))
                    (text("event", "Id of the event", ""))
                    (text("time", "Time of the event", "If it was sent more than once: 2024-09-24T03:00:00Z"))
                }
                div.actions { button.button.primary type="submit" { "Explain" } }
            }
        }
    }
}

fn answer(visit: &Visit, explained: Explained) -> Markup {
    match explained {
        Explained::Now(result) => {
            html! {
                section.card.answer aria-labelledby="why-title" {
                    h2 #why-title { "The answer" }
                    (explanation(&result))
                }
            }
        }
        Explained::Later(job) => {
            let state = visit.desk.job(&job).unwrap_or_default();
            html! { section.card { h2 { "Reading the log" } (super::jobs::panel(visit, &job, &state)) } }
        }
    }
}

/// An explanation in words: the reason, the conditions, and what would have to be different.
pub fn explanation(result: &Json) -> Markup {
    let code = result["code"].as_str().unwrap_or_default();
    let mood = match reasons::meaning(code) {
        Some(Meaning { mood: "good", .. }) => Mood::Good,
        Some(Meaning { mood: "bad", .. }) => Mood::Bad,
        _ => Mood::Wait,
    };
    let nearest = result["nearest"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        (parts::notice(mood, &html! {
            strong { (sentence(code)) }
            @if let Some(detail) = result["detail"].as_str() { " " (detail) }
        }))
        @if let Some(id) = result["event"]["id"].as_str() {
            p {
                "On the event "
                code { (result["event"]["source"].as_str().unwrap_or_default()) "/" (id) }
                @if let Some(version) = result["version"].as_u64() { ", by version " (version) }
                "."
            }
        }
        (first(&result["first"]))
        @if !nearest.is_empty() {
            h3 { "What would have to be different" }
            ul.conditions { @for step in nearest { li { (missing(step)) } } }
        }
        @if result["trace"].as_array().is_some_and(|lines| !lines.is_empty()) {
            h3 { "What was tested, in this order" }
            (trace(&result["trace"]))
        }
        (decided(result))
        (newest(result))
        (rest(result))
        @match result["how"].as_str() {
            Some("replayed") => { p.quiet { "Found by replaying the events of the subject from the log." } }
            Some("stored") => { p.quiet { "As it was recorded with the decision." } }
            _ => {}
        }
    }
}

/// The first event of the same source and id, where this one came again.
fn first(first: &Json) -> Markup {
    let text = |name: &str| first[name].as_str();
    html! {
        @if let Some(time) = text("eventTime") {
            p {
                "The first event of this source and id happened at " (time)
                @if let Some(received) = text("receivedAt") { ", was received at " (received) }
                @if let Some(offset) = first["offset"].as_u64() { ", stands at offset " (offset) " of the log" }
                @if let Some(decided) = text("decidedAt") { ", and was decided at " (decided) }
                "."
            }
        }
    }
}

fn sentence(code: &str) -> String {
    let meaning = reasons::meaning(code).map_or(code, |meaning| meaning.words);
    match code {
        "granted" | "delivered" | "delayed" | "retrying" | "dead" | "refused" | "pending" => {
            format!("It was granted: {meaning}.")
        }
        "" => "Nothing is known of it.".to_owned(),
        _ => format!("It was not granted: {meaning}."),
    }
}

/// The fewest conditions that keep a step from holding.
fn missing(step: &Json) -> Markup {
    let changes = step["change"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        "For the step " strong { (step["step"].as_str().unwrap_or_default()) } ": "
        @for (place, change) in changes.iter().enumerate() {
            @if place > 0 { ", and " }
            code { (change["lhs"].as_str().unwrap_or_default()) }
            @if !change["is"].is_null() { " is " strong { (rule::value(&change["is"])) } " and" }
            " should be: " (wanted(change["wants"].as_str().unwrap_or_default()))
        }
    }
}

/// `reaches 2` as a phrase.
fn wanted(text: &str) -> String {
    let (not, text) = match text.strip_prefix("not ") {
        Some(rest) => ("not: ", rest),
        None => ("", text),
    };
    let (operator, value) = text.split_once(' ').unwrap_or((text, ""));
    let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
    format!("{not}{}", rule::predicate(operator, Some(&value)))
}

/// What was decided on the event, action by action, and what became of the deliveries.
fn decided(result: &Json) -> Markup {
    let decisions = result["decisions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    html! {
        @if !decisions.is_empty() {
            h3 { "What was decided" }
            ul.plain {
                @for decision in decisions {
                    li {
                        (reasons::badge(&text(&decision["code"]))) " "
                        @match decision["action"].as_str() {
                            Some(action) => {
                                a href={ "/campaigns/actions/" (action) } {
                                    (text(&decision["step"])) "/" (text(&decision["name"]))
                                }
                            }
                            None => { (text(&decision["step"])) "/" (text(&decision["name"])) }
                        }
                        @if let Some(delivery) = decision["delivery"].as_object() {
                            ": " (delivery.get("status").map(text).unwrap_or_default())
                            " at " (delivery.get("destination").map(text).unwrap_or_default())
                            @let tries = delivery.get("tries").and_then(Json::as_u64).unwrap_or(0);
                            ", " (tries) @if tries == 1 { " try" } @else { " tries" }
                            @let note = delivery.get("note").and_then(Json::as_str);
                            @if let Some(note) = note.filter(|note| !note.is_empty()) {
                                ", the last answer: "
                                (note)
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The newest events of the subject, each with a link to its own explanation.
fn newest(result: &Json) -> Markup {
    let events = result["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    let address = |event: &Json| {
        format!(
            "/campaigns/why?campaign={}&subject={}&source={}&event={}",
            result["campaign"],
            encoded(&text(&result["subject"])),
            encoded(&text(&event["event"]["source"])),
            encoded(&text(&event["event"]["id"]))
        )
    };
    html! {
        @if !events.is_empty() {
            h3 { "Its newest events" }
            ul.plain {
                @for event in events {
                    li {
                        (reasons::badge(&text(&event["code"]))) " " (text(&event["eventTime"])) " "
                        a href=(address(event)) { (text(&event["event"]["source"])) "/" (text(&event["event"]["id"])) }
                    }
                }
            }
        }
    }
}

/// Members that the answer has besides, such as the tries of a delivery or other events.
fn rest(result: &Json) -> Markup {
    const SHOWN: [&str; 14] = [
        "campaign",
        "code",
        "decisions",
        "detail",
        "event",
        "eventTime",
        "events",
        "first",
        "how",
        "lookups",
        "nearest",
        "subject",
        "trace",
        "version",
    ];
    let further = result.as_object().into_iter().flatten();
    let further: Vec<_> = further
        .filter(|(name, value)| !SHOWN.contains(&name.as_str()) && !value.is_null())
        .collect();
    html! {
        @if !further.is_empty() {
            dl.facts {
                @for (name, value) in further {
                    dt { (name) }
                    dd {
                        @if value.is_object() || value.is_array() {
                            pre.data { (serde_json::to_string_pretty(value).unwrap_or_default()) }
                        } @else {
                            (rule::value(value))
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_is_in_words() {
        let result = json!({"code": "step_false", "campaign": 7, "version": 1,
            "event": {"source": "mart", "id": "<o-2>"},
            "trace": [{"leaf": "rule: var.country eq sg", "is": "sg", "holds": true},
                      {"leaf": "nudge: count.orders reaches 2", "before": 1, "after": 1, "holds": false}],
            "nearest": [{"step": "nudge", "change": [{"lhs": "count.orders", "is": 1, "wants": "reaches 2"}]}],
            "how": "replayed"});
        let shown = explanation(&result).into_string();
        for words in [
            "It was not granted: the condition of the step did not hold.",
            "mart/&lt;o-2&gt;",
            "is <strong>1</strong> and should be: reaches 2",
            "it went from 1 to 1",
            "replaying",
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert!(!shown.contains("<dl"), "nothing is left over: {shown}");
    }

    #[test]
    fn a_duplicate_names_the_first_event() {
        let result = json!({"code": "duplicate", "event": {"source": "mart", "id": "o-1"},
            "first": {"eventTime": "2024-09-24T00:00:00Z", "offset": 1,
                      "receivedAt": "2024-09-24T00:00:01Z"}});
        let shown = explanation(&result).into_string();
        for words in ["had arrived before", "happened at 2024-09-24T00:00:00Z", "offset 1"] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert!(!shown.contains("<dl"), "nothing is left over: {shown}");
    }

    #[test]
    fn what_is_wanted_is_a_phrase() {
        assert_eq!(wanted("reaches 2"), "reaches 2");
        assert_eq!(wanted("not eq sg"), "not: is sg");
        assert_eq!(wanted("in [\"a\",\"b\"]"), "is one of a, b");
        assert_eq!(wanted(""), " ");
    }

    #[test]
    fn a_delivery_and_an_unknown_code_are_shown() {
        let shown = explanation(&json!({"code": "retrying", "campaign": 7, "subject": "a&b",
            "decisions": [{"code": "retrying", "step": "s", "name": "a", "action": "act_1",
                "delivery": {"destination": "d", "status": "pending", "tries": 2, "note": "503"}}],
            "events": [{"event": {"source": "m", "id": "o-1"}, "eventTime": "t", "code": "retrying"}],
            "new": 5}))
        .into_string();
        for words in [
            "It was granted: tried again",
            "pending at d, 2 tries, the last answer: 503",
            "subject=a%26b&amp;source=m&amp;event=o-1",
            "<dt>new</dt><dd>5</dd>",
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert!(explanation(&json!({"code": "new_code"})).into_string().contains("new_code"));
        assert!(explanation(&Json::Null).into_string().contains("Nothing is known"));
    }
}

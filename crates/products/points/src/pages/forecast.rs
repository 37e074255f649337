//! What a draft of a programme would have awarded on past events, beside what is in force.

use super::rules::amount_of;
use super::visit::{Answer, Visit, done};
use axum::response::{Html, IntoResponse as _};
use maud::{Markup, html};
use raingauge_portal::document::{Sheet, parse};
use raingauge_portal::html::parts::{self, Column, Mood};
use raingauge_portal::html::words;
use raingauge_portal::{Fault, document};
use serde_json::{Value as Json, json};

/// Days of past events, if the form does not say.
const DAYS: i64 = 28;
/// Most days of past events; the log usually holds fewer.
const DAYS_MAX: i64 = 400;

const SHARES: [Column<'_>; 3] =
    [Column::Text("Name"), Column::Number("Now"), Column::Number("Draft")];
const MEMBERS: [Column<'_>; 4] = [
    Column::Text("Member"),
    Column::Number("Now"),
    Column::Number("Draft"),
    Column::Number("Change"),
];

/// `POST /points/forecast`: begins a forecast of the text. A script puts its panel beside the
/// form.
pub async fn begin(visit: Visit) -> Answer {
    let sheet = Sheet::submitted(&visit.form);
    let is_part = visit.form.given("part").is_some();
    let document = match parse(&sheet.text) {
        Ok(document) => document,
        Err(problems) if is_part => {
            let shown = document::problems(&problems, &sheet.text);
            return Ok(Html(shown.into_string()).into_response());
        }
        Err(_) => return Err(unreadable()),
    };

    let days: i64 = visit.form.text("days").parse().unwrap_or(DAYS);
    let from_s = visit.now_s() - days.clamp(1, DAYS_MAX) * 86_400;
    let request = json!({"programme": document, "fromTime": from_s});
    let job = visit.desk.forecast(&request, &visit.person)?;
    let name = job["id"].as_str().unwrap_or_default().to_owned();
    if is_part {
        return Ok(Html(super::jobs::panel(&visit, &job).into_string()).into_response());
    }
    let address = format!("/points/jobs/{name}");
    Ok(done(&address, "points.forecast", format!("job {name}"), json!({"days": days})))
}

fn unreadable() -> Fault {
    Fault::bad_request(
        "The text cannot be read",
        "Go back and check it; the problems stand at their lines.",
    )
}

/// The result of a forecast.
pub fn result(result: &Json) -> Markup {
    let now = &result["inForce"];
    html! {
        @if result["events"] == 0 {
            (parts::notice(Mood::Wait, &html! { "No past event concerns this programme, so nothing can be forecast." }))
        } @else {
            @let events = result["events"].as_u64().unwrap_or(0);
            p { "Over " (words::count_of(events.into(), "past event", "past events")) ":" }
            dl.figures {
                @if !now.is_null() { (figure("Now", &now["points"])) }
                (figure("Draft", &result["draft"]["points"]))
                (figure("Change", &result["change"]))
                (figure("Change of what is owed", &result["liabilityChange"]))
                (figure("Draft, a month", &result["draft"]["scaled"]["perMonth"]))
            }
            (shares("By rule", "byRule", result))
            (shares("By tier", "byTier", result))
            (shares("By month", "byMonth", result))
            (members("Gain most", &result["gainMost"]))
            (members("Lose most", &result["loseMost"]))
            (left_out(&result["draft"]))
        }
    }
}

fn figure(label: &str, points: &Json) -> Markup {
    html! { div { dt { (label) } dd { span.figure { (amount_of(points)) } } } }
}

/// The points of both sides by what they are divided by.
fn shares(title: &str, name: &str, result: &Json) -> Markup {
    let side = |side: &str| result[side][name].as_array().cloned().unwrap_or_default();
    let draft = side("draft");
    let now = side("inForce");
    let mut names: Vec<&str> =
        draft.iter().chain(&now).filter_map(|share| share["name"].as_str()).collect();
    names.sort_unstable();
    names.dedup();

    let of = |side: &[Json], name: &str| {
        let share = side.iter().find(|share| share["name"] == name);
        share.map_or_else(|| "–".to_owned(), |share| amount_of(&share["points"]))
    };
    html! {
        @if names.len() > 1 {
            h3 { (title) }
            (parts::named_table(title, "", &SHARES, &html! {
                @for name in names {
                    tr {
                        th scope="row" { @if name.is_empty() { "–" } @else { (name) } }
                        td.number { (of(&now, name)) }
                        td.number { (of(&draft, name)) }
                    }
                }
            }))
        }
    }
}

fn members(title: &str, members: &Json) -> Markup {
    let members = members.as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        @if !members.is_empty() {
            details {
                summary { (title) }
                (parts::named_table(title, "", &MEMBERS, &html! {
                    @for one in members {
                        tr {
                            th scope="row" { (words::cut(one["member"].as_str().unwrap_or_default(), 60)) }
                            td.number { (amount_of(&one["inForce"])) }
                            td.number { (amount_of(&one["draft"])) }
                            td.number { (amount_of(&one["change"])) }
                        }
                    }
                }))
            }
        }
    }
}

/// What the draft did not award.
fn left_out(draft: &Json) -> Markup {
    let unpriced = draft["unpriced"].as_u64().unwrap_or(0);
    html! {
        @if unpriced > 0 {
            (parts::notice(Mood::Wait, &html! {
                (words::count_of(unpriced.into(), "event has", "events have")) " no price: a table lacks a row."
            }))
        }
        @for (code, count) in draft["refused"].as_object().into_iter().flatten() {
            p.quiet { (amount_of(count)) " refused: " code { (code) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_stand_beside_each_other() {
        let forecast = json!({
            "events": 1_200, "change": 500, "liabilityChange": 400,
            "draft": {"points": 1_500, "byRule": [{"name": "food", "points": 1_500}, {"name": "ride", "points": 0}],
                "unpriced": 2, "refused": {"budget_spent": 3}, "scaled": {"perMonth": 1_600}},
            "inForce": {"points": 1_000, "byRule": [{"name": "food", "points": 1_000}]},
            "gainMost": [{"member": "<bob>", "inForce": 1, "draft": 2, "change": 1}],
        });
        let shown = result(&forecast).into_string();
        for words in [
            "1,200 past events",
            "1,500",
            "1,000",
            "By rule",
            "&lt;bob&gt;",
            "2 events have",
            "budget_spent",
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert!(!shown.contains("By tier"), "{shown}");
        assert!(result(&json!({"events": 0})).into_string().contains("No past event"));
    }
}

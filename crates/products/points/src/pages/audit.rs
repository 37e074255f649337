//! Whether the entries are what the events of the log are worth, and whether any award is missing.

use super::visit::{Answer, Visit, done};
use maud::{Markup, html};
use raingauge_portal::html::parts::{self, Column, Mood};
use raingauge_portal::html::words;
use serde_json::{Value as Json, json};

const DIFFERENCES: [Column<'_>; 3] =
    [Column::Text("Member"), Column::Text("Entry"), Column::Text("Difference")];

/// The last audit, and another one.
pub fn card(visit: &Visit) -> Markup {
    html! {
        section.card aria-labelledby="audit-title" {
            h2 #audit-title { "Audit" }
            p { "An audit prices the events of the log again, by the programmes of their time, and compares with the entries. Awards that are nowhere can be sent again." }
            @match visit.desk.last_audit() {
                Some(last) => { (result(&last)) }
                None => { p.quiet { "There was none since this process began." } }
            }
            @if visit.may_administer() {
                form.row method="post" action="/points/checks/audit" {
                    (parts::csrf(&visit.person))
                    button.button type="submit" { "Audit now" }
                    (parts::check("resend", "1", false, "send missing awards again"))
                }
            }
        }
    }
}

/// `POST /points/checks/audit`
pub async fn begin(visit: Visit) -> Answer {
    let is_resent = visit.form.given("resend").is_some();
    let job = visit.desk.audit(is_resent, &visit.person)?;
    let name = job["id"].as_str().unwrap_or_default().to_owned();
    let address = format!("/points/jobs/{name}");
    Ok(done(&address, "points.audit", format!("job {name}"), json!({"resend": is_resent})))
}

/// The result of an audit.
pub fn result(audit: &Json) -> Markup {
    let number = |name: &str| audit[name].as_u64().unwrap_or(0);
    let shown = |name: &str| words::number(number(name).into());
    let is_right = number("different") + number("missing") == 0;
    html! {
        @if is_right {
            (parts::notice(Mood::Good, &html! { "All " (words::count_of(number("awards").into(), "award is", "awards are")) " as the events say." }))
        } @else {
            (parts::notice(Mood::Bad, &html! { (shown("different")) " entries differ, and " (shown("missing")) " awards are missing." }))
        }
        dl.facts {
            dt { "When" } dd { (audit["auditedAt"].as_str().unwrap_or_default()) }
            dt { "Events that a rule matches" } dd { (shown("events")) }
            dt { "As they should be" } dd { (shown("equal")) }
            dt { "Refused for good" } dd { (shown("refused")) }
            dt { "Waiting in a queue" } dd { (shown("waiting")) }
            dt { "Dead letters" } dd { (shown("dead")) }
            @if number("unpriced") > 0 { dt { "Without a price" } dd { (shown("unpriced")) } }
            @if number("resent") > 0 { dt { "Sent again" } dd { (shown("resent")) } }
        }
        (differences(&audit["differences"]))
        @if audit["isPartial"] == true {
            p.quiet { "A queue holds more letters than were looked at, such as hidden ones: missing awards may be in it, and none was sent again." }
        }
    }
}

fn differences(differences: &Json) -> Markup {
    let differences = differences.as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        @if !differences.is_empty() {
            (parts::named_table("Differences", "", &DIFFERENCES, &html! {
                @for one in differences {
                    tr {
                        th.wrap scope="row" {
                            (one["member"].as_str().unwrap_or_default())
                            br;
                            span.quiet { (one["programme"].as_str().unwrap_or_default()) }
                        }
                        td { code { (one["entry"].as_str().unwrap_or("none")) } }
                        td.wrap { (one["detail"].as_str().unwrap_or_default()) }
                    }
                }
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_an_alarm() {
        let right = json!({"awards": 3, "equal": 3});
        assert!(result(&right).into_string().contains("All 3 awards are as the events say."));
        let wrong = json!({"awards": 3, "different": 1, "missing": 1,
            "differences": [{"programme": "p", "member": "<bob>", "entry": "0:7", "detail": "180, and not 90"}]});
        let shown = result(&wrong).into_string();
        assert!(shown.contains("notice bad") && shown.contains("&lt;bob&gt;"), "{shown}");
        assert!(shown.contains("180, and not 90"), "{shown}");
    }
}

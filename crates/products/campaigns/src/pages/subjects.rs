//! Erasing a subject.

use super::visit::{Answer, Tab, Visit, done, encoded, reason_field};
use maud::html;
use raingauge_portal::html::{parts, words};
use raingauge_portal::{Fault, Fields};
use serde_json::json;

/// The address of the question whether a subject is to be erased.
pub fn address(subject: &str) -> String {
    format!("/campaigns/subjects/erase?subject={}", encoded(subject))
}

fn named(fields: &Fields) -> Result<&str, Fault> {
    fields.given("subject").ok_or_else(|| {
        Fault::bad_request("No subject is named", "Choose one on the page of decisions.")
    })
}

/// `GET /campaigns/subjects/erase?subject=…`
pub async fn ask(visit: Visit) -> Answer {
    let subject = named(&visit.query)?;
    let title = format!("Erase {}", words::cut(subject, 60));
    let body = html! {
        div.page-head { h1 { (title) } }
        section.card {
            p { "Campaigns forget " code { (subject) } ": what they counted and granted, the variants of experiments, everything that waits, decisions, and deliveries with what they said. What was reserved and not sent returns to its budget." }
            p { "This cannot be undone. It does not remove rows of uploaded tables, nor events from the log, which keeps them for as long as its retention says; what comes in later begins at nothing." }
            form.form method="post" action="/campaigns/subjects/erase" {
                (parts::csrf(&visit.person))
                input type="hidden" name="subject" value=(subject);
                (reason_field("erasure", ""))
                div.actions {
                    button.button.danger type="submit" { "Erase" }
                    a.button href={ "/campaigns/decisions?subject=" (encoded(subject)) } { "Back" }
                }
            }
        }
    };
    Ok(visit.show(Tab::Decisions, &title, &body))
}

/// `POST /campaigns/subjects/erase`
pub async fn erase(visit: Visit) -> Answer {
    let subject = named(&visit.form)?.to_owned();
    visit.desk.erase(&subject).await?;
    let details = json!({"reason": visit.form.text("reason")});
    let address = "/campaigns/decisions?note=erased";
    Ok(done(address, "subject.erase", format!("subject {subject}"), details))
}

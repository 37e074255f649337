//! Points that are given or taken by hand. Large adjustments are proposed, and a second person
//! approves them.

use crate::AdjustmentKind;
use crate::pages::faults;
use crate::pages::view::ProgrammeView;
use crate::pages::visit::{Answer, Visit, done, programme};
use crate::requests::{TransactionRequest, item_of};
use crate::source::Source;
use crate::transaction_kind::Family;
use maud::{Markup, html};
use raingauge_core::code::Code;
use raingauge_people::secrets::new_secret;
use raingauge_points as points;
use raingauge_portal::html::parts::{self, Field};
use raingauge_portal::{Fault, document};
use serde_json::{Value as Json, json};

/// The form below a statement.
pub fn card(visit: &Visit, programme: &ProgrammeView, member: &str) -> Markup {
    // The key makes a form that is sent twice adjust once.
    let key = format!("portal:{}", new_secret());
    let points = Field {
        name: "points",
        label: &format!("Points ({})", programme.unit),
        hint: "More than zero gives points, less takes them.",
        problem: None,
    };
    let reason = Field {
        name: "reason",
        label: "Reason",
        hint: "It stands in the statement for ever.",
        problem: None,
    };
    let expires = Field {
        name: "expiresOn",
        label: "Expire on",
        hint: "As 2026-12-31; empty for as the others.",
        problem: None,
    };
    html! {
        details.card {
            summary { "Adjust the balance" }
            form.stack method="post" action={ (programme.member_address(member)) "/adjust" } {
                (parts::csrf(&visit.person))
                input type="hidden" name="key" value=(key);
                div.row.fields-row {
                    (points.text(""))
                    (reason.text(""))
                    (expires.text(""))
                }
                div.actions { button.button type="submit" { "Adjust" } }
            }
        }
    }
}

/// `POST /points/{programme}/members/{member}/adjust`
pub async fn adjust(visit: Visit) -> Answer {
    let programme = programme(&visit).await?;
    let member = visit.at("member").to_owned();
    let request = request(&visit, &programme.name, &member);
    let read: TransactionRequest = item_of(request.clone()).map_err(faults::refused)?;
    let services = visit.desk.services();
    let conversion = services.conversion(Source::Operator);

    let command = match conversion.transaction(read, Family::Corrections) {
        Ok(command) => command,
        Err(refusal) if refusal.code == Code::ApprovalNeeded => {
            let configuration = without_kind(request);
            return document::propose(&visit, AdjustmentKind::NAME, configuration, 0).await;
        }
        Err(refusal) => return Err(faults::refused(refusal)),
    };

    let answer = services.teller.submit(vec![command]).await.into_iter().next();
    let answer = answer.ok_or_else(|| Fault::not_found("answer"))?;
    match answer.map_err(faults::ledger)? {
        points::Answer::Done(_) | points::Answer::Replayed(_) => {
            let address = format!("{}?note=adjusted", programme.member_address(&member));
            let details =
                json!({"points": visit.form.text("points"), "reason": visit.form.text("reason")});
            let object = format!("member {member} of {}", programme.name);
            Ok(done(&address, "points.correct", object, details))
        }
        points::Answer::Refused { refusal, .. } | points::Answer::Invalid(refusal) => {
            Err(faults::refused(refusal))
        }
    }
}

/// The form as a correction of the API.
fn request(visit: &Visit, programme: &str, member: &str) -> Json {
    let mut request = json!({
        "kind": "adjust",
        "programme": programme,
        "member": member,
        "key": visit.form.text("key"),
        "points": visit.form.text("points").replace(',', ""),
        "reason": visit.form.text("reason"),
    });
    if let Some(day) = visit.form.given("expiresOn") {
        request["expiresOn"] = json!(day);
    }
    request
}

/// A draft has a kind of its own.
fn without_kind(mut request: Json) -> Json {
    if let Some(members) = request.as_object_mut() {
        members.remove("kind");
    }
    request
}

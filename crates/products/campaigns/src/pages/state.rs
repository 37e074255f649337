//! The state of a campaign: the kill switch, and the way back.

use super::visit::{Answer, Tab, Visit, campaign_id, done, reason_field};
use maud::html;
use raingauge_campaigns::campaign::State;
use raingauge_portal::html::parts;
use raingauge_portal::{Fault, Fields};
use serde_json::json;

/// A change of state: its name in an address, its title, and what happens.
const CHANGES: [(State, &str, &str, &str); 4] = [
    (
        State::Active,
        "active",
        "Activate",
        "It decides on every event from now on, and delivers. What happened while it was paused is \
         not made up for; actions that were held are sent.",
    ),
    (
        State::Shadow,
        "shadow",
        "Run in shadow",
        "It decides on every event from now on as if it were active, with budgets and limits of \
         its own, and delivers nothing. Its decisions show what it would do.",
    ),
    (
        State::Paused,
        "paused",
        "Pause",
        "The kill switch: from now on it decides nothing, and nothing that it has decided is sent. \
         It continues to count.",
    ),
    (
        State::Archived,
        "archived",
        "Archive",
        "It neither counts nor decides any more. What it decided and was not delivered is \
         cancelled, and its cost returns to the budget. Its versions and decisions stay.",
    ),
];

fn wanted(
    fields: &Fields,
) -> Result<&'static (State, &'static str, &'static str, &'static str), Fault> {
    let name = fields.text("to");
    let found = CHANGES.iter().find(|(_, known, ..)| *known == name);
    found.ok_or_else(|| {
        Fault::bad_request("There is no such state", "Use the buttons on the page of the campaign.")
    })
}

/// `GET /campaigns/{id}/state?to=paused`
pub async fn ask(visit: Visit) -> Answer {
    let id = campaign_id(&visit)?;
    let listed = visit.desk.campaign(id).ok_or_else(|| Fault::not_found("such campaign"))?;
    let (_, name, title, words) = wanted(&visit.query)?;

    let title = format!("{title}: {}", listed.campaign.name);
    let body = html! {
        div.page-head { h1 { (title) } (super::list::state_badge(&listed, visit.now_s())) }
        section.card {
            p { (words) }
            form.form method="post" action={ "/campaigns/" (id) "/state" } {
                (parts::csrf(&visit.person))
                input type="hidden" name="to" value=(name);
                input type="hidden" name="version" value=(listed.version);
                (reason_field("campaign", ""))
                div.actions {
                    button.button.primary type="submit" { (title.split(':').next().unwrap_or_default()) }
                    a.button href={ "/campaigns/" (id) } { "Back" }
                }
            }
        }
    };
    Ok(visit.show(Tab::Campaigns, &title, &body))
}

/// `POST /campaigns/{id}/state`
pub async fn change(visit: Visit) -> Answer {
    let id = campaign_id(&visit)?;
    let (state, name, ..) = wanted(&visit.form)?;
    let reason = visit.form.text("reason");
    visit.desk.set_state(id, *state, &visit.person, reason).await?;

    let details = json!({"state": name, "reason": reason});
    let address = format!("/campaigns/{id}?note=state");
    Ok(done(&address, "campaign.state", format!("campaign {id}"), details))
}

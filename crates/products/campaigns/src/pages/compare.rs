//! Two versions of a campaign over the same past events: who gains, who loses, what it costs.

use super::visit::{Answer, Tab, Visit, campaign_id, done};
use maud::html;
use raingauge_portal::Fault;
use raingauge_portal::html::parts;
use serde_json::json;

/// `GET /campaigns/{id}/compare`
pub async fn page(visit: Visit) -> Answer {
    let id = campaign_id(&visit)?;
    let listed = visit.desk.campaign(id).ok_or_else(|| Fault::not_found("such campaign"))?;
    let versions = visit.desk.versions("campaign", &id.to_string()).await?;
    let newest = versions.first().map_or(1, |version| version.version);
    let chosen = |name: &str, default: u32| {
        visit.query.given(name).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let sides = [
        ("before", "Version before", chosen("before", newest.saturating_sub(1).max(1))),
        ("after", "Version after", chosen("after", newest)),
    ];

    let title = format!("Compare versions of {}", listed.campaign.name);
    let body = html! {
        div.page-head { h1 { (title) } div.actions { a.button href={ "/campaigns/" (id) } { "The campaign" } } }
        p.lead { "Both versions are run over the same events of the log, as if each had been active. To compare with a text that is not saved yet, save it as a draft campaign, or use " code { "raingauge campaigns compare" } "." }
        section.card {
            form.form method="post" action={ "/campaigns/" (id) "/compare" } {
                (parts::csrf(&visit.person))
                div.row {
                    @for (name, label, chosen) in sides {
                        div.field {
                            label for=(name) { (label) }
                            select id=(name) name=(name) {
                                @for version in &versions {
                                    @let is_chosen = version.version == chosen;
                                    option value=(version.version) selected[is_chosen] {
                                        (version.version)
                                        ": "
                                        (version.changed_by)
                                        @if !version.reason.is_empty() { ", " (version.reason) }
                                    }
                                }
                            }
                        }
                    }
                    div.field { label for="days" { "Days" } input type="number" id="days" name="days" value="7" min="1" max="400"; }
                }
                div.actions { button.button.primary type="submit" { "Compare" } }
            }
        }
    };
    Ok(visit.show(Tab::Campaigns, &title, &body))
}

/// `POST /campaigns/{id}/compare`
pub async fn begin(visit: Visit) -> Answer {
    let id = campaign_id(&visit)?;
    let versions = visit.desk.versions("campaign", &id.to_string()).await?;
    let of = |name: &str| {
        let wanted: u32 = visit.form.text(name).parse().unwrap_or(0);
        let found =
            versions.iter().find(|version| version.version == wanted && !version.is_deleted);
        found
            .map(|version| version.configuration.clone())
            .ok_or_else(|| Fault::not_found("such version of the campaign"))
    };

    let days: i64 = visit.form.text("days").parse().unwrap_or(7);
    let from_s = visit.now_s() - days.clamp(1, 400) * 86_400;
    let request = json!({"before": [of("before")?], "after": [of("after")?], "fromTime": from_s});
    let job = visit.desk.compare(&request, &visit.person)?;
    let object = format!("campaign {id}");
    Ok(done(&format!("/campaigns/jobs/{job}"), "campaign.compare", object, json!({"days": days})))
}

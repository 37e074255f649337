//! Backtests and comparisons that run in the background: their progress, and their results.

use super::report;
use super::visit::{Answer, Tab, Visit, done};
use axum::response::{Html, IntoResponse as _};
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_portal::Fault;
use raingauge_portal::html::jobs::JobPanel;
use serde_json::{Value as Json, json};

/// `GET /campaigns/jobs/{job}`: a page, or with `?part=1` the part of it that changes.
pub async fn page(visit: Visit) -> Answer {
    let name = visit.at("job").to_owned();
    let job = visit.desk.job(&name).ok_or_else(|| {
        let advice = "Results are kept for an hour. Begin it again.";
        Fault::new(axum::http::StatusCode::NOT_FOUND, "There is no such job any more", advice)
    })?;

    let shown = panel(&visit, &name, &job);
    if visit.query.given("part").is_some() {
        return Ok(Html(shown.into_string()).into_response());
    }
    let body = html! {
        div.page-head { h1 #result-title { (title(&job)) } }
        section.card { (shown) }
    };
    Ok(visit.show(Tab::Campaigns, title(&job), &body))
}

/// `POST /campaigns/audit`: replays a campaign for some subjects, and compares.
pub async fn audit(visit: Visit) -> Answer {
    let campaign = visit.form.given("campaign").and_then(|id| id.parse().ok());
    let job = visit.desk.audit(campaign, &visit.person).await?;
    let address = format!("/campaigns/jobs/{job}");
    Ok(done(&address, "campaign.audit", format!("job {job}"), json!({"campaign": campaign})))
}

/// `POST /campaigns/jobs/{job}/end`
pub async fn end(visit: Visit) -> Answer {
    let name = visit.at("job").to_owned();
    visit.desk.end_job(&name)?;
    Ok(done("/campaigns?note=job-ended", "campaign.job_end", format!("job {name}"), json!({})))
}

fn title(job: &Json) -> &'static str {
    match job["kind"].as_str() {
        Some("compare") => "Comparison",
        Some("explain") => "Why not",
        Some("audit") => "Self-audit",
        _ => "Backtest",
    }
}

/// The state of a job, or its result.
pub fn panel(visit: &Visit, name: &str, job: &Json) -> Markup {
    let address = format!("/campaigns/jobs/{name}");
    JobPanel { address: &address, job }.markup(&visit.person, |_| result(visit, job))
}

fn result(visit: &Visit, job: &Json) -> Markup {
    let shows_subjects = visit.person.may(Role::Editor);
    let result = &job["result"];
    match job["kind"].as_str() {
        Some("compare") => report::comparison(result, shows_subjects),
        Some("explain") => super::why::explanation(result),
        Some("backtest") => report::backtest(result, shows_subjects),
        Some("audit") => report::audit(result, shows_subjects),
        _ => html! { pre.data { (serde_json::to_string_pretty(result).unwrap_or_default()) } },
    }
}

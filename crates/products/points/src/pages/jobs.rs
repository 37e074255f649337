//! Forecasts and audits that run in the background: their progress, and their results.

use super::visit::{Answer, Tab, Visit, done};
use super::{audit, forecast};
use axum::response::{Html, IntoResponse as _};
use maud::{Markup, html};
use raingauge_portal::html::jobs::JobPanel;
use serde_json::{Value as Json, json};

/// `GET /points/jobs/{job}`: a page, or with `?part=1` the part of it that changes.
pub async fn page(visit: Visit) -> Answer {
    let job = visit.desk.job(visit.at("job"))?;
    let shown = panel(&visit, &job);
    if visit.query.given("part").is_some() {
        return Ok(Html(shown.into_string()).into_response());
    }

    let is_audit = job["kind"] == "audit";
    let (tab, title) =
        if is_audit { (Tab::Checks, "Audit") } else { (Tab::Programmes, "Forecast") };
    let body = html! {
        div.page-head { h1 { (title) } }
        section.card { (shown) }
    };
    Ok(visit.show(tab, title, &body))
}

/// The state of a job, or its result.
pub fn panel(visit: &Visit, job: &Json) -> Markup {
    let address = format!("/points/jobs/{}", job["id"].as_str().unwrap_or_default());
    JobPanel { address: &address, job }.markup(&visit.person, |result| match job["kind"].as_str() {
        Some("audit") => audit::result(result),
        _ => forecast::result(result),
    })
}

/// `POST /points/jobs/{job}/end`
pub async fn end(visit: Visit) -> Answer {
    let name = visit.at("job").to_owned();
    visit.desk.end_job(&name)?;
    Ok(done("/points?note=job-ended", "job.cancel", format!("job {name}"), json!({})))
}

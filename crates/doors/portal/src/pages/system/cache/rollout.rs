//! Guarded rollouts: starting, watching and stopping them, and their reports.

mod form;
mod view;

pub use form::Form;
pub use view::stages;

use super::{Planned, whole};
use crate::Answer;
use crate::Portal;
use crate::caller::{Caller, Page, Submitted};
use crate::download;
use crate::fault::Fault;
use crate::fields::{Fields, Query};
use crate::html::parts::Column::{Silent, Text};
use crate::html::{layout, parts, words};
use crate::pages::system::overview::Overview;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_operations::rollouts::Error;
use raingauge_people::audit::AuditAction;
use raingauge_policy::rollout::{End, Phase, Plan, Rollout};
use raingauge_ports::rollouts::Run;
use serde_json::{Value as Json, json};

/// Number of rollouts listed.
pub const RUNS_SHOWN: usize = 10;

/// `POST /system/cache/rollouts`
pub async fn begin(caller: Caller, Submitted(fields): Submitted) -> Answer {
    let mut form = Form::sent(&fields);
    if let Ok(plan) = form.plan() {
        match caller
            .portal
            .operations
            .rollouts
            .begin(plan, &caller.person.name, form.reason())
            .await
        {
            Ok(run) => {
                let action = AuditAction::new("rollout.begin", object(&run), summary(&run));
                return Ok((Extension(action), Redirect::to("/system/cache?note=rollout-begun"))
                    .into_response());
            }
            Err(Error::Senseless(refusal)) => form.refuse(refusal),
            Err(error) => return Err(error.into()),
        }
    }

    let current = caller.portal.counters.cache_policy().await?;
    let policy = super::Form::of(&current);
    let planned: Option<&Planned> = None;
    let page = whole(&caller, &Fields::default(), &current, (&policy, planned), &form).await;

    Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
}

/// `POST /system/cache/rollouts/{id}/stop`
pub async fn stop(Caller { portal, person }: Caller, Path(id): Path<u64>) -> Answer {
    let run = portal.operations.rollouts.stop(id, &person.name).await?;
    let action = AuditAction::new("rollout.stop", object(&run), reached(&run.rollout));
    Ok((Extension(action), Redirect::to("/system/cache?note=rollout-stopped")).into_response())
}

/// `POST /system/cache/rollouts/{id}/go-on`
pub async fn go_on(Caller { portal, person }: Caller, Path(id): Path<u64>) -> Answer {
    let run = portal.operations.rollouts.go_on(id, &person.name).await?;
    let action = AuditAction::new("rollout.go_on", object(&run), reached(&run.rollout));
    Ok((Extension(action), Redirect::to("/system/cache?note=rollout-goes-on")).into_response())
}

/// `GET /system/cache/rollouts/{id}`: what the rollout did, and what it measured.
pub async fn report(caller: Caller, Path(id): Path<u64>, Query(fields): Query) -> Page {
    let run = caller.portal.operations.rollouts.rollouts().get(id).await.map_err(Error::from)?;
    let zone = fields.zone();
    let title = format!("Rollout {id}: {}", run.rollout.plan.to.name());
    let body = html! {
        div.page-head {
            h1 { (title) }
            p.quiet { a href="/system/cache" { "Cache" } }
            div.actions { a.button href={ "/system/cache/rollouts/" (id) "/report.json" } { "As JSON" } }
        }
        (view::ending(&run, false))
        section.card aria-labelledby="stages-title" {
            h2 #stages-title { "Stages" }
            (stages("stages-title", &run.rollout, &zone))
        }
        section.card aria-labelledby="plan-title" {
            h2 #plan-title { "Plan" }
            (view::facts(&run, &zone))
        }
    };

    Ok(caller.page(layout::Place::Cache, &title, &body))
}

/// `GET /system/cache/rollouts/{id}/report.json`
pub async fn report_json(State(portal): State<Portal>, Path(id): Path<u64>) -> Answer {
    let Run { started_at, started_by, reason, ended_at, rollout, .. } =
        portal.operations.rollouts.rollouts().get(id).await.map_err(Error::from)?;
    let mut report = json!({
        "id": id, "startedAt": started_at, "startedBy": started_by, "reason": reason,
        "endedAt": ended_at,
    });
    if let (Some(report), Json::Object(rollout)) = (report.as_object_mut(), json!(rollout)) {
        report.extend(rollout);
    }

    let name = format!("rollout-{id}.json");
    Ok(download::file("application/json", &name, format!("{report:#}\n")))
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        use raingauge_ports::rollouts::Error as Kept;
        let advice = format!("{error}.");
        match error {
            Error::Catalog(error) => error.into(),
            Error::Rollouts(Kept::NotFound(_)) => Self::not_found("such rollout"),
            Error::Rollouts(Kept::Unavailable(_)) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "The catalog is out of reach", advice)
            }
            Error::Senseless(_) | Error::Refused(_) | Error::Rollouts(_) => {
                Self::new(StatusCode::CONFLICT, "Not now", advice)
            }
        }
    }
}

fn object(run: &Run) -> String {
    format!("rollout {}", run.id)
}

/// A plan in short, for the audit log.
fn summary(run: &Run) -> Json {
    let Plan { to, shares, canary_s, hold_s, limits } = &run.rollout.plan;
    json!({
        "to": to, "shares": shares, "canaryS": canary_s, "holdS": hold_s, "limits": limits,
        "reason": run.reason,
    })
}

/// How far a rollout had come, for the audit log.
fn reached(rollout: &Rollout) -> Json {
    let last = rollout
        .watched
        .last()
        .map_or_else(|| "nothing".to_owned(), |watched| watched.stage.words());
    json!({ "watched": last })
}

/// The running rollout among the newest ones.
pub fn running_of(runs: &[Run]) -> Option<&Run> {
    runs.first().filter(|run| run.ended_at.is_none())
}

/// The running rollout, or the form that starts one, and the list of ended ones. While a rollout
/// runs, the parts that it changes refresh themselves.
pub fn section(caller: &Caller, overview: &Overview, runs: &[Run], form: &Form) -> Markup {
    let running = running_of(runs);
    let again =
        format!("/system/cache?zone={}", words::step_of_address(words::zone(&overview.zone)));
    let live = running.map(|_| again.as_str());
    let others = live.map(|_| "#note,#by-hand,#effect,#history");

    html! {
        div #rollout.stack hx-get=[live] hx-trigger=[live.map(|_| "every 5s")] hx-select="#rollout"
            hx-select-oob=[others] hx-target="#rollout" hx-swap="outerHTML"
            data-live[live.is_some()] {
            @if let Some(run) = running {
                (view::running(caller, overview, run))
            } @else {
                @if let Some(last) = runs.first() { (view::ending(last, true)) }
                @if caller.person.may(Role::Admin) { (form.markup(&caller.person)) }
            }
            @if runs.iter().any(|run| run.ended_at.is_some()) { (ended(runs, overview)) }
        }
    }
}

fn ended(runs: &[Run], overview: &Overview) -> Markup {
    let columns = [
        Text("Rollout"),
        Text("To"),
        Text("By"),
        Text("Reason"),
        Text("Started"),
        Text("Duration"),
        Text("Result"),
        Silent("Report"),
    ];
    html! {
        section.card aria-labelledby="rollouts-title" {
            h2 #rollouts-title { "Earlier rollouts" }
            (parts::table("rollouts-title", &columns, &html! {
                @for run in runs {
                    @if let (Some(ended_at), Some(end)) = (run.ended_at, run.rollout.end()) {
                        tr {
                            th scope="row" { (run.id) }
                            td { (super::strategy_words(run.rollout.plan.to.name())) }
                            td { (run.started_by) }
                            td.wrap { (run.reason) }
                            td { (parts::moment(run.started_at, &overview.zone)) }
                            td { (words::duration((ended_at - run.started_at) as f64)) }
                            td { (badge(end)) }
                            td { a href={ "/system/cache/rollouts/" (run.id) } { "Report " (run.id) } }
                        }
                    }
                }
            }))
        }
    }
}

/// How a rollout ended, as a badge.
fn badge(end: End) -> Markup {
    let mood = match end {
        End::Finished => "good",
        End::Stopped | End::Overruled | End::Inconclusive => "wait",
        End::Broken | End::Failed => "bad",
    };
    html! { span.state data-state=(mood) { (end.name()) } }
}

/// Why a rollout ended; empty while it runs, and when all stages passed.
fn why(rollout: &Rollout) -> &str {
    match &rollout.phase {
        Phase::Ended { why, .. } => why,
        _ => "",
    }
}

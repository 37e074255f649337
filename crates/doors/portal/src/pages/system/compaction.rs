//! Compaction: running, planned and past runs; administrators start and stop them.

use super::overview::Overview;
use crate::Answer;
use crate::Portal;
use crate::caller::Caller;
use crate::fault::Fault;
use crate::html::parts::Column::{Number, Text};
use crate::html::{parts, words};
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_core::time::format_rfc3339;
use raingauge_operations::maintenance::{
    Compaction, Error, Maintenance, NodeState, Run, Status, Trigger,
};
use raingauge_people::Principal;
use raingauge_people::audit::AuditAction;
use serde_json::{Value as Json, json};

/// Number of ended runs shown.
const RUNS_SHOWN: usize = 5;

/// `POST /system/compaction`
pub async fn start(Caller { portal, person }: Caller) -> Answer {
    let maintenance = of(&portal)?;
    maintenance.compact(&person.name).map_err(refused)?;
    let last = maintenance.status().last.into_iter().next();
    let details = last.map_or_else(|| json!({}), |run| json!({ "last": summary(&run) }));
    let action = AuditAction::new("compaction.begin", "compaction".to_owned(), details);
    Ok((Extension(action), Redirect::to("/system?note=compaction-begun#compaction"))
        .into_response())
}

/// `POST /system/compaction/stop`
pub async fn stop(State(portal): State<Portal>) -> Answer {
    let maintenance = of(&portal)?;
    let running = maintenance.status().running;
    maintenance.stop().map_err(refused)?;
    let details = running.map_or_else(|| json!({}), |run| json!({ "stopped": summary(&run) }));
    let action = AuditAction::new("compaction.stop", "compaction".to_owned(), details);
    Ok((Extension(action), Redirect::to("/system?note=compaction-stopping#compaction"))
        .into_response())
}

/// A run in short, for the audit log.
fn summary(run: &Run) -> Json {
    let result = run.result.map_or("running", |result| result.name());
    let done = done_nodes(run);
    json!({ "began": format_rfc3339(run.started_at), "why": trigger(&run.trigger), "result": result,
        "nodes": format!("{done} of {}", run.nodes.len()) })
}

fn done_nodes(run: &Run) -> usize {
    run.nodes
        .iter()
        .filter(|node| !matches!(node.state, NodeState::Waiting | NodeState::Running))
        .count()
}

fn of(portal: &Portal) -> Result<&Maintenance, Fault> {
    portal.operations.maintenance.as_deref().ok_or_else(|| {
        Fault::new(
            StatusCode::NOT_FOUND,
            "This process compacts nothing",
            "Use a process with the role portal.",
        )
    })
}

fn refused(error: Error) -> Fault {
    Fault::new(StatusCode::CONFLICT, "Not now", format!("{error}."))
}

pub fn section(overview: &Overview, person: &Principal) -> Markup {
    let Some(status) = &overview.compaction else {
        return html! {};
    };
    html! {
        section.card #compaction aria-labelledby="compaction-title" {
            div.card-head {
                h2 #compaction-title { "Compaction" }
                @if person.may(Role::Admin) { (button(person, status.running.is_some())) }
            }
            @if let Some(run) = &status.running { (running(overview, run)) }
            (planned(overview, status))
            @if !status.last.is_empty() { (ended(overview, status)) }
        }
    }
}

fn button(person: &Principal, is_running: bool) -> Markup {
    let (action, label) = if is_running {
        ("/system/compaction/stop", "Stop")
    } else {
        ("/system/compaction", "Compact now")
    };
    html! {
        form.actions method="post" action=(action) {
            (parts::csrf(person))
            button.button.danger[is_running] #compaction-button { (label) }
        }
    }
}

fn running(overview: &Overview, run: &Run) -> Markup {
    html! {
        p {
            "Running since " (parts::moment(run.started_at, &overview.zone)) ", "
            (trigger(&run.trigger)) ": " (done_nodes(run)) " of " (run.nodes.len())
            " nodes are done."
        }
        @for node in run.nodes.iter().filter(|node| node.state == NodeState::Running) {
            (node_progress(node))
        }
    }
}

fn node_progress(node: &Compaction) -> Markup {
    html! {
        @if let Some(progress) = &node.progress {
            label.field {
                span {
                    (node.node) ": " (words::number(progress.done.into())) " of "
                    (words::number(progress.total.into())) " " (progress.unit)
                }
                progress max=(progress.total.max(1)) value=(progress.done) {}
            }
        } @else {
            label.field { span { (node.node) } progress {} }
        }
    }
}

fn trigger(trigger: &Trigger) -> String {
    match trigger {
        Trigger::Schedule(expression) => format!("by the schedule {expression}"),
        Trigger::Request(who) => format!("requested by {who}"),
    }
}

fn planned(overview: &Overview, status: &Status) -> Markup {
    html! {
        @if status.schedules.is_empty() {
            p.quiet {
                "No compaction is scheduled. Set " code { "maintenance.schedule" }
                " in the configuration, for hours with little traffic."
            }
        } @else {
            ul {
                @for upcoming in &status.schedules {
                    li {
                        "Next: " (parts::moment(upcoming.next, &overview.zone))
                        " (" code { (upcoming.expression) } ", " (status.timezone) ")"
                    }
                }
            }
        }
    }
}

fn ended(overview: &Overview, status: &Status) -> Markup {
    parts::table(
        "compaction-title",
        &[Text("Started"), Text("Reason"), Text("Result"), Number("Nodes"), Number("Duration")],
        &html! {
            @for run in status.last.iter().take(RUNS_SHOWN) {
                @let result = run.result.map_or("running", |result| result.name());
                tr {
                    td { (parts::moment(run.started_at, &overview.zone)) }
                    td { (trigger(&run.trigger)) }
                    td.wrap {
                        span.state data-state=(mood(result)) { (result.replace('_', " ")) }
                        @if let Some(detail) = &run.detail { " " (detail) }
                    }
                    td.number { (run.nodes.len()) }
                    td.number { (duration(run)) }
                }
            }
        },
    )
}

fn mood(result: &str) -> &'static str {
    match result {
        "finished" => "good",
        "failed" => "bad",
        _ => "wait",
    }
}

fn duration(run: &Run) -> String {
    let seconds = run.ended_at.map(|ended_at| (ended_at - run.started_at) as f64);
    seconds.map_or_else(|| "–".to_owned(), words::duration)
}

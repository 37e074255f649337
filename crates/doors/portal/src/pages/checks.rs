//! Trust: results of the self-audit, keys that differ, and recounts of any key and range from the
//! log.

mod listing;
mod recount;

pub use recount::{begin as begin_recount, page as recount_page};

use crate::caller::{Caller, Page};
use crate::fault::Fault;
use crate::fields::Query;
use crate::html::parts::ButtonForm;
use crate::html::{layout, notes, parts, words};
use axum::http::{StatusCode, Uri};
use axum::response::Redirect;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_operations::self_audit::{Options, Refusal};
use raingauge_ports::checks::{Outcome, Selection};

/// Checks per page.
const PAGE_LEN: usize = 50;
/// Largest number of differing keys shown.
const DIFFERING_MAX: usize = 100;

/// `GET /checks`
pub async fn page(caller: Caller, Query(fields): Query, uri: Uri) -> Page {
    let portal = &caller.portal;
    let zone = fields.zone();
    let outcome = Outcome::from_name(fields.text("outcome"));
    let selection =
        Selection { outcome, before: fields.text("before").parse().ok(), len_max: PAGE_LEN };
    let checks = portal.operations.self_audit.checks();
    let differing = checks.differing(DIFFERING_MAX).await?;

    let found = checks.list(selection).await?;
    let again = uri.path_and_query().map_or("/checks", |again| again.as_str());
    let is_running = portal.operations.self_audit.running().is_some();
    let body = html! {
        div.page-head { h1 { "Checks" } }
        (notes::shown(&fields))
        p.lead {
            "Every stored count follows from the events in the log. The self-audit counts a sample \
             of keys again from the log and compares bucket by bucket."
        }
        // The part refreshes only while an audit runs.
        (parts::live("checks-live", is_running.then_some((again, "every 2s")), &html! {
            (audit(&caller, &zone))
            @if !differing.is_empty() {
                (listing::differing(&differing, portal.clock.now_s(), &zone))
            }
        }))
        (recount::form(&caller.person, &recount::RecountForm::of(portal, &fields, &zone), &zone))
        (listing::list(&found, selection, &zone))
    };

    Ok(caller.page(layout::Place::Checks, "Checks", &body))
}

/// `POST /checks/now`
pub async fn now(Caller { portal, person }: Caller) -> Result<Redirect, Fault> {
    portal.operations.self_audit.start(&person.name).await?;
    Ok(Redirect::to("/checks?note=audit-begun"))
}

impl From<Refusal> for Fault {
    fn from(refused: Refusal) -> Self {
        Self::new(StatusCode::CONFLICT, "Not now", format!("{}.", capital(&refused.to_string())))
    }
}

fn capital(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn audit(caller: &Caller, zone: &TimeZone) -> Markup {
    let self_audit = &caller.portal.operations.self_audit;
    let running = self_audit.running();
    html! {
        section.card aria-labelledby="audit-title" {
            div.card-head {
                h2 #audit-title { "Self-audit" }
                @if caller.person.may(Role::Editor) && running.is_none() {
                    div.actions { (ButtonForm::new("/checks/now", "Check now").markup(&caller.person)) }
                }
            }
            @if let Some(running) = &running {
                @let (entries, of) = running.progress.entries();
                label.field {
                    span {
                        "Running since " (parts::moment(running.began_s, zone))
                        ", started by " (running.by) ": "
                        (words::number(entries.into())) " of " (words::number(of.into()))
                        " entries of the log"
                    }
                    progress max=(of.max(1)) value=(entries) {}
                }
            } @else {
                @let now_s = caller.portal.clock.now_s();
                p { (schedule(&self_audit.options(), self_audit.next_s(), now_s)) }
            }
        }
    }
}

/// When the next audit runs, and what it checks.
fn schedule(options: &Options, next_s: Option<i64>, now_s: i64) -> Markup {
    let (Some(interval), Some(next_s)) = (options.interval, next_s) else {
        return html! {
            "Audits run on request only: " code { "portal.check_interval_minutes" } " or "
            code { "portal.check_keys" } " is 0."
        };
    };
    let interval = words::duration(interval.as_secs_f64());
    html! {
        "Every " (interval) ", a sample of "
        (words::count_of(options.keys as i128, "key", "keys"))
        " and all keys that differed before. The next audit is due " (due(next_s - now_s)) "."
    }
}

fn due(seconds: i64) -> String {
    if seconds <= 60 {
        "within a minute".to_owned()
    } else {
        format!("in {}", words::duration(seconds as f64))
    }
}

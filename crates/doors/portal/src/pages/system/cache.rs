//! The cache rollout page: which strategy serves which counters, a preview before a policy takes
//! effect, its history, and restoring an earlier version.

mod form;
mod history;
mod preview;
pub mod rollout;

use super::charts;
use super::overview::Overview;
use crate::Answer;
use crate::caller::{Caller, Page, Submitted};
use crate::fault::Fault;
use crate::fields::{Fields, Query};
use crate::html::parts::Mood;
use crate::html::{layout, notes, parts};
use crate::pages::audit_actions;
use axum::extract::Extension;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect};
use form::Form;
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_people::audit::AuditAction;
use raingauge_policy::cache::{Policy, Strategy};
use raingauge_ports::catalog::{Error, VersionedPolicy};

/// Longest reason, in characters.
const REASON_CHARS_MAX: usize = 500;

/// `GET /system/cache`
pub async fn page(caller: Caller, Query(fields): Query) -> Page {
    let current = caller.portal.counters.cache_policy().await?;
    let form = Form::of(&current);
    Ok(whole(&caller, &fields, &current, (&form, None), &rollout::Form::default()).await)
}

/// `POST /system/cache/preview`: shows what a policy would change, and changes nothing.
pub async fn preview(caller: Caller, Submitted(fields): Submitted) -> Page {
    let current = caller.portal.counters.cache_policy().await?;
    let mut form = Form::sent(&fields);
    let planned = form.policy();
    let rollout = rollout::Form::default();
    Ok(whole(&caller, &Fields::default(), &current, (&form, Some(&planned)), &rollout).await)
}

/// `POST /system/cache`
pub async fn set(caller: Caller, Submitted(fields): Submitted) -> Answer {
    let mut form = Form::sent(&fields);
    let planned = form.policy();
    if let (Ok(policy), true) = (&planned, form.problems.is_empty()) {
        match put(&caller, policy.clone(), form.version, form.reason.clone()).await {
            Ok(action) => {
                return Ok((Extension(action), Redirect::to("/system/cache?note=policy-set"))
                    .into_response());
            }
            Err(Error::PolicyMismatch { current }) => {
                form.problems.push((
                    "version",
                    format!(
                        "Someone else has set version {current} since: see the history below. Your \
                         input is kept. Compare it, and set it again if it is still wanted."
                    ),
                ));
                form.version = current;
            }
            Err(error) => return Err(error.into()),
        }
    }

    let current = caller.portal.counters.cache_policy().await?;
    let rollout = rollout::Form::default();
    let page =
        whole(&caller, &Fields::default(), &current, (&form, Some(&planned)), &rollout).await;

    Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
}

/// `POST /system/cache/back`: restores an earlier policy, as a new version.
pub async fn back(caller: Caller, Submitted(fields): Submitted) -> Answer {
    let number = |name: &str| fields.text(name).parse::<u32>().ok();
    let (Some(to), Some(expected)) = (number("to"), number("version")) else {
        return Err(Fault::bad_request(
            "The version is missing",
            "Go back to the page of the cache, and choose a version of its history.",
        ));
    };

    let versions = caller.portal.counters.cache_policies(history::VERSIONS_MAX).await?;

    // Before the first version, every count was read from the store.
    let policy =
        versions.into_iter().find(|version| version.version == to).map(|version| version.policy);
    let policy = match policy {
        Some(policy) => policy,
        None if to == 0 => Policy::default(),
        None => return Err(Fault::not_found("such version of the cache policy")),
    };

    let action = put(&caller, policy, expected, format!("Back to version {to}")).await?;
    Ok((Extension(action), Redirect::to("/system/cache?note=policy-back")).into_response())
}

/// Sets a policy, and returns what it changes for the audit log.
async fn put(
    caller: &Caller,
    policy: Policy,
    expected: u32,
    reason: String,
) -> Result<AuditAction, Error> {
    let portal = &caller.portal;
    let before = portal.counters.cache_policy().await?.policy;
    let set = portal
        .counters
        .set_cache_policy(policy, Some(expected), &caller.person.name, &reason)
        .await?;
    // Other processes follow the catalog; this process applies the policy at once.
    portal.operations.policies.set(&set.policy);
    let counters = portal.list.counters(portal).await.unwrap_or_default();
    let share =
        preview::share(&counters, &portal.operations.watch.instances(), &before, &set.policy);
    Ok(audit_actions::of_policy("cache_policy.replace", &before, &set, &share))
}

/// The policy that was entered, or an error when the form has problems.
type Planned = Result<Policy, ()>;

async fn whole(
    caller: &Caller,
    asked: &Fields,
    current: &VersionedPolicy,
    (form, planned): (&Form, Option<&Planned>),
    rollout: &rollout::Form,
) -> Html<String> {
    let Caller { portal, person } = caller;
    let overview = Overview::look(portal, asked).await;
    let counters = portal.counters.list().await.unwrap_or_default();
    let planned = planned.and_then(|planned| planned.as_ref().ok()).unwrap_or(&current.policy);
    let may = person.may(Role::Admin);
    let runs = portal.operations.rollouts.rollouts().list(rollout::RUNS_SHOWN).await;
    let is_running = runs.as_ref().is_ok_and(|runs| rollout::running_of(runs).is_some());
    let body = html! {
        div.page-head {
            h1 { "Cache" }
        }
        div #note.stack { (notes::shown(asked)) }
        p.lead {
            "One cache strategy answers all requests for a counter. The policy chooses it by \
             arithmetic on the counter's id. Every instance follows a change within seconds."
        }
        @match &runs {
            Ok(runs) => (rollout::section(caller, &overview, runs, rollout)),
            Err(error) => (parts::notice(Mood::Bad, &html! { (error) "." })),
        }
        // While a rollout runs, the policy cannot be edited by hand.
        div #by-hand.columns {
            @if !is_running {
                section.card aria-labelledby="form-title" {
                    h2 #form-title { @if may { "Set a policy" } @else { "The policy" } }
                    @if may {
                        (form.markup(person, &overview))
                    } @else {
                        (history::policy(&current.policy))
                        p.quiet { "An administrator can change it, or start a guarded rollout." }
                    }
                }
                (preview::section(&counters, &overview, &current.policy, planned))
            }
        }
        (charts::effect(&overview, &html! { a href="#history" { "History" } }))
        (history::section(person, &overview))
        (strategies())
    };

    caller.page(layout::Place::Cache, "Cache", &body)
}

fn strategies() -> Markup {
    html! {
        details.card {
            summary { "What the strategies do" }
            dl.facts {
                dt { "none" } dd { "Every count is read from the bucket store." }
                dt { "result" }
                dd {
                    "Sums are cached for five minutes by key and range. At each quarter hour, all \
                     cache keys change, and the store is queried for all of them at once."
                }
                dt { "phased" }
                dd {
                    "Like result, but each key moves on to the next quarter hour at its own time, \
                     within five minutes, which spreads the load. Some answers end one quarter hour \
                     earlier, and say so."
                }
                dt { "live" }
                dd {
                    "Tiles of keys in use stay in memory and follow the writers. Nothing expires \
                     at a quarter hour, and nothing is stale."
                }
            }
        }
    }
}

fn strategy_words(name: &str) -> Markup {
    html! { span.state { (name) } }
}

fn reason_of(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("Say why in a few words, for the history.".to_owned()),
        reason if reason.chars().count() > REASON_CHARS_MAX => {
            Err(format!("At most {REASON_CHARS_MAX} characters."))
        }
        reason => Ok(reason.to_owned()),
    }
}

/// The selection of a strategy.
fn select(id: &str, name: &str, label: &str, chosen: &str) -> Markup {
    html! {
        select id=(id) name=(name) aria-label=(label) {
            @for strategy in Strategy::ALL {
                @let name = strategy.name();
                option value=(name) selected[name == chosen] { (name) }
            }
        }
    }
}

/// The problem of a field, below it.
fn problem(text: Option<&str>) -> Markup {
    html! { @if let Some(text) = text { p.problem { (text) } } }
}

//! Actions on a published counter: pause, resume, archive, roll back, and backfill from the log.

use crate::caller::{Caller, Page, Submitted};
use crate::fault::Fault;
use crate::fields::{Fields, Query};
use crate::html::parts::{self, Mood};
use crate::html::{drafts as words, layout};
use crate::pages::audit_actions;
use crate::{Answer, Portal};
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Redirect};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_core::counter::{self, Counter};
use raingauge_core::limits::TEXT_LEN_MAX;
use raingauge_counters::difference;
use raingauge_people::Principal;
use raingauge_ports::catalog::Versioned;
use raingauge_writer::states::{Progress, progress};
use raingauge_writer::worker::BackfillStatus;

/// How long a finished backfill stays on the counter's page.
const BACKFILL_SHOWN_S: i64 = 3_600;

/// An action, as its pages describe it.
#[derive(Clone, Copy, Debug)]
struct Action {
    /// The last segment of its address.
    name: &'static str,
    /// The code of the note that confirms it.
    note: &'static str,
    title: &'static str,
    what_happens: &'static str,
    /// The state that it gives the counter; `None` where it brings an earlier version back.
    state: Option<counter::State>,
}

const PAUSE: Action = Action {
    name: "pause",
    note: "paused",
    title: "Pause",
    what_happens: "The counter still answers, but counts nothing more. Resuming it does not count \
                   the events that arrive in between; a backfill counts those that the log still \
                   holds.",
    state: Some(counter::State::Paused),
};
const RESUME: Action = Action {
    name: "resume",
    note: "resumed",
    title: "Resume",
    what_happens: "The counter counts again, from the next event on. A backfill counts the events \
                   that it missed, as far back as the log reaches.",
    state: Some(counter::State::Active),
};
const ARCHIVE: Action = Action {
    name: "archive",
    note: "archived",
    title: "Archive",
    what_happens: "The counter neither counts nor answers any more, and other counters may use its \
                   template. Its versions and counts are kept: rolling back to a version restores \
                   it, and purging it frees the space.",
    state: Some(counter::State::Archived),
};
const ROLL_BACK: Action = Action {
    name: "roll-back",
    note: "rolled-back",
    title: "Roll back",
    what_happens: "The configuration of an earlier version becomes the newest one. Existing counts \
                   stay as they are; a backfill counts them again.",
    state: None,
};

/// The action buttons on a counter's page.
pub fn buttons(person: &Principal, counter: &Counter) -> Markup {
    if !person.may(Role::Editor) {
        return html! {};
    }
    let place = |action: &str| format!("/counters/{}/{action}", counter.id);
    let is_archived = counter.state == counter::State::Archived;
    html! {
        div.actions {
            a.button.primary href=(place("edit")) { "Edit" }
            @match counter.state {
                counter::State::Active => a.button href=(place("pause")) { "Pause" },
                counter::State::Paused | counter::State::Draft => {
                    a.button href=(place("resume")) { "Resume" }
                }
                counter::State::Archived => {}
            }
            @if counter.state.answers() { a.button href=(place("backfill")) { "Backfill" } }
            a.button href={ "/counters/new?copy=" (counter.id) } { "Copy" }
            @if !is_archived { a.button.danger href=(place("archive")) { "Archive" } }
            @if person.may(Role::Admin) {
                a.button.danger href=(place("erase")) {
                    @if is_archived { "Purge" } @else { "Erase" }
                }
            }
        }
    }
}

macro_rules! confirmed {
    ($ask:ident, $do:ident, $action:ident) => {
        pub async fn $ask(caller: Caller, Path(id): Path<u32>, Query(fields): Query) -> Page {
            ask(&caller, id, $action, &fields).await
        }

        pub async fn $do(
            caller: Caller,
            Path(id): Path<u32>,
            Submitted(fields): Submitted,
        ) -> Answer {
            act(&caller, id, $action, &fields).await
        }
    };
}

confirmed!(ask_pause, pause, PAUSE);
confirmed!(ask_resume, resume, RESUME);
confirmed!(ask_archive, archive, ARCHIVE);
confirmed!(ask_roll_back, roll_back, ROLL_BACK);

/// The confirmation page, which also asks for the reason.
async fn ask(caller: &Caller, id: u32, action: Action, query: &Fields) -> Page {
    let current = caller.portal.counters.get(id).await?;
    let wanted = wanted(&caller.portal, &current, action, query).await?;
    Ok(confirmation(caller, &current, action, query, &wanted, None))
}

/// Returns the counter as it will be after the action.
async fn wanted(
    portal: &Portal,
    current: &Versioned,
    action: Action,
    fields: &Fields,
) -> Result<Counter, Fault> {
    if let Some(state) = action.state {
        return Ok(Counter { state, ..current.counter.clone() });
    }
    let Ok(version) = fields.text("version").parse() else {
        let advice = "Choose one on the page of the counter's versions.";
        return Err(Fault::bad_request("The version to roll back to is missing", advice));
    };
    Ok(portal.counters.at_version(current.counter.id, version).await?.counter)
}

fn confirmation(
    caller: &Caller,
    current: &Versioned,
    action: Action,
    fields: &Fields,
    wanted: &Counter,
    problem: Option<&str>,
) -> Html<String> {
    let Versioned { counter, version, .. } = current;
    let earlier = action.state.is_none().then(|| fields.text("version"));
    let to = earlier.map(|version| format!(" to version {version}")).unwrap_or_default();
    let title = format!("{} {}{to}", action.title, counter.name);

    let hint = "It is kept in the history of the counter.";
    let reason = parts::Field { name: "reason", label: "Reason", hint, problem };
    let changed = difference::between(counter, wanted);
    let is_grave = action.state == Some(counter::State::Archived);

    let body = html! {
        div.page-head { h1 { (title) } (parts::state(counter.state)) }
        section.card {
            form.form method="post" action={ "/counters/" (counter.id) "/" (action.name) } {
                (parts::csrf(&caller.person))
                input type="hidden" name="base" value=(version);
                @if let Some(version) = earlier {
                    input type="hidden" name="version" value=(version);
                }
                p { (action.what_happens) }
                (words::changes(&changed, "now", "then"))
                (reason.text_area(fields.text("reason"), TEXT_LEN_MAX))
                div.actions {
                    @if !changed.is_empty() {
                        button.button.primary[!is_grave].danger[is_grave] type="submit" {
                            (action.title)
                        }
                    }
                    a.button href={ "/counters/" (counter.id) } { "Cancel" }
                }
            }
        }
    };
    caller.page(layout::Place::Counters, &title, &body)
}

async fn act(caller: &Caller, id: u32, action: Action, fields: &Fields) -> Answer {
    let portal = &caller.portal;
    let current = portal.counters.get(id).await?;
    let wanted = wanted(portal, &current, action, fields).await?;
    if !fields.pairs().iter().any(|(name, _)| name == "reason") {
        // The button is on a page that does not ask for the reason itself.
        return Ok(confirmation(caller, &current, action, fields, &wanted, None).into_response());
    }

    let reason = fields.text("reason").replace("\r\n", "\n");
    let problem = problem_of_reason(&reason);
    if problem.is_some() {
        let page = confirmation(caller, &current, action, fields, &wanted, problem);
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    }

    // The person confirmed the version they saw. If the counter has changed since, they must look
    // at it again.
    let expected = fields.text("base").parse().unwrap_or(0);
    let replaced =
        portal.counters.replace(wanted, Some(expected), &caller.person.name, &reason).await?;
    let deed = audit_actions::of_counter(action.name, &current.counter, &replaced);

    Ok((Extension(deed), Redirect::to(&format!("/counters/{id}?note={}", action.note)))
        .into_response())
}

/// The problem of a reason for a change, if it has one.
pub fn problem_of_reason(reason: &str) -> Option<&'static str> {
    match reason.len() {
        0 => Some("must say why, in a few words"),
        1..=TEXT_LEN_MAX => None,
        _ => Some("is too long: it may have at most 2,000 bytes"),
    }
}

/// `POST /counters/{id}/backfill`
pub async fn start_backfill(
    State(portal): State<Portal>,
    Path(id): Path<u32>,
) -> Result<Redirect, Fault> {
    let counter = portal.counters.get(id).await?.counter;
    if !counter.state.answers() {
        let advice = "Resume it first: only counters that answer are counted again.";
        return Err(Fault::new(StatusCode::CONFLICT, "This counter does not answer", advice));
    }
    portal.counters.backfill(id).await?;
    Ok(Redirect::to(&format!("/counters/{id}/backfill")))
}

/// `GET /counters/{id}/backfill`: the progress; a script gets only this part of the page.
pub async fn backfill(caller: Caller, Path(id): Path<u32>, headers: HeaderMap) -> Page {
    let counter = caller.portal.counters.get(id).await?.counter;
    let part = backfill_part(&caller, &counter);
    if headers.contains_key("hx-request") {
        return Ok(Html(part.into_string()));
    }

    let title = format!("Backfill of {}", counter.name);
    let body = html! {
        div.page-head {
            h1 { (title) }
            div.actions { a.button href={ "/counters/" (id) } { "Show the counter" } }
        }
        section.card {
            p {
                "A backfill counts everything that the log still holds again, with the current \
                 configuration. Queries return the previous counts until it has caught up."
            }
            (part)
        }
    };
    Ok(caller.page(layout::Place::Counters, &title, &body))
}

/// The newest backfill, for the counter's page: shown while it runs and for a while after its end.
/// The lookup reads memory only, so it costs the page of a counter without a backfill next to
/// nothing.
pub fn backfill_card(caller: &Caller, counter: &Counter) -> Markup {
    let portal = &caller.portal;
    let found = progress(&*portal.counted.states, &portal.counted.published, counter.id);
    let shown_since_s = portal.clock.now_s() - BACKFILL_SHOWN_S;
    let is_shown = |found: &Progress| runs(found) || found.backfill.ended_at > shown_since_s;
    html! {
        @if found.as_ref().is_some_and(is_shown) {
            section.card aria-labelledby="backfill-title" {
                h2 #backfill-title { "Backfill" }
                (backfill_part(caller, counter))
            }
        }
    }
}

fn runs(found: &Progress) -> bool {
    found.backfill.status == BackfillStatus::Running
}

/// The newest backfill of a counter, which refreshes itself while it runs, and the button that
/// starts one.
fn backfill_part(caller: &Caller, counter: &Counter) -> Markup {
    let portal = &caller.portal;
    let found = progress(&*portal.counted.states, &portal.counted.published, counter.id);
    let runs = found.as_ref().is_some_and(runs);
    let address = format!("/counters/{}/backfill", counter.id);

    html! {
        div.backfill #backfill hx-get=[runs.then_some(&address)]
            hx-trigger=[runs.then_some("every 1s")] hx-swap=[runs.then_some("outerHTML")] {
            @match &found {
                None => { p.quiet { "There has been no backfill of this counter." } }
                Some(found) => (progress_part(found, portal.clock.now_s())),
            }
            @if runs {
                noscript { p { a href=(address) { "Show the progress" } } }
            } @else if caller.person.may(Role::Editor) && counter.state.answers() {
                (parts::ButtonForm::new(&address, "Start a backfill").class("primary").markup(&caller.person))
            }
        }
    }
}

fn progress_part(found: &Progress, now_s: i64) -> Markup {
    let percent = (found.share * 100.0).clamp(0.0, 100.0).floor() as u32;
    let counted = parts::number(found.backfill.counted.into());
    let when = |ended_at: i64| {
        if ended_at > 0 { format!(" {}", parts::ago(now_s - ended_at)) } else { String::new() }
    };

    html! {
        @match found.backfill.status {
            BackfillStatus::Running => {
                label.quiet for="backfill-progress" {
                    "Counting the log again: " (percent) " %, " (counted) " events so far"
                }
                progress id="backfill-progress" max="100" value=(percent) { (percent) " %" }
            }
            BackfillStatus::Finished => {
                (parts::notice(Mood::Good, &html! {
                    "The newest backfill ended" (when(found.backfill.ended_at)) ": " (counted) " events were counted again."
                }))
            }
            BackfillStatus::Cancelled => {
                (parts::notice(Mood::Wait, &html! {
                    "The newest backfill was cancelled" (when(found.backfill.ended_at)) ": "
                    (found.backfill.reason) ". Start it again."
                }))
            }
        }
        @if found.backfill.after_s > 0 {
            p.quiet {
                "It covers events from " (parts::moment(found.backfill.after_s, &TimeZone::UTC))
                " UTC on: earlier ones are no longer in the log."
            }
        }
    }
}

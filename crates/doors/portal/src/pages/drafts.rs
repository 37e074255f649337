//! Drafts: what is proposed, who reviews it, and how it takes effect.

mod decisions;

pub use decisions::{apply, approve, reject, submit, withdraw};

use crate::Portal;
use crate::caller::{Caller, Page};
use crate::fault::Fault;
use crate::fields::Query;
use crate::html::parts::Column::{self, Text};
use crate::html::parts::{self, ButtonForm, Mood};
use crate::html::words::count_of;
use crate::html::{drafts as words, layout, notes, trial};
use axum::extract::Path;
use axum::response::Html;
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_core::counter::Counter;
use raingauge_core::limits::TEXT_LEN_MAX;
use raingauge_counters::documents::{CounterKind, Document};
use raingauge_counters::drafts::{self as workflow, Actor, NotSecond, OPEN_MAX};
use raingauge_people::Principal;
use raingauge_ports::drafts::{self, Draft};

/// Number of ended drafts listed.
const ENDED_MAX: u32 = 50;

const COLUMNS: [Column<'_>; 5] =
    [Text("Draft"), Text("State"), Text("Author"), Text("Reason"), Text("Changed")];

/// `GET /drafts`
pub async fn list(caller: Caller) -> Page {
    let portal = &caller.portal;
    let mut open = portal.drafts.list(true, OPEN_MAX).await?;
    let mut ended = portal.drafts.list(false, ENDED_MAX).await?;
    for drafts in [&mut open, &mut ended] {
        drafts.retain(|draft| may_see(&caller, draft));
    }
    let body = html! {
        div.page-head {
            h1 { "Drafts" }
            @if caller.person.may(Role::Editor) {
                div.actions { a.button.primary href="/counters/new" { "New counter" } }
            }
        }
        @if open.is_empty() {
            (parts::empty("No drafts", &html! {
                "No change is proposed at the moment. A new counter, and every edit of one, starts \
                 as a draft."
            }))
        } @else {
            (table("open-head", "Open", &open, portal.clock.now_s()))
        }
        @if !ended.is_empty() { (table("ended-head", "Ended", &ended, portal.clock.now_s())) }
    };

    Ok(caller.page(layout::Place::Drafts, "Drafts", &body))
}

fn table(id: &str, title: &str, drafts: &[Draft], now_s: i64) -> Markup {
    html! {
        section.card aria-labelledby=(id) {
            h2 id=(id) { (title) }
            (parts::table(id, &COLUMNS, &html! {
                @for draft in drafts {
                    tr {
                        td.wrap { a href={ "/drafts/" (draft.id) } { (words::title(draft)) } }
                        td { (words::state(draft.state)) }
                        td { (draft.author) }
                        td.wrap { (draft.reason) }
                        td { (parts::ago(now_s - draft.changed_at)) }
                    }
                }
            }))
        }
    }
}

/// How many drafts wait for a reviewer, for the list of counters.
pub async fn hint(portal: &Portal) -> Result<Markup, Fault> {
    let open = portal.drafts.list(true, OPEN_MAX).await?;
    let waiting = open.iter().filter(|draft| draft.state == drafts::State::Review).count();
    let others = open.len() - waiting;

    Ok(html! {
        @if waiting > 0 {
            (parts::notice(Mood::Wait, &html! {
                a href="/drafts" {
                    (count_of(waiting as i128, "draft waits", "drafts wait")) " for a review"
                }
                @if others > 0 {
                    ", and " (count_of(others as i128, "more is", "more are")) " being written"
                }
                "."
            }))
        } @else if others > 0 {
            p.quiet {
                a href="/drafts" { (count_of(others as i128, "draft", "drafts")) }
                " being written."
            }
        }
    })
}

fn may_see(caller: &Caller, draft: &Draft) -> bool {
    caller.person.may(caller.portal.drafts.reader_of(&draft.kind))
}

/// A draft of a kind that the person may see.
async fn seen(caller: &Caller, id: u64) -> Result<Draft, Fault> {
    let draft = caller.portal.drafts.get(id).await?;
    if may_see(caller, &draft) { Ok(draft) } else { Err(Fault::not_found("such draft")) }
}

/// `GET /drafts/{id}`
pub async fn one(caller: Caller, Path(id): Path<u64>, Query(fields): Query) -> Page {
    let draft = seen(&caller, id).await?;
    let shown = match fields.given("preview") {
        Some(_) => trial_of(&caller, &draft).await?,
        None => html! {
            p { a.button href={ "/drafts/" (id) "?preview=1" } { "Try it on recent events" } }
        },
    };
    page(&caller, &draft, &notes::shown(&fields), &shown).await
}

/// `GET /drafts/{id}/preview`: the trial of a draft, for its page.
pub async fn preview(caller: Caller, Path(id): Path<u64>) -> Page {
    let draft = seen(&caller, id).await?;
    Ok(Html(trial_of(&caller, &draft).await?.into_string()))
}

async fn trial_of(caller: &Caller, draft: &Draft) -> Result<Markup, Fault> {
    let Some(counter) = counter_of(draft)? else {
        return Err(Fault::not_found("trial of this kind of document"));
    };
    let base = if draft.is_new() {
        None
    } else {
        Some(caller.portal.counters.at_version(counter.id, draft.base_version).await?.counter)
    };
    let trial = caller.portal.try_out(&caller.person, counter.clone(), base).await?;
    Ok(trial::trial(&trial, &counter))
}

/// The person as an actor of the draft workflow.
pub(super) fn actor(person: &Principal) -> Actor<'_> {
    Actor::person(&person.name)
}

/// The counter that a draft proposes; `None` for another kind of document.
pub(super) fn counter_of(draft: &Draft) -> Result<Option<Counter>, Fault> {
    if draft.kind != CounterKind::NAME {
        return Ok(None);
    }
    Ok(Some(CounterKind::parse(&draft.configuration)?))
}

async fn page(caller: &Caller, draft: &Draft, note: &Markup, shown: &Markup) -> Page {
    let Caller { portal, person } = caller;
    let counter = counter_of(draft)?;
    let standing = portal.drafts.standing(draft).await?;
    let second = match portal.drafts.check_second(actor(person), draft).await {
        Ok(()) => None,
        Err(workflow::Error::NotSecond(reason)) => Some(reason),
        Err(error) => return Err(error.into()),
    };

    let conflict = standing.conflict().filter(|_| draft.state.is_open());
    let may_edit = draft.state.is_open() && person.may(Role::Editor);
    let title = words::title(draft);
    let body = html! {
        div.page-head {
            h1 { (title) }
            (words::state(draft.state))
            @if counter.is_some() {
                div.actions {
                    @if may_edit { a.button href={ "/drafts/" (draft.id) "/edit" } { "Edit" } }
                    @if !draft.is_new() || draft.applied_version > 0 {
                        a.button href={ "/counters/" (draft.document_id()) } { "Show the counter" }
                    }
                }
            }
        }
        (note)
        (history(draft, portal.clock.now_s()))
        @if let (Some((base, theirs)), Some(mine)) = (conflict, &counter) {
            @let base = CounterKind::parse(&base.configuration)?;
            (words::three_ways(draft, mine, &base, theirs, &ways_out(person, draft))?)
        }
        (change(portal, draft, counter.as_ref(), standing.base.as_ref())?)
        @if may_edit && conflict.is_none() { (decisions(caller, draft, second.as_ref())) }
        @if counter.is_some() {
            section.card aria-labelledby="trial-head" {
                h2 #trial-head { "On recent events" }
                div #trial hx-get={ "/drafts/" (draft.id) "/preview" } hx-trigger="load"
                    hx-swap="innerHTML" aria-live="polite" { (shown) }
            }
        }
    };

    Ok(caller.page(layout::Place::Drafts, &title, &body))
}

/// The changes of a draft; for a new document, its content.
fn change(
    portal: &Portal,
    draft: &Draft,
    counter: Option<&Counter>,
    base: Option<&Document>,
) -> Result<Markup, Fault> {
    let proposed = &draft.configuration;
    let changed = match base {
        Some(base) => {
            Some(portal.drafts.differences(&draft.kind, &base.configuration, proposed)?)
        }
        None => None,
    };

    Ok(html! {
        section.card aria-labelledby="change-head" {
            @match (&changed, counter) {
                (Some(changed), _) => {
                    h2 #change-head { "What changes" }
                    (words::changes(changed, &format!("version {}", draft.base_version), "this draft"))
                }
                (None, Some(counter)) => {
                    h2 #change-head { "What it counts" }
                    (words::configuration(counter))
                    @if counter.id > 0 { p.quiet { "Its id is " (counter.id) "." } }
                }
                (None, None) => {
                    h2 #change-head { "The configuration" }
                    pre { (serde_json::to_string_pretty(proposed).unwrap_or_default()) }
                }
            }
        }
    })
}

/// The author, and the comments of the reviewers.
fn history(draft: &Draft, now_s: i64) -> Markup {
    html! {
        p.quiet {
            "By " strong { (draft.author) } ", " (parts::ago(now_s - draft.created_at)) "."
            @if let [_, others @ ..] = draft.writers().as_slice() && !others.is_empty() {
                " Edited by " strong { (others.join(", ")) } "."
            }
            @if !draft.reason.is_empty() { " Reason: " q { (draft.reason) } "." }
            @if !draft.reviewer.is_empty() {
                " " (draft.reviewer)
                @if draft.state == drafts::State::Rejected { " sent it back" } @else { " approved it" }
                @if !draft.comment.is_empty() { ": " q { (draft.comment) } }
                "."
            }
            @if draft.applied_version > 0 { " It became version " (draft.applied_version) " of the " (draft.kind) "." }
        }
    }
}

/// The remaining options when another change was published first.
fn ways_out(person: &Principal, draft: &Draft) -> Markup {
    if !person.may(Role::Editor) {
        return html! {};
    }
    html! {
        div.actions {
            a.button.primary href={ "/drafts/" (draft.id) "/edit?on_top=1" } {
                "Put mine on top of theirs"
            }
            a.button href={ "/drafts/" (draft.id) "/edit" } { "Continue editing mine" }
            (withdrawal(person, draft, "Take theirs: withdraw this draft", ""))
        }
        p.quiet {
            "On top of theirs, a field that one of you changed keeps that change; where both \
             changed it, yours is kept."
        }
    }
}

/// Hidden fields of every form about a draft. They tie a decision to the revision that the person
/// saw.
fn own(person: &Principal, draft: &Draft) -> Markup {
    html! { (parts::csrf(person)) input type="hidden" name="revision" value=(draft.revision); }
}

fn withdrawal(person: &Principal, draft: &Draft, label: &str, class: &str) -> Markup {
    let address = format!("/drafts/{}/withdraw", draft.id);
    let revision = draft.revision.to_string();
    let fields = [("revision", revision.as_str())];
    ButtonForm::new(&address, label).class(class).with(&fields).markup(person)
}

/// The possible decisions about a draft. `no_second` says why this person cannot approve it.
fn decisions(caller: &Caller, draft: &Draft, no_second: Option<&NotSecond>) -> Markup {
    let person = &caller.person;
    let in_review = draft.state == drafts::State::Review;
    let needs_approval = caller.portal.drafts.needs_approval();
    let text = |label, name, hint, value: &str| {
        parts::Field { name, label, hint, problem: None }.text_area(value, TEXT_LEN_MAX)
    };
    let comment = "Shown beside the reason in the history. Required to send the draft back.";
    let reason = "Why this change is wanted. It is kept with the change.";

    let action = |what: &str| format!("/drafts/{}/{what}", draft.id);
    html! {
        section.card aria-labelledby="next-head" {
            h2 #next-head { "Next step" }
            @if in_review && (no_second.is_none() || !needs_approval) {
                form.form method="post" action=(action("approve")) {
                    (own(person, draft))
                    (text("Comment", "comment", comment, ""))
                    div.actions {
                        button.button.primary type="submit" { "Approve and apply" }
                        button.button type="submit" formaction=(action("reject")) { "Send back" }
                    }
                }
            } @else if in_review {
                p {
                    "The draft waits for a second person: an editor or administrator who wrote no \
                     part of it."
                }
                @if let Some(reason @ NotSecond::MaybeContributor(_)) = no_second { p { (reason) } }
            } @else {
                @let first = if needs_approval { "send" } else { "apply" };
                form.form method="post" action=(action(first)) {
                    (own(person, draft))
                    (text("Reason", "reason", reason, &draft.reason))
                    div.actions {
                        @if !needs_approval {
                            button.button.primary type="submit" { "Apply the draft" }
                        }
                        button.button.primary[needs_approval] type="submit"
                            formaction=(action("send")) { "Send to review" }
                    }
                }
                @if needs_approval {
                    p.quiet { "A second person has to approve it before it takes effect." }
                }
            }
            div.withdraw { (withdrawal(person, draft, "Withdraw the draft", "danger")) }
        }
    }
}

//! Erasing the counts of a counter, for one key or for all of them, and purging an archived
//! counter.

use crate::Answer;
use crate::caller::{Caller, Page, Submitted};
use crate::fields::{Fields, Query};
use crate::html::layout;
use crate::html::parts::{self, Mood};
use crate::largest;
use crate::pages::actions::problem_of_reason;
use axum::extract::{Extension, Path};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use maud::{Markup, html};
use raingauge_core::counter::{Counter, State as Life};
use raingauge_core::limits::TEXT_LEN_MAX;
use raingauge_counters as counters;
use raingauge_people::Principal;
use raingauge_people::audit::AuditAction;
use serde_json::{Value as Json, json};

/// The submitted form, and its problem.
#[derive(Default)]
struct ErasureForm {
    key: String,
    name: String,
    /// The reasons in the form for one key and in the form for all keys.
    reasons: [String; 2],
    problem: Option<(Place, &'static str)>,
}

/// The field that a problem concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Key,
    KeyReason,
    Name,
    Reason,
}

impl ErasureForm {
    fn problem_of(&self, place: Place) -> Option<&'static str> {
        self.problem.filter(|(of, _)| *of == place).map(|(_, problem)| problem)
    }
}

/// `GET /counters/{id}/erase`
pub async fn ask(caller: Caller, Path(id): Path<u32>, Query(query): Query) -> Page {
    let counter = caller.portal.counters.get(id).await?.counter;
    let typed = ErasureForm { key: query.text("key").to_owned(), ..ErasureForm::default() };
    Ok(page(&caller, &counter, &typed).await)
}

/// `POST /counters/{id}/erase-key`
pub async fn erase_key(
    caller: Caller,
    Path(id): Path<u32>,
    Submitted(fields): Submitted,
) -> Answer {
    let counter = caller.portal.counters.get(id).await?.counter;
    let key = fields.exact("key").to_owned();
    let reason = fields.text("key-reason").to_owned();
    let refuse = async |place, problem| {
        let key = key.clone();
        let reasons = [reason.clone(), String::new()];
        let typed =
            ErasureForm { key, reasons, problem: Some((place, problem)), ..ErasureForm::default() };

        (StatusCode::UNPROCESSABLE_ENTITY, page(&caller, &counter, &typed).await).into_response()
    };

    if let Some(problem) = problem_of_reason(&reason) {
        return Ok(refuse(Place::KeyReason, problem).await);
    }

    match caller.portal.counters.erase(id, &key).await {
        Err(counters::Error::KeyOfAnother { .. }) => {
            return Ok(refuse(
                Place::Key,
                "is no key of this counter: its template renders others",
            )
            .await);
        }
        erased => erased?,
    }

    Ok(done("counter.erase_key", id, json!({ "key": key, "reason": reason }), "key-erased"))
}

/// `POST /counters/{id}/erase`
pub async fn erase(caller: Caller, Path(id): Path<u32>, Submitted(fields): Submitted) -> Answer {
    erase_all(&caller, id, &fields, false).await
}

/// `POST /counters/{id}/purge`
pub async fn purge(caller: Caller, Path(id): Path<u32>, Submitted(fields): Submitted) -> Answer {
    erase_all(&caller, id, &fields, true).await
}

/// Erases all counts of a counter, after the person has typed its name. Only archived counters can
/// be purged.
async fn erase_all(caller: &Caller, id: u32, fields: &Fields, is_purge: bool) -> Answer {
    let portal = &caller.portal;
    let counter = portal.counters.get(id).await?.counter;
    let name = fields.text("name").to_owned();
    let reason = fields.text("reason").to_owned();
    let problem = match problem_of_reason(&reason) {
        _ if name.trim() != counter.name.trim() => {
            Some((Place::Name, "is not the name of this counter"))
        }
        problem => problem.map(|problem| (Place::Reason, problem)),
    };

    if problem.is_some() {
        let typed = ErasureForm {
            name,
            reasons: [String::new(), reason],
            problem,
            ..ErasureForm::default()
        };
        let page = page(caller, &counter, &typed).await;
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    }

    let details = json!({ "name": counter.name, "reason": reason });
    if is_purge {
        portal.counters.purge(id).await?;
        return Ok(done("counter.purge", id, details, "purged"));
    }

    portal.counters.erase_all(id).await?;
    Ok(done("counter.erase", id, details, "erased"))
}

/// Redirects to the counter, with an entry for the audit log.
fn done(verb: &'static str, id: u32, details: Json, note: &str) -> Response {
    let action = AuditAction::new(verb, format!("counter {id}"), details);
    (Extension(action), Redirect::to(&format!("/counters/{id}?note={note}"))).into_response()
}

async fn page(caller: &Caller, counter: &Counter, typed: &ErasureForm) -> Html<String> {
    let person = &caller.person;
    let is_archived = counter.state == Life::Archived;
    let title = if is_archived {
        format!("Purge {}", counter.name)
    } else {
        format!("Erase counts of {}", counter.name)
    };

    let choices =
        largest::keys(&caller.portal, counter.id, 0, caller.portal.end_of_today_s()).await;
    let choices: Vec<&str> = choices.keys().iter().map(|key| key.key.as_str()).collect();
    let body = html! {
        div.page-head {
            h1 { (title) }
            (parts::state(counter.state))
            div.actions { a.button href={ "/counters/" (counter.id) } { "Show the counter" } }
        }
        (parts::notice(Mood::Wait, &html! {
            "Erased counts are gone for good: no backfill restores them. The events stay in the \
             log until its retention ends, and in backups."
        }))
        @if is_archived {
            (whole(person, counter, typed, is_archived))
        } @else {
            (one_key(person, counter, typed, &choices))
            (whole(person, counter, typed, is_archived))
        }
    };

    caller.page(layout::Place::Counters, &title, &body)
}

fn one_key(person: &Principal, counter: &Counter, typed: &ErasureForm, choices: &[&str]) -> Markup {
    let problem = typed.problem_of(Place::Key);
    let key = parts::Field {
        name: "key",
        label: "Key",
        hint: "The whole key, as it appears in answers.",
        problem,
    };

    html! {
        section.card aria-labelledby="one-key-title" {
            h2 id="one-key-title" { "One key" }
            form.form method="post" action={ "/counters/" (counter.id) "/erase-key" } {
                (parts::csrf(person))
                p {
                    "Erases all counts of one key. Later events of the key are counted again, \
                     starting from zero."
                }
                (key.around(&html! {
                    input.mono type="text" id="key" name="key" value=(typed.key) list="key-choices"
                        autocomplete="off" spellcheck="false" required
                        placeholder=(counter.template) aria-describedby="key-words"
                        aria-invalid=[problem.map(|_| "true")];
                    datalist id="key-choices" { @for choice in choices { option value=(choice) {} } }
                }))
                (reason("key-reason", &typed.reasons[0], typed.problem_of(Place::KeyReason)))
                div.actions { button.button.danger type="submit" { "Erase the key" } }
            }
        }
    }
}

fn whole(person: &Principal, counter: &Counter, typed: &ErasureForm, is_archived: bool) -> Markup {
    let problem = typed.problem_of(Place::Name);
    let name = parts::Field {
        name: "name",
        label: "Name of the counter",
        hint: "To confirm that this is the right one.",
        problem,
    };

    let (action, button) =
        if is_archived { ("purge", "Purge") } else { ("erase", "Erase every count") };
    html! {
        section.card aria-labelledby="whole-title" {
            h2 id="whole-title" { @if is_archived { "All counts" } @else { "Every key" } }
            form.form method="post" action={ "/counters/" (counter.id) "/" (action) } {
                (parts::csrf(person))
                @if is_archived {
                    p {
                        "The archived counter still keeps its counts, so that it can be restored. \
                         Purging erases all of its counts; the space is freed in the background, \
                         starting about two minutes later. Its versions stay, and if it is \
                         restored, it starts from zero."
                    }
                } @else {
                    p {
                        "Erases all counts of all keys. The counter continues from zero, and a \
                         running backfill is cancelled. The space is freed in the background, \
                         starting about two minutes later."
                    }
                }
                (name.text(&typed.name))
                (reason("reason", &typed.reasons[1], typed.problem_of(Place::Reason)))
                div.actions {
                    button.button.danger type="submit" { (button) }
                    a.button href={ "/counters/" (counter.id) } { "Cancel" }
                }
            }
        }
    }
}

fn reason(name: &str, typed: &str, problem: Option<&'static str>) -> Markup {
    let hint = "It is kept in the audit log.";
    parts::Field { name, label: "Reason", hint, problem }.text_area(typed, TEXT_LEN_MAX)
}

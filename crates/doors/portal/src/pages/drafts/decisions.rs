//! What is decided about a draft, and how it takes effect.

use crate::Portal;
use crate::fault::Fault;
use crate::fields::Fields;
use crate::guard::NoChange;
use crate::pages::deeds;
use crate::pages::edit::version_of;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use raingauge_core::limits::{REASON_LEN_MAX, TEXT_LEN_MAX};
use raingauge_counters as counters;
use raingauge_people::NotSecond;
use raingauge_people::Principal;
use raingauge_ports::catalog::{self, Versioned};
use raingauge_ports::drafts::{self, Draft};
use serde_json::json;

/// What a form about a draft asks: the draft as it was seen, and what was typed.
struct Asked {
    draft: Draft,
    text: String,
}

/// Reads a form about a draft; the answer, when nothing can be done.
async fn asked(
    portal: &Portal,
    id: u64,
    fields: &Fields,
    name: &str,
    is_needed: bool,
) -> Result<Asked, Refused> {
    let draft = portal.drafts.get(id).await?;
    let text = fields.text(name).replace("\r\n", "\n");
    if fields.text("revision") != draft.revision.to_string() || !draft.state.is_open() {
        return Err(Refused::changed(id));
    }
    if is_needed && text.is_empty() {
        return Err(Refused::Back {
            id,
            code: "reason-missing",
            status: StatusCode::UNPROCESSABLE_ENTITY,
        });
    }
    if text.len() > TEXT_LEN_MAX {
        return Err(Refused::Back {
            id,
            code: "reason-long",
            status: StatusCode::UNPROCESSABLE_ENTITY,
        });
    }
    Ok(Asked { draft, text })
}

/// Why nothing was done.
enum Refused {
    /// The page of the draft says why.
    Back {
        id: u64,
        code: &'static str,
        status: StatusCode,
    },
    Fault(Fault),
}

impl<E: Into<Fault>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Fault(error.into())
    }
}

impl Refused {
    fn changed(id: u64) -> Self {
        Self::Back { id, code: "draft-changed", status: StatusCode::CONFLICT }
    }

    fn answer(self) -> Result<Response, Fault> {
        match self {
            Self::Back { id, code, status } => {
                Ok((Extension(NoChange(status)), to(id, code)).into_response())
            }
            Self::Fault(fault) => Err(fault),
        }
    }
}

/// The page of a draft, with a sentence on top.
fn to(id: u64, code: &str) -> Redirect {
    Redirect::to(&format!("/drafts/{id}?note={code}"))
}

/// `POST /drafts/{id}/send`
pub async fn send(
    State(portal): State<Portal>,
    Path(id): Path<u64>,
    Extension(fields): Extension<Fields>,
) -> Result<Response, Fault> {
    let sent = async {
        let Asked { draft, text } = asked(&portal, id, &fields, "reason", true).await?;
        let sent = Draft {
            state: drafts::State::Review,
            reason: text,
            reviewer: String::new(),
            comment: String::new(),
            changed_at: portal.clock.now_s(),
            ..draft
        };
        keep(&portal, "draft.send", sent, "draft-sent").await
    };
    sent.await.or_else(Refused::answer)
}

/// `POST /drafts/{id}/reject`
pub async fn reject(
    State(portal): State<Portal>,
    Extension(person): Extension<Principal>,
    Path(id): Path<u64>,
    Extension(fields): Extension<Fields>,
) -> Result<Response, Fault> {
    let rejected = async {
        let Asked { draft, text } = asked(&portal, id, &fields, "comment", true).await?;
        in_review(&draft)?;
        let rejected = Draft {
            state: drafts::State::Rejected,
            reviewer: person.name.to_string(),
            comment: text,
            changed_at: portal.clock.now_s(),
            ..draft
        };
        keep(&portal, "draft.reject", rejected, "draft-rejected").await
    };
    rejected.await.or_else(Refused::answer)
}

/// `POST /drafts/{id}/withdraw`
pub async fn withdraw(
    State(portal): State<Portal>,
    Path(id): Path<u64>,
    Extension(fields): Extension<Fields>,
) -> Result<Response, Fault> {
    let withdrawn = async {
        let Asked { draft, .. } = asked(&portal, id, &fields, "comment", false).await?;
        let changed_at = portal.clock.now_s();
        let withdrawn = Draft { state: drafts::State::Withdrawn, changed_at, ..draft };
        keep(&portal, "draft.withdraw", withdrawn, "draft-withdrawn").await
    };
    withdrawn.await.or_else(Refused::answer)
}

/// `POST /drafts/{id}/approve`: by a second person, where the portal asks for one.
pub async fn approve(
    State(portal): State<Portal>,
    Extension(person): Extension<Principal>,
    Path(id): Path<u64>,
    Extension(fields): Extension<Fields>,
) -> Result<Response, Fault> {
    let approved = async {
        let Asked { draft, text } = asked(&portal, id, &fields, "comment", false).await?;
        in_review(&draft)?;
        if portal.approval
            && let Err(why) = portal.accounts.is_second(&person, &draft).await?
        {
            let title = "A second person has to approve this";
            return Err(Refused::Fault(Fault::new(
                StatusCode::FORBIDDEN,
                title,
                explain(Some(&why)),
            )));
        }
        let said = if text.is_empty() { String::new() } else { format!(": {text}") };
        let reason =
            with_editors(&draft.reason, &draft, &format!("approved by {}{said}", person.name));
        let approved = Draft { reviewer: person.name.to_string(), comment: text, ..draft };
        apply_now(&portal, "draft.approve", approved, &reason).await
    };
    approved.await.or_else(Refused::answer)
}

/// `POST /drafts/{id}/apply`: at once, where nobody has to approve it.
pub async fn apply(
    State(portal): State<Portal>,
    Path(id): Path<u64>,
    Extension(fields): Extension<Fields>,
) -> Result<Response, Fault> {
    let applied = async {
        let Asked { draft, text } = asked(&portal, id, &fields, "reason", true).await?;
        if portal.approval {
            let advice = "Send it to review: a second person lets it take effect.";
            return Err(Refused::Fault(Fault::new(
                StatusCode::FORBIDDEN,
                "This has to be approved",
                advice,
            )));
        }
        let reason = with_editors(&text, &draft, "");
        apply_now(&portal, "draft.apply", Draft { reason: text, ..draft }, &reason).await
    };
    applied.await.or_else(Refused::answer)
}

/// What to do where somebody cannot approve a draft.
pub(super) fn explain(why: Option<&NotSecond>) -> String {
    match why {
        Some(NotSecond::MayBe(writer)) => format!(
            "Your account and that of {writer} may be one person's: one of them comes from the provider, and the other \
             has no e-mail address, or both have the same. Ask an administrator to invite {writer} again with an address."
        ),
        _ => "Nobody who wrote a part of a draft can approve it: ask another editor, or an administrator.".to_owned(),
    }
}

/// The reason of a version: why, who edited what its author proposed, and how it was decided.
fn with_editors(reason: &str, draft: &Draft, decided: &str) -> String {
    let editors = draft.writers().get(1..).unwrap_or_default().join(", ");
    let edited = if editors.is_empty() { String::new() } else { format!("edited by {editors}") };
    let notes = [edited, decided.to_owned()];
    let notes: Vec<String> = notes.into_iter().filter(|note| !note.is_empty()).collect();
    if notes.is_empty() {
        return reason.to_owned();
    }
    let notes = cut(&notes.join("; "), REASON_LEN_MAX / 2);
    let reason = cut(reason, REASON_LEN_MAX - notes.len() - " ()".len());
    format!("{reason} ({notes})")
}

/// At most this many bytes of a text.
fn cut(text: &str, len_max: usize) -> String {
    match text.len() > len_max {
        true => format!("{}…", &text[..text.floor_char_boundary(len_max - '…'.len_utf8())]),
        false => text.to_owned(),
    }
}

fn in_review(draft: &Draft) -> Result<(), Refused> {
    match draft.state {
        drafts::State::Review => Ok(()),
        _ => Err(Refused::changed(draft.id)),
    }
}

async fn keep(
    portal: &Portal,
    verb: &'static str,
    draft: Draft,
    code: &str,
) -> Result<Response, Refused> {
    let id = draft.id;
    let action = deeds::of_draft(verb, &draft, None);
    match portal.drafts.replace(draft).await {
        Err(drafts::Error::RevisionMismatch { .. }) => Err(Refused::changed(id)),
        kept => {
            kept?;
            Ok((Extension(action), to(id, code)).into_response())
        }
    }
}

/// The counter whose id a new one was to have, when it is just that one.
async fn made_before(
    portal: &Portal,
    draft: &Draft,
    id: u32,
) -> Result<Result<Versioned, counters::Error>, Refused> {
    let current = portal.counters.catalog().get(id).await?;
    let is_it = current.counter == draft.counter;
    Ok(if is_it { Ok(current) } else { Err(catalog::Error::IdTaken(id).into()) })
}

/// Makes the counter what the draft proposes, and notes in the draft what became of it. In this order: a process that
/// dies between the two leaves a draft that is applied again, and finds the counter as it wants it.
async fn apply_now(
    portal: &Portal,
    verb: &'static str,
    draft: Draft,
    reason: &str,
) -> Result<Response, Refused> {
    let configuration = json!(draft.counter);
    let base = match draft.is_new() {
        true => None,
        false => Some(version_of(portal, draft.counter.id, draft.base_version).await?),
    };
    let applied = match draft.is_new() {
        true => match portal.counters.create(&configuration, &draft.author, reason).await {
            Err(counters::Error::Catalog(catalog::Error::IdTaken(id))) => {
                made_before(portal, &draft, id).await?
            }
            created => created,
        },
        false => {
            let (id, base) = (draft.counter.id, draft.base_version);
            let replaced = portal
                .counters
                .replace(id, &configuration, Some(base), &draft.author, reason)
                .await;
            match replaced {
                Err(counters::Error::Catalog(catalog::Error::VersionMismatch { .. })) => {
                    let current = portal.counters.catalog().get(id).await?;
                    if current.counter != draft.counter {
                        let (code, status) = ("draft-conflict", StatusCode::CONFLICT);
                        return Err(Refused::Back { id: draft.id, code, status });
                    }
                    Ok(current)
                }
                replaced => replaced,
            }
        }
    };
    let Versioned { counter, version, .. } = applied.map_err(Fault::from)?;
    let id = counter.id;
    let (counter, changed_at) = (counter, portal.clock.now_s());
    let ended = Draft {
        state: drafts::State::Applied,
        counter,
        applied_version: version,
        changed_at,
        ..draft
    };
    let ended = portal.drafts.replace(ended).await?;
    let action = deeds::of_draft(verb, &ended, base.as_ref());
    Ok((Extension(action), Redirect::to(&format!("/counters/{id}?note=saved"))).into_response())
}

//! The forms that decide on a draft.

use super::actor;
use crate::Answer;
use crate::caller::{Caller, Submitted};
use crate::guard::NoChange;
use crate::pages::audit_actions;
use axum::extract::{Extension, Path};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use raingauge_counters::documents::CounterKind;
use raingauge_counters::drafts::{Decision, DraftChange, Error};

/// Defines a handler for a decision: the audit verb, the field with its text, and the step of the
/// workflow.
macro_rules! decides {
    ($name:ident, $verb:literal, $field:literal) => {
        #[doc = concat!("`POST /drafts/{id}/", stringify!($name), "`")]
        pub async fn $name(
            Caller { portal, person }: Caller,
            Path(id): Path<u64>,
            Submitted(fields): Submitted,
        ) -> Answer {
            let text = fields.text($field).replace("\r\n", "\n");
            // No draft has revision 0, so a malformed number matches none.
            let revision = fields.text("revision").parse().unwrap_or(0);
            let decision = Decision { id, revision, text: &text, by: actor(&person) };
            answer(id, $verb, portal.drafts.$name(decision).await)
        }
    };
}

decides!(submit, "draft.send", "reason");
decides!(approve, "draft.approve", "comment");
decides!(reject, "draft.reject", "comment");
decides!(withdraw, "draft.withdraw", "comment");
decides!(apply, "draft.apply", "reason");

/// Redirects to the result of a decision, or back to the draft's page, which says why nothing was
/// done.
fn answer(id: u64, verb: &'static str, decided: Result<DraftChange, Error>) -> Answer {
    let change = match decided {
        Ok(change) => change,
        Err(error) => {
            let (code, status) = match error {
                Error::Changed(_) => ("draft-changed", StatusCode::CONFLICT),
                Error::Conflict { .. } => ("draft-conflict", StatusCode::CONFLICT),
                Error::ReasonMissing => ("reason-missing", StatusCode::UNPROCESSABLE_ENTITY),
                Error::ReasonTooLong => ("reason-long", StatusCode::UNPROCESSABLE_ENTITY),
                error => return Err(error.into()),
            };
            return Ok((Extension(NoChange(status)), to(id, code)).into_response());
        }
    };

    let place = match verb {
        "draft.send" => to(id, "draft-sent"),
        "draft.reject" => to(id, "draft-rejected"),
        "draft.withdraw" => to(id, "draft-withdrawn"),
        _ if change.draft.kind == CounterKind::NAME => {
            Redirect::to(&format!("/counters/{}?note=saved", change.draft.document_id()))
        }
        _ => to(id, "saved"),
    };
    Ok((Extension(audit_actions::of_draft(verb, &change)), place).into_response())
}

/// The page of a draft, with a note on top.
fn to(id: u64, code: &str) -> Redirect {
    Redirect::to(&format!("/drafts/{id}?note={code}"))
}

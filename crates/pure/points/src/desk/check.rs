//! What a command must be before anything is decided.

use crate::Points;
use crate::calendar::DAY_MS;
use crate::command::{Body, Command};
use crate::limits::{
    COMMAND_DAYS_MAX, ENTRY_POINTS_MAX, MEMBER_LEN_MAX, POINTS_KEY_LEN_MAX, POINTS_REASON_LEN_MAX,
    POINTS_SOURCE_LEN_MAX, REFERENCE_LEN_MAX,
};
use crate::refused;
use raingauge_core::code::{Code, Refusal};

/// Checks the length of a text, in bytes, and that it has no control characters.
fn check_text(
    text: Option<&str>,
    name: &str,
    len_min: usize,
    len_max: usize,
    code: Code,
) -> Result<(), Refusal> {
    let Some(text) = text else { return Ok(()) };
    let is_plain = !text.chars().any(char::is_control);
    if (len_min..=len_max).contains(&text.len()) && is_plain {
        return Ok(());
    }
    let detail =
        format!("the {name} must have {len_min} to {len_max} bytes without control characters");
    refused(code, detail)
}

/// Checks what does not depend on any state.
pub(super) fn check_command(command: &Command, now_ms: i64) -> Result<(), Refusal> {
    let invalid = Code::PointsInvalid;
    check_text(Some(&command.member), "member", 1, MEMBER_LEN_MAX, Code::MemberInvalid)?;
    check_text(Some(&command.key), "key", 1, POINTS_KEY_LEN_MAX, invalid)?;
    check_text(Some(&command.source), "source", 0, POINTS_SOURCE_LEN_MAX, invalid)?;
    check_text(command.reference.as_deref(), "reference", 1, REFERENCE_LEN_MAX, invalid)?;
    check_text(command.reason.as_deref(), "reason", 0, POINTS_REASON_LEN_MAX, invalid)?;

    let most_ms = COMMAND_DAYS_MAX * DAY_MS;
    let is_near = |at_ms: i64| at_ms.abs_diff(now_ms) <= most_ms.unsigned_abs();
    if command.occurred_ms.is_some_and(|at_ms| !is_near(at_ms)) {
        return refused(Code::TimeInvalid, "the time is too far from now");
    }
    match &command.body {
        Body::Transfer { to, .. } => {
            check_text(Some(to), "other member", 1, MEMBER_LEN_MAX, Code::MemberInvalid)
        }
        Body::Capture { hold, .. } | Body::Release { hold } => {
            check_text(Some(hold), "key of the hold", 1, POINTS_KEY_LEN_MAX, invalid)
        }
        _ => Ok(()),
    }
}

/// A number of points that can be spent, given or taken.
pub(super) fn check_points(points: Points) -> Result<Points, Refusal> {
    if (1..=ENTRY_POINTS_MAX).contains(&points) {
        return Ok(points);
    }
    let detail = format!("points must be positive, and at most {ENTRY_POINTS_MAX} units");
    refused(Code::PointsInvalid, detail)
}

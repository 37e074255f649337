//! What a command must be before anything is decided.

use crate::Points;
use crate::calendar::DAY_MS;
use crate::command::{Body, Command};
use crate::limits::{
    COMMAND_AHEAD_DAYS_MAX, COMMAND_DAYS_MAX, ENTRY_POINTS_MAX, MEMBER_LEN_MAX, POINTS_KEY_LEN_MAX,
    POINTS_REASON_LEN_MAX, POINTS_SOURCE_LEN_MAX, REFERENCE_LEN_MAX,
};
use crate::refused;
use crate::wallet::Wallet;
use raingauge_core::code::{Code, Refusal};

/// Most that all points of a wallet may be, so that no sum overflows.
pub(super) const WALLET_POINTS_MAX: i128 = ENTRY_POINTS_MAX as i128 * 1_000;

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

    let earliest_ms = now_ms.saturating_sub(COMMAND_DAYS_MAX * DAY_MS);
    if command.occurred_ms.is_some_and(|at_ms| at_ms < earliest_ms) {
        return refused(Code::TimeInvalid, "the time is too long ago");
    }
    // Points of a day to come would expire later than any others, and reach tiers of its period.
    let latest_ms = now_ms.saturating_add(COMMAND_AHEAD_DAYS_MAX * DAY_MS);
    if command.occurred_ms.is_some_and(|at_ms| at_ms > latest_ms) {
        return refused(Code::TimeInFuture, "the time is more than a day ahead");
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

/// Checks that a wallet stays within its bound with these points, beside those that it has.
pub(super) fn check_room(wallet: &Wallet, points: i128) -> Result<(), Refusal> {
    if wallet.value() + points <= WALLET_POINTS_MAX {
        return Ok(());
    }
    refused(Code::Overflow, "the wallet has as many points as one can have")
}

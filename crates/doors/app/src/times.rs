//! Times in requests: fixed, or relative to the moment of the request.

use raingauge_core::code::{Code, Refusal};
use raingauge_core::moment::Moment;
use raingauge_core::plan;

/// The forms of a time, for messages.
pub const FORMS: &str =
    "epoch seconds, RFC 3339, now, today, yesterday, or an age such as -7d or -15m";

/// Returns a time of a request as seconds since 1970, where days begin at midnight UTC. `None` is
/// a time that could not be read; `name` is what the request calls it.
pub fn at_s(moment: Option<Moment>, name: &str, now_s: i64) -> Result<i64, Refusal> {
    match moment {
        // A number outside the time of buckets is refused with its range.
        Some(Moment::At(at_s)) => Ok(at_s),
        Some(moment) => moment.at_s(now_s).ok_or_else(|| plan::Error::OutOfRange.into()),
        None => Err(Refusal::new(Code::TimeInvalid, format!("{name} must be {FORMS}"))),
    }
}

/// Replaces a relative day by the midnight that `midnight_s` finds for it.
pub fn with_midnight(
    moment: Option<Moment>,
    midnight_s: impl FnOnce(i64) -> Option<i64>,
) -> Option<Moment> {
    match moment {
        Some(Moment::DaysAgo(days_ago)) => midnight_s(days_ago).map(Moment::At).or(moment),
        moment => moment,
    }
}

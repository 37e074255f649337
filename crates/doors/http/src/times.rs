//! Times in requests: fixed, or relative to the moment of the request.

use raingauge_app::times::{self, FORMS};
use raingauge_core::code::Refusal;
use raingauge_core::moment::Moment;
use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use std::fmt;

/// A time in a request; `None` inside when it could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time(pub Option<Moment>);

impl Time {
    pub fn parse(text: &str) -> Self {
        Self(Moment::parse(text))
    }

    /// This time, or a default if it could not be read.
    pub fn or(self, default: Moment) -> Self {
        Self(self.0.or(Some(default)))
    }

    /// Seconds since 1970 at the moment of the request, where days begin at midnight UTC.
    pub fn at_s(self, name: &str, now_s: i64) -> Result<i64, Refusal> {
        times::at_s(self.0, name, now_s)
    }

    /// Replaces a relative day by the midnight that `midnight_s` finds for it.
    pub fn with_midnight(self, midnight_s: impl FnOnce(i64) -> Option<i64>) -> Self {
        Self(times::with_midnight(self.0, midnight_s))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(FORMS)
    }

    fn visit_i64<E>(self, seconds: i64) -> Result<Time, E> {
        Ok(Time(Some(Moment::At(seconds))))
    }

    fn visit_u64<E>(self, seconds: u64) -> Result<Time, E> {
        Ok(Time(i64::try_from(seconds).ok().map(Moment::At)))
    }

    fn visit_f64<E>(self, seconds: f64) -> Result<Time, E> {
        // Fractions of a second do not change the quarter hour, so the floor is enough.
        let is_whole = seconds.is_finite() && seconds.abs() < 1e15;
        Ok(Time(is_whole.then_some(Moment::At(seconds.floor() as i64))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Time, E> {
        Ok(Time::parse(text))
    }

    fn visit_unit<E>(self) -> Result<Time, E> {
        Ok(Time(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_core::code::Code;

    const NOW_S: i64 = 1_727_215_430;

    fn read(json: &str) -> Vec<Result<i64, Code>> {
        let times: Vec<Time> = sonic_rs::from_str(json).unwrap();
        times
            .into_iter()
            .map(|time| time.at_s("fromTime", NOW_S).map_err(|refusal| refusal.code))
            .collect()
    }

    #[test]
    fn fixed_times_are_read() {
        let times = r#"[1727215430, 1727215430.9, "2024-09-24T22:03:50Z", "1727215430", -5]"#;
        assert_eq!(read(times), [Ok(NOW_S), Ok(NOW_S), Ok(NOW_S), Ok(NOW_S), Ok(-5)]);
    }

    #[test]
    fn relative_times_begin_at_the_request() {
        let times = r#"["now", "-15m", "-7d", "today", "yesterday"]"#;
        let today_s = NOW_S - NOW_S % 86_400;
        let expected = [NOW_S, NOW_S - 900, NOW_S - 604_800, today_s, today_s - 86_400];
        assert_eq!(read(times), expected.map(Ok));
    }

    #[test]
    fn anything_else_is_refused() {
        let wrong = r#"[null, "soon", "", "-5", "7d", "--7d", "-7y", "Today", 1e300]"#;
        assert_eq!(read(wrong), [Err(Code::TimeInvalid); 9]);
        assert_eq!(read(r#"["-9999w"]"#), [Err(Code::TimeOutOfRange)]);
        assert!(sonic_rs::from_str::<Time>("{}").is_err());
    }
}

//! Times in requests: epoch seconds or RFC 3339.

use raingauge_core::time::parse_time_s;
use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use std::fmt;

/// A time in a request; `None` inside when it could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time(pub Option<i64>);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("epoch seconds or RFC 3339")
    }

    fn visit_i64<E>(self, seconds: i64) -> Result<Time, E> {
        Ok(Time(Some(seconds)))
    }

    fn visit_u64<E>(self, seconds: u64) -> Result<Time, E> {
        Ok(Time(i64::try_from(seconds).ok()))
    }

    fn visit_f64<E>(self, seconds: f64) -> Result<Time, E> {
        // Fractions of a second do not change the quarter hour, so the floor is enough.
        Ok(Time((seconds.is_finite() && seconds.abs() < 1e15).then_some(seconds.floor() as i64)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Time, E> {
        Ok(Time(parse_time_s(text)))
    }

    fn visit_unit<E>(self) -> Result<Time, E> {
        Ok(Time(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let times: Vec<Time> = sonic_rs::from_str(
            r#"[1727215430, 1727215430.9, "2024-09-24T22:03:50Z", "1727215430", null, "soon", -5]"#,
        )
        .unwrap();
        let at = Some(1_727_215_430);
        assert_eq!(
            times.iter().map(|time| time.0).collect::<Vec<_>>(),
            [at, at, at, at, None, None, Some(-5)]
        );
        assert!(sonic_rs::from_str::<Time>("{}").is_err());
    }
}

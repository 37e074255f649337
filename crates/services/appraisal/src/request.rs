//! Requests, as callers write them.
//!
//! ```json
//! {"programme": {"programme": "grab-sg", …}, "fromTime": "2026-01-01T00:00:00Z",
//!  "toTime": 1785456000, "source": "log", "by": "data.country", "days": 28}
//! {"fromTime": "2026-01-01T00:00:00Z", "programme": "grab-sg", "resend": true}
//! ```

use raingauge_core::counter::Problem;
use raingauge_core::time::{is_countable_s, parse_time_s};
use raingauge_replay::Error;
use raingauge_replay::request::SourceName;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::ops::Range;

/// Most days whose average a forecast extrapolates.
const DAYS_MAX: u16 = 366;

/// A point in time: seconds since 1970, or RFC 3339.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Moment {
    Seconds(i64),
    Text(String),
}

impl Moment {
    fn ms(&self) -> Option<i64> {
        let seconds = match self {
            Self::Seconds(seconds) => Some(*seconds).filter(|seconds| is_countable_s(*seconds)),
            Self::Text(text) => parse_time_s(text),
        };
        seconds.map(|seconds| seconds * 1_000)
    }
}

/// A programme over events of the past.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForecastRequest {
    /// The draft, or the name of a programme in force.
    pub programme: Json,
    /// Events before this time are left out: members begin without points and without tiers.
    #[serde(default, alias = "from")]
    from_time: Option<Moment>,
    #[serde(default, alias = "to")]
    to_time: Option<Moment>,
    #[serde(default)]
    pub source: SourceName,
    /// A field of events that divides the points, such as `data.country`.
    #[serde(default)]
    pub by: Option<String>,
    /// How many of the last days the forecast is scaled from.
    #[serde(default)]
    days: Option<u16>,
}

/// An audit of what events awarded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditRequest {
    /// One programme; all of them if it is absent.
    #[serde(default)]
    pub programme: Option<String>,
    /// Events of the log that were accepted from this time on; all of them if it is absent.
    #[serde(default, alias = "from")]
    from_time: Option<Moment>,
    /// Sends awards that are nowhere to the queue `award`.
    #[serde(default)]
    pub resend: bool,
}

impl ForecastRequest {
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        let request: Self = parsed(json)?;
        let mut problems =
            moments([("fromTime", &request.from_time), ("toTime", &request.to_time)]);
        if request.range_ms().is_empty() {
            problems.push(Problem::new("toTime", "the range is empty"));
        }
        if !(1..=DAYS_MAX).contains(&request.days()) {
            problems.push(Problem::new("days", format!("use 1 to {DAYS_MAX} days")));
        }
        if problems.is_empty() { Ok(request) } else { Err(Error::Invalid(problems)) }
    }

    pub fn days(&self) -> u16 {
        self.days.unwrap_or(28)
    }

    /// The times of the events, in milliseconds since 1970.
    pub fn range_ms(&self) -> Range<i64> {
        let ms = |moment: &Option<Moment>| moment.as_ref().and_then(Moment::ms);
        ms(&self.from_time).unwrap_or(i64::MIN)..ms(&self.to_time).unwrap_or(i64::MAX)
    }
}

impl AuditRequest {
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        let request: Self = parsed(json)?;
        let problems = moments([("fromTime", &request.from_time)]);
        if problems.is_empty() { Ok(request) } else { Err(Error::Invalid(problems)) }
    }

    /// When the first event was accepted, in milliseconds since 1970.
    pub fn from_ms(&self) -> i64 {
        self.from_time.as_ref().and_then(Moment::ms).unwrap_or(i64::MIN)
    }
}

fn moments<const N: usize>(given: [(&str, &Option<Moment>); N]) -> Vec<Problem> {
    let wrong = given
        .into_iter()
        .filter(|(_, moment)| moment.as_ref().is_some_and(|moment| moment.ms().is_none()));
    let problems = wrong.map(|(name, _)| {
        Problem::new(name, "use seconds since 1970, or RFC 3339 such as 2024-09-24T22:03:50Z")
    });
    problems.collect()
}

fn parsed<T: DeserializeOwned>(json: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(json).map_err(|error| Error::invalid("", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_of_a_request_is_reported() {
        let wrong = br#"{"programme": "p", "fromTime": "yesterday", "toTime": -1, "days": 0}"#;
        let Err(Error::Invalid(problems)) = ForecastRequest::parse(wrong) else {
            panic!("it is wrong");
        };
        let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["fromTime", "toTime", "days"]);

        let request = ForecastRequest::parse(br#"{"programme": "p", "from": 2, "to": 3}"#).unwrap();
        assert_eq!((request.range_ms(), request.days()), (2_000..3_000, 28));
        assert!(AuditRequest::parse(br#"{"from": "never"}"#).is_err());
        assert!(!AuditRequest::parse(b"{}").unwrap().resend);
    }
}

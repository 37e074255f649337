//! Requests, as callers write them.
//!
//! ```json
//! {"campaigns": [7, {"name": …}], "shared": [{"kind": "budget", "name": …}],
//!  "fromTime": "2024-09-01T00:00:00Z", "toTime": 1727740800, "source": "log",
//!  "by": ["var.country", "table.users.tier"], "sample": 10,
//!  "lookups": {"http.risk": {"share": 2000, "then": {"score": 9}, "else": {"score": 1}}}}
//! ```
//!
//! With `"source": "events"`, the events follow the request as lines of JSON: the request is the
//! first line, and each further line is a CloudEvent.

use crate::Error;
use crate::limits::{BACKTEST_FIELDS_MAX, BACKTEST_SAMPLE_MAX, TEST_EVENTS_MAX};
use raingauge_campaigns::campaign::CampaignId;
use raingauge_core::counter::Problem;
use raingauge_core::time::{is_countable_s, parse_rfc3339_ms, parse_time_s};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::ops::Range;

/// A point in time: seconds since 1970, or RFC 3339.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Moment {
    Seconds(i64),
    Text(String),
}

const MOMENT_FORMS: &str = "use seconds since 1970, or RFC 3339 such as 2024-09-24T22:03:50Z";

impl Moment {
    /// Milliseconds since 1970, with the fraction that a text has.
    fn exact_ms(&self) -> Option<i64> {
        match self {
            Self::Seconds(_) => self.ms(),
            Self::Text(text) => parse_rfc3339_ms(text.as_bytes()).or_else(|| self.ms()),
        }
    }

    fn ms(&self) -> Option<i64> {
        let seconds = match self {
            Self::Seconds(seconds) => Some(*seconds).filter(|seconds| is_countable_s(*seconds)),
            Self::Text(text) => parse_time_s(text),
        };
        seconds.map(|seconds| seconds * 1_000)
    }
}

/// Where the events of a replay come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceName {
    #[default]
    Log,
    /// They follow the request.
    Events,
}

/// What a lookup answers in a replay, instead of what it answered or would answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Assumption {
    /// The same for everyone.
    Answer(FixedAnswer),
    /// One answer for a share of the keys, chosen by their hashes, and another for the rest.
    Share(SharedAnswer),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedAnswer {
    pub answer: Json,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedAnswer {
    /// Of 10,000.
    pub share: u16,
    /// `true` if it is absent, as of a segment.
    #[serde(default = "yes")]
    pub then: Json,
    /// `false` if it is absent.
    #[serde(default = "no", rename = "else")]
    pub otherwise: Json,
}

fn yes() -> Json {
    Json::Bool(true)
}

fn no() -> Json {
    Json::Bool(false)
}

/// Documents and events, of which nothing is kept.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TestRequest {
    pub campaigns: Vec<Json>,
    #[serde(default)]
    pub shared: Vec<Json>,
    /// CloudEvents, in the order of their stream.
    pub events: Vec<Box<RawValue>>,
    #[serde(default)]
    pub assume: AssumedStates,
    #[serde(default)]
    pub lookups: BTreeMap<String, Assumption>,
}

/// What the campaigns remember before the first event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssumedStates {
    /// By subject, then by name: counts of the subject before the first event.
    #[serde(default)]
    pub counts: BTreeMap<String, BTreeMap<String, i64>>,
    /// By subject, then by step: how often the subject got the step.
    #[serde(default)]
    pub usage: BTreeMap<String, BTreeMap<String, i64>>,
    /// By name: what is reserved of a budget.
    #[serde(default)]
    pub budgets: BTreeMap<String, i64>,
}

/// A backtest of `campaigns`, or a comparison of `before` and `after`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BacktestRequest {
    #[serde(default)]
    pub campaigns: Vec<Json>,
    #[serde(default)]
    pub before: Vec<Json>,
    #[serde(default)]
    pub after: Vec<Json>,
    #[serde(default)]
    pub shared: Vec<Json>,
    /// Events of earlier times are counted, and decide nothing.
    #[serde(default, alias = "from")]
    pub from_time: Option<Moment>,
    /// Events from here on are left out.
    #[serde(default, alias = "to")]
    pub to_time: Option<Moment>,
    #[serde(default)]
    pub source: SourceName,
    /// Fields of events and columns of tables that divide the triggers.
    #[serde(default)]
    pub by: Vec<String>,
    /// Replays one in `sample` subjects.
    #[serde(default)]
    pub sample: Option<u64>,
    #[serde(default)]
    pub lookups: BTreeMap<String, Assumption>,
    /// Decides also on events that arrived too late, such as those of an import of history.
    #[serde(default)]
    pub ignore_lateness: bool,
}

impl TestRequest {
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        let request: Self = parsed(json)?;
        if request.events.len() > TEST_EVENTS_MAX {
            let detail = format!("a test has at most {TEST_EVENTS_MAX} events");
            return Err(Error::invalid("events", detail));
        }
        Ok(request)
    }
}

impl BacktestRequest {
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        let request: Self = parsed(json)?;
        let mut problems = Vec::new();
        if request.by.len() > BACKTEST_FIELDS_MAX {
            let detail = format!("triggers are divided by at most {BACKTEST_FIELDS_MAX} fields");
            problems.push(Problem::new("by", detail));
        }
        if !(1..=BACKTEST_SAMPLE_MAX).contains(&request.sample()) {
            let detail = format!("one in 1 to {BACKTEST_SAMPLE_MAX} subjects can be replayed");
            problems.push(Problem::new("sample", detail));
        }

        for (name, moment) in [("fromTime", &request.from_time), ("toTime", &request.to_time)] {
            if moment.as_ref().is_some_and(|moment| moment.ms().is_none()) {
                problems.push(Problem::new(name, MOMENT_FORMS));
            }
        }
        if request.range_ms().is_empty() {
            problems.push(Problem::new("toTime", "the range is empty"));
        }
        if problems.is_empty() { Ok(request) } else { Err(Error::Invalid(problems)) }
    }

    pub fn sample(&self) -> u64 {
        self.sample.unwrap_or(1)
    }

    /// The times of the events that decide, in milliseconds since 1970.
    pub fn range_ms(&self) -> Range<i64> {
        let ms = |moment: &Option<Moment>| moment.as_ref().and_then(Moment::ms);
        ms(&self.from_time).unwrap_or(i64::MIN)..ms(&self.to_time).unwrap_or(i64::MAX)
    }
}

/// Asks why a campaign did what it did, or did not.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainRequest {
    pub subject: String,
    /// The newest event of the subject, if it is absent.
    #[serde(default)]
    pub event: Option<NamedEvent>,
}

/// An event as a caller names it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedEvent {
    pub source: String,
    pub id: String,
    /// The time that it carries, which tells it from others of the same source and id.
    #[serde(default)]
    pub time: Option<Moment>,
}

/// What makes an event the same one when it comes again.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct EventName {
    pub source: String,
    pub id: String,
}

impl NamedEvent {
    pub fn name(&self) -> EventName {
        EventName { source: self.source.clone(), id: self.id.clone() }
    }

    /// Whether an event at a time, in milliseconds since 1970, may be the one that is meant. A time
    /// without a fraction means its whole second, as answers write times.
    pub fn has_time(&self, event_ms: i64) -> bool {
        let Some(named_ms) = self.time.as_ref().and_then(Moment::exact_ms) else { return true };
        let is_whole = named_ms.rem_euclid(1_000) == 0;
        named_ms == event_ms || is_whole && named_ms == event_ms - event_ms.rem_euclid(1_000)
    }
}

impl ExplainRequest {
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        let request: Self = parsed(json)?;
        let time = request.event.as_ref().and_then(|event| event.time.as_ref());
        if time.is_some_and(|time| time.exact_ms().is_none()) {
            return Err(Error::invalid("event.time", MOMENT_FORMS));
        }
        Ok(request)
    }
}

/// An audit of one campaign, or of one chosen at random.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditRequest {
    #[serde(default)]
    pub campaign: Option<CampaignId>,
    /// Chooses campaign and subjects. The time, if it is absent.
    #[serde(default)]
    pub seed: Option<u64>,
}

fn parsed<T: DeserializeOwned>(json: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(json).map_err(|error| Error::invalid("", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_range_is_written_in_seconds_or_as_a_time() {
        let request = json!({"campaigns": [7], "fromTime": "1970-01-01T00:00:02Z", "toTime": 3});
        let request = BacktestRequest::parse(request.to_string().as_bytes()).expect("parsed");
        assert_eq!(request.range_ms(), 2_000..3_000);
        assert_eq!((request.sample(), request.source), (1, SourceName::Log));

        let wrong =
            json!({"fromTime": "yesterday", "toTime": -1, "sample": 0, "by": vec!["id"; 9]});
        let Err(Error::Invalid(problems)) = BacktestRequest::parse(wrong.to_string().as_bytes())
        else {
            panic!("it is wrong");
        };
        let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["by", "sample", "fromTime", "toTime"]);
        assert!(BacktestRequest::parse(br#"{"fromTime": 3, "toTime": 3}"#).is_err());
        assert!(BacktestRequest::parse(br#"{"unknown": 3}"#).is_err());
    }

    #[test]
    fn an_event_may_be_named_with_its_time() {
        let named = |time: Json| {
            let event = json!({"source": "mart", "id": "o-1", "time": time});
            let request = json!({"subject": "u-7", "event": event}).to_string();
            ExplainRequest::parse(request.as_bytes()).map(|request| request.event.expect("named"))
        };
        let whole = named(json!("1970-01-01T00:00:02Z")).expect("parsed");
        assert!(whole.has_time(2_000) && whole.has_time(2_999));
        assert!(!whole.has_time(1_999) && !whole.has_time(3_000));
        let exact = named(json!("1970-01-01T00:00:02.500Z")).expect("parsed");
        assert!(exact.has_time(2_500) && !exact.has_time(2_000));
        assert!(named(json!(2)).expect("parsed").has_time(2_000));
        assert!(named(Json::Null).expect("parsed").has_time(7));
        assert!(matches!(named(json!("noon")), Err(Error::Invalid(_))));
    }

    #[test]
    fn lookups_are_assumed() {
        let read = |json: Json| serde_json::from_value::<Assumption>(json);
        let share = SharedAnswer { share: 2_000, then: yes(), otherwise: no() };
        assert_eq!(read(json!({"share": 2000})).expect("read"), Assumption::Share(share));
        let fixed = FixedAnswer { answer: Json::Null };
        assert_eq!(read(json!({"answer": null})).expect("read"), Assumption::Answer(fixed));
        assert!(read(json!({"share": 70_000})).is_err());
        assert!(read(json!({"answer": 1, "other": 2})).is_err());
    }
}

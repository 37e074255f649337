//! A destination, as the deliveries need it.

use raingauge_campaigns::calendar::Zone;
use raingauge_campaigns::documents;
use raingauge_campaigns::schedule::{Concurrency, Pace, Schedule};
use raingauge_policy::breaker;
use std::path::PathBuf;
use std::time::Duration;

/// The name of the destination that needs no document: the event log of this service.
pub const LOG: &str = "log";
/// The pace of a destination whose document has none.
const UNBOUNDED: Pace = Pace { per_second: 1_000_000, burst: 1_000_000 };

/// What the document of a destination says.
#[derive(Clone, Debug, PartialEq)]
pub struct Destination {
    pub name: String,
    /// The version of its document.
    pub version: u32,
    pub target: Target,
    /// Without one, requests are not signed.
    pub secret: Option<SecretSource>,
    /// The zone of the hours in `rate`.
    pub zone: Zone,
    pub rate: Schedule<Pace>,
    pub concurrency: Concurrency,
    /// Longest time of a request.
    pub timeout: Duration,
    pub breaker: breaker::Options,
    /// Whether it may be on a private network, or on this machine.
    pub allow_private: bool,
    /// Why nothing is sent to it.
    pub disabled: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An address of http or https.
    Http(String),
    /// The event log of this service, which takes the events that campaigns emit.
    Log,
    /// The ledger of a programme of points in this process.
    Points(String),
}

/// Where the secret of a destination is. It holds a secret, or two while one replaces the other,
/// separated by white space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// A variable of the environment.
    Environment(String),
    File(PathBuf),
}

impl Target {
    /// Whether the task of another target may go on with this one. Requests may change their
    /// address; parts of this process have tasks of their own.
    pub fn is_served_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Http(_), Self::Http(_)) => true,
            (own, other) => own == other,
        }
    }
}

impl Destination {
    /// A document was checked when it was saved. One of another release may have a zone that this
    /// one does not know; its hours are those of UTC then.
    pub fn of_document(name: &str, version: u32, document: &documents::Destination) -> Self {
        let documents::Breaker { failed_percent, sleep_ms } = document.breaker;
        let breaker = breaker::Options {
            failed_percent,
            sleep_ms: i64::try_from(sleep_ms).unwrap_or(i64::MAX).max(1),
            ..breaker::Options::default()
        };

        let variable = document.secret_env.clone().map(SecretSource::Environment);
        let file = document.secret_file.clone().map(|path| SecretSource::File(path.into()));
        let target = match document.target() {
            documents::Target::Http(url) => Target::Http(url.to_owned()),
            documents::Target::Log => Target::Log,
            documents::Target::Points(programme) => Target::Points(programme.to_owned()),
        };

        Self {
            name: name.to_owned(),
            version,
            target,
            secret: variable.or(file),
            zone: Zone::of_name(&document.zone).unwrap_or_else(Zone::utc),
            rate: document.rate.clone().unwrap_or_else(|| Schedule::constant(UNBOUNDED)),
            concurrency: document.concurrency,
            timeout: Duration::from_millis(document.timeout_ms),
            breaker,
            allow_private: document.allow_private,
            disabled: document.disabled.clone(),
        }
    }

    /// The event log under the name that needs no document.
    pub fn log() -> Self {
        Self {
            name: LOG.to_owned(),
            version: 0,
            target: Target::Log,
            secret: None,
            zone: Zone::utc(),
            rate: Schedule::constant(UNBOUNDED),
            concurrency: Concurrency { min: 1, max: 1 },
            timeout: Duration::from_secs(15),
            breaker: breaker::Options::default(),
            allow_private: false,
            disabled: None,
        }
    }
}

/// The requests per second of a pace; `None` if they are not bounded.
pub fn bound(pace: Pace) -> Option<u32> {
    (pace != UNBOUNDED).then_some(pace.per_second)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::json;

    /// A destination that takes much, for tests.
    pub fn destination(name: &str) -> Destination {
        Destination {
            target: Target::Http(format!("http://{name}.example/hook")),
            name: name.to_owned(),
            version: 1,
            rate: Schedule::constant(Pace { per_second: 10_000, burst: 10_000 }),
            concurrency: Concurrency { min: 2, max: 8 },
            ..Destination::log()
        }
    }

    #[test]
    fn a_document_says_what_a_destination_is() {
        let document = json!({
            "url": "https://rewards.internal/v1/award",
            "secretEnv": "RAINGAUGE_SECRET_REWARDS",
            "zone": "Asia/Singapore",
            "concurrency": {"min": 2, "max": 32},
            "rate": [{"perSecond": 500, "burst": 500}],
            "timeoutMs": 1_500,
            "breaker": {"failedPercent": 40, "sleepMs": 7_000},
            "allowPrivate": true, "disabled": "it moves",
        });
        let document: documents::Destination = serde_json::from_value(document).expect("read");
        let found = Destination::of_document("rewards", 3, &document);

        let pace = Pace { per_second: 500, burst: 500 };
        let expected = Destination {
            name: "rewards".to_owned(),
            version: 3,
            target: Target::Http("https://rewards.internal/v1/award".to_owned()),
            secret: Some(SecretSource::Environment("RAINGAUGE_SECRET_REWARDS".to_owned())),
            zone: Zone::of_name("Asia/Singapore").expect("a zone"),
            rate: Schedule::constant(pace),
            concurrency: Concurrency { min: 2, max: 32 },
            timeout: Duration::from_millis(1_500),
            breaker: breaker::Options {
                failed_percent: 40,
                sleep_ms: 7_000,
                ..breaker::Options::default()
            },
            allow_private: true,
            disabled: Some("it moves".to_owned()),
        };
        assert_eq!(found, expected);
        assert_eq!(bound(pace), Some(500));
    }

    #[test]
    fn requests_go_on_at_another_address_and_parts_of_the_process_do_not() {
        let http = |url: &str| Target::Http(url.to_owned());
        let points = |programme: &str| Target::Points(programme.to_owned());
        assert!(http("https://a").is_served_as(&http("https://b")));
        assert!(points("a").is_served_as(&points("a")) && Target::Log.is_served_as(&Target::Log));
        for (before, after) in
            [(points("a"), points("b")), (Target::Log, points("a")), (http("x"), Target::Log)]
        {
            assert!(!after.is_served_as(&before), "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_document_without_a_rate_has_no_bound() {
        let document: documents::Destination =
            serde_json::from_value(json!({"url": "log:"})).expect("read");
        let found = Destination::of_document("own", 1, &document);
        assert_eq!((&found.target, &found.secret), (&Target::Log, &None));
        assert_eq!(bound(*found.rate.at(0, &found.zone)), None);
    }
}

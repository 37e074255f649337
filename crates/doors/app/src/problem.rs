//! What a door answers to a request that is refused, or that failed.

mod documents;
mod jobs;

pub use documents::invalid_code;

use raingauge_core::code::{Code, Refusal};
use raingauge_core::counter;
use raingauge_counters::{self as counters, drafts, recent};
use raingauge_operations::{maintenance, rollouts};
use raingauge_people::tokens::Denial;
use raingauge_ports::{catalog, log, scans};
use raingauge_writer::{bucket_list, ingest, worker};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Advised wait while the disk has no room.
const DISK_FULL_RETRY_AFTER: Duration = Duration::from_secs(5);
/// Advised wait while too many scans wait already.
const SCANS_RETRY_AFTER: Duration = Duration::from_secs(2);

/// A refusal with what else its caller can use. Each door maps its code to a status.
#[derive(Debug)]
pub struct Problem {
    pub refusal: Refusal,
    /// When it is worth trying again.
    pub retry_after: Option<Duration>,
    /// Further members of the answer, by name.
    pub members: Map<String, Value>,
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Refusal::new(code, detail).into()
    }

    /// Adds a member to the answer.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.members.insert(name.to_owned(), value);
        self
    }

    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// A configuration with these problems.
    pub fn invalid(code: Code, problems: &[counter::Problem]) -> Self {
        let details: Vec<String> = problems.iter().map(counter::Problem::to_string).collect();
        Self::new(code, details.join("; ")).with("problems", json!(problems))
    }

    fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, detail)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, retry_after: None, members: Map::new() }
    }
}

impl From<Denial> for Problem {
    fn from(denied: Denial) -> Self {
        let (code, detail) = match denied {
            Denial::Missing => (
                Code::TokenMissing,
                "send a token: Authorization: Bearer rg_…; `raingauge token` makes one".to_owned(),
            ),
            Denial::Unknown => {
                (Code::TokenUnknown, "this token is not one of the configured ones".to_owned())
            }
            Denial::Stale => (Code::TokensUnavailable, denied.to_string()),
            Denial::Scope(scope) => {
                (Code::ScopeMissing, format!("this token lacks the scope {}", scope.name()))
            }
        };
        Self::new(code, detail)
    }
}

impl From<scans::Full> for Problem {
    fn from(full: scans::Full) -> Self {
        Self::new(Code::ScansWaiting, full.to_string()).retry_after(SCANS_RETRY_AFTER)
    }
}

impl From<log::Error> for Problem {
    fn from(error: log::Error) -> Self {
        match error {
            log::Error::Busy { retry_after } => {
                Self::new(Code::LogBusy, error.to_string()).retry_after(retry_after)
            }
            log::Error::Full { .. } => {
                let problem = Self::new(Code::DiskFull, error.to_string());
                problem.retry_after(DISK_FULL_RETRY_AFTER)
            }
            log::Error::ClockUnsound(_) => Self::new(Code::ClockUnsound, error.to_string()),
            log::Error::TooLarge { .. } => Self::new(Code::BodyTooLarge, error.to_string()),
            error => Self::unavailable(error.to_string()),
        }
    }
}

impl From<ingest::Error> for Problem {
    fn from(error: ingest::Error) -> Self {
        match error {
            ingest::Error::TooMany => Self::new(Code::TooManyEvents, error.to_string()),
            ingest::Error::Lagging { retry_after, .. } => {
                Self::new(Code::WriterLagging, error.to_string()).retry_after(retry_after)
            }
            ingest::Error::Log(error) => error.into(),
            ingest::Error::Stopped(_) => Self::unavailable(error.to_string()),
        }
    }
}

impl From<catalog::Error> for Problem {
    fn from(error: catalog::Error) -> Self {
        let detail = error.to_string();
        match error {
            catalog::Error::NotFound(_) => Self::new(Code::CounterUnknown, detail),
            catalog::Error::IdTaken(_) => Self::new(Code::IdTaken, detail),
            catalog::Error::VersionMismatch { current, .. }
            | catalog::Error::PolicyMismatch { current } => {
                Self::new(Code::VersionMismatch, detail).with("currentVersion", json!(current))
            }
            catalog::Error::Invalid(problems) => Self::invalid(Code::CounterInvalid, &problems),
            catalog::Error::Unavailable(_) => Self::unavailable(detail),
        }
    }
}

impl From<counters::Error> for Problem {
    fn from(error: counters::Error) -> Self {
        use counters::Error;

        let detail = error.to_string();
        let code = match error {
            Error::Catalog(error) => return error.into(),
            Error::Log(error) => return error.into(),
            Error::Stopped(_) => Code::Unavailable,
            Error::TooMany => Code::TooManyBuckets,
            Error::KeyReused => Code::IdempotencyKeyReused,
            Error::TooManyRefused => Code::TooManyRejected,
            Error::KeyOfAnother { .. } => Code::KeyUnknown,
            Error::VersionUnknown { .. } => Code::CounterUnknown,
            Error::NotArchived(_) => Code::CounterNotArchived,
            Error::ReasonTooLong => Code::ReasonTooLong,
            Error::ChangedTooOften(_) => Code::ChangedTooOften,
            Error::TooManyVersions(_) => Code::TooManyVersions,
        };
        Self::new(code, detail)
    }
}

impl From<drafts::Error> for Problem {
    fn from(error: drafts::Error) -> Self {
        use drafts::Error;

        let detail = error.to_string();
        let code = match error {
            Error::Conflict { current, .. } => {
                let problem = Self::new(Code::DraftConflict, detail);
                return problem.with("currentVersion", json!(current));
            }
            Error::Document(error) => return error.into(),
            Error::NotFound(_) => Code::DraftUnknown,
            Error::Changed(_) => Code::DraftChanged,
            Error::Ended(_) => Code::DraftEnded,
            Error::TooMany => Code::TooManyDrafts,
            Error::KindUnknown(_) => Code::KindUnknown,
            Error::ReasonMissing => Code::ReasonMissing,
            Error::ReasonTooLong => Code::ReasonTooLong,
            Error::ApprovalNeeded => Code::ApprovalNeeded,
            Error::NotSecond(_) => Code::SecondPersonNeeded,
            Error::People(_) | Error::Unavailable(_) => Code::Unavailable,
        };
        Self::new(code, detail)
    }
}

impl From<counters::documents::Error> for Problem {
    fn from(error: counters::documents::Error) -> Self {
        use counters::documents::Error;

        let detail = error.to_string();
        match error {
            Error::NotFound(_) => Self::new(Code::DocumentUnknown, detail),
            Error::Conflict { current, .. } => {
                Self::new(Code::DraftConflict, detail).with("currentVersion", json!(current))
            }
            Error::IdTaken { .. } => Self::new(Code::IdTaken, detail),
            Error::Invalid(problems) => Self::invalid(Code::ConfigurationInvalid, &problems),
            Error::Refused(_) => Self::new(Code::ChangeRefused, detail),
            Error::Unavailable(_) => Self::unavailable(detail),
        }
    }
}

impl From<recent::Error> for Problem {
    fn from(error: recent::Error) -> Self {
        match error {
            recent::Error::Busy(full) => full.into(),
            recent::Error::Log(error) => error.into(),
            recent::Error::Failed(error) => Self::new(Code::Failed, error.to_string()),
        }
    }
}

impl From<worker::Error> for Problem {
    fn from(error: worker::Error) -> Self {
        Self::unavailable(error.to_string())
    }
}

impl From<maintenance::Error> for Problem {
    fn from(error: maintenance::Error) -> Self {
        let detail = error.to_string();
        match error {
            maintenance::Error::Running => Self::new(Code::CompactionRunning, detail),
            maintenance::Error::Idle => Self::new(Code::CompactionIdle, detail),
            _ => Self::new(Code::Unavailable, detail),
        }
    }
}

impl From<rollouts::Error> for Problem {
    fn from(error: rollouts::Error) -> Self {
        use raingauge_ports::rollouts::Error as Stored;
        let detail = error.to_string();
        match error {
            rollouts::Error::Catalog(error) => error.into(),
            rollouts::Error::Rollouts(Stored::NotFound(_)) => {
                Self::new(Code::RolloutUnknown, detail)
            }
            rollouts::Error::Rollouts(Stored::Unavailable(_)) => Self::unavailable(detail),
            _ => Self::new(Code::RolloutRefused, detail),
        }
    }
}

impl From<bucket_list::Error> for Problem {
    fn from(error: bucket_list::Error) -> Self {
        match error {
            bucket_list::Error::TooMany => counters::Error::TooMany.into(),
            bucket_list::Error::Malformed(reason) => Self::new(
                Code::JsonMalformed,
                format!("the body must be an array of buckets: {reason}"),
            ),
        }
    }
}

/// The answer to a request over a connection that has no place.
pub fn connections_full() -> Problem {
    let detail = "every connection of this door, or every one that your address may have, is taken: \
                  send requests over connections that are open, or try again in a moment";
    Problem::new(Code::ConnectionsFull, detail).retry_after(Duration::from_secs(1))
}

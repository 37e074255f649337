//! Refusals, as sentences that say what to do.

use super::schedule::EXPRESSIONS_MAX;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{expression:?} is not a cron expression: {reason}")]
    Expression { expression: String, reason: String },
    #[error("{0:?} never comes: no day is such a day")]
    Never(String),
    #[error("{0:?} is not the name of a time zone, such as UTC or Asia/Singapore")]
    Zone(String),
    #[error("there are more than {EXPRESSIONS_MAX} expressions")]
    TooMany,
    #[error("a compaction is running already: wait for its end, or stop it")]
    Running,
    #[error("no compaction is running")]
    Idle,
    #[error("the server is stopping: no compaction begins any more")]
    Closing,
}

//! What can go wrong with points, beside what the ledger refuses.

use raingauge_core::code::Refusal;
use raingauge_ports::campaigns::documents;
use raingauge_ports::log::{self, Offset};
use raingauge_ports::points::{self, QueueError};
use std::time::Duration;

/// Errors are shared by all commands of a turn, so they can be cloned.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Too many commands wait. Nothing was taken, and the caller may try again.
    #[error("the ledger of points is busy: try again after {} s", retry_after.as_secs())]
    Busy { retry_after: Duration },
    /// The teller has ended. What was answered is in the ledger, and the rest is to be sent again.
    #[error("the ledger of points takes nothing: {0}")]
    Closed(String),
    /// A limit of requests is exceeded. Nothing was taken.
    #[error("{0}")]
    TooLarge(String),
    /// What was asked for cannot be done.
    #[error("{}", .0.detail)]
    Refused(Refusal),
    #[error(transparent)]
    Books(#[from] points::Error),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("the event log cannot be read or written: {0}")]
    Log(String),
    #[error(transparent)]
    Documents(#[from] documents::Error),
    /// A control entry, or the ledger, names a version that the store does not have.
    #[error("version {version} of {kind} {id} takes effect, but the database does not have it")]
    DocumentMissing { kind: String, id: String, version: u32 },
    /// A newer version of this program wrote the document.
    #[error("version {version} of the programme {id} cannot be read: {why}; upgrade raingauge")]
    Unreadable { id: String, version: u32, why: String },
    /// A newer version of this program wrote it.
    #[error(
        "the control entry for points at offset {offset} is one that this program does not know: \
         {why}; upgrade raingauge"
    )]
    UnknownControl { offset: Offset, why: String },
    /// Nothing was decided, and the caller may try again.
    #[error("versions of programmes take effect faster than they can be read: try again")]
    ProgrammesChange,
    /// The clock of this machine or that of the engine is wrong. Nothing is decided by either.
    #[error(
        "the clock of this machine is {} s {} that of the database: set the clock that is wrong",
        apart_ms.abs() / 1_000,
        if *apart_ms > 0 { "ahead of" } else { "behind" }
    )]
    ClockApart { apart_ms: i64 },
    /// The log does not have what the ledger needs next.
    #[error(
        "the ledger of points includes the event log up to offset {position}, but the log {why}"
    )]
    LogOtherwise { position: Offset, why: String },
    #[error("a thread of points could not be started: {0}")]
    Thread(String),
}

impl From<log::Error> for Error {
    fn from(error: log::Error) -> Self {
        Self::Log(error.to_string())
    }
}

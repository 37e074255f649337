//! What can go wrong with a change of a document.

use raingauge_core::counter::Problem;
use raingauge_ports::campaigns::{TableError, documents};
use raingauge_ports::log;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no kind of document called {0:?}")]
    KindUnknown(String),
    #[error("there is no {kind} {id}")]
    NotFound { kind: String, id: String },
    #[error("{kind} {id} has no version {version}")]
    VersionUnknown { kind: String, id: String, version: u32 },
    #[error("{kind} {id} exists already: replace it, or choose another one")]
    Taken { kind: String, id: String },
    /// Another change was made to the document first.
    #[error("{kind} {id} is at version {current} by now: read it again and repeat the change")]
    Conflict { kind: String, id: String, current: u32 },
    /// The document is invalid, or does not fit the others.
    #[error("the {kind} has {} problem(s)", .problems.len())]
    Invalid { kind: String, problems: Vec<Problem> },
    /// It is used, or in a state that forbids the change.
    #[error("{0}")]
    Refused(String),
    #[error("this has to be approved: {0}")]
    ApprovalNeeded(String),
    /// Nothing was changed, or a change may have been saved.
    #[error(transparent)]
    Store(#[from] documents::Error),
    /// It is saved, and could not be announced yet.
    #[error("the document is saved, and takes effect when the event log takes entries again: {0}")]
    Log(#[from] log::Error),
    #[error(
        "{kind} {id} is saved as version {version}, and has not taken effect within {waited_s} s: \
         see how far the worker is"
    )]
    NotInEffect { kind: String, id: String, version: u32, waited_s: u64 },
    /// A row of an upload.
    #[error("line {line}: {detail}")]
    Row { line: u64, detail: String },
    #[error("{0}")]
    Upload(String),
    #[error(transparent)]
    Table(#[from] TableError),
}

impl Error {
    pub(crate) fn invalid(kind: &str, problems: Vec<Problem>) -> Self {
        Self::Invalid { kind: kind.to_owned(), problems }
    }

    pub(crate) fn not_found(kind: &str, id: &str) -> Self {
        Self::NotFound { kind: kind.to_owned(), id: id.to_owned() }
    }
}

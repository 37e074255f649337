//! Why an operation on counters fails.

use raingauge_core::counter::Problem;
use raingauge_core::limits::{
    BUCKETS_PER_REQUEST_MAX, KEYED_ANSWER_LEN_MAX, REASON_LEN_MAX, VERSIONS_MAX,
    VERSIONS_PER_HOUR_MAX,
};
use raingauge_ports::{catalog, log};
use std::sync::Arc;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Catalog(#[from] catalog::Error),
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error("counting has stopped: {0}")]
    Stopped(Arc<str>),
    #[error("a request takes at most {BUCKETS_PER_REQUEST_MAX} buckets: send them in parts")]
    TooMany,
    #[error(
        "this Idempotency-Key was used for other buckets: choose another key for another request"
    )]
    KeyReused,
    #[error(
        "more buckets are refused than an answer to a request with an Idempotency-Key can list in \
         {KEYED_ANSWER_LEN_MAX} bytes, and none was set: correct them, or send the request in parts"
    )]
    TooManyRefused,
    #[error("no key of counter {counter} is `{key}`: its template renders others")]
    KeyOfAnother { counter: u32, key: String },
    #[error("a reason has at most {REASON_LEN_MAX} bytes: shorten it")]
    ReasonTooLong,
    #[error("counter {id} has no version {version}")]
    VersionUnknown { id: u32, version: u32 },
    #[error("counter {0} is not archived: archive it first, or erase its counts and let it go on")]
    NotArchived(u32),
    #[error(
        "counter {0} was changed {VERSIONS_PER_HOUR_MAX} times in an hour: change it less often"
    )]
    ChangedTooOften(u32),
    #[error(
        "counter {0} has {VERSIONS_MAX} versions, which is the most: archive it and create another one"
    )]
    TooManyVersions(u32),
}

impl From<Vec<Problem>> for Error {
    fn from(problems: Vec<Problem>) -> Self {
        Self::Catalog(catalog::Error::Invalid(problems))
    }
}

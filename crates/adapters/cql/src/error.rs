//! Errors of the store, in sentences that say what to do.

use raingauge_ports::{buckets, maintenance};
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "{place} is out of reach: {reason}: check that the nodes run, and check cql.contact_points"
    )]
    Unreachable { place: String, reason: String },
    #[error("{place} refuses the user or the password: check cql.user and cql.password")]
    Refused { place: String },
    #[error(
        "{place} has no schema, or one of version {found}, and this raingauge needs version {needed}: run `raingauge migrate`"
    )]
    SchemaTooOld { place: String, found: i32, needed: i32 },
    #[error(
        "{place} has a schema of version {found}, and this raingauge knows versions up to {known}: use a newer raingauge"
    )]
    SchemaTooNew { place: String, found: i32, known: i32 },
    #[error(
        "{place}: the tables were altered: {reason}: run `raingauge migrate`, or put them back"
    )]
    Altered { place: String, reason: String },
    #[error(
        "{place} lies in these datacenters: {names}: name the one of this process with cql.datacenter"
    )]
    Datacenter { place: String, names: String },
    #[error(
        "{place} is counted by other settings: {reason}: give every process the same; `raingauge migrate` keeps new ones, when all are stopped"
    )]
    SettingsDiffer { place: String, reason: String },
    #[error("the TLS files cannot be used: {0}")]
    Tls(String),
    #[error("{0} cannot be the name of a keyspace: use letters, digits and _, at most 48")]
    Keyspace(String),
    #[error("a request failed: {0}")]
    Request(String),
    /// The cluster will reject the request however often it is repeated.
    #[error(
        "the cluster rejects a request permanently: {0}: check whether its tables or limits were changed"
    )]
    Rejected(String),
    #[error("what is stored cannot be read: {0}")]
    Corrupt(String),
}

impl Error {
    /// Whether repeating the request is useless.
    pub fn is_permanent(&self) -> bool {
        matches!(self, Self::Corrupt(_) | Self::Rejected(_))
    }
}

impl From<Error> for buckets::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Corrupt(reason) => Self::Corrupt(reason),
            other => Self::Io(other.to_string()),
        }
    }
}

impl From<Error> for maintenance::Error {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// A failed request, as one line.
pub fn request(error: impl std::fmt::Display) -> Error {
    Error::Request(error.to_string())
}

/// A failed statement: permanently, or until the cluster recovers.
pub fn execution(error: ExecutionError) -> Error {
    let is_rejected = match &error {
        ExecutionError::BadQuery(_) => true,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(kind, _)) => {
            matches!(kind, DbError::Invalid | DbError::SyntaxError | DbError::ConfigError)
        }
        ExecutionError::LastAttemptError(attempt) => matches!(
            attempt,
            RequestAttemptError::SerializationError(_)
                | RequestAttemptError::CqlRequestSerialization(_)
        ),
        _ => false,
    };
    if is_rejected { Error::Rejected(error.to_string()) } else { request(error) }
}

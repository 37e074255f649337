//! Databases of others, which lookups read.

use crate::BoxFuture;
use serde_json::{Map, Value as Json};
use std::time::Duration;

/// Why a database has not answered, in a sentence without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// There is no connection of this name, or the statement can never be run.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Failed(String),
    #[error("it did not answer within {0} ms")]
    Late(u64),
}

/// Named connections, which only read.
pub trait DatabaseLookup: Send + Sync {
    /// The names of the connections, sorted.
    fn connections(&self) -> Vec<String>;

    /// Runs a SELECT with the key as its one value. Returns the columns of the first row, or `None`
    /// without a row.
    fn row<'a>(
        &'a self,
        connection: &'a str,
        sql: &'a str,
        key: &'a str,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Option<Map<String, Json>>, DatabaseError>>;
}

//! Uploaded tables and segments: rows by key, for conditions and templates.

use crate::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value as Json};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Another load of the table has begun since, or has been switched to.
    #[error("another load of the table {0} has taken the place of this one: load it again")]
    Replaced(String),
    /// A limit of tables is exceeded.
    #[error("{0}")]
    TooLarge(String),
    #[error(
        "the disk of the tables has {free_bytes} bytes left, and the last {reserve_bytes} are kept in reserve: \
         make room on it"
    )]
    Full { free_bytes: u64, reserve_bytes: u64 },
    #[error("the tables are damaged: {0}")]
    Corrupt(String),
    #[error("the tables could not be read or written: {0}")]
    Io(String),
    #[error("the tables are in use by another raingauge: stop it, or ask it over HTTP")]
    Locked,
}

/// The columns of a row: texts, numbers or null. A segment has rows without columns.
pub type TableRow = Map<String, Json>;

/// A version of a table, as it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TableVersion {
    pub name: String,
    /// Grows with every load.
    pub version: u64,
    /// How many rows were loaded, repeated keys included. Changes of single rows are not.
    pub rows: u64,
    /// Milliseconds since 1970.
    pub loaded_ms: i64,
}

/// Reads tables. All keys of one call are answered by one version.
pub trait Tables: Send + Sync {
    /// Returns the tables that have been loaded, by name.
    fn list(&self) -> BoxFuture<'_, Result<Vec<TableVersion>, TableError>>;

    /// Returns the rows of keys, in their order. A table that was never loaded has none.
    fn get<'a>(
        &'a self,
        table: &'a str,
        keys: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Option<TableRow>>, TableError>>;
}

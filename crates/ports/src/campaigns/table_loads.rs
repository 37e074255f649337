//! Loads of tables: a whole version at a time, or single rows.

use super::tables::{TableError, TableRow, TableVersion};
use crate::BoxFuture;

/// A version that is being loaded, which answers nothing yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLoad {
    pub table: String,
    pub version: u64,
}

/// Changes tables. What a load adds becomes visible with [`finish`](TableLoads::finish), all of it
/// at once; rows of a process that ends before that are removed. Of two loads of one table, the
/// first to finish wins.
pub trait TableLoads: Send + Sync {
    /// Begins a load.
    fn begin<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<TableLoad, TableError>>;

    /// Adds rows to a load. A key that comes again replaces its row.
    fn add<'a>(
        &'a self,
        load: &'a TableLoad,
        rows: Vec<(String, TableRow)>,
    ) -> BoxFuture<'a, Result<(), TableError>>;

    /// Makes the rows of a load durable and switches to them. The version before is removed in the
    /// background.
    fn finish<'a>(
        &'a self,
        load: &'a TableLoad,
        loaded_ms: i64,
    ) -> BoxFuture<'a, Result<TableVersion, TableError>>;

    /// Gives a load up. Its rows are removed in the background.
    fn abandon<'a>(&'a self, load: &'a TableLoad) -> BoxFuture<'a, Result<(), TableError>>;

    /// Sets and removes single rows of the version that answers, durably and all at once. A table
    /// that was never loaded gets its first version.
    fn change<'a>(
        &'a self,
        table: &'a str,
        rows: Vec<(String, Option<TableRow>)>,
    ) -> BoxFuture<'a, Result<(), TableError>>;

    /// Removes a table with all its rows.
    fn remove<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<(), TableError>>;
}

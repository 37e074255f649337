//! The audit log: who did what.

use super::{Entry, Error, Filter};
use crate::BoxFuture;

/// The entries of the audit log.
pub trait AuditTrail: Send + Sync {
    /// Adds an entry to the audit log.
    fn record(&self, entry: Entry) -> BoxFuture<'_, Result<(), Error>>;

    /// Returns entries of the audit log, newest first.
    fn entries(&self, filter: Filter) -> BoxFuture<'_, Result<Vec<Entry>, Error>>;

    /// Removes the entries before this time.
    fn sweep_entries(&self, before_s: i64) -> BoxFuture<'_, Result<(), Error>>;
}

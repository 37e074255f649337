//! The books as doors read them.

use super::Error;
use crate::BoxFuture;
use raingauge_points::{BudgetId, Entry, Key, Points, Totals, Wallet, WalletId};
use std::sync::Arc;

/// An entry of the journal, if there is one.
pub type FoundEntry = Option<Arc<Entry>>;

/// Reads what is durable. Wallets are as their last entry left them: the caller settles them.
pub trait BookReader: Send + Sync {
    /// Returns wallets, in the order of their ids; `None` for one that was never seen.
    fn wallets(&self, ids: Vec<WalletId>) -> BoxFuture<'_, Result<Vec<Option<Wallet>>, Error>>;

    /// Returns at most `len_max` entries of a wallet, newest first, from the one before the member
    /// sequence `before` on.
    fn statement(
        &self,
        id: WalletId,
        before: Option<u64>,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<Entry>>, Error>>;

    /// Returns the last entry of a wallet that was recorded at or before a time, in milliseconds
    /// since 1970.
    fn as_of(&self, id: WalletId, at_ms: i64) -> BoxFuture<'_, Result<FoundEntry, Error>>;

    /// Returns the entry that has a key.
    fn by_key(&self, key: Key) -> BoxFuture<'_, Result<FoundEntry, Error>>;

    /// Returns an entry by its number in its book.
    fn entry(&self, book: u16, sequence: u64) -> BoxFuture<'_, Result<FoundEntry, Error>>;

    /// Returns the sums of a programme in each book.
    fn totals(&self, programme: Arc<str>) -> BoxFuture<'_, Result<Totals, Error>>;

    /// Returns what of budgets is used, in the order of their ids.
    fn budgets(&self, ids: Vec<BudgetId>) -> BoxFuture<'_, Result<Vec<Points>, Error>>;
}

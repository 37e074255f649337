//! The result cache: sums of ranges, kept for a while outside the bucket store. Losing it loses no
//! data.

use crate::BoxFuture;
use std::time::Duration;

#[derive(Clone, Debug, thiserror::Error)]
#[error("the result cache is out of reach: {0}")]
pub struct Error(pub String);

pub trait ResultCache: Send + Sync {
    /// Returns the values of these keys, in order; `None` for a missing one.
    fn get(&self, keys: Vec<String>) -> BoxFuture<'_, Result<Vec<Option<i64>>, Error>>;

    /// Stores values for `ttl`.
    fn put(&self, entries: Vec<(String, i64)>, ttl: Duration) -> BoxFuture<'_, Result<(), Error>>;
}

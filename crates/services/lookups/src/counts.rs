//! Counters, as lookups read them.

use raingauge_ports::BoxFuture;
use raingauge_ports::log::Offset;

/// A count that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterRange {
    /// A key of a counter, such as `orders:user:u-7`.
    pub key: String,
    /// From and until when, in seconds since 1970.
    pub range_s: (i64, i64),
}

/// What reads counts: the reader of this process.
pub trait Counts: Send + Sync {
    /// Returns counts in the order of the ranges, once counting has applied the log up to `after`.
    /// An error says in a sentence why there is none.
    fn counts<'a>(
        &'a self,
        ranges: &'a [CounterRange],
        after: Offset,
    ) -> BoxFuture<'a, Vec<Result<i64, String>>>;
}

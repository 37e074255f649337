//! The bucket store as readers use it.

use super::{Answer, Cell, Error, Generation, Largest, Query, Sum};
use crate::BoxFuture;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::tile::Overflow;

pub trait BucketReader: Send + Sync {
    /// Returns the sum of a range if everything it needs is in memory. Never waits for storage.
    fn sum_cached(&self, generation: Generation, key: &str, plan: &Plan) -> Option<Sum>;

    /// Returns the sums of many ranges of one key, under the same condition.
    fn sums_cached(
        &self,
        generation: Generation,
        key: &str,
        plans: &[Plan],
    ) -> Option<Result<Vec<i128>, Overflow>> {
        plans.iter().map(|plan| self.sum_cached(generation, key, plan)).collect()
    }

    /// Records the number of sums that were found in memory.
    fn note_hits(&self, _sums: usize) {}

    /// Returns the sums of many ranges, in order.
    fn sums(&self, queries: Vec<Query>) -> BoxFuture<'_, Vec<Result<i128, Error>>>;

    /// Returns the existing cells of a slice, ordered by time.
    fn cells(&self, generation: Generation, key: String, slice: Slice) -> Answer<'_, Vec<Cell>>;

    /// Returns the `len_max` keys with the largest sums over the whole days of a slice. Examines at
    /// most `scan_max` tiles, or as many as the store can read in a moment.
    fn largest_keys(
        &self,
        generation: Generation,
        slice: Slice,
        len_max: usize,
        scan_max: usize,
    ) -> Answer<'_, Largest>;
}

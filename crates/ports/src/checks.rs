//! Results of the self-audit: stored counts beside those recomputed from the log.

use crate::BoxFuture;
use crate::catalog::Error;
use raingauge_core::bucket::Granularity;
use serde::{Deserialize, Serialize};

/// Most checks that are stored; the oldest are removed first.
pub const CHECKS_KEPT: usize = 20_000;
/// Most differing buckets that are stored with a check.
pub const DIFFERENCES_KEPT: usize = 50;

raingauge_core::names! {
    /// The outcome of a check.
    #[derive(Hash)]
    pub enum Outcome {
        /// The stored counts equal those of the log.
        Equal = "equal",
        /// They differ: an operator has to investigate.
        Differs = "differs",
        /// The log does not reach back to any part of the range, so nothing could be compared.
        Uncovered = "uncovered",
        /// The check failed.
        Failed = "failed",
    }
}

/// A bucket whose stored count differs from that of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    pub granularity: Granularity,
    /// Start of the bucket, in seconds since 1970.
    pub time: i64,
    /// `None` when no bucket is stored.
    pub stored: Option<i64>,
    pub recounted: Option<i64>,
}

/// A key and a range that were counted again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Grows with each check; 0 until it is stored.
    pub id: i64,
    /// Seconds since 1970.
    pub at_s: i64,
    /// Who requested it; `raingauge` for scheduled checks.
    pub by: String,
    pub counter: u32,
    pub key: String,
    pub from_s: i64,
    pub to_s: i64,
    /// Nothing before this time was compared.
    pub compared_from_s: i64,
    pub outcome: Outcome,
    pub stored: i128,
    pub recounted: i128,
    /// Why the check failed or is incomplete; empty otherwise.
    pub detail: String,
    pub differences: Vec<Difference>,
}

/// Selects checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub outcome: Option<Outcome>,
    /// Only checks with smaller ids, for the next page.
    pub before: Option<i64>,
    pub len_max: usize,
}

/// The stored checks. They are in the database of the catalog and fail with it.
pub trait Checks: Send + Sync {
    /// Stores checks, and removes the oldest beyond `kept_max`.
    fn add(&self, checks: Vec<Check>, kept_max: usize) -> BoxFuture<'_, Result<(), Error>>;

    /// Returns checks, newest first.
    fn list(&self, selection: Selection) -> BoxFuture<'_, Result<Vec<Check>, Error>>;

    /// Returns the newest check of each key whose newest check differs, newest first: the
    /// differences that are still unresolved.
    fn differing(&self, len_max: usize) -> BoxFuture<'_, Result<Vec<Check>, Error>>;
}

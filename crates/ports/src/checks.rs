//! What the self-audit found: counts as they are stored, beside those that the log comes to.

use crate::BoxFuture;
use crate::catalog::Error;
use raingauge_core::bucket::Granularity;
use serde::{Deserialize, Serialize};

/// Checks that are kept; the oldest go first.
pub const CHECKS_KEPT: usize = 20_000;
/// Buckets of a check that are kept of those that differ.
pub const DIFFERENCES_KEPT: usize = 50;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// What is stored is what the log comes to.
    Equal,
    /// It is not: somebody has to look.
    Differs,
    /// The log does not reach back to any of it, so there was nothing to compare.
    Uncovered,
    /// The check could not be made.
    Failed,
}

impl Outcome {
    pub const ALL: [Self; 4] = [Self::Equal, Self::Differs, Self::Uncovered, Self::Failed];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Differs => "differs",
            Self::Uncovered => "uncovered",
            Self::Failed => "failed",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }
}

/// A bucket whose stored count is not the one of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    pub granularity: Granularity,
    /// Start of the bucket, in seconds since 1970.
    pub time: i64,
    /// Nothing where no bucket is stored.
    pub stored: Option<i64>,
    pub recounted: Option<i64>,
}

/// One key and range that was counted again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Grows with each check; 0 before it is kept.
    pub id: i64,
    /// Seconds since 1970.
    pub at_s: i64,
    /// Whose wish it was; `raingauge` of those that are made by themselves.
    pub by: String,
    pub counter: u32,
    pub key: String,
    pub from_s: i64,
    pub to_s: i64,
    /// What lies before this was not compared.
    pub compared_from_s: i64,
    pub outcome: Outcome,
    pub stored: i128,
    pub recounted: i128,
    /// Why it could not be made, or not wholly; empty when there is nothing to say.
    pub detail: String,
    pub differences: Vec<Difference>,
}

/// Which checks are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub outcome: Option<Outcome>,
    /// Those with smaller ids, to read on.
    pub before: Option<i64>,
    pub len_max: usize,
}

/// The checks that were made. They lie in the database of the catalog, and fail as it does.
pub trait Checks: Send + Sync {
    /// Keeps checks, and lets go of the oldest beyond `kept_max`.
    fn add(&self, checks: Vec<Check>, kept_max: usize) -> BoxFuture<'_, Result<(), Error>>;

    /// The newest first.
    fn list(&self, wanted: Wanted) -> BoxFuture<'_, Result<Vec<Check>, Error>>;

    /// The newest check of each key whose newest check differs, the newest first: what is wrong by
    /// the state of knowledge.
    fn differing(&self, len_max: usize) -> BoxFuture<'_, Result<Vec<Check>, Error>>;
}

//! Guarded rollouts of the cache: the one that is running, and those that have ended.

use crate::BoxFuture;
use raingauge_policy::rollout::Rollout;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no rollout {0}")]
    NotFound(u64),
    /// Only one rollout runs at a time: two would move the same counters.
    #[error("rollout {0} is running: wait for its end, or stop it")]
    Running(u64),
    /// Another change was made first.
    #[error("rollout {id} has changed since you looked at it: look at it again")]
    RevisionMismatch { id: u64, current: u32 },
    #[error("the catalog is out of reach: {0}")]
    Unavailable(String),
}

/// A stored rollout. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// 0 until it is stored.
    pub id: u64,
    /// Grows by one with each change.
    pub revision: u32,
    pub started_at: i64,
    pub started_by: String,
    pub reason: String,
    /// `None` while it runs.
    pub ended_at: Option<i64>,
    /// The process that conducts the rollout, by its unique name. Each beat changes the run and so
    /// keeps it alive: a run without changes has lost its conductor, and any process may take it
    /// over.
    pub conductor: String,
    pub rollout: Rollout,
}

/// The rollouts. They are in the database of the catalog, like the policy that they set.
pub trait Rollouts: Send + Sync {
    /// Stores a new rollout under a new id, at revision 1. Refused while another one runs.
    fn begin(&self, run: Run) -> BoxFuture<'_, Result<Run, Error>>;

    /// Replaces the rollout that is at the revision of `run`, and moves it to the next revision.
    fn replace(&self, run: Run) -> BoxFuture<'_, Result<Run, Error>>;

    fn get(&self, id: u64) -> BoxFuture<'_, Result<Run, Error>>;

    /// Returns at most `len_max` rollouts, newest first. A running one is the newest.
    fn list(&self, len_max: usize) -> BoxFuture<'_, Result<Vec<Run>, Error>>;

    /// Returns the running rollout.
    fn running(&self) -> BoxFuture<'_, Result<Option<Run>, Error>>;
}

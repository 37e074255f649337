//! Guarded rollouts of the cache: the one that runs, and those that have ended.

use crate::BoxFuture;
use raingauge_policy::rollout::Rollout;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no rollout {0}")]
    NotFound(u64),
    /// One runs at a time: two would move the same counters.
    #[error("rollout {0} is running: wait for its end, or stop it")]
    Running(u64),
    /// Somebody else changed it in the meantime.
    #[error("rollout {id} has gone on meanwhile: look at it again")]
    RevisionMismatch { id: u64, current: u32 },
    #[error("the catalog is out of reach: {0}")]
    Unavailable(String),
}

/// A rollout as it is kept. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// 0 before it is kept.
    pub id: u64,
    /// Grows by one with each change.
    pub revision: u32,
    pub started_at: i64,
    pub started_by: String,
    pub reason: String,
    /// Nothing while it runs.
    pub ended_at: Option<i64>,
    /// The process that conducts it, by the name that no other process has. With each beat it
    /// changes the run, and so keeps it: a run that nobody changes has lost its conductor, and
    /// anybody may take it over.
    pub conductor: String,
    pub rollout: Rollout,
}

/// The rollouts. They lie in the database of the catalog, as the policy that they set does.
pub trait Rollouts: Send + Sync {
    /// Keeps a new one under an id of its own, at revision 1. Refused while another one runs.
    fn begin(&self, run: Run) -> BoxFuture<'_, Result<Run, Error>>;

    /// Replaces the one that is at the revision of `run`; it is at the next one then.
    fn replace(&self, run: Run) -> BoxFuture<'_, Result<Run, Error>>;

    fn get(&self, id: u64) -> BoxFuture<'_, Result<Run, Error>>;

    /// The newest so many, newest first. One that runs is the newest.
    fn list(&self, len_max: usize) -> BoxFuture<'_, Result<Vec<Run>, Error>>;

    /// The one that runs.
    fn running(&self) -> BoxFuture<'_, Result<Option<Run>, Error>>;
}

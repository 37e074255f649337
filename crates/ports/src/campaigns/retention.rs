//! How long the ledger remembers.

use super::{Error, StateKind};

/// What may be forgotten. Times are in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Horizons {
    /// Decisions made before this, with their evidence.
    pub decisions_before_ms: i64,
    /// Ids of actions granted before this: an event that comes back later may act again.
    pub actions_before_ms: i64,
    /// Deliveries that ended before this, with their bodies. Dead ones have not ended.
    pub deliveries_before_ms: i64,
}

/// Called by the worker of the partition, between commits.
pub trait LedgerRetention: Send + Sync {
    /// Forgets what lies before the horizons, examining about `scan_max` records of each kind.
    /// Returns how many it forgot. Later calls continue where this one stopped. Ids of actions
    /// outlive their decisions, so decisions before the horizon of actions are forgotten as well.
    fn expire(&self, horizons: Horizons, scan_max: usize) -> Result<usize, Error>;

    /// Removes at most `len_max` states of an owner that no commit reads or writes any more.
    /// Returns how many; fewer than `len_max` are the last ones.
    fn remove_states(&self, kind: StateKind, owner: u128, len_max: usize) -> Result<usize, Error>;
}

//! Erasing what the ledger has about one subject.

use super::Error;

/// How many records were erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedRecords {
    pub states: usize,
    pub decisions: usize,
    /// With their bodies.
    pub deliveries: usize,
}

/// Called by the worker of the partition, between commits.
pub trait LedgerErasure: Send + Sync {
    /// Erases the states, decisions and deliveries of a subject in all campaigns, durably. The
    /// whole ledger is searched, so it may take seconds. After a call that was cut short, another
    /// one erases the rest.
    ///
    /// Ids of granted actions stay, so that no event acts twice. Budgets stay as well: what a
    /// pending, held or dead delivery has reserved is returned as if it were cancelled, and what
    /// one that is being sent has reserved counts as spent. Timers are left to the worker, which
    /// knows what they hold.
    fn erase(&self, subject: &str) -> Result<ErasedRecords, Error>;
}

//! Subjects that are erased.

use super::Worker;
use crate::error::Error;
use raingauge_ports::campaigns::ErasedRecords;

impl Worker {
    /// Erases what the ledger has about subjects. Everything before the entries that say so is
    /// decided; if the process ends before the position is behind them, this is done again.
    pub(super) fn erase(&self, subjects: &[String]) -> Result<(), Error> {
        for subject in subjects {
            let ErasedRecords { states, decisions, deliveries } =
                self.deps.erasure.erase(subject)?;
            tracing::info!(states, decisions, deliveries, "a subject of campaigns is erased");
        }
        Ok(())
    }
}

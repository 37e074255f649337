//! Removing states that nobody reads any more: those of tallies that were given up, and the marks
//! of erasures that the log has outlived.

use super::Worker;
use crate::control::Control;
use crate::error::Error;
use raingauge_campaigns::states::StateKind;

/// States that one turn removes.
const REMOVED_MAX: usize = 1_000;

impl Worker {
    /// Removes some of them, while there are any.
    pub(super) fn remove_obsolete(&mut self) -> Result<(), Error> {
        if let Some(owner) = self.control.obsolete.first().copied() {
            if self.remove_states(StateKind::Tally, owner.0)? {
                let mut control = Control::clone(&self.control);
                control.obsolete.remove(&owner);
                self.commit_control(control)?;
            }
            return Ok(());
        }

        // Marks that hide events are needed as long as the log has such events.
        let until = self.control.erased_until;
        let is_outlived = until > 0 && self.deps.log.start() >= until;
        if is_outlived && self.remove_states(StateKind::Erasure, 0)? {
            let mut control = Control::clone(&self.control);
            control.erased_until = 0;
            self.commit_control(control)?;
        }
        Ok(())
    }

    /// Answers whether all are gone.
    fn remove_states(&self, kind: StateKind, owner: u128) -> Result<bool, Error> {
        let removed = self.deps.retention.remove_states(kind, owner, REMOVED_MAX)?;
        Ok(removed < REMOVED_MAX)
    }
}

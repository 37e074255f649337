//! Applies a longer retention to what is stored already: a store whose buckets expire on their own
//! has stored them with the shorter lifetime.

use super::upkeep::Prolonging;
use super::{Error, Worker};
use std::time::{Duration, Instant};

/// Delay before a retry after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

impl Worker {
    /// Does a little work for a counter whose retention was raised. Returns whether there is more
    /// to do at once.
    pub(super) fn prolong_some(&mut self) -> Result<bool, Error> {
        let begun = match self.upkeep.prolonging.take() {
            Some(begun) => Some(begun),
            None => self.begin_prolonging()?,
        };
        let Some(mut prolonging) = begun else {
            return Ok(false);
        };

        if let Some(generation) = prolonging.generations.last() {
            let before = prolonging.cursor.clone();
            let prolonged =
                self.store.prolong(*generation, &prolonging.horizons, &mut prolonging.cursor);
            if let Err(error) = prolonged {
                let counter = prolonging.counter;
                tracing::warn!(%error, counter, "counts could not be given the longer retention; it is tried again");
                self.upkeep.prolong_failed = Some(Instant::now());
                return Ok(false);
            }

            let is_waiting = prolonging.cursor.is_some() && prolonging.cursor == before;
            if prolonging.cursor.is_none() {
                prolonging.generations.pop();
            }
            self.upkeep.prolonging = Some(prolonging);
            return Ok(!is_waiting);
        }

        self.end_prolonging(&prolonging);
        Ok(true)
    }

    fn begin_prolonging(&mut self) -> Result<Option<Prolonging>, Error> {
        if self.upkeep.prolong_failed.is_some_and(|failed| failed.elapsed() < RETRY_INTERVAL) {
            return Ok(None);
        }
        let waiting = self.state.counters.iter().find(|(_, state)| state.is_kept_longer);
        let Some((counter, state)) = waiting else {
            return Ok(None);
        };
        let prolonging = Prolonging {
            counter: *counter,
            version: state.version,
            // By the time of the log, like every write.
            horizons: state.counter.retention_days.horizons(self.stamp_us.div_euclid(1_000_000)),
            generations: state.parts.iter().map(|part| part.generation).collect(),
            cursor: None,
        };

        // The walk then finds everything that is stored, and overwrites nothing newer.
        self.commit()?;
        Ok(Some(prolonging))
    }

    fn end_prolonging(&mut self, ended: &Prolonging) {
        let counter = self.state.counters.get_mut(&ended.counter);
        // A counter that has changed since is walked through again.
        if let Some(state) = counter.filter(|state| state.version == ended.version) {
            state.is_kept_longer = false;
            self.state_changed = true;
        }
    }
}

//! A longer retention reaches what is stored already: a store whose buckets go by themselves has
//! given them the time of the shorter one.

use super::{Error, Worker};
use raingauge_core::retention::Horizons;
use raingauge_ports::buckets::Generation;
use std::time::{Duration, Instant};

/// How long after a failure it is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// A walk through the counts of one counter.
pub struct Prolonging {
    counter: u32,
    /// The version of the counter whose retention is applied.
    version: u32,
    horizons: Horizons,
    /// Generations that are left, the last one first.
    generations: Vec<Generation>,
    cursor: Option<Vec<u8>>,
}

impl Worker {
    /// Does a little for a counter that is kept longer than before. Answers whether there is more
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
            // By the time of the log, as everything that is written.
            horizons: state.counter.retention_days.horizons(self.stamp_us.div_euclid(1_000_000)),
            generations: state.parts.iter().map(|part| part.generation).collect(),
            cursor: None,
        };

        // The walk finds what is stored, and writes over nothing that is newer.
        self.commit()?;
        Ok(Some(prolonging))
    }

    fn end_prolonging(&mut self, ended: &Prolonging) {
        let counter = self.state.counters.get_mut(&ended.counter);
        // A counter that was changed since is walked through again.
        if let Some(state) = counter.filter(|state| state.version == ended.version) {
            state.is_kept_longer = false;
            self.state_changed = true;
        }
    }
}

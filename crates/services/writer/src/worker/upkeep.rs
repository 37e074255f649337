//! The worker's work besides counting: it trims the log, reports on the consumers of the log, and
//! removes expired buckets.

use super::{Error, Worker};
use crate::state::Part;
use raingauge_core::retention::Horizons;
use raingauge_ports::buckets::Generation;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Interval between reports on the consumers of the log.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);
/// Interval at which the log is trimmed and expired buckets are searched.
const TRIM_INTERVAL: Duration = Duration::from_secs(60);
const EXPIRE_INTERVAL: Duration = Duration::from_secs(3_600);
/// Tiles that a sweep reads before the worker returns to live events.
const SCAN_TILES: usize = 2_000;

#[derive(Default)]
pub struct Upkeep {
    reported: Option<Instant>,
    pub(super) trimmed: Option<Instant>,
    pub(super) expired: Option<Instant>,
    sweeps: VecDeque<Sweep>,
    /// The horizons up to which each generation was last swept. They move once a day, and a sweep
    /// reads every tile.
    swept: HashMap<Generation, Horizons>,
    pub(super) prolonging: Option<Prolonging>,
    /// When prolonging last failed.
    pub(super) prolong_failed: Option<Instant>,
}

impl Upkeep {
    /// Forgets a generation that is gone, since its number may be used again.
    pub(super) fn forget(&mut self, generation: Generation) {
        self.swept.remove(&generation);
    }

    /// Whether a generation still has to be swept.
    pub(super) fn is_sweeping(&self) -> bool {
        !self.sweeps.is_empty()
    }
}

/// A walk through the counts of one counter, whose retention was raised.
pub struct Prolonging {
    pub(super) counter: u32,
    /// The version of the counter whose retention is applied.
    pub(super) version: u32,
    pub(super) horizons: Horizons,
    /// Remaining generations, the last one first.
    pub(super) generations: Vec<Generation>,
    pub(super) cursor: Option<Vec<u8>>,
}

/// A walk through the tiles of one generation.
struct Sweep {
    generation: Generation,
    horizons: Horizons,
    cursor: Option<Vec<u8>>,
}

impl Worker {
    /// Does a little of what is due. Returns whether there is more.
    pub(super) fn keep_up(&mut self) -> Result<bool, Error> {
        if is_due(&mut self.upkeep.trimmed, TRIM_INTERVAL) {
            self.trim();
        }

        if self.options.tells_lag && is_due(&mut self.upkeep.reported, REPORT_INTERVAL) {
            self.options.consumers.report(&*self.log, self.clock.now_ms());
        }

        if self.upkeep.sweeps.is_empty() && is_due(&mut self.upkeep.expired, EXPIRE_INTERVAL) {
            self.sweep_expired();
        }

        // A store does one of these at a time, and prolonging is urgent.
        let is_busy = self.prolong_some()?;
        if self.upkeep.prolonging.is_some() {
            return Ok(is_busy);
        }

        let is_sweeping = self.sweep_some()?;
        Ok(is_busy || is_sweeping)
    }

    /// Removes some expired buckets. Returns whether there are more.
    fn sweep_some(&mut self) -> Result<bool, Error> {
        let Some(mut sweep) = self.upkeep.sweeps.pop_front() else {
            return Ok(false);
        };
        let before = sweep.cursor.clone();
        let expired =
            self.store.expire(sweep.generation, &sweep.horizons, &mut sweep.cursor, SCAN_TILES);

        // A server is still working on it; the next call asks again.
        let is_waiting = sweep.cursor.is_some() && sweep.cursor == before;
        if let Err(error) = expired {
            tracing::warn!(
                %error,
                generation = sweep.generation,
                "expired counts could not be removed; it is tried again"
            );
        } else if sweep.cursor.is_some() {
            self.upkeep.sweeps.push_front(sweep);
        } else {
            self.upkeep.swept.insert(sweep.generation, sweep.horizons);
        }

        if self.store.wants_commit() {
            self.commit()?;
        }
        Ok(!is_waiting && self.upkeep.is_sweeping())
    }

    /// Trims the log before the first entry that a consumer still needs.
    fn trim(&mut self) {
        // After a crash the worker goes back to the checkpoint, and backfills that began after it
        // must be able to continue.
        self.place.need_history(Some(self.needs_log_from().min(self.needed_from)));
        let needs = self.options.consumers.needs(self.log.partition());
        if let Err(error) = self.log.trim(needs) {
            tracing::warn!(
                %error,
                "the event log could not be trimmed; it is tried again in a minute"
            );
        }
    }

    /// Begins to sweep what has expired by the time of the log: a change that was appended before
    /// now, and is not applied yet, may keep a counter's buckets longer.
    pub(super) fn sweep_expired(&mut self) {
        if !self.clock.is_sound() {
            return;
        }
        let now_s = self.clock.now_s();
        let now_s = if self.position < self.log.end() { self.applied_s } else { now_s };
        let Upkeep { sweeps, swept, .. } = &mut self.upkeep;

        for state in self.state.counters.values() {
            let horizons = state.counter.retention_days.horizons(now_s);
            let is_new = |part: &&Part| swept.get(&part.generation) != Some(&horizons);

            if horizons.quarter_s > 0 {
                let sweep =
                    |part: &Part| Sweep { generation: part.generation, horizons, cursor: None };
                sweeps.extend(state.parts.iter().filter(is_new).map(sweep));
            }
        }
    }
}

/// Whether an interval has passed since the last time this was true.
fn is_due(last: &mut Option<Instant>, interval: Duration) -> bool {
    let due = last.is_none_or(|last| last.elapsed() >= interval);
    if due {
        *last = Some(Instant::now());
    }
    due
}

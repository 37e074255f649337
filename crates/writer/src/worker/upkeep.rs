//! What the worker does beside counting: trimming the log, removing what has expired and generations that were replaced.

use super::{Error, Worker};
use raingauge_core::retention::Horizons;
use raingauge_ports::buckets::Generation;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How often the log is trimmed and expired buckets are looked for.
const TRIM_INTERVAL: Duration = Duration::from_secs(60);
const EXPIRE_INTERVAL: Duration = Duration::from_secs(3_600);
/// Tiles that are looked at before the live events have their turn.
const SCAN_TILES: usize = 2_000;
/// Nothing of a retired generation is kept.
const NOTHING: Horizons = Horizons { quarter_s: i64::MAX, hour_s: i64::MAX, day_s: i64::MAX };

#[derive(Default)]
pub struct Upkeep {
    trimmed: Option<Instant>,
    looked: Option<Instant>,
    sweeps: VecDeque<Sweep>,
}

/// A walk through the tiles of one generation.
struct Sweep {
    generation: Generation,
    horizons: Horizons,
    cursor: Option<Vec<u8>>,
}

impl Worker {
    /// Does a little of what is due. Answers whether there is more.
    pub(super) fn keep_up(&mut self) -> Result<bool, Error> {
        if is_due(&mut self.upkeep.trimmed, TRIM_INTERVAL) {
            self.log.trim(self.state.needs_log_from(self.committed))?;
        }
        if self.upkeep.sweeps.is_empty()
            && (is_due(&mut self.upkeep.looked, EXPIRE_INTERVAL) || !self.state.retired.is_empty())
        {
            self.plan_sweeps();
        }
        let Some(mut sweep) = self.upkeep.sweeps.pop_front() else { return Ok(false) };
        self.store.expire(sweep.generation, &sweep.horizons, &mut sweep.cursor, SCAN_TILES)?;
        if sweep.cursor.is_some() {
            self.upkeep.sweeps.push_front(sweep);
        } else if sweep.horizons == NOTHING {
            self.state.retired.retain(|generation| *generation != sweep.generation);
            self.state_changed = true;
        }
        if self.store.wants_commit() {
            self.commit()?;
        }
        Ok(!self.upkeep.sweeps.is_empty())
    }

    fn plan_sweeps(&mut self) {
        let now_s = self.clock.now_s();
        let sweep = |generation, horizons| Sweep { generation, horizons, cursor: None };
        for state in self.state.counters.values() {
            let horizons = state.counter.retention_days.horizons(now_s);
            if horizons.quarter_s > 0 {
                self.upkeep.sweeps.extend(state.parts.iter().map(|part| sweep(part.generation, horizons)));
            }
        }
        // What a cancelled backfill changed in memory has to be on disk before a walk over the disk can find it.
        if !self.state.retired.is_empty() && self.commit().is_ok() {
            self.upkeep.sweeps.extend(self.state.retired.iter().map(|generation| sweep(*generation, NOTHING)));
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

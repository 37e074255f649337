//! Backfills: the counts of one counter, made again from the log into a generation of their own.
//!
//! A backfill reads the log behind the worker, a little between the live blocks, and remembers its position in the same
//! checkpoint as the tiles. When it has caught up with the worker its generation answers: what it holds is what the
//! worker would have counted, had the counter always been as it is.

use super::{Error, Worker};
use crate::state::{Control, CounterState, counting};
use raingauge_core::ruleset::{Ruleset, Scratch};
use raingauge_ports::buckets::{Added, Generation};
use raingauge_ports::log::{self, Block, Offset};
use raingauge_ports::record::Entry;

/// Bytes of the log that a backfill reads before the live events have their turn.
const STEP_BYTES: usize = 512 << 10;

impl Worker {
    /// Goes on with each running backfill a little. Answers whether there was any.
    pub(super) fn backfill_some(&mut self) -> Result<bool, Error> {
        let running = self.state.running();
        for id in &running {
            self.step_backfill(*id)?;
        }
        Ok(!running.is_empty())
    }

    fn step_backfill(&mut self, id: u32) -> Result<(), Error> {
        let Some(backfill) = self.state.counters.get_mut(&id).and_then(CounterState::running_backfill) else {
            return Ok(());
        };
        let (position, generation, after_s) = (backfill.position, backfill.generation, backfill.after_s);
        self.store.stamp_from(backfill.stamp_base_us);
        if position >= self.position {
            self.state.finish_backfill(id, self.clock.now_s());
            (self.state_changed, self.unpublished) = (true, true);
            self.publish();
            tracing::info!(counter = id, "a backfill has caught up, and answers from now on");
            return self.commit();
        }
        let blocks = match self.log.read(position, STEP_BYTES) {
            Err(log::Error::Trimmed { start, .. }) if start > position => {
                self.pass_over_trimmed(id, start, after_s);
                return Ok(());
            }
            blocks => blocks?,
        };
        let ruleset = Ruleset::new([counting(&self.state.counters[&id].counter)]);
        let (mut counted, mut end) = (0, position);
        for block in blocks {
            if block.end() > self.position {
                break;
            }
            counted += self.backfill_block(&ruleset, generation, after_s, &block, position)?;
            end = block.end();
            if self.store.wants_commit() {
                break;
            }
        }
        if let Some(backfill) = self.state.counters.get_mut(&id).and_then(CounterState::running_backfill) {
            backfill.position = end;
            backfill.counted += counted;
            let progress = backfill.clone();
            if let Some(shown) = self.shown.lock().counters.get_mut(&id) {
                shown.backfill = Some(progress);
            }
        }
        self.state_changed = true;
        if self.store.wants_commit() {
            self.commit()?;
        }
        Ok(())
    }

    /// The log was trimmed while a backfill read it: it goes on where the log begins now, unless that has dropped some of
    /// what it is to count.
    fn pass_over_trimmed(&mut self, id: u32, start: Offset, after_s: i64) {
        let is_covered = crate::history::covered_from_s(&*self.log, self.options.future_allowance_s) <= after_s;
        if !is_covered {
            tracing::warn!(counter = id, "a backfill is given up: the log has dropped what it was to count");
            self.state.cancel_backfill(id, self.clock.now_s());
        } else if let Some(backfill) = self.state.counters.get_mut(&id).and_then(CounterState::running_backfill) {
            backfill.position = start.min(self.position);
        }
        (self.state_changed, self.unpublished) = (true, true);
        self.publish();
    }

    /// Counts a block for one counter. Answers how many events were counted.
    fn backfill_block(
        &self,
        ruleset: &Ruleset,
        generation: Generation,
        after_s: i64,
        block: &Block,
        from: u64,
    ) -> Result<u64, Error> {
        let Some(rule) = ruleset.rules().first() else { return Ok(0) };
        let horizons = rule.horizons(block.appended_ms.div_euclid(1_000));
        let (mut scratch, mut counted, mut failure) = (Scratch::default(), 0, None);
        for entry in block.entries(from) {
            let (offset, entry) = entry?;
            match entry {
                Entry::Event(event) if event.time_s() >= after_s && rule.counter.listens_to(&event) => {
                    let time_s = event.time_s();
                    let count = |_, key: &str, value| match self.store.add(
                        generation,
                        key,
                        Added { offset, time_s, value },
                        &horizons,
                    ) {
                        Ok(()) => counted += 1,
                        Err(error) => failure = Some(error),
                    };
                    ruleset.apply(&event, &mut scratch, count, |_, _| {});
                }
                Entry::Event(_) | Entry::Void => {}
                Entry::Control(payload) => {
                    if let Ok(Control::Buckets { buckets }) = serde_json::from_slice(payload) {
                        let mine = buckets.iter().filter(|bucket| bucket.time >= after_s);
                        for bucket in mine.filter(|bucket| rule.template().matches(&bucket.key)) {
                            self.store.set(generation, &bucket.key, offset, bucket.cell())?;
                        }
                    }
                }
            }
        }
        failure.map_or(Ok(counted), |error| Err(error.into()))
    }
}

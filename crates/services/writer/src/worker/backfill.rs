//! Backfills: the counts of one counter, recounted from the log into a generation of their own.
//!
//! A backfill reads the log behind the worker, a little between the live blocks. Entries before the
//! one that began it are counted by the configuration that it began with, later ones by the
//! configurations in force at them. When it has caught up with the worker, its generation is
//! counted together with the one that answers, and answers from the entry on that switches to it.
//! One backfill is filled at a time; the others wait.

use super::{Error, Worker, first_stamp};
use crate::control::Control;
use crate::state::{Backfill, Phase, Progress, RuleSince};
use raingauge_core::ruleset::{Ruleset, Scratch};
use raingauge_ports::buckets::{self, Addition, GENERATIONS_PER_COUNTER, Generation};
use raingauge_ports::log::{self, Block, Offset};
use raingauge_ports::record::Entry;

/// Bytes of the log that a backfill reads before the worker returns to live events.
const STEP_BYTES: usize = 512 << 10;
/// Reason of a backfill that failed because the log was trimmed.
const DROPPED: &str = "the log has dropped what it was to count";

/// The compiled rules of a backfill.
struct Rules {
    generation: Generation,
    after_s: i64,
    /// The configurations with the offsets from which they count; `None` for one that neither
    /// counts nor answers.
    since: Vec<(Offset, Option<Ruleset>)>,
}

impl Worker {
    /// Continues the backfill at the head of the queue a little. Returns whether there was anything
    /// to do.
    pub(super) fn backfill_some(&mut self) -> Result<bool, Error> {
        let Some(fill) = self.fill.as_ref().filter(|fill| fill.phase == Phase::Filling) else {
            return Ok(false);
        };
        if fill.position >= self.position {
            self.note_fill(|fill| fill.phase = Phase::Filled);
            tracing::info!(
                counter = self.fill.as_ref().map(|fill| fill.counter),
                "a backfill has caught up here"
            );
            self.unpublished = true;
            self.publish();
            self.commit()?;
            return Ok(true);
        }

        self.fill_to(self.position)?;

        if self.store.wants_commit() {
            self.commit()?;
        }
        Ok(true)
    }

    /// Switches to a generation that every partition has filled. The worker first reads what it has
    /// not read of it: after a pause or a restart it may be behind its predecessor.
    pub(super) fn switch(
        &mut self,
        counter: u32,
        number: u32,
        offset: Offset,
    ) -> Result<(), Error> {
        if !self.state.is_front(counter, number) {
            return Ok(());
        }

        let is_missing = |fill: &Progress| fill.phase != Phase::Filled && fill.position < offset;
        while self.fill.as_ref().is_some_and(is_missing) {
            self.fill_to(offset)?;
            if let Some(Progress { phase: Phase::Failed, reason, .. }) = &self.fill {
                return Err(Error::State(format!(
                    "counter {counter} cannot be switched to its backfill: {reason}"
                )));
            }
        }

        if let Some(fill) = self.fill.take() {
            self.put_in_record(&fill);
        }
        self.state.switch(counter, number, self.applied_s);
        tracing::info!(counter, number, "a backfill answers from now on");

        Ok(())
    }

    /// Records in the state how much a backfill has read, which is shown after its end.
    fn put_in_record(&mut self, fill: &Progress) {
        let state = self.state.counters.get_mut(&fill.counter);
        let backfill = state.and_then(|state| state.backfill.as_mut());
        if let Some(backfill) = backfill.filter(|backfill| backfill.number == fill.number) {
            *backfill = fill.shown_in(backfill);
        }
    }

    /// Starts the backfill that is now at the head of the queue: where it was left, or at the
    /// beginning of the log.
    pub(super) fn take_up_fill(&mut self) {
        if let Some(fill) =
            self.fill.take_if(|fill| !self.state.is_front(fill.counter, fill.number))
        {
            self.put_in_record(&fill);
        }

        let Some((counter, backfill)) = self.state.front() else {
            return;
        };
        if self.fill.as_ref().is_some_and(|fill| fill.begun == self.state.begun) {
            return;
        }

        let begun = self.state.begun;
        let stored = self
            .stored_fill
            .take_if(|fill| fill.begun == begun && fill.is_of(counter, backfill.number));
        let fill = stored.unwrap_or_else(|| self.new_fill(counter, backfill));

        // Entries behind the last commit are read again.
        let phase = if fill.phase == Phase::Failed { Phase::Failed } else { Phase::Filling };
        self.fill = Some(Progress { phase, ..fill });
        self.fill_changed = true;
    }

    fn new_fill(&self, counter: u32, backfill: &Backfill) -> Progress {
        let is_covered = self.covers(backfill.after_s);

        // Folders of the first versions kept it in the state.
        let (from, position) = match backfill.position {
            0 => (self.log.start(), self.log.start()),
            position => (backfill.from, position),
        };
        Progress {
            begun: self.state.begun,
            counter,
            number: backfill.number,
            from,
            position,
            counted: backfill.counted,
            stamp_us: backfill.stamp_base_us + backfill.begun as i64,
            phase: if is_covered { Phase::Filling } else { Phase::Failed },
            reason: if is_covered { String::new() } else { DROPPED.to_owned() },
        }
    }

    fn covers(&self, after_s: i64) -> bool {
        crate::history::covered_from_s(&*self.log, self.options.future_allowance_s) <= after_s
    }

    /// Returns the offset from which the log is still needed.
    pub(super) fn needs_log_from(&self) -> Offset {
        match &self.fill {
            // Waiting backfills begin at the start of the log.
            Some(_) if self.state.queue.len() > 1 => 0,
            Some(fill) if fill.phase == Phase::Filling => fill.position.min(self.position),
            _ => self.position,
        }
    }

    /// Returns the progress for the next commit: a filled generation includes everything that is
    /// applied.
    pub(super) fn progress_to_store(&mut self) -> Option<buckets::Progress> {
        let fill = self.fill.as_mut()?;
        if fill.phase == Phase::Filled {
            fill.position = self.position;
            fill.stamp_us = self.stamp_us;
        }
        Some(fill.stored())
    }

    fn note_fill(&mut self, change: impl FnOnce(&mut Progress)) {
        if let Some(fill) = &mut self.fill {
            change(fill);
            self.fill_changed = true;
            self.shown.lock().progress = Some(fill.clone());
        }
    }

    /// Reads a little of the log, up to `until` at most, and counts it.
    fn fill_to(&mut self, until: Offset) -> Result<(), Error> {
        let Some((fill, (_, backfill))) = self.fill.clone().zip(self.state.front()) else {
            return Ok(());
        };
        let backfill = backfill.clone();
        let rules = Rules::new(&backfill);
        let blocks = match self.log.read_behind(fill.position, STEP_BYTES) {
            Ok(blocks) => blocks,
            Err(error) => {
                self.meet(error, backfill.after_s);
                return Ok(());
            }
        };

        let mut next = fill;
        if blocks.first().is_some_and(|block| block.base >= until) {
            // There are no entries of these offsets.
            next.position = until;
        }

        for block in blocks.iter().take_while(|block| block.base < until) {
            if let Err(error) = self.fill_block(&rules, &backfill, block, until, &mut next) {
                let Error::Log(error) = error else {
                    return Err(error);
                };
                self.meet(error, backfill.after_s);
                return Ok(());
            }
            if self.store.wants_commit() {
                break;
            }
        }

        self.note_fill(|fill| *fill = next);
        Ok(())
    }

    /// Handles an error of the log. After a trim, reading continues at the log's new start, unless
    /// the log has dropped entries of the time that the backfill covers; any other error ends the
    /// backfill, and nothing else.
    fn meet(&mut self, error: log::Error, after_s: i64) {
        match error {
            log::Error::Trimmed { start, .. } if self.covers(after_s) => {
                let position = self.position;
                self.note_fill(|fill| fill.position = start.max(fill.position).min(position));
            }
            log::Error::Trimmed { .. } => self.give_up_fill(DROPPED.to_owned()),
            error => self.give_up_fill(format!("the log cannot be read: {error}")),
        }
    }

    fn give_up_fill(&mut self, reason: String) {
        tracing::warn!(
            counter = self.fill.as_ref().map(|fill| fill.counter),
            reason,
            "a backfill is given up"
        );
        self.note_fill(|fill| {
            fill.phase = Phase::Failed;
            fill.reason = reason;
        });
    }

    /// Counts the entries of a block before `until` that are not counted yet.
    fn fill_block(
        &self,
        rules: &Rules,
        backfill: &Backfill,
        block: &Block,
        until: Offset,
        fill: &mut Progress,
    ) -> Result<(), Error> {
        let from = fill.position.max(block.base);
        let end = block.end().min(until);

        // After the entry that began the backfill, stamps are those of the live events.
        let stamp_base_us = if from <= backfill.begun {
            backfill.stamp_base_us
        } else {
            first_stamp(fill.stamp_us, block.appended_ms) - from as i64
        };

        self.store.stamp_from(stamp_base_us);
        fill.counted += self.count_block(rules, block, from, end)?;
        fill.position = end;

        if end > backfill.begun {
            fill.stamp_us = stamp_base_us + end as i64 - 1;
        }
        Ok(())
    }

    /// Counts the entries of `[from, end)` of a block. Returns how many events were counted.
    fn count_block(
        &self,
        rules: &Rules,
        block: &Block,
        from: Offset,
        end: Offset,
    ) -> Result<u64, Error> {
        let mut scratch = Scratch::default();
        let mut counted = 0;
        for entry in block.entries(from) {
            let (offset, entry) = entry?;
            if offset >= end {
                break;
            }

            let event = match entry {
                Entry::Event(event) => event,
                Entry::Control(payload) => {
                    self.refill_by(rules, payload, offset)?;
                    continue;
                }
                Entry::Void => continue,
            };

            let Some(ruleset) = rules.at(offset) else {
                continue;
            };
            let Some(rule) = ruleset.rules().first() else {
                continue;
            };
            let time_s = event.time_s();
            if time_s < rules.after_s || !rule.counter.listens_to(&event) {
                continue;
            }

            let horizons = rule.horizons(block.appended_ms.div_euclid(1_000));
            let mut failure = None;
            let count = |_, key: &str, value| {
                let added = Addition { offset, time_s, value };
                match self.store.add(rules.generation, key, added, &horizons) {
                    Ok(()) => counted += 1,
                    Err(error) => failure = Some(error),
                }
            };

            ruleset.apply(&event, &mut scratch, count, |_, _| {});

            if let Some(error) = failure {
                return Err(error.into());
            }
        }

        Ok(counted)
    }

    /// Applies a control entry to the generation, in the same way as to those that were counted
    /// then.
    fn refill_by(&self, rules: &Rules, payload: &[u8], offset: Offset) -> Result<(), Error> {
        match Control::parse(payload) {
            // A key is erased whatever the counter's state.
            Ok(Some(Control::Erase { counter, key }))
                if counter == rules.generation / GENERATIONS_PER_COUNTER =>
            {
                self.store.erase(rules.generation, &key, offset)?;
            }
            Ok(Some(Control::Buckets { buckets, .. }))
                if !self.state.requests.is_repetition(offset) =>
            {
                let Some(rule) = rules.at(offset).and_then(|ruleset| ruleset.rules().first())
                else {
                    return Ok(());
                };
                let mine = buckets.iter().filter(|bucket| bucket.time >= rules.after_s);
                for bucket in mine.filter(|bucket| rule.template().matches(&bucket.key)) {
                    self.store.set(rules.generation, &bucket.key, offset, bucket.cell())?;
                }
            }
            // An entry that counting skipped is skipped here, too.
            _ => {}
        }
        Ok(())
    }
}

impl Rules {
    fn new(backfill: &Backfill) -> Self {
        let compile = |rule: &RuleSince| {
            let answers = rule.counter.state.answers();
            (rule.since, answers.then(|| Ruleset::new([rule.counter.clone()])))
        };
        let since = backfill.rules.iter().map(compile).collect();
        Self { generation: backfill.generation, after_s: backfill.after_s, since }
    }

    /// Returns the rules in force at an offset.
    fn at(&self, offset: Offset) -> Option<&Ruleset> {
        let place = self.since.partition_point(|(since, _)| *since <= offset).checked_sub(1)?;
        self.since[place].1.as_ref()
    }
}

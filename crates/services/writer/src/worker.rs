//! The worker: reads the log and applies it to the bucket store, on a thread of its own.

mod apply;
mod backfill;
mod error;
mod handle;
mod prolong;
mod removal;
mod reread;
mod upkeep;

use crate::conductor::DECIDER;
use crate::control::{Control, ControlError};
use crate::state::{Begin, Change, Erasure, Phase, Progress, Request, State};
use crate::states::PublishedState;
use apply::Applier;
use parking_lot::Mutex;
use raingauge_consumers::{Hold, Overtaken, Place, Registry};
use raingauge_ports::buckets::{BucketWriter, Checkpoint, Generation};
use raingauge_ports::clock::Clock;
use raingauge_ports::consumers::Name;
use raingauge_ports::log::{self, Block, EventLog, Offset, Partition};
use raingauge_ports::published::Published;
use raingauge_ports::record::Entry;
use removal::Removals;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use upkeep::Upkeep;

pub use crate::state::{Backfill, BackfillStatus};
pub use error::Error;
pub use handle::Handle;

/// How the worker paces itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// Changes are committed at least this often.
    pub commit_interval: Duration,
    /// Bytes of the log that are applied before readers are notified.
    pub read_bytes: usize,
    /// How far ahead of the clock an event may be: the log covers a day only when it covers this
    /// much before it.
    pub future_allowance_s: i64,
    /// Whether [`Handle::start`] returns only when everything that the log held by then is counted.
    pub catches_up: bool,
    /// Longest time that a commit may take; one that takes longer is stuck.
    pub commit_time_max: Duration,
    /// How long the worker continues to apply entries after a request to stop.
    pub drain_timeout: Duration,
    /// How far before the checkpoint a worker begins to read, in time of the log: servers of the
    /// store may lose what they acknowledged in that time. Zero where store and checkpoint are
    /// durable together.
    pub rereads: Duration,
    /// Whether the worker itself reports the lag of counting and of the other consumers; otherwise
    /// a process with many workers measures it.
    pub tells_lag: bool,
    /// The consumers of the log, which is trimmed for all of them.
    pub consumers: Arc<Registry>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            commit_interval: Duration::from_secs(2),
            read_bytes: 1 << 20,
            future_allowance_s: 300,
            catches_up: true,
            commit_time_max: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(10),
            rereads: Duration::ZERO,
            tells_lag: true,
            consumers: Arc::default(),
        }
    }
}

/// How often an idle worker checks whether it should stop.
const IDLE: Duration = Duration::from_millis(50);

/// Publishes the view of a store's checkpoint, before a worker continues from it. Returns its
/// position.
pub fn applied_to(store: &dyn BucketWriter, published: &Published) -> Result<Offset, Error> {
    let Checkpoint { position, state, .. } = store.checkpoint()?;
    let state = State::from_json(&state).map_err(Error::State)?;
    published.set_view(Arc::new(state.view(None)));
    Ok(position)
}

struct Worker {
    log: Arc<dyn EventLog>,
    store: Arc<dyn BucketWriter>,
    published: Arc<Published>,
    clock: Arc<dyn Clock>,
    options: Options,
    stop: Arc<AtomicBool>,
    /// Entries before this are applied.
    position: Offset,
    /// When the last applied entry was appended, in seconds since 1970; 0 before the first one.
    applied_s: i64,
    /// The stamp of the last applied entry: see [`BucketWriter::stamp_from`].
    stamp_us: i64,
    /// The stamp of an entry of the current block is this plus its offset.
    stamp_base_us: i64,
    /// Entries before this are committed. A worker that reads entries again is behind it.
    committed: Offset,
    /// The stamp of the last committed entry.
    committed_us: i64,
    /// Whether entries that were read again may have changed the store since the last commit.
    rereads: bool,
    /// The last checkpoint needs the log from here on.
    needed_from: Offset,
    /// The position of counting among the consumers of the log.
    place: Arc<Place>,
    state: State,
    /// The state as bytes, as the next commit will write it.
    state_json: Vec<u8>,
    /// Whether anything but the position has changed since the last commit.
    state_changed: bool,
    /// Whether the state has changed since it was last published.
    unpublished: bool,
    /// Whether the state has changed since it was last shown.
    unshown: bool,
    /// The progress of the backfill at the head of the queue.
    fill: Option<Progress>,
    /// The progress that the last worker of the partition left.
    stored_fill: Option<Progress>,
    /// Whether the progress has changed since the last commit.
    fill_changed: bool,
    removals: Arc<Removals>,
    shown: Arc<Mutex<PublishedState>>,
    shown_committed: Arc<AtomicU64>,
    shown_committed_s: Arc<AtomicI64>,
    committing: Arc<Mutex<Option<Instant>>>,
    applier: Applier,
    upkeep: Upkeep,
    last_commit: Instant,
}

impl Worker {
    fn open(
        log: Arc<dyn EventLog>,
        store: Arc<dyn BucketWriter>,
        published: Arc<Published>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self, Error> {
        let Checkpoint { position, state, stamp_us, progress } = store.checkpoint()?;

        // No entry has a later append time than its stamp.
        log.verify(position, stamp_us.div_euclid(1_000))?;

        if position > log.end() {
            return Err(Error::LogTooShort { position, end: log.end() });
        }

        let partition = log.partition();
        let place = options.consumers.register(Name::counting(), partition, Hold::Always, position);
        let mut worker = Self {
            log,
            store,
            published,
            clock,
            options,
            stop: Arc::default(),
            position,
            applied_s: 0,
            stamp_us,
            stamp_base_us: 0,
            committed: position,
            committed_us: stamp_us,
            rereads: false,
            needed_from: position,
            place,
            state: State::from_json(&state).map_err(Error::State)?,
            state_json: state,
            state_changed: false,
            unpublished: true,
            unshown: true,
            fill: None,
            stored_fill: progress.and_then(|stored| Progress::from_json(&stored.bytes)),
            fill_changed: false,
            removals: Arc::default(),
            shown: Arc::default(),
            shown_committed: Arc::new(AtomicU64::new(position)),
            shown_committed_s: Arc::default(),
            committing: Arc::default(),
            applier: Applier::default(),
            upkeep: Upkeep::default(),
            last_commit: Instant::now(),
        };

        worker.take_up_fill();
        worker.needed_from = worker.needs_log_from();
        worker.removals.want(&worker.state.retired);

        if position > 0 {
            // The time of the newest event before the checkpoint is not stored.
            worker.published.saw_event(worker.clock.now_s() + worker.options.future_allowance_s);
        }

        worker.publish();
        worker.published.set_applied(worker.log.partition(), position);
        worker.go_back();

        Ok(worker)
    }

    /// Runs until it is stopped or fails, and publishes why it ended.
    fn run_to_its_end(self) {
        let partition = self.log.partition();
        let published = Arc::clone(&self.published);
        let reason = match std::panic::catch_unwind(AssertUnwindSafe(|| self.run())) {
            Ok(Ok(())) => return published.fail("raingauge is stopping"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the writer panicked, which is a defect of raingauge".to_owned(),
        };

        tracing::error!(
            partition,
            %reason,
            "the writer of a partition stopped; it counts nothing until it is started again"
        );
        published.fail(&reason);
    }

    fn run(mut self) -> Result<(), Error> {
        let mut drain_until = None;
        loop {
            let mut busy = self.apply_some()?;
            busy |= self.backfill_some()?;
            busy |= self.keep_up()?;
            self.commit_when_due()?;

            if self.stop.load(Ordering::Acquire) {
                let until =
                    *drain_until.get_or_insert_with(|| Instant::now() + self.options.drain_timeout);
                if self.position >= self.log.end() || Instant::now() >= until {
                    return self.commit();
                }
            }

            if !busy {
                self.log.wait_beyond(self.position, IDLE);
            }
        }
    }

    /// Applies some blocks of the log. Returns whether there were any.
    fn apply_some(&mut self) -> Result<bool, Error> {
        let began = Instant::now();
        let blocks = match self.log.read(self.position, self.options.read_bytes) {
            Err(log::Error::Trimmed { .. }) if self.position < self.committed => {
                self.go_forth();
                return Ok(true);
            }
            read => read.map_err(|error| self.explain(error))?,
        };

        let Some(end) = blocks.last().map(Block::end) else {
            self.report_lag(None);
            return Ok(false);
        };

        let from = self.position;
        for block in &blocks {
            self.apply_block(block)?;
        }

        self.publish();
        self.show();
        self.applier.report(&self.published);
        self.published.set_applied(self.log.partition(), end);
        tell_lost(self.log.partition(), 0);
        metrics::counter!("raingauge_events_applied_total").increment(end - from);
        metrics::histogram!("raingauge_apply_seconds").record(began.elapsed().as_secs_f64());
        self.report_lag(blocks.last());

        Ok(true)
    }

    /// The error for a read that failed: the log's, or that it has dropped the next entries.
    fn explain(&self, error: log::Error) -> Error {
        let log::Error::Trimmed { start, .. } = error else {
            return error.into();
        };
        let consumer = Name::counting();
        let partition = self.log.partition();
        let lost = Overtaken { consumer, partition, position: self.position, start };
        tell_lost(lost.partition, lost.entries());
        Error::Lost(lost)
    }

    /// Applies one block and moves the position behind it.
    fn apply_block(&mut self, block: &Block) -> Result<(), Error> {
        // A log that began again may have left out offsets.
        let mut next = self.position.max(block.base);
        self.applied_s = block.appended_ms.div_euclid(1_000);
        self.stamp_base_us = first_stamp(self.stamp_us, block.appended_ms) - next as i64;
        self.store.stamp_from(self.stamp_base_us);

        while next < block.end() {
            next = match block.entries(next).next().transpose()? {
                Some((offset, Entry::Control(payload))) => {
                    self.obey(payload, offset)?;
                    offset + 1
                }
                _ => {
                    self.publish();
                    self.applier.apply_events(&*self.store, &self.published, block, next)?
                }
            };
            self.stamp_us = self.stamp_base_us + next as i64 - 1;
            self.position = next;

            // Also within a block, whose changes may need more memory than there is.
            if self.store.wants_commit() {
                self.commit()?;
            }
        }

        Ok(())
    }

    fn obey(&mut self, payload: &[u8], offset: Offset) -> Result<(), Error> {
        let explain = |error: ControlError| {
            Error::State(format!("the control entry at offset {offset}: {error}"))
        };
        let Some(control) = Control::parse(payload).map_err(explain)? else {
            return Ok(());
        };

        match control {
            Control::Counter { version, counter, changed_at, put_back } => {
                let decides = self.log.partition() == DECIDER;
                let change = Change { version, changed_at, put_back, counter: *counter };
                self.state.set_counter(change, offset, self.applied_s, decides);
            }
            Control::Buckets { buckets, request } => {
                if request.is_some_and(|request| !self.remember(*request, offset)) {
                    return Ok(());
                }
                self.publish();
                return self.applier.set_buckets(&*self.store, &self.published, offset, &buckets);
            }
            Control::Erase { counter, key } => {
                let is_filled =
                    |fill: &Progress| fill.phase == Phase::Filled && fill.counter == counter;
                for generation in
                    self.state.counted(counter, self.fill.as_ref().is_some_and(is_filled))
                {
                    self.store.erase(generation, &key, offset)?;
                }

                // A worker that read the entries before it again would count them for a moment.
                self.state.last_change = Some(offset);
                self.state_changed = true;
                return Ok(());
            }
            Control::EraseAll { counter, number, replaces } => {
                self.state.erase(counter, Erasure { number, offset }, replaces, self.applied_s);
            }
            Control::Backfill { counter, after_s, number, configuration } => {
                let covered =
                    || crate::history::covered_from_s(&*self.log, self.options.future_allowance_s);
                let begin = Begin {
                    number,
                    configuration: configuration.map(|counter| *counter),
                    after_s: after_s.unwrap_or_else(covered),
                    offset,
                    stamp_base_us: self.stamp_base_us,
                };
                self.state.begin_backfill(counter, begin);
            }
            Control::Switch { counter, number } => self.switch(counter, number, offset)?,
            Control::Cancel { counter, number, reason } => {
                self.state.cancel(counter, number, &reason, self.applied_s);
            }
            Control::Retire { counter, number } => self.state.retire(counter, number),
            Control::Removed { generation } => {
                self.state.forget_removed(generation);
                self.upkeep.forget(generation);
                self.shown.lock().removed.retain(|removed| *removed != generation);
            }
        }

        self.state.last_change = Some(offset);
        self.state_changed = true;
        self.unpublished = true;
        self.take_up_fill();

        Ok(())
    }

    /// Remembers a request with a key. Returns whether it takes effect.
    fn remember(&mut self, request: Request, offset: Offset) -> bool {
        self.state_changed = true;
        self.unshown = true;
        self.state.last_change = Some(offset);
        self.state.requests.take(request, offset, self.applied_s)
    }

    /// Publishes the view of the state, when it has changed: once for many changes in a row.
    fn publish(&mut self) {
        if std::mem::take(&mut self.unpublished) {
            let filled = self
                .fill
                .as_ref()
                .filter(|fill| fill.phase == Phase::Filled)
                .map(|fill| fill.counter);
            self.published.set_view(Arc::new(self.state.view(filled)));
            self.unshown = true;
            self.show();
        }
    }

    /// Shows the state, when it has changed.
    fn show(&mut self) {
        if std::mem::take(&mut self.unshown) {
            let mut shown = self.shown.lock();
            let removed = std::mem::take(&mut shown.removed);
            *shown = PublishedState {
                removed,
                ..PublishedState::new(Arc::new(self.state.clone()), self.fill.clone())
            };
        }
    }

    /// Applies what the log holds by now and commits it, so that a process that dies soon after
    /// does not read it a third time.
    fn catch_up(&mut self) -> Result<(), Error> {
        let end = self.log.end();
        while self.position < end {
            self.apply_some()?;
        }
        if self.position == self.committed { Ok(()) } else { self.commit() }
    }

    fn commit_when_due(&mut self) -> Result<(), Error> {
        let changed = self.position != self.committed
            || self.rereads
            || self.state_changed
            || self.fill_changed;
        if changed && self.last_commit.elapsed() >= self.options.commit_interval {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        self.last_commit = began;

        if self.state_changed {
            self.state.forget_before(self.log.start());
            self.state_json = self.state.to_json();
        }

        let is_behind = self.position < self.committed;
        let (position, stamp_us) = if is_behind {
            (self.committed, self.committed_us)
        } else {
            (self.position, self.stamp_us)
        };

        let checkpoint = Checkpoint {
            position,
            state: self.state_json.clone(),
            stamp_us,
            progress: self.progress_to_store(),
        };

        let removed = self.removals.take_removed();
        *self.committing.lock() = Some(began);

        let committed = self.store.commit(&checkpoint);
        *self.committing.lock() = None;
        committed?;

        self.committed = position;
        self.committed_us = stamp_us;
        self.rereads &= is_behind;
        self.state_changed = false;
        self.fill_changed = false;
        self.shown_committed_s.store(self.applied_s, Ordering::Release);
        self.shown_committed.store(position, Ordering::Release);
        self.needed_from = self.needs_log_from();
        self.place.set_position(position);

        // What was retired before this commit no longer changes, and what was removed is gone.
        self.removals.want(&self.state.retired);
        let is_retired = |generation: &Generation| self.state.retired.contains(generation);
        self.shown.lock().removed.extend(removed.into_iter().filter(is_retired));
        metrics::histogram!("raingauge_checkpoint_seconds").record(began.elapsed().as_secs_f64());

        Ok(())
    }

    fn report_lag(&self, newest: Option<&Block>) {
        let lag = self.log.end().saturating_sub(self.position);
        let behind_ms = match newest {
            Some(block) if lag > 0 => self.clock.now_ms() - block.appended_ms,
            _ => 0,
        };
        self.tell_lag(lag as f64, behind_ms as f64 / 1e3);
    }

    fn tell_lag(&self, events: f64, seconds: f64) {
        if !self.options.tells_lag {
            return;
        }
        let partition = self.log.partition().to_string();
        metrics::gauge!("raingauge_log_lag_events", "partition" => partition.clone()).set(events);
        metrics::gauge!("raingauge_log_lag_seconds", "partition" => partition).set(seconds);
    }
}

impl Drop for Worker {
    /// The next worker of the partition reports its lag.
    fn drop(&mut self) {
        self.removals.end();
        self.tell_lag(0.0, 0.0);
    }
}

/// Reports the entries of a partition that the log dropped before they were counted, at which
/// counting stands still.
pub(crate) fn tell_lost(partition: Partition, entries: u64) {
    metrics::gauge!("raingauge_log_lost_entries", "partition" => partition.to_string())
        .set(entries as f64);
}

/// The stamp of the entry behind one with `stamp_us`. Stamps grow with each entry and keep up with
/// the time at which the entries were appended: `stamp = max(stamp + 1, appended)`. Among entries
/// that were appended together each has one more than the one before, so that it makes no
/// difference how a reader of the log cuts it into blocks.
fn first_stamp(stamp_us: i64, appended_ms: i64) -> i64 {
    (stamp_us + 1).max(appended_ms * 1_000)
}

#[cfg(test)]
mod tests;

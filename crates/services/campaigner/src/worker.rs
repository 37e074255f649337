//! The worker: turn by turn, from one commit to the next.

mod documents;
mod erasure;
mod obsolete;
mod redrive;
mod sweeps;

use crate::answers::Asking;
use crate::batch::{Batch, Bounds, Terms};
use crate::compiled::Compiled;
use crate::control::{CONSUMER, Control, Walk};
use crate::deps::{Deps, Options};
use crate::documents::Documents;
use crate::error::Error;
use crate::handle::{Shared, Snapshot};
use crate::tallies::{Tallies, warming};
use crate::timer::Due;
use crate::turn::{Scene, Turn};
use raingauge_campaigns::campaign::CampaignId;
use raingauge_consumers::{Hold, Place};
use raingauge_ports::campaigns::{Checkpoint, Commit, Horizons};
use raingauge_ports::consumers::Name;
use raingauge_ports::log::{Block, Offset};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use sweeps::Sweep;

/// How often the ledger forgets what is too old, and how much it examines each time.
const EXPIRY_EVERY_MS: i64 = 10_000;
const EXPIRY_SCAN_MAX: usize = 1_000;

/// How often timers are counted, and up to how many.
const COUNTED_EVERY_MS: i64 = 30_000;
const COUNTED_MAX: usize = 100_000;

/// What a turn did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is nothing to do.
    Idle,
    /// There is, but the next commit is not due before this.
    Waits(Duration),
    Busy,
}

pub struct Worker {
    deps: Deps,
    options: Options,
    consumer: Name,
    place: Arc<Place>,
    shared: Arc<Shared>,
    /// As of the last commit. Its control is in `control`.
    checkpoint: Checkpoint,
    control: Arc<Control>,
    documents: Arc<Documents>,
    tallies: Arc<Tallies>,
    /// What decides the next event.
    compiled: Arc<Compiled>,
    /// Counts the history of the walk under way.
    walking: Arc<Compiled>,
    sweep: Sweep,
    /// By the clock's elapsed time.
    committed_at_ms: i64,
    expired_at_ms: i64,
    /// When timers were counted; `None` before the first time.
    counted_at_ms: Option<i64>,
}

/// Documents and control as they are behind a commit.
struct Next {
    control: Arc<Control>,
    documents: Arc<Documents>,
    tallies: Arc<Tallies>,
    /// Whether another engine decides from here on.
    is_changed: bool,
}

impl Worker {
    /// Takes the ledger over, and reads the documents in effect.
    pub fn open(deps: Deps, options: Options) -> Result<Self, Error> {
        let consumer = Name::new(CONSUMER).expect("it is a name");
        let checkpoint = deps.ledger.take_over()?;
        checkpoint.check_log(deps.log.end())?;
        let position = checkpoint.position;
        let partition = deps.log.partition();
        let place =
            deps.registry.register(consumer.clone(), partition, Hold::WithinBound, position);
        let compiled = Arc::new(Compiled::new(Arc::default(), BTreeSet::new(), 0));
        let snapshot = Snapshot {
            documents: Arc::clone(compiled.documents()),
            compiled: Arc::clone(&compiled),
            position,
            log_ms: checkpoint.log_ms,
            warming: Arc::default(),
        };

        let is_new = checkpoint.control.is_empty();
        let now_ms = deps.clock.elapsed_ms();
        let mut worker = Self {
            consumer,
            place,
            shared: Arc::new(Shared::new(snapshot)),
            checkpoint,
            control: Arc::default(),
            documents: Arc::default(),
            tallies: Arc::default(),
            walking: Arc::clone(&compiled),
            compiled,
            sweep: Sweep::default(),
            committed_at_ms: now_ms - options.commit_ms as i64,
            expired_at_ms: now_ms,
            counted_at_ms: None,
            deps,
            options,
        };
        if is_new {
            worker.begin()?;
        }
        worker.read_documents()?;
        worker.publish(true);
        Ok(worker)
    }

    /// Begins at the end of the log: there was no campaign before.
    fn begin(&mut self) -> Result<(), Error> {
        let Checkpoint { epoch, position, log_ms, .. } = self.checkpoint;
        let end = self.deps.log.end().max(position);
        let commit = Commit {
            epoch,
            from: position,
            position: end,
            log_ms,
            control: Some(Control::default().to_bytes()),
            ..Commit::default()
        };
        let after = self.checkpoint.after(&commit);
        self.deps.ledger.commit(commit)?;
        self.checkpoint = after;
        self.place.set_position(end);
        Ok(())
    }

    /// Continues behind the last commit, whatever became of the one that failed.
    pub fn reopen(&mut self) -> Result<(), Error> {
        self.checkpoint = self.deps.ledger.take_over()?;
        self.checkpoint.check_log(self.deps.log.end())?;
        self.place.set_position(self.checkpoint.position);
        self.read_documents()?;
        self.publish(true);
        Ok(())
    }

    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// The log is decided up to here.
    #[cfg(test)]
    pub fn position(&self) -> Offset {
        self.checkpoint.position
    }

    /// Whether timers are still to be seen to.
    #[cfg(test)]
    pub fn is_sweeping(&self) -> bool {
        self.sweep.is_busy()
    }

    /// Waits for new entries. Blocks the thread.
    pub fn wait(&self, timeout: Duration) {
        self.deps.log.wait_beyond(self.checkpoint.position, timeout);
    }

    /// Decides what the log holds, as much as fits into one commit, and fires what is due.
    pub fn turn(&mut self) -> Result<Progress, Error> {
        // In this order: what was appended before this time is read.
        let now_ms = self.deps.clock.now_ms();
        let bounds = self.bounds();
        let from = self.passed_over();
        let blocks = bounds.blocks(&*self.deps.log, from)?;
        let terms = Terms { bounds, consumer: &self.consumer, compiled: &self.compiled };
        let mut batch = Batch::of(&blocks, from, self.checkpoint.log_ms, terms)?;
        // The author of a document waits until it takes effect.
        let is_urgent = !batch.orders.is_empty();
        let has_any = batch.end > self.checkpoint.position;
        if let Some(rest) = self.rest(&blocks, bounds).filter(|_| has_any && !is_urgent) {
            return Ok(Progress::Waits(rest));
        }

        let is_all = batch.orders.is_empty() && batch.end == self.deps.log.end();
        if is_all && self.deps.clock.is_sound() {
            batch.log_ms = batch.log_ms.max(now_ms);
        }
        let has_moved = self.commit_batch(&mut batch)?;
        self.sweep_outbox()?;
        self.expire(now_ms)?;
        self.remove_obsolete()?;
        self.count_timers()?;
        let is_tidy = self.control.obsolete.is_empty();
        if has_moved || !is_tidy || !self.control.walks.is_empty() || self.sweep.is_busy() {
            return Ok(Progress::Busy);
        }
        Ok(Progress::Idle)
    }

    /// Where there may be something behind the position, without reading what nobody listens to.
    fn passed_over(&self) -> Offset {
        let position = self.checkpoint.position;
        let is_idle = self.compiled.engine().listens_to_nothing();
        if is_idle { self.deps.log.events_until(position) } else { position }
    }

    fn bounds(&self) -> Bounds {
        Bounds { events_max: self.options.batch_events, bytes_max: self.options.batch_bytes }
    }

    /// How long to wait before a commit is worth it; `None` for one that is due.
    fn rest(&self, blocks: &[Block], bounds: Bounds) -> Option<Duration> {
        let elapsed_ms = self.deps.clock.elapsed_ms() - self.committed_at_ms;
        let rest_ms = (self.options.commit_ms as i64).saturating_sub(elapsed_ms);
        let waits = rest_ms > 0 && !bounds.are_met(blocks);
        waits.then(|| Duration::from_millis(rest_ms.unsigned_abs()))
    }

    /// Makes a commit of a batch, and of everything else that is due. Answers `false` if there is
    /// nothing to commit.
    fn commit_batch(&mut self, batch: &mut Batch<'_>) -> Result<bool, Error> {
        let started_ms = self.deps.clock.elapsed_ms();
        let compiled = Arc::clone(&self.compiled);
        let erased = batch.erased();
        self.erase(&erased)?;
        let due = self.due(batch.log_ms)?;
        if due.len() >= self.options.timers_max {
            // What is due goes by the documents of its time, so it comes first. What it brings
            // about is erased with the next batch.
            batch.leave_orders(self.checkpoint.position);
        }
        let refused = self.refused_events(batch)?;
        let deps = self.deps.clone();
        let documents = Arc::clone(&self.documents);
        let control = Arc::clone(&self.control);
        let scene = Scene {
            documents: &documents,
            compiled: &compiled,
            ledger: &*deps.ledger,
            asking: Asking {
                lookups: &*deps.lookups,
                clock: &*deps.clock,
                runtime: &deps.runtime,
                patience_ms: self.options.lookup_patience_ms,
            },
        };
        let mut turn = Turn::new(scene, &control, batch.end);
        let decided = turn.decide(batch)?;
        batch.cut(decided);
        turn.erase(&erased, batch.end)?;
        turn.redrive(&refused, batch.log_ms)?;
        if !due.is_empty() {
            turn.fire(&due, batch.log_ms)?;
        }

        let walked = self.walk(&mut turn)?;
        if let Some(from) = self.sweep.from() {
            let next = turn.sweep(&control.sweeps, from, batch.log_ms)?;
            self.sweep.go_on(next);
        }
        turn.render();

        let next = self.next(batch, walked)?;
        let is_new_control = !Arc::ptr_eq(&next.control, &self.control);
        if batch.end == self.checkpoint.position && turn.is_empty() && !is_new_control {
            self.checkpoint.log_ms = batch.log_ms;
            return Ok(false);
        }

        let commit = Commit {
            epoch: self.checkpoint.epoch,
            from: self.checkpoint.position,
            position: batch.end,
            log_ms: batch.log_ms,
            control: is_new_control.then(|| next.control.to_bytes()),
            ..turn.into_commit()?
        };
        self.commit(commit)?;
        self.adopt(next);

        metrics::counter!("raingauge_campaign_events_total").increment(decided as u64);
        let took_ms = self.deps.clock.elapsed_ms() - started_ms;
        metrics::histogram!("raingauge_campaign_batch_seconds").record(took_ms as f64 / 1e3);
        Ok(true)
    }

    fn due(&self, log_ms: i64) -> Result<Vec<Due>, Error> {
        let timers = self.deps.ledger.due(log_ms, self.options.timers_max)?;
        timers.into_iter().map(Due::of).collect()
    }

    /// Counts the next slice of the walk under way. Returns where it is then.
    fn walk(&self, turn: &mut Turn<'_>) -> Result<Option<Offset>, Error> {
        let Some(walk) = self.control.walks.first() else {
            self.place.need_history(None);
            return Ok(None);
        };
        let log = &*self.deps.log;
        let mut walk: Walk = walk.clone();
        walk.next = walk.next.max(log.start());
        self.place.need_history(Some(walk.next));
        let blocks = log.read_behind(walk.next, self.options.history_bytes)?;
        Ok(Some(turn.count_history(&walk, self.walking.engine(), &blocks)?))
    }

    fn commit(&mut self, commit: Commit) -> Result<(), Error> {
        let clock = &*self.deps.clock;
        let rows = commit.states.len()
            + commit.budgets.len()
            + commit.decisions.len()
            + commit.timers.len()
            + commit.fired.len()
            + commit.deliveries.len();
        let mut after = self.checkpoint.after(&commit);
        after.control = Vec::new();

        let started_ms = clock.elapsed_ms();
        self.deps.ledger.commit(commit)?;
        self.committed_at_ms = clock.elapsed_ms();
        self.checkpoint = after;
        self.place.set_position(self.checkpoint.position);

        let took_ms = self.committed_at_ms - started_ms;
        metrics::histogram!("raingauge_campaign_commit_seconds").record(took_ms as f64 / 1e3);
        metrics::counter!("raingauge_campaign_commit_rows_total").increment(rows as u64);
        Ok(())
    }

    /// Makes a change of the control durable.
    fn commit_control(&mut self, control: Control) -> Result<(), Error> {
        let commit = Commit {
            epoch: self.checkpoint.epoch,
            from: self.checkpoint.position,
            position: self.checkpoint.position,
            log_ms: self.checkpoint.log_ms,
            control: Some(control.to_bytes()),
            ..Commit::default()
        };
        self.commit(commit)?;
        self.control = Arc::new(control);
        Ok(())
    }

    /// Takes what has just become durable for the present.
    fn adopt(&mut self, next: Next) {
        let Next { control, documents, tallies, is_changed } = next;
        self.control = control;
        self.documents = documents;
        self.tallies = tallies;
        if is_changed {
            self.compile();
        }
        self.publish(is_changed);
    }

    fn publish(&self, is_changed: bool) {
        let snapshot = Snapshot {
            compiled: Arc::clone(&self.compiled),
            documents: Arc::clone(&self.documents),
            position: self.checkpoint.position,
            log_ms: self.checkpoint.log_ms,
            warming: Arc::new(warming(&self.control, &self.documents)),
        };
        self.shared.publish(snapshot, is_changed);
    }

    /// Makes ready what decides the next event, and what counts history.
    fn compile(&mut self) {
        let compiled = |warming: BTreeSet<CampaignId>| {
            let documents = Arc::clone(&self.documents);
            Arc::new(Compiled::new(documents, warming, self.options.late_after_ms))
        };
        let warming = warming(&self.control, &self.documents).into_keys().collect();
        let all = self.documents.campaigns().map(|campaign| campaign.id).collect();
        let engines = [compiled(warming), compiled(all)];
        [self.compiled, self.walking] = engines;
    }

    fn count_timers(&mut self) -> Result<(), Error> {
        let now_ms = self.deps.clock.elapsed_ms();
        let is_early = |at_ms: i64| now_ms - at_ms < COUNTED_EVERY_MS;
        if self.counted_at_ms.is_some_and(is_early) {
            return Ok(());
        }
        let pending = self.deps.ledger.timers_len(COUNTED_MAX)?;
        metrics::gauge!("raingauge_campaign_timers_pending").set(pending as f64);
        self.counted_at_ms = Some(now_ms);
        Ok(())
    }

    /// Lets the ledger forget what is older than it has to be.
    fn expire(&mut self, now_ms: i64) -> Result<(), Error> {
        let clock = &*self.deps.clock;
        let elapsed_ms = clock.elapsed_ms();
        if elapsed_ms - self.expired_at_ms < EXPIRY_EVERY_MS || !clock.is_sound() {
            return Ok(());
        }

        let horizons = Horizons {
            decisions_before_ms: now_ms - self.options.decisions_keep_ms,
            actions_before_ms: now_ms - self.options.actions_keep_ms,
            deliveries_before_ms: now_ms - self.options.decisions_keep_ms,
        };
        let forgotten = self.deps.retention.expire(horizons, EXPIRY_SCAN_MAX)?;
        // While there is much to forget, it goes on with the next turn.
        if forgotten < EXPIRY_SCAN_MAX {
            self.expired_at_ms = elapsed_ms;
        }
        Ok(())
    }
}

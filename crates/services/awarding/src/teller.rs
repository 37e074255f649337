//! The teller: turn by turn, from one commit of the books to the next.

mod documents;
mod turns;

use crate::batch::Batch;
use crate::deps::{Awarding, Deps, Options};
use crate::error::Error;
use crate::intake::{Manner, Request, Settling};
use crate::lane::Lanes;
use crate::replies::Replies;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use raingauge_consumers::{Hold, Place};
use raingauge_points::document::CONSUMER;
use raingauge_points::{Answer, Footprint, Turn};
use raingauge_ports::consumers::Name;
use raingauge_ports::log::{self, Block, Offset};
use raingauge_ports::points::{Head, Letter, QueueName, send_all};
use std::sync::Arc;
use std::time::Duration;

/// Most wallets that one turn settles: commands wait for one such turn at most.
pub const SETTLE_MAX: usize = 250;
/// How long events rest after an error, in milliseconds.
const REST_MS: i64 = 1_000;

/// What a turn did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Idle,
    Busy,
}

/// The teller of one process. Its methods block the thread.
pub struct Worker {
    deps: Deps,
    options: Options,
    shared: Arc<Shared>,
    consumer: Name,
    place: Option<Arc<Place>>,
    /// What is in force. Its position is behind the last event that was awarded or queued.
    snapshot: Snapshot,
    /// The position in the books.
    stored: Offset,
    /// The latest time of a turn that this process knows of. No turn is earlier.
    recorded_ms: i64,
    /// By the clock's elapsed time.
    stored_at_ms: i64,
    /// Events rest until then.
    resting_until_ms: i64,
    /// The last turn left wallets of a sweep to the next one.
    has_put_off: bool,
    /// The revision of the store of documents, where there is no log.
    followed: i64,
    followed_at_ms: i64,
}

/// The position that a turn writes when all of its awards have become entries, and otherwise.
#[derive(Clone, Copy, Debug, Default)]
struct Positions {
    whole: Option<Offset>,
    part: Option<Offset>,
}

impl Worker {
    /// Reads what is in force. A ledger that is new begins at the end of the log: there was no
    /// programme before.
    pub fn open(deps: Deps, options: Options, shared: Arc<Shared>) -> Result<Self, Error> {
        let heads = heads(&deps)?;
        let stored = position_of(&heads);
        let is_new = stored == 0 && heads.iter().all(|head| head.sequence == 0);
        let recorded_ms = heads.iter().map(|head| head.recorded_ms).max();
        let elapsed_ms = deps.clock.elapsed_ms();
        let mut worker = Self {
            consumer: Name::new(CONSUMER).expect("it is a name"),
            place: None,
            snapshot: Snapshot::at(stored),
            stored,
            recorded_ms: recorded_ms.unwrap_or_default(),
            stored_at_ms: elapsed_ms,
            resting_until_ms: elapsed_ms,
            has_put_off: false,
            followed: 0,
            followed_at_ms: elapsed_ms.saturating_sub(options.follow_ms),
            shared,
            deps,
            options,
        };

        if let Some(log) = worker.deps.log.clone() {
            let end = log.end();
            heads.iter().try_for_each(|head| head.check_log(end))?;
            if is_new {
                worker.snapshot.position = end;
            }
            if let Some(registry) = &worker.deps.registry {
                let name = worker.consumer.clone();
                let position = worker.snapshot.position;
                let place = registry.register(name, log.partition(), Hold::Always, position);
                worker.place = Some(place);
            }
            worker.store_position()?;
        }
        worker.follow_heads(&heads)?;
        worker.publish(true);
        Ok(worker)
    }

    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Decides what waits, and what the log holds, as much as fits into one turn. After an error,
    /// [`Worker::reopen`] comes first.
    pub fn turn(&mut self) -> Result<Progress, Error> {
        let requests = self.shared.intake.take(self.options.turn_commands);
        let settling = self.settling(&requests);
        let blocks = self.read();
        let is_idle = requests.is_empty() && settling.is_none() && blocks.is_empty();

        if !is_idle {
            self.serve(requests, settling, &blocks)?;
        }
        let has_followed = self.follow_documents()?;
        self.store_position_in_time()?;
        Ok(if is_idle && !has_followed { Progress::Idle } else { Progress::Busy })
    }

    /// Wallets of a sweep for this turn. Requests come first, but not twice in a row: where they
    /// always wait, a sweep goes on as well.
    fn settling(&mut self, requests: &[Request]) -> Option<Settling> {
        self.has_put_off = !requests.is_empty() && !self.has_put_off;
        if self.has_put_off { None } else { self.shared.intake.take_settling() }
    }

    /// Waits until there may be something to do. Blocks the thread.
    pub fn wait(&self) {
        let most_ms = match (&self.deps.log, self.stored == self.snapshot.position) {
            (None, _) => self.options.follow_ms,
            (Some(_), true) => REST_MS,
            (Some(_), false) => self.options.position_ms,
        };
        self.shared.intake.wait(Duration::from_millis(most_ms.clamp(1, REST_MS).unsigned_abs()));
    }

    /// Looks again at what the books hold, after a turn of which it is unknown whether it is there.
    pub fn reopen(&mut self) -> Result<(), Error> {
        let heads = heads(&self.deps)?;
        self.stored = position_of(&heads);
        self.follow_heads(&heads)?;
        self.publish(true);
        Ok(())
    }

    /// Blocks of the log behind the position; none while events rest. Passes over events without
    /// reading them while there is no programme.
    fn read(&mut self) -> Vec<Block> {
        let is_resting = self.deps.clock.elapsed_ms() < self.resting_until_ms;
        let Some(log) = self.deps.log.clone().filter(|_| !is_resting) else { return Vec::new() };
        let mut from = self.snapshot.position;
        if self.snapshot.programmes().is_empty() {
            from = log.events_until(from);
            if from > self.snapshot.position {
                self.move_to(from);
            }
        }
        if log.end() <= from {
            return Vec::new();
        }

        match log.read(from, self.options.turn_bytes) {
            Ok(blocks) => blocks,
            Err(log::Error::Trimmed { start, .. }) => {
                let why = format!("begins at {start}: what lay between is lost");
                self.rest(&Error::LogOtherwise { position: from, why });
                Vec::new()
            }
            Err(error) => {
                self.rest(&error.into());
                Vec::new()
            }
        }
    }

    /// Lets events rest. Commands are decided all the same.
    fn rest(&mut self, error: &Error) {
        self.resting_until_ms = self.deps.clock.elapsed_ms() + REST_MS;
        let trouble = format!("events are not awarded points: {error}");
        if self.shared.trouble().as_ref() != Some(&trouble) {
            tracing::error!(%error, "events are not awarded points");
        }
        self.shared.set_trouble(Some(trouble));
    }

    /// Decides requests, wallets and blocks, and answers. What fails of the log alone is tried
    /// again after a rest; the error is one of the books.
    fn serve(
        &mut self,
        requests: Vec<Request>,
        settling: Option<Settling>,
        blocks: &[Block],
    ) -> Result<(), Error> {
        let programmes = Arc::clone(self.snapshot.programmes());
        let batch = Batch::of(blocks, self.snapshot.position, &programmes, Some(&self.consumer));
        let mut batch = batch.map_err(|error| self.rest(&error)).ok();

        let mut lanes = Lanes::new(self.deps.books.books());
        let mut replies = Replies::default();
        for Request { commands, manner, reply } in requests {
            let origin = replies.add(reply, commands.len());
            lanes.push(commands, manner, origin);
        }
        if let Some(Settling { wallets, reply }) = settling {
            lanes.settle(&wallets);
            replies.add_settling(reply);
        }
        if self.options.awarding == Awarding::Direct
            && let Some(batch) = batch.as_mut().filter(|batch| !batch.priced.is_empty())
        {
            let origin = replies.expect_awards(batch.priced.len());
            lanes.push(std::mem::take(&mut batch.priced), Manner::Each, origin);
        }

        let lanes = lanes.finish();
        let positions = self.positions(batch.as_ref(), lanes.len());
        let failed = self.decide_all(&lanes, positions, &mut replies);
        let answers = replies.send();
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some(batch) = &batch
            && let Err(error) = self.finish_batch(batch, &answers)
        {
            self.rest(&error);
        }
        Ok(())
    }

    /// The positions that a single turn may write. Several turns write none: the next one does.
    fn positions(&self, batch: Option<&Batch<'_>>, turns: usize) -> Positions {
        if turns != 1 {
            return Positions::default();
        }
        let part = Some(self.snapshot.position).filter(|position| *position > self.stored);
        let is_whole = |batch: &&Batch<'_>| {
            // In the mode of queues, what has a price is still to be sent.
            batch.unpriced.is_empty()
                && batch.orders.is_empty()
                && batch.priced.is_empty()
                && batch.end > self.stored
        };
        let whole = batch.filter(is_whole).map(|batch| batch.end);
        Positions { whole: whole.or(part), part }
    }

    /// The time of a turn, which never runs back. While the clock is not trusted, it stands, so
    /// that nothing expires.
    fn now_ms(&self) -> i64 {
        let look = self.deps.clock.look();
        let now_ms = if look.is_sound { look.now_ms } else { 0 };
        now_ms.max(self.recorded_ms)
    }

    /// Keeps what could not be awarded in a queue, and moves the position.
    fn finish_batch(
        &mut self,
        batch: &Batch<'_>,
        answers: &[Result<Answer, Error>],
    ) -> Result<(), Error> {
        self.send(QueueName::Retry, batch.leftovers(answers))?;
        if !batch.priced.is_empty() {
            self.send(QueueName::Award, batch.priced.iter().map(Letter::of_command).collect())?;
        }
        if !batch.orders.is_empty() {
            return self.obey(&batch.orders, batch.end);
        }
        self.move_to(batch.end);
        Ok(())
    }

    fn send(&self, queue: QueueName, letters: Vec<Letter>) -> Result<(), Error> {
        let sent = send_all(&*self.deps.queues, queue, letters, Duration::ZERO);
        Ok(self.deps.runtime.block_on(sent)?)
    }

    /// The log is awarded up to here.
    fn move_to(&mut self, position: Offset) {
        self.snapshot.position = position;
        if self.shared.trouble().is_some() {
            self.shared.set_trouble(None);
        }
        self.publish(false);
    }

    fn publish(&self, has_changed: bool) {
        self.shared.publish(self.snapshot.clone(), has_changed);
    }

    /// Stores a position that nothing else stored for a while.
    fn store_position_in_time(&mut self) -> Result<(), Error> {
        let waited_ms = self.deps.clock.elapsed_ms() - self.stored_at_ms;
        if waited_ms < self.options.position_ms { Ok(()) } else { self.store_position() }
    }

    /// Stores the position, unless it is stored already.
    pub fn store_position(&mut self) -> Result<(), Error> {
        let position = self.snapshot.position;
        if position <= self.stored {
            return Ok(());
        }
        let turn = Turn { position: Some(position), ..Turn::default() };
        self.deps.books.turn(&[0], &Footprint::default(), &mut |_, _| turn.clone())?;
        self.note_stored(position);
        Ok(())
    }

    fn note_stored(&mut self, position: Offset) {
        self.stored = position;
        self.stored_at_ms = self.deps.clock.elapsed_ms();
        if let Some(place) = &self.place {
            place.set_position(position);
        }
    }
}

fn heads(deps: &Deps) -> Result<Vec<Head>, Error> {
    (0..deps.books.books()).map(|book| Ok(deps.books.head(book)?)).collect()
}

fn position_of(heads: &[Head]) -> Offset {
    heads.iter().map(|head| head.position).max().unwrap_or_default()
}

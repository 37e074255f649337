//! Awards points for the events of a log that several processes share, as those of a cluster do.
//!
//! ```text
//!   partition 0 ──▶ Stretch ─┐ prices                      ┌──▶ queue retry
//!   partition 1 ──▶ Stretch ─┼──▶ Intake ──▶ Teller ──▶ answers
//!   …               one process at a time                  └──▶ place in the partition
//! ```
//!
//! An event that was accepted after a programme was saved is priced by that version or a later one:
//! a programme is in the books before it is answered, and they are asked after events were read.
//! So where nobody awarded before, the events since the first programme was saved are awarded.
//!
//! A place is noted behind what is durable. After a crash the events between are priced again by
//! the process that takes over, and keys, which follow from an event and its rule, keep them from
//! being awarded twice. The same holds for a process that stood still and has lost the right.

use crate::batch::Batch;
use crate::deps::{Awarding, Deps, Options};
use crate::error::Error;
use crate::intake::Manner;
use crate::limits::REQUEST_COMMANDS_MAX;
use crate::places::{Places, newest};
use crate::right::Right;
use crate::shared::Shared;
use crate::snapshot::{PROGRAMME, Snapshot};
use futures_util::future::join_all;
use raingauge_consumers::{Hold, Place, Registry};
use raingauge_points::document::CONSUMER;
use raingauge_points::{Answer, Command};
use raingauge_ports::campaigns::{DocumentStore, StoredDocument};
use raingauge_ports::clock::Clock;
use raingauge_ports::consumers::Name;
use raingauge_ports::log::{self, Block, EventLog, Offset};
use raingauge_ports::points::{Books, Letter, QueueName, Queues, send_all};
use std::sync::Arc;
use std::time::Duration;

/// Longest time until new events are noticed.
const POLL: Duration = Duration::from_millis(50);
/// How often a process without the right looks whether it has it now.
const ASK: Duration = Duration::from_secs(1);
/// How long a partition rests after an error, in milliseconds.
const REST_MS: i64 = 1_000;
/// How often the lag of each partition is measured, in milliseconds.
const REPORT_MS: i64 = 10_000;

/// Reads all partitions while this process has the right to.
pub struct Inflow {
    context: Context,
    right: Right,
    stretches: Vec<Stretch>,
    registry: Arc<Registry>,
    reported_at_ms: i64,
    /// Whether the books say that every partition has a place.
    is_begun: bool,
}

/// What all partitions need.
struct Context {
    books: Arc<dyn Books>,
    places: Arc<Places>,
    documents: Arc<dyn DocumentStore>,
    queues: Arc<dyn Queues>,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    options: Options,
}

/// One partition.
struct Stretch {
    log: Arc<dyn EventLog>,
    /// Where it is; `None` before the books were asked.
    stand: Option<Stand>,
    /// It rests until then, by the clock's elapsed time.
    resting_until_ms: i64,
    trouble: Option<String>,
    /// What operators see of it.
    place: Arc<Place>,
}

/// How far a partition is.
#[derive(Clone, Copy, Debug)]
struct Stand {
    /// Everything before it is awarded.
    position: Offset,
    noted: Offset,
    /// By the clock's elapsed time.
    noted_at_ms: i64,
}

impl Inflow {
    pub fn new(deps: &Deps, options: Options, shared: Arc<Shared>, places: Arc<Places>) -> Self {
        let name = Name::new(CONSUMER).expect("it is a name");
        let registry = Arc::<Registry>::default();
        let stretch = |log: &Arc<dyn EventLog>| Stretch {
            place: registry.register(name.clone(), log.partition(), Hold::Always, log.end()),
            log: Arc::clone(log),
            stand: None,
            resting_until_ms: i64::MIN,
            trouble: None,
        };
        let stretches = deps.partitions.iter().map(stretch).collect();
        let context = Context {
            books: Arc::clone(&deps.books),
            places,
            documents: Arc::clone(&deps.documents),
            queues: Arc::clone(&deps.queues),
            clock: Arc::clone(&deps.clock),
            shared,
            options,
        };
        let right = Right::new(&deps.lease);
        let reported_at_ms = i64::MIN;
        Self { context, right, stretches, registry, reported_at_ms, is_begun: false }
    }

    /// Awards until the process ends.
    pub async fn run(mut self) {
        loop {
            if !self.right.is_held().await {
                self.leave();
                tokio::time::sleep(ASK).await;
                continue;
            }
            let has_any = self.step().await;
            self.report_in_time();
            if !has_any {
                tokio::time::sleep(POLL).await;
            }
        }
    }

    /// Awards the next events of each partition. Answers whether there were any.
    pub async fn step(&mut self) -> bool {
        let context = &self.context;
        let steps = self.stretches.iter_mut().map(|stretch| stretch.step(context));
        let has_any = join_all(steps).await.contains(&true);
        self.note_begun().await;
        let trouble = self.stretches.iter().find_map(|stretch| stretch.trouble.clone());
        self.context.shared.set_inflow_trouble(trouble);
        has_any
    }

    /// Notes once that every partition has a place, so that one that is added later is awarded from
    /// its start.
    async fn note_begun(&mut self) {
        if self.is_begun || self.stretches.iter().any(|stretch| stretch.stand.is_none()) {
            return;
        }
        match self.context.places.note_begun().await {
            Ok(()) => self.is_begun = true,
            Err(error) => tracing::debug!(%error, "that all partitions began is not noted yet"),
        }
    }

    /// Another process goes on, from the places that are noted.
    fn leave(&mut self) {
        if self.stretches.iter().all(|stretch| stretch.stand.is_none()) {
            return;
        }
        for stretch in &mut self.stretches {
            if let Some(stand) = stretch.stand.take() {
                let log = Arc::clone(&stretch.log);
                tokio::task::spawn_blocking(move || log.leave(stand.position));
            }
            stretch.trouble = None;
            // It is no longer this process that lags.
            stretch.place.set_position(stretch.log.end());
        }
        self.context.shared.set_inflow_trouble(None);
        self.report();
    }

    fn report_in_time(&mut self) {
        let waited_ms = self.context.clock.elapsed_ms().saturating_sub(self.reported_at_ms);
        if waited_ms >= REPORT_MS {
            self.report();
        }
    }

    /// Writes the lag of each partition, whose age is a question to the brokers.
    fn report(&mut self) {
        self.reported_at_ms = self.context.clock.elapsed_ms();
        let now_ms = self.context.clock.machine_ms();
        let logs: Vec<_> = self.stretches.iter().map(|stretch| Arc::clone(&stretch.log)).collect();
        let registry = Arc::clone(&self.registry);
        tokio::task::spawn_blocking(move || {
            logs.iter().for_each(|log| registry.report(&**log, now_ms));
        });
    }
}

impl Stretch {
    /// Awards the next events, and answers whether there were any.
    async fn step(&mut self, context: &Context) -> bool {
        if context.clock.elapsed_ms() < self.resting_until_ms {
            return false;
        }
        match self.advance(context).await {
            Ok(has_any) => {
                self.trouble = None;
                has_any
            }
            Err(error) => {
                self.rest(context, &error);
                false
            }
        }
    }

    async fn advance(&mut self, context: &Context) -> Result<bool, Error> {
        let Some(stand) = self.stand(context).await? else { return Ok(false) };
        let blocks = self.read(stand.position, context.options.turn_bytes).await?;
        if blocks.is_empty() {
            self.note_in_time(context).await?;
            return Ok(false);
        }

        let newest = newest(&context.books, &context.shared).await?;
        let Some(snapshot) = newest else { return Ok(false) };
        let batch = Batch::of(&blocks, stand.position, snapshot.programmes(), None)?;
        let has_awards = !batch.purposes.is_empty() || !batch.unpriced.is_empty();
        context.award(&batch).await?;
        self.stand = Some(Stand { position: batch.end, ..stand });
        if has_awards {
            self.note(context).await?;
        } else {
            self.note_in_time(context).await?;
        }
        Ok(true)
    }

    /// Where this partition is; `None` if that is not known yet.
    async fn stand(&mut self, context: &Context) -> Result<Option<Stand>, Error> {
        if self.stand.is_some() {
            return Ok(self.stand);
        }
        let partition = self.log.partition();
        let noted_at_ms = context.clock.elapsed_ms();
        let position = match context.places.position(partition).await? {
            Some(position) => position,
            None => {
                let Some(begin) = self.begin(context).await? else { return Ok(None) };
                context.places.note(partition, begin).await?;
                begin
            }
        };
        self.place.set_position(position);
        self.stand = Some(Stand { position, noted: position, noted_at_ms });
        Ok(self.stand)
    }

    /// Where this partition is awarded from: its start if it was added since points began, or else
    /// the first event since a programme was saved. `None` if that is not known yet.
    async fn begin(&self, context: &Context) -> Result<Option<Offset>, Error> {
        if context.places.have_begun().await? {
            return Ok(Some(self.log.start()));
        }
        // A programme that is not found now was saved after everything before this.
        let end = self.log.end();
        let newest = newest(&context.books, &context.shared).await?;
        let Some(snapshot) = newest else { return Ok(None) };
        let Some(since_ms) = context.first_saved_ms(&snapshot).await? else { return Ok(Some(end)) };

        let log = Arc::clone(&self.log);
        let find = move || {
            let begin = log.begin_since(since_ms).max(log.start());
            let is_sure = begin >= end || log.appended_ms(begin).is_some_and(|ms| ms >= since_ms);
            is_sure.then_some(begin)
        };
        let begin = tokio::task::spawn_blocking(find).await;
        let begin = begin.map_err(|error| Error::Closed(error.to_string()))?;
        let unknown = || Error::Log("it does not say where points begin".to_owned());
        begin.map(Some).ok_or_else(unknown)
    }

    async fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        // One that ends earlier was replaced, which reading finds out.
        if self.log.end() == from {
            return Ok(Vec::new());
        }
        let log = Arc::clone(&self.log);
        let read = tokio::task::spawn_blocking(move || log.read(from, bytes_max)).await;
        match read.map_err(|error| Error::Closed(error.to_string()))? {
            Err(log::Error::Trimmed { start, .. }) => {
                let why = format!("begins at {start}: what lay between is lost");
                Err(Error::LogOtherwise { position: from, why })
            }
            read => Ok(read?),
        }
    }

    /// Notes a position that nothing was awarded for, after a while.
    async fn note_in_time(&mut self, context: &Context) -> Result<(), Error> {
        let Some(Stand { position, noted, noted_at_ms }) = self.stand else { return Ok(()) };
        let waited_ms = context.clock.elapsed_ms() - noted_at_ms;
        if position == noted || waited_ms < context.options.position_ms {
            return Ok(());
        }
        self.note(context).await
    }

    async fn note(&mut self, context: &Context) -> Result<(), Error> {
        if let Some(stand) = &mut self.stand {
            context.places.note(self.log.partition(), stand.position).await?;
            stand.noted = stand.position;
            stand.noted_at_ms = context.clock.elapsed_ms();
            self.place.set_position(stand.position);
        }
        Ok(())
    }

    /// Lets this partition rest. The others go on.
    fn rest(&mut self, context: &Context, error: &Error) {
        self.resting_until_ms = context.clock.elapsed_ms() + REST_MS;
        let partition = self.log.partition();
        let trouble = format!("events of partition {partition} are not awarded points: {error}");
        if self.trouble.as_ref() != Some(&trouble) {
            tracing::error!(%error, partition, "events are not awarded points");
        }
        self.trouble = Some(trouble);
        // An operator may have skipped what is lost.
        self.stand = None;
    }
}

impl Context {
    /// When the first of the programmes was saved; `None` if there is none.
    async fn first_saved_ms(&self, snapshot: &Snapshot) -> Result<Option<i64>, Error> {
        let mut first_ms = None;
        for StoredDocument { id, .. } in snapshot.documents() {
            let saved_ms =
                self.documents.get(PROGRAMME, id, Some(1)).await?.map(|saved| saved.changed_ms);
            first_ms = first_ms.into_iter().chain(saved_ms).min();
        }
        Ok(first_ms)
    }

    /// Awards what has a price, and keeps the rest in a queue. All of it is durable when it
    /// returns; after an error some of it may be, and the caller repeats all.
    async fn award(&self, batch: &Batch<'_>) -> Result<(), Error> {
        if self.options.awarding == Awarding::Queued {
            self.send(QueueName::Retry, batch.leftovers(&[])).await?;
            let letters = batch.priced.iter().map(Letter::of_command).collect();
            return self.send(QueueName::Award, letters).await;
        }
        let mut answers = Vec::with_capacity(batch.priced.len());
        for commands in batch.priced.chunks(REQUEST_COMMANDS_MAX) {
            answers.extend(self.decide(commands).await?.into_iter().map(Ok));
        }
        self.send(QueueName::Retry, batch.leftovers(&answers)).await
    }

    /// Decides commands, as soon as there is room for them.
    async fn decide(&self, commands: &[Command]) -> Result<Vec<Answer>, Error> {
        loop {
            let answers = self.shared.decide(commands.to_vec(), Manner::Each).await;
            let answers: Result<Vec<Answer>, Error> = answers.into_iter().collect();
            match answers {
                Err(Error::Busy { retry_after }) => tokio::time::sleep(retry_after).await,
                answers => return answers,
            }
        }
    }

    async fn send(&self, queue: QueueName, letters: Vec<Letter>) -> Result<(), Error> {
        Ok(send_all(&*self.queues, queue, letters, Duration::ZERO).await?)
    }
}

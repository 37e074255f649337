//! Engines that fail when a process is to crash: before a call has its effect, or after it.

use parking_lot::Mutex;
use raingauge_points::{Footprint, Snapshot, Turn};
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::sender::{Request, Response, SendError, Sender};
use raingauge_ports::log::{self, Appended, Batch, EventSink, Offset, Partition};
use raingauge_ports::points::{
    Books, Burial, DueWallet, EntryStream, Error, Head, Letter, QueueError, QueueName, Queues,
    Receipt, Receive, ReceivedLetter,
};
use std::sync::Arc;
use std::time::Duration;

/// Decides at which call the process ends. Everything fails from then on.
#[derive(Debug, Default)]
pub struct Fuse(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Calls until the crash, and whether the last one has its effect.
    armed: Option<(u32, bool)>,
    has_blown: bool,
    /// How many times the books say that they have no room.
    crowded: u32,
    /// The time of a clock of the books' own.
    engine_ms: Option<i64>,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answers,
    /// It has its effect, and nobody learns of it.
    Vanishes,
    Fails,
}

impl Fuse {
    /// Lets the process end at a call from now on.
    pub fn arm(&self, calls: u32, has_effect: bool) {
        self.0.lock().armed = Some((calls, has_effect));
    }

    /// A new process begins.
    pub fn replace(&self) {
        *self.0.lock() = State::default();
    }

    /// The books have no room for work that can wait, as many times as they are asked.
    pub fn crowd(&self, times: u32) {
        self.0.lock().crowded = times;
    }

    /// The books have a clock of their own, which says this.
    pub fn set_engine_ms(&self, engine_ms: i64) {
        self.0.lock().engine_ms = Some(engine_ms);
    }

    pub fn crowded(&self) -> u32 {
        self.0.lock().crowded
    }

    pub fn has_blown(&self) -> bool {
        self.0.lock().has_blown
    }

    fn fate(&self) -> Fate {
        let mut state = self.0.lock();
        if state.has_blown {
            return Fate::Fails;
        }
        match state.armed {
            Some((0, has_effect)) => {
                state.has_blown = true;
                if has_effect { Fate::Vanishes } else { Fate::Fails }
            }
            Some((calls, has_effect)) => {
                state.armed = Some((calls - 1, has_effect));
                Fate::Answers
            }
            None => Fate::Answers,
        }
    }

    fn call<T, E>(
        &self,
        call: impl FnOnce() -> Result<T, E>,
        crashed: impl Fn() -> E,
    ) -> Result<T, E> {
        match self.fate() {
            Fate::Answers => call(),
            Fate::Vanishes => call().and_then(|_| Err(crashed())),
            Fate::Fails => Err(crashed()),
        }
    }
}

/// Engines behind a fuse.
pub struct Fused<E> {
    pub engine: Arc<E>,
    pub fuse: Arc<Fuse>,
}

impl<E> Fused<E> {
    /// Calls an engine, which may have its effect at once, or when the call is polled.
    async fn call<'a, T: Send, X: Send>(
        &'a self,
        call: impl FnOnce() -> BoxFuture<'a, Result<T, X>> + Send,
        crashed: impl Fn() -> X + Send,
    ) -> Result<T, X> {
        match self.fuse.fate() {
            Fate::Answers => call().await,
            Fate::Vanishes => call().await.and_then(|_| Err(crashed())),
            Fate::Fails => Err(crashed()),
        }
    }
}

fn crashed() -> Error {
    Error::Unavailable("the process has ended".to_owned())
}

fn queue_crashed() -> QueueError {
    QueueError::Unavailable("the process has ended".to_owned())
}

impl<E: Books> Books for Fused<E> {
    fn books(&self) -> u16 {
        self.engine.books()
    }

    fn head(&self, book: u16) -> Result<Head, Error> {
        self.engine.head(book)
    }

    fn turn(
        &self,
        books: &[u16],
        footprint: &Footprint,
        decide: &mut dyn FnMut(&[Head], Snapshot) -> Turn,
    ) -> Result<Vec<Head>, Error> {
        let engine_ms = self.fuse.0.lock().engine_ms;
        let mut decide =
            |heads: &[Head], loaded: Snapshot| decide(heads, Snapshot { engine_ms, ..loaded });
        self.fuse.call(|| self.engine.turn(books, footprint, &mut decide), crashed)
    }

    fn has_room(&self) -> bool {
        let mut state = self.fuse.0.lock();
        let is_crowded = state.crowded > 0;
        state.crowded = state.crowded.saturating_sub(1);
        !is_crowded && self.engine.has_room()
    }

    fn due(
        &self,
        book: u16,
        until_hour: u32,
        after: Option<&DueWallet>,
        len_max: usize,
    ) -> Result<Vec<DueWallet>, Error> {
        self.fuse.call(|| self.engine.due(book, until_hour, after, len_max), crashed)
    }

    fn read(
        &self,
        book: u16,
        from: u64,
        bytes_max: usize,
    ) -> Result<Vec<Arc<raingauge_points::Entry>>, Error> {
        self.engine.read(book, from, bytes_max)
    }

    fn place(&self, consumer: &str, book: u16) -> Result<u64, Error> {
        self.engine.place(consumer, book)
    }

    fn set_place(&self, consumer: &str, book: u16, sequence: u64) -> Result<(), Error> {
        self.fuse.call(|| self.engine.set_place(consumer, book, sequence), crashed)
    }
}

impl<E: Queues> Queues for Fused<E> {
    fn send(
        &self,
        queue: QueueName,
        letters: Vec<Letter>,
        delay: Duration,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(self.call(move || self.engine.send(queue, letters, delay), queue_crashed))
    }

    fn receive(
        &self,
        queue: QueueName,
        receive: Receive,
    ) -> BoxFuture<'_, Result<Vec<ReceivedLetter>, QueueError>> {
        Box::pin(self.call(move || self.engine.receive(queue, receive), queue_crashed))
    }

    fn delete(
        &self,
        queue: QueueName,
        receipts: Vec<Receipt>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(self.call(move || self.engine.delete(queue, receipts), queue_crashed))
    }

    fn change_visibility(
        &self,
        queue: QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(self.call(move || self.engine.change_visibility(queue, changes), queue_crashed))
    }

    fn bury(
        &self,
        queue: QueueName,
        burials: Vec<Burial>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(self.call(move || self.engine.bury(queue, burials), queue_crashed))
    }
}

impl<E: EventSink> EventSink for Fused<E> {
    fn partitions(&self) -> Partition {
        self.engine.partitions()
    }

    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, log::Error>> {
        let crashed = || log::Error::Closed("the process has ended".to_owned());
        Box::pin(self.call(move || self.engine.append(batch), crashed))
    }

    fn append_control(
        &self,
        partition: Partition,
        payload: Vec<u8>,
    ) -> BoxFuture<'_, Result<Offset, log::Error>> {
        self.engine.append_control(partition, payload)
    }
}

impl<E: EntryStream> EntryStream for Fused<E> {
    fn publish(&self, batch: Batch) -> BoxFuture<'_, Result<(), log::Error>> {
        let crashed = || log::Error::Closed("the process has ended".to_owned());
        Box::pin(self.call(move || self.engine.publish(batch), crashed))
    }
}

impl<E: Sender> Sender for Fused<E> {
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, SendError>> {
        let crashed = || SendError::Late(Duration::ZERO);
        Box::pin(self.call(move || self.engine.send(request), crashed))
    }
}

//! Follows the entries of the books, and hands them on in their order.

use crate::deps::Deps;
use crate::error::Error;
use crate::right::Right;
use crate::shared::Shared;
use parking_lot::Mutex;
use raingauge_points::Entry;
use raingauge_ports::points::Books;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Bytes of entries between two places that are noted.
const READ_BYTES: usize = 512 * 1_024;
/// Longest time until entries of other processes are noticed.
const POLL: Duration = Duration::from_secs(1);
/// Least time between two steps that find few entries. Under load one step hands on what many turns
/// wrote: each of them costs two syncs of the disk, on which the turns themselves wait.
const PACE: Duration = Duration::from_millis(50);
/// Pause after an error, before the same entries are handed on again.
const PAUSE: Duration = Duration::from_secs(1);

/// What takes the entries of a book, in their order and at least once each.
pub trait Reader: Send + Sync + 'static {
    /// The name under which its place is noted.
    fn name(&self) -> &'static str;

    /// Delivers entries. What it delivered before an error is handed to it again.
    fn deliver(
        &self,
        entries: Vec<Arc<Entry>>,
    ) -> impl Future<Output = Result<(), Error>> + Send + '_;
}

impl<R: Reader> Reader for Arc<R> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn deliver(
        &self,
        entries: Vec<Arc<Entry>>,
    ) -> impl Future<Output = Result<(), Error>> + Send + '_ {
        (**self).deliver(entries)
    }
}

/// One follower of all books, with a place in each.
pub struct Tail<R> {
    books: Arc<dyn Books>,
    shared: Arc<Shared>,
    right: Right,
    reader: R,
    /// Entries of each book that are yet to be handed on.
    behind: Mutex<Vec<u64>>,
}

impl<R: Reader> Tail<R> {
    pub fn new(deps: &Deps, shared: Arc<Shared>, reader: R) -> Self {
        let books = Arc::clone(&deps.books);
        let behind = Mutex::new(vec![0; books.books().into()]);
        Self { books, shared, right: Right::new(&deps.lease), reader, behind }
    }

    /// Follows until the process ends.
    pub async fn run(self) {
        let mut turns = self.shared.turns();
        let mut is_failing = false;
        loop {
            if !self.may_go_on().await {
                tokio::time::sleep(POLL).await;
                continue;
            }
            turns.mark_unchanged();
            let began = Instant::now();
            let pause = match self.step().await {
                Ok(true) => {
                    tokio::time::sleep_until(began + PACE).await;
                    continue;
                }
                Ok(false) => POLL,
                Err(error) => {
                    if !std::mem::replace(&mut is_failing, true) {
                        let name = self.reader.name();
                        tracing::warn!(%error, name, "entries of points are not handed on");
                    }
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            is_failing = false;
            // The sender is alive as long as the service.
            let _ = tokio::time::timeout(pause, turns.changed()).await;
        }
    }

    /// Whether this process hands entries on. Otherwise another one does, and reports the lag.
    pub async fn may_go_on(&self) -> bool {
        let is_held = self.right.is_held().await;
        if !is_held {
            self.behind.lock().fill(0);
            self.report();
        }
        is_held
    }

    /// Hands on the next entries of each book. Answers whether there were any.
    pub async fn step(&self) -> Result<bool, Error> {
        let mut has_any = false;
        for book in 0..self.books.books() {
            has_any |= self.step_in(book).await?;
        }
        Ok(has_any)
    }

    async fn step_in(&self, book: u16) -> Result<bool, Error> {
        let name = self.reader.name();
        let books = Arc::clone(&self.books);
        let read = move || {
            let place = books.place(name, book)?;
            let entries = books.read(book, place + 1, READ_BYTES)?;
            let head = if entries.is_empty() { place } else { books.head(book)?.sequence };
            Ok((place, entries, head))
        };
        let (place, entries, head) = blocking(read).await?;
        // Noted before the delivery, which may fail for as long as its receiver does.
        self.note_behind(book, head.saturating_sub(place));
        let Some(last) = entries.last().map(|entry| entry.sequence) else { return Ok(false) };

        let number = entries.len();
        self.reader.deliver(entries).await?;
        let books = Arc::clone(&self.books);
        blocking(move || books.set_place(name, book, last)).await?;
        self.note_behind(book, head.saturating_sub(last));
        metrics::counter!("raingauge_points_delivered_total", "consumer" => name)
            .increment(number as u64);
        Ok(true)
    }

    fn note_behind(&self, book: u16, entries: u64) {
        self.behind.lock()[usize::from(book)] = entries;
        self.report();
    }

    /// Writes how many entries of all books wait.
    fn report(&self) {
        let lag: u64 = self.behind.lock().iter().sum();
        metrics::gauge!("raingauge_points_delivery_lag", "consumer" => self.reader.name())
            .set(lag as f64);
    }
}

/// Runs a call of the books, which blocks its thread.
pub async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, raingauge_ports::points::Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(call).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(Error::Closed(error.to_string())),
    }
}

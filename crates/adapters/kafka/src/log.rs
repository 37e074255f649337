//! Reads one partition.

use crate::cursor::{Cursor, Found, Place, Trouble, last_before, probe, replaced};
use crate::dead_letters;
use crate::ends::Span;
use crate::keeper::Keeper;
use crate::options::EPOCH_STEP;
use crate::shared::Shared;
use parking_lot::Mutex;
use raingauge_ports::clock::{Clock, SystemClock};
use raingauge_ports::log::{Block, Error, EventLog, LogTimes, Needs, Offset, Partition};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

/// Maximum number of positions that are read at once, each with its own client and dedupe window.
const CURSORS_MAX: usize = 4;
/// How long a read waits for messages that must exist before it returns nothing.
const READ_WAIT: Duration = Duration::from_secs(1);
/// The same wait for a backfill, which must not delay live events.
const BEHIND_WAIT: Duration = Duration::from_millis(20);
/// A cursor that nobody has used for this long is closed.
const IDLE: Duration = Duration::from_secs(600);
const BEHIND_IDLE: Duration = Duration::from_secs(60);
/// Damaged reads in a row after which the damage is taken to be in the topic, not on the network.
const DAMAGED_MAX: u32 = 3;

/// One partition of the topic. Continuing where the last read ended is cheap. Reading from any
/// other offset first rebuilds the dedupe window, from stored chunks or else from the topic, and
/// returns nothing until that is done.
///
/// While the brokers are unreachable, reads return nothing after a second, and the ends keep their
/// last known values.
pub struct Log {
    shared: Arc<Shared>,
    partition: Partition,
    base: Offset,
    span: Arc<Span>,
    /// Uncountable messages before this offset are in the dead-letter topic; -1 before the first
    /// read. `None` for logs that do not count.
    dead_lettered: Option<Arc<AtomicI64>>,
    /// Stores the chunks of the counting reader's dedupe window.
    keeper: Option<Keeper>,
    cursors: Mutex<Vec<Cursor>>,
    /// The backfill's cursor, kept apart so that it never displaces a counting reader's.
    behind: Mutex<Option<Cursor>>,
    damaged: AtomicU32,
    /// Set when reads must return without waiting.
    stops: AtomicBool,
    /// The offset after the last answer, and the append time of the message before it.
    answered: Mutex<Option<(i64, i64)>>,
    /// The offset and append time of the first retained message.
    first: Mutex<Option<(i64, i64)>>,
}

impl Log {
    pub(crate) fn new(
        shared: Arc<Shared>,
        partition: Partition,
        span: Arc<Span>,
        dead_lettered: Option<Arc<AtomicI64>>,
    ) -> std::io::Result<Self> {
        let chunks = shared.chunks().filter(|_| dead_lettered.is_some());
        let keeper = chunks.map(|store| Keeper::start(Arc::clone(store), partition)).transpose()?;
        Ok(Self {
            base: shared.options.base(),
            shared,
            partition,
            span,
            dead_lettered,
            keeper,
            cursors: Mutex::default(),
            behind: Mutex::default(),
            damaged: AtomicU32::new(0),
            stops: AtomicBool::new(false),
            answered: Mutex::default(),
            first: Mutex::default(),
        })
    }

    /// Kafka's offset. An offset of an older epoch maps to the start of the current topic.
    fn place_of(&self, from: Offset) -> Result<i64, Error> {
        match from.saturating_sub(self.base) {
            place if place < EPOCH_STEP => Ok(place as i64),
            _ => Err(Error::Corrupt(format!(
                "offset {from} belongs to a later epoch of the topic than {}: look at kafka.epoch",
                self.shared.options.epoch
            ))),
        }
    }

    /// Returns whether there is a message to read at `place`; `false` at the partition's end.
    fn look(&self, from: Offset, place: i64) -> Result<bool, Error> {
        if let Some(reason) = self.shared.ends().replaced() {
            return Err(Error::Replaced(reason.to_owned()));
        }

        if place < self.span.start() {
            return Err(Error::Trimmed { asked: from, start: self.start() });
        }

        if place > self.span.end() {
            // Another process may know a later end, so ask the brokers.
            let asked = self.shared.ends().refresh(&self.span);
            if asked.is_ok() && place > self.span.end() {
                return Err(Error::Corrupt(format!(
                    "offset {from} lies behind the end of partition {}, {}: was the topic recreated? raise kafka.epoch",
                    self.partition,
                    self.end()
                )));
            }
        }

        Ok(place < self.span.end())
    }

    /// Returns a cursor that stands at `place`, opening one if necessary.
    fn cursor_at(&self, place: i64) -> Result<Cursor, Trouble> {
        match self.standing_at(place) {
            Some(cursor) => Ok(cursor),
            None => self.open_cursor(place),
        }
    }

    fn open_cursor(&self, place: i64) -> Result<Cursor, Trouble> {
        let answered = self.answered.lock().filter(|(end, _)| *end == place);
        let before_ms = answered.map(|(_, appended_ms)| appended_ms);
        self.open_at(place, before_ms, self.keeper.is_some())
    }

    /// Opens a cursor, which stores chunks of its window if it `records`.
    fn open_at(
        &self,
        place: i64,
        before_ms: Option<i64>,
        records: bool,
    ) -> Result<Cursor, Trouble> {
        let span = Place {
            partition: self.partition.into(),
            from: place,
            start: self.span.start(),
            before_ms,
        };
        Cursor::open(&self.shared, span, records)
    }

    /// A counting reader that waits at the end will continue here, so its dedupe window is loaded
    /// while it waits.
    fn ready_cursor(&self, place: i64) -> Option<Cursor> {
        let counts = self.dead_lettered.is_some()
            && place == self.span.end()
            && self.shared.connection.is_up();
        if !counts {
            return None;
        }
        self.open_cursor(place).ok()
    }

    fn standing_at(&self, place: i64) -> Option<Cursor> {
        let mut cursors = self.cursors.lock();
        let standing = cursors.iter().position(|cursor| cursor.stands_at(place))?;
        Some(cursors.remove(standing))
    }

    fn keep(&self, cursor: Cursor) {
        let mut cursors = self.cursors.lock();
        cursors.push(cursor);
        // Least recently used first. Stopping a client takes a moment, so that happens without the
        // lock.
        cursors.sort_by_key(Cursor::used);
        let idle = cursors.iter().take_while(|cursor| cursor.used().elapsed() > IDLE).count();
        let surplus = cursors.len().saturating_sub(CURSORS_MAX);
        let given_up: Vec<Cursor> = cursors.drain(..idle.max(surplus)).collect();
        drop(cursors);
        drop(given_up);
        self.behind.lock().take_if(|behind| behind.used().elapsed() > BEHIND_IDLE);
    }

    /// Reads on with a cursor, counting repetitions and sending refused messages to the dead
    /// letters.
    fn advance(
        &self,
        cursor: &mut Cursor,
        bytes_max: usize,
        wait: Duration,
    ) -> Result<Vec<Block>, Trouble> {
        self.fill(cursor, self.span.end(), bytes_max, wait)?;

        if cursor.reader().bytes() == 0 {
            return Ok(Vec::new());
        }
        self.shared.connection.restored();

        let sends = self.dead_lettered.is_some();
        if sends && !dead_letters::send(&self.shared, cursor.reader().poison(), &self.stops) {
            // The next read sends the rest before it returns anything.
            return Ok(Vec::new());
        }

        let made = cursor.answer();
        if cursor.reader().last_ms() > 0 {
            *self.answered.lock() = Some((cursor.reader().next(), cursor.reader().last_ms()));
        }

        if let Some(sent_to) = &self.dead_lettered {
            let before = sent_to.load(Ordering::Acquire);
            let next = cursor.reader().next();
            if sent_to.fetch_max(next, Ordering::AcqRel) == before && before < next {
                metrics::counter!("raingauge_events_duplicate_total").increment(made.repetitions);
            }
            self.report(cursor);
        }

        Ok(made.blocks)
    }

    fn fill(
        &self,
        cursor: &mut Cursor,
        end: i64,
        bytes_max: usize,
        wait: Duration,
    ) -> Result<(), Trouble> {
        if let Some(sent_to) = &self.dead_lettered {
            let from = cursor.reader().answers_from();
            // The process that counted before has sent everything before this one's first offset.
            let _ = sent_to.compare_exchange(-1, from, Ordering::AcqRel, Ordering::Acquire);
            cursor.reader().keep_poison_from(sent_to.load(Ordering::Acquire));
        }
        cursor.fill(&self.shared, end, bytes_max, wait)?;
        if let Some(keeper) = &self.keeper {
            cursor.reader().take_full().into_iter().for_each(|chunk| keeper.keep(chunk));
        }
        self.shared.ends().reaches(&self.span, cursor.reader().next());
        Ok(())
    }

    fn report(&self, cursor: &mut Cursor) {
        let partition = self.partition.to_string();
        let forgotten = cursor.reader().window().take_forgotten();
        metrics::gauge!("raingauge_dedupe_ids", "partition" => partition.clone())
            .set(cursor.reader().window().len() as f64);

        if forgotten > 0 {
            metrics::counter!("raingauge_dedupe_forgotten_total", "partition" => partition)
                .increment(forgotten);
            tracing::warn!(
                partition = self.partition,
                forgotten,
                ids_max = self.shared.options.dedupe_ids_max,
                "the dedupe window holds more identities than dedupe.ids_max, so the oldest are forgotten early: raise the limit on every process, or shorten the window"
            );
        }
    }

    /// Turns a failed read into "nothing yet", or into an error that stays.
    fn explain(&self, from: Offset, place: i64, trouble: Trouble) -> Result<Vec<Block>, Error> {
        match trouble {
            Trouble::Log(error) => return Err(error),
            Trouble::OutOfRange => {
                if self.shared.ends().refresh(&self.span).is_ok() {
                    self.look(from, place)?;
                }
            }
            Trouble::Broken(reason) => {
                tracing::debug!(partition = self.partition, reason, "restarting the read");
                self.shared.connection.lost(&reason);
            }
            Trouble::Damaged(reason) => {
                tracing::warn!(
                    partition = self.partition,
                    from,
                    reason,
                    "damaged messages were received; reading them again"
                );
                if self.damaged.fetch_add(1, Ordering::Relaxed) + 1 >= DAMAGED_MAX {
                    return Err(Error::Corrupt(reason));
                }
            }
        }
        Ok(Vec::new())
    }
}

impl EventLog for Log {
    fn partition(&self) -> Partition {
        self.partition
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        let place = self.place_of(from)?;
        if !self.look(from, place)? {
            return Ok(Vec::new());
        }

        if let Some(blocks) =
            self.cursors.lock().iter().find_map(|cursor| cursor.answered_from(from))
        {
            return Ok(blocks);
        }

        let read = self.cursor_at(place).and_then(|mut cursor| {
            let blocks = self.advance(&mut cursor, bytes_max, READ_WAIT)?;
            self.keep(cursor);
            Ok(blocks)
        });

        match read {
            Ok(blocks) => {
                self.damaged.store(0, Ordering::Relaxed);
                Ok(blocks)
            }
            Err(trouble) => self.explain(from, place, trouble),
        }
    }

    fn read_behind(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        let place = self.place_of(from)?;
        if !self.look(from, place)? {
            return Ok(Vec::new());
        }

        let mut behind = self.behind.lock();
        if let Some(blocks) = behind.as_ref().and_then(|cursor| cursor.answered_from(from)) {
            return Ok(blocks);
        }

        let standing = behind.take().filter(|cursor| cursor.stands_at(place));
        let read =
            standing.map_or_else(|| self.open_at(place, None, false), Ok).and_then(|mut cursor| {
                let blocks = self.advance(&mut cursor, bytes_max, BEHIND_WAIT)?;
                *behind = Some(cursor);
                Ok(blocks)
            });

        drop(behind);
        read.or_else(|trouble| self.explain(from, place, trouble))
    }

    fn leave(&self, offset: Offset) {
        if let Ok(place) = self.place_of(offset) {
            drop(self.standing_at(place));
        }
    }

    fn start(&self) -> Offset {
        self.base + self.span.start() as Offset
    }

    fn end(&self) -> Offset {
        self.base + self.span.end() as Offset
    }

    fn wait_beyond(&self, offset: Offset, timeout: Duration) -> Offset {
        let Ok(place) = self.place_of(offset) else {
            return self.end();
        };
        if self.span.end() > place {
            return self.end();
        }

        // A message ends the wait of a reader at the end sooner than a question about the end
        // would.
        match self.standing_at(place).or_else(|| self.ready_cursor(place)) {
            None => self.shared.ends().wait(&self.span, place, timeout),
            Some(mut cursor) => {
                if self.fill(&mut cursor, place, 1, timeout).is_ok() {
                    self.keep(cursor);
                }
            }
        }

        self.end()
    }

    fn stop_waiting(&self) {
        self.stops.store(true, Ordering::Release);
    }
}

impl LogTimes for Log {
    fn verify(&self, position: Offset, appended_ms: i64) -> Result<(), Error> {
        let place = self.place_of(position)?;
        self.look(position, place.max(self.span.start()))?;

        if place <= self.span.start() {
            return Ok(());
        }

        match last_before(&self.shared, self.partition.into(), place, self.span.start()) {
            Ok(Some(last_ms)) if last_ms > appended_ms => Err(replaced(place, last_ms)),
            Ok(_) => Ok(()),
            Err(Trouble::Log(error)) => Err(error),
            Err(trouble) => {
                Err(Error::Io(std::io::Error::other(format!("Kafka did not answer: {trouble:?}"))))
            }
        }
    }

    /// Asks the broker if the start has moved, blocking the thread. Returns the current time while
    /// the brokers are unreachable, which promises nothing about the log's content.
    fn start_ms(&self) -> i64 {
        let start = self.span.start();
        if start == 0 {
            return 0;
        }

        let mut first = self.first.lock();
        if let Some((_, appended_ms)) = first.filter(|(known, _)| *known == start) {
            return appended_ms;
        }

        match probe(&self.shared, self.partition.into(), start) {
            Ok(Found::Message { appended_ms, .. }) => {
                *first = Some((start, appended_ms));
                appended_ms
            }
            Ok(Found::End) | Err(_) => SystemClock.now_ms(),
        }
    }

    /// Asks the broker. If it does not answer, the reader reads more than it needs, but misses
    /// nothing.
    fn begin_since(&self, appended_ms: i64) -> Offset {
        // Asked first: what is appended until the brokers answer lies behind it.
        let end = self.span.end();
        match self.shared.ends().first_since(self.partition.into(), appended_ms) {
            Ok(place) => {
                let place = place.unwrap_or(end).clamp(self.span.start(), self.span.end());
                self.base + place as Offset
            }
            Err(_) => self.start(),
        }
    }

    fn appended_ms(&self, offset: Offset) -> Option<i64> {
        let place = self.place_of(offset).ok()?.max(self.span.start());
        match probe(&self.shared, self.partition.into(), place) {
            Ok(Found::Message { appended_ms, .. }) => Some(appended_ms),
            Ok(Found::End) | Err(_) => None,
        }
    }

    /// The brokers trim the topic by its retention.
    fn trim(&self, _needs: Needs) -> Result<(), Error> {
        Ok(())
    }
}

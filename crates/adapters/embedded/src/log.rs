//! The event log in segment files, with group commit and a window of known identities.

pub mod acknowledged;
mod appender;
mod identities;
pub mod inspect;
pub mod note;
mod options;
mod repair;
mod run;
pub mod segment;
pub mod segments;

use crate::clock::LogClock;
use crate::files::{DiskFolder, Folder};
use crate::room::Room;
use acknowledged::Acknowledged;
use appender::{Answered, Appender, Committer, Lookup, Request};
use identities::Identities;
use inspect::Mending;
use note::Note;
use parking_lot::Mutex;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{
    Answer, Appended, Batch, Block, Error, EventLog, EventSink, LogTimes, Needs, Offset, Partition,
};
use run::Runs;
use segment::EVENTS;
use segments::Segments;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use options::Options;
pub use repair::{Allowed, Fault, Repair};

/// Most events of a batch whose identities the sending thread looks up in memory.
const LOOKUPS_AT_ONCE_MAX: usize = 256;

/// The log of one data folder. Only one process has it open at a time.
pub struct SegmentLog {
    segments: Arc<Segments>,
    appender: Appender,
    /// Identities of older events.
    runs: Arc<Runs>,
    clock: Arc<LogClock>,
    /// From here on there are only events. Of what lay in the log at the start it is not known.
    events_from: Arc<AtomicU64>,
    /// When the clock was last trusted.
    noted: Mutex<Note>,
    room: Room,
    options: Options,
}

/// A log that was read, and of which nothing on disk has changed yet. Everything that could refuse
/// a start has to be checked before [`Inspection::open`].
pub struct Inspection {
    segments: Segments,
    mending: Mending,
    known: Identities,
    acknowledged: Acknowledged,
    noted: Note,
    room: Room,
    options: Options,
}

impl SegmentLog {
    /// Opens the log in `folder`, or creates one. A tail that was never acknowledged is cut off;
    /// damage to anything acknowledged is an error.
    pub fn open(folder: &Path, options: Options, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Self::inspect(folder, options)?.open(0, Arc::new(LogClock::trusting(clock)))
    }

    /// Reads the contents of a folder without changing anything.
    pub fn inspect(folder: &Path, options: Options) -> Result<Inspection, Error> {
        let folder = DiskFolder::open(folder).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::Error::new(
                error.kind(),
                format!("another process has {} open", folder.display()),
            )
            .into(),
            _ => Error::Io(error),
        })?;
        Inspection::of(Arc::new(folder), options)
    }

    fn send(&self, request: Request) -> Result<Answered, Error> {
        self.check_clock()?;
        self.appender.send(request)
    }

    fn check_clock(&self) -> Result<(), Error> {
        self.clock.refusal().map_or(Ok(()), |reason| Err(Error::ClockUnsound(reason)))
    }

    /// Records that the clock is trusted, so that a later start knows until when a process ran.
    fn note_time(&self) {
        self.clock.report();
        let look = self.clock.look();
        if look.is_sound
            && let Err(error) = self.noted.lock().write(look.now_ms as u64)
        {
            tracing::warn!(%error, "the time could not be noted");
        }
    }
}

impl Inspection {
    fn of(folder: Arc<dyn Folder>, options: Options) -> Result<Self, Error> {
        let acknowledged = Acknowledged::read(Arc::clone(&folder))?;
        let (segments, mending) =
            inspect::inspect(&EVENTS, Arc::clone(&folder), options.segment_bytes)
                .map_err(repairable)?;
        acknowledged.check(segments.end()).map_err(repairable)?;
        let known = Identities::open(Arc::clone(&folder), &options).map_err(repairable)?;
        let room = Room::new(folder.path(), options.reserve_bytes);
        let noted = Note::read(folder, "clock")?;
        Ok(Self { segments, mending, known, acknowledged, noted, room, options })
    }

    /// Whether the log has never held an entry.
    pub fn is_empty(&self) -> bool {
        self.segments.end() == 0 && self.acknowledged.offset() == 0
    }

    /// The offset of the first entry that is still in the log.
    pub fn start(&self) -> Offset {
        self.segments.start()
    }

    /// The offset behind the last entry.
    pub fn end(&self) -> Offset {
        self.segments.end()
    }

    /// Opens the log. `applied_to` is the offset before which the bucket store includes it: a log
    /// that ends earlier is refused. Until that is decided, nothing changes on disk.
    pub fn open(self, applied_to: Offset, clock: Arc<LogClock>) -> Result<SegmentLog, Error> {
        let options = self.options.clone();
        clock.begin(self.segments.appended_ms(), self.noted.number() as i64);
        let Ready { committer, noted, room } = self.ready(applied_to, Arc::clone(&clock))?;
        let segments = Arc::clone(&committer.segments);
        let runs = committer.known.runs();
        let events_from = Arc::clone(&committer.events_from);
        let appender = Appender::start(committer, options.queue_bytes_max)?;
        let noted = Mutex::new(noted);
        Ok(SegmentLog { segments, appender, runs, clock, events_from, noted, room, options })
    }

    fn ready(self, applied_to: Offset, clock: Arc<LogClock>) -> Result<Ready, Error> {
        let Self { segments, mending, mut known, mut acknowledged, noted, room, .. } = self;
        let end = segments.end();
        if applied_to > end {
            return Err(repairable(Error::Corrupt(format!(
                "it ends at offset {end}, but the bucket store includes it up to offset {applied_to}"
            ))));
        }

        known.learn(&segments, applied_to, clock.now_ms()).map_err(repairable)?;

        // From here on only the disk can refuse the start.
        segments.mend(&mending)?;
        known.tidy();

        // All of it may be acknowledged from now on, as duplicates of events that are sent again.
        acknowledged.note(end);
        let segments = Arc::new(segments);
        let block = Vec::new();
        let fresh = Vec::new();
        let events_from = Arc::new(AtomicU64::new(end));
        let has_control = false;
        let committer = Committer {
            segments,
            known,
            acknowledged,
            clock,
            events_from,
            block,
            has_control,
            fresh,
        };

        Ok(Ready { committer, noted, room })
    }
}

/// A log that was mended and has no thread yet.
struct Ready {
    committer: Committer,
    noted: Note,
    room: Room,
}

/// Adds what an operator can do about damage.
fn repairable(error: Error) -> Error {
    match error {
        Error::Corrupt(reason) => Error::Corrupt(format!(
            "{reason}. Restore the whole data folder from a backup, or see what `raingauge repair` would accept as lost"
        )),
        error => error,
    }
}

/// Removes segments that are no longer needed. By age only while the clock is trusted.
fn trim(
    segments: &Segments,
    options: &Options,
    clock: &LogClock,
    needs: Needs,
    remembered_to: Offset,
) -> Result<(), Error> {
    let look = clock.look();
    let before = |age_ms: i64| if look.is_sound { look.now_ms - age_ms } else { i64::MIN };
    // An identity is needed while its window lasts, from its run or, until that is written, from
    // the log.
    let forgotten_to = segments.base_since(before(options.dedupe_window_ms));
    // A consumer that is further behind than the bound is overtaken.
    let held_to = needs.others.max(segments.base_within(options.consumer_lag_bytes_max));
    let keep_from = needs.counting.min(held_to).min(remembered_to.max(forgotten_to));
    segments.trim(keep_from, before(options.retention.as_millis() as i64), options.retention_bytes)
}

impl EventSink for SegmentLog {
    fn partitions(&self) -> Partition {
        1
    }

    fn check(&self) -> Result<(), Error> {
        self.appender.check()?;
        self.check_clock()?;
        self.room.check()
    }

    fn append(&self, batch: Batch) -> Answer<'_, Appended> {
        let runs = self.runs.now();
        let may_hold = |(_, identity): &(usize, _)| runs.may_contain(*identity);
        let is_new = batch.len() <= LOOKUPS_AT_ONCE_MAX && !batch.entries.iter().any(may_hold);
        if is_new || runs.to() == 0 {
            let answer =
                self.send(Request::Events(batch, Lookup { to: runs.to(), duplicates: Vec::new() }));
            return Box::pin(async move { answer?.await.map_err(|_| closed())? });
        }

        Box::pin(async move {
            // Replays of old events read the disk: at their own pace, and not on the appender's
            // thread.
            let look = move || (Lookup::of(&batch, &runs), batch);
            let (lookup, batch) = tokio::task::spawn_blocking(look).await.map_err(|_| closed())?;
            let lookup = lookup.map_err(|error| Error::NotTaken(error.to_string()))?;

            self.send(Request::Events(batch, lookup))?.await.map_err(|_| closed())?
        })
    }

    fn append_control(&self, _: Partition, payload: Vec<u8>) -> Answer<'_, Offset> {
        let answer = self.send(Request::Control(payload));
        Box::pin(
            async move { answer?.await.map_err(|_| closed())?.map(|appended| appended.ends[0].1) },
        )
    }
}

impl EventLog for SegmentLog {
    fn partition(&self) -> Partition {
        0
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        self.segments.read(from, bytes_max)
    }

    fn start(&self) -> Offset {
        self.segments.start()
    }

    fn end(&self) -> Offset {
        self.segments.end()
    }

    fn wait_beyond(&self, offset: Offset, timeout: Duration) -> Offset {
        self.segments.wait_beyond(offset, timeout)
    }
}

impl LogTimes for SegmentLog {
    fn start_ms(&self) -> i64 {
        self.segments.start_ms()
    }

    fn begin_since(&self, appended_ms: i64) -> Offset {
        self.segments.base_since(appended_ms)
    }

    fn appended_ms(&self, offset: Offset) -> Option<i64> {
        self.segments.appended_at(offset).ok().flatten()
    }

    fn events_until(&self, from: Offset) -> Offset {
        // In this order: no control entry lies between the two.
        let end = self.segments.end();
        if from >= self.events_from.load(Ordering::Acquire) { end.max(from) } else { from }
    }

    fn trim(&self, needs: Needs) -> Result<(), Error> {
        self.note_time();
        let remembered_to = self.appender.remembered_to();
        trim(&self.segments, &self.options, &self.clock, needs, remembered_to)
    }
}

fn closed() -> Error {
    Error::Closed("its writer has stopped; restart raingauge".to_owned())
}

#[cfg(test)]
mod tests;

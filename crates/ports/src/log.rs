//! The event log: events in the order in which they were accepted, durable before they are acknowledged.
//!
//! A log has one or more partitions. Each is a sequence of its own: an event and its repetitions lie in the same one,
//! and the counts that come of a partition are a function of what it holds, and of nothing else.

use crate::BoxFuture;
use crate::record::{self, Entry, Identity};
use raingauge_core::event::Event;
use std::time::Duration;

/// The number of an entry in its partition; the first one is 0.
pub type Offset = u64;

/// The number of a partition; the first one is 0.
pub type Partition = u16;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too much waits to be written: nothing was taken, and the caller may try again.
    #[error("the event log is busy: try again after {} s", retry_after.as_secs())]
    Busy { retry_after: Duration },
    /// The disk has little room left: nothing was taken, and the caller may try again when there is more.
    #[error(
        "the disk of the event log has {free_bytes} bytes left, and the last {reserve_bytes} are kept in reserve: \
         make room, and send the events again"
    )]
    Full { free_bytes: u64, reserve_bytes: u64 },
    /// A request has more bytes than a block of the log may have.
    #[error(
        "{bytes} bytes do not fit into one block of the event log, which has at most {bytes_max}: send them in parts"
    )]
    TooLarge { bytes: usize, bytes_max: usize },
    /// It could not be written, and nothing of it is in the log; the caller may try again.
    #[error("the event log could not be written, and nothing was taken: {0}; try again")]
    NotTaken(String),
    /// The clock cannot be right, and entries carry its time.
    #[error("{0}")]
    ClockUnsound(String),
    /// The log was closed, or a write to it failed; nothing is accepted until it is opened again.
    #[error("the event log takes no more events: {0}")]
    Closed(String),
    /// Entries that were asked for have been trimmed away.
    #[error("the event log begins at offset {start}; offset {asked} has been trimmed")]
    Trimmed { asked: Offset, start: Offset },
    /// What lies on disk is not what was written.
    #[error("the event log is damaged: {0}")]
    Corrupt(String),
    /// The log is not the one that was counted.
    #[error("the event log was cut or replaced: {0}")]
    Replaced(String),
    #[error("the event log could not be read or written: {0}")]
    Io(#[from] std::io::Error),
}

/// Events on their way into the log, encoded.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Event entries, one behind the other.
    pub bytes: Vec<u8>,
    /// Of each entry, where it ends in `bytes`, and its identity.
    pub entries: Vec<(usize, Identity)>,
}

impl Batch {
    pub fn push(&mut self, event: &Event<'_>) {
        let identity = record::push_event(event, &mut self.bytes);
        self.entries.push((self.bytes.len(), identity));
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Events that are in the log now and were not before.
    pub accepted: usize,
    /// Events whose `source` and `id` the log already knew.
    pub duplicates: usize,
    /// Of each partition that took part, the offset behind the last entry that the batch, or an original of its
    /// duplicates, may have: whoever has applied the partitions up to here has applied the batch.
    pub ends: Vec<(Partition, Offset)>,
}

/// Neighbouring entries that became durable together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Offset of the first entry.
    pub base: Offset,
    /// When they were accepted, in milliseconds since 1970. It may be a little earlier than that of the block before where
    /// several machines stamp them; whoever needs a time that grows takes the latest so far.
    pub appended_ms: i64,
    /// Number of entries.
    pub len: u64,
    /// The entries, one behind the other.
    pub bytes: Vec<u8>,
}

impl Block {
    /// Offset behind the last entry.
    pub fn end(&self) -> Offset {
        self.base + self.len
    }

    /// The entries from `from` on. A malformed one ends the walk with an error.
    pub fn entries(
        &self,
        from: Offset,
    ) -> impl Iterator<Item = Result<(Offset, Entry<'_>), Error>> {
        let mut rest = &self.bytes[..];
        (self.base..self.end()).filter_map(move |offset| {
            let Some(entry) = record::split_entry(&mut rest) else {
                return Some(Err(Error::Corrupt(format!(
                    "the entry at offset {offset} is cut short"
                ))));
            };
            if offset < from {
                return None;
            }
            let parsed = record::parse(entry);
            Some(parsed.map(|entry| (offset, entry)).ok_or_else(|| {
                Error::Corrupt(format!(
                    "the entry at offset {offset} is not one that this program knows"
                ))
            }))
        })
    }
}

/// The offsets from which on a partition of the log is still needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// By counting: nothing behind this is trimmed, whatever the log grows to.
    pub counting: Offset,
    /// By the other consumers, the least of their offsets: kept beyond the retention, as far as the
    /// log's bound for consumers that lag allows. [`Offset::MAX`] without any.
    pub others: Offset,
}

impl Needs {
    /// What a log needs whose only consumer counts.
    pub fn of_counting(counting: Offset) -> Self {
        Self { counting, others: Offset::MAX }
    }
}

/// What each partition is told.
pub type PayloadOf = Box<dyn Fn(Partition) -> Vec<u8> + Send + Sync>;

/// Where events come in. Appending answers when what was appended is durable.
pub trait EventSink: Send + Sync {
    /// How many partitions there are.
    fn partitions(&self) -> Partition;

    /// Whether events are taken at the moment. [`Error::Closed`] is final; any other error may pass.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Appends events. Duplicates are left out here, or by [`EventLog::read`] when only a reader can tell them.
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, Error>>;

    /// Appends a control entry to a partition and answers the offset behind it.
    fn append_control(
        &self,
        partition: Partition,
        payload: Vec<u8>,
    ) -> BoxFuture<'_, Result<Offset, Error>>;

    /// Appends a control entry to every partition: to all of them, or, with [`Error::NotTaken`], to none. After another
    /// error it may be in all or in none. Answers the offsets behind the entries. For a log with one partition there is
    /// nothing else to see to.
    fn append_to_all(
        &self,
        payload_of: PayloadOf,
    ) -> BoxFuture<'_, Result<Vec<(Partition, Offset)>, Error>> {
        Box::pin(async move {
            let mut ends = Vec::new();
            for partition in 0..self.partitions() {
                ends.push((
                    partition,
                    self.append_control(partition, payload_of(partition)).await?,
                ));
            }
            Ok(ends)
        })
    }
}

/// One partition of the log, as it is read. What it answers for an offset never changes: a duplicate, or a message that
/// cannot be counted, is read as [`Entry::Void`] by everybody and at any time.
pub trait EventLog: Send + Sync {
    fn partition(&self) -> Partition;

    /// Looks whether what lies before `position` is what was counted, as far as times tell: none of it was appended later than
    /// `appended_ms`, in milliseconds since 1970. Blocks the thread.
    fn verify(&self, _position: Offset, _appended_ms: i64) -> Result<(), Error> {
        Ok(())
    }

    /// Reads durable blocks from the one that holds `from` on, at least one block and about `bytes_max` bytes;
    /// none when the log ends at `from`, or cannot be reached for now: only [`EventLog::end`] tells the end. The first
    /// block lies behind `from` where the log was begun anew with higher offsets. Blocks the thread.
    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error>;

    /// Reads for a backfill, behind whoever counts with the same log: waits for nothing that is not at hand, and answers
    /// nothing then. Costs no other reader its place. One place is read on at a time.
    fn read_behind(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        self.read(from, bytes_max)
    }

    /// Nobody reads on at this offset: what was kept for that may go, such as the dedupe window of a walk.
    fn leave(&self, _offset: Offset) {}

    /// The offset of the first entry that is kept.
    fn start(&self) -> Offset;

    /// When the first entry that is kept was appended, in milliseconds since 1970; 0 while nothing was ever trimmed:
    /// every event that was accepted later than this is still in the log.
    fn start_ms(&self) -> i64;

    /// An offset before which everything was appended earlier than this, in milliseconds since 1970: whoever looks for what
    /// came in since may begin there. Where that is not known, the start. Blocks the thread.
    fn begin_since(&self, _appended_ms: i64) -> Offset {
        self.start()
    }

    /// When the entry at an offset, or the first one behind it, was appended, in milliseconds since 1970; `None` when that is
    /// not known. Blocks the thread.
    fn appended_ms(&self, _offset: Offset) -> Option<i64> {
        None
    }

    /// The offset behind the last durable entry, as it was known a moment ago.
    fn end(&self) -> Offset;

    /// Waits until the log ends beyond `offset`, at most `timeout`. Blocks the thread. Answers the end.
    fn wait_beyond(&self, offset: Offset, timeout: Duration) -> Offset;

    /// Cuts short what a read waits for besides the log itself, now and from now on: its reader is to stop. What such a read
    /// leaves undone is done by the next reader.
    fn stop_waiting(&self) {}

    /// Trims what is older than the retention and not needed. Blocks the thread.
    fn trim(&self, needs: Needs) -> Result<(), Error>;
}

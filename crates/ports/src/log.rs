//! The event log: events in the order in which they were accepted, durable before they are
//! acknowledged.
//!
//! A log has one or more partitions. Each is a sequence of its own: an event and its repetitions
//! lie in the same one, and the counts that result from a partition are a function of its entries
//! alone.

mod event_log;
mod event_sink;
mod log_times;

pub use event_log::EventLog;
pub use event_sink::{EventSink, PayloadOf};
pub use log_times::LogTimes;

use crate::BoxFuture;
use crate::record::{self, Entry, Identity};
use raingauge_core::event::Event;
use std::time::Duration;

/// The number of an entry in its partition; the first one is 0.
pub type Offset = u64;

/// The number of a partition; the first one is 0.
pub type Partition = u16;

/// What the log answers once entries are durable.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too many bytes wait to be written. Nothing was taken, and the caller may try again.
    #[error("the event log is busy: try again after {} s", retry_after.as_secs())]
    Busy { retry_after: Duration },
    /// The disk is almost full. Nothing was taken, and the caller may try again when there is more
    /// room.
    #[error(
        "the disk of the event log has {free_bytes} bytes left, and the last {reserve_bytes} are kept in reserve: \
         make room, and send the events again"
    )]
    Full { free_bytes: u64, reserve_bytes: u64 },
    /// The request is larger than a block of the log may be.
    #[error(
        "{bytes} bytes do not fit into one block of the event log, which has at most {bytes_max}: send them in parts"
    )]
    TooLarge { bytes: usize, bytes_max: usize },
    /// The write failed, and nothing of it is in the log. The caller may try again.
    #[error("the event log could not be written, and nothing was taken: {0}; try again")]
    NotTaken(String),
    /// The clock cannot be right, and entries carry its time.
    #[error("{0}")]
    ClockUnsound(String),
    /// The log was closed, or a write to it failed. It accepts nothing until it is opened again.
    #[error("the event log takes no more events: {0}")]
    Closed(String),
    /// The requested entries have been trimmed.
    #[error("the event log begins at offset {start}; offset {asked} has been trimmed")]
    Trimmed { asked: Offset, start: Offset },
    /// The bytes on disk are not those that were written.
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
    /// For each entry, its end in `bytes` and its identity.
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

/// The result of appending a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Events that the log did not hold before.
    pub accepted: usize,
    /// Events whose `source` and `id` the log already knew.
    pub duplicates: usize,
    /// For each partition involved, the offset behind the last entry that belongs to the batch or
    /// is an original of its duplicates. A process that has applied the partitions up to these
    /// offsets has applied the batch.
    pub ends: Vec<(Partition, Offset)>,
}

/// Consecutive entries that became durable together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Offset of the first entry.
    pub base: Offset,
    /// When the entries were accepted, in milliseconds since 1970. It may be slightly earlier than
    /// that of the previous block when several machines stamp them; a caller that needs a time that
    /// never goes back takes the latest so far.
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

    /// The entries from `from` on. A malformed entry ends the iteration with an error.
    pub fn entries(
        &self,
        from: Offset,
    ) -> impl Iterator<Item = Result<(Offset, Entry<'_>), Error>> {
        self.undecoded(from).map(|entry| {
            let (offset, entry) = entry?;
            Ok((offset, decode(offset, entry)?))
        })
    }

    /// The same for a reader of few types: events of types that it does not want are `None`, and
    /// are not decoded.
    pub fn wanted_entries(
        &self,
        from: Offset,
        wants: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = Result<(Offset, Option<Entry<'_>>), Error>> {
        self.undecoded(from).map(move |entry| {
            let (offset, entry) = entry?;
            let is_unwanted = record::event_type(entry).is_some_and(|kind| !wants(kind));
            Ok((offset, if is_unwanted { None } else { Some(decode(offset, entry)?) }))
        })
    }

    fn undecoded(&self, from: Offset) -> impl Iterator<Item = Result<(Offset, &[u8]), Error>> {
        let mut rest = &self.bytes[..];
        (self.base..self.end()).filter_map(move |offset| match record::split_entry(&mut rest) {
            Some(_) if offset < from => None,
            Some(entry) => Some(Ok((offset, entry))),
            None => Some(Err(Error::Corrupt(format!("the entry at offset {offset} is cut short")))),
        })
    }
}

fn decode(offset: Offset, entry: &[u8]) -> Result<Entry<'_>, Error> {
    let unknown = || {
        Error::Corrupt(format!("the entry at offset {offset} is not one that this program knows"))
    };
    record::parse(entry).ok_or_else(unknown)
}

/// The offsets from which a partition of the log is still needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The position of counting. Nothing behind it is trimmed, however large the log grows.
    pub counting: Offset,
    /// The lowest position of the other consumers. Entries behind it outlive the retention, within
    /// the log's bound for lagging consumers. [`Offset::MAX`] when there are none.
    pub others: Offset,
}

impl Needs {
    /// The needs of a log whose only consumer counts.
    pub fn of_counting(counting: Offset) -> Self {
        Self { counting, others: Offset::MAX }
    }
}

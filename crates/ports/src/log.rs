//! The event log: events in the order in which they were accepted, durable before they are
//! acknowledged.
//!
//! A log has one or more partitions. Each is a sequence of its own: an event and its repetitions
//! lie in the same one, and the counts that come of a partition are a function of what it holds,
//! and of nothing else.

mod event_log;
mod event_sink;
mod log_times;

pub use event_log::EventLog;
pub use event_sink::{EventSink, PayloadOf};
pub use log_times::LogTimes;

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
    /// The disk has little room left: nothing was taken, and the caller may try again when there is
    /// more.
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
    /// Of each partition that took part, the offset behind the last entry that the batch, or an
    /// original of its duplicates, may have: whoever has applied the partitions up to here has
    /// applied the batch.
    pub ends: Vec<(Partition, Offset)>,
}

/// Neighbouring entries that became durable together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Offset of the first entry.
    pub base: Offset,
    /// When they were accepted, in milliseconds since 1970. It may be a little earlier than that of
    /// the block before where several machines stamp them; whoever needs a time that grows takes
    /// the latest so far.
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

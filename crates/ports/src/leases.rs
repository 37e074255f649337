//! Leases: the right of readers to answer from tiles in memory. Processes that acknowledge events
//! take the leases into account, so an event that is acknowledged as counted is in every later
//! answer of any process.
//!
//! ```text
//!   reader        ──▶ Held: what I have heard ──┐                 ┌──▶ every process that
//!                                               ├── lease topic ──┤    acknowledges: it has read
//!   acknowledging ──▶ Barrier ──────────────────┘   in one order  └──▶ all before its own barrier
//! ```
//!
//! A reader holds a lease for [`LEASE_MS`] from the moment at which it sent a message that is in
//! the topic by now. Without a lease it reads the store. An acknowledgement waits until every
//! holder has heard of the events or no longer has a lease. Leases are those of C. Gray and D.
//! Cheriton (SOSP 1989); clocks of two machines are never compared.
//!
//! Why nothing is missed: a lease that is valid at some moment was granted by a message that was in
//! the topic before the previous lease expired. So a process that reads back a barrier it sent
//! after a lease expired, and has found no further message, knows that the reader drops its tiles
//! before it answers from memory again.

use crate::log::{Offset, Partition};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};

/// How long a reader may answer from memory without a further message. Also the longest time that
/// an acknowledgement waits for a dead reader.
pub const LEASE_MS: i64 = 2_000;
/// Added to the lease by processes that acknowledge, because clocks run at different speeds.
const GRACE_MS: i64 = 100;

/// A message of the lease topic. All processes read the messages in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseMessage {
    /// The reader has heard of everything before these offsets of the partitions, and holds a
    /// lease.
    Held { reader: u64, heard: Vec<Offset> },
    /// The reader no longer answers from memory.
    Ended { reader: u64 },
    /// A process sends a barrier, stamped by its own clock, and reads it back. It numbers its
    /// barriers.
    Barrier { process: u64, number: u64, sent_ms: i64 },
    /// Some messages are missing.
    Gap,
}

/// Called with whether the message is in the topic for good.
pub type Sent = Box<dyn FnOnce(bool) + Send>;

/// The topic of the leases.
///
/// No contract suite: there is one adapter, whose tests run against real brokers.
pub trait LeaseTopic: Send + Sync {
    /// Sends without waiting.
    fn send(&self, message: &LeaseMessage, sent: Sent);
}

/// The lease of a reader. All times are milliseconds of a clock that never goes back.
#[derive(Debug)]
pub struct Lease(AtomicI64);

/// The end of a lease that has not begun, and of one that has ended for good.
const NEVER: i64 = i64::MIN + 1;
const ENDED: i64 = i64::MIN;

impl Default for Lease {
    fn default() -> Self {
        Self(AtomicI64::new(NEVER))
    }
}

impl Lease {
    pub fn holds(&self, now_ms: i64) -> bool {
        now_ms < self.0.load(Ordering::Acquire)
    }

    /// Extends the lease because the message sent at `sent_ms` is in the topic. When the lease was
    /// not valid, the caller must first drop everything in memory.
    pub fn extend(&self, sent_ms: i64) {
        let longer =
            |until_ms: i64| (until_ms != ENDED).then_some(until_ms.max(sent_ms + LEASE_MS));
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, longer);
    }

    /// Ends the lease for good.
    pub fn end(&self) {
        self.0.store(ENDED, Ordering::Release);
    }
}

/// The readers that may hold a lease, as seen by a process that acknowledges events.
#[derive(Debug)]
pub struct Holders {
    process: u64,
    readers: HashMap<u64, Holder>,
    /// When the first barrier was read back. Leases granted before then have expired [`LEASE_MS`]
    /// later.
    opened_ms: Option<i64>,
    /// Everything that was in the topic at this time has been read, ...
    read_ms: i64,
    /// ... and when the barrier with this number was sent.
    read_number: u64,
}

#[derive(Debug)]
struct Holder {
    heard: Vec<Offset>,
    until_ms: i64,
}

impl Holders {
    pub fn new(process: u64) -> Self {
        Self {
            process,
            readers: HashMap::new(),
            opened_ms: None,
            read_ms: i64::MIN,
            read_number: 0,
        }
    }

    /// Applies the next message of the topic.
    pub fn note(&mut self, message: LeaseMessage, now_ms: i64) {
        match message {
            LeaseMessage::Held { reader, heard } => {
                let until_ms = now_ms + LEASE_MS + GRACE_MS;
                self.readers.insert(reader, Holder { heard, until_ms });
            }
            LeaseMessage::Ended { reader } => drop(self.readers.remove(&reader)),
            LeaseMessage::Barrier { process, number, sent_ms } if process == self.process => {
                self.opened_ms.get_or_insert(now_ms);
                self.read_ms = self.read_ms.max(sent_ms);
                self.read_number = self.read_number.max(number);
                self.readers.retain(|_, holder| holder.until_ms > sent_ms);
            }
            LeaseMessage::Barrier { .. } => {}
            LeaseMessage::Gap => *self = Self::new(self.process),
        }
    }

    /// Whether every reader that answers from memory includes everything before `ends`. The events
    /// up to there must have been stored before the barrier with this number was sent.
    pub fn have_heard(&self, ends: &[(Partition, Offset)], number: u64) -> bool {
        let knows_all =
            self.opened_ms.is_some_and(|opened_ms| self.read_ms >= opened_ms + LEASE_MS + GRACE_MS);
        knows_all
            && self.read_number >= number
            && self.readers.values().all(|holder| holder.has_heard(ends))
    }

    pub fn len(&self) -> usize {
        self.readers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.readers.is_empty()
    }
}

impl Holder {
    fn has_heard(&self, ends: &[(Partition, Offset)]) -> bool {
        let heard = |partition: Partition| self.heard.get(usize::from(partition)).copied();
        ends.iter().all(|(partition, end)| heard(*partition) >= Some(*end))
    }
}

#[cfg(test)]
mod tests;

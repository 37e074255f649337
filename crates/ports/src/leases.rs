//! The right of readers to answer from tiles in memory, which whoever acknowledges events takes
//! into account: what was acknowledged as counted is in every answer that is asked for afterwards,
//! at any process.
//!
//! ```text
//!   reader        ──▶ Held: what I have heard ──┐                 ┌──▶ everybody who acknowledges
//!                                               ├── lease topic ──┤
//!   acknowledging ──▶ Barrier ──────────────────┘   in one order  └──▶ ... and knows that it read all before its barrier
//! ```
//!
//! A reader holds a lease for [`LEASE_MS`] from the moment at which it sent a word that is in the
//! topic by now; without a lease it reads the store. An acknowledgement waits until every holder
//! has heard of the events, or has no lease any more. Leases are those of C. Gray and D. Cheriton
//! (SOSP 1989); no clocks of two machines are compared.
//!
//! Why nothing is missed: a lease that lasts at some moment was granted by a word that was in the
//! topic before the one before it ran out. So whoever reads back a barrier that was sent after a
//! lease ran out, and found no further word, knows that the reader lets go of its tiles before it
//! answers from memory again.

use crate::log::{Offset, Partition};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};

/// How long a reader answers from memory without another word. So long does an acknowledgement wait
/// for one that died.
pub const LEASE_MS: i64 = 2_000;
/// What those who acknowledge add, for clocks that run at other speeds.
const GRACE_MS: i64 = 100;

/// One message of the topic, in which all have one order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseMessage {
    /// The reader has heard of everything before these offsets of the partitions, and holds a
    /// lease.
    Held { reader: u64, heard: Vec<Offset> },
    /// The reader answers nothing from memory any more.
    Ended { reader: u64 },
    /// Sent at this time by the own clock of a process, which is to read it back, and numbers its
    /// barriers.
    Barrier { process: u64, number: u64, sent_ms: i64 },
    /// Some messages are missing.
    Gap,
}

/// Told whether a message is in the topic for good.
pub type Sent = Box<dyn FnOnce(bool) + Send>;

/// Where leases are told.
///
/// No contract suite: one adapter has it, whose tests run against real brokers.
pub trait LeaseTopic: Send + Sync {
    /// Sends without waiting.
    fn send(&self, message: &LeaseMessage, sent: Sent);
}

/// The lease of a reader. All times are milliseconds of a clock that never goes back.
#[derive(Debug)]
pub struct Lease(AtomicI64);

/// What a lease lasts until that has not begun, and one that has ended for good.
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

    /// The word that was sent then is in the topic. When the lease did not hold, everything in
    /// memory has to go before.
    pub fn extend(&self, sent_ms: i64) {
        let longer =
            |until_ms: i64| (until_ms != ENDED).then_some(until_ms.max(sent_ms + LEASE_MS));
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, longer);
    }

    /// Ends it for good.
    pub fn end(&self) {
        self.0.store(ENDED, Ordering::Release);
    }
}

/// The readers that may hold a lease, as a process that acknowledges events knows them.
#[derive(Debug)]
pub struct Holders {
    process: u64,
    readers: HashMap<u64, Holder>,
    /// When the first barrier was read back. Leases that were granted before have run out
    /// [`LEASE_MS`] later.
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

    /// Takes one message, in its order.
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

    /// Whether no reader answers from memory without everything before these ends, which were in
    /// the store before the barrier with this number was sent.
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

//! The progress of the backfill at the head of the queue, which is not part of the log.

use super::Backfill;
use raingauge_ports::buckets;
use raingauge_ports::log::Offset;
use serde::{Deserialize, Serialize};

/// Bits of the rank below the number of the backfill: the phase, and below it the number of entries
/// read.
const RANK_BITS: u32 = 42;
const READ_BITS: u32 = 40;

/// Stored beside the state. It only grows, and the counts it covers are durable in the store before
/// it is: the next worker of the partition reads the log from its position again, and skips what is
/// counted already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// How many backfills, with this one, had come to the head of the queue.
    pub begun: u64,
    pub counter: u32,
    pub number: u32,
    /// The offset at which reading begins.
    pub from: Offset,
    /// The generation includes all entries before this.
    pub position: Offset,
    /// Events counted so far.
    pub counted: u64,
    /// The stamp of the last entry before the position.
    pub stamp_us: i64,
    pub phase: Phase,
    /// Why it failed.
    #[serde(default)]
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Filling,
    /// The generation includes everything that is applied, and is counted together with the one
    /// that answers.
    Filled,
    /// The log could not be read: the backfill is to be cancelled.
    Failed,
}

impl Progress {
    pub fn from_json(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    pub fn is_of(&self, counter: u32, number: u32) -> bool {
        (self.counter, self.number) == (counter, number)
    }

    /// Returns the stored form.
    pub fn stored(&self) -> buckets::Progress {
        // A failure stays visible although another worker gets further. A filled partition stays
        // filled, although a worker that has lost it may fail at entries that the log no longer
        // holds.
        let phase: u64 = match self.phase {
            Phase::Filling => 0,
            Phase::Failed => 1,
            Phase::Filled => 2,
        };
        let read = self.position.saturating_sub(self.from).min((1 << READ_BITS) - 1);
        let rank = (self.begun << RANK_BITS) + (phase << READ_BITS) + read;
        buckets::Progress { rank: rank as i64, bytes: serde_json::to_vec(self).unwrap_or_default() }
    }

    /// Returns the backfill with its progress so far.
    pub fn shown_in(&self, backfill: &Backfill) -> Backfill {
        let from = self.from;
        let position = self.position;
        let counted = self.counted;
        Backfill { from, position, counted, ..backfill.clone() }
    }
}

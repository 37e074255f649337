//! How far the backfill at the head of the queue has come: what the log does not tell.

use super::Backfill;
use raingauge_ports::buckets;
use raingauge_ports::log::Offset;
use serde::{Deserialize, Serialize};

/// Bits of the rank below the number of the backfill: the phase, and below it the entries that were
/// read.
const RANK_BITS: u32 = 42;
const READ_BITS: u32 = 40;

/// Kept beside the state. It only grows, and what it says is durable in the store before it is:
/// whoever takes a partition over reads the log again from its position, and what is counted
/// already is passed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// How many backfills had come to the head of the queue with this one.
    pub begun: u64,
    pub counter: u32,
    pub number: u32,
    /// The log is read from here.
    pub from: Offset,
    /// The generation holds all entries before this.
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
    /// The generation holds all that is applied, and is counted together with the one that answers.
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

    /// As the store keeps it.
    pub fn stored(&self) -> buckets::Progress {
        // Whoever comes further than one that failed does not hide the failure; and a partition
        // that was filled stays so, although a worker that has lost it may fail at what the log
        // holds no more.
        let phase: u64 = match self.phase {
            Phase::Filling => 0,
            Phase::Failed => 1,
            Phase::Filled => 2,
        };
        let read = self.position.saturating_sub(self.from).min((1 << READ_BITS) - 1);
        let rank = (self.begun << RANK_BITS) + (phase << READ_BITS) + read;
        buckets::Progress { rank: rank as i64, bytes: serde_json::to_vec(self).unwrap_or_default() }
    }

    /// The backfill with what it has come to so far.
    pub fn shown_in(&self, backfill: &Backfill) -> Backfill {
        let from = self.from;
        let position = self.position;
        let counted = self.counted;
        Backfill { from, position, counted, ..backfill.clone() }
    }
}

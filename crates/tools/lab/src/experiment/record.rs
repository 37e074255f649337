//! The record of one run of an experiment: every answered batch, and the resource usage of each
//! part of the system. Figures and findings are derived from the record alone, so they can be
//! recreated without a run.

pub use crate::process::Usage;
use crate::report::Machine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fields that end in `ms` are times of the service's clock, which runs `factor` times as fast as
/// the machine's.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    pub title: String,
    /// Start of the run, by the machine's clock.
    pub started: String,
    pub machine: Machine,
    /// The engines, each with its version.
    pub engines: BTreeMap<String, String>,
    pub seed: u64,
    pub factor: f64,
    /// IANA name of the time zone that defines the traffic's days.
    pub timezone: String,
    pub from_ms: i64,
    pub to_ms: i64,
    /// How ranges are read: `tiles` or `tables`.
    pub plan: String,
    /// The cache strategy of counters that the rollout has not reached, and of those that it has.
    pub strategies: [String; 2],
    /// Description of the traffic, in words and numbers.
    pub traffic: BTreeMap<String, String>,
    pub steps: Vec<Step>,
    pub answers: Vec<BatchRecord>,
    /// Oldest first. All their counters are monotonic.
    pub samples: Vec<Sample>,
    pub checked: TruthCheck,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub at_ms: i64,
    pub kind: StepKind,
    pub label: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StepKind {
    /// The rollout reaches a small additional share, to see whether it does harm.
    Canary {
        share: f64,
    },
    /// From here on this share of the counters uses the new strategy.
    Share {
        share: f64,
    },
    CompactionBegan,
    CompactionEnded,
    RolledBack,
}

/// One batch of ranges.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BatchRecord {
    /// When it was due.
    pub due_ms: i64,
    /// Time from then until its answer arrived, in microseconds of the machine's clock.
    pub latency_us: u32,
    /// Ranges answered from the reader's memory, by the result cache, by the store, and not at all.
    pub memory: u16,
    pub cache: u16,
    pub store: u16,
    pub failed: u16,
}

impl BatchRecord {
    pub fn ranges(&self) -> u32 {
        u32::from(self.memory)
            + u32::from(self.cache)
            + u32::from(self.store)
            + u32::from(self.failed)
    }
}

/// The part that generates load and measures; its usage is not a cost of the service.
pub const LAB: &str = "lab";

/// The usage of the parts of the system at one moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sample {
    pub at_ms: i64,
    /// By name of the part: `cassandra`, `redis`, `kafka`, `mariadb`, `reader`, `writer`, `lab`.
    pub parts: BTreeMap<String, Usage>,
    pub store: StoreCounters,
    /// How often a circuit breaker opened.
    pub breakers_opened: u64,
    /// Counted events.
    pub events: u64,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct StoreCounters {
    /// Requests sent by readers, and the rows returned.
    pub requests: u64,
    pub rows: u64,
    /// Hits and misses of the store's own block cache.
    pub own_hits: u64,
    pub own_misses: u64,
}

/// Answers that were compared with the truth.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct TruthCheck {
    pub compared: u64,
    /// Counts that are not correct at any moment.
    pub wrong: u64,
    /// Counts that lacked events of their range which had already been sent.
    pub late: u64,
    /// Maximum delay of these counts, in the service's time.
    pub late_max_ms: i64,
    /// Counts that, by their own statement, cover a range ending a quarter hour before the
    /// requested one.
    #[serde(default)]
    pub early: u64,
}

//! What one run of an experiment saw: every batch that was answered, and what each part of the
//! system used meanwhile. Figures and findings are made from this alone, so that they can be made
//! again without a run.

use crate::report::Machine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Times with the unit ms are those of the service's clock, which runs `factor` times as fast as
/// the machine's.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    pub title: String,
    /// When the run began, by the machine's clock.
    pub started: String,
    pub machine: Machine,
    /// The engines, each with its version.
    pub engines: BTreeMap<String, String>,
    pub seed: u64,
    pub factor: f64,
    /// IANA name of the zone in which the traffic has its days.
    pub timezone: String,
    pub from_ms: i64,
    pub to_ms: i64,
    /// How ranges are read: `tiles` or `tables`.
    pub plan: String,
    /// How counters are cached that the rollout has not reached, and how those that it has.
    pub strategies: [String; 2],
    /// What the traffic was made of, in words and numbers.
    pub traffic: BTreeMap<String, String>,
    pub steps: Vec<Step>,
    pub answers: Vec<Answered>,
    /// Oldest first. All counters in them only grow.
    pub samples: Vec<Sample>,
    pub checked: Checked,
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
    /// A small share more, to see whether it does harm.
    Canary {
        share: f64,
    },
    /// From here on this share of the counters is treated the new way.
    Share {
        share: f64,
    },
    CompactionBegan,
    CompactionEnded,
    RolledBack,
}

/// One batch of ranges.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// When it was due.
    pub due_ms: i64,
    /// From that moment until its answer was there, in microseconds of the machine's clock.
    pub latency_us: u32,
    /// Ranges that were answered from the reader's memory, by the result cache, by the store, and
    /// not at all.
    pub memory: u16,
    pub cache: u16,
    pub store: u16,
    pub failed: u16,
}

impl Answered {
    pub fn ranges(&self) -> u32 {
        u32::from(self.memory)
            + u32::from(self.cache)
            + u32::from(self.store)
            + u32::from(self.failed)
    }
}

/// The part that asks and measures; what it uses is no cost of the service.
pub const LAB: &str = "lab";

/// What the parts of the system said at one moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sample {
    pub at_ms: i64,
    /// By the name of the part: `cassandra`, `redis`, `kafka`, `mariadb`, `reader`, `writer`,
    /// `lab`.
    pub parts: BTreeMap<String, Usage>,
    pub store: StoreCounters,
    /// How often a circuit breaker opened.
    pub breakers_opened: u64,
    /// Events that were counted.
    pub events: u64,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Usage {
    pub cpu_s: f64,
    /// Resident memory.
    pub memory_bytes: u64,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct StoreCounters {
    /// What readers sent, and the rows that came back.
    pub requests: u64,
    pub rows: u64,
    /// How often the store found in its own cache of blocks what it read, and how often not.
    pub own_hits: u64,
    pub own_misses: u64,
}

/// Answers that were compared with the truth.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Checked {
    pub compared: u64,
    /// Counts that cannot be right at any moment.
    pub wrong: u64,
    /// Counts that lacked events of their range which had been sent before.
    pub late: u64,
    /// By how much of the service's time they were late at most.
    pub late_max_ms: i64,
    /// Counts of a range that ends a quarter hour before the one that was asked for, as they say
    /// themselves.
    #[serde(default)]
    pub early: u64,
}

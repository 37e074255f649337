//! What the worker works with, and how.

use raingauge_consumers::Registry;
use raingauge_ports::campaigns::{
    DocumentStore, Ledger, LedgerErasure, LedgerRetention, Lookups, Outbox,
};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::EventLog;
use std::sync::Arc;

/// What the worker works with.
#[derive(Clone)]
pub struct Deps {
    pub log: Arc<dyn EventLog>,
    /// The consumers that the log is kept for.
    pub registry: Arc<Registry>,
    pub ledger: Arc<dyn Ledger>,
    pub retention: Arc<dyn LedgerRetention>,
    pub erasure: Arc<dyn LedgerErasure>,
    pub outbox: Arc<dyn Outbox>,
    pub documents: Arc<dyn DocumentStore>,
    pub lookups: Arc<dyn Lookups>,
    pub clock: Arc<dyn Clock>,
    /// Where asynchronous calls run, while the thread waits for them.
    pub runtime: tokio::runtime::Handle,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Shortest time between two commits, unless there is more than fits into one.
    pub commit_ms: u64,
    /// Most events of one commit.
    pub batch_events: usize,
    /// Bytes of the log that one commit takes, about.
    pub batch_bytes: usize,
    /// How long a commit waits for lookups.
    pub lookup_patience_ms: i64,
    /// Events that arrive later than this after they happened decide nothing.
    pub late_after_ms: i64,
    /// Most timers that fire in one commit.
    pub timers_max: usize,
    /// Bytes of the log that are read behind the position for each commit, to fill tallies.
    pub history_bytes: usize,
    /// How long decisions and ended deliveries are kept, in milliseconds.
    pub decisions_keep_ms: i64,
    /// How long ids of actions are kept, in milliseconds.
    pub actions_keep_ms: i64,
}

impl Default for Options {
    fn default() -> Self {
        const DAY_MS: i64 = 86_400_000;
        Self {
            commit_ms: 50,
            batch_events: 5_000,
            batch_bytes: 1 << 20,
            lookup_patience_ms: 200,
            late_after_ms: DAY_MS,
            timers_max: 1_000,
            history_bytes: 512 * 1_024,
            decisions_keep_ms: 30 * DAY_MS,
            actions_keep_ms: 400 * DAY_MS,
        }
    }
}

//! What the handlers of all doors share.
//!
//! ```text
//!   binary ──wires──▶ App ◀── HTTP, gRPC, portal
//!                      │
//!                      ├── services: ingest, counters, reader, people, operations
//!                      ├── Access: may this caller do that, and can this process answer it?
//!                      ├── Limits: memory for bodies, time for requests
//!                      └── Problem: a refusal, which each door maps to a status of its own
//! ```
//!
//! Doors do not know each other: what two of them need lies here.

pub mod access;
mod address;
pub mod budget;
pub mod counts;
pub mod csv;
mod deadline;
pub mod largest;
mod node;
pub mod origin;
mod problem;
mod samples;
pub mod socket;
pub mod times;
mod wait;

pub use access::{Access, Role};
pub use address::origin_of;
pub use deadline::Deadline;
pub use node::Node;
pub use problem::{Problem, connections_full, invalid_code};
pub use samples::Samples;
pub use wait::{Stage, Wait};

use budget::BodyBudgets;
use raingauge_counters::recount::Recounter;
use raingauge_counters::{Counters, Drafts, RecentEvents};
use raingauge_operations::{Conductor, Maintenance, Measures, SelfAudit, Watch};
use raingauge_people::Options;
use raingauge_people::audit::AuditLog;
use raingauge_people::tokens::Tokens;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::EventLog;
use raingauge_ports::published::Published;
use raingauge_ports::scans::Scans;
use raingauge_reader::{CachePolicies, Reader};
use raingauge_writer::Ingest;
use raingauge_writer::states::States;
use std::sync::Arc;
use std::time::Duration;

/// The handles of a process. Shared as one pointer: every request clones it several times.
pub struct App {
    /// What this process does, and how it is.
    pub node: Node,
    pub clock: Arc<dyn Clock>,
    /// Takes events.
    pub ingest: Arc<Ingest>,
    /// What callers may wait for after they have sent events, beside counting.
    pub waits: Vec<Wait>,
    /// Configurations, and the buckets that are set from outside.
    pub counters: Arc<Counters>,
    /// Proposed configurations, until they take effect.
    pub drafts: Arc<Drafts>,
    /// Answers counts.
    pub reader: Arc<Reader>,
    /// What was counted, and the log that it was counted from.
    pub counted: CountedData,
    /// Identifies callers, and records what they change.
    pub people: People,
    /// How the deployment is run.
    pub operations: Operations,
    pub limits: Limits,
    /// The largest keys of counters, found before.
    pub largest: largest::Memory,
}

impl App {
    /// Why events are not taken, counts not answered or objects not changed, in a sentence.
    pub fn unready(&self) -> Option<String> {
        let refused = self.ingest.check().err().map(|error| error.to_string());
        refused.or_else(|| (self.node.failure)())
    }
}

/// What was counted, and the log that it was counted from.
pub struct CountedData {
    pub published: Arc<Published>,
    /// What the writers of all partitions know: backfills, counters, skipped events.
    pub states: Arc<dyn States>,
    /// Every partition of the log.
    pub logs: Vec<Arc<dyn EventLog>>,
    /// Previews over the newest events.
    pub recent: RecentEvents,
    /// Longest time for which the log keeps events; `None` if the brokers decide that.
    pub log_kept: Option<Duration>,
    pub recounter: Arc<Recounter>,
    /// Turns for work that reads the whole log, or every tile.
    pub scans: Scans,
}

/// Identifies callers, and records what they change.
pub struct People {
    pub store: Arc<dyn raingauge_ports::people::People>,
    pub tokens: Arc<Tokens>,
    pub options: Options,
    pub audit: AuditLog,
}

/// How the deployment is run.
pub struct Operations {
    /// How this process caches the counts of each counter.
    pub policies: Arc<CachePolicies>,
    /// Compaction of the engine; none in a process that has nothing to do with it.
    pub maintenance: Option<Arc<Maintenance>>,
    /// What the system has done lately, by its own metrics.
    pub measures: Arc<Measures>,
    /// The other processes, as they announce themselves.
    pub watch: Arc<Watch>,
    /// Stored counts, compared with what the log comes to.
    pub self_audit: Arc<SelfAudit>,
    /// Guarded rollouts of a cache strategy.
    pub rollouts: Arc<Conductor>,
}

/// What a request may take.
pub struct Limits {
    pub body_bytes_max: usize,
    /// Memory for the bodies of all requests, over every door.
    pub bodies: BodyBudgets,
    pub request_timeout: Duration,
    /// What people may see of events.
    pub samples: Samples,
}

//! What the service of points works with, and how.

use crate::backoff::RetryOptions;
use raingauge_campaigns::sign::Secret;
use raingauge_consumers::Registry;
use raingauge_points::Kind;
use raingauge_ports::campaigns::DocumentStore;
use raingauge_ports::campaigns::sender::Sender;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{EventLog, EventSink};
use raingauge_ports::maintenance::Lease;
use raingauge_ports::points::{BookReader, Books, EntryStream, QueueControl, Queues};
use std::sync::Arc;
use std::time::Duration;

/// What the service works with.
#[derive(Clone)]
pub struct Deps {
    pub books: Arc<dyn Books>,
    pub reader: Arc<dyn BookReader>,
    /// The events that are priced, and the place at which documents take effect. Without a log,
    /// documents take effect as soon as the store has them, and only commands award points.
    pub log: Option<Arc<dyn EventLog>>,
    /// The partitions of a log that several processes share: one of them at a time awards their
    /// events. Empty where there is a log of this process alone.
    pub partitions: Vec<Arc<dyn EventLog>>,
    /// The consumers that the log is kept for.
    pub registry: Option<Arc<Registry>>,
    /// Takes the events that tell others what happened to points.
    pub sink: Arc<dyn EventSink>,
    /// Takes the same events, where they are also published outside of the log.
    pub stream: Option<Arc<dyn EntryStream>>,
    pub queues: Arc<dyn Queues>,
    pub control: Arc<dyn QueueControl>,
    pub documents: Arc<dyn DocumentStore>,
    pub sender: Arc<dyn Sender>,
    /// The right to hand entries on and to begin sweeps, which one of the processes that share the
    /// books has at a time.
    pub lease: Arc<dyn Lease>,
    pub clock: Arc<dyn Clock>,
    /// Where asynchronous calls run, while the thread waits for them.
    pub runtime: tokio::runtime::Handle,
}

/// How events become awards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awarding {
    /// In the turn that reads them: the entries and the position become durable together.
    Direct,
    /// Through the queue `award`: the position moves when the queue has them.
    Queued,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub awarding: Awarding,
    /// Most commands that wait for the teller.
    pub waiting_max: usize,
    /// Most commands of one turn, unless a single request has more.
    pub turn_commands: usize,
    /// Turns over different books that are under way at the same time.
    pub turns_at_once: usize,
    /// Bytes of the log that one turn takes, about.
    pub turn_bytes: usize,
    /// Longest time until a position that alone has moved is stored, in milliseconds.
    pub position_ms: i64,
    /// How often the store is compared with what is in force, where there is no log, in
    /// milliseconds.
    pub follow_ms: i64,
    pub retry: RetryOptions,
    pub sweep: SweepOptions,
    /// Whether entries are published as events.
    pub publish: bool,
    /// Members are notified through this webhook.
    pub notify: Option<NotifyOptions>,
}

#[derive(Clone, Copy, Debug)]
pub struct SweepOptions {
    /// How often wallets that are due are looked for.
    pub every: Duration,
    /// Most wallets that are settled in a second; 0 for as many as it takes.
    pub per_s: u32,
    /// Wallets of one letter of the queue `expiry`. Fewer that are due are settled at once.
    pub range: usize,
}

#[derive(Clone, Debug)]
pub struct NotifyOptions {
    /// An absolute address of http or https.
    pub url: String,
    /// Without one, requests are not signed. Two, while one replaces the other.
    pub secrets: Vec<Secret>,
    /// Most notifications of a member in a day of UTC, as far as this process remembers.
    pub per_day_max: u32,
    /// Kinds of entries that nobody is notified of.
    pub quiet: Vec<Kind>,
    /// Longest time of a request.
    pub timeout: Duration,
    /// Whether the address may be on a private network, or on this machine.
    pub allow_private: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            awarding: Awarding::Direct,
            waiting_max: 20_000,
            turn_commands: 2_000,
            turns_at_once: 4,
            turn_bytes: 1 << 20,
            position_ms: 2_000,
            follow_ms: 500,
            retry: RetryOptions::default(),
            sweep: SweepOptions::default(),
            publish: true,
            notify: None,
        }
    }
}

impl Default for SweepOptions {
    fn default() -> Self {
        Self { every: Duration::from_secs(60), per_s: 0, range: 10_000 }
    }
}

impl NotifyOptions {
    /// Unsigned notifications of everything that members would ask about.
    pub fn to(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            secrets: Vec::new(),
            per_day_max: 20,
            quiet: vec![Kind::Extend, Kind::Activate, Kind::Tier, Kind::Release],
            timeout: Duration::from_secs(10),
            allow_private: false,
        }
    }
}

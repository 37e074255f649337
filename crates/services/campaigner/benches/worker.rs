//! From the log to the durable decision: 10,000 campaigns, 100,000 subjects, two tallies an event,
//! and one event in a hundred that triggers a message. The ledger is the one on disk.
//!
//! Then what rolling counts cost, which keep the newest times of a subject: one tally of a few busy
//! subjects, beside one that keeps a sum, and such a tally by itself.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use raingauge_campaigner::{Campaigner, Deps, DocumentVersion, Handle, Options, document_entry};
use raingauge_campaigns::engine::LookupKey;
use raingauge_campaigns::limits::KEPT_TIMES_MAX;
use raingauge_campaigns::window::{Tally, Window};
use raingauge_consumers::Registry;
use raingauge_core::event::Event;
use raingauge_embedded::{CampaignLedger, LedgerOptions};
use raingauge_memory as memory;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{DocumentStore, LookupError, Lookups, StoredDocument};
use raingauge_ports::clock::{Clock, SystemClock};
use raingauge_ports::log::{Batch, EventLog, EventSink, Offset};
use serde_json::{Value as Json, json};
use std::future::ready;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const CAMPAIGNS: u64 = 10_000;
const PRODUCTS: u64 = 5_000;
const SUBJECTS: u64 = 100_000;
/// Those of the counts of busy subjects.
const BUSY: u64 = 100;
const TYPES: u64 = 8;
/// Events of one measurement.
const EVENTS: u64 = 20_000;
/// Events that become durable together.
const BLOCK: u64 = 500;

/// There is nothing to look up.
struct NoLookups;

impl Lookups for NoLookups {
    fn answers<'a>(
        &'a self,
        keys: &'a [LookupKey],
        _after: Offset,
        _patience: Duration,
    ) -> BoxFuture<'a, Vec<Result<Json, LookupError>>> {
        Box::pin(ready(keys.iter().map(|_| Err(LookupError::Late)).collect()))
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

fn campaign(number: u64) -> Json {
    // Half of them never trigger: their tallies are counted all the same.
    let amount = if number < CAMPAIGNS / 2 { 99 } else { 100 };
    json!({
        "id": number + 1, "name": format!("c{number}"), "subject": "data.user", "state": "active",
        "eventTypes": [format!("shop.order.{}", number % TYPES)],
        "counts": {"orders": {
            "filter": {"operator": "eq", "lhs": "var.product",
                       "rhs": format!("p{}", number % PRODUCTS)},
            "window": {"calendar": if number < CAMPAIGNS / 2 { "day" } else { "month" }}}},
        "rule": {"operator": "and", "conditions": [
            {"operator": "in", "lhs": "var.country", "rhs": ["sg", "my"]},
            {"operator": "eq", "lhs": "var.product", "rhs": format!("p{}", number % PRODUCTS)},
            {"operator": "gte", "lhs": "var.amount", "rhs": amount}]},
        "steps": [{"name": "s", "when": {"operator": "gte", "lhs": "count.orders", "rhs": 1},
                   "actions": [{"name": "a", "kind": "message", "to": "m", "template": "t"}]}],
        "limits": [{"max": 3, "period": "day"}],
        "templates": {"t": {"en": "Thank you, {{ subject }}, for {{ data.product }}!"}},
    })
}

/// Counts everything of a subject in a window, and never triggers.
fn counting(window: &Json) -> Json {
    json!({
        "id": 1, "name": "c", "subject": "data.user", "state": "active",
        "eventTypes": ["shop.order.0"], "counts": {"orders": {"window": window}},
        "rule": {"operator": "eq", "lhs": "var.product", "rhs": "none"},
        "steps": [{"name": "s", "when": {"operator": "reaches", "lhs": "count.orders", "rhs": 100},
                   "actions": [{"name": "a", "kind": "reward", "to": "m", "reward": "R"}]}],
    })
}

struct World {
    runtime: Runtime,
    log: Arc<memory::Log>,
    handle: Handle,
    random: Random,
    subjects: u64,
    types: u64,
    sent: u64,
    _folder: tempfile::TempDir,
}

impl World {
    /// Decides by campaigns over events of some subjects and types.
    fn new(campaigns: impl ExactSizeIterator<Item = Json>, subjects: u64, types: u64) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build();
        let runtime = runtime.unwrap();
        let folder = tempfile::tempdir_in(".").unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let log = Arc::new(memory::Log::dated(Arc::clone(&clock)));
        let ledger = CampaignLedger::open(folder.path(), &LedgerOptions::default()).unwrap();
        let ledger = Arc::new(ledger);
        let documents = Arc::<memory::Documents>::default();
        let deps = Deps {
            log: Arc::clone(&log) as _,
            registry: Arc::<Registry>::default(),
            ledger: Arc::clone(&ledger) as _,
            retention: Arc::clone(&ledger) as _,
            erasure: Arc::clone(&ledger) as _,
            outbox: ledger as _,
            documents: Arc::clone(&documents) as _,
            lookups: Arc::new(NoLookups),
            clock,
            runtime: runtime.handle().clone(),
        };
        let handle = Campaigner::start(deps, Options::default()).unwrap();

        let len = campaigns.len();
        for configuration in campaigns {
            let id = configuration["id"].to_string();
            let named = DocumentVersion { kind: "campaign".to_owned(), id, version: 1 };
            let stored = StoredDocument {
                kind: named.kind.clone(),
                id: named.id.clone(),
                version: 0,
                configuration,
                is_deleted: false,
                changed_by: String::new(),
                reason: String::new(),
                changed_ms: 0,
            };
            runtime.block_on(documents.put(stored, 0)).unwrap();
            runtime.block_on(log.append_control(0, document_entry(&named))).unwrap();
        }
        let random = Random(7);
        let mut world =
            Self { runtime, log, handle, random, subjects, types, sent: 0, _folder: folder };
        world.decided();
        assert_eq!(world.handle.snapshot().documents.campaigns().count(), len);
        world
    }

    fn block(&mut self) -> Batch {
        let mut batch = Batch::default();
        for _ in 0..BLOCK {
            let product = self.random.below(PRODUCTS);
            let data = json!({
                "user": format!("u{}", self.random.below(self.subjects)),
                "product": format!("p{product}"), "country": "sg", "payment": "card",
                "amount": self.random.below(100), "city": "Singapore", "status": "completed"});
            let data = data.to_string();
            let kind = format!("shop.order.{}", product % self.types);
            let event = Event::of_data(&kind, SystemClock.now_ms(), &data);
            batch.push(&Event { id: format!("e{}", self.sent).into(), ..event });
            self.sent += 1;
        }
        batch
    }

    /// Waits until everything in the log is decided.
    fn decided(&mut self) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(600);
        let end = self.log.end();
        assert!(self.runtime.block_on(self.handle.wait_decided(end, deadline)));
        assert_eq!(self.handle.trouble(), None);
    }

    /// How long it takes to decide as many events, all of which are in the log.
    fn measure(&mut self) -> Duration {
        let blocks: Vec<Batch> = (0..EVENTS / BLOCK).map(|_| self.block()).collect();
        let began = Instant::now();
        for block in blocks {
            black_box(self.runtime.block_on(self.log.append(block)).unwrap());
        }
        self.decided();
        began.elapsed()
    }
}

fn worker(criterion: &mut Criterion) {
    let campaigns: Vec<Json> = (0..CAMPAIGNS).map(campaign).collect();
    let mut world = World::new(campaigns.into_iter(), SUBJECTS, TYPES);
    let mut group = criterion.benchmark_group("worker");
    group.throughput(Throughput::Elements(EVENTS));
    group.sample_size(10);
    group.bench_function("decide", |bencher| {
        bencher.iter_custom(|rounds| (0..rounds).map(|_| world.measure()).sum());
    });
    group.finish();
}

fn busy_subjects(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one tally of busy subjects");
    group.throughput(Throughput::Elements(EVENTS));
    group.sample_size(10);
    for (name, window) in [("sum", json!("campaign")), ("rolling", json!({"last": "P30D"}))] {
        let mut world = World::new([counting(&window)].into_iter(), BUSY, 1);
        // Every subject has as many events as are kept.
        for _ in 0..5 {
            world.measure();
        }
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| (0..rounds).map(|_| world.measure()).sum());
        });
    }
    group.finish();
}

/// A rolling tally that is full, from its bytes to its bytes.
fn rolling_tally(criterion: &mut Criterion) {
    let window = Window::last(365 * 86_400_000, KEPT_TIMES_MAX - 1).unwrap();
    let mut group = criterion.benchmark_group("a full rolling tally");
    for (name, gap_ms) in [("each second", 1_000), ("each hour", 3_600_000)] {
        let mut at_ms = 0;
        let mut bytes = window.empty().encode();
        let mut count = || {
            at_ms += gap_ms + at_ms % 977;
            let mut tally = Tally::decode(&window, &bytes).unwrap();
            black_box(window.count(&mut tally, at_ms, 1));
            bytes = tally.encode();
            bytes.len()
        };
        let len = (0..2 * KEPT_TIMES_MAX).map(|_| count()).last();
        println!("an event {name}: {} bytes", len.unwrap());
        group.bench_function(name, |bencher| bencher.iter(&mut count));
    }
    group.finish();
}

criterion_group!(benches, rolling_tally, busy_subjects, worker);
criterion_main!(benches);

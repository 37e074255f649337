//! From the log to the durable decision: 10,000 campaigns, 100,000 subjects, two tallies an event,
//! and one event in a hundred that triggers a message. The ledger is the one on disk.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use raingauge_campaigner::{Campaigner, Deps, DocumentVersion, Handle, Options, document_entry};
use raingauge_campaigns::engine::LookupKey;
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

struct World {
    runtime: Runtime,
    log: Arc<memory::Log>,
    handle: Handle,
    random: Random,
    sent: u64,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
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

        for number in 0..CAMPAIGNS {
            let named = DocumentVersion {
                kind: "campaign".to_owned(),
                id: (number + 1).to_string(),
                version: 1,
            };
            let stored = StoredDocument {
                kind: named.kind.clone(),
                id: named.id.clone(),
                version: 0,
                configuration: campaign(number),
                is_deleted: false,
                changed_by: String::new(),
                reason: String::new(),
                changed_ms: 0,
            };
            runtime.block_on(documents.put(stored, 0)).unwrap();
            runtime.block_on(log.append_control(0, document_entry(&named))).unwrap();
        }
        let mut world = Self { runtime, log, handle, random: Random(7), sent: 0, _folder: folder };
        world.decided();
        assert_eq!(world.handle.snapshot().documents.campaigns().count() as u64, CAMPAIGNS);
        world
    }

    fn block(&mut self) -> Batch {
        let mut batch = Batch::default();
        for _ in 0..BLOCK {
            let product = self.random.below(PRODUCTS);
            let data = json!({
                "user": format!("u{}", self.random.below(SUBJECTS)),
                "product": format!("p{product}"), "country": "sg", "payment": "card",
                "amount": self.random.below(100), "city": "Singapore", "status": "completed"});
            let data = data.to_string();
            let kind = format!("shop.order.{}", product % TYPES);
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
    let mut world = World::new();
    let mut group = criterion.benchmark_group("worker");
    group.throughput(Throughput::Elements(EVENTS));
    group.sample_size(10);
    group.bench_function("decide", |bencher| {
        bencher.iter_custom(|rounds| (0..rounds).map(|_| world.measure()).sum());
    });
    group.finish();
}

criterion_group!(benches, worker);
criterion_main!(benches);

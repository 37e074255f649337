//! From a command to the durable answer, and from an event in the log to its award: one programme,
//! a million members, the books on disk.
//!
//! ```sh
//! cargo bench -p raingauge-awarding --bench turns
//! ```

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use raingauge_awarding::{CONSUMER, Deps, Handle, Options, Teller};
use raingauge_consumers::Registry;
use raingauge_consumers::control::{DocumentVersion, document_entry};
use raingauge_core::event::Event;
use raingauge_embedded::{BookOptions, PointBooks};
use raingauge_memory as memory;
use raingauge_points::{Award, Basis, Body, Command};
use raingauge_ports::campaigns::{DocumentStore, StoredDocument};
use raingauge_ports::clock::{Clock, SystemClock};
use raingauge_ports::log::{Batch, EventSink};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

const MEMBERS: u64 = 1_000_000;
/// Commands of one request, and events of one block.
const BATCH: u64 = 1_000;
/// Requests and blocks of one measurement, which wait together.
const BATCHES: u64 = 20;
const PROGRAMME: &str = "grab-sg";

struct World {
    runtime: Runtime,
    log: Arc<memory::Log>,
    handle: Handle,
    next: AtomicU64,
}

fn programme() -> Json {
    json!({
        "programme": PROGRAMME, "unit": "GRP", "timezone": "Asia/Singapore",
        "expiry": { "kind": "activity", "months": 6, "graceHours": 24, "reinstateDays": 7 },
        "tables": {
            "vertical": { "by": ["data.country", "data.vertical"],
                "rows": { "SG.food": 2, "SG.ride": 1 } },
            "payment": { "by": ["data.country", "data.payment"], "default": 1,
                "rows": { "SG.grabpay": 2 } },
        },
        "rules": [ { "id": 1, "name": "orders", "eventType": "order.completed",
            "member": "data.member", "amount": "data.amount", "factors": ["vertical", "payment"],
            "reference": "data.order_id", "extends": true } ],
    })
}

impl World {
    fn new(folder: &Path) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let log = Arc::new(memory::Log::dated(Arc::clone(&clock)));
        let books = Arc::new(PointBooks::open(folder, &BookOptions::default()).expect("books"));
        let queues = Arc::new(memory::Queues::new(Arc::clone(&clock)));
        let documents = Arc::<memory::Documents>::default();
        let deps = Deps {
            books: Arc::clone(&books) as _,
            reader: books,
            log: Some(Arc::clone(&log) as _),
            partitions: Vec::new(),
            registry: Some(Arc::<Registry>::default()),
            stream: None,
            sink: Arc::clone(&log) as _,
            queues: Arc::clone(&queues) as _,
            control: queues,
            documents: Arc::clone(&documents) as _,
            sender: Arc::<memory::Sender>::default(),
            lease: Arc::new(memory::Lease),
            clock,
            runtime: runtime.handle().clone(),
        };
        let options = Options { publish: false, waiting_max: usize::MAX / 2, ..Options::default() };
        let handle = Teller::start(deps, options).expect("a teller");
        let world = Self { runtime, log, handle, next: AtomicU64::new(0) };
        world.save(&documents);
        world
    }

    fn save(&self, documents: &memory::Documents) {
        let document = StoredDocument {
            kind: "programme".to_owned(),
            id: PROGRAMME.to_owned(),
            version: 0,
            configuration: programme(),
            is_deleted: false,
            changed_by: String::new(),
            reason: String::new(),
            changed_ms: 0,
        };
        self.runtime.block_on(documents.put(document, 0)).expect("stored");
        let version =
            DocumentVersion { kind: "programme".to_owned(), id: PROGRAMME.to_owned(), version: 1 };
        let entry = document_entry(CONSUMER, &version);
        let end = self.runtime.block_on(self.log.append_control(0, entry)).expect("appended");
        self.wait(end);
    }

    fn wait(&self, offset: u64) {
        let ends = [(0, offset)];
        let reached = async {
            tokio::time::timeout(Duration::from_secs(600), self.handle.reached(&ends)).await
        };
        assert_eq!(self.runtime.block_on(reached), Ok(true), "the teller is too slow");
    }

    /// A number, and a member that follows from it without an order.
    fn next(&self) -> (u64, String) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let member = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % MEMBERS;
        (number, format!("member-{member}"))
    }

    fn submit(&self) {
        let batch = || -> Vec<Command> {
            let award = |_| {
                let (number, member) = self.next();
                Command {
                    programme: PROGRAMME.into(),
                    member: member.into(),
                    key: format!("k-{number}").into(),
                    source: "".into(),
                    occurred_ms: None,
                    accepted_ms: None,
                    reference: None,
                    reason: None,
                    body: Body::Award(Award::of(Basis::Points(100))),
                }
            };
            (0..BATCH).map(award).collect()
        };
        let batches: Vec<_> = (0..BATCHES).map(|_| batch()).collect();
        self.runtime.block_on(async {
            let submitted = batches.into_iter().map(|batch| {
                let handle = self.handle.clone();
                tokio::spawn(async move { handle.submit(batch).await })
            });
            for answers in submitted.collect::<Vec<_>>() {
                let answers = answers.await.expect("no panic");
                assert!(answers.iter().all(Result::is_ok), "{:?}", answers[0]);
            }
        });
    }

    fn send(&self) {
        let now_ms = SystemClock.now_ms();
        let mut end = 0;
        for _ in 0..BATCHES {
            let mut batch = Batch::default();
            for _ in 0..BATCH {
                let (number, member) = self.next();
                let data = format!(
                    r#"{{"member":"{member}","country":"SG","vertical":"food","payment":"grabpay","amount":15.50,"order_id":"o-{number}"}}"#
                );
                let id = format!("o-{number}");
                batch.push(&Event {
                    id: id.as_str().into(),
                    ..Event::of_data("order.completed", now_ms, &data)
                });
            }
            let appended = self.runtime.block_on(self.log.append(batch)).expect("appended");
            end = appended.ends[0].1;
        }
        self.wait(end);
    }
}

fn turns(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let world = World::new(folder.path());
    let mut group = criterion.benchmark_group("turns");
    group.throughput(Throughput::Elements(BATCH * BATCHES)).sample_size(10);
    group.bench_function("commands", |bencher| bencher.iter(|| world.submit()));
    group.bench_function("events", |bencher| bencher.iter(|| world.send()));
    group.finish();
    world.handle.stop();
}

criterion_group!(benches, turns);
criterion_main!(benches);

//! How long a forecast of a draft takes over the events of the past.
//!
//! ```text
//! cargo bench -p raingauge-appraisal --bench forecast
//! ```
//!
//! A million events, or as many as `EVENTS` says, of 100,000 members over ninety days, in a log in
//! memory: this is the time for reading, pricing, deciding and comparing both sides, each of which
//! has a thread of its own.

use criterion::{Criterion, criterion_group, criterion_main};
use raingauge_appraisal::{Appraisal, ForecastRequest, Sources};
use raingauge_core::event::Event;
use raingauge_memory as memory;
use raingauge_points::{Programme, ProgrammeDocument, Programmes};
use raingauge_ports::clock::ManualClock;
use raingauge_ports::log::{Batch, EventSink};
use raingauge_ports::scans::Scans;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const MEMBERS: u64 = 100_000;
const BATCH: u64 = 10_000;
const DAYS: u64 = 90;
/// 2026-01-01T00:00:00Z.
const START_MS: i64 = 1_767_225_600_000;
/// Events of the measurements that are repeated.
const FEW: u64 = 20_000;

/// A programme as that of the published description. `food` is the factor in which versions
/// differ.
fn document(food: i64) -> Json {
    json!({
        "programme": "grab-sg", "unit": "GRP", "timezone": "Asia/Singapore",
        "expiry": {"kind": "activity", "months": 6, "graceHours": 24},
        "tiers": {"window": "halfYear", "keepMonths": 6, "levels": [
            {"name": "member", "from": 0}, {"name": "gold", "from": 1_500},
            {"name": "platinum", "from": 3_000}]},
        "tables": {
            "tier": {"by": ["tier"], "rows": {"member": 1, "gold": "2.25", "platinum": 3}},
            "vertical": {"by": ["data.country", "data.vertical"],
                "rows": {"SG.food": food, "SG.ride": 1, "SG.mart": 2}},
            "payment": {"by": ["data.country", "data.payment"], "default": 1,
                "rows": {"SG.grabpay": 2}}
        },
        "rules": [
            {"id": 1, "name": "orders", "eventType": "order.completed", "member": "data.member",
             "amount": "data.amount", "factors": ["vertical", "payment", "tier"],
             "reference": "data.order"},
            {"id": 2, "name": "refunds", "eventType": "order.refunded", "member": "data.member",
             "amount": "data.amount", "reverses": "data.order"}
        ]
    })
}

fn programme(food: i64) -> Arc<Programme> {
    let document = ProgrammeDocument::parse(&document(food)).expect("a document");
    Arc::new(Programme::compile(&document, 1).expect("a programme"))
}

/// A linear congruential generator, so that every run has the same events.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Orders over the days; every fiftieth event is a refund of a part of the one before.
fn log_of(runtime: &Runtime, events: u64) -> Arc<memory::Log> {
    let log = Arc::new(memory::Log::default());
    let mut random = Random(7);
    let mut last = (0, 0);
    let mut number = 0;
    while number < events {
        let mut batch = Batch::default();
        for number in number..events.min(number + BATCH) {
            let is_refund = number % 50 == 49;
            let data = if is_refund {
                let (member, order) = last;
                format!(r#"{{"member":"m-{member}","order":"o-{order}","amount":1}}"#)
            } else {
                last = (random.below(MEMBERS), number);
                format!(
                    r#"{{"member":"m-{}","order":"o-{number}","country":"SG","vertical":"{}","payment":"{}","amount":{}.{:02}}}"#,
                    last.0,
                    ["food", "ride", "mart"][random.below(3) as usize],
                    ["grabpay", "card"][random.below(2) as usize],
                    random.below(100) + 1,
                    random.below(100),
                )
            };
            let kind = if is_refund { "order.refunded" } else { "order.completed" };
            let time_ms = START_MS + (number * DAYS * 86_400_000 / events) as i64;
            let event = Event::of_data(kind, time_ms, &data);
            batch.push(&Event { id: number.to_string().into(), ..event });
        }
        runtime.block_on(log.append(batch)).expect("appended");
        number += BATCH;
    }
    log
}

fn appraisal(log: Arc<memory::Log>) -> Appraisal {
    let clock = Arc::new(ManualClock::at_s(START_MS / 1_000 + 100 * 86_400));
    let queues = Arc::new(memory::Queues::new(clock.clone()));
    let mut programmes = Programmes::new();
    programmes.insert(programme(2));
    let programmes = Arc::new(programmes);
    let sources = Sources {
        logs: vec![log],
        reader: Arc::new(memory::Books::new(1)),
        documents: Arc::new(memory::Documents::default()),
        queues: queues.clone(),
        control: queues,
        in_force: Arc::new(move || Arc::clone(&programmes)),
    };
    Appraisal::new(sources, Scans::default(), clock)
}

/// Runs one forecast to its end, as a caller would see it.
fn forecast(runtime: &Runtime, appraisal: &Appraisal, by: Option<&str>) -> Json {
    let request = json!({"programme": document(3), "by": by}).to_string();
    runtime.block_on(async {
        let request = ForecastRequest::parse(request.as_bytes()).expect("a request");
        let id = appraisal.forecast("bench", request, None).expect("a job").id;
        loop {
            let job = appraisal.jobs().get(&id).expect("the job is kept");
            if let Some(result) = job.result {
                return serde_json::from_str(result.get()).expect("a result");
            }
            assert!(job.status.is_open(), "{:?}", job.error);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
}

fn forecasts(criterion: &mut Criterion) {
    let events = std::env::var("EVENTS").ok().and_then(|text| text.parse().ok());
    let events = events.unwrap_or(1_000_000);
    let runtime = Runtime::new().expect("a runtime");

    let whole = appraisal(log_of(&runtime, events));
    for by in [None, Some("data.vertical")] {
        let began = Instant::now();
        let found = forecast(&runtime, &whole, by);
        let took_s = began.elapsed().as_secs_f64();
        assert_eq!(found["events"], events, "every event is in the range");
        println!(
            "forecast by {}: {events} events in {took_s:.2} s, {:.0} events/s; draft {} points of \
             {} members, in force {}",
            by.unwrap_or("nothing"),
            events as f64 / took_s,
            found["draft"]["points"],
            found["draft"]["members"],
            found["inForce"]["points"],
        );
    }

    let few = appraisal(log_of(&runtime, FEW));
    let mut group = criterion.benchmark_group(format!("{FEW} events"));
    group.sample_size(10);
    group.bench_function("forecast", |bencher| {
        bencher.iter(|| forecast(&runtime, &few, None));
    });
    group.finish();
}

criterion_group!(benches, forecasts);
criterion_main!(benches);

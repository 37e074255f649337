//! How many events a second a backtest of ten campaigns decides, and what a comparison costs.
//!
//! ```text
//! cargo bench -p raingauge-replay --bench backtest
//! ```
//!
//! The log is in memory, so this is the time of one core for reading, deciding and measuring. The
//! rates of whole runs are printed first: a million events, or as many as `EVENTS` says.

use criterion::{Criterion, criterion_group, criterion_main};
use raingauge_campaigns::engine::Documents;
use raingauge_core::event::Event;
use raingauge_memory::Log;
use raingauge_ports::log::{Batch, EventLog, EventSink};
use raingauge_replay::answers::Answers;
use raingauge_replay::backtest::{Setup, Source, backtest};
use raingauge_replay::compare::{Sides, compare};
use raingauge_replay::request::BacktestRequest;
use raingauge_replay::{Progress, documents};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const CAMPAIGNS: u32 = 10;
const SUBJECTS: u64 = 100_000;
const BATCH: usize = 10_000;
/// 2024-09-24T00:00:00Z.
const START_MS: i64 = 1_727_136_000_000;

/// Campaigns as those of the published description: a country, an amount, a count of the subject,
/// a limit and a budget. `last` is the count of the last one, in which two versions differ.
fn campaigns(last: u32) -> Vec<Json> {
    (1..=CAMPAIGNS)
        .map(|id| campaign(id, if id == CAMPAIGNS { last } else { 8 + id % 4 }))
        .collect()
}

fn campaign(id: u32, orders: u32) -> Json {
    let window = match id % 3 {
        0 => json!({"last": "PT24H"}),
        1 => json!({"calendar": "day"}),
        _ => json!("campaign"),
    };
    // A rolling count goes down again, and so has no multiples.
    let edge = if id.is_multiple_of(3) { "reaches" } else { "every" };
    json!({
        "id": id, "name": format!("campaign-{id}"), "eventTypes": ["order"],
        "subject": "data.user", "state": "active", "zone": "Asia/Singapore",
        "counts": {"orders": {"window": window,
            "filter": {"operator": "gte", "lhs": "var.total", "rhs": id}}},
        "rule": {"operator": "and", "conditions": [
            {"operator": "in", "lhs": "var.country", "rhs": ["sg", "id", "my", "th"]},
            {"operator": "gte", "lhs": "var.total", "rhs": id * 3}]},
        "steps": [{"name": "reward", "when": {"operator": edge, "lhs": "count.orders", "rhs": orders},
            "actions": [{"name": "voucher", "kind": "reward", "to": "rewards", "reward": "R",
                "cost": {"budget": "vouchers", "amount": 500}}]}],
        "limits": [{"step": "reward", "per": "subject", "max": 2, "period": "day"}],
        "budgets": {"vouchers": {"unit": "cents", "max": 100_000_000}}})
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

fn log_of(events: usize) -> Arc<dyn EventLog> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let log = Log::default();
    let mut random = Random(7);
    let mut number = 0;
    while number < events {
        let mut batch = Batch::default();
        for _ in 0..BATCH.min(events - number) {
            let country = ["sg", "id", "my", "th", "vn"][random.below(5) as usize];
            let data = format!(
                r#"{{"user":"u-{}","country":"{country}","total":{}.{:02},"payment":"p{}","items":{}}}"#,
                random.below(SUBJECTS),
                random.below(200),
                random.below(100),
                random.below(5),
                random.below(9),
            );
            let event = Event::of_data("order", START_MS + number as i64 * 200, &data);
            batch.push(&Event { id: number.to_string().into(), ..event });
            number += 1;
        }
        runtime.block_on(log.append(batch)).expect("appended");
    }
    Arc::new(log)
}

fn request() -> BacktestRequest {
    BacktestRequest { ignore_lateness: true, ..BacktestRequest::default() }
}

fn resolved(campaigns: &[Json]) -> Documents {
    documents::resolve(campaigns, &[], &Documents::default()).expect("documents")
}

fn run(log: &Arc<dyn EventLog>) -> u64 {
    let setup = Setup::new(resolved(&campaigns(9)), &request(), i64::MAX);
    let mut answers = Answers::assumed(BTreeMap::new());
    let source = Source::Log(vec![Arc::clone(log)]);
    let found = backtest(&setup, source, &mut answers, &Progress::default()).expect("a backtest");
    found.steps.iter().map(|step| step.triggers).sum()
}

fn run_comparison(log: &Arc<dyn EventLog>) -> u64 {
    let sides = Sides::new(resolved(&campaigns(9)), resolved(&campaigns(8)));
    let setup = Setup::new(sides.documents.clone(), &request(), i64::MAX);
    let mut answers = Answers::assumed(BTreeMap::new());
    let source = Source::Log(vec![Arc::clone(log)]);
    let found = compare(sides, setup, source, &mut answers, &Progress::default());
    found.expect("a comparison").steps.iter().map(|step| step.gain.subjects).sum()
}

fn backtests(criterion: &mut Criterion) {
    let events = std::env::var("EVENTS").ok().and_then(|text| text.parse().ok());
    let events = events.unwrap_or(1_000_000);
    let log = log_of(events);
    let print = |name: &str, found: &dyn Fn() -> u64| {
        let began = Instant::now();
        let found = found();
        let took_s = began.elapsed().as_secs_f64();
        println!(
            "{name}: {events} events × {CAMPAIGNS} campaigns in {took_s:.2} s, {:.0} events/s \
             ({found} found)",
            events as f64 / took_s
        );
    };
    print("backtest", &|| run(&log));
    print("compare", &|| run_comparison(&log));

    let small = log_of(20_000);
    let mut group = criterion.benchmark_group("20,000 events × 10 campaigns");
    group.sample_size(10);
    group.bench_function("backtest", |bencher| bencher.iter(|| black_box(run(&small))));
    group.bench_function("compare", |bencher| bencher.iter(|| black_box(run_comparison(&small))));
    group.finish();
}

criterion_group!(benches, backtests);
criterion_main!(benches);

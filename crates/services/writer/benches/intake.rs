//! What an event costs between the body of a request and the log, and between the log and a tile:
//! decoding, checks and encoding, then reading it back and rendering its keys.
//!
//! `cargo bench -p raingauge-writer`

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use raingauge_core::counter::Counter;
use raingauge_core::decode::{Events, Format};
use raingauge_core::event::Event;
use raingauge_core::ruleset::{Ruleset, Scratch};
use raingauge_core::time::format_rfc3339;
use raingauge_memory as memory;
use raingauge_ports::clock::ManualClock;
use raingauge_ports::log::{Batch, Block};
use raingauge_ports::published::Published;
use raingauge_ports::record::Entry;
use raingauge_writer::Ingest;
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Events of a body, as producers of many events send them.
const EVENTS: usize = 1_000;
const NOW_S: i64 = 1_727_215_430;

/// Events as lines, each of about 220 bytes.
fn lines() -> String {
    let mut lines = String::new();
    for index in 0..EVENTS as i64 {
        let id = index.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64);
        let time = format_rfc3339(NOW_S - index % 10_000);
        let data = format!(
            r#"{{"city_id":"city-{:05}","amount":{}.{:02},"intensity":"heavy"}}"#,
            index * 7_919 % 20_000,
            index % 100,
            index % 97,
        );
        writeln!(
            lines,
            r#"{{"specversion":"1.0","id":"lab-{id:016x}","source":"lab","type":"lab.drop","time":"{time}","data":{data}}}"#
        )
        .expect("memory");
    }
    lines
}

fn array(lines: &str) -> String {
    format!("[{}]", lines.lines().collect::<Vec<_>>().join(","))
}

fn intake(criterion: &mut Criterion) {
    let clock = Arc::new(ManualClock::at_s(NOW_S));
    let published = Arc::<Published>::default();
    let sink = Arc::<memory::Log>::default();
    let ingest = Ingest::new(sink, Vec::new(), published, clock, 60, 1_000_000);

    let lines = lines();
    let array = array(&lines);
    let mut group = criterion.benchmark_group("intake");
    group.throughput(Throughput::Elements(EVENTS as u64));
    for (name, format, body) in [("lines", Format::Lines, lines), ("array", Format::Json, array)] {
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| {
                let mut intake = ingest.begin().expect("a log that takes events");
                intake.reserve(body.len());
                for json in Events::new(format, body.as_bytes()).expect("a body") {
                    intake.push_json(json.expect("a body")).expect("few events");
                }
                black_box(intake)
            });
        });
    }
}

fn counted(criterion: &mut Criterion) {
    let counter = serde_json::json!({
        "id": 1,
        "name": "drops",
        "template": "lab:city:{city_id}",
        "eventType": "lab.drop",
        "filter": {"operator": "eq", "lhs": "data.intensity", "rhs": "heavy"},
    });
    let counter = Counter::from_json(&counter).expect("a counter");
    let ruleset = Ruleset::new([counter]);

    let mut batch = Batch::default();
    let lines = lines();
    for json in Events::new(Format::Lines, lines.as_bytes()).expect("a body") {
        batch.push(&Event::from_json(json.expect("a line")).expect("an event"));
    }
    let len = batch.len() as u64;
    let block = Block { base: 0, appended_ms: NOW_S * 1_000, len, bytes: batch.bytes };

    let mut group = criterion.benchmark_group("counted");
    group.throughput(Throughput::Elements(EVENTS as u64));
    group.bench_function("block", |bencher| {
        let mut scratch = Scratch::default();
        bencher.iter(|| {
            let mut sum = 0;
            for entry in block.entries(0) {
                if let Ok((_, Entry::Event(event))) = entry {
                    let count = |_, key: &str, value| sum += black_box(key).len() as i64 + value;
                    ruleset.apply(&event, &mut scratch, count, |_, _| panic!("a skipped event"));
                }
            }
            assert!(sum > 0);
        });
    });
}

criterion_group!(benches, intake, counted);
criterion_main!(benches);

//! What an offset holds does not depend on where reading began.

use crate::support::{One, flush, foreign, options, produce, shown};
use metrics::{
    Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use raingauge_core::event::Event;
use raingauge_kafka::Options;
use raingauge_ports::log::{Batch, EventLog, EventSink, Offset};
use raingauge_ports::record::{Entry, identity};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What each offset from `from` on holds, with its time, read in pieces of random sizes.
fn entries(
    log: &dyn EventLog,
    from: Offset,
    random: &mut SmallRng,
) -> Vec<(Offset, i64, Option<u128>)> {
    let mut entries = Vec::new();
    let mut next = from;
    let deadline = Instant::now() + crate::support::SOON;

    while next < log.end() {
        assert!(Instant::now() < deadline);
        let blocks = log.read(next, random.random_range(1..5_000)).unwrap();

        // A reader may take a part of an answer, and continue behind it.
        let taken = random.random_range(0..=blocks.len());
        for block in &blocks[..taken] {
            assert_eq!(block.base.max(next), next);

            for entry in block.entries(next) {
                let (offset, entry) = entry.unwrap();
                let id = match entry {
                    Entry::Event(event) => Some(identity(&event.source, &event.id)),
                    Entry::Control(_) => Some(1),
                    Entry::Void => None,
                };
                entries.push((offset, block.appended_ms, id));
            }

            next = block.end();
        }
    }

    entries
}

fn batch(ids: impl Iterator<Item = u32>) -> Batch {
    let mut batch = Batch::default();
    for id in ids {
        batch.push(&Event { id: id.to_string().into(), ..Event::of_data("t", 1_000, "{}") });
    }
    batch
}

#[tokio::test]
async fn what_an_offset_holds_does_not_depend_on_where_reading_began() {
    let Some(options) = options("cursors") else {
        return;
    };
    let seed = rand::random();
    println!("seed {seed}");

    let mut random = SmallRng::seed_from_u64(seed);

    // A window that is short enough for identities to be new again within this test.
    let options = Options { dedupe_window_ms: 480, dedupe_ids_max: 120, ..options };
    let one = One::new(&options).await;
    let producer = foreign(&options, &[]);
    let began = Instant::now();
    let mut end = 0;

    // Time has to pass here: repetitions are recognized by it.
    while began.elapsed() < Duration::from_millis(2_500) {
        let len = random.random_range(1..60);
        let ids: Vec<u32> = (0..len).map(|_| random.random_range(0..200)).collect();
        end = one.append(batch(ids.into_iter())).await;

        if random.random_bool(0.1) {
            produce(&producer, &options.topic, &[], b"noise");
            flush(&producer);
        }

        if random.random_bool(0.1) {
            one.sink.append_control(0, b"note".to_vec()).await.unwrap();
        }
    }

    shown(&one.log, end);
    let whole = entries(&one.log, 0, &mut random);
    let new = whole.iter().filter(|(.., id)| id.is_some()).count();
    let distinct: std::collections::HashSet<_> = whole.iter().filter_map(|(.., id)| *id).collect();

    assert!(
        new > distinct.len() && new < whole.len(),
        "{new} of {}: some are repetitions, some are new again",
        whole.len()
    );

    for _ in 0..12 {
        let from = random.random_range(0..whole.len());
        let log = if random.random_bool(0.5) {
            one.topic.log(0).unwrap()
        } else {
            one.topic.counting_log(0).unwrap()
        };
        assert_eq!(entries(&log, from as u64, &mut random), whole[from..], "from {from}");
    }
}

/// Several readers of one log, each at its own place, more of them than there are cursors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_do_not_disturb_each_other() {
    let Some(options) = options("readers") else {
        return;
    };
    let one = One::new(&options).await;
    let mut end = 0;

    for round in 0..20 {
        end = one.append(batch((0..50).map(|index| (round * 31 + index) % 400))).await;
    }
    assert_eq!(end, 1_000);

    let whole = entries(&one.log, 0, &mut SmallRng::seed_from_u64(0));
    std::thread::scope(|scope| {
        for reader in 0..6 {
            let log = &one.log;
            let whole = &whole;
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(reader);
                assert_eq!(entries(log, reader * 100, &mut random), whole[reader as usize * 100..]);
            });
        }
    });
}

/// Counts how often a place was opened.
#[derive(Clone, Default)]
struct Opened(Arc<AtomicU64>);

impl CounterFn for Opened {
    fn increment(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    fn absolute(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl Recorder for Opened {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        match key.name() {
            "raingauge_log_cursors_total" => Counter::from_arc(Arc::new(self.clone())),
            _ => Counter::noop(),
        }
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// Backfills at more places than are kept, while a writer counts at the end.
#[tokio::test]
async fn a_backfill_never_takes_the_place_of_who_counts() {
    let Some(options) = options("behind") else {
        return;
    };
    let one = One::new(&options).await;
    let log = one.topic.counting_log(0).unwrap();
    let mut end = one.append(batch(0..1_000)).await;

    shown(&log, end);
    let mut counted = 0;
    while counted < end {
        counted = log.read(counted, 1 << 20).unwrap().last().map_or(counted, |block| block.end());
    }

    for round in 0..8 {
        end = one.append(batch(10_000 + round * 10..10_010 + round * 10)).await;
        shown(&log, end);

        for place in [0, 100, 300, 500, 700, 900] {
            let deadline = Instant::now() + crate::support::SOON;
            while log.read_behind(place, 100).unwrap().is_empty() {
                assert!(Instant::now() < deadline);
            }
        }

        let opened = Opened::default();
        metrics::with_local_recorder(&opened, || {
            while counted < end {
                counted =
                    log.read(counted, 1 << 20).unwrap().last().map_or(counted, |block| block.end());
            }
        });
        assert_eq!(opened.0.load(Ordering::Relaxed), 0, "counting goes on where it was");
    }
}

/// Events a second, sent and read: `cargo test -p raingauge-kafka --release --test broker
/// throughput -- --ignored --nocapture`.
#[tokio::test]
#[ignore = "it measures and checks little"]
async fn throughput() {
    let Some(options) = options("throughput") else {
        return;
    };
    const BATCHES: u32 = 200;
    const EVENTS: u32 = 2_000;

    let one = One::new(&options).await;
    let batches: Vec<Batch> = (0..BATCHES)
        .map(|round| {
            let mut batch = Batch::default();
            for index in 0..EVENTS {
                let id = format!("a-rather-long-id-{}", round * EVENTS + index);
                let data = r#"{"city_id":111222,"millimetres":12,"station":"north"}"#;
                batch.push(&Event {
                    id: id.into(),
                    ..Event::of_data("rain_drop", 1_727_215_430_250, data)
                });
            }

            batch
        })
        .collect();

    let began = Instant::now();
    let mut waiting = Vec::new();
    for batch in batches {
        waiting.push(one.sink.append(batch));
    }

    let mut end = 0;
    for answer in waiting {
        end = answer.await.unwrap().ends[0].1;
    }

    let total = f64::from(BATCHES * EVENTS);
    println!("sent and confirmed: {:.0} events/s", total / began.elapsed().as_secs_f64());
    shown(&one.log, end);

    for (what, log) in
        [("read and deduplicated", &one.log), ("and again", &one.topic.log(0).unwrap())]
    {
        let began = Instant::now();
        let mut next = 0;
        while next < end {
            next = log.read(next, 1 << 20).unwrap().last().map_or(next, |block| block.end());
        }
        println!("{what}: {:.0} events/s", total / began.elapsed().as_secs_f64());
    }
}

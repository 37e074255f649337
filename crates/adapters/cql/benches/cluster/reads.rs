//! What a range count costs, by plan, by length of the window and by number of log partitions.

use crate::load::{Counting, Event, Latencies, NOW_S, Place};
use raingauge_core::bucket::DAY_S;
use raingauge_core::plan::Plan;
use raingauge_cql::{self as cql, ReadPlan};
use raingauge_ports::buckets::{BucketReader, Query, generation_of};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const KEYS: usize = 60;
const DAYS: i64 = 91;
/// Readers that ask one range after another.
const READERS: usize = 16;
const RUN: Duration = Duration::from_secs(6);

/// Lengths of windows that end now, and how often each is asked for in a hundred.
const MIX: [(&str, i64, usize); 5] = [
    ("1 hour", 3_600, 20),
    ("1 day", DAY_S, 30),
    ("7 days", 7 * DAY_S, 25),
    ("30 days", 30 * DAY_S, 20),
    ("90 days", 90 * DAY_S, 5),
];

pub fn run(place: &Place) {
    for (counter, partitions) in [(11, 1), (12, 2), (14, 4)] {
        fill(place, counter, partitions);
        println!(
            "reading, {KEYS} keys x {DAYS} days, every second quarter hour counted, {partitions} log partition(s)"
        );

        for (name, read_plan) in [("tiles", ReadPlan::Tiles), ("tables", ReadPlan::Tables)] {
            let reader = Arc::new(cql::Reader::new(place.cql(read_plan)));

            // Warm, then measured.
            ask(place, &reader, counter, &MIX, RUN / 3);
            print(name, "the mix", &ask(place, &reader, counter, &MIX, RUN));

            for window in MIX {
                print(
                    name,
                    window.0,
                    &ask(place, &reader, counter, &[(window.0, window.1, 100)], RUN / 3),
                );
            }
        }
    }
}

/// Every second quarter hour of every key, spread over the log partitions.
fn fill(place: &Place, counter: u32, partitions: u16) {
    let mut random = StdRng::seed_from_u64(u64::from(counter));
    for partition in 0..partitions {
        let mut counting = Counting::new(place, &format!("fill-{counter}"), partition);
        for key in 0..KEYS {
            let quarter = |quarter: i64| NOW_S - DAYS * DAY_S + quarter * 900;
            let times = (0..DAYS * 96).filter(|_| random.random_bool(0.5)).map(quarter);
            let event = |time_s| Event { key: format!("read-{counter}:{key}"), time_s, value: 3 };
            let events: Vec<Event> = times.map(event).collect();
            counting.count(counter, &events, events.len());
        }
    }
}

struct Measurement {
    latencies: Latencies,
    per_second: f64,
    requests: f64,
    rows: f64,
}

/// Asks for ranges of the mix, one after another from each of some readers.
fn ask(
    place: &Place,
    reader: &Arc<cql::Reader>,
    counter: u32,
    mix: &[(&str, i64, usize)],
    run: Duration,
) -> Measurement {
    let before = reader.cost();
    let began = Instant::now();
    let seeds = Arc::new(AtomicUsize::new(0));
    let mix: Arc<[(i64, usize)]> = mix.iter().map(|(_, len, share)| (*len, *share)).collect();
    let asking = (0..READERS).map(|_| {
        let reader = Arc::clone(reader);
        let mix = Arc::clone(&mix);
        let seeds = Arc::clone(&seeds);

        place.runtime.spawn(async move {
            let mut random = StdRng::seed_from_u64(seeds.fetch_add(1, Ordering::Relaxed) as u64);
            let mut latencies = Vec::new();
            while began.elapsed() < run {
                let query = query(&mut random, counter, &mix);
                let asked = Instant::now();
                reader.sums(vec![query]).await.remove(0).expect("a sum");
                latencies.push(asked.elapsed());
            }

            latencies
        })
    });

    let asking: Vec<_> = asking.collect();
    let all: Vec<Duration> = place.runtime.block_on(async {
        futures_util::future::try_join_all(asking).await.expect("asked").concat()
    });
    let counts = all.len() as f64;
    let after = reader.cost();

    Measurement {
        per_second: counts / began.elapsed().as_secs_f64(),
        requests: (after.0 - before.0) as f64 / counts,
        rows: (after.1 - before.1) as f64 / counts,
        latencies: Latencies::of(all),
    }
}

/// A window that ends somewhere in the last hour, of one of the lengths.
fn query(random: &mut StdRng, counter: u32, mix: &[(i64, usize)]) -> Query {
    let mut drawn = random.random_range(0..mix.iter().map(|(_, share)| share).sum());
    let of_share = |(_, share): &&(i64, usize)| match drawn.checked_sub(*share) {
        Some(rest) => {
            drawn = rest;
            false
        }
        None => true,
    };

    let len_s = mix.iter().find(of_share).expect("the shares add up").0;
    let to_s = NOW_S - random.random_range(0..3_600);
    let key = format!("read-{counter}:{}", random.random_range(0..KEYS));
    let plan = Plan::new(to_s - len_s, to_s).expect("a range");

    Query { generation: generation_of(counter, 0), key, plan }
}

fn print(plan: &str, window: &str, asked: &Measurement) {
    let Measurement { latencies, per_second, requests, rows } = asked;
    let p50 = latencies.at_ms(0.5);
    let p99 = latencies.at_ms(0.99);
    println!(
        "  {plan:<7} {window:<8} {per_second:>7.0} counts/s   p50 {p50:>6.2} ms   p99 {p99:>6.2} ms   {requests:.2} requests, {rows:>5.1} rows a count"
    );
}

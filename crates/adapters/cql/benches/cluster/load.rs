//! The keyspace, the events and the clock of a run.

use raingauge_core::bucket::DAY_S;
use raingauge_core::retention::Horizons;
use raingauge_cql::schema::{Layout, migrate};
use raingauge_cql::{self as cql, Options, ReadPlan};
use raingauge_ports::buckets::{Addition, BucketWriter, Checkpoint, generation_of};
use raingauge_ports::log::Partition;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// The second at which the runs believe to be: a quarter hour has just begun.
pub const NOW_S: i64 = 20_500 * DAY_S + 13 * 3_600 + 900;
const STAMP_BASE_US: i64 = NOW_S * 1_000_000;

pub struct Place {
    pub runtime: Runtime,
    pub options: Options,
}

impl Place {
    pub fn new() -> Option<Self> {
        let points = std::env::var("RAINGAUGE_TEST_CQL").ok()?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let options = Options {
            contact_points: points.split(',').map(str::to_owned).collect(),
            keyspace: format!("bench_{}", std::process::id()),
            request_timeout: Duration::from_secs(30),
            speculative_after: Duration::ZERO,
            in_flight_max: 128,
            ..Options::default()
        };

        let replication = std::env::var("RAINGAUGE_BENCH_REPLICATION")
            .unwrap_or_else(|_| "{'class': 'SimpleStrategy', 'replication_factor': 1}".to_owned());
        let layout = Layout { replication, ..Layout::default() };
        runtime.block_on(migrate(&options, &layout)).expect("migrated");

        Some(Self { runtime, options })
    }

    pub fn cql(&self, read_plan: ReadPlan) -> cql::Cluster {
        let options = Options { read_plan, ..self.options.clone() };
        self.runtime.block_on(cql::Cluster::connect(options)).expect("connected")
    }

    pub fn run(&self, statement: &str) {
        let session = self.cql(ReadPlan::Tiles).session_for_tests();
        self.runtime.block_on(session.query_unpaged(statement, ())).expect("the statement runs");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.run(&format!("DROP KEYSPACE {}", self.options.keyspace));
    }
}

/// One event: its key, its time, what it adds.
#[derive(Clone)]
pub struct Event {
    pub key: String,
    pub time_s: i64,
    pub value: i64,
}

/// Events of the last minutes. The k-th of the keys is drawn about 1/k as often as the first:
/// Zipf's law.
pub fn recent(name: &str, keys: usize, len: usize, seed: u64) -> Vec<Event> {
    let mut random = StdRng::seed_from_u64(seed);
    let span = (keys as f64 + 1.0).ln();
    let event = |_| {
        let rank = (random.random::<f64>() * span).exp() as usize - 1;
        let time_s = NOW_S - random.random_range(0..600);
        Event { key: format!("{name}:{rank}"), time_s, value: 1 }
    };
    (0..len).map(event).collect()
}

/// A worker's part of counting: entries in order, with a commit after a fixed number.
pub struct Counting {
    writer: cql::Writer,
    checkpoint: Checkpoint,
}

impl Counting {
    pub fn new(place: &Place, log: &str, partition: Partition) -> Self {
        Self::with_tables(place, log, partition, true)
    }

    pub fn with_tables(place: &Place, log: &str, partition: Partition, write_tables: bool) -> Self {
        let options = Options { write_tables, ..place.options.clone() };
        let cql = place.runtime.block_on(cql::Cluster::connect(options)).expect("connected");
        let writer = cql::Writer::new(cql, log, partition, place.runtime.handle().clone());
        writer.stamp_from(STAMP_BASE_US);
        Self { writer, checkpoint: Checkpoint::default() }
    }

    /// Counts events, and commits behind every `batch_len` of them. Answers how long that took.
    pub fn count(&mut self, counter: u32, events: &[Event], batch_len: usize) -> Duration {
        let began = Instant::now();
        let forever = Horizons::default();
        for batch in events.chunks(batch_len) {
            for event in batch {
                let offset = self.checkpoint.position;
                let added = Addition { offset, time_s: event.time_s, value: event.value };
                self.writer
                    .add(generation_of(counter, 0), &event.key, added, &forever)
                    .expect("added");
                self.checkpoint.position += 1;
            }

            self.checkpoint.stamp_us = STAMP_BASE_US + self.checkpoint.position as i64;
            self.writer.commit(&self.checkpoint).expect("committed");
        }

        began.elapsed()
    }
}

/// Latencies of a run, for its percentiles.
pub struct Latencies(Vec<Duration>);

impl Latencies {
    pub fn of(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        Self(all)
    }

    pub fn at_ms(&self, quantile: f64) -> f64 {
        let index = ((self.0.len() as f64 * quantile) as usize).min(self.0.len() - 1);
        self.0[index].as_secs_f64() * 1e3
    }
}

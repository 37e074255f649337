//! A synthetic run with the characteristics of a real one: two peaks a day, load spikes at every
//! quarter hour while results are cached, a burst of requests at every full hour, and a store that
//! is slower until it is compacted.

use super::bins::{DAY_MS, HOUR_MS, MINUTE_MS, QUARTER_MS};
use crate::experiment::record::{
    BatchRecord, Record, Sample, Step, StepKind, StoreCounters, TruthCheck, Usage,
};
use crate::report::Machine;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// Tuesday, 5 November 2024, 0:00 in Singapore.
const FROM_MS: i64 = 1_730_736_000_000;
const DAYS: i64 = 7;
const SAMPLE_MS: i64 = 10 * MINUTE_MS;
const RANGES: u16 = 10;
const PARTS: [(&str, f64, u64); 7] = [
    ("cassandra", 0.42, 1_900),
    ("redis", 0.05, 90),
    ("kafka", 0.08, 620),
    ("mariadb", 0.01, 210),
    ("reader", 0.16, 70),
    ("writer", 0.06, 60),
    ("lab", 0.12, 120),
];

/// An empty record.
pub fn empty() -> Record {
    Record {
        title: "A run without answers".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        machine: Machine {
            processor: "Example processor".to_owned(),
            cores: 2,
            kernel: "6.1.0".to_owned(),
            load_before: "0.10".to_owned(),
        },
        engines: BTreeMap::new(),
        seed: 1,
        factor: 600.0,
        timezone: "Asia/Singapore".to_owned(),
        from_ms: FROM_MS,
        to_ms: FROM_MS + DAYS * DAY_MS,
        plan: "tables".to_owned(),
        strategies: ["result".to_owned(), "none".to_owned()],
        traffic: BTreeMap::new(),
        steps: Vec::new(),
        answers: Vec::new(),
        samples: Vec::new(),
        checked: TruthCheck::default(),
    }
}

/// A short run that is quick to generate.
pub fn small() -> Record {
    let batches_per_minute = 15.0;
    let mut random = StdRng::seed_from_u64(7);
    let mut record = Record {
        title: "A result cache is taken away".to_owned(),
        engines: engines(),
        traffic: traffic(),
        steps: steps(),
        checked: TruthCheck { compared: 48_211, wrong: 0, late: 37, late_max_ms: 41_000, early: 0 },
        ..empty()
    };

    let mut state = State::default();
    for minute in 0..DAYS * DAY_MS / MINUTE_MS {
        let at_ms = FROM_MS + minute * MINUTE_MS;
        if (at_ms - FROM_MS) % SAMPLE_MS == 0 {
            record.samples.push(state.sample(at_ms));
        }
        state.minute(&mut random, &mut record, at_ms, batches_per_minute);
    }

    record.samples.push(state.sample(record.to_ms));
    record
}

fn engines() -> BTreeMap<String, String> {
    let versions =
        [("Cassandra", "4.1.3"), ("Redis", "7.2.4"), ("Kafka", "3.7.0"), ("MariaDB", "10.11.6")];
    versions.map(|(name, version)| (name.to_owned(), version.to_owned())).into()
}

fn traffic() -> BTreeMap<String, String> {
    let rows = [
        ("batches", "10 ranges each, 15 minutes to 90 days long"),
        ("command", "raingauge lab cache-removal --seed 1 --factor 600 --days 7"),
        ("counters", "200, drawn by a Zipf law with exponent 1.05"),
        ("peaks", "noon and 18:00 to 20:00, Friday 20 % above the other days"),
    ];
    rows.map(|(name, words)| (name.to_owned(), words.to_owned())).into()
}

fn at(day: i64, hour: i64, minute: i64) -> i64 {
    FROM_MS + day * DAY_MS + hour * HOUR_MS + minute * MINUTE_MS
}

/// The steps of the reference, slightly closer together.
fn steps() -> Vec<Step> {
    let mut steps = Vec::new();
    let mut step =
        |at_ms, kind, label: &str| steps.push(Step { at_ms, kind, label: label.to_owned() });

    for (at_ms, share) in shares() {
        step(at_ms - 24 * MINUTE_MS, StepKind::Canary { share: 0.02 }, "a canary of 2 % more");
        step(
            at_ms,
            StepKind::Share { share },
            &format!("{:.0} % of the counters without cache", share * 100.0),
        );
    }

    for (from_ms, to_ms) in compactions() {
        step(from_ms, StepKind::CompactionBegan, "a compaction begins");
        step(to_ms, StepKind::CompactionEnded, "the compaction has ended");
    }

    steps.sort_by_key(|step| step.at_ms);
    steps
}

fn shares() -> [(i64, f64); 5] {
    [
        (at(1, 10, 26), 0.05),
        (at(1, 12, 44), 0.25),
        (at(2, 10, 50), 0.35),
        (at(3, 10, 53), 0.75),
        (at(5, 10, 56), 1.0),
    ]
}

fn compactions() -> Vec<(i64, i64)> {
    let nights = (0..DAYS).map(|day| (at(day, 3, 0), at(day, 4, 10)));
    let days = (4..DAYS).map(|day| (at(day, 14, 0), at(day, 17, 0)));
    nights.chain(days).collect()
}

#[derive(Default)]
struct State {
    parts: BTreeMap<String, Usage>,
    store: StoreCounters,
    breakers: f64,
    events: u64,
}

impl State {
    fn minute(
        &mut self,
        random: &mut StdRng,
        record: &mut Record,
        at_ms: i64,
        batches_per_minute: f64,
    ) {
        let share = share(at_ms);
        let load = load(at_ms);
        let age = hours_since_compaction(at_ms);
        let len =
            (batches_per_minute * load * (1.0 + burst(at_ms + MINUTE_MS / 2))).round() as usize;
        let mut from_store = 0;

        for _ in 0..len {
            let due_ms = at_ms + drawn_offset_ms(random, at_ms);
            let answer = answer(random, due_ms, share, load, age);
            from_store += u64::from(answer.store);
            record.answers.push(answer);
        }

        self.use_minute(random, at_ms, len as f64 / batches_per_minute, from_store, share);

        if share >= 0.75 && age > 10.0 && load > 1.3 {
            self.breakers += 0.12;
        }
    }

    fn use_minute(
        &mut self,
        random: &mut StdRng,
        at_ms: i64,
        load: f64,
        from_store: u64,
        share: f64,
    ) {
        let compacts =
            compactions().iter().any(|(from_ms, to_ms)| (*from_ms..*to_ms).contains(&at_ms));
        for (part, cores, mebibytes) in PARTS {
            let work = match part {
                "cassandra" => 0.55 + 0.45 * load + 0.03 * share + if compacts { 0.3 } else { 0.0 },
                "redis" => 0.2 + load * (1.0 - share),
                _ => 0.3 + 0.7 * load,
            };

            let usage = self.parts.entry(part.to_owned()).or_default();
            let used_s = cores * work * (0.9 + 0.2 * random.random::<f64>()) * 0.1;
            usage.cpu_s = ((usage.cpu_s + used_s) * 1e6).round() / 1e6;

            let swing =
                if compacts && part == "cassandra" { 260.0 } else { 20.0 * random.random::<f64>() };
            usage.memory_bytes = ((mebibytes as f64 + swing) * 1_048_576.0) as u64;
        }

        let rows = from_store * 9;
        let hit_share = 0.34 + 0.36 * share;
        self.store.requests += from_store * 3;
        self.store.rows += rows;
        self.store.own_hits += (rows as f64 * hit_share) as u64;
        self.store.own_misses += (rows as f64 * (1.0 - hit_share)) as u64;
        self.events += (900.0 * load) as u64;
    }

    fn sample(&self, at_ms: i64) -> Sample {
        let parts = self.parts.clone();
        Sample {
            at_ms,
            parts,
            store: self.store,
            breakers_opened: self.breakers as u64,
            events: self.events,
        }
    }
}

fn share(at_ms: i64) -> f64 {
    shares().iter().rev().find(|(from_ms, _)| *from_ms <= at_ms).map_or(0.0, |(_, share)| *share)
}

/// Peaks at noon and in the early evening; more on Friday, the fourth day.
fn load(at_ms: i64) -> f64 {
    let hour = (at_ms - FROM_MS) as f64 / HOUR_MS as f64;
    let hump = |middle: f64, width: f64| (-((hour % 24.0 - middle) / width).powi(2)).exp();
    let friday = if (3.0..4.0).contains(&(hour / 24.0)) { 1.2 } else { 1.0 };
    (0.35 + 0.75 * hump(12.3, 2.2) + 1.05 * hump(18.8, 2.4)) * friday
}

/// Clients send more at the turn of an hour.
fn burst(at_ms: i64) -> f64 {
    0.7 * (-((at_ms - FROM_MS) % HOUR_MS) as f64 / 70_000.0).exp()
}

/// An offset within the minute, more often early at the turn of an hour.
fn drawn_offset_ms(random: &mut StdRng, at_ms: i64) -> i64 {
    let drawn: f64 = random.random();
    let bent = if burst(at_ms) > 0.3 { drawn.powf(1.25) } else { drawn };
    (bent * MINUTE_MS as f64) as i64
}

fn hours_since_compaction(at_ms: i64) -> f64 {
    let last =
        compactions().iter().filter(|(_, to_ms)| *to_ms <= at_ms).map(|(_, to_ms)| *to_ms).max();
    last.map_or(8.0, |to_ms| (at_ms - to_ms) as f64 / HOUR_MS as f64)
}

fn answer(random: &mut StdRng, due_ms: i64, share: f64, load: f64, age_h: f64) -> BatchRecord {
    let since_s = ((due_ms - FROM_MS) % QUARTER_MS) as f64 / 1_000.0;
    let hit = 0.53 * (1.0 - (-since_s / 45.0).exp()) * (1.0 - share);
    let cache = (0..RANGES).filter(|_| random.random::<f64>() < hit).count() as u16;
    let misses = 0.47 + 0.53 * (-since_s / 45.0).exp() * (1.0 - share);
    let queue = 1.0
        + 0.16 * load * (1.0 + 2.0 * burst(due_ms))
        + 0.9 * (misses - 0.47)
        + 0.04 * share * age_h * load;

    let tail = -(1.0 - random.random::<f64>()).ln();
    let latency_ms = 2.4 * queue + 2.1 * queue * tail.powf(1.35);
    let failed = if latency_ms > 46.0 { RANGES - cache } else { 0 };
    let store = RANGES - cache - failed;

    BatchRecord {
        due_ms,
        latency_us: (latency_ms * 1_000.0) as u32,
        memory: 0,
        cache,
        store,
        failed,
    }
}

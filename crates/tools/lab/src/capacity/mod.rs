//! Capacity planning: how many machines a load needs, by a model that is fitted to one run of an
//! experiment and may be checked against another.
//!
//! ```text
//!   cores of a part = base + a x counts/s of the store + b x counts/s of a cache + c x events/s
//!   stored bytes    = tiles x bytes of a tile x copies
//! ```
//!
//! The factors of the first line are fitted, none below 0; `docs/operations/sizing.md` explains the
//! second.

mod fit;

use crate::experiment::prices::Prices;
use crate::experiment::record::{LAB, Record, Sample};
use anyhow::{Result, ensure};
use fit::{dot, fit};
use serde::Serialize;
use std::collections::BTreeMap;

/// Base, counts/s of the store, counts/s of a cache or of memory, events/s.
const COLUMNS: usize = 4;
type Load = [f64; COLUMNS];
/// Samples per row of the fit: enough that the resolution of processor time, 0.01 s, does not
/// matter.
const SAMPLES_PER_ROW: usize = 5;
const ROWS_MIN: usize = 8;
/// Bytes of a tile besides its cells, and of a cell; the store's overhead per column (timestamp,
/// time to live, key).
const TILE_BYTES: f64 = 26.0;
const CELL_BYTES: f64 = 2.0;
const COLUMN_BYTES: f64 = 40.0;
const SPAN_TILE_DAYS: f64 = 128.0;

/// The load to plan for.
#[derive(Debug, Clone, Copy, Serialize, clap::Args)]
pub struct Demand {
    /// Events per second
    #[arg(long)]
    pub events: f64,
    /// Range counts per second, at the peak
    #[arg(long)]
    pub counts: f64,
    /// Share of them answered by a cache or the reader's memory, from 0 to 1
    #[arg(long, default_value_t = 0.0)]
    pub cached: f64,
    /// Number of keys that have events
    #[arg(long)]
    pub keys: f64,
    /// Number of these keys active on one day
    #[arg(long, default_value_t = 0.2)]
    pub active: f64,
    /// Quarter hours and hours with events, per active key and day
    #[arg(long, default_value_t = 12.0)]
    pub cells: f64,
    /// Days of retention
    #[arg(long, default_value_t = 400.0)]
    pub days: f64,
    /// Replicas of the stored data
    #[arg(long, default_value_t = 3.0)]
    pub copies: f64,
    /// Cores per machine of the store
    #[arg(long, default_value_t = 8.0)]
    pub node_cores: f64,
    /// Disk per machine of the store, in GiB; compaction needs half of it
    #[arg(long, default_value_t = 1_000.0)]
    pub node_gib: f64,
    /// Maximum utilization of a core at the peak, from 0 to 1
    #[arg(long, default_value_t = 0.5)]
    pub busy: f64,
}

/// The coefficients of each part, in cores.
#[derive(Debug, Clone, Serialize)]
pub struct Model {
    pub cores: BTreeMap<String, Load>,
    /// Peak memory of each part, in bytes.
    pub memory: BTreeMap<String, u64>,
}

/// The resources that a load needs.
#[derive(Debug, Clone, Serialize)]
pub struct Answer {
    pub cores: BTreeMap<String, f64>,
    pub stored_gib: f64,
    pub nodes: u32,
    /// The resource that determines the number of machines.
    pub bottleneck: &'static str,
    pub cost_per_hour: f64,
}

/// The error of a model for one part of a run: the prediction, the measurement, and their
/// difference relative to the measurement.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Error {
    pub said: f64,
    pub seen: f64,
    pub relative: f64,
}

impl Model {
    pub fn fitted(record: &Record) -> Result<Self> {
        let rows = rows(record);
        ensure!(
            rows.len() >= ROWS_MIN,
            "the run is too short to fit a model to: {} rows of {ROWS_MIN}",
            rows.len()
        );

        let parts =
            record.samples.last().map(|sample| sample.parts.keys().cloned().collect::<Vec<_>>());
        let parts: Vec<String> =
            parts.unwrap_or_default().into_iter().filter(|part| part != LAB).collect();
        let of_part = |part: &String| {
            let rows: Vec<(Load, f64)> = rows
                .iter()
                .map(|row| (row.load, row.cores.get(part).copied().unwrap_or_default()))
                .collect();
            (part.clone(), fit(&rows))
        };

        let most = |part: &String| {
            let bytes = record
                .samples
                .iter()
                .filter_map(|sample| Some(sample.parts.get(part)?.memory_bytes))
                .max();
            (part.clone(), bytes.unwrap_or_default())
        };

        Ok(Self {
            cores: parts.iter().map(of_part).collect(),
            memory: parts.iter().map(most).collect(),
        })
    }

    /// Compares the model's average prediction for a run with the measurements.
    pub fn check(&self, record: &Record) -> BTreeMap<String, Error> {
        let rows = rows(record);
        let of_part = |(part, coefficients): (&String, &Load)| {
            let len = rows.len().max(1) as f64;
            let said = rows.iter().map(|row| dot(coefficients, &row.load)).sum::<f64>() / len;
            let seen = rows
                .iter()
                .map(|row| row.cores.get(part).copied().unwrap_or_default())
                .sum::<f64>()
                / len;
            (part.clone(), Error { said, seen, relative: (said - seen) / seen.max(1e-9) })
        };
        self.cores.iter().map(of_part).collect()
    }

    pub fn answer(&self, wanted: &Demand, prices: &Prices) -> Answer {
        let load = [
            1.0,
            wanted.counts * (1.0 - wanted.cached),
            wanted.counts * wanted.cached,
            wanted.events,
        ];

        let cores: BTreeMap<String, f64> = self
            .cores
            .iter()
            .map(|(part, coefficients)| (part.clone(), dot(coefficients, &load)))
            .collect();

        let stored_gib = stored_bytes(wanted) / (1_u64 << 30) as f64;
        let store_cores = cores.get("cassandra").copied().unwrap_or_default();
        let by_cores = (store_cores / (wanted.node_cores * wanted.busy)).ceil();
        let by_disk = (2.0 * stored_gib / wanted.node_gib).ceil();
        let (nodes, bottleneck) =
            [(wanted.copies, "copies"), (by_cores, "cores of the store"), (by_disk, "disk")]
                .into_iter()
                .max_by(|left, right| left.0.total_cmp(&right.0))
                .unwrap_or((wanted.copies, "copies"));

        let cost = |(part, cores): (&String, &f64)| {
            let gib =
                self.memory.get(part).copied().unwrap_or_default() as f64 / (1_u64 << 30) as f64;
            let times = prices.parts.get(part).copied().unwrap_or(1.0);
            times * (cores / wanted.busy * prices.core_hour + gib * prices.memory_gib_hour)
        };

        let cost_per_hour = cores.iter().map(cost).sum();
        Answer { cores, stored_gib, nodes: nodes as u32, bottleneck, cost_per_hour }
    }
}

/// Day tiles of the active days, and the span tiles above them.
fn stored_bytes(wanted: &Demand) -> f64 {
    let day_tiles = wanted.keys * wanted.active * wanted.days;
    let span_tiles = wanted.keys * (wanted.days / SPAN_TILE_DAYS).ceil();
    let day_bytes = TILE_BYTES + COLUMN_BYTES + wanted.cells * CELL_BYTES;
    let span_bytes = TILE_BYTES + COLUMN_BYTES + SPAN_TILE_DAYS * wanted.active * CELL_BYTES;
    wanted.copies * (day_tiles * day_bytes + span_tiles * span_bytes)
}

/// An interval of a run: its load per second, and the cores used by each part.
struct Row {
    load: Load,
    cores: BTreeMap<String, f64>,
}

fn rows(record: &Record) -> Vec<Row> {
    let ends = || record.samples.iter().step_by(SAMPLES_PER_ROW);
    ends().zip(ends().skip(1)).filter_map(|(from, to)| row(record, from, to)).collect()
}

fn row(record: &Record, from: &Sample, to: &Sample) -> Option<Row> {
    let seconds = (to.at_ms - from.at_ms) as f64 / record.factor / 1_000.0;
    if seconds <= 0.0 {
        return None;
    }

    // Answers are in order of arrival, which is nearly that of their due times.
    let within =
        record.answers.iter().filter(|answer| (from.at_ms..to.at_ms).contains(&answer.due_ms));
    let mut store = 0.0;
    let mut cached = 0.0;

    for answer in within {
        store += f64::from(answer.store);
        cached += f64::from(answer.cache) + f64::from(answer.memory);
    }

    let events = to.events.saturating_sub(from.events) as f64;
    let cores = to.parts.iter().filter_map(|(part, usage)| {
        let before = from.parts.get(part)?;
        Some((part.clone(), (usage.cpu_s - before.cpu_s).max(0.0) / seconds))
    });
    Some(Row {
        load: [1.0, store / seconds, cached / seconds, events / seconds],
        cores: cores.collect(),
    })
}

/// Formats the model, its error and its answer as tables.
pub fn markdown(
    model: &Model,
    errors: Option<&BTreeMap<String, Error>>,
    answer: &Answer,
) -> String {
    let mut text = String::from(
        "| part | cores, base | for 1,000 counts/s of the store | of a cache | for 1,000 events/s | cores needed | error |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
    );
    for (part, [base, store, cached, events]) in &model.cores {
        let error = errors.and_then(|errors| errors.get(part));
        let error =
            error.map_or("–".to_owned(), |error| format!("{:+.0} %", 100.0 * error.relative));
        let needed = answer.cores.get(part).copied().unwrap_or_default();

        text += &format!(
            "| {part} | {base:.3} | {:.3} | {:.3} | {:.3} | {needed:.2} | {error} |\n",
            1_000.0 * store,
            1_000.0 * cached,
            1_000.0 * events
        );
    }

    text + &format!(
        "\n{} machines of the store (limited by {}), {:.1} GiB stored, {:.2} per hour at the prices of the file.\n",
        answer.nodes, answer.bottleneck, answer.stored_gib, answer.cost_per_hour
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::record::{BatchRecord, Usage};
    use crate::experiment::report::tests::sample_run;

    const WANTED: Demand = Demand {
        events: 1_000.0,
        counts: 10_000.0,
        cached: 0.5,
        keys: 1e6,
        active: 0.2,
        cells: 12.0,
        days: 400.0,
        copies: 3.0,
        node_cores: 8.0,
        node_gib: 1_000.0,
        busy: 0.5,
    };

    /// A run whose store uses 0.1 cores, plus 0.5 per 1,000 counts/s.
    fn synthetic_record() -> Record {
        let mut record = sample_run::empty();
        record.factor = 60.0;

        // In the service's time.
        let second_ms = 60_000;
        record.answers = (0..60_000_i64)
            .map(|number| BatchRecord {
                due_ms: number * 10 * 60 % (60 * second_ms),
                latency_us: 1_000,
                memory: 0,
                cache: 2,
                store: if number * 10 * 60 % (60 * second_ms) < 30 * second_ms { 4 } else { 8 },
                failed: 0,
            })
            .collect();

        let mut cpu_s = 0.0;
        let sample = |second: i64, cpu_s: f64| Sample {
            at_ms: second * second_ms,
            parts: BTreeMap::from([(
                "cassandra".to_owned(),
                Usage { cpu_s, memory_bytes: 1 << 30 },
            )]),
            store: Default::default(),
            breakers_opened: 0,
            events: 100 * second as u64,
        };

        record.samples = (0..=60)
            .map(|second| {
                let made = sample(second, cpu_s);
                let batches = 1_000.0;
                cpu_s += 0.1 + 0.0005 * batches * if second < 30 { 4.0 } else { 8.0 };
                made
            })
            .collect();
        record
    }

    #[test]
    fn a_fitted_model_says_what_was_seen_and_what_more_needs() {
        let model = Model::fitted(&synthetic_record()).unwrap();
        let error = model.check(&synthetic_record())["cassandra"];
        assert!(error.relative.abs() < 0.01, "{error:?}");

        let answer = model.answer(&WANTED, &Prices::usual().unwrap());
        let cores = answer.cores["cassandra"];
        assert!((2.0..3.5).contains(&cores), "{cores}: half a core for 1,000 of 5,000 counts/s");
        assert!(
            answer.nodes >= 3 && answer.stored_gib > 1.0 && answer.cost_per_hour > 0.0,
            "{answer:?}"
        );

        let much = Demand { counts: 1e6, ..WANTED };
        let much = model.answer(&much, &Prices::usual().unwrap());
        assert_eq!((much.bottleneck, much.nodes > 50), ("cores of the store", true));

        let wide = model.answer(&Demand { keys: 1e9, ..WANTED }, &Prices::usual().unwrap());
        assert_eq!(wide.bottleneck, "disk");
        assert!(markdown(&model, None, &answer).contains("| cassandra |"));
    }

    #[test]
    fn a_short_run_fits_nothing() {
        let mut record = synthetic_record();
        record.samples.truncate(10);
        assert!(Model::fitted(&record).unwrap_err().to_string().contains("too short"));
    }
}

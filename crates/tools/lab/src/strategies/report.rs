//! The measurements, complete as JSON and as a table with ratios.

use crate::measure::Measurement;
use crate::report::{Machine, grouped, milliseconds};
use serde::Serialize;
use std::fmt::Write;

#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub round: usize,
    /// How uncached counts are read: `tiles`, or `tables` for the plain plan.
    pub plan: &'static str,
    pub strategy: &'static str,
    /// Closed loop.
    pub greatest: Measurement,
    /// Open loop, at the same rate for every case.
    pub paced: Measurement,
    /// In the closed loop, from the reader's metrics.
    pub requests_per_count: f64,
    pub rows_per_count: f64,
    /// Share of the counts answered by the cache; `None` without a cache.
    pub hit_share: Option<f64>,
    /// Share of the cache lookups that failed or were skipped.
    pub failed_share: f64,
    /// Batches whose counts were compared, during the measurement and after it.
    pub batches_compared: u64,
}

#[derive(Debug, Serialize)]
pub struct Report {
    pub started: String,
    pub machine: Machine,
    pub nodes: usize,
    pub partitions: u16,
    pub keys: u32,
    pub history_buckets: u64,
    pub events_per_s: usize,
    pub connections: usize,
    /// Batches per second of the open loop.
    pub rate_per_s: f64,
    pub rows: Vec<Row>,
}

impl Report {
    pub fn markdown(&self) -> String {
        let mut text = String::new();

        // Writing to memory cannot fail.
        let _ = writeln!(
            text,
            "Run {} on {} ({} cores, Linux {}, load before {}): {} node(s), {} log partition(s), {} keys, {} buckets of \
             history, {} events/s beside the counts. Batches of ten ranges; closed loop on {} connections, open loop at \
             {:.0} batches/s.\n",
            self.started,
            self.machine.processor,
            self.machine.cores,
            self.machine.kernel,
            self.machine.load_before,
            self.nodes,
            self.partitions,
            grouped(f64::from(self.keys)),
            grouped(self.history_buckets as f64),
            self.events_per_s,
            self.connections,
            self.rate_per_s,
        );

        text.push_str(
            "| round | plan | strategy | counts/s | ratio | p50, p99 ms of a batch, closed loop | p50, p99 ms, open loop | \
             requests a count | rows a count | from the cache | failed |\n\
             |--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        );

        for row in &self.rows {
            let closed = &row.greatest.latency;
            let open = &row.paced.latency;
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {}, {} | {}, {} | {:.2} | {:.1} | {} | {:.1} % |",
                row.round,
                row.plan,
                row.strategy,
                grouped(row.greatest.units_per_s),
                self.ratio(row),
                milliseconds(closed.p50_us),
                milliseconds(closed.p99_us),
                milliseconds(open.p50_us),
                milliseconds(open.p99_us),
                row.requests_per_count,
                row.rows_per_count,
                row.hit_share.map_or_else(String::new, |share| format!("{:.1} %", share * 100.0)),
                row.failed_share * 100.0,
            );
        }

        let compared: u64 = self.rows.iter().map(|row| row.batches_compared).sum();
        let _ = writeln!(
            text,
            "\n{} batches were compared with the truth, and none differed.",
            grouped(compared as f64)
        );
        text
    }

    /// The rate as a multiple of the plain plan's in the same round.
    fn ratio(&self, row: &Row) -> String {
        let plain =
            self.rows.iter().find(|other| other.round == row.round && other.plan == "tables");
        plain.map_or_else(String::new, |plain| {
            format!("{:.1}", row.greatest.units_per_s / plain.greatest.units_per_s)
        })
    }
}

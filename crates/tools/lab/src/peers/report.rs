//! The measurements of raingauge and its peers: complete as JSON, and as Markdown tables.

use super::client::Mode;
use super::question::Kind;
use crate::cores::Busy;
use crate::measure::{Latency, Measurement};
use crate::report::{Machine, grouped, milliseconds};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

const MEGABYTE: f64 = 1_000_000.0;

#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    pub started: String,
    pub machine: Machine,
    pub keys: u32,
    pub history_events: u64,
    pub connections: usize,
    pub systems: Vec<System>,
    pub left_out: Vec<ExcludedSystem>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct ExcludedSystem {
    pub system: String,
    pub why: String,
    /// The system is installed, but did not start, failed, or returned wrong answers.
    #[serde(default)]
    pub has_failed: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct System {
    pub name: String,
    pub version: String,
    pub how: String,
    /// Not comparable between systems: some load events and others load buckets.
    pub loaded_s: f64,
    pub history_bytes_per_million: f64,
    /// Measured after all questions.
    pub memory_bytes: u64,
    /// Cores used by other processes during the measurement: near 0 on a quiet machine.
    pub others_cores: f64,
    pub reads: Vec<Read>,
    pub writes: Vec<WriteResult>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Read {
    pub kind: Kind,
    /// Closed loop: the maximum rate.
    pub greatest: Measurement,
    /// Open loop at half of the maximum rate, with latency from the intended moment.
    pub half: Measurement,
    /// Processor time of the system per million ranges or series, in the closed loop.
    pub cpu_s_per_million: f64,
    pub busy: Busy,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct WriteResult {
    pub mode: Mode,
    pub events: u64,
    pub events_per_s: f64,
    /// The rate until the counts include every acknowledged event, if that takes longer than the
    /// acknowledgements.
    pub shown_per_s: Option<f64>,
    /// Latency of one batch.
    pub latency: Latency,
    pub cpu_s_per_million: f64,
    pub disk_bytes_per_million: f64,
    pub busy: Busy,
}

impl System {
    /// The product name.
    pub fn title(&self) -> &str {
        match self.name.as_str() {
            "redis" => "Redis",
            "postgresql" => "PostgreSQL",
            "sqlite" => "SQLite",
            "clickhouse" => "ClickHouse",
            "duckdb" => "DuckDB",
            "questdb" => "QuestDB",
            "victoriametrics" => "VictoriaMetrics",
            "cassandra" => "Cassandra",
            name => name,
        }
    }

    pub fn read(&self, kind: Kind) -> Option<&Read> {
        self.reads.iter().find(|read| read.kind == kind)
    }

    /// Ranges per second, requested in batches.
    pub fn counts_per_s(&self) -> f64 {
        self.read(Kind::Batch).map_or(0.0, |read| read.greatest.units_per_s)
    }

    /// The way of writing with the strongest guarantees.
    pub fn best_written(&self) -> Option<&WriteResult> {
        self.writes.iter().max_by_key(|written| (written.mode.exactly_once, written.mode.durable))
    }
}

impl Report {
    pub fn markdown(&self) -> String {
        let mut text = String::new();

        // Writing to memory cannot fail.
        let _ = writeln!(
            text,
            "Run {} on {} ({} cores, Linux {}, load before {}): {} keys, {} events of history, {} connections.\n",
            self.started,
            self.machine.processor,
            self.machine.cores,
            self.machine.kernel,
            self.machine.load_before,
            grouped(f64::from(self.keys)),
            grouped(self.history_events as f64),
            self.connections,
        );

        self.markdown_questions(&mut text);
        self.markdown_latencies(&mut text);
        self.markdown_events(&mut text);

        for ExcludedSystem { system, why, .. } in &self.left_out {
            let _ = writeln!(text, "{system} was left out: {why}.");
        }
        text
    }

    /// Why the comparison is incomplete: an installed system could not be measured.
    pub fn fault(&self) -> Option<String> {
        let failed = self.left_out.iter().filter(|left| left.has_failed);
        let faults: Vec<_> = failed.map(|left| format!("{}: {}", left.system, left.why)).collect();
        (!faults.is_empty()).then(|| faults.join("; "))
    }

    fn markdown_questions(&self, text: &mut String) {
        text.push_str("### Questions: maximum rates and their cost\n\n");
        text.push_str("| system | how | counts/s in batches of ten | raingauge is | 1 day | 90 days | series/s | CPU s per million counts | memory MB | history, MB per million events | other work, cores |\n");
        text.push_str("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");

        let own = self.systems.first().map_or(0.0, System::counts_per_s);
        for (place, system) in self.systems.iter().enumerate() {
            let rate = |kind| {
                system
                    .read(kind)
                    .map_or(String::new(), |read| grouped(read.greatest.requests_per_s))
            };

            let batch = system.read(Kind::Batch);
            let _ = writeln!(
                text,
                "| {} {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} | {:.2} |",
                system.title(),
                system.version,
                system.how,
                grouped(system.counts_per_s()),
                if place == 0 {
                    String::new()
                } else {
                    format!("{:.1} x", own / system.counts_per_s())
                },
                rate(Kind::Day),
                rate(Kind::Quarter),
                rate(Kind::Series),
                batch.map_or(String::new(), |read| short(read.cpu_s_per_million)),
                grouped(system.memory_bytes as f64 / MEGABYTE),
                system.history_bytes_per_million / MEGABYTE,
                system.others_cores,
            );
        }

        text.push('\n');
    }

    fn markdown_latencies(&self, text: &mut String) {
        text.push_str(
            "### Questions: p50 and p99 in ms, open loop at half of the system's own maximum rate\n\n| system |",
        );

        for kind in Kind::ALL {
            let _ = write!(text, " {} |", kind.name());
        }
        text.push_str("\n|---|--:|--:|--:|--:|--:|--:|\n");

        for system in &self.systems {
            let _ = write!(text, "| {} |", system.title());
            for kind in Kind::ALL {
                let latency = system.read(kind).map(|read| read.half.latency);
                let words = latency.map_or(String::new(), |latency| {
                    format!("{}, {}", milliseconds(latency.p50_us), milliseconds(latency.p99_us))
                });
                let _ = write!(text, " {words} |");
            }

            text.push('\n');
        }

        text.push('\n');
    }

    fn markdown_events(&self, text: &mut String) {
        text.push_str("### Events\n\n");
        text.push_str("| system, how | survives a power failure | a duplicate counts once | events/s | until they show | batch x connections | p50, p99 ms per batch | CPU s per million | disk MB per million |\n");
        text.push_str("|---|---|---|--:|--:|--:|--:|--:|--:|\n");

        let yes = |value: bool| if value { "yes" } else { "no" };
        for system in &self.systems {
            for written in &system.writes {
                let mode = &written.mode;
                let _ = writeln!(
                    text,
                    "| {}, {} | {} | {} | {} | {} | {} x {} | {}, {} | {} | {:.1} |",
                    system.title(),
                    mode.how,
                    yes(mode.durable),
                    yes(mode.exactly_once),
                    grouped(written.events_per_s),
                    written.shown_per_s.map_or("the same".to_owned(), grouped),
                    mode.batch_events,
                    mode.connections,
                    milliseconds(written.latency.p50_us),
                    milliseconds(written.latency.p99_us),
                    short(written.cpu_s_per_million),
                    written.disk_bytes_per_million / MEGABYTE,
                );
            }
        }

        text.push('\n');
    }
}

/// Formats a number with three significant digits.
pub fn short(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => grouped(value),
    }
}

#[cfg(test)]
pub mod tests;

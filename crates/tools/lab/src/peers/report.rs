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
            let _ = write!(text, " {} |", kind.words());
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
pub mod tests {
    use super::*;

    fn measured(rate: f64) -> Measurement {
        let latency = Latency { p50_us: 100.0, p99_us: 2_000.0, p999_us: 3_000.0, max_us: 4_000.0 };
        Measurement {
            requests: 100,
            unanswered: 0,
            elapsed_s: 1.0,
            requests_per_s: rate,
            units_per_s: rate * 10.0,
            latency,
        }
    }

    /// Two systems, the first of them ten times as fast.
    pub fn sample() -> Report {
        let busy = Busy { server_core: 1.0, client_core: 0.5, client: 0.5 };
        let system = |name: &str, rate: f64, exactly_once| System {
            name: name.to_owned(),
            version: "1.0".to_owned(),
            how: "somehow".to_owned(),
            loaded_s: 1.0,
            history_bytes_per_million: 2.0 * MEGABYTE,
            memory_bytes: 3_000_000,
            others_cores: 0.0,
            reads: Kind::ALL
                .map(|kind| {
                    let greatest = measured(rate);
                    let half = measured(rate / 2.0);
                    Read { kind, greatest, half, cpu_s_per_million: 1_000.0 / rate, busy }
                })
                .into(),
            writes: vec![WriteResult {
                mode: Mode {
                    how: "in lines".to_owned(),
                    durable: true,
                    exactly_once,
                    batch_events: 10,
                    connections: 4,
                },
                events: 1_000,
                events_per_s: rate * 3.0,
                shown_per_s: exactly_once.then_some(rate * 2.0),
                latency: measured(rate).latency,
                cpu_s_per_million: 1.5,
                disk_bytes_per_million: 1_500_000.0,
                busy,
            }],
        };

        Report {
            started: "2026-01-01T00:00:00Z".to_owned(),
            machine: Machine::here(),
            keys: 10,
            history_events: 1_000,
            connections: 32,
            systems: vec![system("raingauge", 1_000.0, true), system("duckdb", 100.0, false)],
            left_out: vec![ExcludedSystem {
                system: "questdb".to_owned(),
                why: "it is not installed".to_owned(),
                has_failed: false,
            }],
        }
    }

    #[test]
    fn tables_have_every_system_and_say_what_is_missing() {
        let text = sample().markdown();
        assert!(text.contains("| raingauge 1.0 | somehow | 10,000 |  | 1,000 |"), "{text}");
        assert!(text.contains("| DuckDB 1.0 | somehow | 1,000 | 10.0 x | 100 |"), "{text}");
        assert!(
            text.contains("| DuckDB, in lines | yes | no | 300 | the same | 10 x 4 | 0.100, 2.00 | 1.50 | 1.5 |"),
            "{text}"
        );
        assert!(text.contains("questdb was left out: it is not installed."), "{text}");
        assert!(text.lines().filter(|line| line.starts_with('|')).all(|line| line.ends_with('|')));
    }

    #[test]
    fn only_a_system_that_is_installed_can_fail_the_comparison() {
        let mut report = sample();
        assert_eq!(report.fault(), None);
        report.left_out.push(ExcludedSystem {
            system: "redis".to_owned(),
            why: "it did not answer".to_owned(),
            has_failed: true,
        });
        assert_eq!(report.fault().as_deref(), Some("redis: it did not answer"));
    }

    #[test]
    fn a_report_can_be_read_again() {
        let text = serde_json::to_string(&sample()).unwrap();
        let again: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(again.markdown(), sample().markdown());
    }
}

//! What was measured, as JSON in full and as Markdown tables with ratios.

use crate::cores::Busy;
use crate::measure::{Latency, Measured};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

pub const RAINGAUGE: &str = "raingauge";

#[derive(Debug, Clone, Serialize)]
pub struct Read {
    pub system: String,
    pub how: String,
    pub connections: usize,
    /// Closed loop: the greatest rate.
    pub greatest: Measured,
    pub busy: Busy,
    /// Open loop at half of the greatest rate, latency from the intended moment.
    pub half: Measured,
}

#[derive(Debug, Clone, Serialize)]
pub struct Written {
    pub system: String,
    pub how: String,
    pub durable: bool,
    pub dedupe: bool,
    pub batch_events: usize,
    pub connections: usize,
    pub events_per_s: f64,
    /// The rate until every acknowledged event showed in the counts, where that is later than the acknowledgement.
    pub applied_per_s: Option<f64>,
    /// Of one batch.
    pub latency: Latency,
    pub busy: Busy,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub kernel: String,
    /// Of one minute, before the run: what else the machine was doing.
    pub load_before: String,
}

impl Machine {
    pub fn here() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            processor: model.map(|(_, name)| name.to_owned()).unwrap_or_default(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_before: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}

#[derive(Debug, Serialize)]
pub struct Report {
    pub started: String,
    pub machine: Machine,
    pub keys: u32,
    pub history_drops: u64,
    pub history_buckets: u64,
    pub reads: Vec<Read>,
    pub writes: Vec<Written>,
}

impl Report {
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to memory cannot fail.
        let _ = writeln!(
            text,
            "Run {} on {} ({} cores, Linux {}, load before {}): {} keys, {} drops of history in {} buckets.\n",
            self.started,
            self.machine.processor,
            self.machine.cores,
            self.machine.kernel,
            self.machine.load_before,
            grouped(f64::from(self.keys)),
            grouped(self.history_drops as f64),
            grouped(self.history_buckets as f64),
        );
        self.markdown_reads(&mut text);
        self.markdown_writes(&mut text);
        self.markdown_ratios(&mut text);
        text
    }

    fn markdown_reads(&self, text: &mut String) {
        text.push_str("### Reads: batches of ten ranges, 15 minutes to 90 days\n\n");
        text.push_str("| system | batches/s | ranges/s | p50 | p99 | p99.9 | max (ms, open loop at half the rate) | busy: server's core, client | raingauge is |\n");
        text.push_str("|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
        let own = self.own_read().map(|read| read.greatest.requests_per_s);
        for read in &self.reads {
            let latency = &read.half.latency;
            let _ = writeln!(
                text,
                "| {}, {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                read.system,
                read.how,
                grouped(read.greatest.requests_per_s),
                grouped(read.greatest.units_per_s),
                milliseconds(latency.p50_us),
                milliseconds(latency.p99_us),
                milliseconds(latency.p999_us),
                milliseconds(latency.max_us),
                busy(&read.busy),
                ratio(&read.system, own, read.greatest.requests_per_s),
            );
        }
        text.push('\n');
    }

    fn markdown_writes(&self, text: &mut String) {
        text.push_str("### Writes: events counted into quarter hours, hours and days\n\n");
        text.push_str("| system | durable | exactly once | events/s | until applied | batch x connections | p50 | p99 (ms per batch) | busy: server's core, client | raingauge is |\n");
        text.push_str("|---|---|---|--:|--:|--:|--:|--:|--:|--:|\n");
        let own = self.own_write().map(|write| write.events_per_s);
        let yes = |value: bool| if value { "yes" } else { "no" };
        for write in &self.writes {
            let _ = writeln!(
                text,
                "| {}, {} | {} | {} | {} | {} | {} x {} | {} | {} | {} | {} |",
                write.system,
                write.how,
                yes(write.durable),
                yes(write.dedupe),
                grouped(write.events_per_s),
                write.applied_per_s.map_or("the same".to_owned(), grouped),
                write.batch_events,
                write.connections,
                milliseconds(write.latency.p50_us),
                milliseconds(write.latency.p99_us),
                busy(&write.busy),
                ratio(&write.system, own, write.events_per_s),
            );
        }
        text.push('\n');
    }

    fn markdown_ratios(&self, text: &mut String) {
        let peers = self.reads.iter().filter(|read| read.system != RAINGAUGE);
        let best = peers.max_by(|left, right| left.greatest.requests_per_s.total_cmp(&right.greatest.requests_per_s));
        if let (Some(own), Some(best)) = (self.own_read(), best) {
            let times = own.greatest.requests_per_s / best.greatest.requests_per_s;
            let _ = writeln!(text, "Reads: **{times:.1} times** the best peer ({}).", best.system);
        }
        let peers = self.writes.iter().filter(|write| write.system != RAINGAUGE && write.durable && write.dedupe);
        let best = peers.max_by(|left, right| left.events_per_s.total_cmp(&right.events_per_s));
        if let (Some(own), Some(best)) = (self.own_write(), best) {
            let times = own.events_per_s / best.events_per_s;
            let _ =
                writeln!(text, "Durable writes, exactly once: **{times:.1} times** the best peer ({}).", best.system);
        }
    }

    fn own_read(&self) -> Option<&Read> {
        self.reads.iter().find(|read| read.system == RAINGAUGE)
    }

    fn own_write(&self) -> Option<&Written> {
        self.writes.iter().find(|write| write.system == RAINGAUGE)
    }
}

fn ratio(system: &str, own: Option<f64>, theirs: f64) -> String {
    match own {
        Some(own) if system != RAINGAUGE && theirs > 0.0 => format!("{:.1} x", own / theirs),
        _ => "".to_owned(),
    }
}

fn busy(busy: &Busy) -> String {
    format!("{:.0} %, {:.0} %", busy.server_core * 100.0, busy.client * 100.0)
}

pub fn milliseconds(microseconds: f64) -> String {
    match microseconds {
        ..1_000.0 => format!("{:.3}", microseconds / 1_000.0),
        ..100_000.0 => format!("{:.2}", microseconds / 1_000.0),
        _ => format!("{:.0}", microseconds / 1_000.0),
    }
}

/// A whole number with commas.
pub fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_latencies_keep_three_digits() {
        let numbers: Vec<_> = [0.0, 999.4, 1_000.0, 1_234_567.0].into_iter().map(grouped).collect();
        assert_eq!(numbers, ["0", "999", "1,000", "1,234,567"]);
        let latencies: Vec<_> = [87.4, 1_234.0, 250_000.0].into_iter().map(milliseconds).collect();
        assert_eq!(latencies, ["0.087", "1.23", "250"]);
    }
}

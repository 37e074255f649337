//! What a run of faults found, as JSON and as tables.

use super::compare::Compared;
use super::samples::Seen;
use crate::report::{Machine, grouped};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One fault that was.
#[derive(Debug, Clone, Serialize)]
pub struct Done {
    pub kind: &'static str,
    pub target: String,
    /// Since the start of the run.
    pub at_ms: u64,
    /// How long it lasted by the deck.
    pub lasted_ms: u64,
}

/// What clients saw from one fault, or two at once, to the next.
#[derive(Debug, Clone, Serialize)]
pub struct Episode {
    pub faults: Vec<Done>,
    pub from_ms: u64,
    pub to_ms: u64,
    /// How long it took from the end of the fault until every process answered.
    pub back_ms: u64,
    pub counts: Seen,
    pub events: Seen,
    pub changes: Seen,
}

impl Episode {
    fn name(&self) -> &'static str {
        match &self.faults[..] {
            [] => "nothing broken",
            [fault] => fault.kind,
            _ => "two at once",
        }
    }
}

#[derive(Debug, Serialize)]
pub struct Report {
    pub started: String,
    pub machine: Machine,
    pub seed: u64,
    pub faults: usize,
    pub seconds: u64,
    pub nodes: usize,
    pub partitions: u16,
    pub events: u64,
    pub events_late: u64,
    /// Events that were sent again on purpose. What was sent again for want of an acknowledgement comes on top.
    pub events_repeated: u64,
    pub changes: u64,
    pub kinds: BTreeMap<&'static str, usize>,
    pub compared: Vec<Compared>,
    /// Counts, seen under way, that no order of events explains.
    pub impossible: Vec<String>,
    pub episodes: Vec<Episode>,
}

impl Report {
    pub fn is_exact(&self) -> bool {
        self.impossible.is_empty() && self.compared.iter().all(|compared| compared.different == 0)
    }

    pub fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to memory cannot fail.
        let _ = writeln!(
            text,
            "Run {} on {} ({} cores, load before {}): seed {}, {} faults in {} s, {} Cassandra node(s), {} partitions. \
             {} events, {} of them late, {} sent again on purpose, {} edits of counters.\n",
            self.started,
            self.machine.processor,
            self.machine.cores,
            self.machine.load_before,
            self.seed,
            self.faults,
            grouped(self.seconds as f64),
            self.nodes,
            self.partitions,
            grouped(self.events as f64),
            grouped(self.events_late as f64),
            grouped(self.events_repeated as f64),
            grouped(self.changes as f64),
        );
        self.markdown_compared(&mut text);
        self.markdown_availability(&mut text);
        text
    }

    fn markdown_compared(&self, text: &mut String) {
        text.push_str("| compared after | through | keys | counts | points of series | different | deviation |\n");
        text.push_str("|--:|---|--:|--:|--:|--:|--:|\n");
        for compared in &self.compared {
            let _ = writeln!(
                text,
                "| {} faults | {} | {} | {} | {} | {} | {} |",
                compared.after_faults,
                compared.readers.join(", "),
                compared.keys,
                grouped(compared.counts as f64),
                grouped(compared.series_points as f64),
                compared.different,
                compared.deviation
            );
        }
        let _ = writeln!(text, "\nImpossible counts seen under way: {}.\n", self.impossible.len());
        for line in self.compared.iter().flat_map(|compared| &compared.differences).chain(&self.impossible) {
            let _ = writeln!(text, "- {line}");
        }
    }

    fn markdown_availability(&self, text: &mut String) {
        text.push_str(
            "| fault | times | counts asked | failed at one reader | at both | longest gap, s \
             | batches sent | failed at one writer | at both | longest gap, s | all back after, s (longest) |\n",
        );
        text.push_str("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
        let mut rows: BTreeMap<&str, (usize, Seen, Seen, u64)> = BTreeMap::new();
        for episode in &self.episodes {
            let row = rows.entry(episode.name()).or_default();
            row.0 += 1;
            row.1.add(episode.counts);
            row.2.add(episode.events);
            row.3 = row.3.max(episode.back_ms);
        }
        for (name, (times, counts, events, back_ms)) in rows {
            let _ = writeln!(
                text,
                "| {name} | {times} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                grouped(counts.requests as f64),
                counts.attempts_failed,
                counts.requests_failed,
                seconds(counts.gap_ms),
                grouped(events.requests as f64),
                events.attempts_failed,
                events.requests_failed,
                seconds(events.gap_ms),
                seconds(back_ms),
            );
        }
    }
}

fn seconds(milliseconds: u64) -> String {
    format!("{:.1}", milliseconds as f64 / 1e3)
}

//! The results of a fault run, as JSON and as tables.

use super::compare::Comparison;
use super::deck::Kind;
use super::samples::DoorStats;
use super::traffic::Totals;
use crate::report::{Machine, grouped};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One injected fault.
#[derive(Debug, Clone, Serialize)]
pub struct InjectedFault {
    pub kind: &'static str,
    pub target: String,
    /// Since the start of the run.
    pub at_ms: u64,
    /// Planned duration of the fault.
    pub lasted_ms: u64,
}

/// What clients observed from one fault, or two at once, to the next.
#[derive(Debug, Clone, Serialize)]
pub struct Episode {
    pub faults: Vec<InjectedFault>,
    pub from_ms: u64,
    pub to_ms: u64,
    /// Time from the end of the fault until every process answered.
    pub back_ms: u64,
    pub counts: DoorStats,
    pub events: DoorStats,
    pub changes: DoorStats,
}

/// What clients observed during faults, summed over all episodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Availability {
    pub fault: String,
    pub times: usize,
    pub counts: DoorStats,
    pub events: DoorStats,
    pub changes: DoorStats,
    /// Longest time from the end of the fault until every process answered.
    pub back_ms: u64,
}

impl Availability {
    fn of<'a>(fault: impl Into<String>, episodes: impl Iterator<Item = &'a Episode>) -> Self {
        let mut all = Self { fault: fault.into(), ..Self::default() };
        for episode in episodes {
            all.times += 1;
            all.counts.add(episode.counts);
            all.events.add(episode.events);
            all.changes.add(episode.changes);
            all.back_ms = all.back_ms.max(episode.back_ms);
        }
        all
    }
}

/// Rows for the time before the first fault, the loss of one Cassandra node, each kind of fault
/// alone, and each kind combined with another.
pub fn availability(episodes: &[Episode]) -> Vec<Availability> {
    let alone = |kinds: Vec<&'static str>| {
        episodes.iter().filter(
            move |episode| matches!(&episode.faults[..], [fault] if kinds.contains(&fault.kind)),
        )
    };

    let quiet = episodes.iter().filter(|episode| episode.faults.is_empty());
    let lost = Kind::LOSS_OF_A_NODE.map(Kind::name).to_vec();
    let mut rows = vec![
        Availability::of("nothing broken", quiet),
        Availability::of("only one Cassandra node lost", alone(lost)),
    ];

    for kind in Kind::all().map(Kind::name) {
        rows.push(Availability::of(kind, alone(vec![kind])));
        let beside = episodes.iter().filter(|episode| episode.faults.len() > 1);
        let beside = beside.filter(|episode| episode.faults.iter().any(|fault| fault.kind == kind));
        rows.push(Availability::of(format!("{kind}, with another fault"), beside));
    }

    rows.retain(|row| row.times > 0);
    rows
}

#[derive(Debug, Serialize)]
pub struct Report {
    pub started: String,
    pub machine: Machine,
    pub seed: u64,
    /// Number of injected faults.
    pub faults: usize,
    /// Number of planned faults.
    pub faults_planned: usize,
    /// Why the run ended early. All other fields hold the results until then.
    pub error: Option<String>,
    pub seconds: u64,
    pub nodes: usize,
    pub partitions: u16,
    pub sent: Totals,
    pub kinds: BTreeMap<&'static str, usize>,
    pub compared: Vec<Comparison>,
    /// Counts observed during the run that no order of events explains.
    pub impossible: Vec<String>,
    pub availability: Vec<Availability>,
    pub episodes: Vec<Episode>,
}

impl Report {
    /// Whether the run finished without a difference.
    pub fn is_exact(&self) -> bool {
        self.error.is_none()
            && self.impossible.is_empty()
            && !self.compared.is_empty()
            && self.compared.iter().all(|compared| compared.different == 0)
    }

    /// Why the run failed.
    pub fn fault(&self) -> Option<String> {
        match &self.error {
            Some(error) => Some(format!("the run ended after {} faults: {error}", self.faults)),
            None if self.is_exact() => None,
            None => Some(format!("counts differ from the model: seed {}", self.seed)),
        }
    }

    pub fn markdown(&self) -> String {
        let mut text = String::new();

        // Writing to memory cannot fail.
        let _ = writeln!(
            text,
            "Run {} on {} ({} cores, load before {}): seed {}, {} of {} faults in {} s, {} Cassandra node(s), {} partitions. \
             {} events, {} of them late, {} sent again on purpose, {} edits of counters, {} backfills begun.\n",
            self.started,
            self.machine.processor,
            self.machine.cores,
            self.machine.load_before,
            self.seed,
            self.faults,
            self.faults_planned,
            grouped(self.seconds as f64),
            self.nodes,
            self.partitions,
            grouped(self.sent.events as f64),
            grouped(self.sent.events_late as f64),
            grouped(self.sent.events_repeated as f64),
            grouped(self.sent.changes as f64),
            grouped(self.sent.backfills as f64),
        );

        if let Some(error) = &self.error {
            let _ = writeln!(text, "**Ended early**: {error}\n");
        }
        self.markdown_kinds(&mut text);
        self.markdown_compared(&mut text);
        self.markdown_availability(&mut text);

        text
    }

    fn markdown_kinds(&self, text: &mut String) {
        let kinds: Vec<String> =
            self.kinds.iter().map(|(kind, times)| format!("{times} {kind}")).collect();
        let _ = writeln!(text, "Faults: {}.\n", kinds.join(", "));
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

        let _ = writeln!(
            text,
            "\nImpossible counts observed during the run: {}.\n",
            self.impossible.len()
        );
        for line in
            self.compared.iter().flat_map(|compared| &compared.differences).chain(&self.impossible)
        {
            let _ = writeln!(text, "- {line}");
        }
    }

    fn markdown_availability(&self, text: &mut String) {
        text.push_str(
            "| fault | times | counts asked | failed at one reader | at both | longest gap, s \
             | batches sent | failed at one writer | at both | longest gap, s | all back after, s (longest) |\n",
        );
        text.push_str("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");

        for Availability { fault, times, counts, events, back_ms, .. } in &self.availability {
            let _ = writeln!(
                text,
                "| {fault} | {times} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                grouped(counts.requests as f64),
                counts.attempts_failed,
                counts.requests_failed,
                seconds(counts.gap_ms),
                grouped(events.requests as f64),
                events.attempts_failed,
                events.requests_failed,
                seconds(events.gap_ms),
                seconds(*back_ms),
            );
        }
    }
}

fn seconds(milliseconds: u64) -> String {
    format!("{:.1}", milliseconds as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(kinds: &[Kind], requests_failed: u64, gap_ms: u64) -> Episode {
        let done = |kind: &Kind| InjectedFault {
            kind: kind.name(),
            target: String::new(),
            at_ms: 0,
            lasted_ms: 0,
        };
        let seen = DoorStats { requests: 10, requests_failed, gap_ms, ..DoorStats::default() };
        Episode {
            faults: kinds.iter().map(done).collect(),
            from_ms: 0,
            to_ms: 0,
            back_ms: gap_ms,
            counts: seen,
            events: DoorStats::default(),
            changes: DoorStats::default(),
        }
    }

    #[test]
    fn the_loss_of_a_node_alone_is_distinguished_from_one_beside_another_fault() {
        let episodes = [
            episode(&[], 0, 5),
            episode(&[Kind::NodeKilled], 1, 300),
            episode(&[Kind::NodePaused], 2, 700),
            episode(&[Kind::NodeKilled, Kind::BrokerPaused], 9, 9_000),
        ];

        let rows = availability(&episodes);
        let row = |fault: &str| {
            let row = rows.iter().find(|row| row.fault == fault).unwrap();
            (row.times, row.counts.requests, row.counts.requests_failed, row.counts.gap_ms)
        };
        assert_eq!(row("nothing broken"), (1, 10, 0, 5));
        assert_eq!(row("only one Cassandra node lost"), (2, 20, 3, 700));
        assert_eq!(row("Cassandra node killed"), (1, 10, 1, 300));
        assert_eq!(row("Cassandra node killed, with another fault"), (1, 10, 9, 9_000));
        assert_eq!(row("Kafka paused, with another fault"), (1, 10, 9, 9_000));
        assert!(rows.iter().all(|row| row.fault != "Kafka paused"));
    }
}

//! The metrics of the ledger.

use raingauge_points::{Answer, Entry};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Notes a durable turn.
pub fn turn(commands: usize, took: Duration, entries: &[Arc<Entry>]) {
    metrics::histogram!("raingauge_points_turn_seconds").record(took.as_secs_f64());
    metrics::counter!("raingauge_points_commands_total").increment(commands as u64);

    let mut sums: HashMap<(&str, &'static str), (u64, u64)> = HashMap::new();
    for entry in entries {
        let sum = sums.entry((&entry.programme, entry.kind.name())).or_default();
        sum.0 += 1;
        sum.1 += entry.points().unsigned_abs();
    }
    for ((programme, kind), (number, points)) in sums {
        let labels = [("programme", programme.to_owned()), ("kind", kind.to_owned())];
        metrics::counter!("raingauge_points_entries_total", &labels).increment(number);
        metrics::counter!("raingauge_points_points_total", &labels).increment(points);
    }
}

/// Notes the answers of commands that are durable.
pub fn answers<'a>(answers: impl Iterator<Item = &'a Answer>) {
    for answer in answers {
        match answer {
            Answer::Done(_) => {}
            Answer::Replayed(_) => {
                metrics::counter!("raingauge_points_replayed_total").increment(1);
            }
            Answer::Refused { refusal, .. } | Answer::Invalid(refusal) => {
                let code = refusal.code.as_str();
                metrics::counter!("raingauge_points_refusals_total", "code" => code).increment(1);
            }
        }
    }
}

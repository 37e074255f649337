//! A record prepared for numbers and figures: its phases, bins and folds.

use super::bins::{Bins, DAY_MS, HOUR_MS, MINUTE_MS, QUARTER_MS};
use super::fold::Fold;
use super::phase::{Compaction, Phase, compactions, phases};
use super::usage::{self, Usages};
use super::window::{self, Windows};
use super::zone::Zone;
use crate::experiment::record::{Record, Sample, StepKind};
use std::collections::BTreeSet;

/// Maximum number of bins in a figure over a whole run: about one per pixel.
const BINS_MAX: i64 = 800;
/// Minimum average number of answers per bin, so that percentiles are meaningful.
const ANSWERS_PER_BIN_MIN: i64 = 400;
const WIDTHS_MS: [i64; 9] = [
    MINUTE_MS,
    5 * MINUTE_MS,
    QUARTER_MS,
    2 * QUARTER_MS,
    HOUR_MS,
    2 * HOUR_MS,
    4 * HOUR_MS,
    12 * HOUR_MS,
    DAY_MS,
];
/// Names of parts that are the store or the result cache.
const STORES: [&str; 2] = ["cassandra", "scylla"];
const CACHES: [&str; 2] = ["redis", "valkey"];

pub struct Analysis<'a> {
    pub record: &'a Record,
    pub zone: Zone,
    pub phases: Vec<Phase>,
    /// One per phase.
    pub folds: Vec<Fold>,
    pub compactions: Vec<Compaction>,
    pub bins: Bins,
    pub usages: Usages<'a>,
    /// Names of all sampled parts.
    pub parts: Vec<&'a str>,
    /// Two hours at the same time of day, if the run has them.
    pub windows: Option<Windows>,
}

impl<'a> Analysis<'a> {
    pub fn new(record: &'a Record) -> Self {
        let zone = Zone::new(&record.timezone);
        let usages = Usages::new(record);
        let phases = phases(record);
        let folds = phases.iter().map(|phase| Fold::new(&record.answers, phase, &zone)).collect();
        let width_ms = bin_width_ms(record, usages.distance_ms);
        let bins = Bins::new(&record.answers, record.from_ms, record.to_ms, width_ms);
        let compactions = compactions(record);
        let parts = parts(record);
        let mut analysis =
            Self { record, zone, phases, folds, compactions, bins, usages, parts, windows: None };
        analysis.windows = window::choose(&analysis);
        analysis
    }

    /// Per second of the machine's clock.
    pub fn per_s(&self, amount: u64, length_ms: i64) -> f64 {
        amount as f64 / usage::machine_s(length_ms, self.record.factor)
    }

    /// The first phase, if no counter used the new strategy in it.
    pub fn before(&self) -> Option<usize> {
        self.phases.first().filter(|phase| phase.share <= 0.0).map(|_| 0)
    }

    /// The last phase in which all counters did.
    pub fn after(&self) -> Option<usize> {
        self.phases.iter().rposition(|phase| phase.share >= 0.999)
    }

    /// The name of the store's part, if it was sampled.
    pub fn store(&self) -> Option<&'a str> {
        self.part(&STORES)
    }

    pub fn cache(&self) -> Option<&'a str> {
        self.part(&CACHES)
    }

    fn part(&self, names: &[&str]) -> Option<&'a str> {
        self.parts.iter().copied().find(|part| names.contains(part))
    }

    /// The end of a bin, at most the end of the run.
    pub fn bin_end_ms(&self, from_ms: i64) -> i64 {
        (from_ms + self.bins.width_ms).min(self.record.to_ms)
    }

    /// The growth rate of a counter in each bin.
    pub fn rates(&self, counter: impl Fn(&Sample) -> Option<f64>) -> Vec<Option<f64>> {
        let counter = self.usages.counter(counter);
        self.sampled(|from_ms, to_ms| counter.rate(from_ms, to_ms))
    }

    /// One value per bin, computed from samples.
    pub fn sampled(&self, value: impl Fn(i64, i64) -> Option<f64>) -> Vec<Option<f64>> {
        self.bins.bins.iter().map(|bin| value(bin.from_ms, self.bin_end_ms(bin.from_ms))).collect()
    }

    /// The time of the first change, including canaries.
    pub fn first_step_ms(&self) -> i64 {
        self.rollout_ms().min().unwrap_or(self.record.to_ms)
    }

    pub fn last_step_ms(&self) -> i64 {
        self.rollout_ms().max().unwrap_or(self.record.from_ms)
    }

    fn rollout_ms(&self) -> impl Iterator<Item = i64> {
        let is_rollout =
            |kind| !matches!(kind, StepKind::CompactionBegan | StepKind::CompactionEnded);
        self.record.steps.iter().filter(move |step| is_rollout(step.kind)).map(|step| step.at_ms)
    }
}

fn parts(record: &Record) -> Vec<&str> {
    let names = record.samples.iter().flat_map(|sample| sample.parts.keys()).map(String::as_str);
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The narrowest bins that a figure can show, that have enough answers for percentiles, and for
/// which samples are dense enough.
fn bin_width_ms(record: &Record, sample_distance_ms: i64) -> i64 {
    let length_ms = (record.to_ms - record.from_ms).max(1);
    let answers = record.answers.len() as i64;
    let is_wide_enough = |width_ms: &i64| {
        let bins = (length_ms / width_ms).max(1);
        bins <= BINS_MAX && answers / bins >= ANSWERS_PER_BIN_MIN && *width_ms >= sample_distance_ms
    };
    let width_ms = WIDTHS_MS.into_iter().find(is_wide_enough);
    // A run with few answers is shown by the hour.
    width_ms.unwrap_or(HOUR_MS).max(length_ms / BINS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::record::BatchRecord;
    use crate::experiment::report::tests::sample_run;

    fn width_ms(days: i64, answers: usize, sample_distance_ms: i64) -> i64 {
        let answer =
            BatchRecord { due_ms: 0, latency_us: 0, memory: 0, cache: 0, store: 0, failed: 0 };
        let record = Record {
            from_ms: 0,
            to_ms: days * DAY_MS,
            answers: vec![answer; answers],
            ..sample_run::empty()
        };
        bin_width_ms(&record, sample_distance_ms)
    }

    #[test]
    fn bins_are_as_fine_as_answers_and_samples_allow() {
        assert_eq!(width_ms(7, 1_000_000, 600_000), QUARTER_MS);
        assert_eq!(width_ms(16, 1_000_000, 600_000), 2 * QUARTER_MS);
        assert_eq!(width_ms(7, 100_000, 600_000), HOUR_MS);
        assert_eq!(width_ms(7, 1_000_000, 2 * QUARTER_MS), 2 * QUARTER_MS);
        assert_eq!(width_ms(7, 10, 0), HOUR_MS);
    }

    #[test]
    fn before_and_after_are_the_phases_without_and_with_all_counters() {
        let record = sample_run::small();
        let analysis = Analysis::new(&record);
        assert_eq!(
            (analysis.before(), analysis.after()),
            (Some(0), Some(analysis.phases.len() - 1))
        );
        assert_eq!((analysis.store(), analysis.cache()), (Some("cassandra"), Some("redis")));
        let empty = sample_run::empty();
        assert_eq!(Analysis::new(&empty).after(), None);
    }
}

//! Answers sorted into bins of equal length. A bin without answers has no values, not zeros.

use crate::experiment::record::BatchRecord;
use serde::Serialize;

pub const MINUTE_MS: i64 = 60_000;
pub const QUARTER_MS: i64 = 15 * MINUTE_MS;
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// With fewer answers, the 99th percentile would be just their maximum.
const P99_ANSWERS_MIN: usize = 100;

/// The answers of a bin by source, and their latencies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Tally {
    pub batches: u64,
    pub memory: u64,
    pub cache: u64,
    pub store: u64,
    pub failed: u64,
    pub latency_us: u64,
}

impl Tally {
    pub fn add(&mut self, answer: &BatchRecord) {
        self.batches += 1;
        self.memory += u64::from(answer.memory);
        self.cache += u64::from(answer.cache);
        self.store += u64::from(answer.store);
        self.failed += u64::from(answer.failed);
        self.latency_us += u64::from(answer.latency_us);
    }

    /// Number of answered counts.
    pub fn answered(&self) -> u64 {
        self.memory + self.cache + self.store
    }

    pub fn asked(&self) -> u64 {
        self.answered() + self.failed
    }

    pub fn mean_ms(&self) -> Option<f64> {
        ratio(self.latency_us as f64 / 1_000.0, self.batches as f64)
    }

    /// A fraction of the answered counts.
    pub fn share(&self, part: u64) -> Option<f64> {
        ratio(part as f64, self.answered() as f64)
    }
}

/// `None` if the divisor is 0.
pub fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Bin {
    pub from_ms: i64,
    pub tally: Tally,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

/// Bins of `width_ms`, starting at `from_ms`.
#[derive(Debug, Clone)]
pub struct Bins {
    pub from_ms: i64,
    pub width_ms: i64,
    pub bins: Vec<Bin>,
}

impl Bins {
    pub fn new(answers: &[BatchRecord], from_ms: i64, to_ms: i64, width_ms: i64) -> Self {
        let len = ((to_ms - from_ms).max(0) as u64).div_ceil(width_ms as u64) as usize;
        let mut tallies = vec![Tally::default(); len];
        let mut latencies: Vec<Vec<u32>> = vec![Vec::new(); len];

        for answer in answers.iter().filter(|answer| (from_ms..to_ms).contains(&answer.due_ms)) {
            let place = ((answer.due_ms - from_ms) / width_ms) as usize;
            tallies[place].add(answer);
            latencies[place].push(answer.latency_us);
        }

        let bins = tallies.into_iter().zip(latencies).enumerate().map(
            |(place, (tally, mut latencies))| Bin {
                from_ms: from_ms + place as i64 * width_ms,
                tally,
                p50_ms: percentile_ms(&mut latencies, 0.5),
                p99_ms: percentile_ms(&mut latencies, 0.99)
                    .filter(|_| tally.batches as usize >= P99_ANSWERS_MIN),
            },
        );
        Self { from_ms, width_ms, bins: bins.collect() }
    }

    /// One value per bin; `None` for bins without answers.
    pub fn values(&self, value: impl Fn(&Bin) -> Option<f64>) -> Vec<Option<f64>> {
        self.bins.iter().map(|bin| value(bin).filter(|_| bin.tally.batches > 0)).collect()
    }
}

/// The exact percentile by nearest rank, in milliseconds. Reorders the latencies.
pub fn percentile_ms(latencies_us: &mut [u32], share: f64) -> Option<f64> {
    let rank = (latencies_us.len() as f64 * share).ceil() as usize;
    let place = rank.saturating_sub(1);
    if place >= latencies_us.len() {
        return None;
    }
    let (_, value, _) = latencies_us.select_nth_unstable(place);
    Some(f64::from(*value) / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(due_ms: i64, latency_us: u32) -> BatchRecord {
        BatchRecord { due_ms, latency_us, memory: 1, cache: 2, store: 3, failed: 4 }
    }

    #[test]
    fn an_answer_belongs_to_the_bin_in_which_it_was_due() {
        let answers =
            [answer(999, 1), answer(1_000, 2_000), answer(1_059, 4_000), answer(1_180, 8_000)];
        let bins = Bins::new(&answers, 1_000, 1_180, 60);
        assert_eq!(bins.bins.iter().map(|bin| bin.tally.batches).collect::<Vec<_>>(), [2, 0, 0]);
        assert_eq!(bins.bins[0].tally.asked(), 20);
        assert_eq!(bins.bins[0].tally.mean_ms(), Some(3.0));
        assert_eq!(bins.bins[0].p50_ms, Some(2.0));
    }

    #[test]
    fn a_bin_without_answers_is_a_gap() {
        let bins = Bins::new(&[answer(0, 1_000)], 0, 120, 60);
        assert_eq!(bins.values(|bin| Some(bin.tally.store as f64)), [Some(3.0), None]);
    }

    #[test]
    fn the_last_bin_may_be_shorter() {
        assert_eq!(Bins::new(&[], 0, 61, 60).bins.len(), 2);
        assert!(Bins::new(&[], 5, 0, 60).bins.is_empty());
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let mut values: Vec<u32> = (1..=200).rev().map(|value| value * 1_000).collect();
        assert_eq!(percentile_ms(&mut values, 0.5), Some(100.0));
        assert_eq!(percentile_ms(&mut values, 0.99), Some(198.0));
        assert_eq!(percentile_ms(&mut [7_000], 0.99), Some(7.0));
        assert_eq!(percentile_ms(&mut [], 0.99), None);
    }

    #[test]
    fn few_answers_have_no_99th_percentile() {
        let few: Vec<BatchRecord> = (0..99).map(|place| answer(place, 1)).collect();
        assert_eq!(Bins::new(&few, 0, 100, 100).bins[0].p99_ms, None);
        let enough: Vec<BatchRecord> = (0..100).map(|place| answer(place, 1_000)).collect();
        assert_eq!(Bins::new(&enough, 0, 100, 100).bins[0].p99_ms, Some(1.0));
    }
}

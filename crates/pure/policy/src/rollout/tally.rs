//! What readers did within a stretch of time, from the growth of their numbers.

use crate::histogram::quantile;
use raingauge_core::code::Code;
use serde::{Deserialize, Serialize};

/// The codes of counts that the service failed to answer. Those that the client asked for wrongly
/// are no fault of a cache.
pub const FAILURES: [Code; 3] = [Code::DeadlineExceeded, Code::Overloaded, Code::Unavailable];

/// How much of each thing happened. Adds up over processes and over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    pub batches: f64,
    /// What all of them took together.
    pub batch_seconds: f64,
    pub counts: f64,
    pub failed: f64,
    pub store_requests: f64,
    pub breakers_opened: f64,
    /// Batches up to each finite bound of latency in seconds, by growing bound.
    pub within: Vec<(f64, f64)>,
}

impl Tally {
    /// The batches of a cumulative histogram of latencies, `(bound in seconds, batches up to it)`
    /// in any order, the infinite bound among them.
    pub fn of_batches(histogram: impl IntoIterator<Item = (f64, f64)>, batch_seconds: f64) -> Self {
        let mut batches = 0.0_f64;
        let mut within = Vec::new();

        for (bound, count) in histogram {
            batches = batches.max(count);
            if bound.is_finite() {
                within.push((bound, count));
            }
        }

        within.sort_by(|one, other| one.0.total_cmp(&other.0));
        Self { batches, batch_seconds, within, ..Self::default() }
    }

    /// What happened since an earlier reading of the same process. A process whose numbers are
    /// lower than before was restarted: all of them count.
    pub fn since(&self, before: &Self) -> Self {
        if self.counts < before.counts || self.batches < before.batches {
            return self.clone();
        }
        let grown = |now: f64, before: f64| (now - before).max(0.0);
        let known = |bound: f64| {
            before.within.iter().find(|(own, _)| *own == bound).map_or(0.0, |(_, count)| *count)
        };

        Self {
            batches: grown(self.batches, before.batches),
            batch_seconds: grown(self.batch_seconds, before.batch_seconds),
            counts: grown(self.counts, before.counts),
            failed: grown(self.failed, before.failed),
            store_requests: grown(self.store_requests, before.store_requests),
            breakers_opened: grown(self.breakers_opened, before.breakers_opened),
            within: self
                .within
                .iter()
                .map(|(bound, count)| (*bound, grown(*count, known(*bound))))
                .collect(),
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.batches += other.batches;
        self.batch_seconds += other.batch_seconds;
        self.counts += other.counts;
        self.failed += other.failed;
        self.store_requests += other.store_requests;
        self.breakers_opened += other.breakers_opened;
        for (bound, count) in &other.within {
            match self.within.binary_search_by(|(own, _)| own.total_cmp(bound)) {
                Ok(place) => self.within[place].1 += count,
                Err(place) => self.within.insert(place, (*bound, *count)),
            }
        }
    }

    /// The tally as one window of this length.
    pub fn window(&self, seconds: f64) -> Window {
        let whole = [(f64::INFINITY, self.batches)];
        let buckets: Vec<(f64, f64)> = self.within.iter().copied().chain(whole).collect();
        let each_second = 1.0 / seconds.max(1e-3);

        Window {
            seconds,
            batches: self.batches,
            counts_per_s: self.counts * each_second,
            failed_share: self.failed / self.counts.max(1.0),
            store_requests_per_s: self.store_requests * each_second,
            breakers_opened: self.breakers_opened,
            mean_ms: 1_000.0 * self.batch_seconds / self.batches.max(1.0),
            p99_ms: 1_000.0 * quantile(&buckets, 0.99).unwrap_or(0.0),
        }
    }
}

/// What happened within a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    pub seconds: f64,
    pub batches: f64,
    pub counts_per_s: f64,
    /// Of the counts that were asked for.
    pub failed_share: f64,
    pub store_requests_per_s: f64,
    pub breakers_opened: f64,
    pub mean_ms: f64,
    /// By interpolation between the bounds of the histogram.
    pub p99_ms: f64,
}

impl Window {
    /// Requests to the store for each count.
    pub fn store_per_count(&self) -> f64 {
        if self.counts_per_s > 0.0 { self.store_requests_per_s / self.counts_per_s } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(fast: f64, slow: f64, failed: f64) -> Tally {
        let histogram = [(f64::INFINITY, fast + slow), (0.1, fast + slow), (0.005, fast)];
        Tally {
            counts: 10.0 * (fast + slow),
            failed,
            store_requests: 2.0 * slow,
            ..Tally::of_batches(histogram, 0.002 * fast + 0.05 * slow)
        }
    }

    #[test]
    fn a_window_is_what_grew_between_two_readings() {
        let window = reading(1_090.0, 10.0, 15.0).since(&reading(100.0, 0.0, 5.0)).window(10.0);
        assert_eq!(
            (window.batches, window.counts_per_s, window.store_requests_per_s),
            (1_000.0, 1_000.0, 2.0)
        );
        assert!(
            (window.failed_share - 0.001).abs() < 1e-9
                && (window.store_per_count() - 0.002).abs() < 1e-9
        );
        assert!((window.p99_ms - 5.0).abs() < 1e-9, "99 of 100 are fast: {}", window.p99_ms);

        let slower = reading(1_080.0, 20.0, 15.0).since(&reading(100.0, 0.0, 5.0)).window(10.0);
        assert!((slower.p99_ms - 52.5).abs() < 1e-9, "half of the slow ones: {}", slower.p99_ms);

        let nothing = reading(5.0, 5.0, 0.0).since(&reading(5.0, 5.0, 0.0)).window(10.0);
        assert_eq!((nothing.p99_ms, nothing.store_per_count()), (0.0, 0.0));
    }

    #[test]
    fn all_numbers_of_a_restarted_process_count() {
        assert_eq!(reading(3.0, 1.0, 0.0).since(&reading(100.0, 0.0, 5.0)), reading(3.0, 1.0, 0.0));
    }

    #[test]
    fn tallies_of_processes_add_up_bound_by_bound() {
        let mut sum = Tally::default();
        for tally in [reading(10.0, 0.0, 1.0), reading(0.0, 10.0, 2.0)] {
            sum.add(&tally);
        }
        assert_eq!(
            (sum.batches, sum.failed, sum.within.as_slice()),
            (20.0, 3.0, &[(0.005, 10.0), (0.1, 20.0)][..])
        );
    }
}

//! What readers did within a stretch of time, from the growth of their counters.

use crate::histogram::quantile;
use serde::{Deserialize, Serialize};

/// Batches of counts, by the bound of their latency. Metrics carry the names of `docs/metrics.md`.
pub const LATENCY: &str = "raingauge_http_request_seconds_bucket";
pub const LATENCY_SUM: &str = "raingauge_http_request_seconds_sum";
/// The route whose latency is watched.
pub const ROUTE: &str = "/v1/counts";
const COUNTS: &str = "raingauge_range_counts_total";
const ERRORS: &str = "raingauge_errors_total";
const BREAKERS: &str = "raingauge_breaker_transitions_total";
/// Over an engine of a cluster its requests, over the embedded one the tiles that had to be read.
const STORE: [&str; 2] = ["raingauge_cql_read_requests_total", "raingauge_tile_cache_misses_total"];
/// Counts that the service failed to answer; those that the client asked for wrongly are no fault of a cache.
const FAILURES: [&str; 3] = ["deadline_exceeded", "overloaded", "unavailable"];

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
    /// Batches that took at most so many seconds, by finite bound, growing.
    pub within: Vec<(f64, f64)>,
}

impl Tally {
    /// Reads the metrics of a process. `sum` answers the sum of all series of a metric of which a label has this value,
    /// and of all where that is empty; `latency` are the buckets of [`LATENCY`] of our route, the infinite one among
    /// them, in any order.
    pub fn read(
        sum: impl Fn(&str, &str) -> f64,
        latency: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let (mut within, mut batches) = (Vec::new(), 0.0_f64);
        for (bound, count) in latency {
            batches = batches.max(count);
            if bound.is_finite() {
                within.push((bound, count));
            }
        }
        within.sort_by(|one, other| one.0.total_cmp(&other.0));
        Self {
            batches,
            batch_seconds: sum(LATENCY_SUM, ROUTE),
            counts: sum(COUNTS, ""),
            failed: FAILURES.iter().map(|code| sum(ERRORS, code)).sum(),
            store_requests: STORE.iter().map(|metric| sum(metric, "")).sum(),
            breakers_opened: sum(BREAKERS, "open"),
            within,
        }
    }

    /// What happened since an earlier reading of the same process. One that has less than before was begun anew: all of
    /// it has happened since.
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

    /// All of it as one window of so many seconds.
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
        let sum = |metric: &str, label: &str| match (metric, label) {
            (COUNTS, "") => 10.0 * (fast + slow),
            (ERRORS, "deadline_exceeded") => failed,
            (ERRORS, "key_unknown") => 1_000.0,
            ("raingauge_cql_read_requests_total", "") => 2.0 * slow,
            (LATENCY_SUM, ROUTE) => 0.002 * fast + 0.05 * slow,
            _ => 0.0,
        };
        Tally::read(sum, [(f64::INFINITY, fast + slow), (0.1, fast + slow), (0.005, fast)])
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
    fn what_began_anew_has_done_all_of_it_since() {
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

//! What a rollout must not do to a service.

use super::tally::Window;
use serde::{Deserialize, Serialize};

/// Every number is compared with the service as it was before the rollout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Largest ratio of the 99th percentile of batches to that of the baseline ...
    pub p99_times: f64,
    /// ... and the milliseconds up to which it is always accepted.
    pub p99_free_ms: f64,
    /// By how much the share of failed counts may exceed that of the baseline.
    pub failed_share: f64,
    /// Largest ratio of store requests per count to those of the baseline, unless there are at most
    /// [`STORE_REQUESTS_FREE`].
    pub store_times: f64,
    /// Most circuit breakers that may open.
    pub breakers: f64,
    /// Fewest batches of a window that is judged.
    pub batches_min: f64,
}

/// Requests per count that are always accepted: a little more than any plan takes.
pub const STORE_REQUESTS_FREE: f64 = 6.0;

impl Limits {
    pub const DEFAULT: Self = Self {
        p99_times: 2.0,
        p99_free_ms: 20.0,
        failed_share: 0.001,
        store_times: 4.0,
        breakers: 0.0,
        batches_min: 100.0,
    };

    /// Whether a window has enough in it.
    pub fn suffice(&self, window: &Window) -> bool {
        window.batches >= self.batches_min
    }

    /// Compares a window with each limit.
    pub fn verdicts(&self, before: &Window, now: &Window) -> Vec<Verdict> {
        let p99_max = (before.p99_ms * self.p99_times).max(self.p99_free_ms);
        let store_max = (before.store_per_count() * self.store_times).max(STORE_REQUESTS_FREE);
        vec![
            Verdict { limit: Limit::Latency, seen: now.p99_ms, at_most: p99_max },
            Verdict {
                limit: Limit::Errors,
                seen: now.failed_share,
                at_most: before.failed_share + self.failed_share,
            },
            Verdict { limit: Limit::Store, seen: now.store_per_count(), at_most: store_max },
            Verdict { limit: Limit::Breakers, seen: now.breakers_opened, at_most: self.breakers },
        ]
    }
}

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// The 99th percentile of batches, in milliseconds.
    Latency,
    /// The share of the counts that fail.
    Errors,
    /// Requests to the store for each count.
    Store,
    /// Circuit breakers that opened.
    Breakers,
}

impl Limit {
    /// A number of it, as people read it.
    pub fn number(self, value: f64) -> String {
        match self {
            Self::Latency => format!("{value:.1} ms"),
            Self::Errors => format!("{:.3} %", 100.0 * value),
            Self::Store => format!("{value:.2}"),
            Self::Breakers => format!("{value:.0}"),
        }
    }
}

/// A number that was measured, and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    pub limit: Limit,
    pub seen: f64,
    pub at_most: f64,
}

impl Verdict {
    pub fn holds(&self) -> bool {
        self.seen <= self.at_most
    }

    /// What is wrong when the limit does not hold.
    pub fn sentence(&self) -> String {
        let [seen, at_most] = [self.seen, self.at_most].map(|value| self.limit.number(value));
        match self.limit {
            Limit::Latency => format!("the 99th percentile is {seen}, above {at_most}"),
            Limit::Errors => format!("{seen} of the counts fail, above {at_most}"),
            Limit::Store => format!("a count makes {seen} requests to the store, above {at_most}"),
            Limit::Breakers => format!("{seen} circuit breakers opened, above {at_most}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Window = Window {
        seconds: 10.0,
        batches: 1_000.0,
        counts_per_s: 1_000.0,
        failed_share: 0.0005,
        store_requests_per_s: 2_000.0,
        breakers_opened: 0.0,
        mean_ms: 5.0,
        p99_ms: 25.0,
    };

    fn broken(before: &Window, now: &Window) -> Vec<String> {
        let verdicts = Limits::DEFAULT.verdicts(before, now);
        verdicts.iter().filter(|verdict| !verdict.holds()).map(Verdict::sentence).collect()
    }

    #[test]
    fn what_is_as_before_or_a_little_worse_holds() {
        assert!(broken(&BEFORE, &BEFORE).is_empty());
        let worse =
            Window { p99_ms: 50.0, failed_share: 0.0015, store_requests_per_s: 8_000.0, ..BEFORE };
        assert!(broken(&BEFORE, &worse).is_empty());
        let quick = Window { p99_ms: 1.0, ..BEFORE };
        assert!(
            broken(&quick, &Window { p99_ms: 20.0, ..BEFORE }).is_empty(),
            "20 ms never matter"
        );
        let limits = Limits::DEFAULT;
        assert!(!limits.suffice(&Window { batches: 99.0, ..BEFORE }) && limits.suffice(&BEFORE));
    }

    #[test]
    fn each_broken_limit_is_reported() {
        let all = Window {
            p99_ms: 50.1,
            failed_share: 0.0016,
            store_requests_per_s: 8_001.0,
            breakers_opened: 1.0,
            ..BEFORE
        };

        let found = broken(&BEFORE, &all);
        let words = [
            "99th percentile is 50.1 ms",
            "0.160 % of the counts fail",
            "8.00 requests",
            "1 circuit breakers",
        ];

        assert_eq!(found.len(), words.len(), "{found:?}");
        assert!(found.iter().zip(words).all(|(found, word)| found.contains(word)), "{found:?}");
    }
}

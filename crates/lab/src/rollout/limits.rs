//! What a rollout must not do to a service.

use super::window::Window;
use serde::Serialize;

#[derive(Debug, Clone, Copy, Serialize, clap::Args)]
pub struct Limits {
    /// The 99th percentile of batches may be so many times that of before
    #[arg(long, default_value_t = 2.0)]
    pub p99_times: f64,
    /// And below so many milliseconds it never matters
    #[arg(long, default_value_t = 20.0)]
    pub p99_free_ms: f64,
    /// Of the counts, so great a share may fail more than before
    #[arg(long, default_value_t = 0.001)]
    pub failed_share: f64,
    /// Requests to the store for each count may be so many times those of before, or at most six
    #[arg(long, default_value_t = 4.0)]
    pub store_times: f64,
    /// So many circuit breakers may open
    #[arg(long, default_value_t = 0.0)]
    pub breakers: f64,
    /// A window of fewer batches says nothing: the rollout waits for more
    #[arg(long, default_value_t = 100.0)]
    pub batches_min: f64,
}

/// What the plain plan of the three tables costs at most, and a little more.
const STORE_REQUESTS_FREE: f64 = 6.0;

impl Limits {
    /// Whether a window has enough in it.
    pub fn suffice(&self, window: &Window) -> bool {
        window.batches >= self.batches_min
    }

    /// What a window breaks, in sentences.
    pub fn broken(&self, before: &Window, now: &Window) -> Vec<String> {
        let mut broken = Vec::new();
        let p99_max = (before.p99_ms * self.p99_times).max(self.p99_free_ms);
        if now.p99_ms > p99_max {
            broken.push(format!("the 99th percentile is {:.1} ms, above {p99_max:.1} ms", now.p99_ms));
        }
        let failed_max = before.failed_share + self.failed_share;
        if now.failed_share > failed_max {
            broken.push(format!(
                "{:.3} % of the counts fail, above {:.3} %",
                100.0 * now.failed_share,
                100.0 * failed_max
            ));
        }
        let per_count = |window: &Window| window.store_requests_per_s / window.counts_per_s.max(1e-9);
        let store_max = (per_count(before) * self.store_times).max(STORE_REQUESTS_FREE);
        if per_count(now) > store_max {
            broken.push(format!("a count makes {:.2} requests to the store, above {store_max:.2}", per_count(now)));
        }
        if now.breakers_opened > self.breakers {
            broken.push(format!("{} circuit breakers opened, above {}", now.breakers_opened, self.breakers));
        }
        broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        p99_times: 2.0,
        p99_free_ms: 20.0,
        failed_share: 0.001,
        store_times: 4.0,
        breakers: 0.0,
        batches_min: 100.0,
    };
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

    #[test]
    fn what_is_as_before_or_a_little_worse_goes_on() {
        assert!(LIMITS.broken(&BEFORE, &BEFORE).is_empty());
        let worse = Window { p99_ms: 50.0, failed_share: 0.0015, store_requests_per_s: 8_000.0, ..BEFORE };
        assert!(LIMITS.broken(&BEFORE, &worse).is_empty());
        let quick = Window { p99_ms: 1.0, ..BEFORE };
        assert!(LIMITS.broken(&quick, &Window { p99_ms: 20.0, ..BEFORE }).is_empty(), "20 ms never matter");
        assert!(!LIMITS.suffice(&Window { batches: 99.0, ..BEFORE }) && LIMITS.suffice(&BEFORE));
    }

    #[test]
    fn each_limit_is_told_when_it_is_broken() {
        let all = Window {
            p99_ms: 50.1,
            failed_share: 0.0016,
            store_requests_per_s: 8_001.0,
            breakers_opened: 1.0,
            ..BEFORE
        };
        let told = LIMITS.broken(&BEFORE, &all);
        let words = ["99th percentile is 50.1 ms", "0.160 % of the counts fail", "8.00 requests", "1 circuit breakers"];
        assert_eq!(told.len(), words.len(), "{told:?}");
        assert!(told.iter().zip(words).all(|(told, word)| told.contains(word)), "{told:?}");
    }
}

//! How long a letter waits until it is tried again.

use raingauge_core::event::key_hash;
use std::time::Duration;

/// Pauses vary by up to this many percent, so that letters that failed together do not return
/// together.
const JITTER_PERCENT: i64 = 20;

/// How often, and for how long, letters are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOptions {
    /// The pause after the first try. Each later one is twice as long, ...
    pub first_ms: i64,
    /// ... up to this.
    pub most_ms: i64,
    /// A letter that is older than this is given up.
    pub age_max_ms: i64,
    /// How long a letter is hidden from others while it is tried.
    pub visibility: Duration,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            first_ms: 1_000,
            most_ms: 3_600_000,
            age_max_ms: 3 * 86_400_000,
            visibility: Duration::from_secs(60),
        }
    }
}

impl RetryOptions {
    /// The pause after a number of tries, the first of which is 1. It follows from the id.
    pub fn pause(&self, id: &str, tries: u32) -> Duration {
        let doublings = tries.saturating_sub(1).min(40);
        let pause_ms = self.first_ms.saturating_mul(1 << doublings).min(self.most_ms);

        // Evenly between -20 % and +20 %, in thousandths of it.
        let random = (key_hash(&format!("{id}.{tries}")) % 2_001) as i64 - 1_000;
        let varied_ms = pause_ms + pause_ms * JITTER_PERCENT / 100 * random / 1_000;
        Duration::from_millis(varied_ms.max(1).unsigned_abs())
    }

    /// Whether a letter that was sent at a time is too old to be tried once more.
    pub fn is_too_old(&self, sent_ms: i64, now_ms: i64) -> bool {
        now_ms - sent_ms >= self.age_max_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_an_hour_and_vary_by_a_fifth() {
        let options = RetryOptions::default();
        for (tries, base_ms) in
            [(1, 1_000), (2, 2_000), (5, 16_000), (13, 3_600_000), (u32::MAX, 3_600_000)]
        {
            let pauses: Vec<u128> = (0..1_000)
                .map(|number| options.pause(&format!("event-{number}"), tries).as_millis())
                .collect();
            let least = pauses.iter().min().copied().unwrap_or_default();
            let most = pauses.iter().max().copied().unwrap_or_default();
            let percent = base_ms / 100;
            assert!((80 * percent..=82 * percent).contains(&least), "{least} of {base_ms}");
            assert!((118 * percent..=120 * percent).contains(&most), "{most} of {base_ms}");
            assert_eq!(options.pause("event-7", tries).as_millis(), pauses[7]);
        }

        assert!(!options.is_too_old(0, 3 * 86_400_000 - 1));
        assert!(options.is_too_old(0, 3 * 86_400_000));
    }
}

//! Rate limits: how much may happen per second, and how much at once after a pause.
//!
//! ```text
//!   a bucket of 3, one token a second:
//!
//!   full ▶ take 2 ▶ 1 left ── 1 s ──▶ 2 left ▶ take 3: wait 1 s
//! ```
//!
//! This is the generic cell rate algorithm (ITU-T I.371): a bucket is one number, the time at which
//! it will be full again. Nothing has to run while it fills. Times come from a clock that never
//! goes back, in any unit that is fine enough for a token.

/// How fast a bucket fills, and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Time in which one token comes back.
    interval: i64,
    /// Tokens of a full bucket.
    burst: i64,
}

/// Nanoseconds of a second: the unit of rates per second.
pub const SECOND_NS: i64 = 1_000_000_000;
/// Longest time in which a bucket fills. Sums with it stay within 64 bits.
const FILL_MAX: i64 = i64::MAX / 4;

impl Rate {
    /// One token in each interval.
    pub const fn every(interval: i64, burst: u32) -> Self {
        let burst = burst as i64;
        assert!(interval > 0 && burst > 0, "a rate is positive");
        assert!(interval <= FILL_MAX / burst, "a bucket fills within 64 bits");
        Self { interval, burst }
    }

    /// Tokens per second, where times are nanoseconds. An interval is rounded up: the rate is never
    /// exceeded.
    pub const fn per_second(tokens: u32, burst: u32) -> Self {
        assert!(tokens > 0, "a rate is positive");
        let tokens = tokens as i64;
        Self::every((SECOND_NS + tokens - 1) / tokens, burst)
    }

    /// Tokens of a full bucket.
    pub const fn burst(self) -> i64 {
        self.burst
    }

    const fn fill(self) -> i64 {
        self.interval * self.burst
    }
}

/// What is left of a rate, full at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    full_at: i64,
}

/// Time until as many tokens are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait(pub i64);

impl Bucket {
    pub const FULL: Self = Self { full_at: i64::MIN };

    /// Takes tokens, or none if there are too few. More than the bucket holds are never there.
    pub fn take(&mut self, rate: Rate, now: i64, tokens: u32) -> Result<(), Wait> {
        self.check(rate, now, tokens)?;
        self.charge(rate, now, tokens);
        Ok(())
    }

    /// Whether there are as many tokens.
    pub fn check(&self, rate: Rate, now: i64, tokens: u32) -> Result<(), Wait> {
        let tokens = i64::from(tokens);
        if tokens > rate.burst {
            return Err(Wait(i64::MAX));
        }
        let wait = self.missing(now) + tokens * rate.interval - rate.fill();
        if wait > 0 { Err(Wait(wait)) } else { Ok(()) }
    }

    /// Takes tokens that have been used already. A bucket with fewer than those is empty then.
    pub fn charge(&mut self, rate: Rate, now: i64, tokens: u32) {
        let taken = i64::from(tokens).min(rate.burst) * rate.interval;
        self.full_at = now + (self.missing(now) + taken).min(rate.fill());
    }

    /// Puts tokens back that were taken and not used.
    pub fn give_back(&mut self, rate: Rate, tokens: u32) {
        let returned = i64::from(tokens).min(rate.burst) * rate.interval;
        self.full_at = self.full_at.saturating_sub(returned);
    }

    /// Goes on at another rate. The tokens that are there stay, as far as the new bucket holds
    /// them: neither a higher nor a lower rate begins with a burst.
    pub fn change(&mut self, old: Rate, new: Rate, now: i64) {
        let there = (old.fill() - self.missing(now).min(old.fill())).max(0);
        // In parts of tokens: time of the old rate becomes time of the new one, rounded down.
        let kept = i128::from(there) * i128::from(new.interval) / i128::from(old.interval);
        let kept = i64::try_from(kept).unwrap_or(i64::MAX).min(new.fill());
        self.full_at = now + new.fill() - kept;
    }

    /// Time until the bucket is full.
    fn missing(&self, now: i64) -> i64 {
        self.full_at.max(now) - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_are_used_up_and_come_back() {
        let rate = Rate::every(10, 3);
        let mut bucket = Bucket::FULL;
        assert_eq!(bucket.take(rate, 100, 2), Ok(()));
        assert_eq!(bucket.take(rate, 100, 2), Err(Wait(10)));
        assert_eq!(bucket.take(rate, 100, 1), Ok(()));
        assert_eq!(bucket.take(rate, 109, 1), Err(Wait(1)));
        assert_eq!(bucket.take(rate, 110, 1), Ok(()));
        assert_eq!(bucket.take(rate, 110, 3), Err(Wait(30)));
        assert_eq!(bucket.take(rate, 140, 3), Ok(()));
        // More than the bucket holds.
        assert_eq!(bucket.take(rate, 1_000_000, 4), Err(Wait(i64::MAX)));
    }

    #[test]
    fn charged_and_returned_tokens_stay_within_the_bucket() {
        let rate = Rate::every(10, 3);
        let mut bucket = Bucket::FULL;
        bucket.charge(rate, 0, 1_000);
        assert_eq!(bucket.check(rate, 0, 1), Err(Wait(10)));
        bucket.give_back(rate, 2);
        assert_eq!(bucket.take(rate, 0, 2), Ok(()));
        assert_eq!(bucket.check(rate, 0, 1), Err(Wait(10)));
        bucket.give_back(rate, u32::MAX);
        assert_eq!(bucket.check(rate, 0, 3), Ok(()));
        let mut full = Bucket::FULL;
        full.give_back(rate, 3);
        assert_eq!(full.take(rate, i64::MIN / 2, 3), Ok(()));
    }

    #[test]
    fn rates_per_second_are_rounded_to_the_safe_side() {
        for tokens in [1, 3, 7, 500, 999_999_999, u32::MAX] {
            let rate = Rate::per_second(tokens, 1);
            assert!(rate.interval * i64::from(tokens) >= SECOND_NS, "{tokens}");
        }
        assert_eq!(Rate::per_second(500, 10).interval, 2_000_000);
        assert_eq!(Rate::per_second(500, 10).burst(), 10);
    }

    /// At 07:00 a destination is to be sent less.
    #[test]
    fn a_changed_rate_begins_without_a_burst() {
        let fast = Rate::per_second(500, 500);
        let slow = Rate::per_second(50, 10);
        let count = |bucket: &mut Bucket, rate, from_ms: i64, to_ms: i64| {
            (from_ms..to_ms).filter(|ms| bucket.take(rate, ms * 1_000_000, 1).is_ok()).count()
        };

        let mut bucket = Bucket::FULL;
        bucket.change(fast, slow, 0);
        assert_eq!(count(&mut bucket, slow, 0, 1_000), 59, "10 at once, then one in 20 ms");

        bucket.change(slow, fast, 1_000 * 1_000_000);
        let raised = count(&mut bucket, fast, 1_000, 2_000);
        assert!((499..=501).contains(&raised), "no burst of 500 on top: {raised}");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Pass(i64),
        Take(u32),
        Change(i64, u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0..50_i64).prop_map(Step::Pass),
            6 => (1..5_u32).prop_map(Step::Take),
            1 => (1..20_i64, 1..8_u32).prop_map(|(interval, burst)| Step::Change(interval, burst)),
        ];
        prop::collection::vec(step, 1..120)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Over any stretch of time, no more is taken than a full bucket at its beginning and what
        /// the rates of that time give.
        #[test]
        fn no_stretch_of_time_has_more_than_its_share(steps in steps()) {
            let mut rate = Rate::every(10, 4);
            let mut bucket = Bucket::FULL;
            let mut now = 0;
            // The time, the size of the bucket, the tokens given by then, and those taken.
            let mut taken: Vec<(f64, f64, f64)> = Vec::new();
            let mut given = 0.0;

            for step in steps {
                match step {
                    Step::Pass(time) => {
                        now += time;
                        given += time as f64 / rate.interval as f64;
                    }
                    Step::Change(interval, burst) => {
                        let new = Rate::every(interval, burst);
                        bucket.change(rate, new, now);
                        rate = new;
                    }
                    Step::Take(tokens) => match bucket.take(rate, now, tokens) {
                        Ok(()) => taken.push((given, rate.burst as f64, f64::from(tokens))),
                        Err(Wait(i64::MAX)) => prop_assert!(i64::from(tokens) > rate.burst),
                        Err(Wait(wait)) => {
                            // The wait is exact.
                            let mut later = bucket;
                            prop_assert!(later.take(rate, now + wait - 1, tokens).is_err());
                            prop_assert!(later.take(rate, now + wait, tokens).is_ok());
                        }
                    },
                }
            }

            for (place, (start, burst, _)) in taken.iter().enumerate() {
                let mut sum = 0.0;
                for (end, _, tokens) in &taken[place..] {
                    sum += tokens;
                    prop_assert!(sum <= burst + (end - start) + 1e-6, "{} from {}", sum, place);
                }
            }
        }

        /// A caller that takes as soon as possible gets the whole rate.
        #[test]
        fn nothing_of_a_rate_is_lost(
            interval in 1..50_i64,
            burst in 1..20_u32,
            time in 0..2_000_i64,
        ) {
            let rate = Rate::every(interval, burst);
            let mut bucket = Bucket::FULL;
            let taken = (0..=time).map(|now| {
                let mut taken = 0;
                while bucket.take(rate, now, 1).is_ok() {
                    taken += 1;
                }
                taken
            });
            prop_assert_eq!(taken.sum::<i64>(), i64::from(burst) + time / interval);
        }
    }
}

//! Circuit breakers: an engine that fails is left alone for a while, instead of being overrun by
//! calls.
//!
//! ```text
//!            too many calls of the last seconds failed
//!   closed ───────────────────────────────────────────────▶ open ◀──────────────┐
//!     ▲                                                      │ it has slept     │ the probe failed
//!     │                 the probe succeeded                  ▼                  │
//!     └────────────────────────────────────────────────── half open ────────────┘
//! ```
//!
//! As in Hystrix: closed lets every call through and counts their outcomes; open refuses them at
//! once; half open lets one call through, whose outcome decides.

/// Parts that the window is counted in.
const SLOTS: usize = 10;

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Length of the sliding window.
    pub window_ms: i64,
    /// Fewest calls in the window that may open the breaker.
    pub calls_min: u64,
    /// Failure rate that opens the breaker, in percent.
    pub failed_percent: u64,
    /// How long the breaker stays open before a probe.
    pub sleep_ms: i64,
}

impl Default for Options {
    fn default() -> Self {
        Self { window_ms: 10_000, calls_min: 20, failed_percent: 50, sleep_ms: 5_000 }
    }
}

raingauge_core::names! {
    pub enum State {
        Closed = "closed",
        HalfOpen = "half_open",
        Open = "open",
    }
}

/// How a call was let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    Usual,
    /// The call whose outcome decides.
    Probe,
}

/// Calls of one part of the window.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    calls: u64,
    failed: u64,
}

#[derive(Debug)]
pub struct Breaker {
    options: Options,
    state: State,
    /// When it opened, or when its probe set out.
    since_ms: i64,
    slots: [Slot; SLOTS],
    /// The number of the slot that counts now, since 1970.
    slot: i64,
}

impl Breaker {
    pub fn new(options: Options) -> Self {
        assert!(
            options.window_ms >= SLOTS as i64 && options.sleep_ms > 0,
            "a breaker's times are positive"
        );
        Self {
            options,
            state: State::Closed,
            since_ms: 0,
            slots: [Slot::default(); SLOTS],
            slot: 0,
        }
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Lets a call through, or returns the milliseconds until the next probe. A caller that is let
    /// through reports the outcome with [`record`](Self::record).
    pub fn admit(&mut self, now_ms: i64) -> Result<Pass, i64> {
        if self.state == State::Closed {
            return Ok(Pass::Usual);
        }
        let waited_ms = now_ms - self.since_ms;
        // A lost probe is followed by another one. A clock that was set back ends the wait.
        if (0..self.options.sleep_ms).contains(&waited_ms) {
            return Err(self.options.sleep_ms - waited_ms);
        }
        self.state = State::HalfOpen;
        self.since_ms = now_ms;
        Ok(Pass::Probe)
    }

    /// Records the outcome of a call: the parts that succeeded, and those that failed.
    pub fn record(&mut self, now_ms: i64, pass: Pass, succeeded: u64, failed: u64) {
        match (self.state, pass) {
            (State::Closed, _) => self.count(now_ms, succeeded, failed),
            (State::HalfOpen, Pass::Probe) if failed == 0 => {
                self.state = State::Closed;
                self.slots = [Slot::default(); SLOTS];
            }
            (State::HalfOpen, Pass::Probe) => self.open(now_ms),
            // Calls that began before it opened say nothing about the engine now.
            _ => {}
        }
    }

    fn count(&mut self, now_ms: i64, succeeded: u64, failed: u64) {
        self.turn_to(now_ms);
        let slot = &mut self.slots[self.slot.rem_euclid(SLOTS as i64) as usize];
        slot.calls += succeeded + failed;
        slot.failed += failed;
        let calls: u64 = self.slots.iter().map(|slot| slot.calls).sum();
        let failures: u64 = self.slots.iter().map(|slot| slot.failed).sum();
        if failed > 0
            && calls >= self.options.calls_min
            && failures * 100 >= calls * self.options.failed_percent
        {
            self.open(now_ms);
        }
    }

    /// Empties the slots that have left the window.
    fn turn_to(&mut self, now_ms: i64) {
        let slot = now_ms / (self.options.window_ms / SLOTS as i64);
        let steps = slot - self.slot;
        if !(0..SLOTS as i64).contains(&steps) {
            self.slots = [Slot::default(); SLOTS];
        } else {
            (self.slot + 1..=slot).for_each(|slot| {
                self.slots[slot.rem_euclid(SLOTS as i64) as usize] = Slot::default()
            });
        }
        self.slot = slot;
    }

    fn open(&mut self, now_ms: i64) {
        self.state = State::Open;
        self.since_ms = now_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW_MS: i64 = 1_700_000_000_000;

    fn opened() -> Breaker {
        let mut breaker = Breaker::new(Options::default());
        breaker.record(NOW_MS, Pass::Usual, 10, 10);
        assert_eq!(breaker.state(), State::Open);
        breaker
    }

    #[test]
    fn it_opens_when_enough_of_enough_calls_fail() {
        let mut breaker = Breaker::new(Options::default());
        breaker.record(NOW_MS, Pass::Usual, 0, 19);
        assert_eq!(breaker.state(), State::Closed, "too few calls");
        let mut breaker = Breaker::new(Options::default());
        breaker.record(NOW_MS, Pass::Usual, 51, 0);
        breaker.record(NOW_MS + 5_000, Pass::Usual, 0, 50);
        assert_eq!(breaker.state(), State::Closed, "less than half");
        breaker.record(NOW_MS + 9_000, Pass::Usual, 0, 1);
        assert_eq!(breaker.state(), State::Open);
    }

    #[test]
    fn calls_leave_the_window() {
        let mut breaker = Breaker::new(Options::default());
        breaker.record(NOW_MS, Pass::Usual, 0, 19);
        breaker.record(NOW_MS + 10_000, Pass::Usual, 0, 1);
        assert_eq!(breaker.state(), State::Closed);
        breaker.record(NOW_MS - 3_600_000, Pass::Usual, 0, 19);
        assert_eq!(breaker.state(), State::Closed, "a clock that was set back empties the window");
        breaker.record(NOW_MS - 3_599_000, Pass::Usual, 0, 1);
        assert_eq!(breaker.state(), State::Open);
    }

    #[test]
    fn one_probe_decides() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(NOW_MS + 1_000), Err(4_000));
        assert_eq!(breaker.admit(NOW_MS + 5_000), Ok(Pass::Probe));
        assert_eq!(breaker.state(), State::HalfOpen);
        assert!(breaker.admit(NOW_MS + 5_001).is_err(), "one at a time");
        breaker.record(NOW_MS + 5_001, Pass::Usual, 100, 0);
        assert_eq!(breaker.state(), State::HalfOpen, "calls from before do not decide");
        breaker.record(NOW_MS + 5_002, Pass::Probe, 3, 1);
        assert_eq!(breaker.admit(NOW_MS + 5_002), Err(5_000));
        assert_eq!(breaker.admit(NOW_MS + 10_002), Ok(Pass::Probe));
        breaker.record(NOW_MS + 10_003, Pass::Probe, 4, 0);
        assert_eq!(
            (breaker.state(), breaker.admit(NOW_MS + 10_003)),
            (State::Closed, Ok(Pass::Usual))
        );
        breaker.record(NOW_MS + 10_004, Pass::Usual, 0, 19);
        assert_eq!(breaker.state(), State::Closed, "it remembers nothing from before");
    }

    #[test]
    fn neither_a_lost_probe_nor_a_clock_that_is_set_back_keeps_it_open() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(NOW_MS + 5_000), Ok(Pass::Probe));
        assert_eq!(breaker.admit(NOW_MS + 9_999), Err(1));
        assert_eq!(breaker.admit(NOW_MS + 10_000), Ok(Pass::Probe));
        assert_eq!(opened().admit(NOW_MS - 3_600_000), Ok(Pass::Probe));
    }

    proptest! {
        /// The window is the sum over the calls of its last seconds, and a closed breaker refuses
        /// none.
        #[test]
        fn it_agrees_with_a_list_of_calls(
            steps in prop::collection::vec((0..2_500_i64, 0..6_u64, 0..6_u64), 1..200),
        ) {
            let options = Options::default();
            let mut breaker = Breaker::new(options);
            let mut calls = Vec::<(i64, u64, u64)>::new();
            let mut now_ms = NOW_MS;
            let second = |time_ms: i64| time_ms / 1_000;
            for (wait_ms, succeeded, failed) in steps {
                now_ms += wait_ms;
                breaker.record(now_ms, Pass::Usual, succeeded, failed);
                calls.push((now_ms, succeeded, failed));
                let inside =
                    calls.iter().filter(|(time_ms, ..)| second(*time_ms) > second(now_ms) - 10);
                let (good, bad) =
                    inside.fold((0, 0), |sum, (_, good, bad)| (sum.0 + good, sum.1 + bad));
                let opens = failed > 0 && good + bad >= options.calls_min && bad >= good;
                prop_assert_eq!(breaker.state(), if opens { State::Open } else { State::Closed });
                if opens {
                    break;
                }
                prop_assert_eq!(breaker.admit(now_ms), Ok(Pass::Usual));
            }
        }
    }
}

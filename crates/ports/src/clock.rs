//! Clocks.

use raingauge_core::time::parse_time_s;
use raingauge_settings::{FromText, Wrong, settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::MissedTickBehavior;

/// The clock of the process.
///
/// No contract suite: what clocks have in common is that they differ.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// Whole seconds since 1970.
    fn now_s(&self) -> i64 {
        self.now_ms().div_euclid(1_000)
    }

    /// The time of the machine's clock, which never runs faster. For code that watches engines,
    /// which run at their own pace.
    fn machine_ms(&self) -> i64 {
        self.now_ms()
    }

    /// Milliseconds of the machine since some moment, for durations. Never goes back, and continues
    /// while the machine is suspended.
    fn elapsed_ms(&self) -> i64 {
        self.machine_ms()
    }

    /// Milliseconds since the machine was started, including those suspended, which
    /// [`Clock::elapsed_ms`] leaves out; `None` when unknown.
    fn uptime_ms(&self) -> Option<i64> {
        None
    }

    /// Whether the time is trusted. Nothing is removed by age while it is not.
    fn is_sound(&self) -> bool {
        true
    }

    /// The time and whether it is trusted, of one moment.
    fn look(&self) -> Look {
        Look { now_ms: self.now_ms(), is_sound: self.is_sound() }
    }

    /// How much faster it runs than the machine's clock.
    fn pace(&self) -> i64 {
        1
    }
}

/// What a clock shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// See [`Clock::is_sound`].
    pub is_sound: bool,
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
    }

    fn elapsed_ms(&self) -> i64 {
        since_boot_ms()
    }

    fn uptime_ms(&self) -> Option<i64> {
        let text = std::fs::read_to_string("/proc/uptime").ok()?;
        let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
        Some((seconds * 1e3) as i64)
    }
}

/// Milliseconds since the machine was started. Unlike [`std::time::Instant`] it includes the time
/// in which the machine was suspended, so a lease that expired during that time counts as expired.
#[cfg(target_os = "linux")]
fn since_boot_ms() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec * 1_000 + now.tv_nsec / 1_000_000
}

/// Milliseconds since the first call.
#[cfg(not(target_os = "linux"))]
fn since_boot_ms() -> i64 {
    static BEGAN: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    BEGAN.elapsed().as_millis() as i64
}

/// A clock that runs faster than the machine's, so that days of an experiment take minutes.
/// Counting, retention and expiry all follow it, at the same pace in every process with the same
/// three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastClock {
    /// The time it shows, in milliseconds since 1970, ...
    pub start_ms: i64,
    /// ... when the machine's clock shows this time.
    pub machine_start_ms: i64,
    pub factor: u32,
}

/// The largest factor: days pass in minutes, and beyond it, requests take longer than the range
/// they ask for.
pub const FACTOR_MAX: u32 = 3_600;

settings! {
    /// The clock that everything uses.
    pub struct Settings in "clock" {
        /// Makes time run faster in an experiment: START at MACHINE_TIME times FACTOR, the same in
        /// every process; empty for the machine's clock.
        experiment: Option<FastClock> = text("");
        /// How far this machine's clock may be ahead of the event log at the start, after raingauge
        /// was off; beyond that, no events are taken.
        ahead_days_max: u64 = days(30, 1..=36_600);
    }
}

impl Settings {
    pub fn clock(&self) -> Arc<dyn Clock> {
        match self.experiment {
            Some(clock) => Arc::new(clock),
            None => Arc::new(SystemClock),
        }
    }
}

impl FromText for FastClock {
    /// Reads `START at MACHINE_TIME times FACTOR`.
    fn from_text(text: &str) -> Result<Self, Wrong> {
        let ms = |text: &str| parse_time_s(text)?.checked_mul(1_000);
        let parsed = || {
            let words: Vec<&str> = text.split_whitespace().collect();
            let [start, "at", machine_start, "times", factor] = words[..] else {
                return None;
            };
            let factor = factor.parse().ok().filter(|factor| (1..=FACTOR_MAX).contains(factor))?;
            Some(Self { start_ms: ms(start)?, machine_start_ms: ms(machine_start)?, factor })
        };

        parsed().ok_or_else(|| {
            let message = format!("{text:?} does not say when a clock starts and how fast it runs");
            let advice = format!(
                "Give two times and a whole number up to {FACTOR_MAX}, such as \
                 \"2024-11-05T00:00:00Z at 2026-11-21T12:00:00Z times 600\", or nothing"
            );
            Wrong::new(message, advice)
        })
    }
}

impl Clock for FastClock {
    fn now_ms(&self) -> i64 {
        self.at(self.machine_ms())
    }

    fn machine_ms(&self) -> i64 {
        SystemClock.now_ms()
    }

    fn elapsed_ms(&self) -> i64 {
        SystemClock.elapsed_ms()
    }

    fn uptime_ms(&self) -> Option<i64> {
        SystemClock.uptime_ms()
    }

    fn pace(&self) -> i64 {
        i64::from(self.factor)
    }
}

impl FastClock {
    fn at(&self, machine_ms: i64) -> i64 {
        self.start_ms + (machine_ms - self.machine_start_ms) * i64::from(self.factor)
    }
}

/// A clock that stands still until it is advanced, for tests.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn at_s(seconds: i64) -> Self {
        Self(AtomicI64::new(seconds * 1_000))
    }

    pub fn set_s(&self, seconds: i64) {
        self.0.store(seconds * 1_000, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Runs `work` at once and then every `period`, for as long as it is polled. A round that takes
/// longer than the period delays the following ones.
pub async fn every<F: Future<Output = ()>>(period: Duration, mut work: impl FnMut() -> F) {
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        work().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_clock_shows_its_start_and_then_runs_ahead() {
        let clock = FastClock {
            start_ms: 1_730_764_800_000,
            machine_start_ms: 1_795_000_000_000,
            factor: 600,
        };
        assert_eq!(clock.at(1_795_000_000_000), 1_730_764_800_000);
        assert_eq!(clock.at(1_795_000_001_500), 1_730_764_800_000 + 900_000);
        assert_eq!(clock.at(1_794_999_999_999), 1_730_764_800_000 - 600);
        assert!(clock.machine_ms() > clock.machine_start_ms - 86_400_000 * 365);
    }
}

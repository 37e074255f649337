//! The accelerated clock of an experiment, shared with the processes under test.

use jiff::Timestamp;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone, Copy)]
pub struct Fast {
    start_ms: i64,
    /// The machine's time at the start, in whole seconds, which is the resolution of the setting.
    machine_start_s: i64,
    started: Instant,
    factor: u32,
}

impl Fast {
    /// A clock that shows `start_ms`, in milliseconds since 1970, at about this moment.
    pub fn starting(start_ms: i64, factor: u32) -> Self {
        let now = Instant::now();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let machine_start_s = since_1970.as_secs() as i64;
        let started =
            now.checked_sub(Duration::from_nanos(since_1970.subsec_nanos().into())).unwrap_or(now);
        Self { start_ms, machine_start_s, started, factor }
    }

    /// A clock that shows `start_ms` after `wait`.
    pub fn starting_in(wait: Duration, start_ms: i64, factor: u32) -> Self {
        let now = Self::starting(start_ms, factor);
        Self {
            machine_start_s: now.machine_start_s + wait.as_secs() as i64,
            started: now.started + Duration::from_secs(wait.as_secs()),
            ..now
        }
    }

    /// The setting `clock.experiment` that gives a process the same clock.
    pub fn setting(&self) -> String {
        let time = |ms: i64| {
            Timestamp::from_millisecond(ms).map(|time| time.to_string()).unwrap_or_default()
        };
        format!(
            "{} at {} times {}",
            time(self.start_ms),
            time(self.machine_start_s * 1_000),
            self.factor
        )
    }

    pub fn factor(&self) -> f64 {
        self.factor.into()
    }

    pub fn now_ms(&self) -> i64 {
        self.at_ms(Instant::now())
    }

    pub fn at_ms(&self, moment: Instant) -> i64 {
        self.start_ms
            + (moment.saturating_duration_since(self.started) * self.factor).as_millis() as i64
    }

    /// The instant at which this clock shows `ms`, which must not be before its start.
    pub fn instant(&self, ms: i64) -> Instant {
        let since = Duration::from_millis(ms.saturating_sub(self.start_ms).max(0) as u64);
        self.started + since / self.factor
    }

    /// Waits until this clock shows `ms`.
    pub fn wait_until(&self, ms: i64) {
        std::thread::sleep(self.instant(ms).saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_leads_to_its_instant_and_back() {
        let clock = Fast::starting(1_730_768_400_000, 720);
        for ms in [1_730_768_400_000, 1_730_768_400_720, 1_730_854_800_000] {
            assert_eq!(clock.at_ms(clock.instant(ms)), ms);
        }
        let now_ms = clock.now_ms() - 1_730_768_400_000;
        assert!((0..720 * 60_000).contains(&now_ms), "{now_ms}");
        assert!(
            clock.setting().starts_with("2024-11-05T01:00:00Z at 20")
                && clock.setting().ends_with("Z times 720")
        );
    }
}

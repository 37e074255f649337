//! One notion of now for everything that is kept, refused or removed by age.
//!
//! Entries of the log carry the time at which they were accepted, and it never goes back. A clock
//! that shows the future for a moment would therefore date everything that follows: counts would be
//! refused as too late, identities forgotten and segments trimmed, and none of it could be undone.
//! So the time of the log is the later of the clock and of the newest entry, and the clock is
//! trusted only as far as there is evidence for it:
//!
//! - While the process runs, a second clock, which is never set, measures how much time has passed.
//!   A clock that gains more than [`JUMP_MS_MAX`] on it is wrong, unless the machine was suspended
//!   for as long.
//! - At the start, the newest entry and the last note of a running process are known. A clock that
//!   is ahead of them by weeks is normal for a machine that was off for weeks. Further ahead than
//!   the operator allows, it is considered wrong.
//! - A clock that is behind the newest entry by more than [`BEHIND_MS_MAX`] is wrong now, or was
//!   when that entry was appended.
//!
//! Under a clock that is not trusted nothing is appended or removed, and counts go by the last
//! trusted time.

use parking_lot::Mutex;
use raingauge_core::time::format_rfc3339;
use raingauge_ports::clock::{Clock, Look};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// How much more than the elapsed time a clock may advance: 6 hours.
const JUMP_MS_MAX: i64 = 6 * HOUR_MS;
/// How far a clock may be behind the newest entry: a day.
const BEHIND_MS_MAX: i64 = 24 * HOUR_MS;
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// The lead of a clock that has not been trusted yet.
const UNKNOWN: i64 = i64::MAX;

/// The time of a log.
pub struct LogClock {
    clock: Arc<dyn Clock>,
    ahead_ms_max: i64,
    /// When the newest entry was appended; 0 if there is none.
    newest_ms: AtomicI64,
    /// The value of [`Clock::elapsed_ms`] at that time.
    newest_elapsed_ms: AtomicI64,
    /// The smallest trusted difference between the machine's two clocks.
    lead_ms: AtomicI64,
    start: Mutex<Option<Start>>,
}

/// The state when the log was opened.
#[derive(Clone, Copy)]
struct Start {
    /// The newest time that a process wrote down; 0 if there is none.
    seen_ms: i64,
    elapsed_ms: i64,
    /// How long the machine has been suspended since it was started.
    suspended_ms: i64,
}

/// The verdict on a clock, in milliseconds of its own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Sound,
    /// Advanced further than time can have passed since the process began.
    Jumped(i64),
    /// Ahead of every time that was written down before the process began.
    AheadAtStart(i64),
    /// Behind the newest entry.
    Behind(i64),
}

impl LogClock {
    /// `ahead_ms_max` is how far the clock may be ahead of the log when that is opened.
    pub fn new(clock: Arc<dyn Clock>, ahead_ms_max: i64) -> Self {
        Self {
            clock,
            ahead_ms_max,
            newest_ms: AtomicI64::new(0),
            newest_elapsed_ms: AtomicI64::new(0),
            lead_ms: AtomicI64::new(UNKNOWN),
            start: Mutex::new(None),
        }
    }

    /// A clock that is trusted wherever it starts.
    pub fn trusting(clock: Arc<dyn Clock>) -> Self {
        Self::new(clock, i64::MAX / 4)
    }

    /// A clock without a log: trusted as it is now, and watched from here on, as if the newest
    /// entry were of this moment.
    pub fn watching(clock: Arc<dyn Clock>) -> Self {
        let watching = Self::trusting(clock);
        watching.begin(watching.clock.now_ms(), 0);
        watching.judge();
        watching
    }

    /// Called when the log is opened: its newest entry was appended at `newest_ms`, and a process
    /// noted the time at `noted_ms`.
    pub fn begin(&self, newest_ms: i64, noted_ms: i64) {
        let elapsed_ms = self.clock.elapsed_ms();
        self.newest_elapsed_ms.store(elapsed_ms, Ordering::Release);
        self.newest_ms.store(newest_ms, Ordering::Release);
        let (seen_ms, suspended_ms) = (newest_ms.max(noted_ms), self.suspended_ms());
        *self.start.lock() = Some(Start { seen_ms, elapsed_ms, suspended_ms });
    }

    /// Called when an entry was appended.
    pub fn appended(&self, appended_ms: i64) {
        if self.newest_ms.fetch_max(appended_ms, Ordering::AcqRel) < appended_ms {
            self.newest_elapsed_ms.store(self.clock.elapsed_ms(), Ordering::Release);
        }
    }

    /// Returns why nothing can be appended for now, and what to do about it.
    pub fn refusal(&self) -> Option<String> {
        let (now_ms, verdict) = self.judge();
        let (ahead_ms, refusal) = match verdict {
            Verdict::Sound => return None,
            Verdict::Jumped(ms) => (
                ms,
                format!(
                    "the clock of this machine has jumped {} ahead while raingauge ran: set it right, or restart \
                     raingauge if the machine stood still for that long",
                    span(ms)
                ),
            ),
            Verdict::AheadAtStart(ms) => (
                ms,
                format!(
                    "the clock of this machine is {} ahead of the event log, further than clock.ahead_days_max allows: set \
                     it right or, if raingauge was off for that long, start it once with clock.ahead_days_max = {}",
                    span(ms),
                    ms / DAY_MS + 1
                ),
            ),
            Verdict::Behind(ms) => (
                -ms,
                format!(
                    "the clock of this machine is {} behind the newest entry of the event log, which is of {}: set it \
                     right or, if the entry was appended under a wrong clock, see `raingauge repair`",
                    span(ms),
                    format_rfc3339(now_ms.div_euclid(1_000))
                ),
            ),
        };

        metrics::gauge!("raingauge_clock_ahead_seconds").set(ahead_ms as f64 / 1e3);
        Some(refusal)
    }

    /// Logs by how much the clock is wrong.
    pub fn report(&self) {
        if self.refusal().is_none() {
            metrics::gauge!("raingauge_clock_ahead_seconds").set(0.0);
        }
    }

    /// Returns the time of the log, and whether the clock is trusted.
    fn judge(&self) -> (i64, Verdict) {
        let shown_ms = self.clock.now_ms();
        let newest_ms = self.newest_ms.load(Ordering::Acquire);
        if newest_ms - shown_ms > BEHIND_MS_MAX {
            return (newest_ms, Verdict::Behind(newest_ms - shown_ms));
        }

        let lead_ms = self.clock.machine_ms() - self.clock.elapsed_ms();
        let believed_ms = self.lead_ms.load(Ordering::Acquire);

        // Only a jump makes the two clocks differ more than before.
        if lead_ms <= believed_ms && believed_ms != UNKNOWN {
            if lead_ms < believed_ms {
                self.lead_ms.fetch_min(lead_ms, Ordering::AcqRel);
            }
            return (shown_ms.max(newest_ms), Verdict::Sound);
        }

        match self.far_ahead(shown_ms, lead_ms, believed_ms) {
            None => {
                if believed_ms == UNKNOWN && self.start.lock().is_some() {
                    self.lead_ms.fetch_min(lead_ms, Ordering::AcqRel);
                }
                (shown_ms.max(newest_ms), Verdict::Sound)
            }
            Some((expected_ms, verdict)) => (expected_ms.max(newest_ms), verdict),
        }
    }

    /// Returns the time that it should be, if the clock is too far ahead of it.
    fn far_ahead(&self, shown_ms: i64, lead_ms: i64, believed_ms: i64) -> Option<(i64, Verdict)> {
        let pace = self.clock.pace();
        let since = |elapsed_ms: i64| (self.clock.elapsed_ms() - elapsed_ms) * pace;
        let newest_ms = self.newest_ms.load(Ordering::Acquire);
        let by_newest_ms = newest_ms + since(self.newest_elapsed_ms.load(Ordering::Acquire));

        if believed_ms != UNKNOWN {
            // Entries appended since may be better evidence: a clock that was behind at the start
            // is right now.
            let expected_ms = (shown_ms - (lead_ms - believed_ms) * pace).max(by_newest_ms);
            if shown_ms - expected_ms <= JUMP_MS_MAX * pace {
                return None;
            }

            let expected_ms = expected_ms + self.note_suspended() * pace;
            let ahead_ms = shown_ms - expected_ms;
            return (ahead_ms > JUMP_MS_MAX * pace)
                .then_some((expected_ms, Verdict::Jumped(ahead_ms)));
        }

        let start = *self.start.lock();
        let Start { seen_ms, elapsed_ms, .. } = start.filter(|start| start.seen_ms > 0)?;
        let expected_ms = seen_ms + since(elapsed_ms);
        let ahead_ms = shown_ms - expected_ms;
        let is_ahead = ahead_ms > self.ahead_ms_max.saturating_mul(pace);

        is_ahead.then_some((expected_ms, Verdict::AheadAtStart(ahead_ms)))
    }

    /// Returns how long the machine was suspended since the last call. The time that passed during
    /// it is trusted from now on.
    fn note_suspended(&self) -> i64 {
        let mut start = self.start.lock();
        let Some(start) = start.as_mut() else {
            return 0;
        };
        let suspended_ms = self.suspended_ms();
        let more_ms = suspended_ms - start.suspended_ms;
        start.suspended_ms = suspended_ms;
        self.lead_ms.fetch_add(more_ms, Ordering::AcqRel);
        more_ms
    }

    fn suspended_ms(&self) -> i64 {
        self.clock.uptime_ms().map_or(0, |uptime_ms| uptime_ms - self.clock.elapsed_ms())
    }
}

impl Clock for LogClock {
    fn now_ms(&self) -> i64 {
        self.look().now_ms
    }

    fn machine_ms(&self) -> i64 {
        self.clock.machine_ms()
    }

    fn elapsed_ms(&self) -> i64 {
        self.clock.elapsed_ms()
    }

    fn uptime_ms(&self) -> Option<i64> {
        self.clock.uptime_ms()
    }

    fn is_sound(&self) -> bool {
        self.look().is_sound
    }

    fn look(&self) -> Look {
        let (now_ms, verdict) = self.judge();
        Look { now_ms, is_sound: verdict == Verdict::Sound }
    }

    fn pace(&self) -> i64 {
        self.clock.pace()
    }
}

/// Days, or hours where it is less than two days.
fn span(ms: i64) -> String {
    match ms / DAY_MS {
        0 | 1 => format!("{} hours", ms / HOUR_MS),
        days => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_790_000_000_000;

    /// The wall clock, and the clock that is never set.
    #[derive(Default)]
    struct TwoClocks {
        wall_ms: AtomicI64,
        elapsed_ms: AtomicI64,
        suspended_ms: AtomicI64,
    }

    impl TwoClocks {
        fn suspend(&self, ms: i64) {
            self.wall_ms.fetch_add(ms, Ordering::Relaxed);
            self.suspended_ms.fetch_add(ms, Ordering::Relaxed);
        }

        fn pass(&self, ms: i64) {
            self.wall_ms.fetch_add(ms, Ordering::Relaxed);
            self.elapsed_ms.fetch_add(ms, Ordering::Relaxed);
        }

        fn jump(&self, ms: i64) {
            self.wall_ms.fetch_add(ms, Ordering::Relaxed);
        }
    }

    impl Clock for TwoClocks {
        fn now_ms(&self) -> i64 {
            self.wall_ms.load(Ordering::Relaxed)
        }

        fn elapsed_ms(&self) -> i64 {
            self.elapsed_ms.load(Ordering::Relaxed)
        }

        fn uptime_ms(&self) -> Option<i64> {
            Some(self.elapsed_ms() + self.suspended_ms.load(Ordering::Relaxed))
        }
    }

    fn clocks() -> (Arc<TwoClocks>, LogClock) {
        let two = Arc::new(TwoClocks::default());
        two.jump(NOW_MS);
        let clock = LogClock::new(Arc::clone(&two) as Arc<dyn Clock>, 30 * DAY_MS);
        (two, clock)
    }

    #[test]
    fn a_clock_without_a_log_is_watched_from_the_start() {
        let two = Arc::new(TwoClocks::default());
        two.jump(NOW_MS);
        let clock = LogClock::watching(Arc::clone(&two) as Arc<dyn Clock>);
        two.pass(HOUR_MS);
        assert!(clock.is_sound());
        two.jump(400 * DAY_MS);
        assert!(!clock.is_sound());
        assert_eq!(clock.now_ms(), NOW_MS + HOUR_MS);
        two.jump(-400 * DAY_MS);
        assert!(clock.is_sound());

        two.jump(-8 * HOUR_MS);
        assert!(clock.is_sound());
        two.jump(8 * HOUR_MS);
        assert!(clock.is_sound(), "it was set back for a moment");
        assert_eq!(clock.now_ms(), two.now_ms());
    }

    #[test]
    fn a_clock_that_jumps_ahead_is_not_followed_and_may_come_back() {
        let (two, clock) = clocks();
        clock.begin(0, 0);
        assert!(clock.is_sound(), "a new log has no evidence against it");
        two.pass(100 * DAY_MS);
        assert!(clock.is_sound(), "time has passed");
        clock.appended(two.now_ms());

        two.jump(JUMP_MS_MAX + 1);
        assert!(clock.refusal().is_some_and(|reason| reason.contains("jumped 6 hours ahead")));
        assert_eq!(clock.now_ms(), NOW_MS + 100 * DAY_MS);
        two.pass(HOUR_MS);
        assert_eq!(clock.now_ms(), NOW_MS + 100 * DAY_MS + HOUR_MS, "its time goes on");
        two.jump(-JUMP_MS_MAX - 1);
        assert_eq!(clock.refusal(), None);
    }

    #[test]
    fn a_machine_that_was_suspended_is_believed() {
        let (two, clock) = clocks();
        clock.begin(NOW_MS, 0);
        for _ in 0..3 {
            assert!(clock.is_sound());
            two.suspend(5 * DAY_MS);
            assert!(clock.is_sound(), "time has passed in its sleep");
        }
        two.jump(JUMP_MS_MAX + 1);
        assert!(!clock.is_sound());
    }

    #[test]
    fn a_clock_that_was_set_back_and_right_again_is_believed() {
        let (two, clock) = clocks();
        clock.begin(NOW_MS, 0);
        assert!(clock.is_sound());
        two.jump(-20 * HOUR_MS);
        assert!(clock.is_sound());
        assert_eq!(clock.now_ms(), NOW_MS, "the time of the log never goes back");
        two.pass(HOUR_MS);
        two.jump(20 * HOUR_MS);
        assert_eq!((clock.refusal(), clock.now_ms()), (None, NOW_MS + HOUR_MS));

        two.jump(-3 * DAY_MS);
        assert!(clock.refusal().is_some_and(
            |reason| reason.contains("2 days behind") || reason.contains("3 days behind")
        ));
        two.jump(3 * DAY_MS);
        assert!(clock.is_sound());
    }

    #[test]
    fn a_machine_that_was_off_for_weeks_is_believed_and_one_for_years_needs_a_word() {
        for (days, is_believed) in [(0, true), (29, true), (500, false)] {
            let (_, clock) = clocks();
            clock.begin(NOW_MS - days * DAY_MS, 0);
            assert_eq!(clock.is_sound(), is_believed, "{days} days");
        }

        let (two, clock) = clocks();
        clock.begin(NOW_MS - 500 * DAY_MS, 0);
        assert!(
            clock.refusal().is_some_and(|reason| reason.contains("clock.ahead_days_max = 501"))
        );
        two.pass(HOUR_MS);
        assert_eq!(clock.now_ms(), NOW_MS - 500 * DAY_MS + HOUR_MS);
        two.jump(-490 * DAY_MS);
        assert!(clock.is_sound(), "it was set right");
        two.jump(490 * DAY_MS);
        assert!(!clock.is_sound());
    }

    #[test]
    fn a_quiet_log_whose_process_ran_lately_needs_no_word() {
        let (_, clock) = clocks();
        clock.begin(NOW_MS - 500 * DAY_MS, NOW_MS - DAY_MS);
        assert!(clock.is_sound());
    }

    #[test]
    fn a_log_from_the_future_refuses_and_its_time_is_that_of_its_newest_entry() {
        let (two, clock) = clocks();
        clock.begin(NOW_MS + 500 * DAY_MS, 0);
        assert!(clock.refusal().is_some_and(|reason| reason.contains("500 days behind")));
        assert_eq!(clock.now_ms(), NOW_MS + 500 * DAY_MS);
        two.pass(500 * DAY_MS + 1);
        assert_eq!((clock.refusal(), clock.now_ms()), (None, NOW_MS + 500 * DAY_MS + 1));
    }

    #[test]
    fn a_clock_of_an_experiment_may_run_fast() {
        let fast = raingauge_ports::clock::FastClock {
            start_ms: NOW_MS,
            machine_start_ms: raingauge_ports::clock::SystemClock.now_ms() - 60_000,
            factor: 3_600,
        };
        let clock = LogClock::new(Arc::new(fast), 30 * DAY_MS);
        clock.begin(NOW_MS, 0);
        assert!(clock.is_sound(), "an hour a second: it was off for a minute");
    }
}

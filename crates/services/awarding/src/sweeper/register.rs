//! The sweeps that a process knows of: those that were asked for, and those that found something.

use crate::error::Error;
use crate::limits::{SWEEPS_KEPT_MAX, SWEEPS_WAITING_MAX};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::time::Duration;

/// When a caller may ask again while too many sweeps wait.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// How far a sweep has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepState {
    /// It waits for the ranges of an earlier one, or is tried again after an error.
    Waiting,
    Running,
    Finished,
}

impl SweepState {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Finished => "finished",
        }
    }
}

/// What a sweep has done so far, as far as this process knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepStatus {
    /// When it began, in milliseconds since 1970, or a little later: no two sweeps share one.
    pub id: i64,
    /// Wallets that were due at or before this hour, in hours since 1970.
    pub until_hour: u32,
    pub state: SweepState,
    /// Why it waits, if something failed.
    pub error: Option<String>,
    /// Ranges that were put into the queue, ...
    pub ranges: usize,
    /// ... and those that this process has finished.
    pub ranges_done: usize,
    /// Wallets that this process has settled, and the entries that took.
    pub wallets: u64,
    pub entries: u64,
    pub finished_ms: Option<i64>,
}

impl SweepStatus {
    fn new(id: i64, until_hour: u32, state: SweepState) -> Self {
        Self {
            id,
            until_hour,
            state,
            error: None,
            ranges: 0,
            ranges_done: 0,
            wallets: 0,
            entries: 0,
            finished_ms: None,
        }
    }

    pub(super) fn finish(&mut self, now_ms: i64) {
        self.state = SweepState::Finished;
        self.error = None;
        self.finished_ms.get_or_insert(now_ms);
    }
}

/// The last sweeps, oldest first.
#[derive(Debug, Default)]
pub(super) struct Register(Mutex<VecDeque<SweepStatus>>);

impl Register {
    /// Newest first.
    pub fn all(&self) -> Vec<SweepStatus> {
        self.0.lock().iter().rev().cloned().collect()
    }

    /// A sweep that is known once it finds something.
    pub fn draft(&self, now_ms: i64, until_hour: u32) -> SweepStatus {
        let last = self.0.lock().back().map_or(i64::MIN, |last| last.id);
        SweepStatus::new(now_ms.max(last.saturating_add(1)), until_hour, SweepState::Running)
    }

    /// Notes a sweep that was asked for. One that is not over and goes as far is answered in its
    /// place.
    pub fn ask(&self, now_ms: i64, until_hour: u32) -> Result<SweepStatus, Error> {
        let mut statuses = self.0.lock();
        let unfinished = || statuses.iter().filter(|known| known.state != SweepState::Finished);
        if let Some(known) = unfinished().find(|known| known.until_hour >= until_hour) {
            return Ok(known.clone());
        }
        if unfinished().count() >= SWEEPS_WAITING_MAX {
            return Err(Error::Busy { retry_after: RETRY_AFTER });
        }

        let last = statuses.back().map_or(i64::MIN, |last| last.id);
        let id = now_ms.max(last.saturating_add(1));
        let status = SweepStatus::new(id, until_hour, SweepState::Waiting);
        push(&mut statuses, status.clone());
        Ok(status)
    }

    /// The next sweep that was asked for and has not begun.
    pub fn next_waiting(&self) -> Option<SweepStatus> {
        self.0.lock().iter().find(|known| known.state == SweepState::Waiting).cloned()
    }

    /// Notes that a sweep has found something, and is known from now on.
    pub fn note(&self, sweep: &SweepStatus) {
        let mut statuses = self.0.lock();
        if !statuses.iter().any(|known| known.id == sweep.id) {
            push(&mut statuses, sweep.clone());
        }
    }

    /// Changes a sweep, if this process knows it.
    pub fn change(&self, id: i64, change: impl FnOnce(&mut SweepStatus)) {
        let mut statuses = self.0.lock();
        if let Some(status) = statuses.iter_mut().find(|status| status.id == id) {
            change(status);
        }
    }

    /// The sweep as it is known by now.
    pub fn current(&self, sweep: SweepStatus) -> SweepStatus {
        let found = self.0.lock().iter().find(|known| known.id == sweep.id).cloned();
        found.unwrap_or(sweep)
    }

    /// No range waits any more, here or in another process: what runs has come to its end.
    pub fn finish_ranges(&self, now_ms: i64) {
        let mut statuses = self.0.lock();
        let running = statuses.iter_mut().filter(|known| known.state == SweepState::Running);
        running.for_each(|known| known.finish(now_ms));
    }
}

fn push(statuses: &mut VecDeque<SweepStatus>, status: SweepStatus) {
    statuses.push_back(status);
    if statuses.len() > SWEEPS_KEPT_MAX {
        statuses.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_that_goes_as_far_is_not_begun_again() {
        let register = Register::default();
        let first = register.ask(1_000, 5).unwrap();
        assert_eq!(register.ask(1_000, 4).unwrap(), first);
        let further = register.ask(1_000, 6).unwrap();
        assert_eq!(further.id, 1_001, "no two sweeps share an id");

        register.change(first.id, |status| status.finish(2_000));
        register.change(further.id, |status| status.finish(2_000));
        assert_ne!(register.ask(3_000, 6).unwrap().id, further.id);
    }

    #[test]
    fn sweeps_that_wait_are_bounded() {
        let register = Register::default();
        for hour in 0..SWEEPS_WAITING_MAX as u32 {
            register.ask(1_000, hour).unwrap();
        }
        assert!(matches!(register.ask(1_000, 1_000), Err(Error::Busy { .. })));
        register.finish_ranges(2_000);
        assert_eq!(register.next_waiting().unwrap().until_hour, 0, "waiting is not running");
    }
}

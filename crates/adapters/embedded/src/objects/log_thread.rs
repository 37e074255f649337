//! The thread of the log: group commit.
//!
//! While a sync runs the next groups gather, so a slow disk makes larger blocks rather than longer
//! queues. Callers that a sync has answered send their next command soon: the next sync waits for
//! them for a moment. Otherwise half of the callers would be synced while the other half gathers,
//! with twice as many syncs. Where callers wait for the kernel alone they write what is queued
//! themselves, and the thread syncs once a second.

use super::state::Shared;
use raingauge_ports::objects::{Error, SyncMode};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Longest time until groups are written that nobody waits for, and between syncs.
const TICK: Duration = Duration::from_secs(1);
/// Longest time that a sync waits for the callers of the last one, and how many times as long as
/// that one took at most.
const GATHER_MAX: Duration = Duration::from_millis(2);
const GATHER_SYNCS_MAX: u32 = 3;

/// Runs until the store stops or is closed.
pub fn run(shared: &Shared) {
    let ran = std::panic::catch_unwind(AssertUnwindSafe(|| take_groups(shared)));
    match ran {
        // The store is closed already.
        Ok(Ok(()) | Err(_)) => {}
        Err(_) => {
            drop(shared.close("the thread of its log panicked, which is a defect of raingauge"))
        }
    }
}

fn take_groups(shared: &Shared) -> Result<(), Error> {
    let mut ticked = Instant::now();
    loop {
        let is_stopping = wait(shared, ticked + TICK)?;
        shared.write()?;
        let is_tick = ticked.elapsed() >= TICK;
        if is_tick {
            ticked = Instant::now();
            shared.tick();
        }

        let is_wanted = shared.wanted.load(Ordering::Acquire) > shared.progress.synced();
        let is_due = match shared.mode() {
            SyncMode::Always => true,
            SyncMode::EverySecond => is_tick,
            SyncMode::No => false,
        };
        if is_due || is_wanted || is_stopping {
            let began = Instant::now();
            let answered = shared.sync()?;
            if shared.mode() == SyncMode::Always {
                gather(shared, answered, (began.elapsed() * GATHER_SYNCS_MAX).min(GATHER_MAX))?;
            }
        }
        if is_stopping {
            return Ok(());
        }
    }
}

/// Waits until there is something to write or to sync. Returns whether the store stops.
fn wait(shared: &Shared, tick: Instant) -> Result<bool, Error> {
    let mut state = shared.state.lock();
    loop {
        state.check()?;
        let wanted = shared.wanted.load(Ordering::SeqCst).min(state.current.stamp);
        let is_awaited = state.is_queued() && shared.written.len() > 0;
        if state.is_ending || is_awaited || wanted > shared.progress.synced() {
            return Ok(state.is_ending);
        }
        if shared.log_wake.wait_until(&mut state, tick).timed_out() {
            return Ok(state.is_ending);
        }
    }
}

/// Waits until as many callers wait as a sync has answered and left.
fn gather(shared: &Shared, answered: usize, time_max: Duration) -> Result<(), Error> {
    let until = Instant::now() + time_max;
    shared.gathering.store(answered + shared.synced.len(), Ordering::SeqCst);
    let mut state = shared.state.lock();
    while !state.is_ending && shared.is_gathering() {
        state.check()?;
        if shared.log_wake.wait_until(&mut state, until).timed_out() {
            break;
        }
    }
    shared.gathering.store(0, Ordering::SeqCst);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::open_shared;
    use crate::objects::tests::options;
    use raingauge_ports::objects::Durability;

    fn opened() -> (Shared, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (open_shared(folder.path(), &options()).unwrap(), folder)
    }

    #[test]
    fn a_sync_waits_for_the_callers_of_the_last_one() {
        let (shared, _folder) = opened();
        let _left = shared.synced.register(1);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| gather(&shared, 2, Duration::from_secs(3_600)));
            while !shared.is_gathering() {
                std::thread::yield_now();
            }
            let _second = shared.synced.register(2);
            shared.wake_log(2, Durability::Synced);
            assert!(shared.is_gathering() && !thread.is_finished());

            let _third = shared.synced.register(3);
            shared.wake_log(3, Durability::Synced);
            assert_eq!(thread.join().unwrap(), Ok(()));
        });
        assert_eq!(shared.gathering.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_caller_that_has_gone_holds_up_no_sync_for_long() {
        let (shared, _folder) = opened();
        assert_eq!(gather(&shared, 1, Duration::from_millis(1)), Ok(()));
        assert!(!shared.is_gathering());
    }
}

//! The thread of the log: group commit.
//!
//! While a sync runs the next groups gather, so a slow disk makes larger blocks rather than longer
//! queues. Where callers wait for the kernel alone they write what is queued themselves, and the
//! thread syncs once a second.

use super::state::Shared;
use raingauge_ports::objects::{Error, SyncMode};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Longest time until groups are written that nobody waits for, and between syncs.
const TICK: Duration = Duration::from_secs(1);

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
            shared.sync()?;
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
        let wanted = shared.wanted.load(Ordering::Acquire).min(state.current.stamp);
        let is_awaited = state.is_queued() && !shared.written.is_empty();
        if state.is_ending || is_awaited || wanted > shared.progress.synced() {
            return Ok(state.is_ending);
        }
        if shared.log_wake.wait_until(&mut state, tick).timed_out() {
            return Ok(state.is_ending);
        }
    }
}

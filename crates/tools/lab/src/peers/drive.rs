//! Runs the workers of a peer on one thread, each on its own connection, in a closed or an open
//! loop.

use crate::measure::{Arrivals, DRAIN_MAX, Measurement, Recorder, Run, Schedule};
use anyhow::Result;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::task::{LocalSet, yield_now};

/// A connection that can process one batch.
pub trait Worker: 'static {
    /// Processes the batch of this turn, and returns its number of ranges or events.
    fn take(&mut self, turn: u64) -> impl Future<Output = Result<u64>>;
}

struct Shared {
    recorder: RefCell<Recorder>,
    schedule: RefCell<Option<Schedule>>,
    end: Instant,
    turn: Cell<u64>,
}

pub fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Returns the workers for the next run.
pub fn drive<W: Worker>(
    runtime: &Runtime,
    workers: Vec<W>,
    run: &Run,
) -> Result<(Measurement, Vec<W>)> {
    let start = Instant::now();
    let recorder = Recorder::new(run, start)?;
    let end = recorder.end();
    let schedule = run.pace.rate_per_s().map(|rate_per_s| Schedule::new(start, end, rate_per_s));
    let shared = Rc::new(Shared {
        recorder: RefCell::new(recorder),
        schedule: RefCell::new(schedule),
        end,
        turn: Cell::new(0),
    });

    let workers = LocalSet::new().block_on(runtime, async {
        let tasks: Vec<_> = workers
            .into_iter()
            .map(|worker| tokio::task::spawn_local(work(shared.clone(), worker)))
            .collect();
        let mut done = Vec::new();
        for task in tasks {
            done.push(task.await??);
        }

        anyhow::Ok(done)
    })?;

    let shared =
        Rc::into_inner(shared).ok_or_else(|| anyhow::anyhow!("a worker is still running"))?;
    let mut recorder = shared.recorder.into_inner();
    let unanswered = match shared.schedule.into_inner() {
        Some(mut schedule) => recorder.abandon(&mut schedule, Instant::now()),
        None => 0,
    };

    Ok((recorder.finish(unanswered), workers))
}

async fn work<W: Worker>(shared: Rc<Shared>, mut worker: W) -> Result<W> {
    loop {
        let now = Instant::now();
        let intended = match shared.schedule.borrow_mut().as_mut() {
            None if now >= shared.end => break,
            None => Some(now),
            Some(schedule) if schedule.is_exhausted() || now >= shared.end + DRAIN_MAX => break,
            Some(schedule) => schedule.take_due(now),
        };

        let Some(intended) = intended else {
            // Spinning is precise; a timer could be up to a millisecond late.
            yield_now().await;
            continue;
        };

        let turn = shared.turn.get();
        shared.turn.set(turn + 1);

        let units = worker.take(turn).await?;
        shared.recorder.borrow_mut().complete(intended, Instant::now(), units);
    }
    Ok(worker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Pace;
    use std::time::Duration;

    struct Sleeper(Duration);

    impl Worker for Sleeper {
        async fn take(&mut self, _turn: u64) -> Result<u64> {
            tokio::time::sleep(self.0).await;
            Ok(10)
        }
    }

    #[test]
    fn an_open_loop_that_is_too_fast_for_its_workers_shows_the_wait() {
        // Two workers at 20 ms per batch handle 100 per second; 200 per second are due.
        let run = Run {
            pace: Pace::Open(200.0),
            warm_up: Duration::ZERO,
            duration: Duration::from_millis(500),
        };
        let workers = vec![Sleeper(Duration::from_millis(20)), Sleeper(Duration::from_millis(20))];
        let (measured, workers) = drive(&runtime().unwrap(), workers, &run).unwrap();
        assert_eq!((measured.requests, workers.len()), (100, 2));
        assert!(measured.latency.max_us > 300_000.0, "{measured:?}");
    }
}

//! Turns for rare, large work: recounts, previews, the search for the largest keys. Each reads the
//! whole log, or every tile, so only a few may run at a time, and the number that waits is limited.
//!
//! A caller runs one scan at a time, so one that requests many does not block the others. A turn
//! ends with the future that holds it: a caller that disconnects, or whose time is over, stops its
//! scan.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

/// Most scans that run at a time.
pub const RUNNING_MAX: usize = 2;
/// Most scans that wait for their turn, in total and per caller.
pub const WAITING_MAX: usize = 32;
pub const WAITING_OF_CALLER_MAX: usize = 16;

/// Too many scans are waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many recounts, previews and searches for keys are waiting: try again in a moment")]
pub struct Full;

/// Tells a scan that its caller no longer waits. Clones share the same state.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The scans of a process.
#[derive(Clone, Default)]
pub struct Scans(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The caller of each running scan.
    running: Vec<Arc<str>>,
    /// In order of arrival.
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    caller: Arc<str>,
    wake: oneshot::Sender<Turn>,
}

/// The right to run one scan, until it goes out of scope.
pub struct Turn {
    scans: Scans,
    caller: Arc<str>,
    stop: Stop,
}

impl Turn {
    /// The scan has to check this repeatedly.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.stop.set();
        self.scans.end(&self.caller);
    }
}

impl Scans {
    /// Waits for the caller's turn, unless too many are waiting already.
    pub async fn turn(&self, caller: &str) -> Result<Turn, Full> {
        let woken = {
            let mut state = self.0.lock();
            if state.may_run(caller) {
                let caller: Arc<str> = caller.into();
                state.running.push(Arc::clone(&caller));
                return Ok(self.granted(caller));
            }

            state.waiting.retain(|waiting| !waiting.wake.is_closed());
            let of_caller =
                state.waiting.iter().filter(|waiting| *waiting.caller == *caller).count();
            if state.waiting.len() >= WAITING_MAX || of_caller >= WAITING_OF_CALLER_MAX {
                return Err(Full);
            }

            let (wake, woken) = oneshot::channel();
            state.waiting.push_back(Waiting { caller: caller.into(), wake });
            woken
        };
        woken.await.map_err(|_| Full)
    }

    fn granted(&self, caller: Arc<str>) -> Turn {
        Turn { scans: self.clone(), caller, stop: Stop::default() }
    }

    /// Passes an ended turn to the next scan that may run.
    fn end(&self, caller: &str) {
        let next = {
            let mut state = self.0.lock();
            if let Some(place) = state.running.iter().position(|running| **running == *caller) {
                state.running.swap_remove(place);
            }
            state.next()
        };
        if let Some(Waiting { caller, wake }) = next {
            // If the caller has gone, the turn is returned as it goes out of scope here.
            let _ = wake.send(self.granted(caller));
        }
    }
}

impl State {
    fn may_run(&self, caller: &str) -> bool {
        self.running.len() < RUNNING_MAX && !self.running.iter().any(|running| **running == *caller)
    }

    fn next(&mut self) -> Option<Waiting> {
        self.waiting.retain(|waiting| !waiting.wake.is_closed());
        let place = self.waiting.iter().position(|waiting| self.may_run(&waiting.caller))?;
        let next = self.waiting.remove(place)?;
        self.running.push(Arc::clone(&next.caller));
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[test]
    fn one_caller_runs_one_scan_and_others_run_theirs() {
        let scans = Scans::default();
        let first = poll(pin!(scans.turn("ann"))).unwrap().unwrap();
        let mut second = pin!(scans.turn("ann"));
        assert!(poll(second.as_mut()).is_none());

        let other = poll(pin!(scans.turn("bob"))).unwrap().unwrap();
        let mut third = pin!(scans.turn("cid"));
        assert!(poll(third.as_mut()).is_none(), "no more than two run");
        assert!(!first.stop().is_set());

        let stop = first.stop().clone();
        drop(first);
        assert!(stop.is_set());

        let second = poll(second).unwrap().unwrap();
        drop(other);
        assert!(poll(third).unwrap().is_ok());
        drop(second);
        assert!(scans.0.lock().waiting.is_empty());
    }

    #[test]
    fn who_has_left_is_passed_over() {
        let scans = Scans::default();
        let running = poll(pin!(scans.turn("ann"))).unwrap().unwrap();
        let mut left: Vec<_> =
            (0..WAITING_OF_CALLER_MAX).map(|_| Box::pin(scans.turn("ann"))).collect();
        assert!(left.iter_mut().all(|turn| poll(turn.as_mut()).is_none()));
        assert_eq!(poll(pin!(scans.turn("ann"))).unwrap().err(), Some(Full));
        drop(left);
        let mut stays = pin!(scans.turn("ann"));
        assert!(poll(stays.as_mut()).is_none(), "those who left make room");
        drop(running);
        assert!(poll(stays).unwrap().is_ok());
        assert!(scans.0.lock().running.is_empty());
    }

    #[test]
    fn a_turn_that_is_given_and_never_taken_goes_on_to_the_next() {
        let scans = Scans::default();
        let running = poll(pin!(scans.turn("ann"))).unwrap().unwrap();
        let mut left = Box::pin(scans.turn("ann"));
        let mut next = pin!(scans.turn("ann"));
        assert!(poll(left.as_mut()).is_none() && poll(next.as_mut()).is_none());
        drop(running);
        drop(left);
        assert!(poll(next).unwrap().is_ok());
    }

    #[test]
    fn there_is_a_limit_to_those_who_wait() {
        let scans = Scans::default();
        let callers: Vec<String> = (0..RUNNING_MAX + WAITING_MAX).map(|n| n.to_string()).collect();
        let mut turns: Vec<_> = callers.iter().map(|caller| Box::pin(scans.turn(caller))).collect();
        let given: Vec<_> = turns.iter_mut().filter_map(|turn| poll(turn.as_mut())).collect();
        assert_eq!(given.len(), RUNNING_MAX);
        assert_eq!(poll(pin!(scans.turn("late"))).unwrap().err(), Some(Full));
    }
}

//! The requests sent to the cluster while it was broken, and their results.

use parking_lot::Mutex;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The API that a client uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// A batch of counts, sent to a reader.
    Counts,
    /// A batch of events, sent to a writer.
    Events,
    /// A change of a counter, sent to the portal.
    Changes,
}

/// One request: sent to one process and, if that failed, to the other one of its role.
#[derive(Debug, Clone, Copy)]
struct Sample {
    door: Door,
    began_ms: u64,
    ended_ms: u64,
    attempts_failed: u32,
    is_done: bool,
}

/// All requests of all clients.
pub struct Samples {
    start: Instant,
    samples: Mutex<Vec<Sample>>,
    /// Start of the latest request that each process answered, in milliseconds since the start of
    /// the run.
    answered_ms: Vec<AtomicU64>,
}

impl Samples {
    pub fn new(processes: usize) -> Self {
        Self {
            start: Instant::now(),
            samples: Mutex::default(),
            answered_ms: (0..processes).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    pub fn add(&self, door: Door, began_ms: u64, attempts_failed: u32, is_done: bool) {
        let sample = Sample { door, began_ms, ended_ms: self.now_ms(), attempts_failed, is_done };
        self.samples.lock().push(sample);
    }

    /// Notes that a process has answered a request that began at `began_ms`.
    pub fn note_answer(&self, process: usize, began_ms: u64) {
        self.answered_ms[process].fetch_max(began_ms, Ordering::Relaxed);
    }

    /// Whether a process has answered a request that began after this moment.
    pub fn answered_since(&self, process: usize, since_ms: u64) -> bool {
        self.answered_ms[process].load(Ordering::Relaxed) > since_ms
    }

    /// Summarizes what clients of a door observed in `[from, to)`.
    pub fn seen(&self, door: Door, from_ms: u64, to_ms: u64) -> DoorStats {
        let samples = self.samples.lock();
        let mut seen = DoorStats::default();
        let mut successes = vec![from_ms, to_ms];

        for sample in samples.iter().filter(|sample| sample.door == door) {
            if (from_ms..to_ms).contains(&sample.began_ms) {
                seen.requests += 1;
                seen.attempts_failed += u64::from(sample.attempts_failed);
                seen.requests_failed += u64::from(!sample.is_done);

                if sample.is_done {
                    seen.slowest_ms = seen.slowest_ms.max(sample.ended_ms - sample.began_ms);
                }
            }
            if sample.is_done && (from_ms..to_ms).contains(&sample.ended_ms) {
                successes.push(sample.ended_ms);
            }
        }

        successes.sort_unstable();
        seen.gap_ms = successes.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        seen
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct DoorStats {
    pub requests: u64,
    /// Attempts at one process that failed; the request went on to another.
    pub attempts_failed: u64,
    /// Requests that failed at every process of the role.
    pub requests_failed: u64,
    /// Longest time without a success.
    pub gap_ms: u64,
    pub slowest_ms: u64,
}

impl DoorStats {
    pub fn add(&mut self, other: DoorStats) {
        self.requests += other.requests;
        self.attempts_failed += other.attempts_failed;
        self.requests_failed += other.requests_failed;
        self.gap_ms = self.gap_ms.max(other.gap_ms);
        self.slowest_ms = self.slowest_ms.max(other.slowest_ms);
    }
}

/// Interval between checks of a condition.
pub const POLL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_clipped_to_the_time_that_is_looked_at() {
        let samples = Samples::new(1);
        let add = |began_ms, ended_ms, is_done| {
            let sample =
                Sample { door: Door::Counts, began_ms, ended_ms, attempts_failed: 1, is_done };
            samples.samples.lock().push(sample);
        };

        add(10, 20, true);
        add(30, 900, false);
        add(60, 1_000, true);

        let all = samples.seen(Door::Counts, 0, 1_100);
        assert_eq!((all.requests, all.attempts_failed, all.requests_failed), (3, 3, 1));
        assert_eq!((all.gap_ms, all.slowest_ms), (980, 940));

        let part = samples.seen(Door::Counts, 50, 400);
        assert_eq!((part.requests, part.gap_ms), (1, 350));
        assert_eq!(samples.seen(Door::Events, 0, 100).requests, 0);
    }

    #[test]
    fn an_answer_counts_by_when_it_was_asked_for() {
        let samples = Samples::new(2);
        samples.note_answer(1, 50);
        assert!(
            samples.answered_since(1, 49)
                && !samples.answered_since(1, 50)
                && !samples.answered_since(0, 1)
        );
    }
}

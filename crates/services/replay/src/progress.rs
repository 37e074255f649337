//! How far a replay has come, and whether it is to stop. Clones share it.

use crate::Error;
use raingauge_ports::scans::Stop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Clone, Debug, Default)]
pub struct Progress {
    steps: Arc<Steps>,
    /// The signal of the turn in which the replay reads the log.
    stop: Stop,
}

#[derive(Debug, Default)]
struct Steps {
    entries: AtomicU64,
    of: AtomicU64,
    is_cancelled: AtomicBool,
}

impl Progress {
    /// The same progress, which also ends on this stop signal.
    pub fn until(&self, stop: &Stop) -> Self {
        Self { stop: stop.clone(), ..self.clone() }
    }

    /// Returns the entries that were read, and how many there are to read; 0 if that is unknown.
    pub fn entries(&self) -> (u64, u64) {
        let of = self.steps.of.load(Ordering::Relaxed);
        (self.steps.entries.load(Ordering::Relaxed), of)
    }

    pub fn cancel(&self) {
        self.steps.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.steps.is_cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn begin(&self, more: u64) {
        self.steps.of.fetch_add(more, Ordering::Relaxed);
    }

    /// Notes entries that were read, and ends a replay that is to stop.
    pub(crate) fn step(&self, entries: u64) -> Result<(), Error> {
        self.steps.entries.fetch_add(entries, Ordering::Relaxed);
        if self.is_cancelled() || self.stop.is_set() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

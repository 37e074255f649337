//! How far groups have come, to be read without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// The stamps of the newest groups. A store raises them in this order: submitted, written, synced.
#[derive(Debug, Default)]
pub struct Progress {
    submitted: AtomicU64,
    written: AtomicU64,
    synced: AtomicU64,
}

impl Progress {
    /// All groups up to a stamp are durable.
    pub fn at(stamp: u64) -> Self {
        let at = || AtomicU64::new(stamp);
        Self { submitted: at(), written: at(), synced: at() }
    }

    /// The stamp of the newest group.
    pub fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// Groups up to here survive the end of the process.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Groups up to here survive a power cut.
    pub fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    pub fn raise_submitted(&self, stamp: u64) {
        self.submitted.fetch_max(stamp, Ordering::AcqRel);
    }

    pub fn raise_written(&self, stamp: u64) {
        self.written.fetch_max(stamp, Ordering::AcqRel);
    }

    pub fn raise_synced(&self, stamp: u64) {
        self.synced.fetch_max(stamp, Ordering::AcqRel);
    }
}

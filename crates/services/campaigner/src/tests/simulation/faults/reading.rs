//! A log and documents that cannot be read at times.

use crate::tests::simulation::world::Random;
use parking_lot::Mutex;
use raingauge_memory as memory;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{ChangedDocuments, DocumentStore, Put, StoredDocument, documents};
use raingauge_ports::log::{Block, Error, EventLog, LogTimes, Needs, Offset, Partition};
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Fails a share of what is asked, until it is healed.
pub struct Failures {
    random: Mutex<Random>,
    /// How many of 100 fail.
    percent: AtomicU64,
}

impl Failures {
    pub fn new(seed: u64, percent: u64) -> Self {
        Self { random: Mutex::new(Random(seed | 1)), percent: AtomicU64::new(percent) }
    }

    pub fn heal(&self) {
        self.percent.store(0, Ordering::Relaxed);
    }

    pub fn strike(&self) -> bool {
        self.random.lock().chance(self.percent.load(Ordering::Relaxed))
    }
}

/// Fails some reads, at the position and behind it.
pub struct FailingLog {
    pub inner: Arc<memory::Log>,
    pub failures: Failures,
}

impl FailingLog {
    fn check(&self) -> Result<(), Error> {
        let failed = || Error::Io(io::Error::other("the disk of the log is away"));
        if self.failures.strike() { Err(failed()) } else { Ok(()) }
    }
}

impl EventLog for FailingLog {
    fn partition(&self) -> Partition {
        self.inner.partition()
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        self.check()?;
        self.inner.read(from, bytes_max)
    }

    fn read_behind(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        self.check()?;
        self.inner.read_behind(from, bytes_max)
    }

    fn start(&self) -> Offset {
        self.inner.start()
    }

    fn end(&self) -> Offset {
        self.inner.end()
    }

    fn wait_beyond(&self, offset: Offset, timeout: Duration) -> Offset {
        self.inner.wait_beyond(offset, timeout)
    }
}

impl LogTimes for FailingLog {
    fn start_ms(&self) -> i64 {
        self.inner.start_ms()
    }

    fn trim(&self, needs: Needs) -> Result<(), Error> {
        self.inner.trim(needs)
    }
}

/// Fails some reads of documents.
pub struct FailingDocuments {
    pub inner: Arc<memory::Documents>,
    pub failures: Failures,
}

type Answer<'a, T> = BoxFuture<'a, Result<T, documents::Error>>;

impl FailingDocuments {
    fn unless_struck<'a, T: Send + 'a>(&self, answer: Answer<'a, T>) -> Answer<'a, T> {
        if self.failures.strike() {
            let failed = documents::Error::Unavailable("it is away".to_owned());
            return Box::pin(ready(Err(failed)));
        }
        answer
    }
}

impl DocumentStore for FailingDocuments {
    fn newest(&self) -> Answer<'_, Vec<StoredDocument>> {
        self.unless_struck(self.inner.newest())
    }

    fn changed_since(&self, revision: i64) -> Answer<'_, ChangedDocuments> {
        self.unless_struck(self.inner.changed_since(revision))
    }

    fn get<'a>(
        &'a self,
        kind: &'a str,
        id: &'a str,
        version: Option<u32>,
    ) -> Answer<'a, Option<StoredDocument>> {
        self.unless_struck(self.inner.get(kind, id, version))
    }

    fn versions<'a>(&'a self, kind: &'a str, id: &'a str) -> Answer<'a, Vec<StoredDocument>> {
        self.unless_struck(self.inner.versions(kind, id))
    }

    fn put(&self, document: StoredDocument, base: u32) -> Answer<'_, Put> {
        self.inner.put(document, base)
    }
}

//! The handle of a running worker, by which other threads query and stop it.

use super::{Error, IDLE, Options, Worker};
use crate::state::{Backfill, Part};
use crate::states::{PublishedState, PublishedStates, States};
use parking_lot::Mutex;
use raingauge_ports::buckets::{BucketWriter, Generation};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{EventLog, Offset, Partition};
use raingauge_ports::published::Published;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The running worker. Stopping it, or dropping it, commits.
pub struct Handle {
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// A copy of the worker's state for queries.
    shown: Arc<Mutex<PublishedState>>,
    committed: Arc<AtomicU64>,
    committed_s: Arc<AtomicI64>,
    /// When the current commit began.
    committing: Arc<Mutex<Option<Instant>>>,
    commit_time_max: Duration,
    /// Disconnected when the thread has ended.
    ended: Mutex<mpsc::Receiver<()>>,
    log: Arc<dyn EventLog>,
}

impl Handle {
    /// Applies what the log holds beyond the store's checkpoint, then continues in a thread of its
    /// own.
    pub fn start(
        log: Arc<dyn EventLog>,
        store: Arc<dyn BucketWriter>,
        published: Arc<Published>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self, Error> {
        let mut worker = Worker::open(log, store, published, clock, options)?;
        if worker.options.catches_up {
            worker.catch_up()?;
        }
        worker.removals.start(worker.store.clone())?;

        let (ending, ended) = mpsc::channel();
        let mut handle = Self {
            stop: Arc::clone(&worker.stop),
            thread: Mutex::default(),
            shown: Arc::clone(&worker.shown),
            committed: Arc::clone(&worker.shown_committed),
            committed_s: Arc::clone(&worker.shown_committed_s),
            committing: Arc::clone(&worker.committing),
            commit_time_max: worker.options.commit_time_max,
            ended: Mutex::new(ended),
            log: Arc::clone(&worker.log),
        };

        let thread = std::thread::Builder::new().name("writer".to_owned());
        let thread = thread.spawn(move || {
            let _ending: mpsc::Sender<()> = ending;
            worker.run_to_its_end();
        })?;
        handle.thread = Mutex::new(Some(thread));

        Ok(handle)
    }

    /// Returns the newest backfill of a counter.
    pub fn backfill(&self, counter: u32) -> Option<Backfill> {
        self.shown.lock().backfill(counter)
    }

    /// Returns the configurations and what each counted, for a recount.
    pub(crate) fn parts(&self, counter: u32) -> Option<Vec<Part>> {
        self.shown.lock().counter(counter).map(|state| state.parts.clone())
    }

    /// Returns the retired generations of which the store holds nothing any more.
    pub(crate) fn removed(&self) -> Vec<Generation> {
        self.shown.lock().removed.clone()
    }

    pub(crate) fn partition(&self) -> Partition {
        self.log.partition()
    }

    /// Returns the offset before which entries are in the last checkpoint.
    pub fn committed(&self) -> Offset {
        self.committed.load(Ordering::Acquire)
    }

    /// Returns when the last of them was appended, in milliseconds since 1970, cut to seconds; 0
    /// when this worker committed none.
    pub fn committed_ms(&self) -> i64 {
        self.committed_s.load(Ordering::Acquire) * 1_000
    }

    /// Whether a commit has been under way for longer than one may take.
    pub fn is_stuck(&self) -> bool {
        self.committing.lock().is_some_and(|began| began.elapsed() > self.commit_time_max)
    }

    /// Applies what is in the log, as far as the drain time allows, commits and ends. Blocks the
    /// thread. A commit that does not return is abandoned: nothing that it holds is lost, since the
    /// log has it.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.log.stop_waiting();
        let Some(thread) = self.thread.lock().take() else {
            return;
        };
        let ended = self.ended.lock();
        while ended.recv_timeout(IDLE) == Err(mpsc::RecvTimeoutError::Timeout) {
            if self.is_stuck() {
                return tracing::error!("a commit does not return, and is left behind");
            }
        }
        let _ = thread.join();
    }
}

impl States for Handle {
    fn parts(&self, counter: u32) -> Vec<(Partition, Vec<Part>)> {
        self.parts(counter).into_iter().map(|parts| (self.partition(), parts)).collect()
    }

    fn backfills(&self, counter: u32) -> Vec<(Partition, Backfill)> {
        self.backfill(counter).into_iter().map(|backfill| (self.partition(), backfill)).collect()
    }

    fn repetitions(&self, partition: Partition) -> Vec<Offset> {
        let shown = self.shown().remove(&partition);
        shown.map(|shown| shown.state.requests.repetitions().collect()).unwrap_or_default()
    }
}

impl PublishedStates for Handle {
    fn shown(&self) -> BTreeMap<Partition, PublishedState> {
        BTreeMap::from([(self.log.partition(), self.shown.lock().clone())])
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}

//! The gate before the bucket store: bounds what is read at once and what waits, and leaves an
//! engine that fails alone.

use crate::breaker::EngineBreaker;
use crate::refusal::too_slow;
use raingauge_core::code::{Code, Refusal};
use raingauge_policy::breaker;
use raingauge_ports::buckets;
use raingauge_ports::clock::Clock;
use raingauge_settings::settings;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

settings! {
    /// How the reader reads.
    #[derive(Copy)]
    pub struct Options in "reader" {
        /// Longest time that the counts of one request may take; those that would take longer are
        /// answered with an error.
        deadline as "deadline_ms": Duration = millis(5_000, 10..=60_000);
        /// Most ranges that are read from storage at once.
        reads_in_flight_max: usize = whole(1_024, 1..=1_000_000, "ranges");
        /// Most ranges that wait to be read; beyond it, counts are refused as `overloaded`.
        reads_waiting_max: usize = whole(8_192, 0..=10_000_000, "ranges");
    } with {
        /// When the bucket store, or the result cache, is left alone.
        breaker: breaker::Options = breaker::Options::default();
    }
}

/// What all reads of storage share, whichever engine they go to.
pub struct Gate {
    options: Options,
    clock: Arc<dyn Clock>,
    breaker: Arc<EngineBreaker>,
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    shed: metrics::Counter,
}

impl Gate {
    pub fn new(options: Options, clock: Arc<dyn Clock>) -> Arc<Self> {
        assert!(options.reads_in_flight_max > 0, "at least one range must be read at once");
        Arc::new(Self {
            options,
            clock,
            breaker: EngineBreaker::new("bucket_store", options.breaker),
            places: Arc::new(Semaphore::new(options.reads_in_flight_max)),
            waiting: AtomicUsize::new(0),
            shed: metrics::counter!("raingauge_reads_shed_total"),
        })
    }

    /// Reads within the deadline of the options, see [`read`](Self::read).
    pub async fn read_in_time<T>(
        &self,
        parts: usize,
        read: impl Future<Output = Vec<Result<T, buckets::Error>>>,
    ) -> Vec<Result<T, Refusal>> {
        self.read(parts, Some(self.options.deadline), read).await
    }

    /// Reads when it is the turn of this read. Returns for each part its result, or why there is
    /// none. Without a deadline, the caller ends a read that takes too long.
    pub async fn read<T>(
        &self,
        parts: usize,
        deadline: Option<Duration>,
        read: impl Future<Output = Vec<Result<T, buckets::Error>>>,
    ) -> Vec<Result<T, Refusal>> {
        let refuse = |refusal: Refusal| (0..parts).map(|_| Err(refusal.clone())).collect();
        let _place = match self.place(parts).await {
            Ok(place) => place,
            Err(refusal) => return refuse(refusal),
        };
        let pass = match self.breaker.admit(self.clock.machine_ms()) {
            Ok(pass) => pass,
            Err(retry_ms) => return refuse(left_alone(retry_ms)),
        };

        let answers = match deadline {
            Some(deadline) => timeout(deadline, read).await.map_err(|_| too_slow(deadline)),
            None => Ok(read.await),
        };

        // A call is one call, whatever its number of ranges: one large batch opens no breaker.
        let has_failed = match &answers {
            Ok(answers) => answers.iter().filter(|answer| is_failure(answer)).count() * 2 > parts,
            Err(_) => true,
        };
        let now_ms = self.clock.machine_ms();
        self.breaker.record(now_ms, pass, u64::from(!has_failed), u64::from(has_failed));

        match answers {
            Ok(answers) => {
                answers.into_iter().map(|answer| answer.map_err(Refusal::from)).collect()
            }
            Err(refusal) => refuse(refusal),
        }
    }

    /// Waits for a place among the reads, or refuses at once when enough wait already.
    async fn place(&self, parts: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let places = parts.min(self.options.reads_in_flight_max) as u32;
        if let Ok(place) = Arc::clone(&self.places).try_acquire_many_owned(places) {
            return Ok(place);
        }

        let waiting = Waiting::new(&self.waiting, parts);
        if waiting.all > self.options.reads_waiting_max {
            self.shed.increment(parts as u64);
            let detail = "more counts wait for storage than it can answer in time: \
                          ask again in a moment, or for less";
            return Err(Refusal::new(Code::Overloaded, detail));
        }

        let until = Instant::now() + self.options.deadline;
        match timeout_at(until, Arc::clone(&self.places).acquire_many_owned(places)).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(too_slow(self.options.deadline)),
        }
    }
}

/// Counts ranges that wait, for as long as it lives.
struct Waiting<'a> {
    counter: &'a AtomicUsize,
    parts: usize,
    /// All ranges that wait, these among them.
    all: usize,
}

impl<'a> Waiting<'a> {
    fn new(counter: &'a AtomicUsize, parts: usize) -> Self {
        Self { counter, parts, all: counter.fetch_add(parts, Ordering::AcqRel) + parts }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.parts, Ordering::AcqRel);
    }
}

/// Whether the engine failed, as opposed to one answer being impossible.
fn is_failure<T>(answer: &Result<T, buckets::Error>) -> bool {
    matches!(answer, Err(buckets::Error::Io(_) | buckets::Error::Locked))
}

fn left_alone(retry_ms: i64) -> Refusal {
    let seconds = (retry_ms + 999) / 1_000;
    let detail = format!(
        "the bucket store fails and is left alone: it is tried again in {seconds} s, and so may you"
    );
    Refusal::new(Code::Unavailable, detail)
}

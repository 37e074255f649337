//! The way to the bucket store: what is being read already is waited for, what is too much is refused, what fails is left
//! alone for a while, and nobody waits for ever.
//!
//! ```text
//!   queries ──▶ in flight already? ──yes──▶ wait for it
//!                    └─no─▶ place? ─▶ breaker? ─▶ one round of reads ─▶ everybody who waits
//!                            └─ shed   └─ refused
//! ```

use crate::breaker::{self, Engine};
use crate::failure::Failure;
use parking_lot::Mutex;
use raingauge_ports::buckets::{self, BucketReader, Generation, Query};
use raingauge_ports::clock::Clock;
use raingauge_ports::published::Published;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout_at};

/// How storage is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The longest that a count may take.
    pub deadline: Duration,
    /// Ranges that are read at once.
    pub reads_in_flight_max: usize,
    /// Ranges that wait for their turn; beyond it, counts are refused.
    pub reads_waiting_max: usize,
    /// When storage, or the result cache, is left alone.
    pub breaker: breaker::Options,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(5),
            reads_in_flight_max: 1_024,
            reads_waiting_max: 8_192,
            breaker: breaker::Options::default(),
        }
    }
}

type Sum = Result<i128, Failure>;

/// Until when somebody waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    until: Instant,
    /// The time that there was at the beginning.
    whole: Duration,
}

impl Deadline {
    pub fn after(whole: Duration) -> Self {
        Self { until: Instant::now() + whole, whole }
    }

    /// Half of the time.
    pub fn half(self) -> Duration {
        self.whole / 2
    }
}

/// Work that is the same for whoever asks for it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Work {
    generation: Generation,
    key: String,
    from_s: i64,
    to_s: i64,
    /// How far counting had come. Whoever knows of a later event does not wait for an earlier answer.
    mark: u64,
}

type Flights = Mutex<HashMap<Work, watch::Receiver<Option<Sum>>>>;

/// What all reads of storage have in common, wherever they go.
pub(crate) struct Gate {
    options: Options,
    clock: Arc<dyn Clock>,
    engine: Arc<Engine>,
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    shed: metrics::Counter,
    coalesced: metrics::Counter,
}

impl Gate {
    pub fn new(options: Options, clock: Arc<dyn Clock>) -> Arc<Self> {
        assert!(options.reads_in_flight_max > 0, "something must be read");
        Arc::new(Self {
            options,
            clock,
            engine: Engine::new("bucket_store", options.breaker),
            places: Arc::new(Semaphore::new(options.reads_in_flight_max)),
            waiting: AtomicUsize::new(0),
            shed: metrics::counter!("raingauge_reads_shed_total"),
            coalesced: metrics::counter!("raingauge_reads_coalesced_total"),
        })
    }

    /// Reads when it is its turn. Answers for each part what it asked for, or why it has no answer.
    /// Without a deadline, the caller sees to it that the read ends.
    async fn read<T>(
        &self,
        parts: usize,
        deadline: Option<Duration>,
        read: impl Future<Output = Vec<Result<T, buckets::Error>>>,
    ) -> Vec<Result<T, Failure>> {
        let refuse = |failure: Failure| (0..parts).map(|_| Err(failure.clone())).collect();
        let _place = match self.place(parts).await {
            Ok(place) => place,
            Err(failure) => return refuse(failure),
        };
        let pass = match self.engine.admit(self.clock.now_ms()) {
            Ok(pass) => pass,
            Err(retry_ms) => return refuse(left_alone(retry_ms)),
        };
        let answers = match deadline {
            Some(deadline) => tokio::time::timeout(deadline, read).await.map_err(|_| too_slow(deadline)),
            None => Ok(read.await),
        };
        let failed = match &answers {
            Ok(answers) => answers.iter().filter(|answer| answer.as_ref().is_err_and(is_of_the_engine)).count(),
            Err(_) => parts,
        };
        self.engine.record(self.clock.now_ms(), pass, (parts - failed) as u64, failed as u64);
        match answers {
            Ok(answers) => answers.into_iter().map(|answer| answer.map_err(Failure::from)).collect(),
            Err(failure) => refuse(failure),
        }
    }

    /// A place among those that read. As many wait as may; others are told at once.
    async fn place(&self, parts: usize) -> Result<OwnedSemaphorePermit, Failure> {
        let places = parts.min(self.options.reads_in_flight_max) as u32;
        if let Ok(place) = Arc::clone(&self.places).try_acquire_many_owned(places) {
            return Ok(place);
        }
        let waiting = Waiting::new(&self.waiting, parts);
        if waiting.all > self.options.reads_waiting_max {
            self.shed.increment(parts as u64);
            return Err(Failure {
                code: "overloaded",
                detail: "more counts wait for storage than it can answer in time: ask again in a moment, or for less"
                    .to_owned(),
            });
        }
        let until = Instant::now() + self.options.deadline;
        match timeout_at(until, Arc::clone(&self.places).acquire_many_owned(places)).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(too_slow(self.options.deadline)),
        }
    }
}

/// Counts those who wait, for as long as it lives.
struct Waiting<'a> {
    counter: &'a AtomicUsize,
    parts: usize,
    /// All who wait, these among them.
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

/// A bucket store, or what keeps its tiles in memory, behind the gate.
pub(crate) struct Storage {
    pub buckets: Arc<dyn BucketReader>,
    published: Arc<Published>,
    gate: Arc<Gate>,
    flights: Arc<Flights>,
}

impl Storage {
    pub fn new(buckets: Arc<dyn BucketReader>, published: Arc<Published>, gate: Arc<Gate>) -> Self {
        Self { buckets, published, gate, flights: Arc::default() }
    }

    /// The sums of queries, in their order, each within the deadline or not at all.
    pub async fn sums(&self, queries: Vec<Query>, deadline: Deadline) -> Vec<Sum> {
        if queries.is_empty() {
            return Vec::new();
        }
        let mut sums = Vec::with_capacity(queries.len());
        for mut flight in self.join(queries) {
            let landed = timeout_at(deadline.until, flight.wait_for(Option::is_some)).await;
            sums.push(match landed {
                Ok(Ok(sum)) => sum.clone().unwrap_or_else(|| Err(lost())),
                Ok(Err(_)) => Err(lost()),
                Err(_) => Err(too_slow(deadline.whole)),
            });
        }
        sums
    }

    /// One read on its own, of what is seldom asked for and may take as long as its caller waits.
    pub async fn alone<T>(&self, read: impl Future<Output = Result<T, buckets::Error>>) -> Result<T, Failure> {
        let answers = self.gate.read(1, None, async { vec![read.await] }).await;
        answers.into_iter().next().unwrap_or_else(|| Err(lost()))
    }

    /// Joins the queries that are being read already, and sets out with the others in one round.
    fn join(&self, queries: Vec<Query>) -> Vec<watch::Receiver<Option<Sum>>> {
        let mark = self.published.mark();
        let mut flights = Vec::with_capacity(queries.len());
        let mut round = Round { in_flight: Arc::clone(&self.flights), works: Vec::new() };
        let (mut own, mut senders) = (Vec::new(), Vec::new());
        {
            let mut in_flight = self.flights.lock();
            for query in queries {
                let Query { generation, ref key, plan } = query;
                let work = Work { generation, key: key.clone(), from_s: plan.from_s, to_s: plan.to_s, mark };
                if let Some(flight) = in_flight.get(&work) {
                    self.gate.coalesced.increment(1);
                    flights.push(flight.clone());
                    continue;
                }
                let (sender, flight) = watch::channel(None);
                in_flight.insert(work.clone(), flight.clone());
                flights.push(flight);
                round.works.push(work);
                senders.push(sender);
                own.push(query);
            }
        }
        if !own.is_empty() {
            let (buckets, gate) = (Arc::clone(&self.buckets), Arc::clone(&self.gate));
            // On its own, so that those who joined get their answer even if the first one stops waiting.
            tokio::spawn(async move {
                let deadline = Some(gate.options.deadline);
                let sums = gate.read(own.len(), deadline, async { buckets.sums(own).await }).await;
                // From here on, whoever asks reads anew.
                drop(round);
                senders.into_iter().zip(sums).for_each(|(sender, sum)| drop(sender.send(Some(sum))));
            });
        }
        flights
    }
}

/// Takes its works out of what is in flight when it ends, however it ends.
struct Round {
    in_flight: Arc<Flights>,
    works: Vec<Work>,
}

impl Drop for Round {
    fn drop(&mut self) {
        let mut in_flight = self.in_flight.lock();
        self.works.iter().for_each(|work| drop(in_flight.remove(work)));
    }
}

/// Whether an error says that the engine fails, and not that one answer is impossible.
fn is_of_the_engine(error: &buckets::Error) -> bool {
    matches!(error, buckets::Error::Io(_) | buckets::Error::Locked)
}

fn left_alone(retry_ms: i64) -> Failure {
    let seconds = (retry_ms + 999) / 1_000;
    Failure {
        code: "unavailable",
        detail: format!("the bucket store fails and is left alone: it is tried again in {seconds} s, and so may you"),
    }
}

fn too_slow(deadline: Duration) -> Failure {
    Failure {
        code: "deadline_exceeded",
        detail: format!("storage took longer than {} ms: ask again, or for less at once", deadline.as_millis()),
    }
}

fn lost() -> Failure {
    Failure { code: "unavailable", detail: "the read ended without an answer: ask again".to_owned() }
}

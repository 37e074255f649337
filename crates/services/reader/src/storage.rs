//! The way to the bucket store: what is about to be read is waited for, what is too much is refused, what fails is left
//! alone for a while, and nobody waits for ever.
//!
//! ```text
//!   queries ──▶ about to be read? ──yes──▶ wait for it
//!                    └─no─▶ being read? ─▶ place? ─▶ breaker? ─▶ one round of reads ─▶ everybody who waits
//!                            └─ a moment    └─ shed   └─ refused
//! ```
//!
//! A read that has begun may have missed what was counted since: whoever asks then does not join it, or an answer could be
//! older than what somebody saw before it was asked for.

use crate::breaker::Engine;
use parking_lot::Mutex;
use raingauge_core::code::{Code, Refusal};
use raingauge_policy::breaker;
use raingauge_ports::buckets::{self, BucketReader, Generation, Query};
use raingauge_ports::clock::Clock;
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

type Sum = Result<i128, Refusal>;

/// Most ranges of one round. A larger batch is read in several rounds at once, each with places of its own.
const ROUND_LEN_MAX: usize = 64;
/// How long a read waits for one that began before and reads the same, so that all who ask meanwhile share it.
const SHARING_MAX: Duration = Duration::from_millis(20);

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
}

type Landing = watch::Receiver<Option<Sum>>;

/// What is read, by what it reads.
#[derive(Default)]
struct Flights {
    /// Reads that have not begun: whoever wants the same joins them.
    boarding: HashMap<Work, Landing>,
    /// Reads that have begun, the newest of each.
    begun: HashMap<Work, Landing>,
}

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
    ) -> Vec<Result<T, Refusal>> {
        let refuse = |failure: Refusal| (0..parts).map(|_| Err(failure.clone())).collect();
        let _place = match self.place(parts).await {
            Ok(place) => place,
            Err(failure) => return refuse(failure),
        };
        let pass = match self.engine.admit(self.clock.machine_ms()) {
            Ok(pass) => pass,
            Err(retry_ms) => return refuse(left_alone(retry_ms)),
        };
        let answers = match deadline {
            Some(deadline) => {
                tokio::time::timeout(deadline, read).await.map_err(|_| too_slow(deadline))
            }
            None => Ok(read.await),
        };
        // A call is one call, whatever number of ranges it reads: one large batch opens no breaker.
        let has_failed = match &answers {
            Ok(answers) => {
                let failed = answers
                    .iter()
                    .filter(|answer| answer.as_ref().is_err_and(is_of_the_engine))
                    .count();
                failed * 2 > parts
            }
            Err(_) => true,
        };
        self.engine.record(
            self.clock.machine_ms(),
            pass,
            u64::from(!has_failed),
            u64::from(has_failed),
        );
        match answers {
            Ok(answers) => {
                answers.into_iter().map(|answer| answer.map_err(Refusal::from)).collect()
            }
            Err(failure) => refuse(failure),
        }
    }

    /// A place among those that read. As many wait as may; others are told at once.
    async fn place(&self, parts: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let places = parts.min(self.options.reads_in_flight_max) as u32;
        if let Ok(place) = Arc::clone(&self.places).try_acquire_many_owned(places) {
            return Ok(place);
        }
        let waiting = Waiting::new(&self.waiting, parts);
        if waiting.all > self.options.reads_waiting_max {
            self.shed.increment(parts as u64);
            return Err(Refusal {
                code: Code::Overloaded,
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
    gate: Arc<Gate>,
    flights: Arc<Mutex<Flights>>,
}

impl Storage {
    pub fn new(buckets: Arc<dyn BucketReader>, gate: Arc<Gate>) -> Self {
        Self { buckets, gate, flights: Arc::default() }
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
    pub async fn alone<T>(
        &self,
        read: impl Future<Output = Result<T, buckets::Error>>,
    ) -> Result<T, Refusal> {
        let answers = self.gate.read(1, None, async { vec![read.await] }).await;
        answers.into_iter().next().unwrap_or_else(|| Err(lost()))
    }

    /// Joins the queries that are about to be read, and sets out with the others in rounds.
    fn join(&self, queries: Vec<Query>) -> Vec<Landing> {
        let mut landings = Vec::with_capacity(queries.len());
        let mut rounds = vec![self.round()];
        {
            let mut flights = self.flights.lock();
            for query in queries {
                let Query { generation, ref key, plan } = query;
                let work =
                    Work { generation, key: key.clone(), from_s: plan.from_s, to_s: plan.to_s };
                if let Some(landing) = flights.boarding.get(&work) {
                    self.gate.coalesced.increment(1);
                    landings.push(landing.clone());
                    continue;
                }

                if rounds.last().is_none_or(|round| round.queries.len() == ROUND_LEN_MAX) {
                    rounds.push(self.round());
                }
                let Some(round) = rounds.last_mut() else { unreachable!("there is a round") };
                round.before.extend(flights.begun.get(&work).cloned());
                let (sender, landing) = watch::channel(None);
                flights.boarding.insert(work.clone(), landing.clone());
                landings.push(landing.clone());
                round.works.push((work, landing));
                round.senders.push(sender);
                round.queries.push(query);
            }
        }
        for round in rounds.into_iter().filter(|round| !round.queries.is_empty()) {
            let (buckets, gate) = (Arc::clone(&self.buckets), Arc::clone(&self.gate));
            // On its own, so that those who joined get their answer even if the first one stops waiting.
            tokio::spawn(round.fly(buckets, gate));
        }
        landings
    }

    fn round(&self) -> Round {
        Round {
            flights: Arc::clone(&self.flights),
            works: Vec::new(),
            queries: Vec::new(),
            senders: Vec::new(),
            before: Vec::new(),
        }
    }
}

/// Waits until all have landed, but not for long: one that is slow holds up nobody else.
async fn wait_a_moment(before: Vec<Landing>) {
    let until = Instant::now() + SHARING_MAX;
    for mut landing in before {
        let _ = timeout_at(until, landing.wait_for(Option::is_some)).await;
    }
}

/// Takes its works out of the flights when it ends, however it ends.
struct Round {
    flights: Arc<Mutex<Flights>>,
    works: Vec<(Work, Landing)>,
    /// What each work reads, and who is told.
    queries: Vec<Query>,
    senders: Vec<watch::Sender<Option<Sum>>>,
    /// Reads of the same that began before.
    before: Vec<Landing>,
}

impl Round {
    /// Reads, and answers everybody who waits.
    async fn fly(mut self, buckets: Arc<dyn BucketReader>, gate: Arc<Gate>) {
        wait_a_moment(std::mem::take(&mut self.before)).await;
        let (queries, senders) =
            (std::mem::take(&mut self.queries), std::mem::take(&mut self.senders));
        let deadline = Some(gate.options.deadline);
        let read = async {
            self.begin();
            buckets.sums(queries).await
        };
        let sums = gate.read(senders.len(), deadline, read).await;
        drop(self);
        senders.into_iter().zip(sums).for_each(|(sender, sum)| drop(sender.send(Some(sum))));
    }

    /// From here on, whoever asks reads anew.
    fn begin(&self) {
        let mut flights = self.flights.lock();
        for (work, landing) in &self.works {
            flights.boarding.remove(work);
            flights.begun.insert(work.clone(), landing.clone());
        }
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        let mut flights = self.flights.lock();
        let Flights { boarding, begun } = &mut *flights;
        for (work, landing) in &self.works {
            for some in [&mut *boarding, &mut *begun] {
                if some.get(work).is_some_and(|found| found.same_channel(landing)) {
                    some.remove(work);
                }
            }
        }
    }
}

/// Whether an error says that the engine fails, and not that one answer is impossible.
fn is_of_the_engine(error: &buckets::Error) -> bool {
    matches!(error, buckets::Error::Io(_) | buckets::Error::Locked)
}

fn left_alone(retry_ms: i64) -> Refusal {
    let seconds = (retry_ms + 999) / 1_000;
    Refusal {
        code: Code::Unavailable,
        detail: format!(
            "the bucket store fails and is left alone: it is tried again in {seconds} s, and so may you"
        ),
    }
}

fn too_slow(deadline: Duration) -> Refusal {
    Refusal {
        code: Code::DeadlineExceeded,
        detail: format!(
            "storage took longer than {} ms: ask again, or for less at once",
            deadline.as_millis()
        ),
    }
}

fn lost() -> Refusal {
    Refusal {
        code: Code::Unavailable,
        detail: "the read ended without an answer: ask again".to_owned(),
    }
}

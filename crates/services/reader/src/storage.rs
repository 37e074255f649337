//! Reads of a bucket store, shared by all callers that ask for the same.
//!
//! ```text
//!   queries ──▶ about to be read? ──yes──▶ wait for it
//!                    └─no─▶ being read? ─▶ gate ─▶ one round of reads ─▶ every caller that waits
//!                            └─ wait a moment
//! ```
//!
//! A read that has begun may have missed what was counted since. A caller that comes later does not
//! join it, or its answer could be older than one that another caller has already seen.

use crate::gate::Gate;
use crate::refusal::{lost, too_slow};
use parking_lot::Mutex;
use raingauge_core::code::Refusal;
use raingauge_ports::buckets::{self, BucketReader, Generation, Query};
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

type Sum = Result<i128, Refusal>;

/// Most ranges of one round. A larger batch is read in several rounds at once, each with places of
/// its own at the gate.
const ROUND_LEN_MAX: usize = 64;
/// How long a read waits for an earlier one of the same range, so that all callers that come in the
/// meantime share it.
const SHARING_MAX: Duration = Duration::from_millis(20);

/// The time until which a caller waits.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    until: Instant,
    /// The time that there was at the beginning.
    whole: Duration,
}

impl Deadline {
    pub fn after(whole: Duration) -> Self {
        Self { until: Instant::now() + whole, whole }
    }

    /// Half of the time that there was.
    pub fn half(self) -> Duration {
        self.whole / 2
    }
}

/// What is read. Queries with the same work share one read.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Work {
    generation: Generation,
    key: String,
    from_s: i64,
    to_s: i64,
}

type Landing = watch::Receiver<Option<Sum>>;

/// The reads that are under way, by what they read.
#[derive(Default)]
struct Flights {
    /// Reads that have not begun: others who want the same join them.
    boarding: HashMap<Work, Landing>,
    /// Reads that have begun, the newest of each.
    begun: HashMap<Work, Landing>,
}

/// A bucket store, or the engine that keeps its tiles in memory, behind the gate.
pub struct Storage {
    pub buckets: Arc<dyn BucketReader>,
    gate: Arc<Gate>,
    flights: Arc<Mutex<Flights>>,
    coalesced: metrics::Counter,
}

impl Storage {
    pub fn new(buckets: Arc<dyn BucketReader>, gate: Arc<Gate>) -> Self {
        let coalesced = metrics::counter!("raingauge_reads_coalesced_total");
        Self { buckets, gate, flights: Arc::default(), coalesced }
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

    /// One read by itself, of what few callers ask for. It may take as long as its caller waits.
    pub async fn alone<T>(
        &self,
        read: impl Future<Output = Result<T, buckets::Error>>,
    ) -> Result<T, Refusal> {
        let answers = self.gate.read(1, None, async { vec![read.await] }).await;
        answers.into_iter().next().unwrap_or_else(|| Err(lost()))
    }

    /// Joins the reads that have not begun, and starts rounds for the other queries.
    fn join(&self, queries: Vec<Query>) -> Vec<Landing> {
        let mut landings = Vec::with_capacity(queries.len());
        let mut rounds = Vec::new();
        {
            let mut flights = self.flights.lock();
            for query in queries {
                let work = Work::of(&query);
                if let Some(landing) = flights.boarding.get(&work) {
                    self.coalesced.increment(1);
                    landings.push(landing.clone());
                    continue;
                }

                if rounds.last().is_none_or(Round::is_full) {
                    rounds.push(Round::new(&self.flights));
                }

                if let Some(round) = rounds.last_mut() {
                    landings.push(round.add(&mut flights, work, query));
                }
            }
        }

        for round in rounds {
            // A task of its own, so that others get their answer even if the first caller leaves.
            tokio::spawn(round.fly(Arc::clone(&self.buckets), Arc::clone(&self.gate)));
        }

        landings
    }
}

impl Work {
    fn of(Query { generation, key, plan }: &Query) -> Self {
        let key = key.clone();
        Self { generation: *generation, key, from_s: plan.from_s, to_s: plan.to_s }
    }
}

/// Waits until all have landed, but only for a moment: a slow one holds up no other.
async fn wait_a_moment(before: Vec<Landing>) {
    let until = Instant::now() + SHARING_MAX;
    for mut landing in before {
        let _ = timeout_at(until, landing.wait_for(Option::is_some)).await;
    }
}

/// Queries that are read together. Removes its works from the flights when it ends, however it
/// ends.
struct Round {
    flights: Arc<Mutex<Flights>>,
    works: Vec<(Work, Landing)>,
    /// What is read for each work, and the sender of its sum.
    queries: Vec<Query>,
    senders: Vec<watch::Sender<Option<Sum>>>,
    /// Earlier reads of the same works.
    before: Vec<Landing>,
}

impl Round {
    fn new(flights: &Arc<Mutex<Flights>>) -> Self {
        Self {
            flights: Arc::clone(flights),
            works: Vec::new(),
            queries: Vec::new(),
            senders: Vec::new(),
            before: Vec::new(),
        }
    }

    fn is_full(&self) -> bool {
        self.queries.len() == ROUND_LEN_MAX
    }

    /// Takes a query in, and lets others with the same work join it from now on.
    fn add(&mut self, flights: &mut Flights, work: Work, query: Query) -> Landing {
        let (sender, landing) = watch::channel(None);
        self.before.extend(flights.begun.get(&work).cloned());
        flights.boarding.insert(work.clone(), landing.clone());

        self.works.push((work, landing.clone()));
        self.senders.push(sender);
        self.queries.push(query);
        landing
    }

    /// Reads, and sends every sum to the callers that wait for it.
    async fn fly(mut self, buckets: Arc<dyn BucketReader>, gate: Arc<Gate>) {
        wait_a_moment(std::mem::take(&mut self.before)).await;

        let queries = std::mem::take(&mut self.queries);
        let senders = std::mem::take(&mut self.senders);
        let read = async {
            self.begin();
            buckets.sums(queries).await
        };
        let sums = gate.read_in_time(senders.len(), read).await;

        drop(self);
        senders.into_iter().zip(sums).for_each(|(sender, sum)| drop(sender.send(Some(sum))));
    }

    /// From now on, callers that ask for the same start another read.
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
            for reads in [&mut *boarding, &mut *begun] {
                if reads.get(work).is_some_and(|found| found.same_channel(landing)) {
                    reads.remove(work);
                }
            }
        }
    }
}

//! The clients: producers of events, clients that query counts, and an editor of counters.

use super::model::{Model, Names, Ride, Span, only_grows, random_key};
use super::samples::{Door, Samples};
use crate::http::client::Client;
use crate::http::{JSON, NDJSON, Target};
use anyhow::{Context, Result, bail};
use parking_lot::{Mutex, MutexGuard};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const BATCH_EVENTS: usize = 20;
/// Probability that an event is sent twice on purpose, in addition to repeated batches.
const DUPLICATE_PROBABILITY: f64 = 0.05;
const BATCH_AGAIN_PROBABILITY: f64 = 0.02;
/// Probability that a batch is acknowledged only once it is counted: from then on, every reader
/// must include it.
const WAITED_FOR_PROBABILITY: f64 = 0.1;
/// Number of recent lines from which repetitions are chosen.
const RECENT_LINES: usize = 4_000;
/// Maximum number of unacknowledged batches; above it a producer creates no new events.
const BACKLOG_MAX: usize = 200;
const EVENTS_TIMEOUT: Duration = Duration::from_secs(6);
const COUNTS_TIMEOUT: Duration = Duration::from_secs(4);
const CHANGE_TIMEOUT: Duration = Duration::from_secs(12);
const CHANGE_INTERVAL: Duration = Duration::from_secs(3);
/// Probability that a change is a backfill, and that another change alters the retention.
const BACKFILL_PROBABILITY: f64 = 0.3;
const RETENTION_PROBABILITY: f64 = 0.3;
const REST: Duration = Duration::from_millis(100);
const RANGES: usize = 4;

/// The processes that clients use, by their index in the samples.
pub struct Places {
    pub writers: Vec<(usize, Target)>,
    pub readers: Vec<(usize, Target)>,
    pub portal: (usize, Target),
}

pub struct Traffic {
    pub names: Names,
    pub places: Places,
    pub samples: Samples,
    pub model: Mutex<Model>,
    pub span: Span,
    /// Whether new events are produced.
    pub producing: AtomicBool,
    pub ending: AtomicBool,
    /// Batches that are not acknowledged yet.
    pub backlog: AtomicUsize,
    pub sent: SentTotals,
    /// The largest count that each reader returned for keys that never decrease, over the whole
    /// span.
    grown: Mutex<HashMap<(usize, String), i64>>,
    /// Events acknowledged as counted: every reader must include them.
    counted: Mutex<Model>,
    /// Counts that no order of events explains.
    pub impossible: Mutex<Vec<String>>,
    /// The last failure of each process, for the error of a timed-out wait.
    failures: Mutex<BTreeMap<usize, String>>,
    events_per_s: f64,
    counts_per_s: f64,
}

/// Everything that the clients sent.
#[derive(Debug, Default, Serialize)]
pub struct Totals {
    pub events: u64,
    pub events_late: u64,
    /// Events that were repeated on purpose. Repetitions of unacknowledged events are not included.
    pub events_repeated: u64,
    pub changes: u64,
    /// Backfills that were started or joined.
    pub backfills: u64,
}

#[derive(Default)]
pub struct SentTotals {
    pub events: AtomicU64,
    pub late: AtomicU64,
    pub repeated: AtomicU64,
    pub acknowledged_batches: AtomicU64,
    pub changes: AtomicU64,
    pub backfills: AtomicU64,
}

impl SentTotals {
    pub fn totals(&self) -> Totals {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            events: number(&self.events),
            events_late: number(&self.late),
            events_repeated: number(&self.repeated),
            changes: number(&self.changes),
            backfills: number(&self.backfills),
        }
    }
}

struct Batch {
    body: Vec<u8>,
    events: u64,
    /// The new events of the batch, and whether it waits until they are counted.
    rides: Vec<Ride>,
    is_waited_for: bool,
}

/// Persistent connections, one per process.
#[derive(Default)]
struct Connections {
    open: HashMap<usize, Client>,
}

impl Connections {
    /// Returns the body of a successful answer. A connection that failed is not reused.
    fn call(
        &mut self,
        process: usize,
        target: &Target,
        timeout: Duration,
        (kind, method, path): (&str, &str, &str),
        body: &[u8],
    ) -> Result<Vec<u8>> {
        let mut client = match self.open.remove(&process) {
            Some(client) => client,
            None => Client::connect_within(target, timeout)?,
        };
        let answer = client.call_with(kind, method, path, body)?;
        if !matches!(answer.status, 200..=202) {
            bail!("{method} {path} answered {}: {}", answer.status, answer.text());
        }
        self.open.insert(process, client);
        Ok(answer.body)
    }
}

impl Traffic {
    pub fn new(
        names: Names,
        places: Places,
        span: Span,
        events_per_s: f64,
        counts_per_s: f64,
    ) -> Self {
        let processes = places.writers.len() + places.readers.len() + 1;
        Self {
            names,
            places,
            samples: Samples::new(processes),
            model: Mutex::default(),
            span,
            producing: AtomicBool::new(true),
            ending: AtomicBool::new(false),
            backlog: AtomicUsize::new(0),
            sent: SentTotals::default(),
            grown: Mutex::default(),
            counted: Mutex::default(),
            impossible: Mutex::default(),
            failures: Mutex::default(),
            events_per_s,
            counts_per_s,
        }
    }

    pub fn writers(&self) -> Vec<&Target> {
        self.places.writers.iter().map(|(_, target)| target).collect()
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    fn note_failure(&self, process: usize, error: &anyhow::Error) {
        let line = format!("{} s: {error:#}", self.samples.now_ms() / 1_000);
        self.failures.lock().insert(process, line);
    }

    pub fn last_failures(&self) -> String {
        let failures = self.failures.lock();
        failures
            .iter()
            .map(|(process, line)| format!("[{process}] {line}"))
            .collect::<Vec<_>>()
            .join("; ")
    }

    pub fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock()
    }

    fn counted(&self) -> MutexGuard<'_, Model> {
        self.counted.lock()
    }

    /// Produces events and sends each batch until one of the writers acknowledges it.
    pub fn produce(&self, number: u64, producers: usize, seed: u64) {
        let mut random =
            StdRng::seed_from_u64(seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut producer = Producer {
            number,
            made: 0,
            recent: VecDeque::new(),
            connections: Connections::default(),
        };

        let mut backlog: VecDeque<Batch> = VecDeque::new();
        let interval =
            Duration::from_secs_f64((producers * BATCH_EVENTS) as f64 / self.events_per_s);
        let mut next = Instant::now();

        while !self.is_ending() {
            if Instant::now() >= next && backlog.len() < BACKLOG_MAX {
                // Increased before the check, so that a wait for the backlog after the end of
                // production misses no batch.
                self.backlog.fetch_add(1, Ordering::SeqCst);

                if self.producing.load(Ordering::SeqCst) {
                    backlog.push_back(producer.make(self, &mut random));
                } else {
                    self.backlog.fetch_sub(1, Ordering::SeqCst);
                }

                // A delayed producer does not make up for all the lost time at once.
                next = (next + interval).max(Instant::now() - interval * 4);
            }

            let Some(mut batch) = backlog.pop_front() else {
                std::thread::sleep(
                    next.saturating_duration_since(Instant::now())
                        .clamp(Duration::from_millis(1), REST),
                );
                continue;
            };

            if producer.send(self, &mut batch, &mut random) {
                if random.random_bool(BATCH_AGAIN_PROBABILITY) {
                    self.sent.repeated.fetch_add(batch.events, Ordering::Relaxed);
                    backlog.push_back(batch);
                } else {
                    self.backlog.fetch_sub(1, Ordering::SeqCst);
                }
            } else {
                backlog.push_back(batch);
                std::thread::sleep(REST);
            }
        }
    }

    /// Queries counts, first at one reader, then at the other.
    pub fn ask(&self, number: u64, askers: usize, seed: u64) {
        let mut random =
            StdRng::seed_from_u64(seed ^ (number + 101).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut connections = Connections::default();
        let interval = Duration::from_secs_f64(askers as f64 / self.counts_per_s);
        while !self.is_ending() {
            let began = Instant::now();
            self.ask_once(&mut connections, &mut random);
            std::thread::sleep(interval.saturating_sub(began.elapsed()));
        }
    }

    fn ask_once(&self, connections: &mut Connections, random: &mut StdRng) {
        let key = random_key(&self.names, random);
        let counted = self.counted().count(&key, self.span.from_s, self.span.to_s);
        let mut requests =
            vec![json!({ "key": key, "fromTime": self.span.from_s, "toTime": self.span.to_s })];

        for _ in 1..RANGES {
            let (from_s, to_s) = self.span.random_range(random);
            requests.push(json!({ "key": random_key(&self.names, random), "fromTime": from_s, "toTime": to_s }));
        }

        let body = json!({ "requests": requests }).to_string().into_bytes();
        let began_ms = self.samples.now_ms();
        let mut failed = 0;

        for (process, target) in shuffled(&self.places.readers, random) {
            let grown = self.grown.lock().get(&(*process, key.clone())).copied();

            let call = connections.call(
                *process,
                target,
                COUNTS_TIMEOUT,
                (JSON, "POST", "/v1/counts"),
                &body,
            );

            match call.and_then(|body| counts_of(&body, RANGES)) {
                Ok(counts) => {
                    self.samples.note_answer(*process, began_ms);
                    self.samples.add(Door::Counts, began_ms, failed, true);
                    return self.check_bounds(
                        (*process, key),
                        counts[0],
                        grown.unwrap_or(0).max(counted),
                    );
                }
                Err(error) => {
                    self.note_failure(*process, &error);
                    failed += 1;
                }
            }
        }

        self.samples.add(Door::Counts, began_ms, failed, false);
        std::thread::sleep(REST);
    }

    /// During the run, a count is at most the sum of the events sent, and at least what the same
    /// reader returned, or a writer acknowledged as counted, before the query.
    fn check_bounds(&self, (reader, key): (usize, String), count: i64, least: i64) {
        if !only_grows(&self.names, &key) {
            return;
        }
        let most = self.model().count(&key, self.span.from_s, self.span.to_s);
        if !(least..=most).contains(&count) {
            let at_s = self.samples.now_ms() / 1_000;
            let line = format!("{at_s} s: {key} was {count}, which is not in {least}..={most}");
            eprintln!("faults: IMPOSSIBLE {line}");
            self.impossible.lock().push(line);
        }

        let mut grown = self.grown.lock();
        let seen = grown.entry((reader, key)).or_insert(count);
        *seen = (*seen).max(count);
    }

    /// Edits one counter after another: new versions, sent to every partition, that count the same.
    /// It changes the description, or the retention (always longer than a run), or backfills the
    /// counter from the log.
    pub fn edit(&self, counters: &[Value], seed: u64) {
        let mut random = StdRng::seed_from_u64(seed ^ 0x0ed1);
        let mut connections = Connections::default();
        let (process, target) = &self.places.portal;

        while !self.is_ending() {
            let Some(counter) = counters.choose(&mut random) else {
                return;
            };
            let mut changed = counter.clone();
            changed["description"] = json!(format!("edited at {} ms", self.samples.now_ms()));

            if random.random_bool(RETENTION_PROBABILITY) {
                changed["retentionDays"] = json!({ "quarter": 300, "hour": 500, "day": 700 });
            }
            let is_backfill = random.random_bool(BACKFILL_PROBABILITY);
            let (method, path) = if is_backfill {
                ("POST", format!("/v1/counters/{}/backfill", counter["id"]))
            } else {
                ("PUT", format!("/v1/counters/{}", counter["id"]))
            };

            let began_ms = self.samples.now_ms();
            let call = connections.call(
                *process,
                target,
                CHANGE_TIMEOUT,
                (JSON, method, &path),
                changed.to_string().as_bytes(),
            );

            match &call {
                Ok(_) => {
                    self.samples.note_answer(*process, began_ms);
                    let sent = if is_backfill { &self.sent.backfills } else { &self.sent.changes };
                    sent.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => self.note_failure(*process, error),
            }

            self.samples.add(Door::Changes, began_ms, u32::from(call.is_err()), call.is_ok());
            let next = Instant::now() + CHANGE_INTERVAL;
            while Instant::now() < next && !self.is_ending() {
                std::thread::sleep(REST);
            }
        }
    }
}

struct Producer {
    number: u64,
    made: u64,
    recent: VecDeque<String>,
    connections: Connections,
}

impl Producer {
    /// Makes a batch of new events, which are added to the model, and repeated ones.
    fn make(&mut self, traffic: &Traffic, random: &mut StdRng) -> Batch {
        let now_s = crate::now_s();
        let is_waited_for = random.random_bool(WAITED_FOR_PROBABILITY);
        let mut batch = Batch { body: Vec::new(), events: 0, rides: Vec::new(), is_waited_for };

        for _ in 0..BATCH_EVENTS {
            if !self.recent.is_empty() && random.random_bool(DUPLICATE_PROBABILITY) {
                let line = &self.recent[random.random_range(0..self.recent.len())];
                batch.body.extend_from_slice(line.as_bytes());
                batch.events += 1;
                traffic.sent.repeated.fetch_add(1, Ordering::Relaxed);
            }

            let ride = Ride::random(format!("{}-{}", self.number, self.made), now_s, random);
            self.made += 1;
            traffic.model().add(&traffic.names, &ride);
            traffic.sent.events.fetch_add(1, Ordering::Relaxed);
            traffic.sent.late.fetch_add(u64::from(ride.is_late), Ordering::Relaxed);

            let line = ride.line(&traffic.names);
            batch.body.extend_from_slice(line.as_bytes());
            batch.events += 1;
            batch.rides.push(ride);
            self.recent.push_back(line);
        }

        let surplus = self.recent.len().saturating_sub(RECENT_LINES);
        self.recent.drain(..surplus);
        batch
    }

    /// Returns whether a writer acknowledged every event of the batch.
    fn send(&mut self, traffic: &Traffic, batch: &mut Batch, random: &mut StdRng) -> bool {
        let began_ms = traffic.samples.now_ms();
        let mut failed = 0;
        for (process, target) in shuffled(&traffic.places.writers, random) {
            let path = if batch.is_waited_for { "/v1/events?wait=applied" } else { "/v1/events" };
            let asked = (NDJSON, "POST", path);
            let call = self.connections.call(*process, target, EVENTS_TIMEOUT, asked, &batch.body);
            match call.and_then(|body| check_receipt(&body, batch.events)) {
                Ok(()) => {
                    traffic.samples.note_answer(*process, began_ms);
                    batch.note(traffic, began_ms, failed, true);
                    traffic.sent.acknowledged_batches.fetch_add(1, Ordering::Relaxed);

                    if batch.is_waited_for {
                        // Repetitions are not counted again.
                        let mut counted = traffic.counted();
                        std::mem::take(&mut batch.rides)
                            .iter()
                            .for_each(|ride| counted.add(&traffic.names, ride));
                    }

                    return true;
                }
                Err(error) => {
                    traffic.note_failure(*process, &error);
                    failed += 1;
                }
            }
        }

        batch.note(traffic, began_ms, failed, false);
        false
    }
}

impl Batch {
    /// Records the outcome at the door. A wait for the counting also involves other processes, so
    /// it is not recorded as a sample.
    fn note(&self, traffic: &Traffic, began_ms: u64, failed: u32, is_done: bool) {
        if !self.is_waited_for {
            traffic.samples.add(Door::Events, began_ms, failed, is_done);
        }
    }
}

fn shuffled<'a>(
    places: &'a [(usize, Target)],
    random: &mut StdRng,
) -> impl Iterator<Item = &'a (usize, Target)> {
    let first = random.random_range(0..places.len());
    places.iter().cycle().skip(first).take(places.len())
}

/// Every event must be accepted or a duplicate; a rejected event is an error of this program.
fn check_receipt(body: &[u8], events: u64) -> Result<()> {
    let receipt: Value = serde_json::from_slice(body).context("the receipt is not JSON")?;
    if receipt["code"] == "not_applied_yet" {
        bail!("not counted in time: {receipt}");
    }
    let number = |name: &str| receipt[name].as_u64().unwrap_or(0);
    if number("accepted") + number("duplicates") != events {
        bail!("of {events} events: {receipt}");
    }
    Ok(())
}

pub fn counts_of(body: &[u8], expected: usize) -> Result<Vec<i64>> {
    let answer: Value = serde_json::from_slice(body).context("the answer is not JSON")?;
    let results = answer["results"].as_array().context("an answer without results")?;
    if results.len() != expected {
        bail!("{} results for {expected} ranges", results.len());
    }
    results
        .iter()
        .map(|result| result["count"].as_i64().with_context(|| format!("no count: {result}")))
        .collect()
}

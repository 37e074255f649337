//! Group commit: one thread takes all waiting requests, drops duplicates, writes one block, and
//! answers when it is durable.
//!
//! While a block is on its way to the disk the next group gathers, so a slow disk makes larger
//! groups rather than longer queues. A block that does not fit on the disk is taken back, and its
//! requests may be repeated. A sync that fails closes the log for good: what the disk holds is
//! unknown until the log is opened again.

use super::acknowledged::Acknowledged;
use super::identities::{Identities, LOOKUPS_TOGETHER};
use super::run::RunsNow;
use super::segment::{BLOCK_HEADER_LEN, PAYLOAD_LEN_MAX};
use super::segments::{Failure, Segments};
use crate::clock::LogClock;
use parking_lot::{Condvar, Mutex};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{Appended, Batch, Error, Offset};
use raingauge_ports::record::{Identity, push_control};
use std::collections::VecDeque;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Bytes of entries after which a group is closed.
const GROUP_BYTES: usize = 8 << 20;
/// Most bytes of a control entry besides its payload.
const CONTROL_OVERHEAD: usize = 16;
/// Retry delay given to a caller when the queue is full.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub enum Request {
    Events(Batch, Lookup),
    Control(Vec<u8>),
}

/// What the runs of identities know about a batch, found out before it enters the queue. Reading
/// them inside the queue would delay every request.
#[derive(Default)]
pub struct Lookup {
    /// The offset before which the runs were searched.
    pub to: Offset,
    /// Indices of the events in the batch whose identities the runs hold, in order.
    pub duplicates: Vec<usize>,
}

impl Lookup {
    /// Searches the runs for the identities of a batch. Reads the disk.
    pub fn of(batch: &Batch, runs: &RunsNow) -> io::Result<Self> {
        let mut duplicates = Vec::new();
        for (place, (_, identity)) in batch.entries.iter().enumerate() {
            if runs.contains(*identity, 0)? {
                duplicates.push(place);
            }
        }
        Ok(Self { to: runs.to(), duplicates })
    }
}

impl Request {
    fn bytes(&self) -> usize {
        match self {
            Self::Events(batch, _) => batch.bytes.len(),
            Self::Control(payload) => payload.len() + CONTROL_OVERHEAD,
        }
    }
}

type Answer = oneshot::Sender<Result<Appended, Error>>;
/// Receives the answer to a request.
pub type Answered = oneshot::Receiver<Result<Appended, Error>>;

pub struct Appender {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

struct Queue {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    bytes_max: usize,
    remembered_to: AtomicU64,
}

#[derive(Default)]
pub struct Waiting {
    requests: VecDeque<(Request, Answer)>,
    bytes: usize,
    /// Why no more requests are accepted.
    closed: Option<String>,
}

impl Appender {
    pub fn start(committer: Committer, queue_bytes_max: usize) -> Result<Self, Error> {
        let queue = Arc::new(Queue {
            waiting: Mutex::default(),
            wake: Condvar::new(),
            bytes_max: queue_bytes_max,
            remembered_to: AtomicU64::new(committer.known.sealed_to()),
        });
        let thread = CommitThread { committer, queue: Arc::clone(&queue) };
        let thread = std::thread::Builder::new()
            .name("log-appender".to_owned())
            .spawn(move || thread.run())?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Queues a request. The answer arrives when the request is durable.
    pub fn send(&self, request: Request) -> Result<Answered, Error> {
        if request.bytes() > PAYLOAD_LEN_MAX {
            return Err(Error::TooLarge { bytes: request.bytes(), bytes_max: PAYLOAD_LEN_MAX });
        }
        let mut waiting = self.queue.waiting.lock();
        if let Some(reason) = &waiting.closed {
            return Err(Error::Closed(reason.clone()));
        }

        if waiting.bytes > 0 && waiting.bytes + request.bytes() > self.queue.bytes_max {
            return Err(Error::Busy { retry_after: RETRY_AFTER });
        }
        let receiver = waiting.push(request);
        drop(waiting);
        self.queue.wake.notify_one();

        Ok(receiver)
    }

    /// Whether requests are accepted.
    pub fn check(&self) -> Result<(), Error> {
        match &self.queue.waiting.lock().closed {
            Some(reason) => Err(Error::Closed(reason.clone())),
            None => Ok(()),
        }
    }

    /// Identities of entries before this offset are stored apart from the log.
    pub fn remembered_to(&self) -> Offset {
        self.queue.remembered_to.load(Ordering::Acquire)
    }
}

impl Queue {
    /// Accepts no more requests, and refuses those that wait.
    fn close(&self, reason: &str) {
        tracing::error!(%reason, "the event log failed and takes no more events");
        let mut waiting = self.waiting.lock();
        waiting.closed = Some(reason.to_owned());
        for (_, answer) in std::mem::take(&mut waiting.requests) {
            let _ = answer.send(Err(Error::Closed(reason.to_owned())));
        }
    }
}

impl Drop for Appender {
    /// Writes what is queued, then ends the thread.
    fn drop(&mut self) {
        self.queue.waiting.lock().closed.get_or_insert_with(|| "raingauge is stopping".to_owned());
        self.queue.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread that takes groups from the queue.
struct CommitThread {
    committer: Committer,
    queue: Arc<Queue>,
}

impl CommitThread {
    fn run(mut self) {
        let ran = std::panic::catch_unwind(AssertUnwindSafe(|| self.take_groups()));
        match ran {
            Ok(None) => {}
            Ok(Some(error)) => self.queue.close(&error.to_string()),
            Err(_) => self.queue.close("its thread panicked, which is a defect of raingauge"),
        }
    }

    /// Returns why the log has to be closed, or `None` when it was asked to stop.
    fn take_groups(&mut self) -> Option<io::Error> {
        while let Some(group) = self.next_group() {
            let (requests, answers): (Vec<Request>, Vec<Answer>) = group.into_iter().unzip();
            match self.committer.commit(requests) {
                Ok(results) => answers.into_iter().zip(results).for_each(|(answer, result)| {
                    // The caller may be gone; the events are in the log all the same.
                    let _ = answer.send(Ok(result));
                }),
                Err(Failure::NotTaken(error)) => {
                    tracing::warn!(%error, "the event log could not be written; nothing of the group was taken");
                    for answer in answers {
                        let _ = answer.send(Err(Error::NotTaken(error.to_string())));
                    }
                }
                Err(Failure::Broken(error)) => {
                    for answer in answers {
                        let _ = answer.send(Err(Error::Closed(error.to_string())));
                    }
                    return Some(error);
                }
            }

            self.queue.remembered_to.store(self.committer.known.sealed_to(), Ordering::Release);
        }
        None
    }

    /// Waits for requests and takes as many as make a group; `None` when the log is closed and the
    /// queue is empty.
    fn next_group(&self) -> Option<Vec<(Request, Answer)>> {
        let mut waiting = self.queue.waiting.lock();
        while waiting.requests.is_empty() {
            if waiting.closed.is_some() {
                return None;
            }
            self.queue.wake.wait(&mut waiting);
        }
        Some(waiting.take_group(PAYLOAD_LEN_MAX))
    }
}

impl Waiting {
    pub fn push(&mut self, request: Request) -> Answered {
        let (sender, receiver) = oneshot::channel();
        self.bytes += request.bytes();
        self.requests.push_back((request, sender));
        receiver
    }

    /// Takes requests for one group, which has at most `bytes_max` bytes.
    pub fn take_group(&mut self, bytes_max: usize) -> Vec<(Request, Answer)> {
        let mut group = Vec::new();
        let mut bytes = 0;
        while bytes < GROUP_BYTES
            && let Some((request, _)) = self.requests.front()
            && (group.is_empty() || bytes + request.bytes() <= bytes_max)
        {
            bytes += request.bytes();
            group.extend(self.requests.pop_front());
        }
        self.bytes -= bytes;
        group
    }
}

/// Turns requests into blocks and writes them. It has no thread of its own.
pub struct Committer {
    pub segments: Arc<Segments>,
    pub known: Identities,
    pub acknowledged: Acknowledged,
    pub clock: Arc<LogClock>,
    /// From here on there are only events.
    pub events_from: Arc<AtomicU64>,
    /// The block being built. Its memory is reused.
    pub block: Vec<u8>,
    /// Whether the block has a control entry.
    pub has_control: bool,
    /// The new identities in the block.
    pub fresh: Vec<Identity>,
}

impl Committer {
    /// Drops duplicates, writes the new events as one block and waits until it is durable.
    pub fn commit(&mut self, requests: Vec<Request>) -> Result<Vec<Appended>, Failure> {
        self.block.clear();
        self.block.resize(BLOCK_HEADER_LEN, 0);
        self.fresh.clear();
        self.has_control = false;

        let written =
            self.take_all(requests).map_err(Failure::NotTaken).and_then(|(results, count)| {
                let end = if count > 0 { Some(self.write(count)?) } else { None };
                Ok((results, end))
            });

        let (mut results, end) = match written {
            Ok(written) => written,
            Err(failure) => {
                // They are not in the log, so they must be accepted when they are sent again.
                self.known.forget(&self.fresh);
                return Err(failure);
            }
        };

        if let Some(end) = end {
            self.acknowledged.note(end);
            self.known.seal_when_full(end, self.segments.appended_ms());
            self.report();
        }

        let end = self.segments.end();
        results.iter_mut().for_each(|result| result.ends = vec![(0, end)]);
        Ok(results)
    }

    fn take_all(&mut self, requests: Vec<Request>) -> io::Result<(Vec<Appended>, usize)> {
        let mut results = Vec::with_capacity(requests.len());
        let mut count = 0;
        for request in requests {
            let result = self.take(request)?;
            count += result.accepted;
            results.push(result);
        }
        Ok((results, count))
    }

    /// Copies the new events of a request into the block.
    fn take(&mut self, request: Request) -> io::Result<Appended> {
        let mut result = Appended { accepted: 0, duplicates: 0, ends: Vec::new() };
        match request {
            Request::Control(payload) => {
                push_control(&payload, &mut self.block);
                self.has_control = true;
                result.accepted = 1;
            }
            Request::Events(batch, lookup) => {
                let mut begin = 0;
                let mut told = lookup.duplicates.into_iter().peekable();
                let mut held = [false; LOOKUPS_TOGETHER];

                for (place, (end, identity)) in batch.entries.iter().enumerate() {
                    if place % LOOKUPS_TOGETHER == 0 {
                        held = self.known.held(&batch.entries[place..]);
                    }
                    let is_duplicate =
                        told.next_if_eq(&place).is_some() || held[place % LOOKUPS_TOGETHER];
                    if !is_duplicate && self.known.insert(*identity, lookup.to)? {
                        self.fresh.push(*identity);
                        self.block.extend_from_slice(&batch.bytes[begin..*end]);
                        result.accepted += 1;
                    } else {
                        result.duplicates += 1;
                    }

                    begin = *end;
                }
            }
        }

        Ok(result)
    }

    fn write(&mut self, count: usize) -> Result<Offset, Failure> {
        // The machine's clock may be set back; the log's time never goes back.
        let appended_ms = self.clock.now_ms().max(self.segments.appended_ms());
        if self.has_control {
            // Before a reader can see the entry. After a failure there is nothing to pass over.
            self.events_from.store(self.segments.end() + count as Offset, Ordering::Release);
        }
        let end = self.segments.write(&mut self.block, count as u32, appended_ms)?.end;
        self.clock.appended(appended_ms);
        Ok(end)
    }

    fn report(&self) {
        metrics::gauge!("raingauge_log_end_offset").set(self.segments.end() as f64);
        metrics::gauge!("raingauge_log_bytes").set(self.segments.bytes() as f64);
        metrics::gauge!("raingauge_dedupe_ids").set(self.known.len() as f64);
        if let Some(oldest_ms) = self.known.oldest_ms() {
            metrics::gauge!("raingauge_dedupe_window_seconds")
                .set((self.clock.now_ms() - oldest_ms) as f64 / 1e3);
        }
    }
}

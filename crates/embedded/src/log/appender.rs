//! Group commit: one thread takes all that waits, tells duplicates, writes one block, and answers when it is durable.
//!
//! While a block is on its way to the disk the next group gathers, so that a slow disk makes larger groups and not
//! longer queues. A write that fails closes the log for good: what the disk holds is unknown until it is opened again.

use super::Options;
use super::acknowledged::Acknowledged;
use super::known::Known;
use super::segment::{BLOCK_HEADER_LEN, seal_block};
use super::segments::Segments;
use parking_lot::{Condvar, Mutex};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{Appended, Batch, Error, Offset};
use raingauge_ports::record::push_control;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Bytes of entries after which a group is closed.
const GROUP_BYTES: usize = 8 << 20;
/// What a caller is told to wait when the queue is full.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub enum Request {
    Events(Batch),
    Control(Vec<u8>),
}

impl Request {
    fn bytes(&self) -> usize {
        match self {
            Self::Events(batch) => batch.bytes.len(),
            Self::Control(payload) => payload.len(),
        }
    }
}

type Answer = oneshot::Sender<Result<Appended, Error>>;

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
struct Waiting {
    requests: VecDeque<(Request, Answer)>,
    bytes: usize,
    /// Why nothing is taken any more.
    closed: Option<String>,
}

impl Appender {
    pub fn start(
        segments: Arc<Segments>,
        known: Known,
        acknowledged: Acknowledged,
        clock: Arc<dyn Clock>,
        options: &Options,
    ) -> Result<Self, Error> {
        let queue = Arc::new(Queue {
            waiting: Mutex::default(),
            wake: Condvar::new(),
            bytes_max: options.queue_bytes_max,
            remembered_to: AtomicU64::new(known.sealed_to()),
        });
        let worker = Worker { segments, known, acknowledged, clock, queue: Arc::clone(&queue), block: Vec::new() };
        let guarded = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("log-appender".to_owned()).spawn(move || {
            if std::panic::catch_unwind(AssertUnwindSafe(|| worker.run())).is_err() {
                guarded.close("its appender panicked, which is a defect of raingauge", Vec::new());
            }
        })?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Puts a request into the queue; the answer comes when it is durable.
    pub fn send(&self, request: Request) -> Result<oneshot::Receiver<Result<Appended, Error>>, Error> {
        let mut waiting = self.queue.waiting.lock();
        if let Some(reason) = &waiting.closed {
            return Err(Error::Closed(reason.clone()));
        }
        if waiting.bytes > 0 && waiting.bytes + request.bytes() > self.queue.bytes_max {
            return Err(Error::Busy { retry_after: RETRY_AFTER });
        }
        let (sender, receiver) = oneshot::channel();
        waiting.bytes += request.bytes();
        waiting.requests.push_back((request, sender));
        drop(waiting);
        self.queue.wake.notify_one();
        Ok(receiver)
    }

    /// Whether requests are taken.
    pub fn check(&self) -> Result<(), Error> {
        match &self.queue.waiting.lock().closed {
            Some(reason) => Err(Error::Closed(reason.clone())),
            None => Ok(()),
        }
    }

    /// Identities of entries before this offset are kept apart from the log.
    pub fn remembered_to(&self) -> Offset {
        self.queue.remembered_to.load(Ordering::Acquire)
    }
}

impl Queue {
    /// Takes no more requests, and refuses those that wait and those at hand.
    fn close(&self, reason: &str, at_hand: Vec<Answer>) {
        tracing::error!(%reason, "the event log failed and takes no more events");
        let mut waiting = self.waiting.lock();
        waiting.closed = Some(reason.to_owned());
        let left = std::mem::take(&mut waiting.requests);
        for answer in at_hand.into_iter().chain(left.into_iter().map(|(_, answer)| answer)) {
            let _ = answer.send(Err(Error::Closed(reason.to_owned())));
        }
    }
}

impl Drop for Appender {
    /// Writes what waits, then ends the thread.
    fn drop(&mut self) {
        self.queue.waiting.lock().closed.get_or_insert_with(|| "raingauge is stopping".to_owned());
        self.queue.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    segments: Arc<Segments>,
    known: Known,
    acknowledged: Acknowledged,
    clock: Arc<dyn Clock>,
    queue: Arc<Queue>,
    /// The block being made, kept for its memory.
    block: Vec<u8>,
}

impl Worker {
    fn run(mut self) {
        while let Some(group) = self.next_group() {
            let (requests, answers): (Vec<Request>, Vec<Answer>) = group.into_iter().unzip();
            match self.commit(requests) {
                Ok(results) => answers.into_iter().zip(results).for_each(|(answer, result)| {
                    // Whoever asked may have gone away; the events are in the log all the same.
                    let _ = answer.send(Ok(result));
                }),
                Err(error) => return self.queue.close(&error.to_string(), answers),
            }
        }
    }

    /// Waits for requests and takes as many as make a group; `None` when the log was closed and nothing waits.
    fn next_group(&self) -> Option<Vec<(Request, Answer)>> {
        let mut waiting = self.queue.waiting.lock();
        while waiting.requests.is_empty() {
            if waiting.closed.is_some() {
                return None;
            }
            self.queue.wake.wait(&mut waiting);
        }
        let (mut group, mut bytes) = (Vec::new(), 0);
        while bytes < GROUP_BYTES
            && let Some((request, answer)) = waiting.requests.pop_front()
        {
            bytes += request.bytes();
            group.push((request, answer));
        }
        waiting.bytes -= bytes;
        Some(group)
    }

    fn commit(&mut self, requests: Vec<Request>) -> Result<Vec<Appended>, Error> {
        self.block.clear();
        self.block.resize(BLOCK_HEADER_LEN, 0);
        let (mut results, mut count) = (Vec::with_capacity(requests.len()), 0);
        for request in requests {
            let result = self.take(request)?;
            count += result.accepted;
            results.push(result);
        }
        if count > 0 {
            let end = self.write(count)?;
            self.acknowledged.mark(end)?;
            self.known.seal_when_full(end, self.clock.now_ms())?;
            self.queue.remembered_to.store(self.known.sealed_to(), Ordering::Release);
            self.report();
        }
        let end = self.segments.end();
        results.iter_mut().for_each(|result| result.ends = vec![(0, end)]);
        Ok(results)
    }

    /// Copies what is new of a request into the block.
    fn take(&mut self, request: Request) -> Result<Appended, Error> {
        let mut result = Appended { accepted: 0, duplicates: 0, ends: Vec::new() };
        match request {
            Request::Control(payload) => {
                push_control(&payload, &mut self.block);
                result.accepted = 1;
            }
            Request::Events(batch) => {
                let mut begin = 0;
                for (end, identity) in &batch.entries {
                    if self.known.insert(*identity)? {
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

    fn write(&mut self, count: usize) -> Result<Offset, Error> {
        // The clock of a machine may be set back; the log's never goes back.
        let appended_ms = self.clock.now_ms().max(self.segments.appended_ms());
        let base = self.segments.end();
        seal_block(&mut self.block, count as u32, base, appended_ms);
        self.segments.write(&self.block, count as u64, appended_ms)
    }

    fn report(&self) {
        metrics::gauge!("raingauge_log_end_offset").set(self.segments.end() as f64);
        metrics::gauge!("raingauge_log_bytes").set(self.segments.bytes() as f64);
        metrics::gauge!("raingauge_dedupe_ids").set(self.known.len() as f64);
        if let Some(oldest_ms) = self.known.oldest_ms() {
            metrics::gauge!("raingauge_dedupe_window_seconds").set((self.clock.now_ms() - oldest_ms) as f64 / 1e3);
        }
    }
}

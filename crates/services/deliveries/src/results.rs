//! Results on their way to the ledger, which stores them in batches.

use parking_lot::Mutex;
use raingauge_ports::campaigns::{Outbox, Settled};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Results of one write.
const BATCH_MAX: usize = 1_000;
/// How long the first result of a batch waits for others.
const BATCH_WAIT: Duration = Duration::from_millis(5);
/// Results that wait to be written before nothing more is sent.
const WAITING_MAX: usize = 10_000;
/// Pause after a write that failed.
const PAUSE: Duration = Duration::from_secs(1);

pub struct Results {
    waiting: Mutex<Waiting>,
    /// There are results, or no more will come.
    changed: Notify,
    /// Results that were stored so far.
    stored: watch::Sender<u64>,
}

#[derive(Default)]
struct Waiting {
    settled: Vec<Settled>,
    /// Results that came so far.
    pushed: u64,
    is_closed: bool,
}

impl Default for Results {
    fn default() -> Self {
        Self { waiting: Mutex::default(), changed: Notify::new(), stored: watch::Sender::new(0) }
    }
}

impl Results {
    pub fn push(&self, settled: Settled) {
        let mut waiting = self.waiting.lock();
        waiting.settled.push(settled);
        waiting.pushed += 1;
        self.changed.notify_one();
    }

    /// Whether so much waits that nothing more is to be sent.
    pub fn is_full(&self) -> bool {
        self.waiting.lock().settled.len() >= WAITING_MAX
    }

    /// Waits until what was pushed before is stored.
    pub async fn flush(&self) {
        let pushed = self.waiting.lock().pushed;
        let mut stored = self.stored.subscribe();
        // The sender lives as long as `self`.
        let _ = stored.wait_for(|stored| *stored >= pushed).await;
    }

    /// Ends [`Results::run`] when all results are stored, or cannot be.
    pub fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Stores results until it is closed. What the ledger did not take is tried again, since a
    /// delivery without a result would be sent a second time.
    pub async fn run(&self, outbox: &dyn Outbox) {
        let mut batch = Vec::new();
        loop {
            if batch.is_empty() {
                self.fill(&mut batch).await;
            }
            if batch.is_empty() {
                return;
            }

            let len = batch.len() as u64;
            match outbox.settle(batch.clone()).await {
                Ok(()) => {
                    batch.clear();
                    self.stored.send_modify(|stored| *stored += len);
                }
                Err(error) => {
                    tracing::error!(
                        %error,
                        results = len,
                        "results of deliveries cannot be stored; they are kept and tried again"
                    );
                    // A process that ends does not wait for a ledger that fails: what has no
                    // result is sent again.
                    if self.waiting.lock().is_closed {
                        return;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Waits for results, or for the end.
    async fn fill(&self, batch: &mut Vec<Settled>) {
        loop {
            let (len, is_closed) = {
                let waiting = self.waiting.lock();
                (waiting.settled.len(), waiting.is_closed)
            };

            if len > 0 && len < BATCH_MAX && !is_closed {
                tokio::time::sleep(BATCH_WAIT).await;
            }
            if len > 0 {
                let mut waiting = self.waiting.lock();
                let len = waiting.settled.len().min(BATCH_MAX);
                batch.extend(waiting.settled.drain(..len));
                return;
            }

            if is_closed {
                return;
            }
            self.changed.notified().await;
        }
    }
}

//! How the queues of points are emptied: what becomes of each letter.

use crate::backoff::RetryOptions;
use raingauge_ports::clock::Clock;
use raingauge_ports::points::{
    Burial, QUEUE_CALL_LEN_MAX, QueueError, QueueName, Queues, Receipt, Receive, ReceivedLetter,
    shortened,
};
use std::sync::Arc;
use std::time::Duration;

/// A letter that cannot be read, or asks for what is not possible.
pub const MALFORMED: &str = "malformed";
/// A letter that was tried for too long.
pub const TOO_OLD: &str = "too_old";

/// Longest pause of a letter that waits without blame. A queue of a server counts each receive, and
/// gives a letter up by itself after a number of them, so an outage of days must not take many.
const SOON_MAX: Duration = Duration::from_secs(300);

/// What became of a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has had its effect.
    Done,
    /// It is tried again, with a pause that follows from how often it was received.
    Again(String),
    /// It waits without blame, for this long at least: the ledger was busy, or away.
    Soon(Duration),
    /// It is given up for a reason, which is a stable word.
    Dead { reason: &'static str, why: String },
}

/// One queue, as its receiver sees it.
pub struct Letterbox {
    queues: Arc<dyn Queues>,
    clock: Arc<dyn Clock>,
    queue: QueueName,
    retry: RetryOptions,
}

impl Letterbox {
    pub fn new(
        queues: Arc<dyn Queues>,
        clock: Arc<dyn Clock>,
        queue: QueueName,
        retry: RetryOptions,
    ) -> Self {
        Self { queues, clock, queue, retry }
    }

    /// Receives letters, and waits for the first one at most this long.
    pub async fn receive(
        &self,
        len_max: usize,
        wait: Duration,
    ) -> Result<Vec<ReceivedLetter>, QueueError> {
        let visibility = self.retry.visibility;
        let len_max = len_max.min(QUEUE_CALL_LEN_MAX);
        self.queues.receive(self.queue, Receive { len_max, visibility, wait }).await
    }

    /// Hides a letter for another while, because it takes longer.
    pub async fn prolong(&self, receipt: &Receipt) -> Result<(), QueueError> {
        let change = (receipt.clone(), self.retry.visibility);
        self.queues.change_visibility(self.queue, vec![change]).await
    }

    /// Settles letters. One for which this fails is received again.
    pub async fn settle(&self, outcomes: Vec<(ReceivedLetter, Outcome)>) -> Result<(), QueueError> {
        let now_ms = self.clock.machine_ms();
        let mut deleted = Vec::new();
        let mut hidden = Vec::new();
        let mut buried = Vec::new();
        for (received, outcome) in outcomes {
            let bury = |received, reason: &str, why: String| Burial {
                received,
                reason: reason.to_owned(),
                last_error: shortened(why),
            };
            match outcome {
                Outcome::Done => deleted.push(received.receipt),
                Outcome::Soon(least) => {
                    let pause = self.retry.pause(&received.letter.id, received.receives);
                    hidden.push((received.receipt, pause.min(SOON_MAX).max(least)));
                }
                Outcome::Again(why) if self.retry.is_too_old(received.sent_ms, now_ms) => {
                    buried.push(bury(received, TOO_OLD, why));
                }
                Outcome::Again(_) => {
                    let pause = self.retry.pause(&received.letter.id, received.receives);
                    hidden.push((received.receipt, pause));
                }
                Outcome::Dead { reason, why } => buried.push(bury(received, reason, why)),
            }
        }

        // One that fails does not keep the others from being settled.
        let results =
            [self.bury(buried).await, self.hide(hidden).await, self.delete(deleted).await];
        results.into_iter().collect()
    }

    /// Buries letters; where that fails for all of them, each by itself.
    async fn bury(&self, burials: Vec<Burial>) -> Result<(), QueueError> {
        if burials.is_empty() {
            return Ok(());
        }
        let queue = self.queue.name();
        tracing::warn!(queue, number = burials.len(), "letters of points are given up");
        metrics::counter!("raingauge_points_dead_total", "queue" => queue)
            .increment(burials.len() as u64);
        let all = self.queues.bury(self.queue, burials.clone()).await;
        if all.is_ok() || burials.len() == 1 {
            return all;
        }

        let mut first = Ok(());
        for burial in burials {
            let buried = self.queues.bury(self.queue, vec![burial]).await;
            first = first.and(buried);
        }
        first
    }

    async fn hide(&self, changes: Vec<(Receipt, Duration)>) -> Result<(), QueueError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.queues.change_visibility(self.queue, changes).await
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), QueueError> {
        if receipts.is_empty() {
            return Ok(());
        }
        self.queues.delete(self.queue, receipts).await
    }
}

#[cfg(test)]
mod tests;

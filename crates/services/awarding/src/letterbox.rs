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

/// What became of a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has had its effect.
    Done,
    /// It is tried again, with a pause that follows from how often it was received.
    Again(String),
    /// It waits without blame: the ledger was busy.
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
                Outcome::Soon(pause) => hidden.push((received.receipt, pause)),
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

        if !buried.is_empty() {
            let queue = self.queue.name();
            tracing::warn!(queue, number = buried.len(), "letters of points are given up");
            metrics::counter!("raingauge_points_dead_total", "queue" => queue)
                .increment(buried.len() as u64);
            self.queues.bury(self.queue, buried).await?;
        }
        if !hidden.is_empty() {
            self.queues.change_visibility(self.queue, hidden).await?;
        }
        if !deleted.is_empty() {
            self.queues.delete(self.queue, deleted).await?;
        }
        Ok(())
    }
}

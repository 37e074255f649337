//! Deliveries to a part of this process: they are handed over in batches, in their order.

use crate::destination::Destination;
use crate::shared::Shared;
use crate::status::Place;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{Delivery, Settlement};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Most deliveries and about the most bytes that are handed over together.
const BATCH_LEN_MAX: usize = 500;
const BATCH_BYTES: usize = 1 << 20;
/// Pause before the outbox is asked again, after it had nothing.
const POLL: Duration = Duration::from_millis(50);
/// Pause after an error.
pub const PAUSE: Duration = Duration::from_secs(1);

/// What became of a delivery, and why.
pub type Outcome = (Settlement, String);

/// A part of this process that takes deliveries, each once however often it is handed over.
pub trait LocalTarget: Send + Sync {
    /// Takes a batch. Returns an outcome for each delivery, in order; or, if some of them could
    /// not be taken, how long to wait before all are handed over again.
    fn take<'a>(
        &'a self,
        deliveries: &'a [Delivery],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, Duration>>;
}

pub struct LocalWorker {
    pub shared: Arc<Shared>,
    pub place: Arc<Place>,
    pub name: String,
    pub target: Box<dyn LocalTarget>,
    /// It ends when its destination is removed.
    pub documents: watch::Receiver<Arc<Destination>>,
}

impl LocalWorker {
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() && self.documents.has_changed().is_ok() {
            if !self.place.is_enabled() {
                wait(POLL, &mut stop).await;
                continue;
            }

            let now_ms = self.shared.clock.now_ms();
            let pause = match self.shared.outbox.take(&self.name, now_ms, BATCH_LEN_MAX).await {
                Ok(found) if found.is_empty() => POLL,
                Ok(found) => {
                    self.hand_over(found, &mut stop).await;
                    continue;
                }
                Err(error) => {
                    tracing::error!(%error, "deliveries of campaigns cannot be read");
                    PAUSE
                }
            };
            wait(pause, &mut stop).await;
        }
    }

    /// Hands deliveries over in their order, and returns what is left when it is stopped.
    async fn hand_over(&self, deliveries: Vec<Delivery>, stop: &mut watch::Receiver<bool>) {
        let mut rest = deliveries.into_iter().peekable();
        while rest.peek().is_some() && !*stop.borrow() {
            let mut batch = Vec::new();
            let mut bytes = 0;
            while bytes < BATCH_BYTES
                && let Some(delivery) = rest.next()
            {
                if !self.shared.withhold(&self.name, &delivery) {
                    bytes += delivery.body.len();
                    batch.push(delivery);
                }
            }

            self.hand_over_batch(batch, stop).await;
        }
        self.shared.give_back(&self.name, rest);
    }

    /// Hands a batch over, as often as it takes.
    async fn hand_over_batch(&self, batch: Vec<Delivery>, stop: &mut watch::Receiver<bool>) {
        while !batch.is_empty() && !*stop.borrow() {
            match self.target.take(&batch).await {
                Ok(outcomes) => {
                    for (delivery, (settlement, note)) in batch.iter().zip(outcomes) {
                        self.shared.settle(&self.name, delivery.action, settlement, &note);
                    }
                    return;
                }
                Err(pause) => wait(pause, stop).await,
            }
        }
        self.shared.give_back(&self.name, batch.into_iter());
    }
}

/// Waits for a time, or until it is stopped.
async fn wait(pause: Duration, stop: &mut watch::Receiver<bool>) {
    // The sender is alive until it has stopped everything.
    let _ = tokio::time::timeout(pause, stop.wait_for(|is_stopping| *is_stopping)).await;
}

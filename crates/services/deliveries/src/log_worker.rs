//! Events that campaigns emit, on their way into the event log.

use crate::destination::Destination;
use crate::shared::Shared;
use crate::status::Place;
use raingauge_core::event::Event;
use raingauge_ports::campaigns::{Delivery, Settlement};
use raingauge_ports::log::{Batch, Error, EventSink};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Most events and about the most bytes that are appended together.
const BATCH_LEN_MAX: usize = 500;
const BATCH_BYTES: usize = 1 << 20;
/// Pause before the outbox is asked again, after it had nothing.
const POLL: Duration = Duration::from_millis(50);
/// Pause after an error.
const PAUSE: Duration = Duration::from_secs(1);

/// The id of an event is that of its action, so the log takes it once however often it is appended.
pub struct LogWorker {
    pub shared: Arc<Shared>,
    pub place: Arc<Place>,
    pub name: String,
    pub log: Arc<dyn EventSink>,
    /// It ends when its destination is removed.
    pub documents: watch::Receiver<Arc<Destination>>,
}

impl LogWorker {
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
                    self.append(found, &mut stop).await;
                    continue;
                }
                Err(error) => {
                    tracing::error!(%error, "events of campaigns cannot be read");
                    PAUSE
                }
            };
            wait(pause, &mut stop).await;
        }
    }

    /// Appends events in their order, and returns what is left when it is stopped.
    async fn append(&self, deliveries: Vec<Delivery>, stop: &mut watch::Receiver<bool>) {
        let mut rest = deliveries.into_iter().peekable();
        while rest.peek().is_some() && !*stop.borrow() {
            let mut batch = Batch::default();
            let mut sent = Vec::new();

            while batch.bytes.len() < BATCH_BYTES
                && let Some(delivery) = rest.next()
            {
                if self.shared.withhold(&self.name, &delivery) {
                    continue;
                }
                match Event::from_json(&delivery.body) {
                    Ok(event) => batch.push(&event),
                    Err(refusal) => {
                        let note = refusal.detail;
                        let action = delivery.action;
                        self.shared.settle(&self.name, action, Settlement::Refused, &note);
                        continue;
                    }
                }
                sent.push(delivery);
            }

            self.append_batch(batch, sent, stop).await;
        }
        self.shared.give_back(&self.name, rest);
    }

    /// Appends a batch, as often as it takes.
    async fn append_batch(
        &self,
        batch: Batch,
        sent: Vec<Delivery>,
        stop: &mut watch::Receiver<bool>,
    ) {
        while !batch.is_empty() && !*stop.borrow() {
            let error = match self.log.append(batch.clone()).await {
                Ok(_) => {
                    for Delivery { action, .. } in &sent {
                        self.shared.settle(&self.name, *action, Settlement::Delivered, "");
                    }
                    return;
                }
                Err(error) => error,
            };

            let pause = match error {
                Error::Busy { retry_after } => retry_after,
                error => {
                    tracing::error!(%error, "events of campaigns cannot be appended to the log");
                    PAUSE
                }
            };
            wait(pause, stop).await;
        }
        self.shared.give_back(&self.name, sent.into_iter());
    }
}

/// Waits for a time, or until it is stopped.
async fn wait(pause: Duration, stop: &mut watch::Receiver<bool>) {
    // The sender is alive until it has stopped everything.
    let _ = tokio::time::timeout(pause, stop.wait_for(|is_stopping| *is_stopping)).await;
}

//! Events that campaigns emit, on their way into the event log.

use crate::local_worker::{LocalTarget, Outcome, PAUSE};
use raingauge_core::event::Event;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{Delivery, Settlement};
use raingauge_ports::log::{Batch, Error, EventSink};
use std::sync::Arc;
use std::time::Duration;

/// The id of an event is that of its action, so the log takes it once however often it is appended.
pub struct LogTarget(pub Arc<dyn EventSink>);

impl LocalTarget for LogTarget {
    fn take<'a>(
        &'a self,
        deliveries: &'a [Delivery],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, Duration>> {
        Box::pin(async move {
            let mut batch = Batch::default();
            let add = |delivery: &Delivery| match Event::from_json(&delivery.body) {
                Ok(event) => {
                    batch.push(&event);
                    (Settlement::Delivered, String::new())
                }
                Err(refusal) => (Settlement::Refused, refusal.detail),
            };
            let outcomes: Vec<Outcome> = deliveries.iter().map(add).collect();

            if !batch.is_empty() {
                self.0.append(batch).await.map_err(pause_after)?;
            }
            Ok(outcomes)
        })
    }
}

fn pause_after(error: Error) -> Duration {
    match error {
        Error::Busy { retry_after } => retry_after,
        error => {
            tracing::error!(%error, "events of campaigns cannot be appended to the log");
            PAUSE
        }
    }
}

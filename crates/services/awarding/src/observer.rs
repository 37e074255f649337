//! Measures what stands still between turns: the queues, and what programmes owe.

use crate::deps::Deps;
use crate::error::Error;
use crate::shared::Shared;
use raingauge_ports::clock::{Clock, every};
use raingauge_ports::points::{BookReader, QueueControl, QueueName};
use std::sync::Arc;
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(10);

/// Writes gauges.
pub struct Observer {
    control: Arc<dyn QueueControl>,
    reader: Arc<dyn BookReader>,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
}

impl Observer {
    pub fn new(deps: &Deps, shared: Arc<Shared>) -> Self {
        Self {
            control: Arc::clone(&deps.control),
            reader: Arc::clone(&deps.reader),
            clock: Arc::clone(&deps.clock),
            shared,
        }
    }

    /// Measures until the process ends.
    pub async fn run(self) {
        every(EVERY, || async {
            if let Err(error) = self.measure().await {
                tracing::debug!(%error, "points are not measured");
            }
        })
        .await;
    }

    pub async fn measure(&self) -> Result<(), Error> {
        metrics::gauge!("raingauge_points_waiting_commands").set(self.shared.intake.len() as f64);
        for queue in QueueName::ALL {
            let depth = self.control.depth(queue).await?;
            let waiting = (depth.waiting + depth.in_flight) as f64;
            let age_ms = depth.oldest_ms.map_or(0, |sent_ms| self.clock.machine_ms() - sent_ms);
            let name = queue.name();
            metrics::gauge!("raingauge_points_queue_depth", "queue" => name).set(waiting);
            metrics::gauge!("raingauge_points_queue_dead", "queue" => name).set(depth.dead as f64);
            metrics::gauge!("raingauge_points_queue_age_seconds", "queue" => name)
                .set(age_ms.max(0) as f64 / 1e3);
        }

        let snapshot = self.shared.snapshot();
        for programme in snapshot.programmes().iter() {
            let name = programme.name();
            let totals = self.reader.totals(Arc::clone(name)).await?;
            let owed = totals.liability(name).total();
            let labels = [("programme", name.to_string())];
            metrics::gauge!("raingauge_points_outstanding", &labels).set(owed as f64);
        }
        Ok(())
    }
}

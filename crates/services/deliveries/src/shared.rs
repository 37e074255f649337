//! What all destinations share.

use crate::documents::StoppedCampaigns;
use crate::results::Results;
use raingauge_ports::campaigns::sender::Sender;
use raingauge_ports::campaigns::{ActionId, Delivery, Outbox, Settled, Settlement};
use raingauge_ports::clock::Clock;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

pub struct Shared {
    pub outbox: Arc<dyn Outbox>,
    pub sender: Arc<dyn Sender>,
    pub stopped: watch::Receiver<Arc<StoppedCampaigns>>,
    pub clock: Arc<dyn Clock>,
    pub results: Results,
    pub gone: mpsc::UnboundedSender<GoneDestination>,
}

/// A destination that said that it is gone for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoneDestination {
    pub name: String,
    /// The version of its document.
    pub version: u32,
    pub why: String,
}

impl Shared {
    /// Notes what became of a delivery.
    pub fn settle(&self, destination: &str, action: ActionId, settlement: Settlement, note: &str) {
        let outcome = match settlement {
            Settlement::Delivered => Some("delivered"),
            Settlement::Refused => Some("refused"),
            Settlement::Retry { .. } => Some("retried"),
            Settlement::Dead => Some("dead"),
            Settlement::Held => Some("held"),
            Settlement::Postponed { .. } => None,
        };
        if let Some(outcome) = outcome {
            metrics::counter!(
                "raingauge_campaign_deliveries_total",
                "destination" => destination.to_owned(), "outcome" => outcome
            )
            .increment(1);
        }
        if settlement == Settlement::Dead {
            tracing::warn!(destination, %action, note, "a delivery failed for the last time");
            metrics::counter!(
                "raingauge_campaign_dead_total", "destination" => destination.to_owned()
            )
            .increment(1);
        }

        let at_ms = self.clock.now_ms();
        self.results.push(Settled { action, at_ms, settlement, note: note.to_owned() });
    }

    /// Holds a delivery whose campaign is paused, and refuses one whose campaign is archived.
    /// Returns whether it did either.
    ///
    /// The campaign cannot be resumed before the result is on its way: the lock of `stopped` sees
    /// to that. What is released then includes it.
    pub fn withhold(&self, destination: &str, delivery: &Delivery) -> bool {
        let stopped = self.stopped.borrow();
        let Delivery { campaign, action, .. } = delivery;
        if stopped.paused.contains(campaign) {
            self.settle(destination, *action, Settlement::Held, "");
            return true;
        }
        let is_archived = stopped.archived.contains(campaign);
        if is_archived {
            self.settle(destination, *action, Settlement::Refused, "its campaign is archived");
        }
        is_archived
    }

    /// Notes that a destination is gone. It happens a few times, as often as requests were under
    /// way.
    pub fn note_gone(&self, gone: GoneDestination) {
        // Without a receiver, this process alone knows.
        let _ = self.gone.send(gone);
    }

    /// Returns deliveries that were taken and not sent. They keep their place in the order.
    pub fn give_back(&self, destination: &str, deliveries: impl Iterator<Item = Delivery>) {
        for Delivery { action, due_ms, .. } in deliveries {
            self.settle(destination, action, Settlement::Postponed { next_ms: due_ms }, "");
        }
    }

    /// Attempts to deliver so far. If the ledger does not say, there were none: the delivery gets
    /// one attempt more than others.
    pub async fn tries(&self, action: ActionId) -> u32 {
        match self.outbox.get(action).await {
            Ok(record) => record.map_or(0, |record| record.tries),
            Err(error) => {
                tracing::warn!(%error, %action, "the attempts of a delivery cannot be read");
                0
            }
        }
    }
}

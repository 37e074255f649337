//! What follows from the documents in effect: where deliveries go, and which of them are stopped.

use super::lookups::Definitions;
use raingauge_campaigner::Handle;
use raingauge_deliveries::{Destinations, StoppedCampaigns, destinations, stopped_campaigns};
use raingauge_documents::InEffect;
use raingauge_ports::campaigns::StoredDocument;
use std::sync::Arc;
use tokio::sync::watch;

/// The documents that the worker has applied.
pub struct Effect(pub Handle);

impl InEffect for Effect {
    fn version_of(&self, kind: &str, id: &str) -> Option<u32> {
        self.0.snapshot().version_of(kind, id)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes()
    }
}

/// Follows the documents in effect.
pub struct Following {
    worker: Handle,
    /// From before the first look at the documents, so that no change between is missed.
    changes: watch::Receiver<u64>,
    destinations: watch::Sender<Destinations>,
    stopped: watch::Sender<Arc<StoppedCampaigns>>,
    definitions: Definitions,
}

impl Following {
    /// Begins with what is in effect now.
    pub fn start(worker: &Handle, definitions: Definitions) -> Self {
        let following = Self {
            worker: worker.clone(),
            changes: worker.changes(),
            destinations: watch::Sender::default(),
            stopped: watch::Sender::default(),
            definitions,
        };
        following.update();
        following
    }

    pub fn destinations(&self) -> watch::Receiver<Destinations> {
        self.destinations.subscribe()
    }

    pub fn stopped(&self) -> watch::Receiver<Arc<StoppedCampaigns>> {
        self.stopped.subscribe()
    }

    /// Follows until the worker ends.
    pub async fn run(mut self) {
        while self.changes.changed().await.is_ok() {
            self.update();
        }
    }

    fn update(&self) {
        let snapshot = self.worker.snapshot();
        let documents: Vec<StoredDocument> = snapshot.documents.iter().cloned().collect();

        // What is stopped is known before anything is sent elsewhere.
        self.stopped.send_replace(Arc::new(stopped_campaigns(&documents)));
        self.destinations.send_replace(destinations(&documents));
        self.definitions.update(snapshot.documents.shared());
    }
}

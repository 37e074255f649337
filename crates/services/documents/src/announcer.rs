//! Control entries by which documents take effect.

use crate::error::Error;
use crate::rules::InEffect;
use parking_lot::Mutex;
use raingauge_ports::campaigns::StoredDocument;
use raingauge_ports::log::EventSink;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The partition whose worker applies documents.
const PARTITION: u16 = 0;

pub struct Announcer {
    consumer: &'static str,
    sink: Arc<dyn EventSink>,
    in_effect: Arc<dyn InEffect>,
    /// Versions that this process has written to the log, until they are in effect.
    announced: Mutex<HashMap<(String, String), u32>>,
}

impl Announcer {
    pub fn new(
        consumer: &'static str,
        sink: Arc<dyn EventSink>,
        in_effect: Arc<dyn InEffect>,
    ) -> Self {
        Self { consumer, sink, in_effect, announced: Mutex::default() }
    }

    /// Writes a version to the log, unless it is there already. Calls must not overlap.
    pub async fn announce(&self, document: &StoredDocument) -> Result<(), Error> {
        let StoredDocument { kind, id, version, .. } = document;
        let name = (kind.clone(), id.clone());
        if self.is_in_effect(document) {
            self.announced.lock().remove(&name);
            return Ok(());
        }
        if self.announced.lock().get(&name).is_some_and(|known| known >= version) {
            return Ok(());
        }

        let entry = json!({
            "for": self.consumer,
            "kind": "document",
            "document": { "kind": kind, "id": id, "version": version },
        });
        self.sink.append_control(PARTITION, entry.to_string().into_bytes()).await?;
        self.announced.lock().insert(name, *version);
        Ok(())
    }

    /// A document that is deleted, and not in effect, is in the state that it should be in.
    pub fn is_in_effect(&self, document: &StoredDocument) -> bool {
        match self.in_effect.version_of(&document.kind, &document.id) {
            Some(version) => version >= document.version,
            None => document.is_deleted,
        }
    }

    /// Waits until a version is in effect.
    pub async fn wait(&self, document: &StoredDocument, patience: Duration) -> Result<(), Error> {
        let mut changes = self.in_effect.changes();
        let in_effect = async {
            while !self.is_in_effect(document) {
                if changes.changed().await.is_err() {
                    // The worker has ended, and will not apply anything.
                    std::future::pending::<()>().await;
                }
            }
        };
        let waited = tokio::time::timeout(patience, in_effect).await;
        waited.map_err(|_| Error::NotInEffect {
            kind: document.kind.clone(),
            id: document.id.clone(),
            version: document.version,
            waited_s: patience.as_secs(),
        })
    }
}

//! Destinations that said that they are gone: their documents say so too, so that the next process
//! knows it, and people see it.

use raingauge_campaigns::documents::Kind;
use raingauge_deliveries::GoneDestination;
use raingauge_documents::{Documents, Error, Provenance};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Pause before a change that failed is tried again.
const PAUSE: Duration = Duration::from_secs(5);

/// Disables destinations until the process ends.
pub async fn disable(
    documents: Arc<Documents>,
    mut gone: mpsc::UnboundedReceiver<GoneDestination>,
) {
    while let Some(one) = gone.recv().await {
        while let Err(error) = disable_one(&documents, &one).await {
            tracing::warn!(destination = one.name, %error, "a destination is not disabled yet");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Disables a destination, unless its document has changed since it said that it is gone.
async fn disable_one(documents: &Documents, gone: &GoneDestination) -> Result<(), Error> {
    let GoneDestination { name, version, why } = gone;
    let provenance = Provenance { by: "raingauge", reason: why };
    let member = ("disabled", json!(why));
    let changed =
        documents.set_member(Kind::Destination, name, member, Some(*version), provenance).await;
    match changed {
        Ok(_) | Err(Error::Conflict { .. } | Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

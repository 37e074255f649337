//! What the deliveries follow of the documents that are in effect.

use crate::destination::Destination;
use raingauge_campaigns::documents::{Document, Kind, Named};
use raingauge_ports::campaigns::{CampaignId, StoredDocument};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The destinations with documents, at their newest versions.
pub type Destinations = Vec<Arc<Destination>>;

/// The campaigns of which nothing is to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoppedCampaigns {
    /// Their deliveries are held until they are resumed.
    pub paused: BTreeSet<CampaignId>,
    /// Their deliveries are cancelled.
    pub archived: BTreeSet<CampaignId>,
}

/// The destinations among documents. One that this release cannot read is left out, and its
/// deliveries wait.
pub fn destinations(documents: &[StoredDocument]) -> Destinations {
    let stored = documents.iter().filter(|stored| stored.kind == Kind::Destination.name());
    let read =
        stored.filter(|stored| !stored.is_deleted).filter_map(|stored| {
            match Document::read(Kind::Destination, &stored.configuration) {
                Ok(Document::Destination(Named { content, .. })) => {
                    let read = Destination::of_document(&stored.id, stored.version, &content);
                    Some(Arc::new(read))
                }
                _ => {
                    tracing::error!(
                        name = stored.id,
                        version = stored.version,
                        "the document of a destination cannot be read"
                    );
                    None
                }
            }
        });

    read.collect()
}

/// The campaigns among documents that are paused or archived.
pub fn stopped_campaigns(documents: &[StoredDocument]) -> StoppedCampaigns {
    let mut stopped = StoppedCampaigns::default();
    for stored in documents.iter().filter(|stored| stored.kind == Kind::Campaign.name()) {
        let Ok(campaign) = stored.id.parse::<CampaignId>() else { continue };
        match stored.configuration["state"].as_str() {
            Some("paused") => drop(stopped.paused.insert(campaign)),
            Some("archived") => drop(stopped.archived.insert(campaign)),
            _ => {}
        }
    }

    stopped
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_campaigns::campaign::State;
    use serde_json::{Value as Json, json};

    fn stored(kind: &str, id: &str, configuration: Json) -> StoredDocument {
        StoredDocument {
            kind: kind.to_owned(),
            id: id.to_owned(),
            version: 4,
            configuration,
            is_deleted: false,
            changed_by: "ann".to_owned(),
            reason: String::new(),
            changed_ms: 0,
        }
    }

    #[test]
    fn documents_say_where_to_send_and_what_not() {
        let documents = [
            stored("campaign", "1", json!({"state": "active"})),
            stored("campaign", "2", json!({"state": State::Paused})),
            stored("campaign", "3", json!({"state": State::Archived})),
            stored("campaign", "4", json!({})),
            stored("lookup", "2", json!({"state": "paused"})),
            stored("destination", "rewards", json!({"name": "rewards", "url": "https://a"})),
            stored("destination", "newer", json!({"name": "newer", "address": "https://a"})),
            StoredDocument {
                is_deleted: true,
                ..stored("destination", "gone", json!({"name": "gone", "url": "https://a"}))
            },
        ];
        let expected = StoppedCampaigns { paused: [2].into(), archived: [3].into() };
        assert_eq!(stopped_campaigns(&documents), expected);

        let found = destinations(&documents);
        let names: Vec<_> =
            found.iter().map(|found| (found.name.as_str(), found.version)).collect();
        assert_eq!(names, [("rewards", 4)]);
    }
}

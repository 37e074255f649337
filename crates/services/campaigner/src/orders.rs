//! Entries of the log that are for campaigns: documents that take effect, and what operators ask
//! for that has a place among the events.
//!
//! ```json
//! {"for": "campaigns", "kind": "document",
//!  "document": {"kind": "campaign", "id": "7", "version": 2}}
//! {"for": "campaigns", "kind": "erase", "subject": "u-7"}
//! {"for": "campaigns", "kind": "redrive",
//!  "steps": [{"campaign": 7, "step": "reward", "offset": 41}]}
//! ```

use crate::control::{CONSUMER, DocumentVersion, order};
use crate::error::Error;
use raingauge_campaigns::campaign::CampaignId;
use raingauge_consumers::control::Head;
use raingauge_ports::consumers::Name;
use raingauge_ports::log::Offset;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What a control entry asks of campaigns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Document(DocumentVersion),
    /// Everything about a subject is erased, as far as events before the entry left it.
    Erase {
        subject: String,
    },
    /// Steps that their budgets refused are decided again, in this order.
    Redrive {
        steps: Vec<RefusedStep>,
    },
}

/// A step that its budget refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RefusedStep {
    pub campaign: CampaignId,
    pub step: String,
    /// The event on which it was refused.
    pub offset: Offset,
}

#[derive(Deserialize)]
struct RedriveEntry {
    steps: Vec<RefusedStep>,
}

#[derive(Deserialize)]
struct ErasureEntry {
    subject: String,
}

/// The payload of the control entry at which a subject is erased.
pub fn erasure_entry(subject: &str) -> Vec<u8> {
    json!({"for": CONSUMER, "kind": "erase", "subject": subject}).to_string().into_bytes()
}

/// The payload of the control entry at which steps are decided again.
pub(crate) fn redrive_entry(steps: &[RefusedStep]) -> Vec<u8> {
    json!({"for": CONSUMER, "kind": "redrive", "steps": steps}).to_string().into_bytes()
}

impl Order {
    /// Whether the order goes by the documents that are in effect before it.
    pub(crate) fn needs_documents(&self) -> bool {
        matches!(self, Self::Redrive { .. })
    }

    /// Reads a control entry; `None` for one that is not for campaigns.
    pub(crate) fn parse(
        payload: &[u8],
        consumer: &Name,
        offset: Offset,
    ) -> Result<Option<Self>, Error> {
        let malformed =
            |error: serde_json::Error| Error::UnknownControl { offset, why: error.to_string() };
        let kind = Head::parse(payload).ok().filter(|head| head.is_for(consumer));
        match kind.map(|head| head.kind).as_deref() {
            Some("erase") => {
                let entry: ErasureEntry = serde_json::from_slice(payload).map_err(malformed)?;
                Ok(Some(Self::Erase { subject: entry.subject }))
            }
            Some("redrive") => {
                let entry: RedriveEntry = serde_json::from_slice(payload).map_err(malformed)?;
                Ok(Some(Self::Redrive { steps: entry.steps }))
            }
            _ => Ok(order(payload, consumer, offset)?.map(Self::Document)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_were_written() {
        let consumer = Name::new(CONSUMER).unwrap();
        let read = |payload: &[u8]| Order::parse(payload, &consumer, 4);
        let erase = Order::Erase { subject: "ü \"7\"".to_owned() };
        assert_eq!(read(&erasure_entry("ü \"7\"")).unwrap(), Some(erase));
        assert_eq!(read(br#"{"for": "points", "kind": "erase", "subject": "u"}"#).unwrap(), None);
        assert!(read(br#"{"for": "campaigns", "kind": "erase"}"#).is_err());

        let steps = vec![RefusedStep { campaign: 7, step: "s".to_owned(), offset: 41 }];
        let entry = redrive_entry(&steps);
        assert_eq!(read(&entry).unwrap(), Some(Order::Redrive { steps }));
        assert!(read(br#"{"for": "campaigns", "kind": "rewind"}"#).is_err());
    }
}

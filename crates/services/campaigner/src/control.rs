//! What the worker needs to continue beside the position, and the entries of the log that change
//! it.
//!
//! ```json
//! {"for": "campaigns", "kind": "document",
//!  "document": {"kind": "campaign", "id": "7", "version": 2}}
//! ```

use crate::error::Error;
use raingauge_campaigns::campaign::CampaignId;
use raingauge_consumers::control;
pub use raingauge_consumers::control::DocumentVersion;
use raingauge_ports::consumers::Name;
use raingauge_ports::log::Offset;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The name of this consumer of the log.
pub const CONSUMER: &str = "campaigns";
/// Version of the stored form.
const VERSION: u8 = 1;

/// The worker's state, which is committed when it changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    version: u8,
    /// The documents in effect: kind and id, and the version.
    pub documents: BTreeMap<String, BTreeMap<String, u32>>,
    /// Tallies that are filled from the log. The first walk is under way.
    pub walks: Vec<Walk>,
    /// How often a tally has been given up, by its owner. One that comes back begins again, under
    /// states of its own.
    pub generations: BTreeMap<Owner, u32>,
    /// Campaigns that were resumed or archived, and whose actions are still to be seen to.
    pub sweeps: BTreeSet<CampaignId>,
    /// Versions that ended campaigns in `sweeps`, which may act again since: what earlier versions
    /// put off does not happen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub endings: BTreeMap<CampaignId, u32>,
    /// The owners under which tallies were stored that have been given up.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub obsolete: BTreeSet<Owner>,
    /// Before this entry of the log, there may be events of subjects that were erased since.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub erased_until: Offset,
}

fn is_zero(offset: &Offset) -> bool {
    *offset == 0
}

/// The owner of a tally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Owner(pub u128);

/// One reading of the log behind the position, for all tallies that wait for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Walk {
    /// The next entry to count.
    pub next: Offset,
    pub has_begun: bool,
    /// What was appended before this is no longer in the log; 0 if nothing is missing.
    pub covered_from_ms: i64,
    /// Each tally with the entry from which on it has been counting live.
    pub tallies: BTreeMap<Owner, Offset>,
}

impl Walk {
    /// Behind the last entry that any tally wants.
    pub fn until(&self) -> Offset {
        self.tallies.values().copied().max().unwrap_or(0)
    }
}

impl From<Owner> for String {
    fn from(owner: Owner) -> Self {
        format!("{:032x}", owner.0)
    }
}

impl TryFrom<String> for Owner {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        u128::from_str_radix(&text, 16).map(Self)
    }
}

impl Default for Control {
    fn default() -> Self {
        Self {
            version: VERSION,
            documents: BTreeMap::new(),
            walks: Vec::new(),
            generations: BTreeMap::new(),
            sweeps: BTreeSet::new(),
            endings: BTreeMap::new(),
            obsolete: BTreeSet::new(),
            erased_until: 0,
        }
    }
}

impl Control {
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("names and numbers are JSON")
    }

    /// Reads what was committed. Nothing was, if there are no bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let control: Self =
            serde_json::from_slice(bytes).map_err(|error| Error::Control(error.to_string()))?;
        if control.version != VERSION {
            return Err(Error::Control(format!("it has version {}", control.version)));
        }
        Ok(control)
    }

    /// The owner under which the states of a tally are stored.
    pub fn stored_owner(&self, owner: u128) -> u128 {
        // Owners are hashes: a small number makes another one of them, which nobody else has.
        match self.generations.get(&Owner(owner)) {
            None | Some(0) => owner,
            Some(generation) => owner ^ u128::from(*generation) << 1 ^ 1,
        }
    }

    /// Takes a version into effect. Answers `false` for one that is not newer: its entry came
    /// twice, or late.
    pub fn put_document(&mut self, changed: &DocumentVersion) -> bool {
        let of_kind = self.documents.entry(changed.kind.clone()).or_default();
        let known = of_kind.entry(changed.id.clone()).or_insert(0);
        let is_newer = changed.version > *known;
        *known = changed.version.max(*known);
        is_newer
    }
}

/// The payload of the control entry by which a document takes effect.
pub fn document_entry(document: &DocumentVersion) -> Vec<u8> {
    control::document_entry(CONSUMER, document)
}

/// What a control entry says to campaigns; `None` for one that is not for them.
pub(crate) fn order(
    payload: &[u8],
    consumer: &Name,
    offset: Offset,
) -> Result<Option<DocumentVersion>, Error> {
    control::document_order(payload, consumer).map_err(|why| Error::UnknownControl { offset, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_is_read_again() {
        let owner = Owner(7);
        let mut control = Control::default();
        let changed =
            DocumentVersion { kind: "campaign".to_owned(), id: "7".to_owned(), version: 3 };
        assert!(control.put_document(&changed));
        assert!(!control.put_document(&changed));
        control.sweeps.insert(7);
        control.generations.insert(owner, 2);
        control.walks.push(Walk {
            next: 5,
            has_begun: true,
            covered_from_ms: 0,
            tallies: BTreeMap::from([(owner, 9)]),
        });
        assert_eq!(Control::from_bytes(&control.to_bytes()).unwrap(), control);
        // Every later version must be able to read it.
        let owner = "00000000000000000000000000000007";
        let stored = format!(
            "{{\"version\":1,\"documents\":{{\"campaign\":{{\"7\":3}}}},\"walks\":[{{\"next\":5,\
             \"has_begun\":true,\"covered_from_ms\":0,\"tallies\":{{\"{owner}\":9}}}}],\
             \"generations\":{{\"{owner}\":2}},\"sweeps\":[7]}}"
        );
        assert_eq!(String::from_utf8(control.to_bytes()).unwrap(), stored);
        assert_eq!(control.walks[0].until(), 9);
        assert_ne!(control.stored_owner(7), 7);
        assert_eq!(control.stored_owner(8), 8);

        assert_eq!(Control::from_bytes(b"").unwrap(), Control::default());
        let newer = String::from_utf8(control.to_bytes()).unwrap();
        let newer = newer.replace("\"version\":1,", "\"version\":2,");
        assert!(Control::from_bytes(newer.as_bytes()).is_err());
    }

    #[test]
    fn entries_of_others_are_passed_over_and_unknown_ones_stop_the_worker() {
        let consumer = Name::new(CONSUMER).unwrap();
        let changed =
            DocumentVersion { kind: "campaign".to_owned(), id: "7".to_owned(), version: 3 };
        let read = |payload: &[u8]| order(payload, &consumer, 4);
        assert_eq!(read(&document_entry(&changed)).unwrap(), Some(changed));
        assert_eq!(read(br#"{"kind": "counter", "version": 1}"#).unwrap(), None);
        assert_eq!(read(br#"{"for": "points", "kind": "x"}"#).unwrap(), None);
        assert!(read(br#"{"for": "campaigns", "kind": "pause"}"#).is_err());
        let trouble = read(br#"{"for": "campaigns", "kind": "document"}"#).unwrap_err();
        assert!(trouble.to_string().contains("offset 4"), "{trouble}");
    }
}

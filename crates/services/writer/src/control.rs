//! Control entries of counting: messages in the log, in order with the events.
//!
//! An entry of a kind that this program does not know stops counting instead of being skipped: it
//! changes counts, and every count after it would be wrong. After an upgrade the process continues.

use crate::state::Request;
use raingauge_consumers::control::Head;
use raingauge_core::counter::Counter;
use raingauge_ports::buckets::{Cell, Generation};
use raingauge_ports::consumers::Name;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Control {
    /// The counter has this configuration from this offset on, unless a newer version is known.
    Counter {
        version: u32,
        counter: Box<Counter>,
        /// When the catalog accepted the version: of two configurations with one number the later
        /// one counts. Entries of the first logs have none.
        #[serde(default, skip_serializing_if = "is_zero")]
        changed_at: i64,
        /// The catalog was restored to an older version, which counts. Only a process that writes
        /// changes to a log alone can know this; with several writers, the older version may just
        /// be outdated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        put_back: bool,
    },
    /// Sets these buckets to these counts, unless the request was obeyed before.
    Buckets {
        buckets: Vec<Bucket>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Box<Request>>,
    },
    /// Erases the counts of a key before this entry.
    Erase { counter: u32, key: String },
    /// Erases the counts of a counter before this entry: an empty generation of this number answers
    /// from here on. A number that is not newer than the newest of the counter changes nothing.
    EraseAll {
        counter: u32,
        number: u32,
        /// The number of the generation that has to answer before this entry; partition 0,
        /// which decides, gets none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<u32>,
    },
    /// Recounts a counter from the log, from this second on, the start of a UTC day; without one,
    /// as far back as the partition of the log holds every event.
    Backfill {
        counter: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_s: Option<i64>,
        /// The number of the generation to fill. One that is not newer than the newest of the
        /// counter changes nothing. Entries of the first logs have none: each partition takes its
        /// next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
        /// The configuration that counts the entries before this one; without it, the counter as
        /// the partition knows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        configuration: Option<Box<Counter>>,
    },
    /// Every partition has filled the generation: it answers from here on.
    Switch { counter: u32, number: u32 },
    /// The generation will not answer.
    Cancel {
        counter: u32,
        number: u32,
        #[serde(default)]
        reason: String,
    },
    /// Every partition and every reader has switched to the generation: what it replaced can be
    /// removed.
    Retire { counter: u32, number: u32 },
    /// The store no longer holds anything of a retired generation.
    Removed { generation: Generation },
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl Control {
    /// Returns an entry with a version of a counter, which counts if no newer one is known.
    pub fn counter(version: u32, changed_at: i64, counter: Counter) -> Self {
        Self::Counter { version, counter: Box::new(counter), changed_at, put_back: false }
    }

    /// Returns an entry for a backfill as far back as the log reaches, with the next number of the
    /// partition.
    #[cfg(test)]
    pub fn backfill(counter: u32) -> Self {
        Self::Backfill { counter, after_s: None, number: None, configuration: None }
    }

    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a control entry; `None` when it is for another consumer. Distinguishes a kind that
    /// only a newer program knows from a payload that is no control entry.
    pub fn parse(payload: &[u8]) -> Result<Option<Self>, ControlError> {
        let malformed = |error: serde_json::Error| ControlError::Malformed(error.to_string());
        let head = Head::parse(payload).map_err(malformed)?;
        if !head.is_for(&Name::counting()) {
            return Ok(None);
        }
        if !Self::KINDS.contains(&head.kind.as_str()) {
            return Err(ControlError::UnknownKind(head.kind));
        }
        serde_json::from_slice(payload).map(Some).map_err(malformed)
    }

    const KINDS: [&str; 9] = [
        "counter", "buckets", "backfill", "switch", "cancel", "retire", "removed", "erase",
        "eraseAll",
    ];
}

/// Why a payload is not a control entry that this program can obey.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    #[error("it is malformed: {0}")]
    Malformed(String),
    #[error("{0:?} is a kind of a newer version of raingauge: upgrade this process")]
    UnknownKind(String),
}

/// One bucket that is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    pub key: String,
    pub granularity: raingauge_core::bucket::Granularity,
    pub time: i64,
    pub count: i64,
}

impl Bucket {
    pub fn cell(&self) -> Cell {
        Cell { granularity: self.granularity, time_s: self.time, count: self.count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_control_entry_is_known_by_its_name() {
        let counter =
            Counter::from_json(&json!({"id": 1, "name": "n", "template": "k", "eventType": "t"}))
                .unwrap();
        let written = [
            Control::counter(1, 0, counter),
            Control::Buckets { buckets: Vec::new(), request: None },
            Control::backfill(1),
            Control::Switch { counter: 1, number: 2 },
            Control::Cancel { counter: 1, number: 2, reason: String::new() },
            Control::Retire { counter: 1, number: 2 },
            Control::Removed { generation: 4_096 },
            Control::Erase { counter: 1, key: "k:1".to_owned() },
            Control::EraseAll { counter: 1, number: 3, replaces: Some(2) },
        ];

        for control in &written {
            assert_eq!(Control::parse(&control.to_json()), Ok(Some(control.clone())));
        }
        assert_eq!(written.len(), Control::KINDS.len());
        assert_eq!(
            Control::parse(br#"{"kind":"frost"}"#),
            Err(ControlError::UnknownKind("frost".to_owned()))
        );

        for payload in [
            &br#"{"for":"campaigns","kind":"frost"}"#[..],
            br#"{"for":"campaigns","kind":"counter","version":true}"#,
        ] {
            assert_eq!(Control::parse(payload), Ok(None), "{payload:?}");
        }

        let named = br#"{"for":"counting","kind":"switch","counter":1,"number":2}"#;
        assert_eq!(Control::parse(named), Ok(Some(Control::Switch { counter: 1, number: 2 })));

        for payload in [
            &b"x"[..],
            b"",
            b"{}",
            b"[]",
            br#"{"kind":"buckets"}"#,
            br#"{"kind":"counter","version":1}"#,
        ] {
            assert!(
                matches!(Control::parse(payload), Err(ControlError::Malformed(_))),
                "{payload:?}"
            );
        }
    }
}

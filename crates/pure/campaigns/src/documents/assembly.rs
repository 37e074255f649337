//! What the engine decides by, made of stored documents.

use super::{Destination, Document, Kind, Lookup, Named, Table};
use crate::engine::{Documents, Release};
use raingauge_core::counter::Problem;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// A version of a document, as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'s> {
    pub kind: &'s str,
    pub id: &'s str,
    pub version: u32,
    pub configuration: &'s Json,
}

/// All documents at one place in the stream.
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    /// What the engine decides by. No campaign in it is warming.
    pub documents: Documents,
    pub destinations: BTreeMap<String, Destination>,
    pub lookups: BTreeMap<String, Lookup>,
    pub tables: BTreeMap<String, Table>,
    /// Documents that this release cannot read, and that were left out.
    pub unreadable: Vec<Unreadable>,
}

/// A document that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub kind: String,
    pub id: String,
    pub version: u32,
    pub problems: Vec<Problem>,
}

/// Reads documents that were checked when they were saved. Kinds of other products are passed over.
pub fn assemble<'s>(stored: impl IntoIterator<Item = Stored<'s>>, late_after_ms: i64) -> Assembly {
    let mut all = Assembly::default();
    all.documents.late_after_ms = late_after_ms;
    for Stored { kind: name, id, version, configuration } in stored {
        let Some(kind) = Kind::from_name(name) else { continue };
        match Document::read(kind, configuration) {
            Ok(document) => all.add(document, id, version),
            Err(problems) => {
                let kind = name.to_owned();
                all.unreadable.push(Unreadable { kind, id: id.to_owned(), version, problems });
            }
        }
    }
    all
}

impl Assembly {
    fn add(&mut self, document: Document, id: &str, version: u32) {
        let documents = &mut self.documents;
        match document {
            Document::Campaign(mut campaign) => {
                // The id that it is stored under counts.
                campaign.id = id.parse().unwrap_or(campaign.id);
                let release = Release { version, campaign: *campaign, is_warming: false };
                documents.campaigns.push(release);
            }
            Document::Destination(Named { name, content }) => {
                self.destinations.insert(name, content);
            }
            Document::Lookup(Named { name, content }) => {
                let class = content.class.name();
                documents.lookups.insert(format!("{class}.{name}"), content.rule());
                self.lookups.insert(name, content);
            }
            Document::Table(Named { name, content }) => {
                let kind = content.kind.name();
                documents.lookups.insert(format!("{kind}.{name}"), content.rule());
                self.tables.insert(name, content);
            }
            Document::Budget(Named { name, content }) => {
                documents.budgets.insert(name, content);
            }
            Document::Cap(Named { name, content }) => {
                documents.caps.insert(name, content);
            }
            Document::Holdout(Named { name, content }) => {
                documents.holdouts.insert(name, content);
            }
        }
    }
}

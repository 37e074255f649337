//! What a product says of its documents.

use raingauge_core::counter::Problem;
use raingauge_ports::campaigns::StoredDocument;
use serde_json::Value as Json;
use tokio::sync::watch;

/// A document that has been checked by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedDocument {
    /// Empty for one that is to get the next number of its kind.
    pub id: String,
    /// Its stored form.
    pub configuration: Json,
}

/// The kinds of documents of one product, and what has to hold among them.
pub trait Rules: Send + Sync {
    /// The consumer of the log that documents take effect in.
    fn consumer(&self) -> &'static str;

    fn has_kind(&self, kind: &str) -> bool;

    /// Reads and checks a document by itself.
    fn check(&self, kind: &str, configuration: &Json) -> Result<CheckedDocument, Vec<Problem>>;

    /// Takes the newest version of a document as one of those that others are checked among.
    fn note(&self, document: &StoredDocument);

    /// What keeps a checked document from taking its place among the others.
    fn problems(&self, kind: &str, configuration: &Json) -> Vec<Problem>;

    /// Why a document cannot be deleted.
    fn problem_of_deletion(&self, kind: &str, id: &str) -> Option<String>;

    /// Why a change has to be approved by a second person.
    fn approval_needed(&self, kind: &str, before: Option<&Json>, after: &Json) -> Option<String>;
}

/// What the worker of a product has applied.
pub trait InEffect: Send + Sync {
    /// The version that is in effect; `None` where none is, or where it is deleted.
    fn version_of(&self, kind: &str, id: &str) -> Option<u32>;

    /// Changes whenever other versions are in effect.
    fn changes(&self) -> watch::Receiver<u64>;
}

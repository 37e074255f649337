//! Documents of products, such as campaigns and destinations, and all their versions.

use crate::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The documents could not be read or written. A change may or may not have been stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the database of documents is out of reach: {0}")]
    Unavailable(String),
}

/// One version of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredDocument {
    /// Such as `campaign` or `destination`.
    pub kind: String,
    /// The name of the document, or its number in decimal. Empty for a new document that is to get
    /// the next number of its kind.
    pub id: String,
    /// The first version is 1. Versions go on after a deletion.
    pub version: u32,
    /// The document itself; null if it is deleted. Where it has a number, its member `id` has that.
    pub configuration: Json,
    pub is_deleted: bool,
    /// Begins with [`TOKEN_PREFIX`](crate::catalog::TOKEN_PREFIX) for a token.
    pub changed_by: String,
    pub reason: String,
    /// Milliseconds since 1970.
    pub changed_ms: i64,
}

/// What became of a version that was to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is stored like this, with its id and its version.
    Stored(StoredDocument),
    /// The document is at this version, and not at the base of the change; 0 if there is none.
    Conflict { current: u32 },
}

/// Documents that changed after a revision, at their newest versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedDocuments {
    /// Grows with every change of any document; 0 if there was none.
    pub revision: i64,
    /// By kind and id, deleted ones included.
    pub documents: Vec<StoredDocument>,
}

/// The newest numbers of documents in decimal are above all earlier ones of their kind, those of
/// deleted documents included, so that a number never gets a second meaning by itself.
pub trait DocumentStore: Send + Sync {
    /// Returns all documents that are not deleted, at their newest versions, by kind and id.
    fn newest(&self) -> BoxFuture<'_, Result<Vec<StoredDocument>, Error>>;

    /// Returns what changed after a revision: everything after revision 0.
    fn changed_since(&self, revision: i64) -> BoxFuture<'_, Result<ChangedDocuments, Error>>;

    /// Returns a document at a version, or its newest one, which may say that it is deleted.
    fn get<'a>(
        &'a self,
        kind: &'a str,
        id: &'a str,
        version: Option<u32>,
    ) -> BoxFuture<'a, Result<Option<StoredDocument>, Error>>;

    /// Returns all versions of a document, newest first.
    fn versions<'a>(
        &'a self,
        kind: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Vec<StoredDocument>, Error>>;

    /// Stores the next version of a document that is at version `base`. The base is 0 for a new
    /// document, and may be for one that is deleted. The version of `document` is ignored.
    fn put(&self, document: StoredDocument, base: u32) -> BoxFuture<'_, Result<Put, Error>>;
}

impl StoredDocument {
    /// What `put` stores, given the newest version of the document, or the version that the
    /// document has instead of the base. `next_number` is that of its kind.
    pub fn next(mut self, newest: Option<(u32, bool)>, base: u32, next_number: u64) -> Put {
        if self.id.is_empty() {
            self.id = next_number.to_string();
            if let Json::Object(members) = &mut self.configuration {
                members.insert("id".to_owned(), next_number.into());
            }
        }

        let (current, is_deleted) = newest.unwrap_or((0, true));
        if base != current && !(base == 0 && is_deleted) {
            return Put::Conflict { current };
        }
        self.version = current + 1;
        Put::Stored(self)
    }
}

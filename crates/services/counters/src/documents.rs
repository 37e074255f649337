//! Kinds of documents: what the workflow of drafts needs to know of each.
//!
//! A kind is registered with [`Drafts::with`](crate::Drafts::with). Counters are the first kind.

mod counter;

pub use counter::CounterKind;

use crate::difference::FieldChange;
use raingauge_core::access::{Role, Scope};
use raingauge_core::code::Refusal;
use raingauge_core::counter::Problem;
use raingauge_ports::BoxFuture;
use serde_json::Value as Json;

/// Why a document was not read or not changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    NotFound(String),
    /// The document has changed since the base of the change.
    #[error("{detail}")]
    Conflict { current: u32, detail: String },
    #[error("{kind} {id} exists already: choose another id, or leave it out to be given one")]
    IdTaken { kind: &'static str, id: u64 },
    /// The configuration is invalid, or conflicts with others.
    #[error("the configuration has {} problem(s)", .0.len())]
    Invalid(Vec<Problem>),
    /// A limit or a rule forbids the change.
    #[error("{0}")]
    Refused(String),
    /// Nothing was changed, or the change was saved and has not taken effect yet.
    #[error("{0}")]
    Unavailable(String),
}

/// A document at one of its versions.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub id: u64,
    pub version: u32,
    pub configuration: Json,
    pub changed_by: String,
    pub reason: String,
}

/// Who changes a document and why, as stored with its version.
#[derive(Clone, Copy, Debug)]
pub struct Provenance<'a> {
    pub by: &'a str,
    pub reason: &'a str,
}

/// The rights of a kind of document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindScopes {
    pub read: Scope,
    pub propose: Scope,
    pub apply: Scope,
}

/// One kind of document that can be proposed, approved and applied.
///
/// A configuration is JSON with the document's id in its member `id`; if it is missing or 0, the
/// document gets a new id.
pub trait DocumentKind: Send + Sync {
    /// The name of the kind in drafts and in the API.
    fn name(&self) -> &'static str;

    /// What API tokens need to read and to propose documents of the kind, and to let them take
    /// effect, beside the right to use drafts.
    fn scopes(&self) -> KindScopes {
        KindScopes {
            read: Scope::CountsRead,
            propose: Scope::CountersWrite,
            apply: Scope::CountersWrite,
        }
    }

    /// The role that people need to see drafts of the kind on pages.
    fn reader(&self) -> Role {
        Role::Viewer
    }

    /// Refuses an API token to which documents of the kind are closed whatever its scopes are.
    fn check_token(&self, _name: &str) -> Result<(), Refusal> {
        Ok(())
    }

    /// Checks a configuration and returns its stored form.
    fn check(&self, configuration: &Json) -> Result<Json, Error>;

    /// Returns a document at one version, or as it is now.
    fn read(&self, id: u64, version: Option<u32>) -> BoxFuture<'_, Result<Document, Error>>;

    /// Creates a document. Returns once it has taken effect.
    fn create<'a>(
        &'a self,
        configuration: &'a Json,
        provenance: Provenance<'a>,
    ) -> BoxFuture<'a, Result<Document, Error>>;

    /// Replaces a document that is at version `base`. Returns once the new version has taken
    /// effect.
    fn replace<'a>(
        &'a self,
        configuration: &'a Json,
        base: u32,
        provenance: Provenance<'a>,
    ) -> BoxFuture<'a, Result<Document, Error>>;

    /// Whether a second person has to approve this configuration, whatever the settings of drafts
    /// say.
    fn needs_second<'a>(&'a self, _configuration: &'a Json) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Returns the fields in which two configurations differ, in words.
    fn differences(&self, before: &Json, after: &Json) -> Vec<FieldChange>;
}

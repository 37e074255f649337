//! Drafts: proposed configurations of documents of any kind, until they are applied, rejected or
//! withdrawn.
//!
//! ```text
//!            ┌── edit ──┐
//!            ▼          │
//!   ──▶ draft ──send──▶ review ──approve──▶ applied
//!         │  ▲            │ │
//!         │  └── reject ──┘ └── edit: a draft again
//!         └──▶ withdrawn, applied
//! ```

use crate::BoxFuture;
use serde_json::Value as Json;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no draft {0}")]
    NotFound(u64),
    /// Another change was made to the draft first.
    #[error("draft {id} was changed by another person: read it again and repeat the change")]
    RevisionMismatch { id: u64, current: u32 },
    #[error("the catalog is out of reach: {0}")]
    Unavailable(String),
}

raingauge_core::names! {
    /// The state of a draft.
    pub enum State {
        /// Being written.
        Draft = "draft",
        /// Waits for a reviewer.
        Review = "review",
        /// Its configuration is, or was, that of the document.
        Applied = "applied",
        /// A reviewer rejected it. It may be edited and sent again.
        Rejected = "rejected",
        Withdrawn = "withdrawn",
    }
}

impl State {
    /// Whether the draft may still be applied.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Draft | Self::Review | Self::Rejected)
    }
}

/// A proposed configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// 0 until the draft is stored.
    pub id: u64,
    /// Grows by one with each change of the draft; 0 until it is stored.
    pub revision: u32,
    pub state: State,
    /// The kind of the document, such as `counter`.
    pub kind: String,
    /// The proposed configuration. Its member `id` is the id of the document; missing or 0 when a
    /// new document is to get one.
    pub configuration: Json,
    /// The version of the document that the draft starts from; 0 for a new document.
    pub base_version: u32,
    /// The version of the document that the draft became; 0 until it is applied.
    pub applied_version: u32,
    pub author: String,
    /// Why the change is made.
    pub reason: String,
    /// Who approved or rejected it, and their comment.
    pub reviewer: String,
    pub comment: String,
    /// Seconds since 1970.
    pub created_at: i64,
    pub changed_at: i64,
    /// The last editor. Several people may edit one draft.
    pub changed_by: String,
    /// Everyone who changed the proposal, the author first. None of them may approve it.
    pub contributors: Vec<String>,
}

impl Draft {
    /// A draft that is not stored yet.
    pub fn new(
        kind: &str,
        configuration: Json,
        base_version: u32,
        author: &str,
        now_s: i64,
    ) -> Self {
        Self {
            id: 0,
            revision: 0,
            state: State::Draft,
            kind: kind.to_owned(),
            configuration,
            base_version,
            applied_version: 0,
            author: author.to_owned(),
            reason: String::new(),
            reviewer: String::new(),
            comment: String::new(),
            created_at: now_s,
            changed_at: now_s,
            changed_by: author.to_owned(),
            contributors: vec![author.to_owned()],
        }
    }

    /// Notes who edits the proposal.
    pub fn edited_by(self, person: &str) -> Self {
        let mut contributors: Vec<String> = self.writers().into_iter().map(str::to_owned).collect();
        if !contributors.iter().any(|known| known == person) {
            contributors.push(person.to_owned());
        }
        Self { changed_by: person.to_owned(), contributors, ..self }
    }

    /// Everyone who wrote a part of the proposal. Drafts of earlier releases know only their author
    /// and their last editor.
    pub fn writers(&self) -> Vec<&str> {
        let all = [&self.author].into_iter().chain(&self.contributors).chain([&self.changed_by]);
        let mut writers: Vec<&str> = Vec::new();
        for writer in all {
            if !writers.contains(&writer.as_str()) {
                writers.push(writer);
            }
        }
        writers
    }

    /// The id of the document that the draft changes or asks for; 0 for a new document without a
    /// requested id.
    pub fn document_id(&self) -> u64 {
        self.configuration["id"].as_u64().unwrap_or(0)
    }

    /// The proposed name, where documents of this kind have one.
    pub fn name(&self) -> &str {
        self.configuration["name"].as_str().unwrap_or_default()
    }

    /// Whether the draft proposes a document that does not exist yet.
    pub const fn is_new(&self) -> bool {
        self.base_version == 0
    }
}

pub trait Drafts: Send + Sync {
    /// Returns at most `limit` open drafts, or drafts that have ended, the last changed first.
    fn list(&self, is_open: bool, limit: u32) -> BoxFuture<'_, Result<Vec<Draft>, Error>>;

    fn get(&self, id: u64) -> BoxFuture<'_, Result<Draft, Error>>;

    /// Stores a new draft under a new id, at revision 1.
    fn create(&self, draft: Draft) -> BoxFuture<'_, Result<Draft, Error>>;

    /// Replaces the draft that is at the revision of `draft`, and moves it to the next revision.
    fn replace(&self, draft: Draft) -> BoxFuture<'_, Result<Draft, Error>>;
}

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
    /// Somebody else changed the draft in the meantime.
    #[error("draft {id} was changed by somebody else: read it again and repeat the change")]
    RevisionMismatch { id: u64, current: u32 },
    #[error("the catalog is out of reach: {0}")]
    Unavailable(String),
}

/// Where a draft stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Being written.
    Draft,
    /// Waits for somebody to look at it.
    Review,
    /// Its configuration is that of the document, or was.
    Applied,
    /// Somebody looked at it and said no. It may be edited and sent again.
    Rejected,
    Withdrawn,
}

impl State {
    pub const ALL: [Self; 5] =
        [Self::Draft, Self::Review, Self::Applied, Self::Rejected, Self::Withdrawn];

    /// As it is stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Review => "review",
            Self::Applied => "applied",
            Self::Rejected => "rejected",
            Self::Withdrawn => "withdrawn",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether something may still come of it.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Draft | Self::Review | Self::Rejected)
    }
}

/// A proposed configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// 0 until it is kept.
    pub id: u64,
    /// Grows by one with each change of the draft; 0 until it is kept.
    pub revision: u32,
    pub state: State,
    /// The kind of its document, such as `counter`.
    pub kind: String,
    /// The proposed configuration. Its member `id` is the id of the document; missing or 0 where a
    /// new document is given one.
    pub configuration: Json,
    /// The version of the document that it starts from; 0 for a new document.
    pub base_version: u32,
    /// The version of the document that it became; 0 while it has not been applied.
    pub applied_version: u32,
    pub author: String,
    /// Why the change is made.
    pub reason: String,
    /// Who approved or rejected it, and what they said.
    pub reviewer: String,
    pub comment: String,
    /// Seconds since 1970.
    pub created_at: i64,
    pub changed_at: i64,
    /// Who changed it last: several people may edit one draft.
    pub changed_by: String,
    /// Everybody who ever changed what it proposes, the author first. None of them may approve it.
    pub contributors: Vec<String>,
}

impl Draft {
    /// A draft that is not kept yet.
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

    /// Notes who changes what it proposes.
    pub fn edited_by(self, person: &str) -> Self {
        let mut contributors: Vec<String> = self.writers().into_iter().map(str::to_owned).collect();
        if !contributors.iter().any(|known| known == person) {
            contributors.push(person.to_owned());
        }
        Self { changed_by: person.to_owned(), contributors, ..self }
    }

    /// Everybody who wrote a part of it. Drafts of earlier releases know their author and their
    /// last editor alone.
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

    /// The id of the document that it changes or asks for; 0 for a new one without a wish.
    pub fn document_id(&self) -> u64 {
        self.configuration["id"].as_u64().unwrap_or(0)
    }

    /// The name that it proposes, where documents of its kind have one.
    pub fn name(&self) -> &str {
        self.configuration["name"].as_str().unwrap_or_default()
    }

    /// Whether it proposes a document that does not exist yet.
    pub const fn is_new(&self) -> bool {
        self.base_version == 0
    }
}

pub trait Drafts: Send + Sync {
    /// Drafts that something may still come of, or those that have ended, the last changed first,
    /// so many at most.
    fn list(&self, is_open: bool, limit: u32) -> BoxFuture<'_, Result<Vec<Draft>, Error>>;

    fn get(&self, id: u64) -> BoxFuture<'_, Result<Draft, Error>>;

    /// Keeps a new draft under an id of its own, at revision 1.
    fn create(&self, draft: Draft) -> BoxFuture<'_, Result<Draft, Error>>;

    /// Replaces a draft that is at the revision of `draft`; it is at the next one then.
    fn replace(&self, draft: Draft) -> BoxFuture<'_, Result<Draft, Error>>;
}

//! The workflow of drafts: a proposed document is submitted for review, approved by a second
//! person, and takes effect; or it is rejected, or withdrawn.
//!
//! A decision names the revision of the draft that its author saw, so that it cannot apply to other
//! content. Contributors cannot approve their own draft, and a draft never overwrites a version of
//! its document that is newer than its base.

mod reason;
mod second;

pub use second::{Actor, NotSecond};

use crate::difference::FieldChange;
use crate::documents::{self, Document, DocumentKind, KindScopes, Provenance};
use raingauge_core::access::Role;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::limits::TEXT_LEN_MAX;
use raingauge_ports::clock::Clock;
use raingauge_ports::drafts::{self as store, Draft, State};
use raingauge_ports::people::{self, People};
use raingauge_settings::settings;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Most drafts that are open at once.
pub const OPEN_MAX: u32 = 1_000;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no draft {0}")]
    NotFound(u64),
    #[error("draft {0} has changed since it was read: read it again before deciding about it")]
    Changed(u64),
    #[error("draft {0} was applied or withdrawn: propose a new one")]
    Ended(u64),
    #[error("{OPEN_MAX} drafts are open, which is the most: withdraw some that are not needed")]
    TooMany,
    #[error("there is no kind of document called {0:?}")]
    KindUnknown(String),
    #[error("a reason is needed")]
    ReasonMissing,
    #[error("a reason has at most {TEXT_LEN_MAX} bytes: shorten it")]
    ReasonTooLong,
    #[error("this has to be approved: submit it, and a second person lets it take effect")]
    ApprovalNeeded,
    #[error(transparent)]
    NotSecond(#[from] NotSecond),
    /// The document has a newer version than the draft's base.
    #[error(
        "the document of draft {id} is at version {current} by now: edit the draft on top of it"
    )]
    Conflict { id: u64, current: u32 },
    #[error(transparent)]
    Document(#[from] documents::Error),
    #[error(transparent)]
    People(#[from] people::Error),
    #[error("{0}")]
    Unavailable(String),
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::NotFound(id) => Self::NotFound(id),
            store::Error::RevisionMismatch { id, .. } => Self::Changed(id),
            store::Error::Unavailable(_) => Self::Unavailable(error.to_string()),
        }
    }
}

/// A proposed configuration, and the version of its document that it is based on: 0 for a new
/// document.
#[derive(Clone, Debug)]
pub struct Proposal<'a> {
    pub kind: &'a str,
    pub configuration: Json,
    pub base_version: u32,
}

/// A decision about one revision of a draft.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    pub id: u64,
    pub revision: u32,
    /// The reason of the author, or the comment of the reviewer.
    pub text: &'a str,
    pub by: Actor<'a>,
}

/// A draft after a change, for the audit log.
#[derive(Clone, Debug)]
pub struct DraftChange {
    pub draft: Draft,
    /// The changes to its document, when its configuration was changed or applied. `None` for a new
    /// document.
    pub changes: Option<Vec<FieldChange>>,
}

/// A draft's document, at the draft's base and now.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    pub base: Option<Document>,
    pub current: Option<Document>,
}

impl Standing {
    /// Returns the base and the current version if the document has changed since.
    pub fn conflict(&self) -> Option<(&Document, &Document)> {
        let base = self.base.as_ref()?;
        let current = self.current.as_ref()?;
        (base.version != current.version).then_some((base, current))
    }
}

settings! {
    /// How drafts take effect.
    pub struct Options in "portal" {
        /// Whether a second person has to approve a draft of a counter before it takes effect.
        needs_approval as "approval": bool = switch(false);
    }
}

/// The workflow, for all registered kinds of documents.
pub struct Drafts {
    store: Arc<dyn store::Drafts>,
    people: Arc<dyn People>,
    clock: Arc<dyn Clock>,
    kinds: Vec<Arc<dyn DocumentKind>>,
    needs_approval: bool,
}

impl Drafts {
    /// Has no kinds of documents yet. `needs_approval` requires a second person before a draft
    /// takes effect.
    pub fn new(
        store: Arc<dyn store::Drafts>,
        people: Arc<dyn People>,
        clock: Arc<dyn Clock>,
        needs_approval: bool,
    ) -> Self {
        Self { store, people, clock, kinds: Vec::new(), needs_approval }
    }

    /// Registers a kind of document.
    pub fn with(mut self, kind: Arc<dyn DocumentKind>) -> Self {
        self.kinds.push(kind);
        self
    }

    pub fn needs_approval(&self) -> bool {
        self.needs_approval
    }

    /// Returns open or ended drafts, the last changed first.
    pub async fn list(&self, is_open: bool, limit: u32) -> Result<Vec<Draft>, Error> {
        Ok(self.store.list(is_open, limit).await?)
    }

    pub async fn get(&self, id: u64) -> Result<Draft, Error> {
        Ok(self.store.get(id).await?)
    }

    /// Returns the document that a draft changes: at the draft's base, and as it is now.
    pub async fn standing(&self, draft: &Draft) -> Result<Standing, Error> {
        if draft.is_new() {
            return Ok(Standing::default());
        }
        let kind = self.kind(&draft.kind)?;
        let base = kind.read(draft.document_id(), Some(draft.base_version)).await?;
        let current = kind.read(draft.document_id(), None).await?;
        Ok(Standing { base: Some(base), current: Some(current) })
    }

    /// Returns the fields in which two configurations of a kind differ, in words.
    pub fn differences(
        &self,
        kind: &str,
        before: &Json,
        after: &Json,
    ) -> Result<Vec<FieldChange>, Error> {
        Ok(self.kind(kind)?.differences(before, after))
    }

    /// Checks that an actor may approve a draft.
    pub async fn check_second(&self, by: Actor<'_>, draft: &Draft) -> Result<(), Error> {
        second::check(&*self.people, by, draft).await
    }

    /// Stores a new draft.
    pub async fn create(
        &self,
        proposal: Proposal<'_>,
        by: Actor<'_>,
    ) -> Result<DraftChange, Error> {
        let kind = self.kind(proposal.kind)?;
        let configuration = kind.check(&proposal.configuration)?;
        if self.store.list(true, OPEN_MAX).await?.len() >= OPEN_MAX as usize {
            return Err(Error::TooMany);
        }

        let now_s = self.clock.now_s();
        let draft = Draft::new(kind.name(), configuration, proposal.base_version, by.name, now_s);
        let changes = self.changes_of(&draft).await?;
        let draft = self.store.create(by.contributes_to(draft)).await?;
        Ok(DraftChange { draft, changes })
    }

    /// Changes what a draft proposes. It stays a draft of the same document, and comments of an
    /// earlier review are removed. A new document may still choose another id.
    pub async fn edit(
        &self,
        id: u64,
        revision: u32,
        configuration: &Json,
        base_version: u32,
        by: Actor<'_>,
    ) -> Result<DraftChange, Error> {
        let draft = self.store.get(id).await?;
        if !draft.state.is_open() {
            return Err(Error::Ended(id));
        }

        let mut configuration = configuration.clone();
        if let Some(members) = configuration.as_object_mut().filter(|_| !draft.is_new()) {
            members.insert("id".to_owned(), json!(draft.document_id()));
        }

        let configuration = self.kind(&draft.kind)?.check(&configuration)?;
        let base_version = if draft.is_new() { 0 } else { base_version };

        let edited = Draft {
            revision,
            state: State::Draft,
            configuration,
            base_version,
            reviewer: String::new(),
            comment: String::new(),
            changed_at: self.clock.now_s(),
            ..draft
        };

        let changes = self.changes_of(&edited).await?;
        let draft = self.store.replace(by.contributes_to(edited)).await?;
        Ok(DraftChange { draft, changes })
    }

    /// Submits a draft for review. The text is the reason of the change.
    pub async fn submit(&self, decision: Decision<'_>) -> Result<DraftChange, Error> {
        let draft = self.decided(decision, true).await?;
        self.keep(Draft {
            state: State::Review,
            reason: decision.text.to_owned(),
            reviewer: String::new(),
            comment: String::new(),
            ..draft
        })
        .await
    }

    /// Returns a draft to its author. The text says why.
    pub async fn reject(&self, decision: Decision<'_>) -> Result<DraftChange, Error> {
        let draft = self.decided(decision, true).await?;
        in_review(&draft)?;
        self.keep(Draft {
            state: State::Rejected,
            reviewer: decision.by.name.to_owned(),
            comment: decision.text.to_owned(),
            ..draft
        })
        .await
    }

    /// Ends a draft without any effect.
    pub async fn withdraw(&self, decision: Decision<'_>) -> Result<DraftChange, Error> {
        let draft = self.decided(decision, false).await?;
        self.keep(Draft { state: State::Withdrawn, ..draft }).await
    }

    /// Approves a draft, which takes effect at once. Where approval is needed, only a second person
    /// may approve. The text is a comment.
    pub async fn approve(&self, decision: Decision<'_>) -> Result<DraftChange, Error> {
        let draft = self.decided(decision, false).await?;
        in_review(&draft)?;
        if self.needs_second(&draft).await? {
            self.check_second(decision.by, &draft).await?;
        }

        let name = decision.by.name;
        let text = decision.text;
        let reason = reason::of_approval(&draft, name, text);
        let approved = Draft { reviewer: name.to_owned(), comment: text.to_owned(), ..draft };
        self.take_effect(approved, &reason).await
    }

    /// Applies a draft without a review, where none is needed. The text is the reason.
    pub async fn apply(&self, decision: Decision<'_>) -> Result<DraftChange, Error> {
        let draft = self.decided(decision, true).await?;
        if self.needs_second(&draft).await? {
            return Err(Error::ApprovalNeeded);
        }
        let applied = Draft { reason: decision.text.to_owned(), ..draft };
        let reason = reason::of_author(&applied);
        self.take_effect(applied, &reason).await
    }

    /// Whether a second person has to approve a draft.
    async fn needs_second(&self, draft: &Draft) -> Result<bool, Error> {
        let kind = self.kind(&draft.kind)?;
        Ok(self.needs_approval || kind.needs_second(&draft.configuration).await?)
    }

    /// What API tokens need for documents of a kind.
    pub fn scopes_of(&self, kind: &str) -> Result<KindScopes, Error> {
        Ok(self.kind(kind)?.scopes())
    }

    /// The role that people need to see drafts of a kind. While a product is switched off, its
    /// drafts are for administrators.
    pub fn reader_of(&self, kind: &str) -> Role {
        self.kind(kind).map_or(Role::Admin, DocumentKind::reader)
    }

    /// Checks that documents of a kind are open to an API token, as far as its name decides.
    pub fn check_token(&self, kind: &str, token: &str) -> Result<(), Refusal> {
        let unknown = |error: Error| Refusal::new(Code::KindUnknown, error.to_string());
        self.kind(kind).map_err(unknown)?.check_token(token)
    }

    fn kind(&self, name: &str) -> Result<&dyn DocumentKind, Error> {
        let found = self.kinds.iter().find(|kind| kind.name() == name);
        found.map(|kind| &**kind).ok_or_else(|| Error::KindUnknown(name.to_owned()))
    }

    /// Returns what a draft changes of its base, which must exist.
    async fn changes_of(&self, draft: &Draft) -> Result<Option<Vec<FieldChange>>, Error> {
        if draft.is_new() {
            return Ok(None);
        }
        let kind = self.kind(&draft.kind)?;
        let base = kind.read(draft.document_id(), Some(draft.base_version)).await?;
        Ok(Some(kind.differences(&base.configuration, &draft.configuration)))
    }

    /// Returns the draft that a decision is about, if the decision is allowed.
    async fn decided(&self, decision: Decision<'_>, needs_text: bool) -> Result<Draft, Error> {
        let draft = self.store.get(decision.id).await?;
        if decision.revision != draft.revision || !draft.state.is_open() {
            return Err(Error::Changed(draft.id));
        }
        if needs_text && decision.text.is_empty() {
            return Err(Error::ReasonMissing);
        }
        if decision.text.len() > TEXT_LEN_MAX {
            return Err(Error::ReasonTooLong);
        }
        Ok(draft)
    }

    async fn keep(&self, draft: Draft) -> Result<DraftChange, Error> {
        let draft = Draft { changed_at: self.clock.now_s(), ..draft };
        Ok(DraftChange { draft: self.store.replace(draft).await?, changes: None })
    }

    /// Applies the draft to its document, and then ends the draft. If the process dies in between,
    /// the draft can be applied again: the document is then already as proposed.
    async fn take_effect(&self, draft: Draft, reason: &str) -> Result<DraftChange, Error> {
        let kind = self.kind(&draft.kind)?;
        let changes = self.changes_of(&draft).await?;
        let provenance = Provenance { by: &draft.author, reason };
        let changed = if draft.is_new() {
            kind.create(&draft.configuration, provenance).await
        } else {
            kind.replace(&draft.configuration, draft.base_version, provenance).await
        };

        let document = match changed {
            Err(error @ (documents::Error::IdTaken { .. } | documents::Error::Conflict { .. })) => {
                made_before(kind, &draft, error).await?
            }
            changed => changed?,
        };

        let ended = Draft {
            state: State::Applied,
            configuration: document.configuration,
            applied_version: document.version,
            changed_at: self.clock.now_s(),
            ..draft
        };
        Ok(DraftChange { draft: self.store.replace(ended).await?, changes })
    }
}

fn in_review(draft: &Draft) -> Result<(), Error> {
    match draft.state {
        State::Review => Ok(()),
        _ => Err(Error::Changed(draft.id)),
    }
}

/// Returns the current document if an earlier attempt made it exactly what the draft proposes.
async fn made_before(
    kind: &dyn DocumentKind,
    draft: &Draft,
    error: documents::Error,
) -> Result<Document, Error> {
    let current = kind.read(draft.document_id(), None).await?;
    if current.configuration == kind.check(&draft.configuration)? {
        return Ok(current);
    }
    match error {
        documents::Error::Conflict { current, .. } => {
            Err(Error::Conflict { id: draft.id, current })
        }
        error => Err(error.into()),
    }
}

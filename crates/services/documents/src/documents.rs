//! The service of documents.

use crate::announcer::Announcer;
use crate::error::Error;
use crate::rules::{CheckedDocument, InEffect, Rules};
use raingauge_core::counter::Problem;
use raingauge_core::limits::TEXT_LEN_MAX;
use raingauge_counters::documents::Provenance;
use raingauge_ports::campaigns::{ChangedDocuments, DocumentStore, Put, StoredDocument};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::EventSink;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::MissedTickBehavior;

/// What the service works with.
pub struct Deps {
    pub store: Arc<dyn DocumentStore>,
    pub rules: Arc<dyn Rules>,
    pub sink: Arc<dyn EventSink>,
    pub in_effect: Arc<dyn InEffect>,
    pub clock: Arc<dyn Clock>,
}

#[derive(Clone, Debug)]
pub struct Options {
    /// How long a change waits until it is in effect.
    pub patience: Duration,
    /// How often the store is compared with what is in effect.
    pub interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { patience: Duration::from_secs(10), interval: Duration::from_millis(500) }
    }
}

/// The version that a change is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// There is no such document yet.
    New,
    Version(u32),
    /// The newest one, whichever that is.
    Newest,
}

/// A change of a document, as it is saved.
#[derive(Clone, Copy, Debug)]
struct Change<'c> {
    base: Base,
    provenance: Provenance<'c>,
    /// Whether a second person has approved it.
    is_approved: bool,
}

/// The documents of one product.
pub struct Documents {
    store: Arc<dyn DocumentStore>,
    rules: Arc<dyn Rules>,
    clock: Arc<dyn Clock>,
    announcer: Announcer,
    options: Options,
    /// The revision of the store that the rules have noted. Changes of this process take turns, so
    /// that each is checked among those before it.
    followed: Mutex<i64>,
}

impl Documents {
    pub fn new(deps: Deps, options: Options) -> Self {
        let Deps { store, rules, sink, in_effect, clock } = deps;
        let announcer = Announcer::new(rules.consumer(), sink, in_effect);
        Self { store, rules, clock, announcer, options, followed: Mutex::default() }
    }

    /// The documents of a kind, by id.
    pub async fn list<'k>(&self, kind: impl Into<&'k str>) -> Result<Vec<StoredDocument>, Error> {
        let kind = self.known(kind.into())?;
        let all = self.store.newest().await?;
        let mut own: Vec<StoredDocument> =
            all.into_iter().filter(|document| document.kind == kind).collect();
        own.sort_by_key(|document| (document.id.parse::<u32>().ok(), document.id.clone()));
        Ok(own)
    }

    /// A document as it is now, or at a version.
    pub async fn get<'k>(
        &self,
        kind: impl Into<&'k str>,
        id: &str,
        version: Option<u32>,
    ) -> Result<StoredDocument, Error> {
        let kind = self.known(kind.into())?;
        let found = self.store.get(kind, id, version).await?;
        match (found, version) {
            (Some(found), Some(_)) => Ok(found),
            (Some(found), None) if !found.is_deleted => Ok(found),
            (None, Some(version)) => {
                Err(Error::VersionUnknown { kind: kind.to_owned(), id: id.to_owned(), version })
            }
            _ => Err(Error::not_found(kind, id)),
        }
    }

    /// All versions of a document, newest first, also of one that is deleted.
    pub async fn versions<'k>(
        &self,
        kind: impl Into<&'k str>,
        id: &str,
    ) -> Result<Vec<StoredDocument>, Error> {
        let kind = self.known(kind.into())?;
        let versions = self.store.versions(kind, id).await?;
        if versions.is_empty() { Err(Error::not_found(kind, id)) } else { Ok(versions) }
    }

    /// Checks a document by itself and among the others, and returns its stored form. Nothing is
    /// saved.
    pub async fn check<'k>(
        &self,
        kind: impl Into<&'k str>,
        configuration: &Json,
    ) -> Result<Json, Error> {
        let kind = kind.into();
        let checked = self.checked(kind, configuration)?;
        let mut followed = self.followed.lock().await;
        self.note_changes(&mut followed).await?;
        let problems = self.rules.problems(kind, &checked.configuration);
        if problems.is_empty() {
            Ok(checked.configuration)
        } else {
            Err(Error::invalid(kind, problems))
        }
    }

    /// Creates a document, and returns it once it is in effect.
    pub async fn create<'k>(
        &self,
        kind: impl Into<&'k str>,
        configuration: &Json,
        provenance: Provenance<'_>,
    ) -> Result<StoredDocument, Error> {
        let kind = kind.into();
        let checked = self.checked(kind, configuration)?;
        let change = Change { base: Base::New, provenance, is_approved: false };
        self.save(kind, checked, change).await
    }

    /// Replaces a document that is at version `expected`, or at any version without one, and
    /// returns it once it is in effect. Replacing it by an equal one makes no new version.
    pub async fn replace<'k>(
        &self,
        kind: impl Into<&'k str>,
        id: &str,
        configuration: &Json,
        expected: Option<u32>,
        provenance: Provenance<'_>,
    ) -> Result<StoredDocument, Error> {
        let kind = kind.into();
        let checked = self.checked(kind, configuration)?;
        if checked.id != id {
            let detail = format!("the document is `{}`, and not `{id}`", checked.id);
            return Err(Error::invalid(kind, vec![Problem::new("name", detail)]));
        }
        let base = expected.map_or(Base::Newest, Base::Version);
        self.save(kind, checked, Change { base, provenance, is_approved: false }).await
    }

    /// Creates or replaces a document whose change a second person has approved, where that is
    /// needed. The base of a new one is 0.
    pub(crate) async fn save_reviewed(
        &self,
        kind: &str,
        configuration: &Json,
        base: u32,
        provenance: Provenance<'_>,
    ) -> Result<StoredDocument, Error> {
        let checked = self.checked(kind, configuration)?;
        let base = if base == 0 { Base::New } else { Base::Version(base) };
        self.save(kind, checked, Change { base, provenance, is_approved: true }).await
    }

    /// Changes the member `state` of a document.
    pub async fn set_state<'k>(
        &self,
        kind: impl Into<&'k str>,
        id: &str,
        state: &str,
        expected: Option<u32>,
        provenance: Provenance<'_>,
    ) -> Result<StoredDocument, Error> {
        self.set_member(kind, id, ("state", json!(state)), expected, provenance).await
    }

    /// Changes one member of a document, or with null removes it.
    pub async fn set_member<'k>(
        &self,
        kind: impl Into<&'k str>,
        id: &str,
        (member, value): (&str, Json),
        expected: Option<u32>,
        provenance: Provenance<'_>,
    ) -> Result<StoredDocument, Error> {
        let kind = kind.into();
        let current = self.get(kind, id, None).await?;
        let mut configuration = current.configuration;
        match configuration.as_object_mut() {
            Some(members) if value.is_null() => drop(members.remove(member)),
            _ => configuration[member] = value,
        }
        // What was read is what is changed.
        let expected = Some(expected.unwrap_or(current.version));
        self.replace(kind, id, &configuration, expected, provenance).await
    }

    /// Deletes a document that no other one needs. Its versions stay.
    pub async fn delete<'k>(
        &self,
        kind: impl Into<&'k str>,
        id: &str,
        expected: Option<u32>,
        provenance: Provenance<'_>,
    ) -> Result<StoredDocument, Error> {
        let kind = self.known(kind.into())?;
        let deleted = {
            let mut followed = self.followed.lock().await;
            self.note_changes(&mut followed).await?;
            let current = self.current(kind, id).await?;
            let base = expected.map_or(Base::Newest, Base::Version);
            let base = base_version(kind, id, base, current.as_ref())?;
            if let Some(why) = self.rules.problem_of_deletion(kind, id) {
                return Err(Error::Refused(format!("{kind} {id} stays: {why}")));
            }

            let version = self.version(kind, id, Json::Null, provenance);
            self.put(StoredDocument { is_deleted: true, ..version }, base).await?
        };
        self.announcer.wait(&deleted, self.options.patience).await?;
        Ok(deleted)
    }

    /// Why a change of a document would have to be approved.
    pub async fn approval_needed(
        &self,
        kind: &str,
        configuration: &Json,
    ) -> Result<Option<String>, Error> {
        let checked = self.checked(kind, configuration)?;
        let current = self.current(kind, &checked.id).await?;
        let before = current.as_ref().map(|current| &current.configuration);
        Ok(self.rules.approval_needed(kind, before, &checked.configuration))
    }

    /// Announces what is newer in the store than in effect: changes of other processes, and those
    /// of a process that ended before it had announced them.
    pub async fn reconcile(&self) -> Result<(), Error> {
        let mut followed = self.followed.lock().await;
        self.note_changes(&mut followed).await
    }

    /// Reconciles until the process ends.
    pub async fn follow(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(self.options.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_failing = false;
        loop {
            ticks.tick().await;
            let reconciled = self.reconcile().await;
            if let Err(error) = &reconciled
                && !is_failing
            {
                tracing::warn!(%error, "documents of other processes do not take effect");
            }
            is_failing = reconciled.is_err();
        }
    }

    fn known<'k>(&self, kind: &'k str) -> Result<&'k str, Error> {
        let is_known = self.rules.has_kind(kind);
        if is_known { Ok(kind) } else { Err(Error::KindUnknown(kind.to_owned())) }
    }

    /// Checks a document by itself.
    pub(crate) fn checked(
        &self,
        kind: &str,
        configuration: &Json,
    ) -> Result<CheckedDocument, Error> {
        let kind = self.known(kind)?;
        self.rules.check(kind, configuration).map_err(|problems| Error::invalid(kind, problems))
    }

    /// The newest version of a document that is not deleted.
    async fn current(&self, kind: &str, id: &str) -> Result<Option<StoredDocument>, Error> {
        if id.is_empty() {
            return Ok(None);
        }
        let found = self.store.get(kind, id, None).await?;
        Ok(found.filter(|document| !document.is_deleted))
    }

    /// Notes what changed in the store, and announces what is not in effect. The revision moves on
    /// when all of it is announced.
    async fn note_changes(&self, followed: &mut i64) -> Result<(), Error> {
        let ChangedDocuments { revision, documents } = self.store.changed_since(*followed).await?;
        for document in documents.iter().filter(|document| self.rules.has_kind(&document.kind)) {
            self.rules.note(document);
            self.announcer.announce(document).await?;
        }
        *followed = revision;
        Ok(())
    }

    /// Stores a checked document, and waits until it is in effect.
    async fn save(
        &self,
        kind: &str,
        checked: CheckedDocument,
        change: Change<'_>,
    ) -> Result<StoredDocument, Error> {
        if change.provenance.reason.len() > TEXT_LEN_MAX {
            let detail = format!("has at most {TEXT_LEN_MAX} bytes: shorten it");
            return Err(Error::invalid(kind, vec![Problem::new("reason", detail)]));
        }
        let stored = self.store_checked(kind, checked, change).await?;
        self.announcer.wait(&stored, self.options.patience).await?;
        Ok(stored)
    }

    /// Checks a document among the others, and stores it unless it is there already.
    async fn store_checked(
        &self,
        kind: &str,
        checked: CheckedDocument,
        change: Change<'_>,
    ) -> Result<StoredDocument, Error> {
        let CheckedDocument { id, configuration } = checked;
        let mut followed = self.followed.lock().await;
        self.note_changes(&mut followed).await?;
        let current = self.current(kind, &id).await?;
        let base = base_version(kind, &id, change.base, current.as_ref())?;

        let before = current.as_ref().map(|current| &current.configuration);
        if let Some(current) = current.clone().filter(|_| before == Some(&configuration)) {
            return Ok(current);
        }
        let problems = self.rules.problems(kind, &configuration);
        if !problems.is_empty() {
            return Err(Error::invalid(kind, problems));
        }
        if !change.is_approved
            && let Some(why) = self.rules.approval_needed(kind, before, &configuration)
        {
            return Err(Error::ApprovalNeeded(why));
        }
        self.put(self.version(kind, &id, configuration, change.provenance), base).await
    }

    fn version(
        &self,
        kind: &str,
        id: &str,
        configuration: Json,
        provenance: Provenance<'_>,
    ) -> StoredDocument {
        StoredDocument {
            kind: kind.to_owned(),
            id: id.to_owned(),
            version: 0,
            configuration,
            is_deleted: false,
            changed_by: provenance.by.to_owned(),
            reason: provenance.reason.to_owned(),
            changed_ms: self.clock.now_ms(),
        }
    }

    /// Stores a version and announces it.
    async fn put(&self, document: StoredDocument, base: u32) -> Result<StoredDocument, Error> {
        let StoredDocument { kind, id, .. } = document.clone();
        match self.store.put(document, base).await? {
            Put::Stored(stored) => {
                self.rules.note(&stored);
                self.announcer.announce(&stored).await?;
                Ok(stored)
            }
            Put::Conflict { .. } if base == 0 => Err(Error::Taken { kind, id }),
            Put::Conflict { current } => Err(Error::Conflict { kind, id, current }),
        }
    }
}

/// The version that a change is based on, if that is the newest one; 0 for a new document.
fn base_version(
    kind: &str,
    id: &str,
    base: Base,
    current: Option<&StoredDocument>,
) -> Result<u32, Error> {
    let current = current.map(|current| current.version);
    let kind = kind.to_owned();
    let id = id.to_owned();
    match (base, current) {
        (Base::New, None) => Ok(0),
        (Base::New, Some(_)) => Err(Error::Taken { kind, id }),
        (Base::Version(_) | Base::Newest, None) => Err(Error::NotFound { kind, id }),
        (Base::Version(version), Some(current)) if version != current => {
            Err(Error::Conflict { kind, id, current })
        }
        (_, Some(current)) => Ok(current),
    }
}

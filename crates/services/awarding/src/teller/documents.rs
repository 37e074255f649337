//! Programmes coming into force, at their places in the log or as the store has them.

use super::{Worker, position_of};
use crate::error::Error;
use crate::lane::Lane;
use crate::snapshot::{PROGRAMME, compiled};
use raingauge_consumers::control::DocumentVersion;
use raingauge_points::{Desk, Footprint, Turn};
use raingauge_ports::campaigns::{ChangedDocuments, StoredDocument};
use raingauge_ports::log::Offset;
use raingauge_ports::points::Head;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Worker {
    /// Puts the programmes of control entries into force, which end before `end`.
    pub(super) fn obey(&mut self, orders: &[DocumentVersion], end: Offset) -> Result<(), Error> {
        let mut newest = BTreeMap::new();
        for order in orders.iter().filter(|order| order.kind == PROGRAMME) {
            let version = newest.entry(order.id.clone()).or_insert(order.version);
            *version = order.version.max(*version);
        }

        let mut documents = Vec::new();
        for (id, version) in newest {
            let is_newer =
                self.snapshot.version_of(PROGRAMME, &id).is_none_or(|known| known < version);
            if is_newer {
                documents.push(self.document(&id, version)?);
            }
        }
        self.put_into_force(documents, Some(end))?;
        self.move_to(end);
        Ok(())
    }

    /// Puts what is newer in the store into force, where there is no log. Answers whether there was
    /// something.
    pub(super) fn follow_documents(&mut self) -> Result<bool, Error> {
        let elapsed_ms = self.deps.clock.elapsed_ms();
        let is_due = elapsed_ms - self.followed_at_ms >= self.options.follow_ms;
        if self.deps.log.is_some() || !is_due {
            return Ok(false);
        }

        self.followed_at_ms = elapsed_ms;
        let changed = self.deps.documents.changed_since(self.followed);
        let ChangedDocuments { revision, documents } = match self.deps.runtime.block_on(changed) {
            Ok(changed) => changed,
            Err(error) => {
                self.rest(&error.into());
                return Ok(false);
            }
        };

        let is_newer = |document: &StoredDocument| {
            let known = self.snapshot.version_of(&document.kind, &document.id);
            document.kind == PROGRAMME && known.is_none_or(|known| known < document.version)
        };
        let documents: Vec<StoredDocument> = documents.into_iter().filter(is_newer).collect();
        let has_changed = !documents.is_empty();
        if let Err(error) = self.put_into_force(documents, None) {
            self.rest(&error);
            return if matches!(error, Error::Books(_)) { Err(error) } else { Ok(false) };
        }
        self.followed = revision;
        // What was tried again has succeeded.
        if self.shared.trouble().is_some() {
            self.shared.set_trouble(None);
        }
        Ok(has_changed)
    }

    /// Notes in every book that programmes are in force, and goes by them from here on.
    fn put_into_force(
        &mut self,
        documents: Vec<StoredDocument>,
        position: Option<Offset>,
    ) -> Result<(), Error> {
        let documents: Vec<_> =
            documents.into_iter().filter(|document| !document.is_deleted).collect();
        if documents.is_empty() {
            return Ok(());
        }

        let versions: Vec<(Arc<str>, u32)> = documents
            .iter()
            .map(|document| (Arc::from(document.id.as_str()), document.version))
            .collect();
        let next = self.snapshot.with(documents)?;
        let now_ms = self.now_ms();
        let books: Vec<u16> = (0..self.deps.books.books()).collect();
        let mut sound = Ok(());
        let heads = self.deps.books.turn(&books, &Footprint::default(), &mut |heads, loaded| {
            sound = self.check_clock(&loaded);
            if sound.is_err() {
                return Turn::default();
            }
            let mut desk = Desk::new(next.programmes(), loaded, now_ms);
            for (name, version) in &versions {
                // Another process may have been faster.
                if heads.iter().any(|head| version_in(head, name) < *version) {
                    desk.programme(name, *version);
                }
            }
            Turn { position, ..desk.finish() }
        })?;
        sound?;

        self.snapshot = next;
        self.shared.note_entries();
        if position.is_some() {
            self.note_stored(position_of(&heads));
        }
        self.follow_heads(&heads)?;
        self.publish(true);
        Ok(())
    }

    /// Reads what is in force in books and not here.
    pub(super) fn follow_heads(&mut self, heads: &[Head]) -> Result<(), Error> {
        let missing = self.snapshot.missing(heads);
        self.follow_versions(&missing)
    }

    pub(super) fn follow_versions(&mut self, versions: &[(Arc<str>, u32)]) -> Result<(), Error> {
        let documents: Vec<StoredDocument> = versions
            .iter()
            .map(|(id, version)| self.document(id, *version))
            .collect::<Result<_, _>>()?;
        if !documents.is_empty() {
            self.snapshot = self.snapshot.with(documents)?;
        }
        Ok(())
    }

    /// Reads versions that have priced awards, before or after the one in force here. Awards of one
    /// that cannot be read are refused for now, and tried again.
    pub(super) fn learn_versions(&mut self, lanes: &[&Lane]) {
        let programmes = self.snapshot.programmes();
        let needed: BTreeSet<(Arc<str>, u32)> =
            lanes.iter().flat_map(|lane| lane.other_versions(programmes)).collect();
        let mut learned = Vec::new();
        for (name, version) in &needed {
            if programmes.version(name, *version).is_some() {
                continue;
            }
            match self.document(name, *version).and_then(|document| compiled(&document)) {
                Ok(programme) => learned.push(programme),
                Err(error) => tracing::warn!(%error, "a version that priced awards is not read"),
            }
        }
        if !learned.is_empty() {
            self.snapshot = self.snapshot.knowing(learned, &needed);
        }
    }

    fn document(&self, id: &str, version: u32) -> Result<StoredDocument, Error> {
        let read = self.deps.documents.get(PROGRAMME, id, Some(version));
        let found = self.deps.runtime.block_on(read)?;
        found.ok_or_else(|| Error::DocumentMissing {
            kind: PROGRAMME.to_owned(),
            id: id.to_owned(),
            version,
        })
    }
}

/// The version of a programme that is in force in a book; 0 if there is none.
fn version_in(head: &Head, name: &str) -> u32 {
    let found = head.versions.iter().find(|(known, _)| &**known == name);
    found.map_or(0, |(_, version)| *version)
}

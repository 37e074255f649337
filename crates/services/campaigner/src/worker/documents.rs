//! Documents taking effect at their places in the log.

use super::{Next, Worker};
use crate::batch::Batch;
use crate::control::{Control, DocumentVersion};
use crate::documents::Documents;
use crate::error::Error;
use crate::tallies::{Effect, Tallies};
use raingauge_campaigns::campaign::{Campaign, CampaignId, State};
use raingauge_ports::campaigns::StoredDocument;
use raingauge_ports::log::Offset;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Worker {
    /// Reads the documents that were in effect at the position.
    pub(super) fn read_documents(&mut self) -> Result<(), Error> {
        let control = Control::from_bytes(&std::mem::take(&mut self.checkpoint.control))?;
        let newest = self.deps.runtime.block_on(self.deps.documents.newest())?;
        let mut newest: BTreeMap<(String, String), StoredDocument> = newest
            .into_iter()
            .map(|document| ((document.kind.clone(), document.id.clone()), document))
            .collect();

        let mut stored = Vec::new();
        for (kind, versions) in &control.documents {
            for (id, version) in versions {
                let found = newest.remove(&(kind.clone(), id.clone()));
                let wanted =
                    DocumentVersion { kind: kind.clone(), id: id.clone(), version: *version };
                stored.push(match found {
                    Some(found) if found.version == *version => found,
                    _ => self.document(&wanted)?,
                });
            }
        }

        self.documents = Arc::new(Documents::of(stored));
        self.tallies = Arc::new(Tallies::of(&self.documents));
        self.sweep.begin(&control.sweeps);
        self.control = Arc::new(control);
        self.compile();
        Ok(())
    }

    fn document(&self, wanted: &DocumentVersion) -> Result<StoredDocument, Error> {
        let DocumentVersion { kind, id, version } = wanted;
        let found =
            self.deps.runtime.block_on(self.deps.documents.get(kind, id, Some(*version)))?;
        let missing =
            || Error::DocumentMissing { kind: kind.clone(), id: id.clone(), version: *version };
        found.ok_or_else(missing)
    }

    /// What is in effect behind a batch. `walked` is where the walk under way is then.
    pub(super) fn next(
        &mut self,
        batch: &Batch<'_>,
        walked: Option<Offset>,
    ) -> Result<Next, Error> {
        let mut next = Next {
            control: Arc::clone(&self.control),
            documents: Arc::clone(&self.documents),
            tallies: Arc::clone(&self.tallies),
            is_changed: false,
        };
        if let Some(walked) = walked {
            next.is_changed = walk_to(walked, Arc::make_mut(&mut next.control));
        }
        if batch.orders.is_empty() {
            return Ok(next);
        }
        if !batch.erased().is_empty() {
            Arc::make_mut(&mut next.control).erased_until = batch.end;
        }
        if batch.documents().next().is_none() {
            return Ok(next);
        }

        let control = Arc::make_mut(&mut next.control);
        let tallies = Arc::make_mut(&mut next.tallies);
        let mut changed = BTreeMap::new();
        for order in batch.documents() {
            if control.put_document(order) {
                // Only the last version of several is ever in effect.
                let before = changed.insert((order.kind.clone(), order.id.clone()), order);
                self.note_ending(before, control)?;
            }
        }
        let stored: Result<Vec<_>, Error> =
            changed.values().map(|order| self.document(order)).collect();
        next.documents = Arc::new(self.documents.with(stored?));
        next.is_changed = true;

        let effect = Effect { log: &*self.deps.log, offset: batch.end, log_ms: batch.log_ms };
        for (kind, id) in changed.into_keys() {
            if kind == "campaign"
                && let Ok(id) = id.parse::<CampaignId>()
            {
                let before = self.documents.campaign(id);
                let after = next.documents.campaign(id);
                tallies.change(control, (before, after), effect);
                let has_ended = control.endings.contains_key(&id);
                if has_ended || needs_sweep(before, after) {
                    control.sweeps.insert(id);
                    self.sweep.begin(&control.sweeps);
                }
            }
        }
        Ok(next)
    }
}

impl Worker {
    /// Notes a version that ended a campaign and was replaced at once.
    fn note_ending(
        &self,
        replaced: Option<&DocumentVersion>,
        control: &mut Control,
    ) -> Result<(), Error> {
        let Some(replaced) = replaced.filter(|one| one.kind == "campaign") else { return Ok(()) };
        let Ok(id) = replaced.id.parse::<CampaignId>() else { return Ok(()) };
        let stored = self.document(replaced)?;
        if stored.is_deleted || stored.configuration["state"] == "archived" {
            control.endings.insert(id, replaced.version);
        }
        Ok(())
    }
}

/// Notes where the walk under way is. Answers whether it has ended, and its campaigns decide.
fn walk_to(walked: Offset, control: &mut Control) -> bool {
    let Some(walk) = control.walks.first_mut() else { return false };
    walk.has_begun = true;
    walk.next = walked;
    let has_ended = walked >= walk.until();
    if has_ended {
        control.walks.remove(0);
    }
    has_ended
}

/// Whether what waits for a campaign has to be seen to: it goes on after a rest, or is over.
fn needs_sweep(before: Option<&Campaign>, after: Option<&Campaign>) -> bool {
    let is_over = |campaign: Option<&Campaign>| {
        campaign.is_none_or(|campaign| campaign.state == State::Archived)
    };
    let acts = |campaign: Option<&Campaign>| campaign.is_some_and(|one| one.state.decides());
    let goes_on = before.is_some() && !acts(before) && acts(after);
    goes_on || before.is_some() && !is_over(before) && is_over(after)
}

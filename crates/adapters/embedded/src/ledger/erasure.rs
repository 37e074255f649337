//! Erasing a subject.

use super::expiry::forget_decision;
use super::outbox::Changes;
use super::writes::Writes;
use super::{CampaignLedger, Error, Inner, failed, keys, malformed};
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use raingauge_ports::campaigns::{
    ActionId, DeliveryRecord, Effect, ErasedRecords, LedgerErasure, StateKey, StateKind, Status,
};

impl Inner {
    fn erase(&self, subject: &str) -> Result<ErasedRecords, Error> {
        Ok(ErasedRecords {
            states: self.erase_states(subject)?,
            decisions: self.erase_decisions(subject)?,
            deliveries: self.erase_deliveries(subject)?,
        })
    }

    /// Goes from owner to owner, so that the states of other subjects are not read.
    fn erase_states(&self, subject: &str) -> Result<usize, Error> {
        let mut found = Vec::new();
        for kind in StateKind::OF_SUBJECTS {
            let mut next = Some(0);
            while let Some(from) = next {
                let Some(owner) = self.first_owner(kind, from)? else { break };
                let key = keys::state(&StateKey { kind, owner, subject: subject.to_owned() });
                if self.store.keyspace.contains_key(&key).map_err(failed)? {
                    found.push(key);
                }
                next = owner.checked_add(1);
            }
        }

        self.remove(found.iter().map(|key| (key.clone(), None)).collect())?;
        let states = found.len();
        let mut cache = self.states.lock();
        found.into_iter().for_each(|key| cache.put(key, None));
        Ok(states)
    }

    /// The first owner of states of a kind, from one on.
    fn first_owner(&self, kind: StateKind, from: u128) -> Result<Option<u128>, Error> {
        let Some(guard) = self.store.keyspace.range(keys::states_from(kind, from)..).next() else {
            return Ok(None);
        };
        let key = guard.key().map_err(failed)?;
        if !key.starts_with(&keys::states_of(kind)) {
            return Ok(None);
        }
        let state = keys::state_of(kind, &key).ok_or_else(|| malformed("a state"))?;
        Ok(Some(state.owner))
    }

    fn erase_decisions(&self, subject: &str) -> Result<usize, Error> {
        let mut erased = 0;
        let mut writes = Writes::new();
        for guard in self.store.keyspace.prefix(keys::Decisions::of_subject(subject).prefix()) {
            let index = guard.key().map_err(failed)?;
            let place = keys::decision_place(&index).ok_or_else(|| malformed("a place"))?;
            let key = keys::Decisions::all().at(place);
            let value = self.store.get(&key)?.unwrap_or_default();
            erased += usize::from(forget_decision(key, &value, &mut writes)?);

            if writes.len() >= LEDGER_PAGE_LEN_MAX {
                self.remove(std::mem::take(&mut writes))?;
            }
        }
        self.remove(writes)?;
        Ok(erased)
    }

    /// Searches without a lock. Only the worker adds deliveries, and it waits for this; what became
    /// of those that were found is examined again.
    fn erase_deliveries(&self, subject: &str) -> Result<usize, Error> {
        let mut found = Vec::new();
        for guard in self.store.keyspace.prefix(keys::deliveries()) {
            let (_, value) = guard.into_inner().map_err(failed)?;
            let record =
                DeliveryRecord::from_bytes(&value).ok_or_else(|| malformed("a delivery"))?;
            if record.delivery.subject == subject {
                found.push(record.delivery.action);
            }
        }

        let mut erased = 0;
        for page in found.chunks(LEDGER_PAGE_LEN_MAX) {
            erased += self.remove_deliveries(page)?;
        }
        Ok(erased)
    }

    fn remove_deliveries(&self, actions: &[ActionId]) -> Result<usize, Error> {
        let _writing = self.writing.lock();
        let sending = self.sending.lock();
        let mut changes = Changes::new(self);
        let mut removed = 0;
        for action in actions {
            let Some(record) = self.record(*action)? else { continue };
            let effect = match record.status {
                _ if sending.taken.contains(action) => Effect::Spent,
                status if Status::OPEN.contains(&status) => Effect::Returned,
                _ => Effect::None,
            };
            changes.remove(&record, effect)?;
            removed += 1;
        }

        let (writes, _) = changes.finish();
        self.write(self.store.synced_batch(), writes)?;
        Ok(removed)
    }

    /// Writes removals of what only the worker writes, durably.
    fn remove(&self, writes: Writes) -> Result<(), Error> {
        if writes.is_empty() {
            return Ok(());
        }
        let _writing = self.writing.lock();
        self.write(self.store.synced_batch(), writes)
    }
}

impl LedgerErasure for CampaignLedger {
    fn erase(&self, subject: &str) -> Result<ErasedRecords, Error> {
        self.inner.erase(subject)
    }
}

//! Forgetting: first a decision, later the id that it granted.
//!
//! A granted decision leaves an empty value under its key, so that the ids can be forgotten in the
//! order in which they were granted without an index of their own.

use super::progress::Expiry;
use super::writes::{Writes, indexes_of};
use super::{CampaignLedger, Error, Inner, Writing, failed, keys, malformed};
use raingauge_ports::campaigns::{
    Decision, DeliveryPlace, Horizons, LedgerRetention, StateKind, Status,
};
use std::ops::Bound;

impl Inner {
    fn expire(&self, horizons: Horizons, scan_max: usize) -> Result<usize, Error> {
        let mut writing = self.writing.lock();
        let Writing { expiry, .. } = &mut *writing;
        let decisions_before_ms = horizons.decisions_before_ms.max(horizons.actions_before_ms);
        let mut writes = Writes::new();

        let before = keys::decisions_at(decisions_before_ms);
        let (decisions, decisions_from) =
            self.forget(&expiry.decisions_from, before, scan_max, |key, value| {
                forget_decision(key, value, &mut writes)
            })?;
        let before = keys::decisions_at(horizons.actions_before_ms).min(decisions_from.clone());
        let (actions, actions_from) =
            self.forget(&expiry.actions_from, before, scan_max, |key, _| {
                forget_action(key, &mut writes)
            })?;
        let deliveries =
            self.forget_deliveries(horizons.deliveries_before_ms, scan_max, &mut writes)?;

        if !writes.is_empty() {
            self.write(self.store.batch(), writes)?;
        }
        *expiry = Expiry { decisions_from, actions_from };

        Ok(decisions + actions + deliveries)
    }

    /// Passes the decisions between two keys on, in order of time. Returns how many of them were
    /// forgotten, and where to continue.
    fn forget(
        &self,
        from: &[u8],
        before: Vec<u8>,
        scan_max: usize,
        mut forget: impl FnMut(Vec<u8>, &[u8]) -> Result<bool, Error>,
    ) -> Result<(usize, Vec<u8>), Error> {
        let from = from.max(&keys::decisions_at(i64::MIN)).to_vec();
        if from >= before {
            return Ok((0, from));
        }

        let mut forgotten = 0;
        for (number, guard) in self.store.keyspace.range(from..before.clone()).enumerate() {
            let (key, value) = guard.into_inner().map_err(failed)?;
            if number == scan_max {
                return Ok((forgotten, key.to_vec()));
            }
            forgotten += usize::from(forget(key.to_vec(), &value)?);
        }

        Ok((forgotten, before))
    }

    /// Forgets deliveries that ended before a time, with their bodies.
    fn forget_deliveries(
        &self,
        before_ms: i64,
        scan_max: usize,
        writes: &mut Writes,
    ) -> Result<usize, Error> {
        let mut forgotten = 0;
        for status in Status::ENDED {
            let mut from = Bound::Included(keys::deliveries_of(status).to_vec());
            while let Some(DeliveryPlace { destination, .. }) = self.first_place(status, from)? {
                let range = keys::deliveries_to(status, &destination)
                    ..keys::deliveries_from(status, &destination, before_ms);
                for guard in self.store.keyspace.range(range).take(scan_max - forgotten) {
                    let key = guard.key().map_err(failed)?;
                    let place = keys::delivery_place(&key).ok_or_else(|| malformed("a place"))?;
                    writes.insert(key.to_vec(), None);
                    writes.insert(keys::delivery(place.action), None);
                    writes.insert(keys::body(place.action), None);
                    forgotten += 1;
                }
                from = Bound::Included(keys::deliveries_behind(status, &destination));
            }
        }
        Ok(forgotten)
    }

    fn remove_states(&self, kind: StateKind, owner: u128, len_max: usize) -> Result<usize, Error> {
        let mut writes = Writes::new();
        for guard in self.store.keyspace.prefix(keys::states_from(kind, owner)).take(len_max) {
            writes.insert(guard.key().map_err(failed)?.to_vec(), None);
        }
        let removed = writes.len();
        if removed > 0 {
            let _writing = self.writing.lock();
            let mut cache = self.states.lock();
            writes.keys().for_each(|key| cache.put(key.clone(), None));
            self.write(self.store.batch(), writes)?;
        }
        Ok(removed)
    }

    /// The first delivery of a status behind a key.
    fn first_place(
        &self,
        status: Status,
        from: Bound<Vec<u8>>,
    ) -> Result<Option<DeliveryPlace>, Error> {
        let Some(guard) = self.store.keyspace.range((from, Bound::Unbounded)).next() else {
            return Ok(None);
        };
        let key = guard.key().map_err(failed)?;
        if !key.starts_with(&keys::deliveries_of(status)) {
            return Ok(None);
        }
        keys::delivery_place(&key).map(Some).ok_or_else(|| malformed("the place of a delivery"))
    }
}

/// Forgets a decision, and leaves the id that it granted.
pub(super) fn forget_decision(
    key: Vec<u8>,
    value: &[u8],
    writes: &mut Writes,
) -> Result<bool, Error> {
    if value.is_empty() {
        return Ok(false);
    }

    let decision = Decision::from_bytes(value).ok_or_else(|| malformed("a decision"))?;
    for index in indexes_of(&decision) {
        writes.insert(index.at(decision.place()), None);
    }
    writes.insert(key, decision.is_granted.then(Vec::new));

    Ok(true)
}

/// Forgets the id that a forgotten decision has granted.
fn forget_action(key: Vec<u8>, writes: &mut Writes) -> Result<bool, Error> {
    // Those that are forgotten just now, and granted nothing, are gone already.
    if writes.get(&key) == Some(&None) {
        return Ok(false);
    }

    let place = keys::decision_place(&key).ok_or_else(|| malformed("a place"))?;
    writes.insert(keys::action(place.action), None);
    writes.insert(key, None);

    Ok(true)
}

impl LedgerRetention for CampaignLedger {
    fn expire(&self, horizons: Horizons, scan_max: usize) -> Result<usize, Error> {
        self.inner.expire(horizons, scan_max)
    }

    fn remove_states(&self, kind: StateKind, owner: u128, len_max: usize) -> Result<usize, Error> {
        self.inner.remove_states(kind, owner, len_max)
    }
}

//! Forgetting: first a decision, later the id that it granted.
//!
//! A granted decision leaves an empty value under its key, so that the ids can be forgotten in the
//! order in which they were granted without an index of their own.

use super::progress::Expiry;
use super::writes::{Writes, indexes_of};
use super::{CampaignLedger, Error, Inner, Writing, failed, keys, malformed};
use raingauge_ports::campaigns::{Decision, DeliveryPlace, Horizons, LedgerRetention, Status};
use std::ops::Bound;

impl Inner {
    fn expire(&self, horizons: Horizons, scan_max: usize) -> Result<usize, Error> {
        let mut writing = self.writing.lock();
        let Writing { expiry, .. } = &mut *writing;
        let decisions_before_ms = horizons.decisions_before_ms.max(horizons.actions_before_ms);
        let mut writes = Writes::new();

        let before = keys::decisions_at(decisions_before_ms);
        let (decisions, decisions_from) =
            self.forget_decisions(&expiry.decisions_from, before, scan_max, &mut writes)?;
        let before = keys::decisions_at(horizons.actions_before_ms).min(decisions_from.clone());
        let (actions, actions_from) =
            self.forget_actions(&expiry.actions_from, before, scan_max, &mut writes)?;
        let deliveries =
            self.forget_deliveries(horizons.deliveries_before_ms, scan_max, &mut writes)?;

        if !writes.is_empty() {
            self.write(self.store.batch(), writes)?;
        }
        *expiry = Expiry { decisions_from, actions_from };

        Ok(decisions + actions + deliveries)
    }

    /// Forgets decisions between two keys. Returns how many, and where to continue.
    fn forget_decisions(
        &self,
        from: &[u8],
        before: Vec<u8>,
        scan_max: usize,
        writes: &mut Writes,
    ) -> Result<(usize, Vec<u8>), Error> {
        let mut forgotten = 0;
        for (number, found) in self.decided(from, &before).enumerate() {
            let (key, value) = found?;
            if number == scan_max {
                return Ok((forgotten, key));
            }
            if value.is_empty() {
                continue;
            }

            let decision = Decision::from_bytes(&value).ok_or_else(|| malformed("a decision"))?;
            for index in indexes_of(&decision) {
                writes.insert(index.at(decision.place()), None);
            }
            writes.insert(key, decision.is_granted.then(Vec::new));
            forgotten += 1;
        }
        Ok((forgotten, before.max(from.to_vec())))
    }

    /// Forgets the ids that forgotten decisions between two keys have granted. Returns how many,
    /// and where to continue.
    fn forget_actions(
        &self,
        from: &[u8],
        before: Vec<u8>,
        scan_max: usize,
        writes: &mut Writes,
    ) -> Result<(usize, Vec<u8>), Error> {
        let mut forgotten = 0;
        for (number, found) in self.decided(from, &before).enumerate() {
            let (key, _) = found?;
            if number == scan_max {
                return Ok((forgotten, key));
            }

            // Those that are forgotten just now, and granted nothing, are gone already.
            if writes.get(&key) != Some(&None) {
                let place = keys::decision_place(&key).ok_or_else(|| malformed("a place"))?;
                writes.insert(keys::action(place.action), None);
                writes.insert(key, None);
                forgotten += 1;
            }
        }
        Ok((forgotten, before.max(from.to_vec())))
    }

    /// The decisions between two keys, in order of time.
    fn decided(
        &self,
        from: &[u8],
        before: &[u8],
    ) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), Error>> {
        let from = from.max(&keys::decisions_at(i64::MIN)).to_vec();
        let is_span = *from < *before;
        let range = is_span.then(|| self.store.keyspace.range(from..before.to_vec()));
        range.into_iter().flatten().map(|guard| {
            let (key, value) = guard.into_inner().map_err(failed)?;
            Ok((key.to_vec(), value.to_vec()))
        })
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

impl LedgerRetention for CampaignLedger {
    fn expire(&self, horizons: Horizons, scan_max: usize) -> Result<usize, Error> {
        self.inner.expire(horizons, scan_max)
    }
}

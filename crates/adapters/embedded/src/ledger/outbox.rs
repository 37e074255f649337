//! Deliveries: a record by id, its body beside it, and a place by status, destination and time.

use super::writes::{Writes, put_delivery};
use super::{CampaignLedger, Error, Inner, failed, keys, malformed};
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::limits::{
    LEDGER_BACKLOG_MAX, LEDGER_PAGE_LEN_MAX, LEDGER_SCAN_MAX,
};
use raingauge_ports::campaigns::{
    ActionId, Backlog, Budget, BudgetKey, CampaignId, Deliveries, Delivery, DeliveryPlace,
    DeliveryQuery, DeliveryRecord, Effect, Outbox, Selection, Settled, Status,
};
use std::collections::{BTreeMap, HashSet};
use std::future::ready;
use std::ops::Bound;

/// Changes of deliveries and their budgets, before they are written.
pub(super) struct Changes<'a> {
    inner: &'a Inner,
    writes: Writes,
    budgets: BTreeMap<BudgetKey, Budget>,
    records: Vec<DeliveryRecord>,
}

impl<'a> Changes<'a> {
    pub fn new(inner: &'a Inner) -> Self {
        Self { inner, writes: Writes::new(), budgets: BTreeMap::new(), records: Vec::new() }
    }

    fn change(
        &mut self,
        mut record: DeliveryRecord,
        change: impl FnOnce(&mut DeliveryRecord) -> Effect,
    ) -> Result<(), Error> {
        self.writes.insert(keys::delivery_at(record.status, &record.place()), None);
        let effect = change(&mut record);
        put_delivery(&record, &mut self.writes);
        self.apply(effect, &record)?;
        self.records.push(record);

        Ok(())
    }

    /// Removes a delivery with its body.
    pub fn remove(&mut self, record: &DeliveryRecord, effect: Effect) -> Result<(), Error> {
        let action = record.delivery.action;
        self.writes.insert(keys::delivery_at(record.status, &record.place()), None);
        self.writes.insert(keys::delivery(action), None);
        self.writes.insert(keys::body(action), None);
        self.apply(effect, record)
    }

    fn apply(&mut self, effect: Effect, record: &DeliveryRecord) -> Result<(), Error> {
        let Some(cost) = &record.delivery.cost else { return Ok(()) };
        let budget = match self.budgets.get(&cost.budget) {
            Some(budget) => *budget,
            None => self.inner.budget(&cost.budget)?,
        };
        self.budgets.insert(cost.budget.clone(), effect.on(&budget, cost));
        Ok(())
    }

    /// All changes, with the budgets as they are after them.
    pub fn finish(self) -> (Writes, Vec<DeliveryRecord>) {
        let Self { mut writes, budgets, records, .. } = self;
        let budgets = budgets.iter().map(|(key, budget)| (keys::budget(key), budget.to_bytes()));
        writes.extend(budgets.map(|(key, bytes)| (key, Some(bytes))));
        (writes, records)
    }
}

impl Inner {
    pub(super) fn record(&self, action: ActionId) -> Result<Option<DeliveryRecord>, Error> {
        let found = self.store.get(&keys::delivery(action))?;
        let read = |bytes: Vec<u8>| {
            DeliveryRecord::from_bytes(&bytes).ok_or_else(|| malformed("a delivery"))
        };
        found.map(read).transpose()
    }

    fn record_with_body(&self, action: ActionId) -> Result<Option<DeliveryRecord>, Error> {
        let Some(mut record) = self.record(action)? else {
            return Ok(None);
        };
        let body = self.store.get(&keys::body(action))?;
        record.delivery.body = body.ok_or_else(|| malformed("a delivery without a body"))?;
        Ok(Some(record))
    }

    /// The places behind a prefix, with the campaigns of their deliveries.
    fn places(
        &self,
        prefix: Vec<u8>,
        after: Option<Vec<u8>>,
    ) -> impl Iterator<Item = Result<(DeliveryPlace, CampaignId), Error>> {
        let from = after.map_or(Bound::Included(prefix.clone()), Bound::Excluded);
        let found = self.store.keyspace.range((from, Bound::Unbounded));
        let found = found.map(move |guard| {
            let (key, value) = guard.into_inner().map_err(failed)?;
            if !key.starts_with(&prefix) {
                return Ok(None);
            }
            let campaign = value[..].try_into().map(CampaignId::from_le_bytes).ok();
            let place = keys::delivery_place(&key).zip(campaign);
            place.map(Some).ok_or_else(|| malformed("the place of a delivery"))
        });
        found.map_while(Result::transpose)
    }

    fn take(&self, to: &str, now_ms: i64, len_max: usize) -> Result<Vec<Delivery>, Error> {
        let mut sending = self.sending.lock();
        let from_ms = sending.pending_from.get(to).copied().unwrap_or(i64::MIN);
        let end_ms = now_ms.saturating_add(1);
        if from_ms >= end_ms || len_max == 0 {
            return Ok(Vec::new());
        }

        let range = keys::deliveries_from(Status::Pending, to, from_ms)
            ..keys::deliveries_behind(Status::Pending, to);
        let mut first_ms = None;
        let mut deliveries = Vec::new();
        for guard in self.store.keyspace.range(range) {
            let key = guard.key().map_err(failed)?;
            let place = keys::delivery_place(&key).ok_or_else(|| malformed("a place"))?;
            first_ms.get_or_insert(place.at_ms);
            if place.at_ms >= end_ms {
                break;
            }
            if sending.taken.contains(&place.action) {
                continue;
            }

            let record = self.record_with_body(place.action)?;
            deliveries.push(record.ok_or_else(|| malformed("the place of a delivery"))?.delivery);
            if deliveries.len() == len_max {
                break;
            }
        }

        sending.taken.extend(deliveries.iter().map(|delivery| delivery.action));
        sending.pending_from.insert(to.to_owned(), first_ms.unwrap_or(i64::MAX));
        Ok(deliveries)
    }

    /// Whether it is certain, without a look at the disk, that nothing is due.
    fn is_nothing_due(&self, to: &str, now_ms: i64) -> bool {
        let sending = self.sending.try_lock();
        let from_ms = sending.and_then(|sending| sending.pending_from.get(to).copied());
        from_ms.is_some_and(|from_ms| from_ms > now_ms)
    }

    fn settle(&self, results: &[Settled]) -> Result<(), Error> {
        let _writing = self.writing.lock();
        let mut open = {
            let taken = &self.sending.lock().taken;
            let actions = results.iter().map(|settled| settled.action);
            actions.filter(|action| taken.contains(action)).collect::<HashSet<_>>()
        };

        let mut changes = Changes::new(self);
        for settled in results {
            // Of two results for one delivery, the first one counts.
            if open.remove(&settled.action)
                && let Some(record) = self.record(settled.action)?
            {
                changes.change(record, |record| record.settle(settled))?;
            }
        }
        let (writes, records) = changes.finish();
        if !writes.is_empty() {
            self.write(self.store.batch(), writes)?;
        }

        // Also those that were erased while they were being sent.
        let mut sending = self.sending.lock();
        for settled in results {
            sending.taken.remove(&settled.action);
        }
        sending.note_pending(pending(&records));
        Ok(())
    }

    /// Changes deliveries that have one of these statuses and are not being sent.
    fn change(
        &self,
        statuses: &[Status],
        selection: &Selection,
        change: impl Fn(&mut DeliveryRecord) -> Effect,
    ) -> Result<usize, Error> {
        loop {
            // The search may take a while, so nobody waits for it. What it finds is examined again.
            let found = self.search(statuses, selection)?;
            if found.is_empty() {
                return Ok(0);
            }

            let _writing = self.writing.lock();
            let mut sending = self.sending.lock();
            let mut changes = Changes::new(self);
            for action in found {
                if let Some(record) = self.record(action)?
                    && statuses.contains(&record.status)
                    && !sending.taken.contains(&action)
                {
                    changes.change(record, &change)?;
                }
            }
            let (writes, records) = changes.finish();

            if !records.is_empty() {
                self.write(self.store.synced_batch(), writes)?;
                sending.note_pending(pending(&records));
                return Ok(records.len());
            }
        }
    }

    /// The first deliveries of a selection that may be changed.
    fn search(&self, statuses: &[Status], selection: &Selection) -> Result<Vec<ActionId>, Error> {
        let is_taken = |action: ActionId| self.sending.lock().taken.contains(&action);
        let (destination, campaign) = match selection {
            Selection::One(action) => {
                let record = self.record(*action)?.filter(|record| {
                    statuses.contains(&record.status) && !is_taken(record.delivery.action)
                });
                return Ok(record.map(|record| record.delivery.action).into_iter().collect());
            }
            Selection::All { destination, campaign } => (destination.as_deref(), campaign),
        };

        let mut found = Vec::new();
        for status in statuses {
            for place in self.places(prefix(*status, destination), None) {
                let (DeliveryPlace { action, .. }, of_campaign) = place?;
                if campaign.is_none_or(|campaign| campaign == of_campaign) && !is_taken(action) {
                    found.push(action);
                }
                if found.len() == LEDGER_PAGE_LEN_MAX {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    fn list(&self, query: &DeliveryQuery) -> Result<Deliveries, Error> {
        let len_max = query.len_max.min(LEDGER_PAGE_LEN_MAX);
        let after = query.after.as_ref().map(|place| keys::delivery_at(query.status, place));
        let mut page = Deliveries::default();
        let places = self.places(prefix(query.status, query.destination.as_deref()), after);
        for (number, place) in (1..).zip(places) {
            let (place, campaign) = place?;
            // A delivery that has just got another status is not of this page.
            if query.campaign.is_none_or(|asked| asked == campaign)
                && let Some(record) = self.record(place.action)?
                && query.matches(&record)
            {
                page.records.push(record);
            }
            if page.records.len() == len_max || number == LEDGER_SCAN_MAX {
                page.next = Some(place);
                break;
            }
        }
        Ok(page)
    }

    fn backlog(&self, to: &str) -> Result<Backlog, Error> {
        let from_ms = self.sending.lock().pending_from.get(to).copied().unwrap_or(i64::MIN);
        let after = keys::deliveries_from(Status::Pending, to, from_ms);
        let places = self.places(prefix(Status::Pending, Some(to)), Some(after));
        let mut backlog = Backlog::default();
        for place in places.take(LEDGER_BACKLOG_MAX) {
            let (place, _) = place?;
            backlog.oldest_ms.get_or_insert(place.at_ms);
            backlog.pending += 1;
        }
        Ok(backlog)
    }
}

/// Destinations and times of the records that are pending.
fn pending(records: &[DeliveryRecord]) -> impl Iterator<Item = (&str, i64)> {
    let pending = records.iter().filter(|record| record.status == Status::Pending);
    pending.map(|record| (record.delivery.destination.as_str(), record.at_ms))
}

fn prefix(status: Status, destination: Option<&str>) -> Vec<u8> {
    match destination {
        Some(destination) => keys::deliveries_to(status, destination),
        None => keys::deliveries_of(status).to_vec(),
    }
}

impl Outbox for CampaignLedger {
    fn take<'a>(
        &'a self,
        destination: &'a str,
        now_ms: i64,
        len_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, Error>> {
        // Destinations ask often, and mostly there is nothing.
        if self.inner.is_nothing_due(destination, now_ms) {
            return Box::pin(ready(Ok(Vec::new())));
        }
        let destination = destination.to_owned();
        self.in_background(move |inner| inner.take(&destination, now_ms, len_max))
    }

    fn settle(&self, results: Vec<Settled>) -> BoxFuture<'_, Result<(), Error>> {
        self.in_background(move |inner| inner.settle(&results))
    }

    fn list(&self, query: DeliveryQuery) -> BoxFuture<'_, Result<Deliveries, Error>> {
        self.in_background(move |inner| inner.list(&query))
    }

    fn get(&self, action: ActionId) -> BoxFuture<'_, Result<Option<DeliveryRecord>, Error>> {
        self.in_background(move |inner| inner.record_with_body(action))
    }

    fn redrive(&self, selection: Selection, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>> {
        self.in_background(move |inner| {
            inner.change(&[Status::Dead], &selection, |record| record.send_again(now_ms))
        })
    }

    fn cancel(&self, selection: Selection, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>> {
        self.in_background(move |inner| {
            inner.change(&Status::OPEN, &selection, |record| record.cancel(now_ms))
        })
    }

    fn release(&self, campaign: CampaignId, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>> {
        let selection = Selection::All { destination: None, campaign: Some(campaign) };
        self.in_background(move |inner| {
            inner.change(&[Status::Held], &selection, |record| record.send_again(now_ms))
        })
    }

    fn backlog<'a>(&'a self, destination: &'a str) -> BoxFuture<'a, Result<Backlog, Error>> {
        let destination = destination.to_owned();
        self.in_background(move |inner| inner.backlog(&destination))
    }
}

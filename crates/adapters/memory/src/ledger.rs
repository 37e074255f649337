//! The ledger of campaigns in memory.

use parking_lot::Mutex;
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use raingauge_ports::campaigns::{
    ActionId, Backlog, Budget, BudgetKey, CampaignId, Checkpoint, Commit, Decision, DecisionPlace,
    DecisionQuery, Decisions, Deliveries, Delivery, DeliveryQuery, DeliveryRecord, Effect,
    ErasedRecords, Error, Horizons, LedgerErasure, LedgerReader, LedgerRetention, Outbox,
    Selection, Settled, StateKey, StateKind, Status, StoredState, Timer,
};
use raingauge_ports::{BoxFuture, campaigns};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::ready;

#[derive(Debug, Default)]
pub struct Ledger {
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    checkpoint: Checkpoint,
    states: BTreeMap<StateKey, Vec<u8>>,
    budgets: BTreeMap<BudgetKey, Budget>,
    decisions: BTreeMap<DecisionPlace, Decision>,
    /// Granted actions, with the times of their decisions.
    granted: HashMap<ActionId, i64>,
    timers: BTreeMap<(i64, ActionId), Timer>,
    deliveries: BTreeMap<ActionId, DeliveryRecord>,
    /// Deliveries that are being sent.
    taken: HashSet<ActionId>,
}

impl Content {
    fn commit(&mut self, commit: Commit) -> Result<(), Error> {
        self.checkpoint.precedes(&commit)?;
        commit.check()?;
        self.check_new(&commit)?;
        let budgets = commit.budgets.iter().map(|change| {
            let budget = self.budgets.get(&change.key).copied().unwrap_or_default();
            Ok((change.key.clone(), budget.change(change)?))
        });
        let budgets = budgets.collect::<Result<Vec<_>, Error>>()?;

        self.checkpoint = self.checkpoint.after(&commit);
        self.budgets.extend(budgets);
        for (key, value) in commit.states {
            match value {
                Some(value) => self.states.insert(key, value),
                None => self.states.remove(&key),
            };
        }

        for decision in commit.decisions {
            if decision.is_granted {
                self.granted.insert(decision.action, decision.decided_ms);
            }
            self.decisions.insert(decision.place(), decision);
        }

        for place in &commit.fired {
            self.timers.remove(place);
        }
        for timer in commit.timers {
            self.timers.insert((timer.due_ms, timer.action), timer);
        }
        for delivery in commit.deliveries {
            self.deliveries.insert(delivery.action, DeliveryRecord::new(delivery));
        }

        Ok(())
    }

    /// Refuses what was granted or handed to the outbox before.
    fn check_new(&self, commit: &Commit) -> Result<(), Error> {
        let mut granted = commit.decisions.iter().filter(|decision| decision.is_granted);
        let again = granted.find(|decision| self.granted.contains_key(&decision.action));
        if let Some(Decision { action, .. }) = again {
            return Err(Error::Invalid(format!("{action} was granted before")));
        }
        let mut deliveries = commit.deliveries.iter();
        match deliveries.find(|delivery| self.deliveries.contains_key(&delivery.action)) {
            Some(Delivery { action, .. }) => {
                Err(Error::Invalid(format!("{action} is in the outbox already")))
            }
            None => Ok(()),
        }
    }

    /// The deliveries of a status, in their order.
    fn of_status(&self, status: Status) -> Vec<&DeliveryRecord> {
        let records = self.deliveries.values().filter(|record| record.status == status);
        let mut records: Vec<_> = records.collect();
        records.sort_by_cached_key(|record| record.place());
        records
    }

    /// Changes the deliveries of a selection that have one of these statuses and are not being
    /// sent.
    fn change(
        &mut self,
        statuses: &[Status],
        selection: &Selection,
        mut change: impl FnMut(&mut DeliveryRecord) -> Effect,
    ) -> usize {
        let selected = self.deliveries.values_mut().filter(|record| {
            statuses.contains(&record.status)
                && selection.includes(&record.delivery)
                && !self.taken.contains(&record.delivery.action)
        });
        let mut changed = 0;
        for record in selected.take(LEDGER_PAGE_LEN_MAX) {
            let effect = change(record);
            apply(&mut self.budgets, record, effect);
            changed += 1;
        }
        changed
    }

    fn settle(&mut self, settled: &Settled) {
        if !self.taken.remove(&settled.action) {
            return;
        }
        if let Some(record) = self.deliveries.get_mut(&settled.action) {
            let effect = record.settle(settled);
            apply(&mut self.budgets, record, effect);
        }
    }
}

/// Spends or returns what a delivery has reserved.
fn apply(budgets: &mut BTreeMap<BudgetKey, Budget>, record: &DeliveryRecord, effect: Effect) {
    if let Some(cost) = &record.delivery.cost
        && let Some(budget) = budgets.get_mut(&cost.budget)
    {
        *budget = effect.on(budget, cost);
    }
}

fn without_body(record: &DeliveryRecord) -> DeliveryRecord {
    let delivery = Delivery { body: Vec::new(), ..record.delivery.clone() };
    DeliveryRecord { delivery, ..record.clone() }
}

fn done<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, Result<T, Error>> {
    Box::pin(ready(Ok(value)))
}

impl campaigns::Ledger for Ledger {
    fn take_over(&self) -> Result<Checkpoint, Error> {
        let mut content = self.content.lock();
        content.checkpoint.epoch += 1;
        Ok(content.checkpoint.clone())
    }

    fn load(&self, keys: &[StateKey]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let content = self.content.lock();
        Ok(keys.iter().map(|key| content.states.get(key).cloned()).collect())
    }

    fn known(&self, actions: &[ActionId]) -> Result<Vec<bool>, Error> {
        let content = self.content.lock();
        Ok(actions.iter().map(|action| content.granted.contains_key(action)).collect())
    }

    fn budgets(&self, keys: &[BudgetKey]) -> Result<Vec<Budget>, Error> {
        let content = self.content.lock();
        Ok(keys.iter().map(|key| content.budgets.get(key).copied().unwrap_or_default()).collect())
    }

    fn due(&self, until_ms: i64, len_max: usize) -> Result<Vec<Timer>, Error> {
        let content = self.content.lock();
        let due = content.timers.values().take_while(|timer| timer.due_ms <= until_ms);
        Ok(due.take(len_max).cloned().collect())
    }

    fn timers_from(&self, place: (i64, ActionId), len_max: usize) -> Result<Vec<Timer>, Error> {
        let content = self.content.lock();
        Ok(content.timers.range(place..).take(len_max).map(|(_, timer)| timer.clone()).collect())
    }

    fn timers_len(&self, len_max: usize) -> Result<usize, Error> {
        Ok(self.content.lock().timers.len().min(len_max))
    }

    fn commit(&self, commit: Commit) -> Result<(), Error> {
        self.content.lock().commit(commit)
    }
}

impl LedgerReader for Ledger {
    fn decisions(&self, query: DecisionQuery) -> BoxFuture<'_, Result<Decisions, Error>> {
        let content = self.content.lock();
        let asked = content.decisions.iter().rev().filter(|(place, decision)| {
            query.after.is_none_or(|after| **place < after) && query.matches(decision)
        });
        let decisions: Vec<Decision> =
            asked.take(query.len_max).map(|(_, decision)| decision.clone()).collect();
        let next = if decisions.len() == query.len_max { decisions.last() } else { None };
        done(Decisions { next: next.map(Decision::place), decisions })
    }

    fn granted(&self, action: ActionId) -> BoxFuture<'_, Result<Option<Decision>, Error>> {
        let content = self.content.lock();
        let decided_ms = content.granted.get(&action).copied();
        let place = decided_ms.map(|decided_ms| DecisionPlace { decided_ms, action });
        done(place.and_then(|place| content.decisions.get(&place).cloned()))
    }

    fn budgets_of(
        &self,
        campaign: CampaignId,
    ) -> BoxFuture<'_, Result<Vec<(BudgetKey, Budget)>, Error>> {
        let content = self.content.lock();
        let own = content.budgets.iter().filter(|(key, _)| key.campaign == campaign);
        done(own.map(|(key, budget)| (key.clone(), *budget)).collect())
    }

    fn states(
        &self,
        from: StateKey,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredState>, Error>> {
        let content = self.content.lock();
        let kind = from.kind;
        let states = content.states.range(from..).take_while(|(key, _)| key.kind == kind);
        done(states.take(len_max).map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

impl Outbox for Ledger {
    fn take<'a>(
        &'a self,
        destination: &'a str,
        now_ms: i64,
        len_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, Error>> {
        let mut content = self.content.lock();
        let pending = content.of_status(Status::Pending).into_iter().filter(|record| {
            record.delivery.destination == destination
                && record.at_ms <= now_ms
                && !content.taken.contains(&record.delivery.action)
        });
        let due: Vec<Delivery> =
            pending.take(len_max).map(|record| record.delivery.clone()).collect();
        content.taken.extend(due.iter().map(|delivery| delivery.action));
        done(due)
    }

    fn settle(&self, results: Vec<Settled>) -> BoxFuture<'_, Result<(), Error>> {
        let mut content = self.content.lock();
        results.iter().for_each(|settled| content.settle(settled));
        done(())
    }

    fn list(&self, query: DeliveryQuery) -> BoxFuture<'_, Result<Deliveries, Error>> {
        let content = self.content.lock();
        let asked = content.of_status(query.status).into_iter().filter(|record| {
            query.after.as_ref().is_none_or(|after| record.place() > *after)
                && query.matches(record)
        });
        let records: Vec<DeliveryRecord> = asked.take(query.len_max).map(without_body).collect();
        let next = if records.len() == query.len_max { records.last() } else { None };
        done(Deliveries { next: next.map(DeliveryRecord::place), records })
    }

    fn get(&self, action: ActionId) -> BoxFuture<'_, Result<Option<DeliveryRecord>, Error>> {
        done(self.content.lock().deliveries.get(&action).cloned())
    }

    fn redrive(&self, selection: Selection, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>> {
        let redrive = |record: &mut DeliveryRecord| record.send_again(now_ms);
        done(self.content.lock().change(&[Status::Dead], &selection, redrive))
    }

    fn cancel(&self, selection: Selection, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>> {
        let cancel = |record: &mut DeliveryRecord| record.cancel(now_ms);
        done(self.content.lock().change(&Status::OPEN, &selection, cancel))
    }

    fn release(&self, campaign: CampaignId, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>> {
        let selection = Selection::All { destination: None, campaign: Some(campaign) };
        let release = |record: &mut DeliveryRecord| record.send_again(now_ms);
        done(self.content.lock().change(&[Status::Held], &selection, release))
    }

    fn backlog<'a>(&'a self, destination: &'a str) -> BoxFuture<'a, Result<Backlog, Error>> {
        let content = self.content.lock();
        let pending = content.of_status(Status::Pending).into_iter();
        let own: Vec<_> =
            pending.filter(|record| record.delivery.destination == destination).collect();
        let oldest_ms = own.first().map(|record| record.at_ms);
        done(Backlog { pending: own.len(), oldest_ms })
    }
}

impl LedgerRetention for Ledger {
    fn expire(&self, horizons: Horizons, scan_max: usize) -> Result<usize, Error> {
        let mut content = self.content.lock();
        let actions_before_ms = horizons.actions_before_ms;
        let decisions_before_ms = horizons.decisions_before_ms.max(actions_before_ms);

        let decisions: Vec<DecisionPlace> = content
            .decisions
            .keys()
            .filter(|place| place.decided_ms < decisions_before_ms)
            .take(scan_max)
            .copied()
            .collect();
        let mut actions: Vec<(ActionId, i64)> =
            content.granted.iter().map(|(action, decided_ms)| (*action, *decided_ms)).collect();
        actions.retain(|(_, decided_ms)| *decided_ms < actions_before_ms);
        actions.sort_by_key(|(_, decided_ms)| Reverse(*decided_ms));
        let actions = actions.split_off(actions.len().saturating_sub(scan_max));
        let deliveries: Vec<ActionId> = content
            .deliveries
            .values()
            .filter(|record| {
                Status::ENDED.contains(&record.status)
                    && record.at_ms < horizons.deliveries_before_ms
            })
            .take(scan_max)
            .map(|record| record.delivery.action)
            .collect();

        for place in &decisions {
            content.decisions.remove(place);
        }
        for (action, _) in &actions {
            content.granted.remove(action);
        }
        for action in &deliveries {
            content.deliveries.remove(action);
        }

        Ok(decisions.len() + actions.len() + deliveries.len())
    }

    fn remove_states(&self, kind: StateKind, owner: u128, len_max: usize) -> Result<usize, Error> {
        let mut content = self.content.lock();
        let own = content.states.keys().filter(|key| key.kind == kind && key.owner == owner);
        let own: Vec<StateKey> = own.take(len_max).cloned().collect();
        for key in &own {
            content.states.remove(key);
        }
        Ok(own.len())
    }
}

impl LedgerErasure for Ledger {
    fn erase(&self, subject: &str) -> Result<ErasedRecords, Error> {
        let mut content = self.content.lock();
        let Content { states, decisions, deliveries, budgets, taken, .. } = &mut *content;
        let before = (states.len(), decisions.len(), deliveries.len());
        states
            .retain(|key, _| key.subject != subject || !StateKind::OF_SUBJECTS.contains(&key.kind));
        decisions.retain(|_, decision| decision.subject != subject);
        deliveries.retain(|action, record| {
            let is_kept = record.delivery.subject != subject;
            if !is_kept && taken.contains(action) {
                apply(budgets, record, Effect::Spent);
            } else if !is_kept && Status::OPEN.contains(&record.status) {
                apply(budgets, record, Effect::Returned);
            }
            is_kept
        });

        Ok(ErasedRecords {
            states: before.0 - states.len(),
            decisions: before.1 - decisions.len(),
            deliveries: before.2 - deliveries.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[tokio::test]
    async fn the_contract_is_kept() {
        raingauge_ports::contract::campaigns::suite(Ledger::default).await;
    }
}

//! What doors read of the ledger.

use super::{CampaignLedger, Error, Inner, failed, keys, malformed};
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::limits::{LEDGER_PAGE_LEN_MAX, LEDGER_SCAN_MAX};
use raingauge_ports::campaigns::{
    ActionId, Budget, BudgetKey, CampaignId, Decision, DecisionPlace, DecisionQuery, Decisions,
    LedgerReader, StateKey,
};
use std::ops::Bound;

/// The last place that there can be.
const END: DecisionPlace = DecisionPlace { decided_ms: i64::MAX, action: ActionId([0xff; 16]) };

impl Inner {
    /// The decision at a place, unless it is forgotten.
    fn decision(&self, place: DecisionPlace) -> Result<Option<Decision>, Error> {
        match self.store.get(&keys::Decisions::all().at(place))? {
            None => Ok(None),
            Some(bytes) if bytes.is_empty() => Ok(None),
            Some(bytes) => {
                let decision = Decision::from_bytes(&bytes);
                decision.map(Some).ok_or_else(|| malformed("a decision"))
            }
        }
    }

    fn decisions(&self, query: &DecisionQuery) -> Result<Decisions, Error> {
        let index = match (&query.subject, query.campaign) {
            (Some(subject), _) => keys::Decisions::of_subject(subject),
            (None, Some(campaign)) => keys::Decisions::of_campaign(campaign),
            (None, None) => keys::Decisions::all(),
        };
        let from = index.since(query.from_ms);
        let end = query.to_ms.map_or_else(|| index.at(END), |to_ms| index.since(to_ms));
        let end = query.after.map_or(end.clone(), |after| end.min(index.at(after)));
        let len_max = query.len_max.min(LEDGER_PAGE_LEN_MAX);

        let mut page = Decisions::default();
        if from >= end {
            return Ok(page);
        }
        for (number, guard) in (1..).zip(self.store.keyspace.range(from..end).rev()) {
            let key = guard.key().map_err(failed)?;
            let place = keys::decision_place(&key).ok_or_else(|| malformed("a place"))?;
            let decision = self.decision(place)?;
            page.decisions.extend(decision.filter(|decision| query.matches(decision)));
            if page.decisions.len() == len_max || number == LEDGER_SCAN_MAX {
                page.next = Some(place);
                break;
            }
        }
        Ok(page)
    }

    fn granted(&self, action: ActionId) -> Result<Option<Decision>, Error> {
        let Some(bytes) = self.store.get(&keys::action(action))? else {
            return Ok(None);
        };
        let decided_ms = bytes[..].try_into().map(i64::from_le_bytes);
        let decided_ms = decided_ms.map_err(|_| malformed("an action"))?;
        self.decision(DecisionPlace { decided_ms, action })
    }

    fn budgets_of(&self, campaign: CampaignId) -> Result<Vec<(BudgetKey, Budget)>, Error> {
        let mut budgets = Vec::new();
        for guard in self.store.keyspace.prefix(keys::budgets_of(campaign)) {
            let (key, value) = guard.into_inner().map_err(failed)?;
            let budget = keys::budget_of(campaign, &key).zip(Budget::from_bytes(&value));
            budgets.push(budget.ok_or_else(|| malformed("a budget"))?);
        }
        Ok(budgets)
    }

    fn states(&self, from: &StateKey, len_max: usize) -> Result<Vec<(StateKey, Vec<u8>)>, Error> {
        let prefix = keys::states_of(from.kind);
        let range = (Bound::Included(keys::state(from)), Bound::Unbounded);
        let mut states = Vec::new();
        for guard in self.store.keyspace.range(range).take(len_max.min(LEDGER_PAGE_LEN_MAX)) {
            let (key, value) = guard.into_inner().map_err(failed)?;
            if !key.starts_with(&prefix) {
                break;
            }
            let key = keys::state_of(from.kind, &key).ok_or_else(|| malformed("a state"))?;
            states.push((key, value.to_vec()));
        }
        Ok(states)
    }
}

impl LedgerReader for CampaignLedger {
    fn decisions(&self, query: DecisionQuery) -> BoxFuture<'_, Result<Decisions, Error>> {
        self.in_background(move |inner| inner.decisions(&query))
    }

    fn granted(&self, action: ActionId) -> BoxFuture<'_, Result<Option<Decision>, Error>> {
        self.in_background(move |inner| inner.granted(action))
    }

    fn budgets_of(
        &self,
        campaign: CampaignId,
    ) -> BoxFuture<'_, Result<Vec<(BudgetKey, Budget)>, Error>> {
        self.in_background(move |inner| inner.budgets_of(campaign))
    }

    fn states(
        &self,
        from: StateKey,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<(StateKey, Vec<u8>)>, Error>> {
        self.in_background(move |inner| inner.states(&from, len_max))
    }
}

//! The ledger as doors read it.

use super::{
    ActionId, Budget, BudgetKey, CampaignId, Decision, DecisionQuery, Decisions, Error, StateKey,
};
use crate::BoxFuture;

/// A state, as it is stored.
pub type StoredState = (StateKey, Vec<u8>);

/// Reads what is committed.
pub trait LedgerReader: Send + Sync {
    /// Returns a page of decisions, newest first.
    fn decisions(&self, query: DecisionQuery) -> BoxFuture<'_, Result<Decisions, Error>>;

    /// Returns the decision that granted an action, as long as it is kept.
    fn granted(&self, action: ActionId) -> BoxFuture<'_, Result<Option<Decision>, Error>>;

    /// Returns the budgets of a campaign, by name and period; those of 0 are the shared ones.
    fn budgets_of(
        &self,
        campaign: CampaignId,
    ) -> BoxFuture<'_, Result<Vec<(BudgetKey, Budget)>, Error>>;

    /// Returns at most `len_max` states in the order of their keys, from `from` on and of its kind.
    fn states(
        &self,
        from: StateKey,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredState>, Error>>;
}

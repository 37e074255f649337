//! What budgets and stocks have left.

use raingauge_points::{BudgetId, Points, Programme};
use std::sync::Arc;

/// A bound of a programme, and how much of it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub name: Arc<str>,
    /// `None` without a bound.
    pub most: Option<Points>,
    pub used: Points,
}

impl Allowance {
    /// What is left; `None` without a bound. A bound that was lowered may be exceeded.
    pub fn left(&self) -> Option<Points> {
        self.most.map(|most| most.saturating_sub(self.used).max(0))
    }

    /// What is left of the one with a name; `None` as well if there is none.
    pub fn left_of(all: &[Self], name: &str) -> Option<Points> {
        all.iter().find(|one| *one.name == *name)?.left()
    }
}

/// The bounds of a programme.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowances {
    /// Points that may be issued, by budget.
    pub budgets: Vec<Allowance>,
    /// How often each reward may be redeemed.
    pub rewards: Vec<Allowance>,
}

impl Allowances {
    /// The bounds of a programme with nothing used, and under which names their use is counted:
    /// first those of budgets, then those of rewards.
    pub(super) fn unused(programme: &Programme) -> (Self, Vec<BudgetId>) {
        let unused = |name: &Arc<str>, most| Allowance { name: Arc::clone(name), most, used: 0 };
        let budgets = programme.budgets().map(|(name, limit)| unused(name, Some(limit)));
        let stocks = programme.rewards();
        let stocks = stocks.map(|reward| unused(&reward.name, reward.stock.map(Points::from)));
        let own = Self { budgets: budgets.collect(), rewards: stocks.collect() };

        let names = programme.budgets().map(|(name, _)| Arc::clone(name));
        let names = names.chain(programme.rewards().map(|reward| reward.stock_budget()));
        let ids = names.map(|name| BudgetId::new(programme.name(), &name));
        (own, ids.collect())
    }

    /// Takes note of what is used, in the order of [`Allowances::unused`].
    pub(super) fn set_used(&mut self, used: Vec<Points>) {
        let all = self.budgets.iter_mut().chain(&mut self.rewards);
        all.zip(used).for_each(|(allowance, used)| allowance.used = used);
    }
}

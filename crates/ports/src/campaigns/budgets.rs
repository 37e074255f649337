//! Budgets: what may be granted, what is, and what was spent of it.

use super::bytes::{Reader, Writer};
use super::{BudgetKey, Cost, Error};

/// Always `0 <= spent <= reserved`. What is reserved exceeds `max` only after `max` was lowered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    pub max: i64,
    /// What was granted and not returned, including what was spent.
    pub reserved: i64,
    /// What was delivered.
    pub spent: i64,
}

/// What a commit does to a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetChange {
    pub key: BudgetKey,
    /// The most that the campaign may grant, as configured now.
    pub max: i64,
    /// What is added to the reservations; negative when more is returned than granted.
    pub reserve: i64,
}

impl Budget {
    const VERSION: u8 = 1;

    /// What may still be granted.
    pub fn free(&self) -> i64 {
        self.max.saturating_sub(self.reserved).max(0)
    }

    /// Returns the budget after a change. Refuses one that grants more than there is.
    pub fn change(&self, change: &BudgetChange) -> Result<Self, Error> {
        let invalid = |why: &str| {
            let name = &change.key.name;
            Error::Invalid(format!("budget {name} has {self:?}, and {} {why}", change.reserve))
        };
        let reserved = self.reserved.checked_add(change.reserve);
        let reserved = reserved.ok_or_else(|| invalid("overflows"))?;

        if change.reserve > 0 && reserved > change.max {
            return Err(invalid("exceeds its maximum"));
        }
        if reserved < self.spent {
            return Err(invalid("returns what was spent"));
        }

        Ok(Self { max: change.max, reserved, ..*self })
    }

    /// Returns the budget after an action that reserved `cost` was delivered.
    pub fn spend(&self, cost: &Cost) -> Self {
        Self { spent: self.reserved.min(self.spent.saturating_add(cost.amount)), ..*self }
    }

    /// Returns the budget after an action that reserved `cost` was refused or cancelled.
    pub fn refund(&self, cost: &Cost) -> Self {
        if cost.is_refunded {
            Self { reserved: self.spent.max(self.reserved.saturating_sub(cost.amount)), ..*self }
        } else {
            self.spend(cost)
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let fields = Writer::new(Self::VERSION).i64(self.max).i64(self.reserved);
        fields.i64(self.spent).finish()
    }

    /// `None` if the bytes are malformed, or of a newer version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut fields = Reader::new(bytes, Self::VERSION)?;
        let budget = Self { max: fields.i64()?, reserved: fields.i64()?, spent: fields.i64()? };
        fields.finish(budget)
    }
}

pub(super) fn write_cost(fields: Writer, cost: &Cost) -> Writer {
    let BudgetKey { campaign, name, period } = &cost.budget;
    let fields = fields.u32(*campaign).text(name).i64((*period).into());
    fields.i64(cost.amount).u8(cost.is_refunded.into())
}

pub(super) fn read_cost(fields: &mut Reader<'_>) -> Option<Cost> {
    let campaign = fields.u32()?;
    let name = fields.text()?;
    let period = fields.i64()?.try_into().ok()?;
    Some(Cost {
        budget: BudgetKey { campaign, name, period },
        amount: fields.i64()?,
        is_refunded: fields.bool()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn change(max: i64, reserve: i64) -> BudgetChange {
        let key = BudgetKey { campaign: 7, name: "vouchers".to_owned(), period: 0 };
        BudgetChange { key, max, reserve }
    }

    fn cost(amount: i64, is_refunded: bool) -> Cost {
        Cost { budget: change(0, 0).key, amount, is_refunded }
    }

    #[test]
    fn no_change_grants_more_than_there_is() {
        let budget = Budget::default().change(&change(1_000, 1_000)).unwrap();
        assert_eq!(budget, Budget { max: 1_000, reserved: 1_000, spent: 0 });
        assert_eq!(budget.free(), 0);
        assert!(matches!(budget.change(&change(1_000, 1)), Err(Error::Invalid(_))));
        assert!(matches!(budget.change(&change(1_000, i64::MAX)), Err(Error::Invalid(_))));

        // A lowered maximum takes nothing back, and lets nothing more through.
        let lowered = budget.change(&change(600, 0)).unwrap();
        assert_eq!((lowered.reserved, lowered.free()), (1_000, 0));
        assert!(lowered.change(&change(600, 1)).is_err());
        assert_eq!(lowered.change(&change(600, -500)).unwrap().free(), 100);
        assert_eq!(lowered.change(&change(1_200, 200)).unwrap().free(), 0);
    }

    #[test]
    fn what_was_spent_does_not_come_back() {
        let budget = Budget { max: 1_000, reserved: 900, spent: 0 };
        let spent = budget.spend(&cost(500, true));
        assert_eq!(spent, Budget { spent: 500, ..budget });
        assert_eq!(spent.refund(&cost(400, true)), Budget { reserved: 500, ..spent });
        assert_eq!(spent.refund(&cost(400, false)), Budget { spent: 900, ..spent });
        assert_eq!(spent.refund(&cost(900, true)).reserved, 500);
        assert_eq!(budget.spend(&cost(1_000, true)).spent, 900);
        assert!(spent.change(&change(1_000, -401)).is_err());
        assert_eq!(spent.change(&change(1_000, -400)).unwrap().reserved, 500);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Against a list of the costs that are granted and not yet settled.
        #[test]
        fn a_budget_equals_its_open_costs(
            max in 0..200_i64,
            steps in prop::collection::vec((0..4_u8, 0..60_i64), 0..80),
        ) {
            let mut budget = Budget::default();
            let mut open: Vec<i64> = Vec::new();
            let mut spent = 0;
            for (step, number) in steps {
                let place = usize::try_from(number).unwrap();
                if step < 2 {
                    let fits = open.iter().sum::<i64>() + spent + number <= max;
                    let changed = budget.change(&change(max, number));
                    prop_assert_eq!(changed.is_ok(), fits || number == 0);
                    if let Ok(changed) = changed {
                        budget = changed;
                        open.push(number);
                    }
                } else if place < open.len() {
                    let amount = open.swap_remove(place);
                    if step == 2 {
                        budget = budget.spend(&cost(amount, true));
                        spent += amount;
                    } else {
                        budget = budget.refund(&cost(amount, true));
                    }
                }

                prop_assert_eq!(budget.reserved, open.iter().sum::<i64>() + spent);
                prop_assert_eq!(budget.spent, spent);
                prop_assert!(budget.reserved <= max);
                prop_assert_eq!(Budget::from_bytes(&budget.to_bytes()), Some(budget));
            }
        }
    }
}

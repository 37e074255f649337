//! Budgets: how much a campaign may spend in a period.
//!
//! ```text
//!   decision ──▶ reserve ──▶ delivered ──▶ spend
//!                   └──────▶ cancelled, refused ──▶ give back
//!
//!   0 ≤ spent ≤ reserved ≤ max, at every moment
//! ```
//!
//! What is reserved includes what is spent. One account holds one period of one budget, so what is
//! given back goes to the period that it was reserved in.

use crate::calendar::{Period, Zone};
use crate::encoding::{self, DecodeError, Reader, put_unsigned};
use crate::limits::BUDGET_UNIT_LEN_MAX;
use serde::{Deserialize, Serialize};

/// A budget of a campaign, or one that several share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// What it counts, such as `SGD_cents`.
    pub unit: String,
    pub max: i64,
    #[serde(default)]
    pub period: BudgetPeriod,
    /// The zone of the campaign, if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

/// How long a budget lasts before it starts again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BudgetPeriod {
    #[default]
    Campaign,
    #[serde(untagged)]
    Calendar(Period),
}

impl Budget {
    /// The problems that keep this budget from being used.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.max < 0 {
            problems.push("max must not be negative".into());
        }
        if self.unit.is_empty() || self.unit.len() > BUDGET_UNIT_LEN_MAX {
            problems.push(format!("unit must have between 1 and {BUDGET_UNIT_LEN_MAX} bytes"));
        }
        problems
    }

    /// The number of the period that an event is paid from; 0 for the one of a whole campaign.
    pub fn period_number(&self, event_ms: i64, zone: &Zone) -> i32 {
        match self.period {
            BudgetPeriod::Campaign => 0,
            BudgetPeriod::Calendar(period) => period.number(zone, event_ms),
        }
    }
}

/// What is reserved and spent of a budget in one period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    reserved: i64,
    spent: i64,
}

impl Account {
    pub const fn reserved(&self) -> i64 {
        self.reserved
    }

    pub const fn spent(&self) -> i64 {
        self.spent
    }

    /// What is left of a budget. A budget that was lowered below what is reserved has nothing left.
    pub const fn free(&self, max: i64) -> i64 {
        if max > self.reserved { max - self.reserved } else { 0 }
    }

    /// Reserves a cost, or nothing if it exceeds what is left.
    #[must_use]
    pub fn reserve(&mut self, max: i64, cost: i64) -> bool {
        assert!(cost >= 0, "a cost is not negative");
        let fits = cost <= self.free(max);
        if fits {
            self.reserved += cost;
        }
        fits
    }

    /// Notes that a reserved cost has been spent.
    pub fn spend(&mut self, cost: i64) {
        assert!((0..=self.reserved - self.spent).contains(&cost), "only what is reserved is spent");
        self.spent += cost;
    }

    /// Returns a reserved cost that will not be spent.
    pub fn give_back(&mut self, cost: i64) {
        assert!((0..=self.reserved - self.spent).contains(&cost), "what is spent is not returned");
        self.reserved -= cost;
    }

    /// The bytes of an account: `10`, what is reserved, and what is spent.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = encoding::begin(ACCOUNT);
        put_unsigned(&mut out, u128::from(self.reserved.unsigned_abs()));
        put_unsigned(&mut out, u128::from(self.spent.unsigned_abs()));
        out
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (kind, mut reader) = Reader::begin(bytes)?;
        let account = Self { reserved: reader.small()?, spent: reader.small()? };
        if kind != ACCOUNT || account.spent > account.reserved {
            return Err(DecodeError);
        }
        reader.end()?;
        Ok(account)
    }
}

const ACCOUNT: u8 = 0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_budget_lasts_for_its_period() {
        let budget = |json| serde_json::from_value::<Budget>(json).unwrap();
        let zone = Zone::of_name("Asia/Singapore").unwrap();
        let whole = budget(json!({"unit": "SGD_cents", "max": 1_000, "period": "campaign"}));
        assert_eq!(whole.period_number(1_700_000_000_000, &zone), 0);
        assert_eq!(whole.problems(), Vec::<String>::new());

        // Midnight in Singapore.
        let daily = budget(json!({"unit": "points", "max": 0, "period": "day"}));
        let midnight_ms = 1_727_020_800_000;
        let day = daily.period_number(midnight_ms, &zone);
        assert_eq!(daily.period_number(midnight_ms - 1, &zone), day - 1);
        assert_eq!(daily.period_number(midnight_ms + 86_399_999, &zone), day);

        assert_eq!(budget(json!({"unit": "", "max": -1})).problems().len(), 2);
        let long = "u".repeat(BUDGET_UNIT_LEN_MAX + 1);
        assert_eq!(budget(json!({"unit": long, "max": 1})).problems().len(), 1);
        let year = json!({"unit": "points", "max": 1, "period": "year"});
        assert!(serde_json::from_value::<Budget>(year).is_err());
    }

    #[test]
    fn nothing_is_granted_beyond_the_budget() {
        let mut account = Account::default();
        assert!(account.reserve(1_000, 600));
        assert!(!account.reserve(1_000, 401));
        assert!(account.reserve(1_000, 400));
        assert!(account.reserve(1_000, 0));
        assert!(!account.reserve(1_000, 1));

        account.spend(600);
        account.give_back(400);
        assert_eq!((account.reserved(), account.spent(), account.free(1_000)), (600, 600, 400));
        // The budget was lowered.
        assert_eq!(account.free(500), 0);
        assert!(!account.reserve(500, 1));
        assert_eq!(account.encode(), [0x10, 0xd8, 0x04, 0xd8, 0x04]);

        let extreme = account.free(i64::MAX);
        assert!(account.reserve(i64::MAX, extreme));
        assert_eq!(account.reserved(), i64::MAX);
    }

    #[test]
    #[should_panic(expected = "what is spent is not returned")]
    fn what_is_spent_stays_spent() {
        let mut account = Account::default();
        assert!(account.reserve(10, 10));
        account.spend(5);
        account.give_back(6);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Against a list of the costs that are granted and not yet settled.
        #[test]
        fn the_account_equals_its_open_costs(
            max in 0..200_i64,
            steps in prop::collection::vec((0..4_u8, 0..60_i64), 0..80),
        ) {
            let mut account = Account::default();
            let mut open: Vec<i64> = Vec::new();
            let mut spent = 0;
            for (step, number) in steps {
                let place = usize::try_from(number).unwrap();
                if step < 2 {
                    let sum: i64 = open.iter().sum::<i64>() + spent;
                    let granted = account.reserve(max, number);
                    prop_assert_eq!(granted, sum + number <= max);
                    open.extend(granted.then_some(number));
                } else if place < open.len() {
                    let cost = open.swap_remove(place);
                    if step == 2 {
                        account.spend(cost);
                        spent += cost;
                    } else {
                        account.give_back(cost);
                    }
                }

                prop_assert_eq!(account.reserved(), open.iter().sum::<i64>() + spent);
                prop_assert_eq!(account.spent(), spent);
                prop_assert!(account.reserved() <= max);
                prop_assert_eq!(Account::decode(&account.encode()), Ok(account));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let bytes = [&[0x10], &bytes[..]].concat();
            if let Ok(account) = Account::decode(&bytes) {
                prop_assert_eq!(account.encode(), bytes);
            }
        }
    }
}

//! Budgets: how much a campaign may spend in a period.
//!
//! ```text
//!   decision ──▶ reserve ──▶ delivered ──▶ spend
//!                   └──────▶ cancelled, refused ──▶ give back
//!
//!   0 ≤ spent ≤ reserved ≤ max, at every moment
//! ```
//!
//! What is reserved includes what is spent. The ledger keeps these numbers for each period, so what
//! is given back goes to the period that it was reserved in.

use crate::calendar::{Period, Zone};
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

#[cfg(test)]
mod tests {
    use super::*;
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
}

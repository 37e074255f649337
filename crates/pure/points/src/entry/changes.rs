//! What an entry changes in a wallet besides its balances.

use crate::Points;
use crate::account::Expiry;
use crate::day::Day;
use crate::identity::Key;
use crate::number::Number;
use serde::Serialize;
use smallvec::SmallVec;
use std::sync::Arc;

/// Changes of a wallet; all are absolute values, but for sums that say so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// Present wherever the rolling lot takes part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling: Option<RollingChange>,
    /// The last day of a transaction that extends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<Day>,
    /// Points that are added to those that qualify for a tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qualifying: Option<Qualifying>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldChange>,
    /// Whether the points of an award expire at once, because it was late.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub expires_at_once: bool,
    /// `Some(None)` forgets the last expiry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_expiry: Option<Option<LastExpiry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reminded: Option<Reminder>,
    /// What is added to budgets.
    #[serde(skip_serializing_if = "SmallVec::is_empty")]
    pub budgets: SmallVec<[BudgetUse; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reversal: Option<Reversal>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// The version of the programme that is in force from this entry on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
}

/// The date of the rolling lot, and what lay in the lot before the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RollingChange {
    pub before: Option<Day>,
    pub after: Option<Day>,
    /// Points in the lot before the postings.
    pub moved: Points,
}

/// Points of a period that count towards a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Qualifying {
    #[serde(flatten)]
    pub period: Period,
    pub points: Points,
}

/// A period in which points count towards a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Period {
    /// Neighbours have neighbouring numbers.
    #[serde(rename = "period")]
    pub number: i32,
    /// How long the periods are that are numbered so; 0 stands for a lifetime, and `None` for what
    /// was written before entries had the length of their periods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub months: Option<u16>,
}

impl Period {
    /// Whether the numbers of two periods can be compared.
    pub(crate) fn shares_window(self, other: Self) -> bool {
        match (self.months, other.months) {
            (Some(own), Some(others)) => own == others,
            _ => true,
        }
    }

    pub(crate) fn is(self, other: Self) -> bool {
        self.number == other.number && self.shares_window(other)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TierChange {
    pub tier: Arc<str>,
    /// The last day of the tier; `None` where it has no end.
    pub until: Option<Day>,
}

/// Points that are reserved, with the lots that they were taken from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    pub key: Key,
    pub opened_ms: i64,
    /// The time at which it is released by itself.
    pub expires_ms: i64,
    /// Why the points are held; what is captured is burned for this reason.
    pub reason: Option<Arc<str>>,
    /// The reward that is being redeemed.
    pub reward: Option<Arc<str>>,
    pub lots: SmallVec<[(Expiry, Points); 2]>,
}

impl Hold {
    pub fn points(&self) -> Points {
        self.lots.iter().map(|(_, points)| points).sum()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HoldChange {
    Opened(Hold),
    Resolved(Key),
}

/// What expired last from the rolling lot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastExpiry {
    pub day: Day,
    /// The moment from which the points were gone.
    pub cut_ms: i64,
    pub points: Points,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reminder {
    pub expires: Day,
    /// Days before that at which the member was reminded.
    pub days: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetUse {
    pub budget: Arc<str>,
    pub amount: i64,
}

/// The award that an entry reverses, in all or in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reversal {
    pub book: u16,
    pub sequence: u64,
    pub points: Points,
    /// The amount that was paid back, where points follow from it.
    pub amount: Option<Number>,
    /// Set where the award has no reference and was named by its key.
    pub key: Option<Key>,
    /// Whether everything under the reference was taken back, also what is awarded late.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_whole: bool,
}

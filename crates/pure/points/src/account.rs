//! Accounts, and what an entry adds to them. Points owed to members are positive.

use crate::Points;
use crate::day::{Day, Month};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// When points of a lot expire. The order is that in which lots are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Expiry {
    /// At the end of a day.
    On(Day),
    /// With the wallet's activity.
    Rolling,
    Never,
}

impl Expiry {
    /// The last day of points in such a lot, with that of the rolling one; `None` for none.
    pub const fn last_day(self, rolling: Option<Day>) -> Option<Day> {
        match self {
            Self::On(day) => Some(day),
            Self::Rolling => rolling,
            Self::Never => None,
        }
    }
}

impl Serialize for Expiry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Expiry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::On(day) => day.fmt(out),
            Self::Rolling => out.write_str("rolling"),
            Self::Never => out.write_str("never"),
        }
    }
}

/// The name of an account leaves out its month or day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// Of a wallet: points that can be spent.
    Available(Expiry),
    /// Of a wallet: points that can be spent from a day on.
    Pending {
        matures: Day,
        expiry: Expiry,
    },
    /// Of a wallet: points that are reserved.
    Held,
    /// Of a wallet: what the member owes, as a negative balance.
    Arrears,
    /// Of a programme: awards, by budget.
    Issued(Arc<str>),
    /// Of a programme: what was spent, and the month in which it would have expired; `None` for
    /// points that never do, and in entries from before this was recorded.
    Burned(Arc<str>, Option<Month>),
    /// Of a programme: what expired, and in which month; `None` in entries from before this was
    /// recorded.
    Expired(Option<Month>),
    Adjusted,
    /// Of a programme: what a partner took over, less what it gave, on a day of the programme;
    /// `None` in entries from before it was recorded.
    Partner(Arc<str>, Option<Day>),
    /// Of a programme: between the two entries of a transfer.
    Transit,
    /// Of a programme: reversals that found no points to take.
    WrittenOff,
}

impl fmt::Display for Account {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Available(expiry) => write!(out, "available:{expiry}"),
            Self::Pending { matures, expiry } => write!(out, "pending:{matures}:{expiry}"),
            Self::Held => out.write_str("held"),
            Self::Arrears => out.write_str("arrears"),
            Self::Issued(budget) => write!(out, "issued:{budget}"),
            Self::Burned(reason, _) => write!(out, "burned:{reason}"),
            Self::Expired(_) => out.write_str("expired"),
            Self::Adjusted => out.write_str("adjusted"),
            Self::Partner(name, _) => write!(out, "partner:{name}"),
            Self::Transit => out.write_str("transit"),
            Self::WrittenOff => out.write_str("writtenOff"),
        }
    }
}

impl Serialize for Account {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What an entry adds to an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    pub account: Account,
    pub amount: Points,
}

/// With the month in which points were due that left for good.
impl Serialize for Posting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let due = self.due();
        let mut map = serializer.serialize_map(Some(2 + usize::from(due.is_some())))?;
        map.serialize_entry("account", &self.account)?;
        map.serialize_entry("amount", &self.amount)?;
        if let Some(month) = due {
            map.serialize_entry("due", &month)?;
        }
        map.end()
    }
}

impl Posting {
    pub fn new(account: Account, amount: Points) -> Self {
        Self { account, amount }
    }

    /// The month in which the points were due, where they left for good.
    pub const fn due(&self) -> Option<Month> {
        match self.account {
            Account::Burned(_, due) | Account::Expired(due) => due,
            _ => None,
        }
    }
}

//! Entries: what the ledger decided. Wallets, sums and indexes are functions of them.

mod changes;
pub(crate) mod codec;

pub use changes::{
    BudgetUse, Changes, Hold, HoldChange, LastExpiry, Period, Qualifying, Reminder, Reversal,
    RollingChange, TierChange,
};

use crate::Points;
use crate::account::{Account, Posting};
use crate::day::Day;
use crate::identity::{Key, ReferenceId, WalletId};
use crate::number::{Number, Rounding};
use raingauge_core::code::Refusal;
use serde::Serialize;
use smallvec::SmallVec;
use std::sync::Arc;

/// Declares [`Kind`]: each variant with its name and the number that is stored.
macro_rules! kinds {
    ($($(#[$comment:meta])* $variant:ident = $number:literal, $name:literal;)+) => {
        /// What an entry is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$comment])* $variant,)+
        }

        impl Kind {
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.name() == name)
            }

            /// The number that is stored. Numbers never change.
            pub const fn number(self) -> u8 {
                match self {
                    $(Self::$variant => $number,)+
                }
            }

            pub fn from_number(number: u8) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.number() == number)
            }
        }
    };
}

kinds! {
    /// An award by a rule: it counts towards tiers, and may extend the expiry.
    Earn = 1, "earn";
    /// An award of a number of points.
    Bonus = 2, "bonus";
    /// Pending points can be spent.
    Activate = 3, "activate";
    Burn = 4, "burn";
    Hold = 5, "hold";
    Capture = 6, "capture";
    Release = 7, "release";
    TransferOut = 8, "transferOut";
    TransferIn = 9, "transferIn";
    ExchangeOut = 10, "exchangeOut";
    ExchangeIn = 11, "exchangeIn";
    Reverse = 12, "reverse";
    Adjust = 13, "adjust";
    Expire = 14, "expire";
    /// What had expired comes back, because a transaction from before was late.
    Reinstate = 15, "reinstate";
    /// Another version of the programme is in force from here on.
    Programme = 16, "programme";
    Tier = 17, "tier";
    /// A command that was refused, for ever.
    Refused = 18, "refused";
    /// A due time that moved because the programme changed.
    Extend = 19, "extend";
    /// Points will expire soon.
    Remind = 20, "remind";
    Close = 21, "close";
}

impl Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The key of the command that an entry answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryKey {
    pub hash: Key,
    pub text: Arc<str>,
    pub source: Arc<str>,
}

/// A factor of a product: the table, and the row that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Factor {
    pub name: Arc<str>,
    pub row: Arc<str>,
    pub value: Number,
}

/// How the points of an award came about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explain {
    /// The version of the programme.
    pub version: u32,
    pub rule: Option<u32>,
    pub rule_name: Option<Arc<str>>,
    /// `None` for a fixed number of points.
    pub amount: Option<Number>,
    pub factors: Vec<Factor>,
    /// The product, before it is rounded.
    pub exact: Option<Number>,
    pub rounding: Rounding,
    /// Most points of an event, where that was less than the product.
    pub limit: Option<Points>,
    pub points: Points,
}

impl Explain {
    /// The product of all factors; `None` where nothing was multiplied.
    pub fn multiplier(&self) -> Option<Number> {
        self.amount?;
        self.factors.iter().try_fold(Number::ONE, |product, factor| product.times(factor.value))
    }
}

/// A line of the ledger. It never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub book: u16,
    /// In the book, from 1 on; 0 for what is settled but not written.
    pub sequence: u64,
    pub recorded_ms: i64,
    pub occurred_ms: i64,
    pub programme: Arc<str>,
    /// `None` in entries of the programme itself.
    pub member: Option<Arc<str>>,
    /// In the wallet, from 1 on.
    pub member_sequence: u64,
    pub kind: Kind,
    pub key: Option<EntryKey>,
    /// They sum up to zero.
    pub postings: SmallVec<[Posting; 4]>,
    /// Points that can be spent, less arrears.
    pub balance_after: Points,
    pub tier_after: Option<Arc<str>>,
    /// When the next points expire.
    pub expires_after: Option<Day>,
    /// When something is due in the wallet, in hours since 1970.
    pub due_hour_after: Option<u32>,
    pub changes: Changes,
    pub reference: Option<Arc<str>>,
    pub reason: Option<Arc<str>>,
    pub explain: Option<Box<Explain>>,
    pub refusal: Option<Refusal>,
    /// Of the command, to recognize another one with the same key.
    pub fingerprint: u64,
}

impl Entry {
    /// An entry of a wallet that has yet to be filled in.
    pub(crate) fn draft(wallet: &WalletId, kind: Kind, occurred_ms: i64) -> Self {
        Self {
            member: Some(wallet.member.clone()),
            ..Self::of_programme(wallet.programme.clone(), kind, occurred_ms)
        }
    }

    pub(crate) fn of_programme(programme: Arc<str>, kind: Kind, occurred_ms: i64) -> Self {
        Self {
            book: 0,
            sequence: 0,
            recorded_ms: 0,
            occurred_ms,
            programme,
            member: None,
            member_sequence: 0,
            kind,
            key: None,
            postings: SmallVec::new(),
            balance_after: 0,
            tier_after: None,
            expires_after: None,
            due_hour_after: None,
            changes: Changes::default(),
            reference: None,
            reason: None,
            explain: None,
            refusal: None,
            fingerprint: 0,
        }
    }

    pub(crate) fn post(&mut self, account: Account, amount: Points) {
        if amount != 0 {
            self.postings.push(Posting::new(account, amount));
        }
    }

    /// Posts to an account that may have a posting already, and has one afterwards.
    pub(crate) fn post_more(&mut self, account: Account, amount: Points) {
        match self.postings.iter_mut().find(|posting| posting.account == account) {
            Some(posting) => posting.amount += amount,
            None => self.post(account, amount),
        }
    }

    pub fn wallet(&self) -> Option<WalletId> {
        let member = self.member.clone()?;
        Some(WalletId { programme: self.programme.clone(), member })
    }

    /// By how much the entry changes what can be spent, less arrears.
    pub fn points(&self) -> Points {
        let is_balance = |posting: &&Posting| {
            matches!(posting.account, Account::Available(_) | Account::Arrears)
        };
        self.postings.iter().filter(is_balance).map(|posting| posting.amount).sum()
    }

    /// The points of an award, whether they can be spent yet or not, or were owed.
    pub fn awarded(&self) -> Points {
        let issued = |posting: &Posting| match posting.account {
            Account::Issued(_) => -posting.amount,
            _ => 0,
        };
        self.postings.iter().map(issued).sum()
    }

    /// What the reference of an award is stored under.
    pub fn reference_id(&self) -> Option<ReferenceId> {
        let member = self.member.as_deref()?;
        let reference = self.reference.as_deref()?;
        Some(ReferenceId::of(&self.programme, member, reference))
    }

    /// Whether the entry sums up to zero (I1).
    pub fn is_balanced(&self) -> bool {
        self.postings.iter().map(|posting| i128::from(posting.amount)).sum::<i128>() == 0
    }
}

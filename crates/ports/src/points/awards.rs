//! What other products award: points that they have decided on, each once.

use crate::BoxFuture;
use raingauge_core::code::Refusal;
use std::time::Duration;

/// Points that another product has decided to award.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Award {
    pub programme: String,
    pub member: String,
    /// What makes it happen once. It is unique among the keys of `source`.
    pub key: String,
    /// Who awards, such as `campaigns`.
    pub source: String,
    pub worth: Worth,
    /// When it was earned, in milliseconds since 1970.
    pub occurred_ms: i64,
    pub reason: Option<String>,
    /// The account that pays. It is the hard stop that no error of a caller passes.
    pub budget: Option<String>,
}

/// How many points an award is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Worth {
    /// Whole units of the programme.
    Points(i64),
    /// A product, which the programme rounds once. Amount and factors are decimal numbers, such as
    /// `62.30`.
    Product { amount: String, factors: Vec<(String, String)> },
}

/// An award that is in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awarded {
    /// The place of its entry: `programme:book:sequence`.
    pub entry: String,
    /// In units of 10^-decimals of the programme.
    pub points: i64,
    /// What the member has after it, arrears subtracted, in the same units.
    pub balance: i64,
    /// Whether this was answered before.
    pub is_replayed: bool,
}

/// Why nothing was awarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAwarded {
    /// The same key is refused for ever.
    Refused(Refusal),
    /// Nothing is known yet: the same award is to be repeated later.
    Later { retry_after: Duration, detail: String },
}

/// Awards points for other products.
pub trait Points: Send + Sync {
    /// Awards in the order of the list, durably when it returns. Calls with the same key have the
    /// same answer, so a caller repeats until it has one.
    fn award(&self, awards: Vec<Award>) -> BoxFuture<'_, Vec<Result<Awarded, NotAwarded>>>;
}

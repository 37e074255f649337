//! The kinds of transactions and corrections, and which members mean something for each.

use serde::Deserialize;
use std::fmt;

/// What a transaction or a correction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum TransactionKind {
    Burn,
    Hold,
    Capture,
    Release,
    Transfer,
    ExchangeOut,
    ExchangeIn,
    Reverse,
    Adjust,
    Tier,
    Close,
}

/// Which kinds a route takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Transactions,
    Corrections,
}

impl TransactionKind {
    pub const ALL: [Self; 11] = [
        Self::Burn,
        Self::Hold,
        Self::Capture,
        Self::Release,
        Self::Transfer,
        Self::ExchangeOut,
        Self::ExchangeIn,
        Self::Reverse,
        Self::Adjust,
        Self::Tier,
        Self::Close,
    ];

    /// The name in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Burn => "burn",
            Self::Hold => "hold",
            Self::Capture => "capture",
            Self::Release => "release",
            Self::Transfer => "transfer",
            Self::ExchangeOut => "exchangeOut",
            Self::ExchangeIn => "exchangeIn",
            Self::Reverse => "reverse",
            Self::Adjust => "adjust",
            Self::Tier => "tier",
            Self::Close => "close",
        }
    }

    pub const fn family(self) -> Family {
        match self {
            Self::Burn
            | Self::Hold
            | Self::Capture
            | Self::Release
            | Self::Transfer
            | Self::ExchangeOut
            | Self::ExchangeIn => Family::Transactions,
            Self::Reverse | Self::Adjust | Self::Tier | Self::Close => Family::Corrections,
        }
    }

    /// The members of a request that mean something for the kind, beside those of all kinds.
    pub const fn members(self) -> &'static [&'static str] {
        match self {
            Self::Burn => &["points"],
            Self::Hold => &["points", "until", "reward"],
            Self::Capture => &["hold", "points"],
            Self::Release => &["hold"],
            Self::Transfer => &["to", "points"],
            Self::ExchangeOut => &["partner", "to", "points"],
            Self::ExchangeIn => &["partner", "to", "points", "amount"],
            Self::Reverse => &["award", "source", "amount", "points"],
            Self::Adjust => &["points", "expiresOn"],
            Self::Tier => &["tier", "until"],
            Self::Close => &[],
        }
    }
}

impl fmt::Display for TransactionKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl TryFrom<String> for TransactionKind {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| not_one_of(&Self::ALL, &name))
    }
}

impl Family {
    /// Why a route of this family does not take a kind of another one.
    pub fn refusal_of(self, kind: TransactionKind) -> String {
        let own = TransactionKind::ALL.into_iter().filter(|own| own.family() == self);
        not_one_of(&own.collect::<Vec<_>>(), kind.name())
    }
}

fn not_one_of(kinds: &[TransactionKind], name: &str) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    format!("kind is one of {}, and not {name:?}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_kinds() {
        for kind in TransactionKind::ALL {
            assert_eq!(TransactionKind::try_from(kind.name().to_owned()), Ok(kind));
        }
        let unknown = TransactionKind::try_from("destroy".to_owned()).unwrap_err();
        assert!(unknown.starts_with("kind is one of burn, hold, "), "{unknown}");
        assert!(unknown.ends_with("tier, close, and not \"destroy\""), "{unknown}");
    }

    #[test]
    fn a_route_names_the_kinds_that_it_takes() {
        let refusal = Family::Corrections.refusal_of(TransactionKind::Burn);
        assert_eq!(refusal, "kind is one of reverse, adjust, tier, close, and not \"burn\"");
    }
}

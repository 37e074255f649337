//! Balances and rows of statements.

use raingauge_points::{Day, Entry, Kind, Points, Programme, Wallet, WalletId};
use std::sync::Arc;

/// What a member has, in units of 10^-decimals of the programme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    pub id: WalletId,
    /// What can be spent.
    pub available: Points,
    /// What can be spent later.
    pub pending: Points,
    /// What is reserved.
    pub held: Points,
    /// What is owed by the member: later awards pay it first.
    pub arrears: Points,
    pub tier: Option<Arc<str>>,
    /// The last day on which the points that expire first can be spent.
    pub expires_on: Option<Day>,
    /// What can be spent, by the day on which it expires; `None` is never.
    pub lots: Vec<BalanceLot>,
    /// Whether the wallet takes no more commands.
    pub closed: bool,
}

/// Points that expire together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceLot {
    pub points: Points,
    pub expires_on: Option<Day>,
}

impl Balance {
    /// What a settled wallet has. A member who has reached no tier has the lowest.
    pub(crate) fn of(id: WalletId, wallet: &Wallet, programme: &Programme) -> Self {
        let lots = wallet.lots_by_date().into_iter();
        let lots: Vec<BalanceLot> =
            lots.map(|(points, expires_on)| BalanceLot { points, expires_on }).collect();
        Self {
            id,
            available: wallet.available(),
            pending: wallet.pending_points(),
            held: wallet.held_points(),
            arrears: wallet.arrears,
            tier: programme.tier_of(wallet.tier.as_ref()).cloned(),
            expires_on: wallet.expires_on(),
            lots,
            closed: wallet.closed,
        }
    }
}

/// A row of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementRow {
    /// The number of the row in the wallet; `None` for what is due and not yet written.
    pub sequence: Option<u64>,
    /// Book and sequence of the entry.
    pub place: Option<(u16, u64)>,
    pub kind: Kind,
    /// The change of what the member has, arrears subtracted.
    pub points: Points,
    /// What the member has after it, arrears subtracted.
    pub balance_after: Points,
    /// Milliseconds since 1970.
    pub occurred_ms: i64,
    pub recorded_ms: i64,
    pub reason: Option<Arc<str>>,
    pub reference: Option<Arc<str>>,
    pub key: Option<Arc<str>>,
}

impl StatementRow {
    pub(crate) fn of(entry: &Entry) -> Self {
        let is_written = entry.sequence > 0;
        Self {
            sequence: is_written.then_some(entry.member_sequence),
            place: is_written.then_some((entry.book, entry.sequence)),
            kind: entry.kind,
            points: entry.points(),
            balance_after: entry.balance_after,
            occurred_ms: entry.occurred_ms,
            recorded_ms: entry.recorded_ms,
            reason: entry.reason.clone(),
            reference: entry.reference.clone(),
            key: entry.key.as_ref().map(|key| Arc::clone(&key.text)),
        }
    }
}

//! What a ledger of points decides, as pure functions: no clock, no input or output, no threads.
//!
//! ```text
//!   event ──▶ rules, tables ──▶ command ──▶ Desk ──▶ entries ──▶ wallets, sums, references
//!                                            ▲  │
//!                         what books loaded ─┘  └─▶ what books make durable
//! ```
//!
//! A programme says how transactions become points and when those expire. A [`Desk`] decides
//! commands into entries. Everything else is a function of entries: a wallet changes by
//! [`Wallet::apply`] alone, sums by [`Totals::apply`], so that a recovery, which decides nothing
//! again, arrives at the same state. Time is a part of it: [`settle`] writes down what became true
//! by itself, and a balance that is read is settled first.

pub mod account;
pub mod calendar;
mod check;
pub mod command;
pub mod day;
pub mod desk;
pub mod document;
mod draft;
pub mod earned;
mod encoding;
pub mod entry;
pub mod expiry;
pub mod explain;
pub mod identity;
pub mod limits;
pub mod number;
pub mod pricing;
pub mod programme;
#[cfg(any(test, feature = "contract"))]
pub mod script;
pub mod settle;
pub mod snapshot;
mod table;
pub mod tiers;
pub mod totals;
pub mod trace;
pub mod wallet;

pub use account::{Account, Expiry, Posting};
pub use calendar::Zone;
pub use command::{Award, Basis, Body, Command};
pub use day::{Day, Month};
pub use desk::{Answer, Desk};
pub use document::ProgrammeDocument;
pub use earned::Earned;
pub use encoding::DecodeError;
pub use entry::{Changes, Entry, EntryKey, Explain, Factor, Hold, Kind};
/// The maps of a snapshot, whose hashes are quick: a turn looks thousands of names up.
pub use hashbrown::HashMap as Map;
pub use identity::{BudgetId, Key, ReferenceId, WalletId};
pub use number::{Number, Rounding};
pub use pricing::{Facts, Priced, Unpriced};
pub use programme::{Programme, Programmes};
pub use snapshot::{BookHead, Footprint, Snapshot, Turn};
pub use totals::{Gone, Liability, Total, TotalId, Totals};
pub use wallet::{Lot, Wallet};

use raingauge_core::code::{Code, Refusal};

/// Points in units of `10^-decimals` of their programme.
pub type Points = i64;

/// A refusal, as the result of what was to be done.
pub(crate) fn refused<T>(code: Code, detail: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(code, detail))
}

#[cfg(test)]
mod tests;

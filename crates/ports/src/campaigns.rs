//! The ledger of campaigns: what they remember, what they decided, and what is yet to be sent.
//!
//! ```text
//!   worker ──▶ Ledger ── one atomic commit ──▶ position, states, budgets, decisions, timers,
//!                                              deliveries
//!                                                  │
//!   sender ──▶ Outbox ── takes, settles ───────────┘         doors ──▶ LedgerReader, Outbox
//! ```
//!
//! A worker reads one partition of the log in order. What a batch of events makes of the campaigns
//! becomes durable together with the position, so after a crash the worker continues there, and
//! every event has an effect once. An action has its id before it is decided, and the ledger grants
//! each id once, however often the event comes back.
//!
//! Values are absolute, except for budgets: the worker adds to what is reserved while the sender
//! returns what was refused, so both write differences. Only the worker reserves; what it read is
//! never too much.

mod budgets;
mod bytes;
mod decisions;
mod deliveries;
mod ledger;
pub mod limits;
mod outbox;
mod reader;
mod retention;
mod state;

pub use budgets::{Budget, BudgetChange, BudgetKey, Cost};
pub use decisions::{Decision, DecisionPlace, DecisionQuery, Decisions};
pub use deliveries::{
    Backlog, Deliveries, Delivery, DeliveryPlace, DeliveryQuery, DeliveryRecord, Effect, Selection,
    Settled, Settlement, Status,
};
pub use ledger::{Checkpoint, Commit, Ledger};
pub use outbox::Outbox;
pub use reader::{LedgerReader, StoredState};
pub use retention::{Horizons, LedgerRetention};
pub use state::{StateKey, StateKind, Timer};

use crate::log::Offset;
use std::fmt;
use std::str::FromStr;

/// The id of a campaign.
pub type CampaignId = u32;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Another worker has taken the partition over, or has moved its position. Nothing was written.
    #[error("another worker has the ledger: it is at offset {position} in epoch {epoch}")]
    Lost { epoch: u64, position: Offset },
    /// The commit contradicts itself or the ledger. Nothing was written.
    #[error("the commit to the ledger is invalid: {0}")]
    Invalid(String),
    /// The disk is almost full. Nothing was written, and the caller may try again when there is
    /// more room.
    #[error(
        "the disk of the ledger has {free_bytes} bytes left, and the last {reserve_bytes} are kept in reserve"
    )]
    Full { free_bytes: u64, reserve_bytes: u64 },
    /// The log ends before the position, so it is not the log that the ledger was made from.
    #[error(
        "the ledger of campaigns includes the event log up to offset {position}, but the log ends at {end}: \
         restore both from the same backup"
    )]
    LogTooShort { position: Offset, end: Offset },
    #[error("the ledger of campaigns is damaged: {0}")]
    Corrupt(String),
    #[error("the ledger of campaigns could not be read or written: {0}")]
    Io(String),
    /// Another process has the data folder open.
    #[error("the data folder is in use by another raingauge: stop it, or ask it over HTTP")]
    Locked,
}

/// The id of an action: a function of campaign, event, subject, step and action, so that an event
/// that comes back names the same action.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub [u8; 16]);

impl ActionId {
    /// The beginning of every id in its text form.
    const PREFIX: &str = "act_";
}

impl fmt::Display for ActionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{:032x}", Self::PREFIX, u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for ActionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The text is not the id of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the id of an action is `act_` and 32 hexadecimal digits in lower case")]
pub struct MalformedActionId;

impl FromStr for ActionId {
    type Err = MalformedActionId;

    fn from_str(text: &str) -> Result<Self, MalformedActionId> {
        let digits = text.strip_prefix(Self::PREFIX).ok_or(MalformedActionId)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() != 32 || !digits.bytes().all(is_digit) {
            return Err(MalformedActionId);
        }
        let number = u128::from_str_radix(digits, 16).map_err(|_| MalformedActionId)?;
        Ok(Self(number.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_id_has_one_text() {
        let text = "act_0007a20a5c6e936874c9ec850d9ffaac";
        let id: ActionId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(id.0[..3], [0, 7, 0xa2]);

        for text in ["", "act_", "act_0007A20A5C6E936874C9EC850D9FFAAC", &text[4..], "act_+7"] {
            assert_eq!(text.parse::<ActionId>(), Err(MalformedActionId), "{text}");
        }
    }
}

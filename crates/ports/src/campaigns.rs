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
mod databases;
mod decisions;
mod deliveries;
pub mod documents;
mod erasure;
mod ledger;
pub mod limits;
mod lookups;
mod outbox;
mod reader;
mod retention;
pub mod sender;
mod state;
mod table_loads;
mod tables;

pub use budgets::{Budget, BudgetChange};
pub use databases::{DatabaseError, DatabaseLookup};
pub use decisions::{Decision, DecisionPlace, DecisionQuery, Decisions};
pub use deliveries::{
    Backlog, Deliveries, Delivery, DeliveryPlace, DeliveryQuery, DeliveryRecord, Effect, Selection,
    Settled, Settlement, Status,
};
pub use documents::{ChangedDocuments, DocumentStore, Put, StoredDocument};
pub use erasure::{ErasedRecords, LedgerErasure};
pub use ledger::{Checkpoint, Commit, Ledger};
pub use lookups::{LookupError, Lookups};
pub use outbox::Outbox;
pub use reader::{LedgerReader, StoredState};
pub use retention::{Horizons, LedgerRetention};
pub use state::Timer;
pub use table_loads::{TableLoad, TableLoads};
pub use tables::{TableError, TableRow, TableVersion, Tables};
// What the engine calls its states, actions and budgets is what they are stored under.
pub use raingauge_campaigns::campaign::CampaignId;
pub use raingauge_campaigns::decision::{ActionId, Cost, MalformedActionId};
pub use raingauge_campaigns::states::{BudgetKey, StateKey, StateKind};

use crate::log::Offset;

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
        "the disk of the ledger has {free_bytes} bytes left, and the last {reserve_bytes} are kept in reserve: \
         make room on it"
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

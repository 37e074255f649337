//! The online service of points: it prices events, decides commands, and tells others.
//!
//! ```text
//!   doors ──commands──▶ Intake ─┐
//!                               ├─▶ Teller: one turn ──▶ books: entries and position, durable
//!   event log ──▶ Batch: prices ┘       │                   │
//!                                       │ no price yet      ├──▶ Publisher ──▶ event log, stream
//!                                       ▼                   └──▶ Notifier ──▶ webhook
//!                            queue retry ──▶ Retry ──▶ Intake        │ failed
//!   due index ──▶ Sweeper ──▶ queue expiry ──▶ Intake                └──▶ queue notify
//! ```
//!
//! One thread decides everything of a process, turn by turn. What a turn makes of commands and
//! events becomes durable together with the position in the log, so after a crash the same events
//! are read again, or none of them. Where a position and an effect lie in different engines, the
//! effect comes first and has a key, so that its repetition is recognized.
//!
//! Programmes come into force at their places in the log, as control entries name them. Where
//! several processes share a log of partitions, the `Inflow` of one of them reads it, its awards go
//! through the `Intake`, and programmes come into force as the store has them.

mod awards;
mod backoff;
mod batch;
mod cloud_event;
mod deps;
mod error;
mod handle;
mod inflow;
mod intake;
mod lane;
mod letterbox;
mod letters;
pub mod limits;
mod measure;
mod members;
mod notifier;
mod observer;
mod places;
mod port;
mod publisher;
mod replies;
mod retry;
mod right;
mod service;
mod shared;
mod snapshot;
mod sweeper;
mod tail;
mod teller;

#[cfg(test)]
mod tests;

pub use backoff::RetryOptions;
pub use deps::{Awarding, Deps, NotifyOptions, Options, SweepOptions};
pub use error::Error;
pub use handle::{Effect, Handle};
pub use letters::UnpricedEvent;
pub use members::{
    Allowance, Allowances, Balance, BalanceLot, Explanation, LeftPoints, Members, Settlement,
    SpentPoints, StatementRow,
};
pub use places::skip_lost;
pub use publisher::SOURCE;
pub use raingauge_points::document::CONSUMER;
pub use service::Teller;
pub use snapshot::{PROGRAMME, Snapshot};
pub use sweeper::{SweepState, SweepStatus};

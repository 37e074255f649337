//! The service that writes counts.
//!
//! ```text
//!   events ──▶ Ingest ──▶ event log ──▶ Worker ──▶ bucket store
//!                            ▲            │
//!   changes of counters ─────┘ control    └──▶ Published: counters, timelines, how far
//!                              entries
//! ```
//!
//! Everything that changes counts goes through the log: events, buckets that are set, changes of
//! counters, the start of a backfill. So the store, and the worker's own state beside it, are a
//! function of a prefix of the log.

pub mod audience;
pub mod belongs;
pub mod bucket_list;
pub mod conductor;
pub mod control;
pub mod fleet;
pub mod follow;
pub mod history;
pub mod ingest;
pub mod keys;
pub mod lost;
pub mod settings;
pub mod state;
pub mod states;
pub mod watchdog;
pub mod worker;

pub use conductor::Conductor;
pub use control::ControlError;
pub use fleet::Fleet;
pub use follow::{Follower, NotThere};
pub use ingest::Ingest;
pub use keys::{KeyLimit, KeyWatch};
pub use worker::Options;

/// Checks that a payload is a control entry that this program can obey.
pub fn check_control(payload: &[u8]) -> Result<(), ControlError> {
    control::Control::parse(payload).map(drop)
}

//! The worker of campaigns: reads the log, decides, and makes durable what was decided.
//!
//! ```text
//!   log ──▶ Batch ──▶ Turn ── one commit ──▶ ledger: position, states, budgets, decisions,
//!    ▲                 ▲                             timers, deliveries
//!    │                 ├── lookups, asked together
//!    │                 └── timers that are due by the time of the log
//!    └── documents take effect at their place in it
//! ```
//!
//! What an event makes of the campaigns becomes durable together with the position behind it, so
//! after a crash the worker decides again what nobody has seen. It runs in a thread of its own:
//! counting never waits for it. A slow lookup delays the campaigns that ask it alone: evaluations
//! that lack an answer are put off, as timers.

mod answers;
mod batch;
mod campaigner;
mod compiled;
mod control;
mod deps;
mod documents;
mod error;
mod handle;
mod known;
mod operator;
mod orders;
mod tallies;
mod timer;
mod turn;
mod worker;

#[cfg(test)]
mod tests;

pub use campaigner::Campaigner;
pub use control::{CONSUMER, DocumentVersion, document_entry};
pub use deps::{Deps, Options};
pub use documents::{Documents, Name};
pub use error::Error;
pub use handle::{Handle, Snapshot, Warming};
pub use operator::{Operator, OperatorError};
pub use orders::{Order, RefusedStep, erasure_entry};

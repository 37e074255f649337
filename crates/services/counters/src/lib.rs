//! The service of configurations: what counts, how it is changed, and what a change would do.
//!
//! ```text
//!   doors ──▶ Counters ──▶ catalog
//!                │
//!                └──▶ log ──▶ writers count by the new version
//! ```
//!
//! A configuration is written to the catalog first and takes effect through the log, in order with
//! the events. [`Drafts`] is the workflow by which a change is proposed, reviewed and approved; it
//! serves documents of every kind, of which counters are the first.

mod counters;
pub mod difference;
pub mod documents;
pub mod drafts;
pub mod export;
pub mod observed;
pub mod preview;
mod propagation;
pub mod recent;
pub mod recount;

pub use counters::{Counters, Error, Outcome, RemoteLog, RequestKey};
pub use drafts::Drafts;
pub use propagation::TakesEffect;
pub use recent::RecentEvents;

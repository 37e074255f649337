//! Operations: what an operator sees of a running system, and what looks after it without being
//! asked.
//!
//! ```text
//!   metrics of this process ──▶ watch ──▶ instances of the catalog
//!                                               └──▶ watch of every portal ──▶ measures of an hour
//!   log, store ──▶ self_audit: counts are recounted ──▶ checks
//!   measures, instances ──▶ rollouts: one portal conducts ──▶ cache policy
//!   schedule ──▶ maintenance: compaction, node by node
//! ```

pub mod maintenance;
pub mod measures;
pub mod rollouts;
pub mod self_audit;
pub mod watch;

pub use maintenance::Maintenance;
pub use measures::Measures;
pub use rollouts::Conductor;
pub use self_audit::SelfAudit;
pub use watch::Watch;

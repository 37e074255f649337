//! The published experiment on the real engines: a result cache is removed in steps while all parts
//! are monitored; and the same traffic under each cache strategy.
//!
//! ```text
//!   traffic ──batches──▶ reader ─┬─▶ Redis            steps ──▶ portal: cache policy, compaction
//!           ──events───▶ writer  └─▶ Cassandra        probe ──▶ /metrics, /proc, system_views
//!                     all under one clock that runs faster than the machine's
//!
//!   record ──▶ analysis: phases, bins, folds ──▶ numbers ──▶ findings ──┐
//!                                            └─▶ figures: SVG, PNG ─────┴──▶ report: one folder
//! ```

pub mod cases;
pub mod prices;
pub mod record;
pub mod report;
pub mod scenario;

mod asking;
mod bench;
mod metrics;
mod place;
mod policy;
mod probe;
mod steps;
mod stream;
mod truth;

pub use bench::{Options, run};

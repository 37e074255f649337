//! The published experiment on the real engines: a result cache is taken away configuration by configuration, while
//! everything is looked at; and the same traffic under each cache strategy.
//!
//! ```text
//!   traffic ──batches──▶ reader ─┬─▶ Redis            steps ──▶ portal: cache policy, compaction
//!           ──events───▶ writer  └─▶ Cassandra        probe ──▶ /metrics, /proc, system_views
//!                     all under one clock that runs faster than the machine's
//!
//!   record ──▶ analysis: phases, bins, folds ──▶ numbers ──▶ findings ──┐
//!                                            └─▶ figures: SVG, PNG ─────┴──▶ report: one folder
//! ```

pub mod analysis;
pub mod bins;
pub mod cases;
pub mod compaction_effect;
pub mod figure;
pub mod findings;
pub mod fold;
pub mod numbers;
pub mod phase;
pub mod prices;
pub mod record;
pub mod report;
pub mod rules;
pub mod scenario;
pub mod usage;
pub mod window;
pub mod words;
pub mod zone;

mod asking;
mod bench;
mod csv;
mod page;
mod place;
mod probe;
#[cfg(test)]
mod sample_run;
mod steps;
mod stream;
mod truth;

pub use bench::{Arguments, Options, run};

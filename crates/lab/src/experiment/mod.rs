//! The reference's experiment on the real engines: a result cache is taken away configuration by configuration.
//!
//! ```text
//!   record ──▶ analysis: phases, bins, folds ──▶ numbers ──▶ findings ──┐
//!                                            └─▶ figures: SVG, PNG ─────┴──▶ report: one folder
//! ```

pub mod analysis;
pub mod bins;
pub mod compaction_effect;
pub mod figure;
pub mod findings;
pub mod fold;
pub mod numbers;
pub mod phase;
pub mod record;
pub mod report;
pub mod rules;
pub mod usage;
pub mod window;
pub mod words;
pub mod zone;

mod csv;
mod page;
#[cfg(test)]
mod sample_run;

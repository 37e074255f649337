//! The lab: measures a running raingauge through its public API and, in the same run, alternative
//! systems (`peers`).
//!
//! ```text
//!   core 0: the system under test          core 1: this program
//!   raingauge │ redis │ duckdb … <──────── closed loop: the maximum rate
//!                                <──────── open loop at half of it: latency from the due moment
//!   (SQLite has no server: it runs in this program, on core 1)
//! ```
//!
//! Every system holds the same history and answers the same questions, and the answers are compared
//! with the correct ones.
//!
//! [`faults`] breaks a cluster repeatedly under load and compares every count; the experiments
//! measure a reader under each cache strategy.
//!
//! The feature `experiments` adds the tools that run other systems or draw figures, with their
//! clients, a rasterizer and a font.

pub mod campaigns;
#[cfg(feature = "experiments")]
pub mod capacity;
pub mod cli;
pub mod cluster;
pub mod cores;
pub mod counts;
pub mod events;
#[cfg(feature = "experiments")]
pub mod experiment;
pub mod fast;
pub mod faults;
pub mod http;
pub mod ingest;
pub mod measure;
pub mod pages;
#[cfg(feature = "experiments")]
pub mod peers;
pub mod plan;
pub mod points;
pub mod process;
pub mod redis;
pub mod replay;
pub mod report;
pub mod rollout;
pub mod server;
pub mod traffic;
pub mod workload;

/// The present in seconds since 1970.
pub fn now_s() -> i64 {
    jiff::Timestamp::now().as_second()
}

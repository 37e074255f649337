//! The instrument that measures a running raingauge over its public contract and, in the same run,
//! the systems that one might count with instead (`peers`).
//!
//! ```text
//!   core 0: the system measured            core 1: this program
//!   raingauge │ redis │ duckdb … <──────── closed loop: the greatest rate
//!                                <──────── open loop at half of it: latency from the intended moment
//!   (SQLite has no server: it runs in this program, on core 1)
//! ```
//!
//! Every system holds the same history and is asked the same questions, and answers are compared
//! with the right ones.
//!
//! Other instruments work on a cluster: [`faults`] breaks it under load, again and again, and
//! compares every count; [`strategies`] measures a reader under each cache strategy.
//!
//! The feature `experiments` brings the instruments that run other systems or draw figures, and
//! with them their clients, a rasterizer and a font.

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
pub mod metrics;
pub mod pages;
#[cfg(feature = "experiments")]
pub mod peers;
pub mod plan;
pub mod policy;
pub mod replay;
pub mod report;
pub mod rollout;
pub mod server;
pub mod strategies;
pub mod traffic;
pub mod workload;

/// The present in seconds since 1970.
pub fn now_s() -> i64 {
    jiff::Timestamp::now().as_second()
}

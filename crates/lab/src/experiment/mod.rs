//! The published experiment on the real engines: a result cache is taken away configuration by configuration, while
//! everything is looked at.
//!
//! ```text
//!   traffic ──batches──▶ reader ─┬─▶ Redis            steps ──▶ portal: cache policy, compaction
//!           ──events───▶ writer  └─▶ Cassandra        probe ──▶ /metrics, /proc, system_views
//!                     all under one clock that runs faster than the machine's
//! ```

mod asking;
mod bench;
mod place;
pub mod prices;
mod probe;
pub mod record;
pub mod scenario;
mod steps;
mod stream;
mod truth;

pub use bench::{Arguments, Options, run};

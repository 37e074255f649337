//! The bucket store on ScyllaDB or Apache Cassandra.
//!
//! ```text
//!                        ┌─ minutely_count_table ─┐
//!   writer of partition ─┤  hourly_count_table    ├── for other tools: a row for each bucket
//!        │  one batch    │  daily_count_table     │   and log partition
//!        │  of one key   └─ tile_table ───────────┘── for reader and writer: up to 128 cells a row
//!        ├─ span_table: the days of all keys of a counter, side by side, for its largest keys
//!        ├─ checkpoint_table: how far the log is included
//!        └─ window_table: the identities of recent events, in chunks
//! ```
//!
//! Exactly once, without a transaction: what the writer of a log partition stores for a key is a
//! function of that partition up to some offset. It is stored together with that offset, under a
//! write timestamp that is a function of the offset and grows with it. A repeated write writes the
//! same, an older write loses, and a successor reads what is stored and skips the entries that it
//! includes.

mod cell;
mod checkpoints;
mod chunks;
mod compaction;
mod datacenters;
mod error;
mod fingerprint;
mod keys;
mod largest;
mod lease;
mod options;
mod reader;
pub mod schema;
mod session;
mod statements;
mod states;
mod tables;
mod writer;

pub use checkpoints::Checkpoints;
pub use chunks::Chunks;
pub use compaction::{CompactionOptions, CompactionTables, CompactionWay, NodeCompactor};
pub use error::Error;
pub use fingerprint::Fingerprint;
pub use lease::Lease;
pub use options::{Options, ReadPlan, Settings, Tls};
pub use reader::Reader;
pub use session::Cluster;
pub use writer::{Feed, Writer};

/// Seconds since 1970 by this machine's clock, which should be close to the servers' clocks.
fn wall_s() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

//! In-memory twins of the ports, for tests: the plainest thing that keeps each contract.

mod buckets;
mod log;

pub use buckets::MemoryBuckets;
pub use log::MemoryLog;

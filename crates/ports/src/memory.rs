//! In-memory twins of the ports, for tests: the plainest thing that keeps each contract.

mod buckets;
mod cache;
mod catalog;
mod log;

pub use buckets::MemoryBuckets;
pub use cache::MemoryCache;
pub use catalog::MemoryCatalog;
pub use log::MemoryLog;

//! Engines in memory: the plainest implementation of each port that keeps its contract.
//!
//! Tests of services run over them, and the other adapters are compared with them. The binary uses
//! three itself: [`MemoryCache`] in place of Redis in a single process, and [`MemoryInstances`] and
//! [`MemoryLease`] for a process that has its data folder to itself.

mod buckets;
mod cache;
mod catalog;
mod checks;
mod chunks;
mod consumers;
mod drafts;
mod instances;
mod lease;
mod log;
mod people;
mod rollouts;

pub use buckets::MemoryBuckets;
pub use cache::MemoryCache;
pub use catalog::MemoryCatalog;
pub use checks::MemoryChecks;
pub use chunks::MemoryChunks;
pub use consumers::MemoryConsumers;
pub use drafts::MemoryDrafts;
pub use instances::MemoryInstances;
pub use lease::MemoryLease;
pub use log::MemoryLog;
pub use people::MemoryPeople;
pub use rollouts::MemoryRollouts;

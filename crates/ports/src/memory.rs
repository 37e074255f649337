//! In-memory twins of the ports, for tests: the plainest thing that keeps each contract.

mod buckets;
mod cache;
mod catalog;
mod checks;
mod chunks;
mod drafts;
mod instances;
mod log;
mod people;
mod rollouts;

pub use buckets::MemoryBuckets;
pub use cache::MemoryCache;
pub use catalog::MemoryCatalog;
pub use checks::MemoryChecks;
pub use chunks::MemoryChunks;
pub use drafts::MemoryDrafts;
pub use instances::MemoryInstances;
pub use log::MemoryLog;
pub use people::MemoryPeople;
pub use rollouts::MemoryRollouts;

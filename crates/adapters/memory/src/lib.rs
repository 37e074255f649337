//! Engines in memory: the plainest implementation of each port that keeps its contract.
//!
//! Tests of services run over them, and the other adapters are compared with them. The binary uses
//! three itself: [`Cache`] in place of Redis in a single process, and [`Instances`] and
//! [`Lease`] for a process that has its data folder to itself.

mod books;
mod buckets;
mod cache;
mod catalog;
mod checks;
mod chunks;
mod consumers;
mod documents;
mod drafts;
mod entry_stream;
mod instances;
mod lease;
mod ledger;
mod log;
mod objects;
mod people;
mod queues;
mod rollouts;
mod sender;
mod tables;

pub use books::Books;
pub use buckets::Buckets;
pub use cache::Cache;
pub use catalog::Catalog;
pub use checks::Checks;
pub use chunks::Chunks;
pub use consumers::Consumers;
pub use documents::Documents;
pub use drafts::Drafts;
pub use entry_stream::EntryStream;
pub use instances::Instances;
pub use lease::Lease;
pub use ledger::Ledger;
pub use log::Log;
pub use objects::Objects;
pub use people::People;
pub use queues::Queues;
pub use rollouts::Rollouts;
pub use sender::Sender;
pub use tables::Tables;

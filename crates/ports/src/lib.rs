//! What the services need of the world, as traits. The feature `contract` brings the suites that every
//! adapter of a port passes in its tests.
//!
//! ```text
//!            ┌────────── EventLog ──────────┐
//!   ingest ──┤ append             read ├── writer ──┤ BucketWriter │
//!            └──────────────────────────────┘                 │
//!   portal ──┤ Catalog │                       reader ──┤ BucketReader │
//! ```

pub mod activity;
pub mod buckets;
pub mod cache;
pub mod catalog;
pub mod checks;
pub mod clock;
pub mod cluster;
pub mod consumers;
#[cfg(feature = "contract")]
pub mod contract;
pub mod contract;
pub mod dedupe;
pub mod drafts;
pub mod identity;
pub mod instances;
pub mod key_counts;
pub mod leases;
pub mod log;
pub mod maintenance;
pub mod people;
pub mod published;
pub mod record;
pub mod rollouts;
pub mod scans;
pub mod tiles;

use std::future::Future;
use std::pin::Pin;

/// What an asynchronous method of a port answers.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

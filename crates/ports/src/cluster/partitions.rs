//! The engines of each partition.

use super::Error;
use crate::buckets::BucketWriter;
use crate::log::{EventLog, Partition};
use std::sync::Arc;

/// The engines of each partition.
///
/// No contract suite: the wiring implements it by handing out a log and a store, which have suites
/// of their own.
pub trait Partitions: Send + Sync {
    /// Returns the partition as its counting worker reads it. Blocks the thread.
    fn log(&self, partition: Partition) -> Result<Arc<dyn EventLog>, Error>;

    fn store(&self, partition: Partition) -> Arc<dyn BucketWriter>;
}

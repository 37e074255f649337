//! The checkpoints that writers have committed.

use super::{Error, StoredPosition};
use crate::BoxFuture;
use crate::log::Partition;

/// The checkpoints of the writers of all partitions, as seen by other processes.
///
/// No contract suite: there is one adapter, and the suite of buckets defines what a checkpoint is.
pub trait Checkpoints: Send + Sync {
    fn included(&self) -> BoxFuture<'_, Result<Vec<StoredPosition>, Error>>;

    /// Returns the state of a writer, in its own format; empty before its first checkpoint.
    fn state(&self, partition: Partition) -> BoxFuture<'_, Result<Vec<u8>, Error>>;

    /// Returns the progress of a partition's backfill, in the writer's own format; empty before the
    /// first one.
    fn progress(&self, partition: Partition) -> BoxFuture<'_, Result<Vec<u8>, Error>>;
}

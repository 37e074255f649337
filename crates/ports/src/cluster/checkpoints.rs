//! What the writers have committed.

use super::{Error, Included};
use crate::BoxFuture;
use crate::log::Partition;

/// What the writers of all partitions have committed, seen by other processes.
///
/// No contract suite: one adapter has it, and what a checkpoint is stands in the suite of buckets.
pub trait Checkpoints: Send + Sync {
    fn included(&self) -> BoxFuture<'_, Result<Vec<Included>, Error>>;

    /// The state of a writer, in its own form; nothing before its first checkpoint.
    fn state(&self, partition: Partition) -> BoxFuture<'_, Result<Vec<u8>, Error>>;

    /// How far the backfill of a partition has come, in the writer's own form; nothing before its
    /// first one.
    fn progress(&self, partition: Partition) -> BoxFuture<'_, Result<Vec<u8>, Error>>;
}

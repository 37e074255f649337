//! What the services need to be several processes: who counts which partition, and how far each has come.

use crate::BoxFuture;
use crate::buckets::BucketWriter;
use crate::log::{EventLog, Offset, Partition};
use std::sync::Arc;
use tokio::sync::watch;

/// A failure that the caller reports and tries again.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// Membership of a group of writers that share the partitions among them.
pub trait Membership: Send + Sync {
    /// The partitions that this process is to count. Another process may still believe that it counts one of them.
    fn assigned(&self) -> watch::Receiver<Vec<Partition>>;

    /// Tells the group how far a partition has been counted, for those who watch its lag.
    fn committed(&self, partition: Partition, position: Offset);

    /// Leaves the group, so that others take over at once. Blocks the thread.
    fn leave(&self);
}

/// The engines of each partition.
pub trait Partitions: Send + Sync {
    /// The partition as its counting worker reads it. Blocks the thread.
    fn log(&self, partition: Partition) -> Result<Arc<dyn EventLog>, Error>;

    fn store(&self, partition: Partition) -> Arc<dyn BucketWriter>;
}

/// How far a partition is included in the bucket store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Included {
    pub partition: Partition,
    pub position: Offset,
    /// Changes when the writer's state does.
    pub state_version: i64,
}

/// What the writers of all partitions have committed, seen by other processes.
pub trait Checkpoints: Send + Sync {
    fn included(&self) -> BoxFuture<'_, Result<Vec<Included>, Error>>;

    /// The state of a writer, in its own form; nothing before its first checkpoint.
    fn state(&self, partition: Partition) -> BoxFuture<'_, Result<Vec<u8>, Error>>;

    /// How far the backfill of a partition has come, in the writer's own form; nothing before its first one.
    fn progress(&self, partition: Partition) -> BoxFuture<'_, Result<Vec<u8>, Error>>;
}

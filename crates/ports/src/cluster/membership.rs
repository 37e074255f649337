//! Which process counts which partition.

use crate::log::{Offset, Partition};
use tokio::sync::watch;

/// Membership of a group of writers that share the partitions.
///
/// No contract suite: Kafka's brokers distribute the partitions, and that adapter's tests run
/// against real ones.
pub trait Membership: Send + Sync {
    /// The partitions assigned to this process. Another process may still believe that it counts
    /// one of them.
    fn assigned(&self) -> watch::Receiver<Vec<Partition>>;

    /// Reports to the group how far a partition has been counted, for tools that watch its lag.
    fn committed(&self, partition: Partition, position: Offset);

    /// Leaves the group, so that others take over at once. Blocks the thread.
    fn leave(&self);
}

//! Which process counts which partition.

use crate::log::{Offset, Partition};
use tokio::sync::watch;

/// Membership of a group of writers that share the partitions among them.
///
/// No contract suite: brokers of Kafka share the partitions out, and tests of that adapter run
/// against real ones.
pub trait Membership: Send + Sync {
    /// The partitions that this process is to count. Another process may still believe that it
    /// counts one of them.
    fn assigned(&self) -> watch::Receiver<Vec<Partition>>;

    /// Tells the group how far a partition has been counted, for those who watch its lag.
    fn committed(&self, partition: Partition, position: Offset);

    /// Leaves the group, so that others take over at once. Blocks the thread.
    fn leave(&self);
}

//! The stream of tiles, as writers publish them.

use super::TileChanges;
use crate::log::{Offset, Partition};

/// Where writers publish their tiles.
///
/// No contract suite: there is one adapter, whose tests run against real brokers.
pub trait TileFeed: Send + Sync {
    /// Sends without waiting. If a message could not be sent, a gap is sent before the next one.
    fn publish(&self, partition: Partition, change: TileChanges);

    /// Announces that everything before a position was published, at this time in milliseconds
    /// since 1970.
    fn beat(&self, partition: Partition, position: Offset, at_ms: i64) {
        self.publish(partition, TileChanges::Heartbeat { partition, position, at_ms });
    }
}

//! Tiles as a store keeps them, and the stream of their changes: what a reader needs to hold tiles
//! in memory and to know that they are current.
//!
//! A writer publishes a tile *after* every read of the source finds it. So a reader that first
//! subscribes, then reads, and keeps the version of each tile that includes more of the log, misses
//! nothing.

mod feed;
mod hearing;
mod source;

pub use feed::TileFeed;
pub use hearing::Hearing;
pub use source::TileSource;

use crate::buckets::Generation;
use crate::log::{Offset, Partition};
use raingauge_core::tile::Tile;
use raingauge_core::tile::id::TileId;

/// The number under which a partition of the log stores the counts of a generation: the generation
/// and, in the low 16 bits, the partition. Counts written by another system have a negative one.
pub type WriterId = i64;

/// The writer of a partition for a generation.
pub const fn writer_of(generation: Generation, partition: Partition) -> WriterId {
    (generation as i64) << 16 | partition as i64
}

/// Whether a writer holds counts of this generation.
pub const fn is_of(writer: WriterId, generation: Generation) -> bool {
    writer >> 16 == generation as i64
}

/// One writer's part of a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub id: TileId,
    pub writer: WriterId,
    /// The offset of its partition up to which the part includes the log. Of two parts, the one
    /// that includes more is newer.
    pub included: Offset,
    pub tile: Tile,
}

/// One message of the stream. Messages of one partition arrive in the order in which they were
/// published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TileChanges {
    /// The current state of a tile.
    Tile { key: String, part: Part },
    /// Everything before `position` of the partition was published before this message.
    Heartbeat {
        partition: Partition,
        position: Offset,
        /// When it was published, in milliseconds since 1970, by the publisher's clock. For
        /// display, not for decisions.
        at_ms: i64,
    },
    /// A writer took over the partition and found it stored up to `position`. A reader that has
    /// heard of exactly this much has missed nothing; any other one may have.
    Resumed { partition: Partition, position: Offset },
    /// Some messages are missing.
    Gap,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets::generation_of;

    #[test]
    fn a_writer_tells_its_generation() {
        let (first, second) = (generation_of(999_999, 0), generation_of(999_999, 1));
        assert_eq!(writer_of(first, 5) % 65_536, 5);
        assert!(
            is_of(writer_of(first, 5), first)
                && !is_of(writer_of(first, 5), second)
                && !is_of(-1, first)
        );
    }
}

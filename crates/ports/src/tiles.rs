//! Tiles as a store keeps them, and the stream of their changes: what a reader needs to hold tiles
//! in memory and to know that they are current.
//!
//! Whoever writes a tile publishes it *after* every read of the source finds it. So a reader that
//! first listens, then reads, and keeps of each tile the one that includes more of the log, misses
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
/// and, in the low 16 bits, the partition. What another system has written has a negative one.
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
    /// The offset of its partition up to which it includes the log. Of two, the one that includes
    /// more is the newer one.
    pub included: Offset,
    pub tile: Tile,
}

/// One message of the stream. Those of one partition come in the order in which they were
/// published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TileChanges {
    /// A tile as it is by now.
    Tile { key: String, part: Part },
    /// Everything before `position` of the partition was published before this.
    Heartbeat {
        partition: Partition,
        position: Offset,
        /// When it was published, in milliseconds since 1970, by the publisher's clock: for people,
        /// not for decisions.
        at_ms: i64,
    },
    /// A writer took the partition over and found it stored up to `position`: a reader that has
    /// heard of exactly this much has missed nothing, any other one may have.
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

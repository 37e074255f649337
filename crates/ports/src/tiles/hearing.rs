//! Tiles in memory that follow the stream.

use crate::log::{Offset, Partition};
use std::time::Instant;

/// A holder of tiles in memory that follow the stream.
///
/// No contract suite: the reader implements it for the writer of the same process.
pub trait Hearing: Send + Sync {
    /// Whether every answer from memory includes everything before this position.
    fn has_heard(&self, partition: Partition, position: Offset) -> bool;

    /// Notes that the store included a partition up to `position` at the time of the query.
    fn note_stored(&self, partition: Partition, position: Offset, asked: Instant);
}

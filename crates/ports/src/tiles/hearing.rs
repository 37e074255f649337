//! Tiles in memory, which follow the stream.

use crate::log::{Offset, Partition};
use std::time::Instant;

/// Whoever keeps tiles in memory by the stream.
///
/// No contract suite: the reader implements it for the writer of the same process.
pub trait Hearing: Send + Sync {
    /// Whether nothing is answered from memory that lacks what is before this position.
    fn has_heard(&self, partition: Partition, position: Offset) -> bool;

    /// Notes that the store included a partition up to `position` when it was asked.
    fn note_stored(&self, partition: Partition, position: Offset, asked: Instant);
}

//! The dedupe window of a partition, and how it outlives the process that holds it.
//!
//! What a window holds is a function of the messages before a place. It is kept outside of the
//! process in *chunks*: one has the identities of the messages at [`CHUNK_OFFSETS`] offsets in a
//! row, in their order, with their append times.
//!
//! ```text
//!   offsets    ├─ chunk 7 ──┤─ chunk 8 ──┤─ chunk 9 ──┤─ … ┄┄┄┄┄┄┄▶
//!                stored       stored       stored      ▲ read from the log
//! ```
//!
//! A chunk follows from its number and the log, whoever writes it, and is written when every
//! message of it has been read and never before. So a zombie, a second writer and a repeated write
//! store the same bytes; a chunk is there as a whole or not at all; and it needs no order with the
//! checkpoint, because a reader uses chunks only as far as they lie before its place. Messages of a
//! chunk that is missing are read from the log.

mod chunk;
mod recorder;
mod window;

pub use chunk::{Chunk, Content};
pub use recorder::{Recorder, Restored};
pub use window::{Fingerprint, SLICES, Verdict, Window, begin_ms};

use crate::cluster::Error;
use crate::log::{Offset, Partition};
use std::ops::Range;

/// Offsets of a chunk. With 12 bytes for each identity it takes 400 KB, and 800 KB where each
/// message has a time of its own.
pub const CHUNK_OFFSETS: u64 = 32_768;

/// The number of the chunk of an offset.
pub const fn chunk_of(offset: Offset) -> u64 {
    offset / CHUNK_OFFSETS
}

/// Where the chunks of all partitions of a log are kept, for as long as a window can reach back to
/// them.
pub trait ChunkStore: Send + Sync {
    /// Stores a chunk durably, in place of an equal one. Blocks the thread.
    fn put(&self, partition: Partition, chunk: &Chunk) -> Result<(), Error>;

    /// The bytes of the chunks with these numbers that were made by these rules, in their order;
    /// `None` for one that is not there. Blocks the thread.
    fn get(
        &self,
        partition: Partition,
        rules: u64,
        numbers: Range<u64>,
    ) -> Result<Vec<Option<Vec<u8>>>, Error>;
}

#[cfg(test)]
mod tests;

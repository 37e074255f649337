//! The dedupe window of a partition, and how it outlives the process that holds it.
//!
//! What a window holds is a function of the messages before an offset. It is kept outside the
//! process in *chunks*. A chunk has the identities of the messages at [`CHUNK_OFFSETS`] consecutive
//! offsets, in their order, with their append times.
//!
//! ```text
//!   offsets    ├─ chunk 7 ──┤─ chunk 8 ──┤─ chunk 9 ──┤─ … ┄┄┄┄┄┄┄▶
//!                stored       stored       stored      ▲ read from the log
//! ```
//!
//! A chunk follows from its number and the log, whichever process writes it, and is written only
//! once every message of it has been read. So a zombie, a second writer and a repeated write store
//! the same bytes, and a chunk exists as a whole or not at all. It needs no order relative to the
//! checkpoint, because a reader uses chunks only as far as they lie before its offset. Messages of
//! a missing chunk are read from the log.

mod chunk;
mod recorder;
mod window;

pub use chunk::{Chunk, Content};
pub use recorder::{Recorder, RestoredChunk};
pub use window::{Fingerprint, SLICES, Verdict, Window, begin_ms};

use crate::cluster::Error;
use crate::log::{Offset, Partition};
use std::ops::Range;

/// Offsets of a chunk. At 12 bytes an identity it takes 400 KB, and 800 KB when each message has a
/// time of its own.
pub const CHUNK_OFFSETS: u64 = 32_768;

/// The number of the chunk of an offset.
pub const fn chunk_of(offset: Offset) -> u64 {
    offset / CHUNK_OFFSETS
}

/// Keeps the chunks of all partitions of a log for as long as a window can reach back to them.
pub trait ChunkStore: Send + Sync {
    /// Stores a chunk durably and replaces an equal one. Blocks the thread.
    fn put(&self, partition: Partition, chunk: &Chunk) -> Result<(), Error>;

    /// Returns the bytes of the chunks with these numbers, made by these rules, in their order;
    /// `None` for a missing one. Blocks the thread.
    fn get(
        &self,
        partition: Partition,
        rules: u64,
        numbers: Range<u64>,
    ) -> Result<Vec<Option<Vec<u8>>>, Error>;
}

#[cfg(test)]
mod tests;

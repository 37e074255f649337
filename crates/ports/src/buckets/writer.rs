//! Counts, as the writer of a partition changes them.

use super::{Added, BucketRetention, Cell, Checkpoint, Error, Generation};
use crate::log::Offset;
use raingauge_core::retention::Horizons;

/// Called by one thread, which it may block.
pub trait BucketWriter: BucketRetention {
    /// What the last checkpoint said.
    fn checkpoint(&self) -> Result<Checkpoint, Error>;

    /// Entries that follow have the stamps `base_us` + offset: microseconds since 1970 that grow
    /// with the offset and that every reader of the log computes alike. A store whose writes are
    /// ordered by timestamps uses them.
    fn stamp_from(&self, _base_us: i64) {}

    /// Adds what the entry at `offset` says to the buckets of its time, of the granularities that
    /// `horizons` keep. Entries of a generation come in the order of their offsets.
    fn add(
        &self,
        generation: Generation,
        key: &str,
        added: Added,
        horizons: &Horizons,
    ) -> Result<(), Error>;

    /// Sets one bucket, as the entry at `offset` says.
    fn set(
        &self,
        generation: Generation,
        key: &str,
        offset: Offset,
        cell: Cell,
    ) -> Result<(), Error>;

    /// Removes every bucket of a key, as the entry at `offset` says: what was added before is gone,
    /// and what follows is counted from nothing.
    fn erase(&self, generation: Generation, key: &str, offset: Offset) -> Result<(), Error>;

    /// Makes all changes since the last checkpoint durable, together with the position, the state
    /// and the progress of a backfill. The state is a function of the log up to the position: a
    /// store whose writes are ordered by timestamps writes both under the stamp, so that an older
    /// one never replaces a newer one.
    fn commit(&self, checkpoint: &Checkpoint) -> Result<(), Error>;

    /// Whether so much has changed since the last checkpoint that the next one is due.
    fn wants_commit(&self) -> bool;

    /// The partition is somebody else's by now: whoever waits for a server gives up with an error,
    /// and what is not written is written by the other.
    fn give_up(&self) {}
}

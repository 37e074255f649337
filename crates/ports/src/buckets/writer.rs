//! The bucket store as the writer of a partition changes it.

use super::{Addition, BucketRetention, Cell, Checkpoint, Error, Generation};
use crate::log::Offset;
use raingauge_core::retention::Horizons;

/// Called by one thread, which it may block.
pub trait BucketWriter: BucketRetention {
    /// Returns the last checkpoint.
    fn checkpoint(&self) -> Result<Checkpoint, Error>;

    /// The entries that follow have the stamps `base_us` + offset: microseconds since 1970 that
    /// grow with the offset and that every reader of the log computes alike. A store that orders
    /// its writes by timestamps uses them.
    fn stamp_from(&self, _base_us: i64) {}

    /// Applies the entry at `offset` to the buckets of its time, in the granularities that
    /// `horizons` keep. Entries of a generation arrive in the order of their offsets.
    fn add(
        &self,
        generation: Generation,
        key: &str,
        added: Addition,
        horizons: &Horizons,
    ) -> Result<(), Error>;

    /// Sets one bucket as the entry at `offset` demands.
    fn set(
        &self,
        generation: Generation,
        key: &str,
        offset: Offset,
        cell: Cell,
    ) -> Result<(), Error>;

    /// Removes every bucket of a key as the entry at `offset` demands: everything added before is
    /// gone, and later entries count from zero.
    fn erase(&self, generation: Generation, key: &str, offset: Offset) -> Result<(), Error>;

    /// Makes all changes since the last checkpoint durable, together with the position, the state
    /// and the progress of a backfill. The state is a function of the log up to the position. A
    /// store that orders its writes by timestamps writes both under the stamp, so that an older one
    /// never replaces a newer one.
    fn commit(&self, checkpoint: &Checkpoint) -> Result<(), Error>;

    /// Whether enough has changed since the last checkpoint for the next one to be due.
    fn wants_commit(&self) -> bool;

    /// Called when another process has taken over the partition. A call that waits for a server
    /// gives up with an error; the new owner writes what is not written yet.
    fn give_up(&self) {}
}

//! The log as consumers read it.

use super::{Block, Error, LogTimes, Offset, Partition};
use std::time::Duration;

/// One partition of the log, for reading. The answer for an offset never changes: a duplicate, or a
/// message that cannot be counted, is always read as [`Entry::Void`](crate::record::Entry::Void),
/// by every reader.
pub trait EventLog: LogTimes {
    fn partition(&self) -> Partition;

    /// Reads durable blocks, beginning with the one that holds `from`: at least one block and about
    /// `bytes_max` bytes. Returns none when the log ends at `from` or is unreachable for now; only
    /// [`EventLog::end`] tells the end. The first block lies behind `from` when the log was
    /// recreated with higher offsets. Blocks the thread.
    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error>;

    /// Reads for a backfill, behind the consumer that counts from the same log. Does not wait for
    /// entries that are not at hand, and returns nothing then. Costs no other reader its position.
    /// Only one sequence of such reads runs at a time.
    fn read_behind(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        self.read(from, bytes_max)
    }

    /// No reader continues at this offset. State kept for it may be dropped, such as the dedupe
    /// window of a walk.
    fn leave(&self, _offset: Offset) {}

    /// The offset of the first entry that is still in the log.
    fn start(&self) -> Offset;

    /// The offset behind the last durable entry; may be slightly out of date.
    fn end(&self) -> Offset;

    /// Waits, at most `timeout`, until the log ends beyond `offset`. Blocks the thread. Returns the
    /// end.
    fn wait_beyond(&self, offset: Offset, timeout: Duration) -> Offset;

    /// Cuts short whatever a read waits for besides the log itself, now and from now on, because
    /// its reader is to stop. The next reader does what such a read leaves undone.
    fn stop_waiting(&self) {}
}

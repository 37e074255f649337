//! The log, as it is read.

use super::{Block, Error, LogTimes, Offset, Partition};
use std::time::Duration;

/// One partition of the log, as it is read. What it answers for an offset never changes: a
/// duplicate, or a message that cannot be counted, is read as
/// [`Entry::Void`](crate::record::Entry::Void) by everybody and at any time.
pub trait EventLog: LogTimes {
    fn partition(&self) -> Partition;

    /// Reads durable blocks from the one that holds `from` on, at least one block and about
    /// `bytes_max` bytes; none when the log ends at `from`, or cannot be reached for now: only
    /// [`EventLog::end`] tells the end. The first block lies behind `from` where the log was begun
    /// anew with higher offsets. Blocks the thread.
    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error>;

    /// Reads for a backfill, behind whoever counts with the same log: waits for nothing that is not
    /// at hand, and answers nothing then. Costs no other reader its place. One place is read on at
    /// a time.
    fn read_behind(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        self.read(from, bytes_max)
    }

    /// Nobody reads on at this offset: what was kept for that may go, such as the dedupe window of
    /// a walk.
    fn leave(&self, _offset: Offset) {}

    /// The offset of the first entry that is kept.
    fn start(&self) -> Offset;

    /// The offset behind the last durable entry, as it was known a moment ago.
    fn end(&self) -> Offset;

    /// Waits until the log ends beyond `offset`, at most `timeout`. Blocks the thread. Answers the
    /// end.
    fn wait_beyond(&self, offset: Offset, timeout: Duration) -> Offset;

    /// Cuts short what a read waits for besides the log itself, now and from now on: its reader is
    /// to stop. What such a read leaves undone is done by the next reader.
    fn stop_waiting(&self) {}
}

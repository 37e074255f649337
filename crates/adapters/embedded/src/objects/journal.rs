//! The log of the object store: groups in segment files, in blocks that are written together.
//!
//! ```text
//! file    "RAINOBJS", then as a segment of the event log
//! block   "ROB1", then as a block of the event log: base is the stamp before its first group
//! payload synced u64 │ groups, see `groups`
//! ```
//!
//! Blocks are written before those in front of them are synced, and a power cut may take any of
//! them that were not. Each one tells up to which stamp the log was synced when it was written: a
//! gap behind that is a tail, which is cut off, and a gap before it is damage. The mark of what was
//! acknowledged follows the syncs as well.

use super::groups;
use crate::files::Folder;
use crate::log::acknowledged::Acknowledged;
use crate::log::inspect::{self, Mending};
use crate::log::segment::{BLOCK_HEADER_LEN, Form};
use crate::log::segments::{Failure, Segments};
use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use raingauge_ports::log;
use raingauge_ports::objects::{Error, Group};
use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The segments of a log of objects.
pub const OBJECTS: Form = Form {
    suffix: ".objects",
    file_magic: [None, Some(b"RAINOBJS")],
    block_magic: b"ROB1",
    is_written_ahead: true,
};
/// Bytes at the beginning of a payload.
pub const PAYLOAD_HEAD_LEN: usize = 8;
/// What an operator does about damage.
pub const ADVICE: &str = "restore the whole data folder from a backup";

/// A log that was read, and of which nothing on disk has changed yet.
pub struct Inspection {
    segments: Segments,
    mending: Mending,
    acknowledged: Acknowledged,
}

/// The log as it is written.
pub struct Journal {
    segments: Segments,
    acknowledged: Mutex<Acknowledged>,
}

impl Inspection {
    /// Reads the log in a folder. A tail that was never acknowledged will be cut off; damage to
    /// anything acknowledged is an error.
    pub fn of(folder: Arc<dyn Folder>, segment_bytes: u64) -> Result<Self, Error> {
        let acknowledged = Acknowledged::read(Arc::clone(&folder)).map_err(failed)?;
        let (segments, mending) =
            inspect::inspect(&OBJECTS, folder, segment_bytes).map_err(failed)?;
        acknowledged.check(segments.end()).map_err(failed)?;
        Ok(Self { segments, mending, acknowledged })
    }

    /// The stamps before the first group and of the last one.
    pub fn stamps(&self) -> (u64, u64) {
        (self.segments.start(), self.segments.end())
    }

    /// Mends the log and opens it. From here on only the disk can refuse.
    pub fn open(self) -> Result<Journal, Error> {
        let Self { segments, mending, mut acknowledged } = self;
        segments.mend(&mending).map_err(failed)?;
        acknowledged.note(segments.end());
        Ok(Journal { segments, acknowledged: Mutex::new(acknowledged) })
    }
}

impl Journal {
    /// The stamp of the last group.
    pub fn end(&self) -> u64 {
        self.segments.end()
    }

    pub fn bytes(&self) -> u64 {
        self.segments.bytes()
    }

    /// Calls `visit` with the groups behind a stamp, up to another one, in order, each with its own
    /// stamp.
    pub fn replay(
        &self,
        after: u64,
        until: u64,
        visit: &mut dyn FnMut(u64, Group) -> Result<(), Error>,
    ) -> Result<(), Error> {
        const PART_BYTES: usize = 8 << 20;
        let mut at = after;
        while at < until {
            let blocks = self.segments.read(at, PART_BYTES).map_err(failed)?;
            if blocks.is_empty() {
                return Err(damaged(at, "is missing"));
            }

            for block in blocks {
                let base = block.base;
                let end = block.end();
                let mut payload = Bytes::from(block.bytes);
                if payload.len() < PAYLOAD_HEAD_LEN {
                    return Err(damaged(end, "has a block that is too short"));
                }
                payload.advance(PAYLOAD_HEAD_LEN);
                for stamp in base + 1..=end {
                    let group = groups::split(&mut payload);
                    let group = group.ok_or_else(|| damaged(stamp, "is malformed"))?;
                    if stamp > at && stamp <= until {
                        visit(stamp, group)?;
                    }
                }
                if !payload.is_empty() {
                    return Err(damaged(end, "is followed by more than its block has"));
                }
                at = end;
            }
        }
        Ok(())
    }

    /// Writes a block of groups without waiting for the disk, and returns the stamp of its last
    /// group. The log is synced up to `synced`. One thread writes at a time.
    pub fn write(&self, block: &mut [u8], count: u32, synced: u64) -> Result<u64, Failure> {
        let place = BLOCK_HEADER_LEN..BLOCK_HEADER_LEN + PAYLOAD_HEAD_LEN;
        block[place].copy_from_slice(&synced.to_le_bytes());
        let now_ms = now_ms().max(self.segments.appended_ms());
        Ok(self.segments.write_ahead(block, count, now_ms)?.end)
    }

    /// Waits until all groups up to `stamp`, which were written, are durable.
    pub fn sync(&self, stamp: u64) -> io::Result<()> {
        let mut acknowledged = self.acknowledged.lock();
        if acknowledged.offset() < stamp {
            self.segments.sync()?;
            acknowledged.note(stamp);
        }
        Ok(())
    }

    /// Removes segments all of whose groups a checkpoint includes.
    pub fn trim(&self, stamp: u64) -> Result<(), Error> {
        self.segments.trim(stamp, i64::MAX, 0).map_err(failed)
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

fn damaged(stamp: u64, what: &str) -> Error {
    Error::Corrupt(format!("group {stamp} of its log {what}: {ADVICE}"))
}

/// The error of the store for one of its log.
pub fn failed(error: log::Error) -> Error {
    match error {
        log::Error::Corrupt(why) => Error::Corrupt(format!("{why}: {ADVICE}")),
        log::Error::Full { free_bytes, reserve_bytes } => Error::Full { free_bytes, reserve_bytes },
        log::Error::Io(why) => Error::Io(why.to_string()),
        other => Error::Corrupt(format!("its log is incomplete: {other}: {ADVICE}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::simulated::{Disk, Fault};

    /// A block of one group.
    fn block() -> Vec<u8> {
        let mut block = vec![0; BLOCK_HEADER_LEN + PAYLOAD_HEAD_LEN];
        groups::push(&Group::default(), &mut block);
        block
    }

    /// Segments of one block each.
    fn journal(disk: &Disk) -> Journal {
        let inspection = Inspection::of(Arc::new(disk.clone()), 1).expect("a log");
        inspection.open().expect("a journal")
    }

    #[test]
    fn a_failed_sync_before_a_new_segment_is_the_last() {
        let disk = Disk::new(1);
        let written = journal(&disk);
        assert_eq!(written.write(&mut block(), 1, 0).expect("it is written"), 1);

        // The writer meets the error, and the sync of another thread finds nothing left to write.
        disk.fail_after(0, Fault::SyncFails);
        assert!(written.write(&mut block(), 1, 0).is_err());
        assert!(!disk.is_troubled());
        written.sync(1).expect_err("the first group was never synced");
        drop(written);
        assert_eq!(Acknowledged::read(Arc::new(disk)).expect("a mark").offset(), 0);
    }

    #[test]
    fn nothing_is_synced_after_a_failed_write() {
        let disk = Disk::new(1);
        let written = journal(&disk);
        disk.fail_after(0, Fault::CallFails);
        assert!(written.write(&mut block(), 1, 0).is_err());
        written.sync(1).expect_err("a write failed");
    }
}

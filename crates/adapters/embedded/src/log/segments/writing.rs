//! Writing at the end of a log: blocks, room for them, and the next segment.

use super::{Segment, Segments};
use crate::files::{File, Folder};
use crate::log::inspect::name_of;
use crate::log::segment::{Form, Head, seal_block};
use raingauge_ports::log::Offset;
use std::io;
use std::sync::Arc;

/// Zeros that are written ahead of small blocks at once, and the longest of these.
const ROOM: &[u8] = &[0; 256 * 1_024];
const ROOMY_BLOCK_MAX: usize = ROOM.len() / 8;

/// Where a block was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The offset behind its last entry.
    pub end: Offset,
    /// Its position in its segment.
    pub at: u64,
}

/// The result of a block that could not be written.
#[derive(Debug)]
pub enum Failure {
    /// Nothing of it is in the log, which continues.
    NotTaken(io::Error),
    /// What the disk holds is unknown until the log is opened again.
    Broken(io::Error),
}

impl Segments {
    /// Completes a block of `count` entries, writes it behind the last one and waits until it is
    /// durable. One thread writes at a time.
    pub fn write(
        &self,
        block: &mut [u8],
        count: u32,
        appended_ms: i64,
    ) -> Result<Written, Failure> {
        self.write_with(block, count, appended_ms, write_durably)
    }

    /// The same without waiting for the disk: [`Self::sync`] makes it durable. Whatever fails here
    /// leaves unknown what the disk holds.
    pub fn write_ahead(
        &self,
        block: &mut [u8],
        count: u32,
        appended_ms: i64,
    ) -> Result<Written, Failure> {
        let write =
            |file: &dyn File, block: &[u8], at| file.write_at(block, at).map_err(Failure::Broken);
        let written = self.write_with(block, count, appended_ms, write);
        if written.is_err() {
            *self.is_sound.lock() = false;
        }
        written
    }

    /// Waits until the blocks that were written before are durable. Another thread may write. After
    /// a sync or a write ahead that failed, this fails until the log is opened again.
    pub fn sync(&self) -> io::Result<()> {
        let mut is_sound = self.is_sound.lock();
        if !*is_sound {
            return Err(io::Error::other("an earlier write or sync of its log failed"));
        }

        // Until the sync has succeeded, so that a panic counts as a failure.
        *is_sound = false;
        // A segment that is followed by another one was synced when that began.
        let last = self.inner.lock().segments.back().map(|last| Arc::clone(&last.file));
        last.map_or(Ok(()), |file| file.sync())?;
        *is_sound = true;
        Ok(())
    }

    fn write_with(
        &self,
        block: &mut [u8],
        count: u32,
        appended_ms: i64,
        write: impl FnOnce(&dyn File, &[u8], u64) -> Result<(), Failure>,
    ) -> Result<Written, Failure> {
        let (file, head, at, base) = self.place_for_block().map_err(Failure::NotTaken)?;
        seal_block(&head, block, count, base, appended_ms);
        self.make_room(&*file, at, block.len());
        write(&*file, block, at)?;

        let mut inner = self.inner.lock();
        inner.end += Offset::from(count);
        inner.appended_ms = appended_ms;

        let end = inner.end;
        if let Some(last) = inner.segments.back_mut() {
            last.len = at + block.len() as u64;
            if last.first_ms == 0 {
                last.first_ms = appended_ms;
            }
        }

        drop(inner);

        self.grown.notify_all();
        Ok(Written { end, at })
    }

    /// Writes zeros ahead of a small block, unless there are some. A sync of a file that has not
    /// grown writes its bytes alone; otherwise also where they are and how many, which takes about
    /// as long again. Whatever fails here, the block reports. A full segment has no zeros left.
    fn make_room(&self, file: &dyn File, at: u64, block_len: usize) {
        let to = (at + ROOM.len() as u64).min(self.segment_bytes);
        let end = at + block_len as u64;
        if block_len > ROOMY_BLOCK_MAX || to <= end {
            return;
        }
        let mut inner = self.inner.lock();
        let last = inner.segments.back_mut().filter(|last| last.filled_to < end);
        let Some(last) = last else { return };
        last.filled_to = to;
        drop(inner);
        let _ = file.write_at(&ROOM[..(to - at) as usize], at);
    }

    /// Returns the file and the position of the next block; a full segment is followed by a new
    /// one.
    fn place_for_block(&self) -> io::Result<(Arc<dyn File>, Head, u64, Offset)> {
        let (end, is_full) = {
            let inner = self.inner.lock();

            // Blocks of an old version lack a salt: they are read, but no more of them are written.
            let is_full = |last: &Segment| {
                !last.head.is_newest() || last.len >= self.segment_bytes.max(last.head.len() + 1)
            };
            (inner.end, inner.segments.back().is_none_or(is_full))
        };

        if is_full {
            // Blocks may have been written ahead, and no sync reaches this segment again.
            if self.form.is_written_ahead {
                self.sync()?;
            }

            // Done outside the lock, so that readers need not wait for the disk.
            let created = create(self.form, &*self.folder, end, end)?;
            self.inner.lock().segments.push_back(created);
        }

        let inner = self.inner.lock();
        let last = &inner.segments[inner.segments.len() - 1];
        Ok((Arc::clone(&last.file), last.head, last.len, end))
    }
}

impl Drop for Segments {
    /// Leaves no zeros behind the last block. A start removes those that stay.
    fn drop(&mut self) {
        let last = self.inner.get_mut().segments.back();
        if let Some(last) = last.filter(|last| last.filled_to > last.len) {
            let _ = last.file.truncate(last.len);
        }
    }
}

/// Writes a block and waits until it is durable. If that fails, the file is cut back to its
/// previous end.
fn write_durably(file: &dyn File, block: &[u8], at: u64) -> Result<(), Failure> {
    let written = file.write_at(block, at);
    let is_synced = written.is_ok();
    let failed = match written.and_then(|()| file.sync()) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };

    // A failed sync may have dropped unwritten pages. Only for a full disk is it known which.
    if is_synced
        && !matches!(failed.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    {
        return Err(Failure::Broken(failed));
    }

    match file.truncate(at).and_then(|()| file.sync()) {
        Ok(()) => Err(Failure::NotTaken(failed)),
        Err(error) => Err(Failure::Broken(error)),
    }
}

/// Creates the segment that begins with `base`. If that fails, no segment is left behind.
pub fn create(
    form: &'static Form,
    folder: &dyn Folder,
    base: Offset,
    after: Offset,
) -> io::Result<Segment> {
    let name = name_of(form, base);
    let head = Head::new(form, base, after);
    let fill = || {
        let file = folder.create(&name)?;
        file.write_at(&head.bytes(), 0)?;
        file.sync()?;
        folder.sync()?;

        Ok(file)
    };

    match fill() {
        Ok(file) => Ok(Segment {
            head,
            name: name.clone(),
            file,
            len: head.len(),
            filled_to: 0,
            first_ms: 0,
        }),
        Err(error) => {
            // It holds no entries; a start skips it if it cannot be removed either.
            let _ = folder.remove(&name);
            Err(error)
        }
    }
}

//! Inspection of a folder, before anything in it is changed.
//!
//! Opening a log has two halves. The inspection reads, and refuses what it must; nothing on disk
//! changes. Only then does the mending change anything: it cuts off a torn tail, and makes durable
//! whatever was read. A block that a process wrote but could not sync is read back from the page
//! cache after a crash, and would be gone after a power cut: it must not be applied, or
//! acknowledged as a duplicate, before it is written again and synced. A sync alone is not enough,
//! since one that failed before may have marked the pages clean without writing them.

use super::segment::{BlockHeader, Form, Head, Tail};
use super::segments::{Segment, Segments, check_follows};
use crate::files::{File, Folder, read_all};
use raingauge_ports::log::{Error, Offset};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// What has to be done before the log can be relied on.
#[derive(Default)]
pub struct Mending {
    /// A file to be shortened.
    cut: Option<(Arc<dyn File>, u64)>,
    /// Bytes that were read and have to be written again, with their position.
    again: Vec<(Arc<dyn File>, u64, Vec<u8>)>,
    /// Files to sync.
    sync: Vec<Arc<dyn File>>,
    /// Whether the log has no intact last segment.
    pub begins_segment: bool,
}

impl Mending {
    pub fn apply(&self) -> io::Result<()> {
        if let Some((file, len)) = &self.cut {
            file.truncate(*len)?;
        }
        for (file, at, bytes) in &self.again {
            file.write_at(bytes, *at)?;
        }
        self.sync.iter().try_for_each(|file| file.sync())
    }

    /// Writes the header and the last block of a segment again, or all that may not be durable, and
    /// syncs it.
    fn write_again(&mut self, segment: &Segment, tail: &Tail) -> io::Result<()> {
        self.again.push((Arc::clone(&segment.file), 0, segment.head.bytes()));
        if let Some(at) = tail.last_at {
            let mut block = vec![0; (tail.len - at) as usize];
            segment.file.read_at(&mut block, at)?;
            self.again.push((Arc::clone(&segment.file), at, block));
        }
        self.sync.push(Arc::clone(&segment.file));
        Ok(())
    }
}

/// Reads the segments of a folder, each ending where the next begins, without changing anything.
pub fn inspect(
    form: &'static Form,
    folder: Arc<dyn Folder>,
    segment_bytes: u64,
) -> Result<(Segments, Mending), Error> {
    let Found { mut segments, torn, unknown } = find_segments(form, &*folder)?;
    if let Some(name) = unknown.first() {
        let path = folder.path().join(name);
        return Err(Error::Corrupt(format!(
            "{} does not begin as a segment that this program knows",
            path.display()
        )));
    }

    let mut mending =
        Mending { begins_segment: torn.is_some() || segments.is_empty(), ..Mending::default() };
    let mut end = torn.unwrap_or(0);
    let mut appended_ms = 0;

    if let Some(last) = segments.back_mut() {
        let tail = last.tail()?;
        if let Some(base) = torn.filter(|base| *base != tail.end) {
            return Err(Error::Corrupt(format!("offsets {} to {base} are missing", tail.end)));
        }

        let file_len = last.file.size()?;
        if tail.len < file_len {
            let mut rest = vec![0; (file_len - tail.len) as usize];
            last.file.read_at(&mut rest, tail.len)?;
            // Zeros are room for blocks that did not come.
            if rest.iter().any(|byte| *byte != 0) {
                tracing::warn!(segment = %last.name, len = tail.len, "cutting off a block that was never acknowledged");
            }
            mending.cut = Some((Arc::clone(&last.file), tail.len));
        }

        mending.write_again(last, &tail)?;
        last.len = tail.len;
        (end, appended_ms) = (tail.end, tail.appended_ms);
    }

    // If the last segment has no block, the previous one has the time of the last block.
    if appended_ms == 0 && segments.len() > 1 {
        let before = &segments[segments.len() - 2];
        let tail = before.tail()?;
        check_follows(tail.end, &segments[segments.len() - 1].head)?;
        mending.write_again(before, &tail)?;
        appended_ms = tail.appended_ms;
    }

    Ok((Segments::new(form, folder, segment_bytes, segments, (end, appended_ms)), mending))
}

pub struct Found {
    pub segments: VecDeque<Segment>,
    /// The base of a last segment that a crash left without a whole header.
    pub torn: Option<Offset>,
    /// Files that do not begin like segments.
    pub unknown: Vec<String>,
}

/// Segment files of a folder in order.
pub fn find_segments(form: &'static Form, folder: &dyn Folder) -> Result<Found, Error> {
    let bases = folder.list()?.into_iter().filter_map(|name| base_of(form, &name));
    let mut bases: Vec<Offset> = bases.collect();
    bases.sort_unstable();

    let mut found = Found { segments: VecDeque::new(), torn: None, unknown: Vec::new() };
    for base in &bases {
        let name = name_of(form, *base);
        let file = folder.open(&name)?;
        let len = file.size()?;
        let Some(head) = Head::read(form, &*file, *base)? else {
            if Some(base) == bases.last() && Head::is_all_of(len) {
                found.torn = Some(*base)
            } else {
                found.unknown.push(name)
            }
            continue;
        };

        let first_ms =
            BlockHeader::read(form, &*file, head.len())?.map_or(0, |header| header.appended_ms);
        found.segments.push_back(Segment { head, name, file, len, filled_to: 0, first_ms });
    }

    Ok(found)
}

pub fn name_of(form: &Form, base: Offset) -> String {
    format!("{base:020}{}", form.suffix)
}

fn base_of(form: &Form, name: &str) -> Option<Offset> {
    let base: Offset = name.strip_suffix(form.suffix)?.parse().ok()?;
    (name_of(form, base) == name).then_some(base)
}

/// Reads the file with this name; `None` if there is none.
pub fn read_if_there(folder: &dyn Folder, name: &str) -> io::Result<Option<Vec<u8>>> {
    match folder.open(name) {
        Ok(file) => Ok(Some(read_all(&*file)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

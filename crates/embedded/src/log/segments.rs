//! The segments of a log, in order: writing at the end, reading anywhere, trimming at the start.

use super::segment::{
    BLOCK_HEADER_LEN, BlockHeader, FILE_HEADER_LEN, file_header, find_tail, has_file_header, read_block,
};
use parking_lot::{Condvar, Mutex};
use raingauge_ports::log::{Block, Error, Offset};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Ends of recent reads that are remembered, so that whoever reads on finds the place at once.
const PLACES_MAX: usize = 16;

pub struct Segments {
    folder: PathBuf,
    segment_bytes: u64,
    inner: Mutex<Inner>,
    grown: Condvar,
}

struct Inner {
    /// Never empty; the last one is written to.
    segments: VecDeque<Segment>,
    end: Offset,
    /// When the last block was appended.
    appended_ms: i64,
    /// Where blocks begin, as far as readers have come.
    places: VecDeque<(Offset, Place)>,
}

#[derive(Clone)]
struct Segment {
    base: Offset,
    path: PathBuf,
    file: Arc<File>,
    /// Bytes that are durable.
    len: u64,
    /// When its first block was appended; 0 while it has none.
    first_ms: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    segment_base: Offset,
    at: u64,
}

impl Segments {
    pub fn open(folder: &Path, segment_bytes: u64) -> Result<Self, Error> {
        let mut segments = find_segments(folder)?;
        let mut end = 0;
        let mut appended_ms = 0;
        if let Some(last) = segments.back_mut() {
            let tail = find_tail(&last.file, last.base)?;
            (end, appended_ms) = (tail.end, tail.appended_ms);
            if tail.len < last.file.metadata()?.len() {
                tracing::warn!(path = %last.path.display(), len = tail.len, "cutting off a block that was never acknowledged");
                last.file.set_len(tail.len)?;
                last.file.sync_all()?;
            }
            last.len = tail.len;
        } else {
            segments.push_back(create(folder, 0)?);
        }
        let inner = Inner { segments, end, appended_ms, places: VecDeque::new() };
        Ok(Self { folder: folder.to_owned(), segment_bytes, inner: Mutex::new(inner), grown: Condvar::new() })
    }

    pub fn start(&self) -> Offset {
        self.inner.lock().segments[0].base
    }

    pub fn start_ms(&self) -> i64 {
        let inner = self.inner.lock();
        let first = &inner.segments[0];
        if first.base == 0 {
            0
        } else if first.first_ms == 0 {
            inner.appended_ms
        } else {
            first.first_ms
        }
    }

    pub fn end(&self) -> Offset {
        self.inner.lock().end
    }

    /// When the last block was appended, in milliseconds since 1970.
    pub fn appended_ms(&self) -> i64 {
        self.inner.lock().appended_ms
    }

    /// The base of the first segment that may hold what was appended at `time_ms` or later.
    pub fn base_since(&self, time_ms: i64) -> Offset {
        let inner = self.inner.lock();
        let later = inner.segments.iter().skip(1).take_while(|next| next.first_ms != 0 && next.first_ms < time_ms);
        later.last().unwrap_or(&inner.segments[0]).base
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.inner.lock().segments.iter().map(|segment| segment.len).sum()
    }

    /// Writes a sealed block of `count` entries behind the last one and waits until it is durable.
    /// One thread writes at a time.
    pub fn write(&self, block: &[u8], count: u64, appended_ms: i64) -> Result<Offset, Error> {
        let (file, at) = self.place_for_block()?;
        file.write_all_at(block, at)?;
        file.sync_data()?;
        let mut inner = self.inner.lock();
        inner.end += count;
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
        Ok(end)
    }

    /// The file and the byte where the next block goes; a full segment is followed by a new one.
    fn place_for_block(&self) -> Result<(Arc<File>, u64), Error> {
        let mut inner = self.inner.lock();
        let end = inner.end;
        let full_len = self.segment_bytes.max(FILE_HEADER_LEN + 1);
        if inner.segments.back().is_some_and(|last| last.len >= full_len) {
            inner.segments.push_back(create(&self.folder, end)?);
        }
        let last = &inner.segments[inner.segments.len() - 1];
        Ok((Arc::clone(&last.file), last.len))
    }

    pub fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        let Some((mut segments, mut at)) = self.find(from)? else { return Ok(Vec::new()) };
        let (mut blocks, mut bytes) = (Vec::<Block>::new(), 0);
        let mut next = None;
        while let Some(segment) = segments.front() {
            if at >= segment.len {
                let ended = next;
                segments.pop_front();
                at = FILE_HEADER_LEN;
                if let (Some(ended), Some(segment)) = (ended, segments.front())
                    && ended != segment.base
                {
                    return Err(Error::Corrupt(format!("offsets {ended} to {} are missing", segment.base)));
                }
                continue;
            }
            if !blocks.is_empty() && bytes >= bytes_max {
                break;
            }
            let base = match next {
                Some(next) => next,
                None => self.base_at(segment, at, from)?,
            };
            let block = read_block(&segment.file, at, base)?;
            at += (BLOCK_HEADER_LEN + block.bytes.len()) as u64;
            bytes += block.bytes.len();
            next = Some(block.end());
            blocks.push(block);
        }
        if let (Some(end), Some(segment)) = (next, segments.front()) {
            self.remember(end, Place { segment_base: segment.base, at });
        }
        Ok(blocks)
    }

    /// The segments from the one that holds `from` on, and the byte where its block begins.
    fn find(&self, from: Offset) -> Result<Option<(VecDeque<Segment>, u64)>, Error> {
        let inner = self.inner.lock();
        let start = inner.segments[0].base;
        if from < start {
            return Err(Error::Trimmed { asked: from, start });
        }
        if from >= inner.end {
            return Ok(None);
        }
        let place = inner.places.iter().find(|(offset, _)| *offset == from).map(|(_, place)| *place);
        let base = place.map_or(from, |place| place.segment_base);
        let index = inner.segments.partition_point(|segment| segment.base <= base) - 1;
        let segments: VecDeque<Segment> = inner.segments.iter().skip(index).cloned().collect();
        drop(inner);
        let at = match place {
            Some(place) => place.at,
            None => walk_to(&segments[0], from)?,
        };
        Ok(Some((segments, at)))
    }

    /// The offset of the first entry of the block at `at`, which holds `from`.
    fn base_at(&self, segment: &Segment, at: u64, from: Offset) -> Result<Offset, Error> {
        let header = BlockHeader::read(&segment.file, at);
        let holds = |header: &BlockHeader| (header.base..header.end()).contains(&from);
        header.filter(holds).map(|header| header.base).ok_or_else(|| damaged(segment, at, from))
    }

    fn remember(&self, offset: Offset, place: Place) {
        let mut inner = self.inner.lock();
        inner.places.retain(|(known, _)| *known != offset);
        inner.places.push_front((offset, place));
        inner.places.truncate(PLACES_MAX);
    }

    pub fn wait_beyond(&self, offset: Offset, timeout: Duration) -> Offset {
        let deadline = Instant::now() + timeout;
        let mut inner = self.inner.lock();
        while inner.end <= offset && !self.grown.wait_until(&mut inner, deadline).timed_out() {}
        inner.end
    }

    /// Removes segments that end at or before `keep_from` and are too old, or too many. The last one always stays.
    pub fn trim(&self, keep_from: Offset, oldest_ms: i64, bytes_max: u64) -> Result<(), Error> {
        loop {
            let mut inner = self.inner.lock();
            let bytes: u64 = inner.segments.iter().map(|segment| segment.len).sum();
            let Some(next) = inner.segments.get(1) else { return Ok(()) };
            // What came before the next segment's first block is older than it.
            let is_old = next.first_ms != 0 && next.first_ms < oldest_ms;
            if next.base > keep_from || !(is_old || bytes > bytes_max) {
                return Ok(());
            }
            let Some(first) = inner.segments.pop_front() else { return Ok(()) };
            inner.places.retain(|(_, place)| place.segment_base != first.base);
            drop(inner);
            tracing::info!(path = %first.path.display(), bytes = first.len, "trimmed a segment of the event log");
            std::fs::remove_file(&first.path)?;
        }
    }
}

/// Segment files of a folder in order, each ending where the next begins.
fn find_segments(folder: &Path) -> Result<VecDeque<Segment>, Error> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let base = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".log"));
        if let Some(base) = base.and_then(|base| base.parse::<Offset>().ok()) {
            found.push((base, path));
        }
    }
    found.sort_unstable();
    let last = found.len().saturating_sub(1);
    let mut segments = VecDeque::new();
    for (index, (base, path)) in found.into_iter().enumerate() {
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        if !has_file_header(&file, base) {
            // A crash between creating a segment and writing its header leaves an empty last file.
            if index == last && file.metadata()?.len() <= FILE_HEADER_LEN {
                segments.push_back(create(folder, base)?);
                continue;
            }
            return Err(Error::Corrupt(format!(
                "{} does not begin as a segment of version 1: restore it from a backup",
                path.display()
            )));
        }
        let len = file.metadata()?.len();
        let first_ms = BlockHeader::read(&file, FILE_HEADER_LEN).map_or(0, |header| header.appended_ms);
        segments.push_back(Segment { base, path, file: Arc::new(file), len, first_ms });
    }
    Ok(segments)
}

fn create(folder: &Path, base: Offset) -> Result<Segment, Error> {
    let path = folder.join(format!("{base:020}.log"));
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
    file.write_all_at(&file_header(base), 0)?;
    file.sync_all()?;
    File::open(folder)?.sync_all()?;
    Ok(Segment { base, path, file: Arc::new(file), len: FILE_HEADER_LEN, first_ms: 0 })
}

/// The byte of the block that holds `offset`, from header to header.
fn walk_to(segment: &Segment, offset: Offset) -> Result<u64, Error> {
    let mut at = FILE_HEADER_LEN;
    while at < segment.len {
        let header = BlockHeader::read(&segment.file, at).ok_or_else(|| damaged(segment, at, offset))?;
        if header.end() > offset {
            return Ok(at);
        }
        at += header.block_len();
    }
    Err(damaged(segment, at, offset))
}

fn damaged(segment: &Segment, at: u64, offset: Offset) -> Error {
    let path = segment.path.display();
    Error::Corrupt(format!(
        "{path} has no block at byte {at}, where offset {offset} was sought: restore it from a backup"
    ))
}

//! The segments of a log, in order: writing at the end, reading anywhere, trimming at the start.

mod writing;

use super::inspect::Mending;
use super::segment::{BLOCK_HEADER_LEN, BlockHeader, Form, Head, Tail, read_block};
use crate::files::{File, Folder};
use parking_lot::{Condvar, Mutex};
use raingauge_ports::log::{Block, Error, Offset};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use writing::{Failure, create};

/// Number of recent read ends that are cached, so that a reader that continues finds its position
/// at once.
const PLACES_MAX: usize = 16;
/// A walk to an offset remembers a block in about as many bytes, so that the next one begins near
/// its own.
const WAYPOINT_BYTES: u64 = 256 * 1_024;
/// Most blocks that are remembered so.
const WAYPOINTS_MAX: usize = 4_096;
pub struct Segments {
    form: &'static Form,
    folder: Arc<dyn Folder>,
    segment_bytes: u64,
    inner: Mutex<Inner>,
    grown: Condvar,
    /// Whether a segment was removed and the folder is not synced yet.
    is_trimming: AtomicBool,
    /// Whether every write ahead and every sync has succeeded. Held during a sync: the kernel
    /// reports lost pages to one of two threads, and calls the file clean from then on.
    is_sound: Mutex<bool>,
}

struct Inner {
    /// Empty only until a new log is mended. Blocks are appended to the last segment.
    segments: VecDeque<Segment>,
    end: Offset,
    /// When the last block was appended.
    appended_ms: i64,
    /// Positions of blocks that readers have reached.
    places: VecDeque<(Offset, Place)>,
    /// Blocks that walks have passed, by their first offset.
    waypoints: BTreeMap<Offset, Place>,
}

impl Inner {
    fn start(&self) -> Offset {
        self.segments.front().map_or(self.end, |first| first.head.base)
    }
}

#[derive(Clone)]
pub struct Segment {
    pub head: Head,
    pub name: String,
    pub file: Arc<dyn File>,
    /// Bytes that belong to the log.
    pub len: u64,
    /// Up to where zeros may have been written ahead of blocks.
    pub filled_to: u64,
    /// When its first block was appended; 0 if it has none.
    pub first_ms: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    segment_base: Offset,
    at: u64,
}

impl Segments {
    /// The segments that an inspection found, the last one up to `tail`.
    pub fn new(
        form: &'static Form,
        folder: Arc<dyn Folder>,
        segment_bytes: u64,
        segments: VecDeque<Segment>,
        (end, appended_ms): (Offset, i64),
    ) -> Self {
        let inner = Inner {
            segments,
            end,
            appended_ms,
            places: VecDeque::new(),
            waypoints: BTreeMap::new(),
        };
        let inner = Mutex::new(inner);
        let grown = Condvar::new();
        let is_trimming = AtomicBool::new(false);
        let is_sound = Mutex::new(true);
        Self { form, folder, segment_bytes, inner, grown, is_trimming, is_sound }
    }

    /// Makes durable what an inspection read, and removes what it left out: see [`Mending`].
    pub fn mend(&self, mending: &Mending) -> Result<(), Error> {
        mending.apply()?;
        let mut inner = self.inner.lock();
        if mending.begins_segment {
            let segment = create(self.form, &*self.folder, inner.end, inner.end)?;
            inner.segments.push_back(segment);
        } else {
            self.folder.sync()?;
        }
        Ok(())
    }

    pub fn start(&self) -> Offset {
        self.inner.lock().start()
    }

    pub fn start_ms(&self) -> i64 {
        let inner = self.inner.lock();
        match inner.segments.front() {
            None => 0,
            Some(first) if first.head.base == 0 => 0,
            Some(first) if first.first_ms == 0 => inner.appended_ms,
            Some(first) => first.first_ms,
        }
    }

    pub fn end(&self) -> Offset {
        self.inner.lock().end
    }

    /// When the last block was appended, in milliseconds since 1970.
    pub fn appended_ms(&self) -> i64 {
        self.inner.lock().appended_ms
    }

    /// The base of the first segment that may hold entries appended at `time_ms` or later.
    pub fn base_since(&self, time_ms: i64) -> Offset {
        let inner = self.inner.lock();
        let later = inner
            .segments
            .iter()
            .skip(1)
            .take_while(|next| next.first_ms != 0 && next.first_ms < time_ms);
        later.last().map_or(inner.start(), |segment| segment.head.base)
    }

    /// The base of the segment behind the one that holds `offset`; `None` if that is the last one.
    pub fn base_behind(&self, offset: Offset) -> Option<Offset> {
        let inner = self.inner.lock();
        inner.segments.iter().map(|segment| segment.head.base).find(|base| *base > offset)
    }

    /// The base of the first segment from which all segments to the end have at most `bytes_max`
    /// bytes. The last one always counts.
    pub fn base_within(&self, bytes_max: u64) -> Offset {
        let inner = self.inner.lock();
        let mut bytes = 0;
        let within = inner.segments.iter().rev().take_while(|segment| {
            let is_last = bytes == 0;
            bytes += segment.len;
            is_last || bytes <= bytes_max
        });
        within.last().map_or(inner.end, |segment| segment.head.base)
    }

    /// When the block that holds `offset` was appended; `None` at the end of the log.
    pub fn appended_at(&self, offset: Offset) -> Result<Option<i64>, Error> {
        let Some((segments, at)) = self.find(offset)? else {
            return Ok(None);
        };
        // A position behind the last block of a segment means the first block of the next.
        let (segment, at) = match segments.get(1) {
            Some(next) if at >= segments[0].len => (next, next.head.len()),
            _ => (&segments[0], at),
        };
        Ok(BlockHeader::read(self.form, &*segment.file, at)?.map(|header| header.appended_ms))
    }

    /// Size of all segments in bytes.
    pub fn bytes(&self) -> u64 {
        self.inner.lock().segments.iter().map(|segment| segment.len).sum()
    }

    pub fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        let blocks = self.read_placed(from, bytes_max)?;
        Ok(blocks.into_iter().map(|(_, block)| block).collect())
    }

    /// Reads blocks, each with its position in its segment.
    pub fn read_placed(&self, from: Offset, bytes_max: usize) -> Result<Vec<(u64, Block)>, Error> {
        let Some((mut segments, mut at)) = self.find(from)? else {
            return Ok(Vec::new());
        };
        let mut blocks = Vec::<(u64, Block)>::new();
        let mut bytes = 0;
        let mut next = None;

        while let Some(segment) = segments.front() {
            if at >= segment.len {
                let ended = next;
                segments.pop_front();

                let Some(segment) = segments.front() else {
                    break;
                };
                at = segment.head.len();

                if let Some(ended) = ended {
                    check_follows(ended, &segment.head)?;
                    next = Some(segment.head.base);
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
            let block = read_block(&*segment.file, &segment.head, at, base)?;
            let begins_at = at;
            at += (BLOCK_HEADER_LEN + block.bytes.len()) as u64;
            bytes += block.bytes.len();
            next = Some(block.end());
            blocks.push((begins_at, block));
        }

        if let (Some(end), Some(segment)) = (next, segments.front()) {
            self.remember(end, Place { segment_base: segment.head.base, at });
        }
        Ok(blocks)
    }

    /// Reads `len` bytes at a position of the segment that holds an offset. The caller checks them.
    pub fn read_bytes(&self, offset: Offset, at: u64, len: usize) -> Result<Vec<u8>, Error> {
        let segment = {
            let inner = self.inner.lock();
            let behind = inner.segments.partition_point(|segment| segment.head.base <= offset);
            behind.checked_sub(1).map(|index| inner.segments[index].clone())
        };
        let segment = segment.filter(|segment| at.saturating_add(len as u64) <= segment.len);
        let segment = segment.ok_or_else(|| {
            Error::Corrupt(format!("no segment has {len} bytes of offset {offset} at byte {at}"))
        })?;

        let mut bytes = vec![0; len];
        segment.file.read_at(&mut bytes, at)?;
        Ok(bytes)
    }

    /// Returns the segments from the one that holds `from`, and the position of its block.
    fn find(&self, from: Offset) -> Result<Option<(VecDeque<Segment>, u64)>, Error> {
        let inner = self.inner.lock();
        let start = inner.start();
        if from < start {
            return Err(Error::Trimmed { asked: from, start });
        }

        if from >= inner.end {
            return Ok(None);
        }
        let place =
            inner.places.iter().find(|(offset, _)| *offset == from).map(|(_, place)| *place);
        let base = place.map_or(from, |place| place.segment_base);

        // An offset whose loss was accepted is covered by the segment behind it.
        let behind = inner.segments.partition_point(|segment| segment.head.base <= base);
        let is_lost = place.is_none()
            && inner.segments.get(behind).is_some_and(|next| next.head.after <= from);
        let index = if is_lost { behind } else { behind - 1 };
        let segments: VecDeque<Segment> = inner.segments.iter().skip(index).cloned().collect();
        let head = &segments[0].head;
        let nearest = inner.waypoints.range(..=from).next_back().map(|(_, place)| place);
        let nearest = nearest.filter(|place| place.segment_base == head.base);
        let begins_at = nearest.map_or(head.len(), |place| place.at);

        drop(inner);
        let at = match place {
            Some(place) => place.at,
            None => self.walk_to(&segments[0], begins_at, from)?,
        };
        Ok(Some((segments, at)))
    }

    /// Returns the position of the block that holds `offset`, going from header to header from a
    /// block that does not lie behind it; of the first block if all lie behind it.
    fn walk_to(&self, segment: &Segment, begins_at: u64, offset: Offset) -> Result<u64, Error> {
        let mut passed = Vec::new();
        let mut noted_at = begins_at;
        let mut at = begins_at;
        while at < segment.len {
            let header = BlockHeader::read(segment.head.form, &*segment.file, at)?
                .ok_or_else(|| damaged(&segment.name, at, offset))?;
            if at - noted_at >= WAYPOINT_BYTES {
                noted_at = at;
                passed.push((header.base, Place { segment_base: segment.head.base, at }));
            }
            if header.end() > offset {
                self.remember_passed(passed);
                return Ok(at);
            }
            at += header.block_len();
        }
        Err(damaged(&segment.name, at, offset))
    }

    fn remember_passed(&self, passed: Vec<(Offset, Place)>) {
        if passed.is_empty() {
            return;
        }
        let mut inner = self.inner.lock();
        if inner.waypoints.len() + passed.len() > WAYPOINTS_MAX {
            inner.waypoints.clear();
        }
        // A walk over a long segment may pass more of them.
        inner.waypoints.extend(passed.into_iter().take(WAYPOINTS_MAX));
    }

    /// Returns the offset of the first entry of the block at `at`, which holds `from` or is the
    /// first one behind it.
    fn base_at(&self, segment: &Segment, at: u64, from: Offset) -> Result<Offset, Error> {
        let header = BlockHeader::read(self.form, &*segment.file, at)?;
        let holds = |header: &BlockHeader| {
            let is_first = at == segment.head.len() && header.base == segment.head.base;
            header.end() > from && (header.base <= from || is_first)
        };
        header
            .filter(holds)
            .map(|header| header.base)
            .ok_or_else(|| self.damaged(segment, at, from))
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

    /// Removes segments that end at or before `keep_from` and are too old or exceed `bytes_max`.
    /// The last one always stays.
    pub fn trim(&self, keep_from: Offset, oldest_ms: i64, bytes_max: u64) -> Result<(), Error> {
        self.sync_trimmed()?;

        while let Some(first) = self.to_trim(keep_from, oldest_ms, bytes_max) {
            match self.folder.remove(&first.name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                removed => removed.unwrap_or_else(|_| {
                    tracing::warn!(path = %self.path_of(&first), "a segment of the event log was gone before it was trimmed");
                }),
            }

            let mut inner = self.inner.lock();
            inner.segments.pop_front();
            inner.places.retain(|(_, place)| place.segment_base != first.head.base);
            inner.waypoints.retain(|_, place| place.segment_base != first.head.base);
            drop(inner);
            if self.form.is_written_ahead {
                tracing::debug!(path = %self.path_of(&first), bytes = first.len, "trimmed a segment");
            } else {
                tracing::info!(path = %self.path_of(&first), bytes = first.len, "trimmed a segment of the event log");
            }
            self.is_trimming.store(true, Ordering::Relaxed);
            self.sync_trimmed()?;
        }

        Ok(())
    }

    /// Makes the removal of a segment durable before the next one is removed. Otherwise a power cut
    /// could leave a gap between segments that reappear.
    fn sync_trimmed(&self) -> io::Result<()> {
        if self.is_trimming.load(Ordering::Relaxed) {
            self.folder.sync()?;
            self.is_trimming.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    fn to_trim(&self, keep_from: Offset, oldest_ms: i64, bytes_max: u64) -> Option<Segment> {
        let inner = self.inner.lock();
        let bytes: u64 = inner.segments.iter().map(|segment| segment.len).sum();
        let next = inner.segments.get(1)?;
        // Earlier blocks are older than the first block of the next segment.
        let is_old = next.first_ms != 0 && next.first_ms < oldest_ms;
        let goes = next.head.base <= keep_from && (is_old || bytes > bytes_max);
        goes.then(|| inner.segments[0].clone())
    }

    fn path_of(&self, segment: &Segment) -> String {
        self.path(&segment.name).display().to_string()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn damaged(&self, segment: &Segment, at: u64, offset: Offset) -> Error {
        damaged(&self.path_of(segment), at, offset)
    }
}

/// Checks that a segment continues where the previous one ended, or that its header records a gap.
pub fn check_follows(ended: Offset, next: &Head) -> Result<(), Error> {
    if ended == next.after || ended == next.base {
        return Ok(());
    }
    Err(Error::Corrupt(format!("offsets {ended} to {} are missing", next.base)))
}

fn damaged(path: &str, at: u64, offset: Offset) -> Error {
    Error::Corrupt(format!("{path} has no block at byte {at}, where offset {offset} was sought"))
}

/// Builds a segment from what the walk over it found.
impl Segment {
    pub fn tail(&self) -> Result<Tail, Error> {
        super::segment::find_tail(&*self.file, &self.head)
    }
}

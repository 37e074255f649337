//! Repairs of a log that is refused. The loss is reported first, and accepted only on request.
//!
//! A damaged segment is written again without the damage, as segments of version 2 that record
//! where the log ended before them; the old file is kept under another name. Where the end is lost,
//! entries that count nothing replace it, as far as it was counted or acknowledged: an offset never
//! means two things.

use super::acknowledged::Acknowledged;
use super::inspect::{find_segments, name_of};
use super::run::Run;
use super::segment::{BLOCK_HEADER_LEN, EVENTS, Head, Tail, next_sound, read_block, seal_block};
use super::segments::{Segment, create};
use crate::files::{DiskFolder, File, Folder};
use raingauge_core::time::format_rfc3339;
use raingauge_ports::log::{Error, Offset};
use raingauge_ports::record::push_void;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Entries of a block that fills a gap.
const FILL_ENTRIES_MAX: u64 = 1 << 20;
/// Suffix of a file that is set aside.
const SET_ASIDE: &str = ".damaged";

/// A fault of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Entries `[from, to)` are missing or unreadable.
    Lost { from: Offset, to: Offset },
    /// A file with damaged or foreign contents.
    Damaged { file: String },
    /// Entries `[from, to)` carry a time later than the clock's.
    Future { from: Offset, to: Offset, newest_ms: i64 },
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { from, to } => {
                write!(formatter, "offsets {from} to {} are lost: {} entries", to - 1, to - from)
            }
            Self::Damaged { file } => {
                write!(formatter, "{file} is damaged, and would be kept as {file}{SET_ASIDE}")
            }
            Self::Future { from, to, newest_ms } => write!(
                formatter,
                "offsets {from} to {} carry times up to {}, later than this machine's clock",
                to - 1,
                format_rfc3339(newest_ms.div_euclid(1_000))
            ),
        }
    }
}

/// The permitted repairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Continue without the lost entries.
    pub loss: bool,
    /// Give entries from the future the current time.
    pub restamp: bool,
}

/// A log that was examined.
pub struct Repair {
    folder: Arc<dyn Folder>,
    now_ms: i64,
    faults: Vec<Fault>,
    rewrites: Vec<Rewrite>,
    /// Files without any usable contents.
    unusable: Vec<String>,
    /// Offsets behind the end that were counted or acknowledged.
    lost_end: Option<(Offset, Offset)>,
    /// When the last block was appended.
    newest_ms: i64,
    /// A last segment with a torn tail, and the end of its intact part.
    torn: Option<(Arc<dyn File>, u64)>,
}

/// A segment that has to be written again.
struct Rewrite {
    segment: Segment,
    pieces: Vec<Piece>,
    is_damaged: bool,
}

/// Consecutive intact blocks that become a segment.
struct Piece {
    base: Offset,
    after: Offset,
    /// The position of each block, and its first offset.
    blocks: Vec<(u64, Offset)>,
}

impl Repair {
    /// Reads the whole log in `folder` without changing anything. The bucket store includes it up
    /// to `applied_to`.
    pub fn examine(folder: &Path, applied_to: Offset, now_ms: i64) -> Result<Self, Error> {
        Self::of(Arc::new(DiskFolder::open(folder)?), applied_to, now_ms)
    }

    pub(super) fn of(
        folder: Arc<dyn Folder>,
        applied_to: Offset,
        now_ms: i64,
    ) -> Result<Self, Error> {
        let acknowledged = Acknowledged::read(Arc::clone(&folder))?.offset();
        let faults = Vec::new();
        let rewrites = Vec::new();
        let unusable = Vec::new();
        let mut repair = Self {
            folder,
            now_ms,
            faults,
            rewrites,
            unusable,
            lost_end: None,
            newest_ms: 0,
            torn: None,
        };

        let mut end = None;
        let found = find_segments(&EVENTS, &*repair.folder)?;
        for file in found.unknown {
            repair.faults.push(Fault::Damaged { file: file.clone() });
            repair.unusable.push(file);
        }

        let count = found.segments.len();
        for (index, segment) in found.segments.into_iter().enumerate() {
            end = Some(repair.examine_segment(segment, end, index + 1 == count)?);
        }

        let end = end.unwrap_or(0);
        let known_to = applied_to.max(acknowledged).max(found.torn.unwrap_or(0));
        if known_to > end {
            repair.faults.push(Fault::Lost { from: end, to: known_to });
            repair.lost_end = Some((end, known_to));
            repair.unusable.extend(found.torn.map(|base| name_of(&EVENTS, base)));
        }

        repair.examine_runs(known_to.max(end))?;
        Ok(repair)
    }

    /// Returns where the segment ends.
    fn examine_segment(
        &mut self,
        segment: Segment,
        before: Option<Offset>,
        is_last: bool,
    ) -> Result<Offset, Error> {
        let Segment { head, ref file, ref name, len, .. } = segment;
        let mut after = head.after;
        let mut is_damaged = false;

        if let Some(before) = before.filter(|before| *before != head.after && *before != head.base)
        {
            self.note_lost(before, head.base);
            (after, is_damaged) = (before, true);
        }

        let mut tail = Tail { len: head.len(), end: head.base, appended_ms: 0, last_at: None };
        let mut pieces = Vec::new();
        let mut piece = Piece { base: head.base, after, blocks: Vec::new() };
        let mut has_future = false;

        while tail.len < len {
            match read_block(&**file, &head, tail.len, tail.end) {
                Ok(block) => {
                    piece.blocks.push((tail.len, block.base));

                    if block.appended_ms > self.now_ms {
                        self.note_future(block.base, block.end(), block.appended_ms);
                        has_future = true;
                    }

                    tail.len += (BLOCK_HEADER_LEN + block.bytes.len()) as u64;
                    (tail.end, tail.appended_ms) = (block.end(), block.appended_ms);
                }
                Err(Error::Corrupt(_)) => {
                    let Some((at, next)) = next_sound(&**file, &head, tail)? else {
                        // A crash leaves this tail in a last segment.
                        if is_last {
                            self.torn = Some((Arc::clone(file), tail.len))
                        } else {
                            is_damaged = true
                        }
                        break;
                    };

                    is_damaged = true;
                    self.note_lost(tail.end, next.base);

                    let behind = Piece { base: next.base, after: tail.end, blocks: Vec::new() };
                    pieces.push(std::mem::replace(&mut piece, behind));
                    (tail.len, tail.end) = (at, next.base);
                }
                Err(error) => return Err(error),
            }
        }

        pieces.push(piece);
        pieces.retain(|piece| !piece.blocks.is_empty());
        self.newest_ms = self.newest_ms.max(tail.appended_ms);

        if is_damaged {
            self.faults.push(Fault::Damaged { file: name.clone() });
        }

        if is_damaged || has_future {
            self.rewrites.push(Rewrite { segment, pieces, is_damaged });
        }
        Ok(tail.end)
    }

    /// Runs are rebuilt from the log, beginning with the first one that is damaged or includes more
    /// than is left.
    fn examine_runs(&mut self, end: Offset) -> Result<(), Error> {
        let mut names = self.folder.list()?;
        names.retain(|name| name.ends_with(".run"));
        names.sort_unstable();

        let mut is_behind = false;
        for file in names {
            match Run::open(&*self.folder, file.clone()) {
                Ok(run) if run.to <= end && !is_behind => continue,
                Ok(_) => {}
                Err(Error::Corrupt(_)) => self.faults.push(Fault::Damaged { file: file.clone() }),
                Err(error) => return Err(error),
            }

            is_behind = true;
            self.unusable.push(file);
        }

        Ok(())
    }

    fn note_lost(&mut self, from: Offset, to: Offset) {
        if from < to {
            self.faults.push(Fault::Lost { from, to });
        }
    }

    fn note_future(&mut self, from: Offset, to: Offset, appended_ms: i64) {
        match self.faults.last_mut() {
            Some(Fault::Future { to: end, newest_ms, .. }) => {
                (*end, *newest_ms) = (to, appended_ms.max(*newest_ms))
            }
            _ => self.faults.push(Fault::Future { from, to, newest_ms: appended_ms }),
        }
    }

    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Makes the permitted repairs. Returns whether anything remains that a start would refuse, or
    /// that is dated wrongly.
    pub fn apply(self, allowed: Allowed) -> Result<bool, Error> {
        for rewrite in &self.rewrites {
            if (!rewrite.is_damaged || allowed.loss) && (allowed.restamp || rewrite.is_damaged) {
                self.rewrite(rewrite, allowed.restamp)?;
            }
        }

        if allowed.loss {
            for name in &self.unusable {
                self.folder.rename(name, &format!("{name}{SET_ASIDE}"))?;
            }
            if let Some((from, to)) = self.lost_end {
                self.fill(from, to, allowed.restamp)?;
            }
        }

        self.folder.sync()?;
        let is_left = |fault: &Fault| match fault {
            Fault::Lost { .. } | Fault::Damaged { .. } => !allowed.loss,
            Fault::Future { .. } => !allowed.restamp,
        };
        Ok(self.faults.iter().any(is_left))
    }

    /// Ends the log with entries that count nothing, so that no offset is ever used twice.
    fn fill(&self, from: Offset, to: Offset, restamp: bool) -> Result<(), Error> {
        if let Some((file, len)) = &self.torn {
            file.truncate(*len)?;
            file.sync()?;
        }

        let newest_ms = if self.newest_ms == 0 { self.now_ms } else { self.newest_ms };
        let appended_ms = if restamp { newest_ms.min(self.now_ms) } else { newest_ms };
        let Segment { head, file, len: mut at, .. } = create(&EVENTS, &*self.folder, from, from)?;
        let mut base = from;
        while base < to {
            let count = (to - base).min(FILL_ENTRIES_MAX);
            let mut block = vec![0; BLOCK_HEADER_LEN];
            (0..count).for_each(|_| push_void(&mut block));
            seal_block(&head, &mut block, count as u32, base, appended_ms);
            file.write_at(&block, at)?;
            at += block.len() as u64;
            base += count;
        }

        Ok(file.sync()?)
    }

    /// Writes the intact blocks of a segment into new files, then sets the old one aside.
    fn rewrite(&self, rewrite: &Rewrite, restamp: bool) -> Result<(), Error> {
        let Segment { head, file, name, .. } = &rewrite.segment;
        let unfinished = |piece: &Piece| format!("{}.unfinished", name_of(&EVENTS, piece.base));
        for piece in &rewrite.pieces {
            let new_head = Head::new(&EVENTS, piece.base, piece.after);
            let new_file = self.folder.create(&unfinished(piece))?;
            new_file.write_at(&new_head.bytes(), 0)?;

            let mut end = new_head.len();
            for (at, base) in &piece.blocks {
                let block = read_block(&**file, head, *at, *base)?;
                let appended_ms =
                    if restamp { block.appended_ms.min(self.now_ms) } else { block.appended_ms };
                let mut bytes = vec![0; BLOCK_HEADER_LEN];
                bytes.extend_from_slice(&block.bytes);
                seal_block(&new_head, &mut bytes, block.len as u32, block.base, appended_ms);
                new_file.write_at(&bytes, end)?;
                end += bytes.len() as u64;
            }

            new_file.sync()?;
        }

        self.folder.rename(name, &format!("{name}{SET_ASIDE}"))?;

        for piece in &rewrite.pieces {
            self.folder.rename(&unfinished(piece), &name_of(&EVENTS, piece.base))?;
        }
        Ok(self.folder.sync()?)
    }
}

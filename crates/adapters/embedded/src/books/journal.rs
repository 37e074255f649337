//! The journal of a book: its entries in segment files, in blocks that became durable together.
//!
//! ```text
//! file    "RAINBOOK", then as a segment of the event log
//! block   "RBK1", then as a block of the event log: base is the number of entries before it
//! payload ┌──────────────┬──────────────┬─────────────┬─────────┬───────────┬───
//!         │ position u64 │ chain before │ chain after │ len u32 │ entry len │ …
//!         │              │ 32 bytes     │ 32 bytes    │         │           │
//!         └──────────────┴──────────────┴─────────────┴─────────┴───────────┴───
//! ```
//!
//! The position is the offset up to which the books include the event log. Turns without entries
//! write no block: they note it in a file of its own, which a power cut may undo.

use super::place::Place;
use crate::files::Folder;
use crate::log::acknowledged::Acknowledged;
use crate::log::inspect::{self, Mending};
use crate::log::note::Note;
use crate::log::segment::{BLOCK_HEADER_LEN, Form, PAYLOAD_LEN_MAX};
use crate::log::segments::{Failure, Segments};
use raingauge_points::Entry;
use raingauge_ports::log::{self, Block, Offset};
use raingauge_ports::points::{Chain, EncodedTurn, Error, Head};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The segments of a journal.
pub const BOOK: Form = Form {
    suffix: ".book",
    file_magic: [None, Some(b"RAINBOOK")],
    block_magic: b"RBK1",
    is_written_ahead: false,
};
/// The position and the two chains.
const PAYLOAD_HEAD_LEN: usize = 8 + 32 + 32;
/// What an operator does about damage.
pub const ADVICE: &str = "restore the whole data folder from a backup";

/// A journal that was read, and of which nothing on disk has changed yet.
pub struct Inspection {
    pub pages: Pages,
    mending: Mending,
    acknowledged: Acknowledged,
    position: Note,
}

/// The journal as it is written.
pub struct Journal {
    pages: Pages,
    acknowledged: Acknowledged,
    position: Note,
}

/// The journal as it is read, by several threads while it is written.
#[derive(Clone)]
pub struct Pages {
    segments: Arc<Segments>,
}

impl Inspection {
    /// Reads the journal in a folder. A tail that was never acknowledged will be cut off; damage to
    /// anything acknowledged is an error.
    pub fn of(folder: Arc<dyn Folder>, segment_bytes: u64) -> Result<Self, Error> {
        let acknowledged = Acknowledged::read(Arc::clone(&folder)).map_err(failed)?;
        let (segments, mending) =
            inspect::inspect(&BOOK, Arc::clone(&folder), segment_bytes).map_err(failed)?;
        acknowledged.check(segments.end()).map_err(failed)?;
        let position = Note::read(folder, "position").map_err(|why| failed(why.into()))?;
        let pages = Pages { segments: Arc::new(segments) };
        Ok(Self { pages, mending, acknowledged, position })
    }

    /// The last known position, which is that of the last block or a later one.
    pub fn noted_position(&self) -> Offset {
        self.position.number()
    }

    /// Mends the journal and opens it. From here on only the disk can refuse.
    pub fn open(self) -> Result<Journal, Error> {
        let Self { pages, mending, mut acknowledged, position } = self;
        pages.segments.mend(&mending).map_err(failed)?;
        acknowledged.note(pages.end());
        Ok(Journal { pages, acknowledged, position })
    }
}

impl Journal {
    /// Appends the entries of a turn as one block behind `before` and waits until it is durable.
    /// Returns where they are.
    pub fn append(
        &mut self,
        before: &Head,
        turn: &EncodedTurn,
        recorded_ms: i64,
    ) -> Result<Vec<Place>, Failure> {
        let after = &turn.heads[0];
        let mut block = vec![0; BLOCK_HEADER_LEN];
        block.extend_from_slice(&after.position.to_le_bytes());
        block.extend_from_slice(&before.chain.0);
        block.extend_from_slice(&after.chain.0);

        let mut places = Vec::new();
        for (sequence, entry) in (before.sequence + 1..).zip(turn.entries()) {
            block.extend_from_slice(&(entry.len() as u32).to_le_bytes());
            places.push(Place::of(sequence, block.len() as u64, entry));
            block.extend_from_slice(entry);
        }
        if block.len() - BLOCK_HEADER_LEN > PAYLOAD_LEN_MAX {
            let why = format!("a turn of {} bytes does not fit into one block", block.len());
            return Err(Failure::NotTaken(io::Error::other(why)));
        }

        let count = places.len() as u32;
        let written = self.pages.segments.write(&mut block, count, recorded_ms)?;
        self.acknowledged.note(written.end);
        let bytes = self.pages.segments.bytes();
        metrics::gauge!("raingauge_points_journal_bytes").set(bytes as f64);
        places.iter_mut().for_each(|place| place.at += written.at);
        Ok(places)
    }

    /// Notes a position that has moved without an entry.
    pub fn note_position(&mut self, position: Offset) -> io::Result<()> {
        self.position.write(position)
    }
}

impl Pages {
    /// The number of the last entry.
    pub fn end(&self) -> u64 {
        self.segments.end()
    }

    /// Reads blocks, beginning with the one that holds the entry behind `before`: at least one, and
    /// about `bytes_max` bytes.
    pub fn blocks(&self, before: u64, bytes_max: usize) -> Result<Vec<Page>, Error> {
        let blocks = self.segments.read_placed(before, bytes_max).map_err(failed)?;
        blocks.into_iter().map(|(at, block)| Page::of(at, block)).collect()
    }

    /// The last block, if there is one.
    pub fn last_block(&self) -> Result<Option<Page>, Error> {
        match self.end().checked_sub(1) {
            Some(before) => Ok(self.blocks(before, 0)?.pop()),
            None => Ok(None),
        }
    }

    pub fn entry_at(&self, place: &Place) -> Result<Arc<Entry>, Error> {
        let offset = place.sequence.saturating_sub(1);
        let bytes = self.segments.read_bytes(offset, place.at, place.len as usize);
        Ok(Arc::new(place.decode(&bytes.map_err(failed)?)?))
    }

    /// The entry with a number, if there is one.
    pub fn entry(&self, sequence: u64) -> Result<Option<Arc<Entry>>, Error> {
        let Some(before) = sequence.checked_sub(1) else {
            return Ok(None);
        };
        let page = self.blocks(before, 0)?.pop();
        let entry =
            page.and_then(|page| page.entries.into_iter().nth((before - page.base) as usize));
        Ok(entry.map(|(_, entry)| entry))
    }
}

/// A block: entries that became durable together.
pub struct Page {
    /// The number of the entry before its first.
    pub base: u64,
    pub position: Offset,
    pub before: Chain,
    pub after: Chain,
    pub entries: Vec<(Place, Arc<Entry>)>,
    bytes: Vec<u8>,
    /// Where the encodings lie in `bytes`.
    ranges: Vec<Range<usize>>,
}

impl Page {
    /// Parses a block that lies at `at` of its segment. Its checksum was checked; its chain is
    /// checked here.
    fn of(at: u64, block: Block) -> Result<Self, Error> {
        let damaged = |what: &str| {
            Error::Corrupt(format!("the block of entry {} {what}: {ADVICE}", block.base + 1))
        };
        let head = block.bytes.split_first_chunk::<PAYLOAD_HEAD_LEN>();
        let (head, _) = head.ok_or_else(|| damaged("is too short"))?;
        let chain = |from: usize| {
            let mut chain = Chain::default();
            chain.0.copy_from_slice(&head[from..from + 32]);
            chain
        };
        let mut page = Self {
            base: block.base,
            position: head.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)),
            before: chain(8),
            after: chain(40),
            entries: Vec::new(),
            bytes: Vec::new(),
            ranges: Vec::new(),
        };

        let mut from = PAYLOAD_HEAD_LEN;
        let mut hash = page.before;
        for sequence in block.base + 1..=block.end() {
            let rest = &block.bytes[from..];
            let (len, rest) = rest.split_first_chunk().ok_or_else(|| damaged("is cut short"))?;
            let len = u32::from_le_bytes(*len) as usize;
            let bytes = rest.get(..len).ok_or_else(|| damaged("is cut short"))?;

            from += size_of::<u32>();
            let place = Place::of(sequence, at + (BLOCK_HEADER_LEN + from) as u64, bytes);
            page.entries.push((place, Arc::new(place.decode(bytes)?)));
            page.ranges.push(from..from + len);
            hash = hash.after(bytes);
            from += len;
        }

        if from != block.bytes.len() {
            return Err(damaged("is too long"));
        }
        if hash != page.after {
            return Err(damaged("does not match its hash"));
        }
        page.bytes = block.bytes;
        Ok(page)
    }

    /// The number of its last entry.
    pub fn end(&self) -> u64 {
        self.base + self.entries.len() as u64
    }

    /// The entries with their encodings.
    pub fn encodings(&self) -> impl Iterator<Item = (&Arc<Entry>, &[u8])> {
        let entries = self.entries.iter().map(|(_, entry)| entry);
        entries.zip(self.ranges.iter().map(|range| &self.bytes[range.clone()]))
    }
}

/// The error of the books for one of a journal.
pub fn failed(error: log::Error) -> Error {
    match error {
        log::Error::Corrupt(why) => Error::Corrupt(format!("{why}: {ADVICE}")),
        log::Error::Full { free_bytes, reserve_bytes } => Error::Full { free_bytes, reserve_bytes },
        log::Error::Io(why) => Error::Io(why.to_string()),
        other => Error::Corrupt(format!("its journal is incomplete: {other}: {ADVICE}")),
    }
}

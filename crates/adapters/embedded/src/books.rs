//! The books of points: a journal in segment files, and what follows from it on fjall.
//!
//! ```text
//!   turn ──▶ load ──▶ decide ──▶ one block of the journal, synced ──▶ pending layer ──▶ answer
//!                                                     in the background └──▶ sorted tables
//!   open ──▶ records of a prefix of the journal ──▶ the rest of its entries applied to them
//! ```
//!
//! The journal is the truth: whatever a power cut takes from the records comes back from it. No
//! decision is made again, since entries are outcomes.

mod journal;
mod keys;
mod loading;
mod options;
mod pending;
mod place;
mod reader;
mod records;
mod recovery;
mod state;
mod verify;

use crate::files::{DiskFolder, Folder};
use crate::log::note::Note;
use crate::log::segments::Failure;
use crate::room::Room;
use crate::store::{self, Fault, Store};
use journal::{Inspection, Journal, Pages};
use loading::Memory;
use parking_lot::Mutex;
use pending::{Pending, Writer};
use raingauge_points::{Entry, Footprint, Key, Snapshot, Turn};
use raingauge_ports::log;
use raingauge_ports::points::{Books, DueWallet, EncodedTurn, Error, Head};
use records::View as _;
use state::BOOK;
use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

pub use options::Options;
pub use verify::{rebuild, verify};

/// Version of the keys.
const FORMAT: u32 = 1;
const JOURNAL_FOLDER: &str = "journal";
const STATE_FOLDER: &str = "state";
/// Bytes of records that fjall holds in memory. None pass through it.
const MEMTABLE_BYTES: u64 = 4 << 20;
/// Bytes of a table that a merge writes. Turns wait while one is synced, about 50 ms. With 4 MiB,
/// merges fall behind: fjall begins one for each table that comes in, however little it moves.
const TABLE_BYTES: u64 = 16 << 20;

/// The books of one data folder. Only one process has them open at a time.
pub struct PointBooks {
    inner: Arc<Inner>,
    /// Writes what is pending, the rest of it when the books are dropped.
    _writer: Option<Writer>,
}

struct Inner {
    folder: Arc<dyn Folder>,
    pages: Pages,
    records: Arc<Pending>,
    room: Room,
    writing: Mutex<Writing>,
    /// Held while due wallets are looked for.
    scanning: Mutex<()>,
    due_from: Mutex<DueFrom>,
    /// How far consumers of the entries have delivered.
    consumers: Mutex<HashMap<String, Note>>,
}

/// No wallet is due before this hour. The places of those that were would slow a scan down until
/// fjall has compacted them.
#[derive(Default)]
struct DueFrom {
    hour: u32,
    /// The earliest hour of what turns have made due while wallets are looked for.
    lowest: u32,
}

/// What the writer has to itself.
struct Writing {
    head: Head,
    journal: Journal,
    memory: Memory,
    /// Why nothing is written any more.
    closed: Option<String>,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Corrupt(why) => Self::Corrupt(why),
            Fault::Io(why) => Self::Io(why),
            Fault::Locked => Self::Locked,
        }
    }
}

impl PointBooks {
    /// Opens the books in `folder`, or creates them. A tail that was never acknowledged is cut off;
    /// damage to anything acknowledged is an error, and changes nothing.
    pub fn open(folder: &Path, options: &Options) -> Result<Self, Error> {
        let journal = open_folder(&folder.join(JOURNAL_FOLDER))?;
        let inspection = Inspection::of(Arc::clone(&journal), options.segment_bytes)?;
        let records = Arc::new(open_records(&folder.join(STATE_FOLDER), options)?);
        let room = Room::new(folder, options.reserve_bytes);
        let writer = Writer::start(&records)?;
        let inner = Inner::start(journal, inspection, records, options.cache_bytes, room)?;
        Ok(Self { inner: Arc::new(inner), _writer: Some(writer) })
    }
}

impl Inner {
    /// Brings the records up to the journal.
    fn start(
        folder: Arc<dyn Folder>,
        inspection: Inspection,
        records: Arc<Pending>,
        cache_bytes: usize,
        room: Room,
    ) -> Result<Self, Error> {
        let pages = inspection.pages.clone();
        let head = recovery::checked_head(&records, &pages)?;
        let noted = inspection.noted_position();
        let last = pages.last_block()?.map_or(0, |page| page.position);

        // From here on only the disk can refuse the start.
        let journal = inspection.open()?;
        let head = recovery::catch_up(&records, &pages, head)?;
        let writing = Writing {
            head: Head { position: noted.max(last), ..head },
            journal,
            memory: Memory::new(cache_bytes),
            closed: None,
        };
        Ok(Self {
            folder,
            pages,
            records,
            room,
            writing: Mutex::new(writing),
            scanning: Mutex::default(),
            due_from: Mutex::default(),
            consumers: Mutex::default(),
        })
    }
}

/// Opens the folder of the journal, whose lock covers the records as well.
fn open_folder(path: &Path) -> Result<Arc<dyn Folder>, Error> {
    match DiskFolder::open(path) {
        Ok(folder) => Ok(Arc::new(folder)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Error::Locked),
        Err(error) => Err(Error::Io(error.to_string())),
    }
}

fn open_records(folder: &Path, options: &Options) -> Result<Pending, Error> {
    let settings = store::Options {
        block_cache_bytes: options.block_cache_bytes,
        open_files_max: options.open_files_max,
        table_bytes: TABLE_BYTES,
        ..store::Options::new(
            "points",
            FORMAT,
            MEMTABLE_BYTES,
            "`raingauge points verify --rebuild` makes the state again from the journal",
        )
    };
    let store = Store::open(folder, &settings)?;
    Ok(Pending::new(Box::new(store), options.pending()))
}

impl Writing {
    /// Writes nothing any more, since it is unknown what the disk holds.
    fn close(&mut self, why: String) -> Error {
        tracing::error!(%why, "the books of points failed and take no more entries");
        self.closed = Some(why.clone());
        Error::Closed(why)
    }
}

impl Inner {
    fn check_book(&self, book: u16) -> Result<(), Error> {
        if book == BOOK {
            Ok(())
        } else {
            Err(Error::Invalid(format!("a data folder has one book, and no book {book}")))
        }
    }

    fn turn(
        &self,
        footprint: &Footprint,
        decide: &mut dyn FnMut(&[Head], Snapshot) -> Turn,
    ) -> Result<Head, Error> {
        let mut writing = self.writing.lock();
        if let Some(why) = &writing.closed {
            return Err(Error::Closed(why.clone()));
        }
        if let Err(log::Error::Full { free_bytes, reserve_bytes }) = self.room.check() {
            return Err(Error::Full { free_bytes, reserve_bytes });
        }
        if let Err(fault) = self.records.make_room() {
            return Err(writing.close(format!("its state could not be written: {fault:?}")));
        }

        let Writing { head, memory, .. } = &mut *writing;
        let loaded = loading::load(&self.records, &self.pages, memory, head, footprint)?;
        let due_before = state::due_hours(&loaded);
        let known: HashSet<Key> = loaded.keys.keys().copied().collect();

        let heads = [writing.head.clone()];
        let turn = decide(&heads, loaded);
        let encoded = EncodedTurn::of(&heads, &turn)?;
        self.check_keys(&turn.entries, footprint, &known)?;

        if turn.entries.is_empty() {
            return self.move_position(&mut writing, turn.position);
        }
        self.write(&mut writing, &turn, &encoded, &due_before)
    }

    /// Refuses entries whose keys have entries already.
    fn check_keys(
        &self,
        entries: &[Arc<Entry>],
        footprint: &Footprint,
        known: &HashSet<Key>,
    ) -> Result<(), Error> {
        for key in entries.iter().filter_map(|entry| entry.key.as_ref()) {
            let is_known = if footprint.keys.binary_search(&key.hash).is_ok() {
                known.contains(&key.hash)
            } else {
                self.records.get(&keys::key(key.hash))?.is_some()
            };
            if is_known {
                return Err(Error::Invalid(format!("the key {} has an entry already", key.text)));
            }
        }
        Ok(())
    }

    /// Notes a position that moves alone. A power cut undoes it, and the same events are read
    /// again.
    fn move_position(&self, writing: &mut Writing, to: Option<u64>) -> Result<Head, Error> {
        if let Some(position) = to.filter(|position| *position > writing.head.position) {
            let noted = writing.journal.note_position(position);
            noted.map_err(|why| Error::NotTaken(why.to_string()))?;
            writing.head.position = position;
        }
        Ok(writing.head.clone())
    }

    fn write(
        &self,
        writing: &mut Writing,
        turn: &Turn,
        encoded: &EncodedTurn,
        due_before: &state::DueHours,
    ) -> Result<Head, Error> {
        let Writing { head, journal, memory, .. } = &mut *writing;
        let sums = loading::sums(&self.records, memory, turn)?;
        let after = encoded.heads[0].clone();
        let places = match journal.append(head, encoded, turn.recorded_ms) {
            Ok(places) => places,
            Err(Failure::NotTaken(error)) => return Err(Error::NotTaken(error.to_string())),
            Err(Failure::Broken(error)) => return Err(writing.close(error.to_string())),
        };

        loading::commit(&self.records, memory, &after, turn, &places, due_before, sums);
        writing.head = after.clone();
        let due = turn.wallets.iter().filter_map(|(_, wallet)| wallet.due_hour);
        if let Some(earliest) = due.min() {
            let mut from = self.due_from.lock();
            from.hour = from.hour.min(earliest);
            from.lowest = from.lowest.min(earliest);
        }
        Ok(after)
    }

    fn due(
        &self,
        until_hour: u32,
        after: Option<&DueWallet>,
        len_max: usize,
    ) -> Result<Vec<DueWallet>, Error> {
        let mut due = Vec::new();
        let _scanning = self.scanning.lock();
        let from = {
            let mut from = self.due_from.lock();
            from.lowest = u32::MAX;
            from.hour
        };
        let range = keys::due_range(from, after, until_hour);
        if len_max == 0 || range.start >= range.end {
            return Ok(due);
        }

        self.records.scan(range, false, &mut |key, _| {
            due.push(keys::due_of(key).ok_or_else(|| state::malformed("a due row"))?);
            Ok(if due.len() < len_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        if after.is_none() {
            let first = due.first().map_or(until_hour.saturating_add(1), |due| due.hour);
            let mut from = self.due_from.lock();
            from.hour = first.min(from.lowest);
        }
        Ok(due)
    }

    fn read(&self, from: u64, bytes_max: usize) -> Result<Vec<Arc<Entry>>, Error> {
        let before = from.max(1) - 1;
        let mut entries = Vec::new();
        for page in self.pages.blocks(before, bytes_max)? {
            let skipped = before.saturating_sub(page.base) as usize;
            entries.extend(page.entries.into_iter().skip(skipped).map(|(_, entry)| entry));
        }
        Ok(entries)
    }

    /// Calls `work` with the note of a consumer.
    fn with_consumer<T>(
        &self,
        consumer: &str,
        work: impl FnOnce(&mut Note) -> io::Result<T>,
    ) -> Result<T, Error> {
        let failed = |error: io::Error| Error::Io(error.to_string());
        let mut consumers = self.consumers.lock();
        if !consumers.contains_key(consumer) {
            let name = format!("delivered-{consumer}");
            let note = Note::read(Arc::clone(&self.folder), name).map_err(failed)?;
            consumers.insert(consumer.to_owned(), note);
        }
        let note = consumers.get_mut(consumer).expect("it was put there");
        work(note).map_err(failed)
    }
}

impl Books for PointBooks {
    fn books(&self) -> u16 {
        1
    }

    fn head(&self, book: u16) -> Result<Head, Error> {
        self.inner.check_book(book)?;
        Ok(self.inner.writing.lock().head.clone())
    }

    fn turn(
        &self,
        books: &[u16],
        footprint: &Footprint,
        decide: &mut dyn FnMut(&[Head], Snapshot) -> Turn,
    ) -> Result<Vec<Head>, Error> {
        if books != [BOOK] {
            return Err(Error::Invalid(format!("a data folder has one book, and not {books:?}")));
        }
        Ok(vec![self.inner.turn(footprint, decide)?])
    }

    fn has_room(&self) -> bool {
        self.inner.records.has_room()
    }

    fn due(
        &self,
        book: u16,
        until_hour: u32,
        after: Option<&DueWallet>,
        len_max: usize,
    ) -> Result<Vec<DueWallet>, Error> {
        self.inner.check_book(book)?;
        self.inner.due(until_hour, after, len_max)
    }

    fn read(&self, book: u16, from: u64, bytes_max: usize) -> Result<Vec<Arc<Entry>>, Error> {
        self.inner.check_book(book)?;
        self.inner.read(from, bytes_max)
    }

    fn place(&self, consumer: &str, book: u16) -> Result<u64, Error> {
        self.inner.check_book(book)?;
        self.inner.with_consumer(consumer, |note| Ok(note.number()))
    }

    fn set_place(&self, consumer: &str, book: u16, sequence: u64) -> Result<(), Error> {
        self.inner.check_book(book)?;
        self.inner.with_consumer(consumer, |note| note.write(sequence))
    }
}

#[cfg(test)]
mod tests;

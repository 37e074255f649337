//! A run: the identities of older events, sorted, in a file, with a filter over them in memory.
//!
//! ```text
//! ┌────────────┬───────────┬──────────┬────────┬───────────────┬────────────┬──────────────┐
//! │ "RAINIDS2" │ count u64 │ from u64 │ to u64 │ newest_ms i64 │ crc32c u32 │ ids, u128    │
//! │            │           │          │        │               │            │ each, sorted │
//! └────────────┴───────────┴──────────┴────────┴───────────────┴────────────┴──────────────┘
//! ```
//!
//! The checksum covers everything but itself; in version 1, `RAINIDS1`, only the identities.
//!
//! The filter has one false positive in 65,536 lookups. Only those and true duplicates cost a read
//! of one page, which a fence of every 256th identity finds.

use crate::files::{File, Folder, read_all};
use parking_lot::RwLock;
use raingauge_ports::log::{Error, Offset};
use raingauge_ports::record::Identity;
use std::io;
use std::sync::Arc;
use xorf::{BinaryFuse16, Filter};

const MAGIC_1: &[u8; 8] = b"RAINIDS1";
const MAGIC: &[u8; 8] = b"RAINIDS2";
const HEADER_LEN: usize = 44;
const CRC_AT: usize = HEADER_LEN - 4;
const ID_LEN: usize = 16;
/// Identities that are written at once, so that a run is not built in memory a second time.
const WRITE_IDS: usize = 16 * 1024;
/// Identities between two entries of the fence.
const PAGE_IDS: usize = 256;

pub struct Run {
    name: String,
    file: Arc<dyn File>,
    /// `None` if none could be built; each lookup then reads its page.
    filter: Option<BinaryFuse16>,
    /// Every 256th identity.
    fence: Vec<Identity>,
    pub count: usize,
    /// The first offset whose identities are in the run.
    pub from: Offset,
    pub to: Offset,
    /// When the newest of them was appended, in milliseconds since 1970.
    pub newest_ms: i64,
}

impl Run {
    /// Writes the identities of the offsets `[from, to)` and opens the run. The file appears as a
    /// whole or not at all.
    pub fn create(
        folder: &dyn Folder,
        mut ids: Vec<Identity>,
        (from, to): (Offset, Offset),
        newest_ms: i64,
    ) -> io::Result<Self> {
        ids.sort_unstable();
        let mut header = Vec::with_capacity(HEADER_LEN);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&(ids.len() as u64).to_le_bytes());
        header.extend_from_slice(&from.to_le_bytes());
        header.extend_from_slice(&to.to_le_bytes());
        header.extend_from_slice(&newest_ms.to_le_bytes());

        let name = format!("ids-{from:020}.run");
        let unfinished = format!("ids-{from:020}.unfinished");
        let file = folder.create(&unfinished)?;
        let mut crc = crc32c::crc32c(&header);
        let mut at = HEADER_LEN as u64;

        let mut bytes = Vec::new();
        for some in ids.chunks(WRITE_IDS) {
            bytes.clear();
            some.iter().for_each(|id| bytes.extend_from_slice(&id.to_le_bytes()));
            crc = crc32c::crc32c_append(crc, &bytes);
            file.write_at(&bytes, at)?;
            at += bytes.len() as u64;
        }

        header.extend_from_slice(&crc.to_le_bytes());
        file.write_at(&header, 0)?;
        file.sync()?;
        folder.rename(&unfinished, &name)?;
        folder.sync()?;

        Ok(Self::over(name, file, &ids, (from, to), newest_ms))
    }

    pub fn open(folder: &dyn Folder, name: String) -> Result<Self, Error> {
        let damaged = || {
            let path = folder.path().join(&name);
            Error::Corrupt(format!("{} is not a sound run of identities", path.display()))
        };
        let file = folder.open(&name)?;
        let bytes = read_all(&*file)?;
        let (header, body) = bytes.split_at_checked(HEADER_LEN).ok_or_else(damaged)?;
        let number =
            |at: usize| header[at..at + 8].try_into().map(u64::from_le_bytes).unwrap_or_default();
        let count = number(8) as usize;

        let from = number(16);
        let to = number(24);
        let newest_ms = number(32) as i64;
        let crc_from = if header[..8] == *MAGIC_1 { CRC_AT } else { 0 };
        let crc = crc32c::crc32c_append(crc32c::crc32c(&header[crc_from..CRC_AT]), body);
        let is_sound = (header[..8] == *MAGIC_1 || header[..8] == *MAGIC)
            && count.checked_mul(ID_LEN) == Some(body.len())
            && header[CRC_AT..] == crc.to_le_bytes();
        if !is_sound {
            return Err(damaged());
        }

        let ids: Vec<Identity> =
            body.as_chunks::<ID_LEN>().0.iter().map(|id| Identity::from_le_bytes(*id)).collect();
        Ok(Self::over(name, file, &ids, (from, to), newest_ms))
    }

    fn over(
        name: String,
        file: Arc<dyn File>,
        ids: &[Identity],
        (from, to): (Offset, Offset),
        newest_ms: i64,
    ) -> Self {
        let filter = BinaryFuse16::try_from_iterator(ids.iter().map(|id| *id as u64));
        if let Err(reason) = &filter {
            tracing::warn!(run = %name, reason, "no filter over identities could be built; lookups read the disk");
        }
        let fence = ids.iter().step_by(PAGE_IDS).copied().collect();
        Self { name, file, filter: filter.ok(), fence, count: ids.len(), from, to, newest_ms }
    }

    /// Whether the run may hold an identity, according to its filter. Reads nothing.
    fn may_contain(&self, id: Identity) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.contains(&(id as u64)))
    }

    pub fn contains(&self, id: Identity) -> io::Result<bool> {
        if !self.may_contain(id) {
            return Ok(false);
        }
        let Some(page) = self.fence.partition_point(|post| *post <= id).checked_sub(1) else {
            return Ok(false);
        };
        let first = page * PAGE_IDS;
        let mut bytes = vec![0; PAGE_IDS.min(self.count - first) * ID_LEN];
        self.file.read_at(&mut bytes, (HEADER_LEN + first * ID_LEN) as u64)?;
        Ok(bytes.as_chunks::<ID_LEN>().0.contains(&id.to_le_bytes()))
    }

    /// Removes the file of the run. A missing file is no error.
    pub fn remove(&self, folder: &dyn Folder) -> io::Result<()> {
        match folder.remove(&self.name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// The runs of a log, oldest first. Threads share a run without locks: it never changes.
#[derive(Default)]
pub struct Runs(RwLock<Arc<Vec<Arc<Run>>>>);

impl Runs {
    pub fn new(runs: Vec<Run>) -> Self {
        Self(RwLock::new(Arc::new(runs.into_iter().map(Arc::new).collect())))
    }

    pub fn now(&self) -> RunsNow {
        RunsNow(Arc::clone(&self.0.read()))
    }

    pub fn push(&self, run: Run) {
        Arc::make_mut(&mut *self.0.write()).push(Arc::new(run));
    }

    pub fn forget_oldest(&self) {
        Arc::make_mut(&mut *self.0.write()).remove(0);
    }
}

/// A snapshot of the runs.
pub struct RunsNow(Arc<Vec<Arc<Run>>>);

impl RunsNow {
    pub fn oldest(&self) -> Option<&Run> {
        self.0.first().map(|run| &**run)
    }

    /// The offset behind all of them.
    pub fn to(&self) -> Offset {
        self.0.last().map_or(0, |run| run.to)
    }

    /// Number of identities in all runs.
    pub fn count(&self) -> usize {
        self.0.iter().map(|run| run.count).sum()
    }

    /// Whether any run may hold an identity, according to the filters. Reads nothing.
    pub fn may_contain(&self, id: Identity) -> bool {
        self.0.iter().any(|run| run.may_contain(id))
    }

    /// Whether a run that begins at `from` or later holds an identity.
    pub fn contains(&self, id: Identity, from: Offset) -> io::Result<bool> {
        for run in self.0.iter().rev().take_while(|run| run.from >= from) {
            if run.contains(id)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

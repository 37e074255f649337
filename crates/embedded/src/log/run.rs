//! A run: the identities of older events, sorted, in a file, with a filter over them in memory.
//!
//! ```text
//! ┌────────────┬───────────┬──────────┬────────┬───────────────┬───────────────────┬────────────────────────┐
//! │ "RAINIDS1" │ count u64 │ from u64 │ to u64 │ newest_ms i64 │ crc32c u32 of ids │ ids, u128 each, sorted │
//! └────────────┴───────────┴──────────┴────────┴───────────────┴───────────────────┴────────────────────────┘
//! ```
//!
//! The filter lets through one of 65,536 identities that the run does not hold; only those and true duplicates cost a
//! read of one page, which a fence of every 256th identity finds.

use raingauge_ports::log::{Error, Offset};
use raingauge_ports::record::Identity;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xorf::{BinaryFuse16, Filter};

const MAGIC: &[u8; 8] = b"RAINIDS1";
const HEADER_LEN: usize = 44;
const ID_LEN: usize = 16;
/// Identities between two posts of the fence.
const PAGE_IDS: usize = 256;

pub struct Run {
    path: PathBuf,
    file: File,
    filter: BinaryFuse16,
    /// Every 256th identity.
    fence: Vec<Identity>,
    pub count: usize,
    /// Offsets whose identities are in the run.
    pub from: Offset,
    pub to: Offset,
    /// When the newest of them was appended, in milliseconds since 1970.
    pub newest_ms: i64,
}

impl Run {
    /// Writes the identities of the offsets `[from, to)` and opens the run. The file appears whole or not at all.
    pub fn create(
        folder: &Path,
        mut ids: Vec<Identity>,
        from: Offset,
        to: Offset,
        newest_ms: i64,
    ) -> Result<Self, Error> {
        ids.sort_unstable();
        let mut body = Vec::with_capacity(ids.len() * ID_LEN);
        ids.iter().for_each(|id| body.extend_from_slice(&id.to_le_bytes()));
        let mut header = Vec::with_capacity(HEADER_LEN);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&(ids.len() as u64).to_le_bytes());
        header.extend_from_slice(&from.to_le_bytes());
        header.extend_from_slice(&to.to_le_bytes());
        header.extend_from_slice(&newest_ms.to_le_bytes());
        header.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        let path = folder.join(format!("ids-{from:020}.run"));
        let unfinished = path.with_extension("unfinished");
        let mut file = File::create(&unfinished)?;
        file.write_all(&header)?;
        file.write_all(&body)?;
        file.sync_all()?;
        std::fs::rename(&unfinished, &path)?;
        File::open(folder)?.sync_all()?;
        Self::over(path, &ids, from, to, newest_ms)
    }

    pub fn open(path: PathBuf) -> Result<Self, Error> {
        let damaged =
            || Error::Corrupt(format!("{} is not a sound run of identities: restore it from a backup", path.display()));
        let bytes = std::fs::read(&path)?;
        let (header, body) = bytes.split_at_checked(HEADER_LEN).ok_or_else(damaged)?;
        let number = |at: usize| header[at..at + 8].try_into().map(u64::from_le_bytes).unwrap_or_default();
        let (count, from, to, newest_ms) = (number(8) as usize, number(16), number(24), number(32) as i64);
        let sound =
            header[..8] == *MAGIC && body.len() == count * ID_LEN && header[40..] == crc32c::crc32c(body).to_le_bytes();
        if !sound {
            return Err(damaged());
        }
        let ids: Vec<Identity> = body.as_chunks::<ID_LEN>().0.iter().map(|id| Identity::from_le_bytes(*id)).collect();
        Self::over(path, &ids, from, to, newest_ms)
    }

    fn over(path: PathBuf, ids: &[Identity], from: Offset, to: Offset, newest_ms: i64) -> Result<Self, Error> {
        let hashes: Vec<u64> = ids.iter().map(|id| *id as u64).collect();
        let filter = BinaryFuse16::try_from(hashes)
            .map_err(|reason| Error::Corrupt(format!("no filter over {} identities: {reason}", ids.len())))?;
        let fence = ids.iter().step_by(PAGE_IDS).copied().collect();
        let file = File::open(&path)?;
        Ok(Self { path, file, filter, fence, count: ids.len(), from, to, newest_ms })
    }

    pub fn contains(&self, id: Identity) -> Result<bool, Error> {
        if !self.filter.contains(&(id as u64)) {
            return Ok(false);
        }
        let Some(page) = self.fence.partition_point(|post| *post <= id).checked_sub(1) else { return Ok(false) };
        let first = page * PAGE_IDS;
        let mut bytes = vec![0; PAGE_IDS.min(self.count - first) * ID_LEN];
        self.file.read_exact_at(&mut bytes, (HEADER_LEN + first * ID_LEN) as u64)?;
        Ok(bytes.as_chunks::<ID_LEN>().0.contains(&id.to_le_bytes()))
    }

    /// Forgets the run, file and all.
    pub fn remove(self) -> Result<(), Error> {
        Ok(std::fs::remove_file(&self.path)?)
    }
}

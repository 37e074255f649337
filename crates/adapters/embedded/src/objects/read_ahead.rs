//! Asks the kernel to read what an opening of the records will read, all at once.
//!
//! fjall reads its journals one after the other, and the ends of its tables in small pieces, each
//! of which waits for the disk. How many tables there are grows with the data.

use rustix::fs::{Advice, fadvise};
use std::fs::{self, File};
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// The end of a table or of a file of values, with its index of regions and what describes it.
const TAIL_BYTES: u64 = 64 << 10;

/// Begins to read the files of a folder of fjall. What cannot be read is met again by the opening,
/// which reports it.
pub fn read_ahead(folder: &Path) {
    for path in files_of(folder).filter(|path| path.extension().is_some_and(|kind| kind == "jnl")) {
        let _ = read_end(&path, u64::MAX);
    }
    for keyspace in files_of(&folder.join("keyspaces")) {
        let tables = files_of(&keyspace.join("tables")).chain(files_of(&keyspace.join("blobs")));
        tables.for_each(|path| drop(read_end(&path, TAIL_BYTES)));
    }
}

/// What is in a folder; nothing if there is none.
fn files_of(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Begins to read the last bytes of a file, without waiting for them.
fn read_end(path: &Path, bytes_max: u64) -> io::Result<()> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    let from = len.saturating_sub(bytes_max);
    Ok(fadvise(&file, from, NonZeroU64::new(len - from), Advice::WillNeed)?)
}

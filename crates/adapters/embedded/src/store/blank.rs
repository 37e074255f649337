//! A folder whose creation was interrupted.
//!
//! fjall cannot open a folder if it was killed while creating it. Nothing was ever written to such
//! a folder, so it is removed and created again.

use super::Fault;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes at the beginning of a journal that show whether it holds anything.
const JOURNAL_HEAD_LEN: u64 = 64;

/// Whether a folder of fjall holds no data at all: no table, and journals without a batch.
pub fn is_blank(folder: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jnl") && !is_empty_journal(&path)?
        {
            return Ok(false);
        }
    }

    let keyspaces = folder.join("keyspaces");
    if !keyspaces.is_dir() {
        return Ok(true);
    }

    for entry in std::fs::read_dir(keyspaces)? {
        let tables = entry?.path().join("tables");
        if tables.is_dir() && std::fs::read_dir(tables)?.next().is_some() {
            return Ok(false);
        }
    }

    Ok(true)
}

fn is_empty_journal(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(JOURNAL_HEAD_LEN).read_to_end(&mut head)?;
    Ok(head.iter().all(|byte| *byte == 0))
}

/// Removes a blank folder, unless another process is creating it.
pub fn discard(folder: &Path) -> Result<(), Fault> {
    let failed = |error: io::Error| Fault::Io(error.to_string());
    match File::open(folder.join("lock")) {
        Ok(lock) if lock.try_lock().is_err() => return Err(Fault::Locked),
        _ => {}
    }
    tracing::warn!(path = %folder.display(), "the first start was cut short before anything was stored: beginning again");
    std::fs::remove_dir_all(folder).map_err(failed)
}

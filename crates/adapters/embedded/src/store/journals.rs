//! Checks fjall's sealed journals before fjall opens them.
//!
//! fjall ends a journal at the first entry that it cannot read, cuts the file off there, and
//! continues with the next one. That is right for the last journal, whose end may be torn. An
//! earlier one was complete when it was sealed: only zeros may follow its last batch. Anything else
//! is damage, and is refused while the file is still unchanged.
//!
//! ```text
//! 0x01 items u32 sequence u64                                  a batch begins
//! 0x02 kind u8 compression u8 keyspace u64 key len u16 value len u32 stored len u32
//!                                                              an item, with key and value
//! 0x04 keyspace u64                                            a keyspace is emptied
//! 0x03 checksum u64 "FJL" 0x03                                 the batch ends
//! ```

use super::Fault;
use std::io;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

const BEGIN_LEN: usize = 13;
const ITEM_LEN: usize = 21;
const CLEAR_LEN: usize = 9;
const END_LEN: usize = 13;
const TRAILER: &[u8] = b"FJL\x03";

/// Refuses a folder with damage in a journal before the last.
pub fn check(folder: &Path, advice: &str) -> Result<(), Fault> {
    let failed = |error: io::Error| Fault::Io(error.to_string());
    for path in sealed(folder).map_err(failed)? {
        let bytes = match std::fs::read(&path) {
            // A process that has the folder open may have written its tables and removed the
            // journal.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            bytes => bytes.map_err(failed)?,
        };

        let len = sound_len(&bytes);
        if bytes[len..].iter().any(|byte| *byte != 0) {
            return Err(Fault::Corrupt(format!(
                "{} is damaged behind byte {len}: {advice}",
                path.display()
            )));
        }
    }

    Ok(())
}

/// Cuts the last journal off behind its last sound batch, for a store whose batches are all synced
/// and follow from a log: a power cut leaves any pages of the batch that was being written, and
/// fjall refuses one that has an end and another checksum. What was durable is not lost unnoticed,
/// since the log no longer has what a lost batch included.
pub fn cut_torn(folder: &Path) -> Result<(), Fault> {
    let failed = |error: io::Error| Fault::Io(error.to_string());
    let Some(path) = journals(folder).map_err(failed)?.pop() else {
        return Ok(());
    };
    let bytes = std::fs::read(&path).map_err(failed)?;
    let len = checked_len(&bytes);
    if bytes[len..].iter().all(|byte| *byte == 0) {
        return Ok(());
    }

    tracing::warn!(path = %path.display(), len, "cutting off a batch that was never complete");
    let file = std::fs::OpenOptions::new().write(true).open(&path).map_err(failed)?;
    file.set_len(len as u64).and_then(|()| file.sync_all()).map_err(failed)
}

/// Returns the length of the batches that are whole and match their checksums.
fn checked_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    let mut sound = 0;
    let mut items = None;
    let mut hasher = Xxh3::new();

    while let Some(len) = entry_len(&bytes[at..]) {
        let entry = &bytes[at..at + len];
        at += len;
        match (entry[0], items) {
            (1, None) => {
                let count = entry[1..5].try_into().map_or(0, u32::from_le_bytes);
                (items, hasher) = (Some(count), Xxh3::new());
            }
            (2 | 4, Some(left)) if left > 0 => {
                items = Some(left - 1);
                hasher.update(entry);
            }
            (3, Some(0)) if entry[1..9] == hasher.digest().to_le_bytes() => {
                (items, sound) = (None, at);
            }
            _ => break,
        }
    }

    sound
}

/// The journals before the last, oldest first.
fn sealed(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut journals = journals(folder)?;
    journals.pop();
    Ok(journals)
}

/// All journals, oldest first.
fn journals(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut journals = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".jnl"));
        if let Some(number) = name.and_then(|name| name.parse::<u64>().ok()) {
            journals.push((number, path));
        }
    }

    journals.sort_unstable();
    Ok(journals.into_iter().map(|(_, path)| path).collect())
}

/// Returns the length of the readable batches whose sequences do not go back. fjall verifies the
/// checksums: it refuses a batch whose items have another one.
fn sound_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    let mut sound = 0;
    let mut last = 0;

    while let Some(len) = entry_len(&bytes[at..]) {
        let kind = bytes[at];
        let entry = &bytes[at..at + len];
        at += len;

        match kind {
            1 => {
                let sequence = entry[5..].try_into().map_or(0, u64::from_le_bytes);
                if sequence < last {
                    break;
                }
                last = sequence;
            }
            3 => sound = at,
            _ => {}
        }
    }

    sound
}

/// Returns the length of the entry at the beginning; `None` if there is none.
fn entry_len(bytes: &[u8]) -> Option<usize> {
    let len = match bytes.first()? {
        1 => BEGIN_LEN,
        2 => {
            let key_len = u16::from_le_bytes(bytes.get(11..13)?.try_into().ok()?);
            let stored_len = u32::from_le_bytes(bytes.get(17..21)?.try_into().ok()?);
            ITEM_LEN + usize::from(key_len) + stored_len as usize
        }
        3 if bytes.get(9..END_LEN)? == TRAILER => END_LEN,
        4 => CLEAR_LEN,
        _ => return None,
    };
    (len <= bytes.len()).then_some(len)
}

//! Segments in memory: the keys of tables whose rows have no columns, so that the question whether
//! a subject is in a list costs no read.
//!
//! ```text
//!   first question ──▶ scan of the version ──▶ keys, within a bound for all segments together
//!   change of rows ──▶ the store, then the keys
//! ```
//!
//! A version that does not fit, or has columns, is answered from the store.

use super::keys;
use crate::store::{Fault, Store};
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use raingauge_ports::campaigns::TableRow;
use std::collections::BTreeMap;

/// Bytes that a key takes beside its text, about.
const KEY_BYTES: usize = 40;

/// The segments that are held.
pub struct Segments {
    bytes_max: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// Bytes of all keys.
    bytes: usize,
    versions: HashMap<u64, Version>,
}

/// A version of a table.
enum Version {
    /// It is being read. Whether rows have changed since.
    Reading {
        has_changed: bool,
    },
    Held(Keys),
    /// It has columns, or too many rows.
    Stored,
}

/// The keys of a segment, and their bytes.
#[derive(Default)]
struct Keys {
    keys: HashSet<Box<str>>,
    bytes: usize,
}

fn bytes_of(key: &str) -> usize {
    key.len() + KEY_BYTES
}

impl Segments {
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, held: Mutex::default() }
    }

    /// The rows of keys, if the version is held.
    pub fn get(&self, version: u64, wanted: &[String]) -> Option<Vec<Option<TableRow>>> {
        let held = self.held.lock();
        let Some(Version::Held(found)) = held.versions.get(&version) else { return None };
        let row = |key: &String| found.keys.contains(key.as_str()).then(TableRow::new);
        Some(wanted.iter().map(row).collect())
    }

    /// Reads a version that nobody asked for before, if it fits. One that cannot be read is tried
    /// again by the next question. Blocks the thread.
    pub fn read(&self, store: &Store, version: u64) {
        let room = {
            let mut held = self.held.lock();
            if held.versions.contains_key(&version) {
                return;
            }
            held.versions.insert(version, Version::Reading { has_changed: false });
            self.bytes_max.saturating_sub(held.bytes)
        };

        let found = keys_in(store, version, room);
        let mut held = self.held.lock();
        match (found, held.versions.get(&version)) {
            // What was read may miss a change: the next question begins again.
            (Ok(_), Some(Version::Reading { has_changed: true })) | (Err(_), Some(_)) => {
                held.versions.remove(&version);
            }
            (Ok(Some(found)), Some(_)) if held.bytes + found.bytes <= self.bytes_max => {
                held.bytes += found.bytes;
                held.versions.insert(version, Version::Held(found));
            }
            (Ok(_), Some(_)) => {
                held.versions.insert(version, Version::Stored);
            }
            // It was replaced while it was read.
            (_, None) => {}
        }
    }

    /// Follows a change that the store has.
    pub fn change(&self, version: u64, rows: &BTreeMap<String, Option<TableRow>>) {
        let mut held = self.held.lock();
        let Held { bytes: all, versions } = &mut *held;
        let Keys { keys, bytes } = match versions.get_mut(&version) {
            None | Some(Version::Stored) => return,
            Some(Version::Reading { has_changed }) => {
                *has_changed = true;
                return;
            }
            Some(Version::Held(found)) => found,
        };

        let before = *bytes;
        for (key, row) in rows {
            match row {
                Some(_) if keys.insert(key.as_str().into()) => *bytes += bytes_of(key),
                None if keys.remove(key.as_str()) => *bytes -= bytes_of(key),
                _ => {}
            }
        }
        *all = *all - before + *bytes;
        let has_columns = rows.values().flatten().any(|row| !row.is_empty());
        if has_columns || *all > self.bytes_max {
            *all -= *bytes;
            versions.insert(version, Version::Stored);
        }
    }

    /// Forgets a version that answers nothing any more.
    pub fn forget(&self, version: u64) {
        let mut held = self.held.lock();
        if let Some(Version::Held(found)) = held.versions.remove(&version) {
            held.bytes -= found.bytes;
        }
    }
}

/// The keys of a version; `None` where it has columns, or more than fit.
fn keys_in(store: &Store, version: u64, bytes_max: usize) -> Result<Option<Keys>, Fault> {
    let prefix = keys::rows(version);
    let mut found = Keys::default();
    for guard in store.keyspace.prefix(&prefix) {
        let (key, value) = guard.into_inner()?;
        let malformed = |_| Fault::Corrupt("the key of a row is malformed".to_owned());
        let key = std::str::from_utf8(&key[prefix.len()..]).map_err(malformed)?;
        found.bytes += bytes_of(key);
        if found.bytes > bytes_max || !keys::is_empty_row(&value) {
            return Ok(None);
        }
        found.keys.insert(key.into());
    }
    Ok(Some(found))
}

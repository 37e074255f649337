//! Records of the object store on fjall, version 1.
//!
//! ```text
//! keyspace            key                                   value
//! meta                00 …                                  format and markers of commits
//!                     01                                    position, see `Anchor`
//!                     02 │ due_ms i64 │ generation │ name   nothing: a head that may expire then
//!                     03 │ generation │ id u64              nothing: a dead wide object
//!                     04                                    position of a checkpoint in tables
//!                                                           that may be incomplete
//! heads-GENERATION    01 │ name                             flags u8 │ [expires i64] │ [wide u64]
//!                                                           │ head
//! entries-GENERATION  id u64 │ sub                          value
//!
//! flags   bit 0: expires │ bit 1: wide          generation u32; numbers are big-endian
//! ```
//!
//! A database is a generation of two keyspaces, so that a flush removes files and not records.

use super::tally::Tally;
use bytes::{Buf, Bytes};
use hashbrown::HashMap;
use raingauge_ports::objects::{DATABASES, OBJECT_ENTRY_LEN_MAX};
use std::ops::Range;

/// The number of a generation of keyspaces.
pub type Generation = u32;

/// Databases with the internal one.
pub const DATABASES_LEN: usize = DATABASES as usize + 1;
/// The record of the position.
pub const ANCHOR: &[u8] = &[1];
/// The record of the position of a checkpoint that has begun to write tables.
pub const BEGUN: &[u8] = &[4];
const HEAD: u8 = 1;
const DUE: u8 = 2;
const DEAD: u8 = 3;
/// The flag of a head that expires, in the first byte of its record.
pub const EXPIRES: u8 = 1;
const WIDE: u8 = 2;

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    Meta,
    Heads(Generation),
    Entries(Generation),
}

impl Place {
    /// The name of the keyspace, but for the first, which is that of the store.
    pub fn name(self) -> String {
        match self {
            Self::Meta => "meta".to_owned(),
            Self::Heads(generation) => format!("heads-{generation}"),
            Self::Entries(generation) => format!("entries-{generation}"),
        }
    }

    pub fn of_name(name: &str) -> Option<Self> {
        let (kind, generation) = name.split_once('-')?;
        let generation = generation.parse().ok()?;
        match kind {
            "heads" => Some(Self::Heads(generation)),
            "entries" => Some(Self::Entries(generation)),
            _ => None,
        }
    }

    pub fn generation(self) -> Option<Generation> {
        match self {
            Self::Meta => None,
            Self::Heads(generation) | Self::Entries(generation) => Some(generation),
        }
    }
}

/// A head with what the store knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub bytes: Bytes,
    pub expires_ms: Option<i64>,
    pub wide: Option<u64>,
}

impl Head {
    pub fn tally(&self) -> Tally {
        Tally::of_one(self.expires_ms.is_some())
    }

    /// Appends the record.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let expires = self.expires_ms.map_or(0, |_| EXPIRES);
        bytes.push(expires | self.wide.map_or(0, |_| WIDE));
        if let Some(at_ms) = self.expires_ms {
            bytes.extend_from_slice(&at_ms.to_be_bytes());
        }
        if let Some(id) = self.wide {
            bytes.extend_from_slice(&id.to_be_bytes());
        }
        bytes.extend_from_slice(&self.bytes);
    }

    /// Reads a record; `None` if it is malformed. The head is a part of it, not a copy.
    pub fn decode(mut record: Bytes) -> Option<Self> {
        let flags = record.try_get_u8().ok()?;
        let expires_ms = match flags & EXPIRES {
            0 => None,
            _ => Some(record.try_get_i64().ok()?),
        };
        let wide = match flags & WIDE {
            0 => None,
            _ => Some(record.try_get_u64().ok()?),
        };
        (flags <= EXPIRES | WIDE).then_some(Self { bytes: record, expires_ms, wide })
    }
}

/// What the store includes, written with every checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The stamp of the last group.
    pub stamp: u64,
    /// The smallest number that no wide object has had.
    pub next_id: u64,
    pub next_generation: Generation,
    /// The generation of each database, and how many heads it has.
    pub databases: [(Generation, u64); DATABASES_LEN],
    /// How many heads of each database expire. Records of earlier versions have no such numbers.
    pub expiring: Option<[u64; DATABASES_LEN]>,
}

impl Anchor {
    /// Of an empty store.
    pub fn first() -> Self {
        let mut databases = [(0, 0); DATABASES_LEN];
        for (generation, (database, _)) in (0..).zip(&mut databases) {
            *database = generation;
        }
        Self {
            stamp: 0,
            next_id: 0,
            next_generation: DATABASES_LEN as Generation,
            databases,
            expiring: Some([0; DATABASES_LEN]),
        }
    }

    /// The numbers of heads, none that expires where that is not known.
    pub fn counts(&self) -> HashMap<Generation, Tally> {
        let expiring = self.expiring.unwrap_or_default();
        let databases = self.databases.into_iter().zip(expiring);
        let tally = |((generation, keys), expiring)| {
            (generation, Tally { keys: keys as i64, expiring: expiring as i64 })
        };
        databases.map(tally).collect()
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&self.stamp.to_be_bytes());
        bytes.extend_from_slice(&self.next_id.to_be_bytes());
        bytes.extend_from_slice(&self.next_generation.to_be_bytes());
        for (generation, keys) in self.databases {
            bytes.extend_from_slice(&generation.to_be_bytes());
            bytes.extend_from_slice(&keys.to_be_bytes());
        }
        for keys in self.expiring.into_iter().flatten() {
            bytes.extend_from_slice(&keys.to_be_bytes());
        }
        bytes
    }

    /// Reads the record; `None` if it is malformed.
    pub fn decode(mut record: &[u8]) -> Option<Self> {
        let mut anchor = Self {
            stamp: record.try_get_u64().ok()?,
            next_id: record.try_get_u64().ok()?,
            next_generation: record.try_get_u32().ok()?,
            databases: [(0, 0); DATABASES_LEN],
            expiring: None,
        };
        for (generation, keys) in &mut anchor.databases {
            *generation = record.try_get_u32().ok()?;
            *keys = record.try_get_u64().ok()?;
        }

        if !record.is_empty() {
            let expiring = anchor.expiring.insert([0; DATABASES_LEN]);
            for keys in expiring {
                *keys = record.try_get_u64().ok()?;
            }
        }
        record.is_empty().then_some(anchor)
    }
}

/// A record of the index of expiries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DueKey {
    pub due_ms: i64,
    pub generation: Generation,
    pub name: Bytes,
}

impl DueKey {
    pub fn encode(&self) -> Vec<u8> {
        let mut key = due_from(self.due_ms);
        key.extend_from_slice(&self.generation.to_be_bytes());
        key.extend_from_slice(&self.name);
        key
    }

    pub fn decode(mut key: &[u8]) -> Option<Self> {
        if key.try_get_u8().ok()? != DUE {
            return None;
        }
        let due_ms = (key.try_get_u64().ok()? ^ 1 << 63) as i64;
        let generation = key.try_get_u32().ok()?;
        Some(Self { due_ms, generation, name: Bytes::copy_from_slice(key) })
    }
}

/// The first key of what is due at a time or later. Times before 1970 sort before the others.
fn due_from(due_ms: i64) -> Vec<u8> {
    let mut key = vec![DUE];
    key.extend_from_slice(&(due_ms as u64 ^ 1 << 63).to_be_bytes());
    key
}

/// The index of expiries from a key on, up to a time.
pub fn due_range(from: Option<&DueKey>, until_ms: i64) -> Range<Vec<u8>> {
    let start = from.map_or_else(|| vec![DUE], DueKey::encode);
    let end = match until_ms.checked_add(1) {
        Some(behind) => due_from(behind),
        None => vec![DUE + 1],
    };
    start..end
}

pub fn dead(generation: Generation, id: u64) -> Vec<u8> {
    let mut key = vec![DEAD];
    key.extend_from_slice(&generation.to_be_bytes());
    key.extend_from_slice(&id.to_be_bytes());
    key
}

/// All dead wide objects.
pub fn all_dead() -> Range<Vec<u8>> {
    vec![DEAD]..vec![DEAD + 1]
}

pub fn dead_of(mut key: &[u8]) -> Option<(Generation, u64)> {
    if key.try_get_u8().ok()? != DEAD {
        return None;
    }
    Some((key.try_get_u32().ok()?, key.try_get_u64().ok()?))
}

pub fn entry(id: u64, sub: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(8 + sub.len());
    write_entry(id, sub, &mut key);
    key
}

/// Appends the key of an entry.
pub fn write_entry(id: u64, sub: &[u8], key: &mut Vec<u8>) {
    key.extend_from_slice(&id.to_be_bytes());
    key.extend_from_slice(sub);
}

/// The entries of a wide object, behind a name if one is given.
pub fn entries(id: u64, after: Option<&[u8]>) -> Range<Vec<u8>> {
    let start = match after {
        Some(after) => behind(&entry(id, after)),
        None => entry(id, &[]),
    };
    let end = match id.checked_add(1) {
        Some(next) => entry(next, &[]),
        None => all_entries().end,
    };
    start..end
}

/// The entries of all wide objects.
pub fn all_entries() -> Range<Vec<u8>> {
    entry(0, &[])..vec![0xff; 8 + OBJECT_ENTRY_LEN_MAX + 1]
}

/// The wide object to which the key of an entry belongs.
pub fn id_of(mut key: &[u8]) -> Option<u64> {
    key.try_get_u64().ok()
}

/// The key of a head. It begins with a byte of its own, since fjall has no empty keys.
pub fn head(name: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + name.len());
    write_head(name, &mut key);
    key
}

/// Appends the key of a head.
pub fn write_head(name: &[u8], key: &mut Vec<u8>) {
    key.push(HEAD);
    key.extend_from_slice(name);
}

/// The heads behind a name, up to another one with it.
pub fn heads(after: Option<&[u8]>, until: Option<&[u8]>) -> Range<Vec<u8>> {
    let start = after.map_or_else(|| vec![HEAD], |after| behind(&head(after)));
    let end = until.map_or_else(|| vec![HEAD + 1], |until| behind(&head(until)));
    start..end
}

/// The name in the key of a head.
pub fn name_of(key: &[u8]) -> &[u8] {
    key.get(1..).unwrap_or_default()
}

/// The first key that can follow a key.
fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_lead_back() {
        let anchor = Anchor { stamp: 7, next_id: 9, ..Anchor::first() };
        assert_eq!(Anchor::decode(&anchor.encode()), Some(anchor.clone()));
        assert_eq!(Anchor::decode(&anchor.encode()[1..]), None);
        let earlier = Anchor { expiring: None, ..anchor };
        assert_eq!(Anchor::decode(&earlier.encode()), Some(earlier));

        for (expires_ms, wide) in [(None, None), (Some(-5), None), (Some(5), Some(u64::MAX))] {
            let head = Head { bytes: Bytes::from_static(b"head"), expires_ms, wide };
            let mut record = Vec::new();
            head.write(&mut record);
            assert_eq!(Head::decode(record.into()), Some(head));
        }
        assert_eq!(Head::decode(Bytes::from_static(&[4])), None);
        assert_eq!(Head::decode(Bytes::from_static(&[1, 0])), None);

        for place in [Place::Heads(3), Place::Entries(u32::MAX)] {
            assert_eq!(Place::of_name(&place.name()), Some(place));
        }
        assert_eq!(dead_of(&dead(3, 4)), Some((3, 4)));
    }

    #[test]
    fn due_keys_sort_by_time() {
        let key = |due_ms: i64| DueKey { due_ms, generation: 1, name: Bytes::from_static(b"k") };
        let times = [i64::MIN, -1, 0, 1, 1 << 40, i64::MAX];
        for pair in times.windows(2) {
            assert!(key(pair[0]).encode() < key(pair[1]).encode());
            assert!(due_range(None, pair[0]).contains(&key(pair[0]).encode()));
            assert!(!due_range(None, pair[0]).contains(&key(pair[1]).encode()));
        }
        assert_eq!(DueKey::decode(&key(-9).encode()), Some(key(-9)));
        assert!(due_range(None, i64::MAX).contains(&key(i64::MAX).encode()));
    }

    #[test]
    fn the_entries_of_an_object_are_a_range() {
        for id in [0, 1, u64::MAX] {
            let range = entries(id, None);
            assert!(range.contains(&entry(id, &[])) && range.contains(&entry(id, &[0xff; 40])));
            assert!(!range.contains(&entry(id ^ 1, &[5])));
            assert!(!entries(id, Some(b"a")).contains(&entry(id, b"a")));
            assert!(entries(id, Some(b"a")).contains(&entry(id, b"a\0")));
        }
    }
}

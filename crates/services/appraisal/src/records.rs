//! Records under names, one behind the other in memory, for many more of them than maps hold well:
//! an allocation and a value of its own for each would take several times as much.
//!
//! ```text
//!   length of the name, room, length │ name │ record, up to its room │ the next …
//! ```

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// Bytes in front of a name: three numbers of 32 bits.
const HEADER_LEN: usize = 12;

#[derive(Default)]
pub struct Records {
    /// Where each record begins.
    places: HashTable<usize>,
    bytes: Vec<u8>,
    hasher: DefaultHashBuilder,
}

/// A record as it lies in memory.
struct Slot<'a> {
    name: &'a [u8],
    /// Where the record begins, behind its name.
    begin: usize,
    room: usize,
    len: usize,
}

impl Records {
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let Slot { begin, len, .. } = slot(&self.bytes, self.place(name)?);
        Some(&self.bytes[begin..begin + len])
    }

    /// Puts a record in place of the one that has the name.
    pub fn put(&mut self, name: &str, record: &[u8]) {
        let known = self.place(name);
        let room = match known {
            None => record.len(),
            Some(place) => {
                let Slot { begin, room, .. } = slot(&self.bytes, place);
                if record.len() <= room {
                    let len = &mut self.bytes[place + 8..place + HEADER_LEN];
                    len.copy_from_slice(&number(record.len()));
                    self.bytes[begin..begin + record.len()].copy_from_slice(record);
                    return;
                }
                // What is left behind is never more than what is there, however often one grows.
                record.len() * 2
            }
        };

        let place = self.bytes.len();
        for len in [name.len(), room, record.len()] {
            self.bytes.extend_from_slice(&number(len));
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(record);
        self.bytes.resize(place + HEADER_LEN + name.len() + room, 0);
        self.point(name, known, place);
    }

    /// The bytes of all records and their names.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    fn place(&self, name: &str) -> Option<usize> {
        let hash = self.hasher.hash_one(name.as_bytes());
        let is_same = |place: &usize| slot(&self.bytes, *place).name == name.as_bytes();
        self.places.find(hash, is_same).copied()
    }

    fn point(&mut self, name: &str, known: Option<usize>, place: usize) {
        let Self { places, bytes, hasher } = self;
        let hash = hasher.hash_one(name.as_bytes());
        match known {
            Some(known) => {
                let found = places.find_mut(hash, |other| *other == known);
                *found.expect("it was found before") = place;
            }
            None => {
                let rehash = |other: &usize| hasher.hash_one(slot(bytes, *other).name);
                places.insert_unique(hash, place, rehash);
            }
        }
    }
}

fn number(len: usize) -> [u8; 4] {
    u32::try_from(len).expect("names and records are short").to_le_bytes()
}

fn slot(bytes: &[u8], place: usize) -> Slot<'_> {
    let number = |at: usize| {
        let digits = bytes[at..at + 4].try_into().expect("these are four bytes");
        u32::from_le_bytes(digits) as usize
    };
    let begin = place + HEADER_LEN + number(place);
    Slot {
        name: &bytes[place + HEADER_LEN..begin],
        begin,
        room: number(place + 4),
        len: number(place + 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn records_are_what_was_put_last() {
        let mut records = Records::default();
        let mut expected = BTreeMap::new();
        for step in 0..20_000_usize {
            let name = format!("name {}", step * 7_919 % 1_000);
            let record = vec![step as u8; step * 31 % 90];
            records.put(&name, &record);
            expected.insert(name, record);
        }

        for (name, record) in &expected {
            assert_eq!(records.get(name), Some(&record[..]), "{name}");
        }
        assert_eq!(records.get("name"), None);
    }

    #[test]
    fn what_is_left_behind_is_less_than_what_is_there() {
        let mut records = Records::default();
        for len in 0..5_000 {
            records.put("one", &vec![1; len]);
        }
        assert!(records.bytes_len() < 4 * 5_000, "{}", records.bytes_len());
    }
}

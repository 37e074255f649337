//! Keys of a pipeline, looked for together before its commands run.
//!
//! A key that the processor's caches do not have costs several reads of memory, each of which waits
//! for the one before: the table, the place of the key, its name, its value. Here each step is done
//! for many keys before the next one, so that their reads overlap.

use super::slot::Slots;
use indexmap::map::RawEntryApiV1 as _;
use raingauge_values::Value;
use smallvec::SmallVec;
use std::hash::BuildHasher as _;
use std::hint::black_box;

/// Names that are looked for together. What is read for them fits into the nearest cache.
pub(crate) const PREFETCH_LEN: usize = 32;
/// Places that names may have: a few times as many, since two names may want the same one.
const PLACES: usize = 4 * PREFETCH_LEN;

/// Where keys are supposed to be, by the addresses of their names in the pipeline.
pub(super) struct Prefetched {
    /// The index of a key and one more; 0 for none.
    places: [u32; PLACES],
    database: u8,
    is_empty: bool,
}

impl Default for Prefetched {
    fn default() -> Self {
        Self { places: [0; PLACES], database: 0, is_empty: true }
    }
}

impl Prefetched {
    /// Looks for keys that commands are about to use.
    pub(super) fn look_for(&mut self, database: u8, slots: &Slots, names: &[&[u8]]) {
        self.clear();
        self.database = database;

        let mut found: SmallVec<[usize; PREFETCH_LEN]> = SmallVec::new();
        for name in names {
            // The first one that may be the key: whether it is, is compared when it is used.
            let hash = slots.hasher().hash_one(*name);
            if let Some(index) = slots.raw_entry_v1().index_from_hash(hash, |_| true) {
                self.note(name, index);
                found.push(index);
            }
        }
        black_box(read_slots(slots, &found));
        black_box(read_values(slots, &found));
    }

    /// Where a key is, if it was looked for and is still there.
    pub(super) fn find(&self, database: u8, slots: &Slots, name: &[u8]) -> Option<usize> {
        if self.is_empty || self.database != database {
            return None;
        }
        let index = (self.places[Self::place(name)] as usize).checked_sub(1)?;
        let (key, _) = slots.get_index(index)?;
        (key == name).then_some(index)
    }

    pub(super) fn clear(&mut self) {
        if !self.is_empty {
            *self = Self::default();
        }
    }

    fn note(&mut self, name: &[u8], index: usize) {
        self.places[Self::place(name)] = u32::try_from(index + 1).unwrap_or_default();
        self.is_empty = false;
    }

    fn place(name: &[u8]) -> usize {
        (name.as_ptr().addr() >> 3) % PLACES
    }
}

/// Reads what lies at places of the table.
fn read_slots(slots: &Slots, indices: &[usize]) -> u64 {
    let read = |index: &usize| {
        let (name, slot) = slots.get_index(*index)?;
        let is_there = slot.object.is_some();
        Some(name.len() as u64 ^ slot.stamp ^ slot.touched_by ^ u64::from(is_there))
    };
    indices.iter().filter_map(read).fold(0, |sum, read| sum ^ read)
}

/// Reads the beginnings of names and strings.
fn read_values(slots: &Slots, indices: &[usize]) -> u8 {
    let read = |index: &usize| {
        let (name, slot) = slots.get_index(*index)?;
        let value = match slot.object.as_ref().map(|object| &object.value) {
            Some(Value::Text(text)) => text.first_of_buffer(),
            _ => None,
        };
        Some(name.first()? ^ value.unwrap_or_default())
    };
    indices.iter().filter_map(read).fold(0, |sum, read| sum ^ read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::slot::Slot;
    use bytes::Bytes;
    use raingauge_ports::objects::Old;

    fn slots(names: &[&[u8]]) -> Slots {
        let slot =
            |name: &&[u8]| (Bytes::copy_from_slice(name), Slot::new(None, Old::Absent, 0, 0));
        names.iter().map(slot).collect()
    }

    #[test]
    fn keys_are_where_they_were_looked_for() {
        let names: Vec<String> = (0..PREFETCH_LEN).map(|number| format!("key {number}")).collect();
        let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        let slots = slots(&names);
        let mut prefetched = Prefetched::default();
        prefetched.look_for(3, &slots, &names);

        let found: Vec<_> = names.iter().map(|name| prefetched.find(3, &slots, name)).collect();
        assert!(found.iter().flatten().count() > PREFETCH_LEN / 2, "{found:?}");
        for (index, found) in found.iter().enumerate() {
            assert!(found.is_none_or(|found| found == index), "{found:?} for {index}");
        }
        assert_eq!(prefetched.find(0, &slots, names[0]), None, "of another database");
        prefetched.clear();
        assert_eq!(prefetched.find(3, &slots, names[0]), None);
    }

    #[test]
    fn another_key_in_its_place_is_not_taken_for_it() {
        let mut name = *b"a";
        let mut slots = slots(&[b"a", b"b"]);
        let mut prefetched = Prefetched::default();
        prefetched.look_for(0, &slots, &[&name]);
        assert_eq!(prefetched.find(0, &slots, &name), Some(0));

        // The name of another command may come to lie in the same place.
        name[0] = b'c';
        assert_eq!(prefetched.find(0, &slots, &name), None);
        name[0] = b'a';
        slots.swap_remove(&name[..]);
        assert_eq!(prefetched.find(0, &slots, &name), None, "the key b is there");
        slots.clear();
        assert_eq!(prefetched.find(0, &slots, &name), None);
    }
}

//! Eviction: what was used once makes room for what is used again, as S3-FIFO does
//! (Yang et al., *FIFO queues are all you need for cache eviction*, SOSP 2023).
//!
//! A key that becomes resident is on *probation*. While keys on probation take more than a tenth of
//! the memory, the one that came first leaves it: it stays resident if it was used in the meantime,
//! and is evicted if not. A hand passes over the keys that stayed: it takes a use from each, and
//! evicts one that has none left. A key that comes back soon after it was evicted from probation is
//! not put on probation again.
//!
//! Everything that was submitted is in the store, so any key may go at the end of a hold. Its
//! stamp stays behind, with its shard, until the key is loaded again.

use super::{DATABASES, Database, Keyspace, Place, Slot};
use indexmap::map::RawEntryApiV1 as _;
use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasher as _;

/// Uses of a key that count at most.
const USES_MAX: i8 = 3;
/// The part of the memory that keys on probation may take.
const PROBATION_SHARE: usize = 10;
/// Hashes that are remembered, at least.
const GONE_MIN: usize = 1_024;

/// Keys of a database on probation.
#[derive(Default)]
pub(super) struct Probation {
    /// Their hashes in the order in which they came, and of some that are no longer there.
    hashes: VecDeque<u64>,
    /// Bytes that they take.
    pub bytes: usize,
}

/// Hashes of keys that went from probation. One that is remembered later may overwrite another.
#[derive(Default)]
pub(super) struct Gone {
    /// The upper half of a hash, and how many had gone when it went; 0 for none.
    places: Box<[(u32, u32)]>,
    count: u32,
}

impl Gone {
    fn place(&mut self, hash: u64) -> &mut (u32, u32) {
        let place = hash as usize & (self.places.len() - 1);
        &mut self.places[place]
    }

    /// Remembers a key, where `resident` keys are in memory.
    fn remember(&mut self, hash: u64, resident: usize) {
        let len = resident.max(GONE_MIN).next_power_of_two();
        if self.places.len() < len {
            self.places = vec![(0, 0); len].into_boxed_slice();
        }
        self.count = self.count.wrapping_add(1).max(1);
        *self.place(hash) = ((hash >> 32) as u32, self.count);
    }

    /// Whether a key is among the last `resident` ones that went. It is forgotten.
    fn recall(&mut self, hash: u64, resident: usize) -> bool {
        if self.places.is_empty() {
            return false;
        }

        let count = self.count;
        let place = self.place(hash);
        let (tag, went) = *place;
        if went == 0 || tag != (hash >> 32) as u32 {
            return false;
        }
        *place = (0, 0);
        count.wrapping_sub(went) as usize <= resident
    }
}

impl Slot {
    /// Counts a use.
    pub(super) fn count_use(&mut self) {
        self.uses = USES_MAX.min(self.uses + 1);
    }
}

impl Database {
    fn resident(&self, hash: u64) -> Option<usize> {
        let slots = &self.slots;
        slots.raw_entry_v1().index_from_hash(hash, |name| slots.hasher().hash_one(name) == hash)
    }

    /// Puts a key on probation, unless it left it a short time ago.
    pub(super) fn try_out(&mut self, index: usize, gone: &mut Gone) {
        let resident = self.slots.len();
        let Some((name, slot)) = self.slots.get_index(index) else { return };
        let hash = self.slots.hasher().hash_one(name);
        let bytes = slot.weight;
        if gone.recall(hash, resident) {
            return;
        }

        self.slots[index].is_on_probation = true;
        self.probation.bytes += bytes;
        // Keys that a refused group removed leave their hashes behind, and may come again.
        if self.probation.hashes.len() > 2 * resident {
            let mut hashes = std::mem::take(&mut self.probation.hashes);
            let mut known = HashSet::with_capacity(resident);
            hashes.retain(|hash| self.resident(*hash).is_some() && known.insert(*hash));
            self.probation.hashes = hashes;
        }
        self.probation.hashes.push_back(hash);
    }

    /// Ends the probation of the key that came first, and returns where it is if it is to go.
    fn end_probation(&mut self, gone: &mut Gone) -> Option<usize> {
        let Some(hash) = self.probation.hashes.pop_front() else {
            self.stop_probation();
            return None;
        };
        let index = self.resident(hash)?;
        let resident = self.slots.len();
        let slot = &mut self.slots[index];
        if !std::mem::take(&mut slot.is_on_probation) {
            return None;
        }

        self.probation.bytes -= slot.weight;
        if slot.uses > 0 {
            slot.uses = 0;
            return None;
        }
        gone.remember(hash, resident);
        Some(index)
    }

    /// Ends the probation of all keys at once. Were bytes left when no key is, eviction would look
    /// for that key for ever.
    fn stop_probation(&mut self) {
        self.probation.bytes = 0;
        self.slots.values_mut().for_each(|slot| slot.is_on_probation = false);
    }
}

impl Keyspace {
    /// Evicts keys until the resident ones fit into their memory, and returns what went, to be
    /// dropped without the lock. `durable` is the stamp up to which nothing needs to be remembered.
    pub(crate) fn evict(&mut self, durable: u64) -> Vec<Slot> {
        let mut evicted = std::mem::take(&mut self.dropped);
        while self.resident_bytes > self.resident_bytes_max && !self.is_empty() {
            let Some(Place { database, index }) = self.next_to_go() else { continue };
            let slots = &mut self.databases[usize::from(database)].slots;
            let Some((name, slot)) = slots.swap_remove_index(index) else { continue };
            self.resident_bytes -= slot.weight;
            self.totals.evicted += 1;
            if slot.stamp > durable {
                self.shards.keep_stamp(database, &name, slot.stamp);
            }
            evicted.push(slot);
        }

        self.totals.resident_bytes = self.resident_bytes as u64;
        self.totals.resident = self.databases.iter().map(|one| one.slots.len() as u64).sum();
        self.shared.counters.publish(&self.totals);
        evicted
    }

    /// Bytes of the memory of resident keys that they leave free.
    pub(crate) fn free_bytes(&self) -> usize {
        self.resident_bytes_max.saturating_sub(self.resident_bytes)
    }

    fn is_empty(&self) -> bool {
        self.databases.iter().all(|database| database.slots.is_empty())
    }

    /// Looks at one key. Returns where it is if it is to go; it is no longer on probation.
    fn next_to_go(&mut self) -> Option<Place> {
        let on_probation: usize = self.databases.iter().map(|one| one.probation.bytes).sum();
        if on_probation > self.resident_bytes_max / PROBATION_SHARE {
            // What the databases have on probation goes by how much each of them brings.
            let databases = self.databases.iter_mut().zip(0_u8..);
            let (most, database) = databases.max_by_key(|(one, _)| one.probation.bytes)?;
            let index = most.end_probation(&mut self.gone)?;
            return Some(Place { database, index });
        }

        let (database, index) = self.hand;
        let Some((_, slot)) = self.databases[database].slots.get_index_mut(index) else {
            self.hand = ((database + 1) % DATABASES, 0);
            return None;
        };
        // Where a key is evicted, the last one comes into its place, which is new.
        self.hand.1 += 1;
        if slot.is_on_probation {
            return None;
        }
        if slot.uses > 0 {
            slot.uses -= 1;
            return None;
        }
        Some(Place { database: database as u8, index })
    }

    /// The sums of the weights of all resident keys, and of those on probation.
    #[cfg(test)]
    pub(crate) fn check_weights(&self) {
        let sum =
            |slots: &mut dyn Iterator<Item = &Slot>| slots.map(|slot| slot.weight).sum::<usize>();
        for Database { slots, probation, .. } in &self.databases {
            let on_probation = sum(&mut slots.values().filter(|slot| slot.is_on_probation));
            assert_eq!(probation.bytes, on_probation);
        }
        let all = sum(&mut self.databases.iter().flat_map(|database| database.slots.values()));
        assert_eq!(self.resident_bytes, all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use raingauge_ports::objects::Old;

    /// A defect of the accounting may cost memory, but does not stop all clients.
    #[test]
    fn eviction_ends_although_bytes_are_left_on_probation() {
        let options = crate::Options::of_memory(1_000);
        let mut keyspace = Keyspace::new(crate::keyspace::Shared::default(), &options, 1);
        for number in 0..10 {
            keyspace.add_blind(0, format!("key {number}").as_bytes());
        }
        assert!(keyspace.resident_bytes > 1_000);
        keyspace.databases[0].probation.hashes.clear();

        let looks = (0..100).filter_map(|_| keyspace.next_to_go()).count();
        assert!(looks > 0, "nothing can be evicted");
        keyspace.evict(0);
        assert!(keyspace.resident_bytes <= 1_000);
        keyspace.check_weights();
    }

    /// While a disk is full, the store refuses what a client sends again and again.
    #[test]
    fn keys_that_come_and_go_leave_nothing_behind() {
        let mut database = Database::default();
        let mut gone = Gone::default();
        for _ in 0..1_000 {
            for name in ["a", "b"] {
                let slot = Slot::new(None, Old::Absent, 0, 0);
                let (index, _) =
                    database.slots.insert_full(Bytes::from_static(name.as_bytes()), slot);
                database.try_out(index, &mut gone);
            }
            database.slots.clear();
        }
        assert!(database.probation.hashes.len() <= 5, "{}", database.probation.hashes.len());
    }
}

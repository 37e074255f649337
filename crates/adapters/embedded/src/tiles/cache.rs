//! One part of the cache: records of keys, each with what is cached about its tiles.
//!
//! A record is found by the hash of its key. Records that have not been used since the clock's hand
//! last passed make room for others; one with changes stays until they are committed.

use super::places::Places;
use hashbrown::HashTable;
use raingauge_core::plan::Plan;
use raingauge_core::tile::Tile;
use raingauge_core::tile::id::{self, TileId};
use raingauge_ports::buckets::{Generation, Sum};
use smallvec::SmallVec;
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Allocations are rounded up to this many bytes.
const ROUNDED_TO: usize = 16;
/// Steps of the clock's hand for one change or sum, so that neither waits for a walk over all
/// records.
const SHRINK_STEPS: usize = 64;
/// A key of at most this length is stored inside its record, where comparing it needs no further
/// memory access.
const KEY_INLINE_LEN: usize = 24;
/// Fewest records by which the list of records grows.
const RECORDS_MIN: usize = 16;

pub struct Shard {
    table: HashTable<u32>,
    records: Vec<Record>,
    free: Vec<u32>,
    /// Tiles that changed since the last commit.
    changed: Vec<(u32, TileId)>,
    /// Heap bytes of the keys and of their slots.
    heap_bytes: usize,
    bytes_max: usize,
    hand: usize,
    evictions: u64,
}

#[derive(Default)]
struct Record {
    hash: u64,
    generation: Generation,
    /// Set by use, cleared by the clock's hand.
    used: bool,
    /// Number of this record's tiles in the shard's list of changes.
    changes: u32,
    /// A text.
    key: SmallVec<[u8; KEY_INLINE_LEN]>,
    /// The cached tiles, in the order of their ids.
    slots: Vec<Slot>,
    places: Places,
}

/// What is cached about one tile.
struct Slot {
    /// `None` if the tile is known not to exist.
    tile: Option<Tile>,
    id: TileId,
    changed: bool,
}

impl Slot {
    fn heap_bytes(&self) -> usize {
        self.tile.as_ref().map_or(0, |tile| rounded(tile.heap_len()))
    }
}

impl Record {
    /// The index of a tile, or where it would be inserted.
    #[inline]
    fn position(&self, id: TileId) -> Result<usize, usize> {
        let found = self.places.of(id, self.slots.len());
        found.unwrap_or_else(|| self.slots.binary_search_by_key(&id, |slot| slot.id))
    }

    fn slot(&self, id: TileId) -> Option<&Slot> {
        self.position(id).ok().map(|at| &self.slots[at])
    }

    /// Bytes of the list itself, without the heap memory of the tiles.
    fn list_bytes(&self) -> usize {
        rounded(self.slots.capacity() * size_of::<Slot>())
    }

    fn key(&self) -> &str {
        std::str::from_utf8(&self.key).unwrap_or_else(|_| unreachable!("keys come as texts"))
    }

    fn key_heap_bytes(&self) -> usize {
        if self.key.spilled() { rounded(self.key.capacity()) } else { 0 }
    }

    fn heap_bytes(&self) -> usize {
        self.key_heap_bytes()
            + self.list_bytes()
            + self.slots.iter().map(Slot::heap_bytes).sum::<usize>()
    }
}

/// Memory taken by an allocation of `len` bytes.
fn rounded(len: usize) -> usize {
    len.next_multiple_of(ROUNDED_TO)
}

/// Makes room for one more element, in smaller steps than a vector takes by itself.
fn reserve_one<T>(list: &mut Vec<T>, least: usize, divisor: usize) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / divisor).max(least));
    }
}

/// The hash of a key of a generation.
pub fn hash(generation: Generation, key: &str) -> u64 {
    xxh3_64_with_seed(key.as_bytes(), generation.into())
}

impl Shard {
    pub fn new(bytes_max: usize) -> Self {
        Self {
            table: HashTable::new(),
            records: Vec::new(),
            free: Vec::new(),
            changed: Vec::new(),
            heap_bytes: 0,
            bytes_max,
            hand: 0,
            evictions: 0,
        }
    }

    /// Memory used by the shard, including the spare capacity of its lists.
    pub fn bytes(&self) -> usize {
        self.heap_bytes
            + self.records.capacity() * size_of::<Record>()
            + self.table.allocation_size()
            + self.free.capacity() * size_of::<u32>()
            + self.changed.capacity() * size_of::<(u32, TileId)>()
    }

    /// Number of records evicted so far.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Returns the record of a key, if there is one.
    pub fn find(&mut self, hash: u64, generation: Generation, key: &str) -> Option<usize> {
        let records = &self.records;
        let is_it = |index: &u32| {
            let record = &records[*index as usize];
            record.hash == hash
                && record.generation == generation
                && record.key[..] == *key.as_bytes()
        };

        let index = *self.table.find(hash, is_it)? as usize;
        let record = &mut self.records[index];

        // Written only when it changes, so that other processors keep their copy of the cache line.
        if !record.used {
            record.used = true;
        }
        Some(index)
    }

    /// Returns the record of a key, which is created if there is none.
    pub fn record(&mut self, hash: u64, generation: Generation, key: &str) -> usize {
        if let Some(index) = self.find(hash, generation, key) {
            return index;
        }
        let key = SmallVec::from_slice(key.as_bytes());
        let record = Record { hash, generation, used: true, key, ..Record::default() };
        self.heap_bytes += record.heap_bytes();

        let index = match self.free.pop() {
            Some(index) => {
                self.records[index as usize] = record;
                index
            }
            None => {
                reserve_one(&mut self.records, RECORDS_MIN, 4);
                self.records.push(record);
                (self.records.len() - 1) as u32
            }
        };

        let records = &self.records;
        self.table.insert_unique(hash, index, |index| records[*index as usize].hash);
        index as usize
    }

    /// Returns those of `ids` that have not been loaded yet.
    pub fn missing(&self, record: usize, ids: &[TileId]) -> Vec<TileId> {
        ids.iter().copied().filter(|id| self.records[record].slot(*id).is_none()).collect()
    }

    /// Stores what was read from disk, unless the tile is cached already.
    pub fn fill(&mut self, record: usize, id: TileId, tile: Option<Tile>) {
        let record = &mut self.records[record];
        if let Err(at) = record.position(id) {
            let slot = Slot { tile, id, changed: false };
            let before = record.list_bytes();
            reserve_one(&mut record.slots, 2, 2);
            self.heap_bytes += record.list_bytes() - before + slot.heap_bytes();
            record.slots.insert(at, slot);
            record.places.insert(id);
        }
    }

    /// The cached tiles of a record.
    pub fn tiles_of(&self, record: usize) -> Vec<TileId> {
        self.records[record].slots.iter().map(|slot| slot.id).collect()
    }

    /// Returns a tile that has been loaded.
    pub fn tile(&self, record: usize, id: TileId) -> Option<&Tile> {
        self.records[record].slot(id)?.tile.as_ref()
    }

    /// Changes a tile that has been loaded. Returns how many additional bytes stay in memory until
    /// they are committed.
    pub fn change(&mut self, index: usize, id: TileId, change: impl FnOnce(&mut Tile)) -> usize {
        let record = &mut self.records[index];
        let Ok(at) = record.position(id) else {
            unreachable!("only a tile that was loaded is changed")
        };
        let slot = &mut record.slots[at];
        let before = slot.heap_bytes();

        change(slot.tile.get_or_insert_default());
        let after = slot.heap_bytes();
        self.heap_bytes = self.heap_bytes + after - before;

        if slot.changed {
            return after.saturating_sub(before);
        }

        slot.changed = true;
        let mut kept = size_of::<Slot>() + size_of::<(u32, TileId)>() + after;
        if record.changes == 0 {
            kept += size_of::<Record>() + record.key_heap_bytes();
        }
        record.changes += 1;
        self.changed.push((index as u32, id));

        kept
    }

    /// Returns the sum of a range; `None` if a tile it needs has not been loaded.
    #[inline]
    pub fn sum(&mut self, record: usize, plan: &Plan) -> Option<Sum> {
        let record = &self.records[record];
        let mut sum = 0;
        for id in id::spans(plan) {
            if let Some(tile) = &record.slot(id)?.tile {
                let day = 86_400;
                match tile.sum(
                    id.days_within(i64::from(plan.day_first) * day, i64::from(plan.day_end) * day),
                ) {
                    Ok(part) => sum += part,
                    Err(overflow) => return Some(Err(overflow)),
                }
            }
        }

        for edge in plan.edges.iter().flatten() {
            if let Some(tile) = &record.slot(TileId::day(edge.day))?.tile {
                for run in edge.runs {
                    match tile.sum(run) {
                        Ok(part) => sum += part,
                        Err(overflow) => return Some(Err(overflow)),
                    }
                }
            }
        }

        Some(Ok(sum))
    }

    /// Calls `show` for every tile that changed since the last commit.
    pub fn each_changed(&self, mut show: impl FnMut(Generation, &str, TileId, &Tile)) {
        for (index, id) in &self.changed {
            let record = &self.records[*index as usize];
            if let Some(tile) = self.tile(*index as usize, *id) {
                show(record.generation, record.key(), *id, tile);
            }
        }
    }

    /// Copies the spans of a generation that changed since the last commit.
    pub fn changed_spans(
        &self,
        generation: Generation,
        spans: &mut HashMap<(String, TileId), Tile>,
    ) {
        self.each_changed(|of, key, id, tile| {
            if of == generation && id.is_span() {
                spans.insert((key.to_owned(), id), tile.clone());
            }
        });
    }

    /// Notes that all changes were committed.
    pub fn settle(&mut self) {
        for (index, id) in std::mem::take(&mut self.changed) {
            let record = &mut self.records[index as usize];
            record.changes -= 1;

            if let Ok(at) = record.position(id) {
                let slot = &mut record.slots[at];
                slot.changed = false;

                if slot.tile.as_ref().is_some_and(Tile::is_empty) {
                    self.heap_bytes -= slot.heap_bytes();
                    slot.tile = None;
                }
            }
        }
        self.shrink_within(2 * self.records.len());
    }

    /// Evicts a few records if the shard has outgrown its bytes, as far as changes allow.
    pub fn shrink(&mut self) {
        self.shrink_within(SHRINK_STEPS);
    }

    /// Evicts records until the shard fits its bytes again, or the clock's hand has moved `steps`
    /// steps.
    fn shrink_within(&mut self, mut steps: usize) {
        while self.bytes() > self.bytes_max && steps > 0 && !self.records.is_empty() {
            steps -= 1;
            self.hand = (self.hand + 1) % self.records.len();
            let record = &mut self.records[self.hand];
            if record.changes > 0 || record.key.is_empty() && record.slots.is_empty() {
                continue;
            }
            if std::mem::take(&mut record.used) {
                continue;
            }
            self.evict(self.hand);
        }
    }

    fn evict(&mut self, index: usize) {
        let record = std::mem::take(&mut self.records[index]);
        self.heap_bytes -= record.heap_bytes();
        if let Ok(entry) = self.table.find_entry(record.hash, |found| *found as usize == index) {
            entry.remove();
        }
        self.free.push(index as u32);
        self.evictions += 1;
    }
}

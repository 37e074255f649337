//! A partition's tiles in memory.
//!
//! Records lie in a slab, indexed by generation and key. A commit takes out only the changed
//! records, reads back and writes their tiles, and puts them back.

use super::ttl::{self, Now};
use hashbrown::{DefaultHashBuilder, HashTable};
use raingauge_core::bucket::Granularity;
use raingauge_core::retention::Horizons;
use raingauge_core::tile::Tile;
use raingauge_core::tile::id::TileId;
use raingauge_ports::buckets::Generation;
use raingauge_ports::log::Offset;
use std::hash::BuildHasher;

/// One log entry's change to a tile.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub offset: Offset,
    pub stamp_us: i64,
    pub change: Change,
}

#[derive(Clone, Copy, Debug)]
pub enum Change {
    Add { cells: [Option<u8>; 2], value: i64 },
    Set { cell: u8, count: i64 },
}

/// A tile of a key.
#[derive(Debug)]
pub struct Slot {
    pub id: TileId,
    pub tile: Tile,
    /// The stored tile includes entries before this offset; `None` until it has been read back.
    pub stored: Option<Offset>,
    /// The tile includes entries before this offset.
    pub included: Offset,
    /// Stamp of the last included entry.
    pub stamp_us: i64,
    /// Cells that changed since the tile was written.
    pub changed: u128,
    /// Entries were skipped that another process had counted, perhaps without publishing the tile.
    pub is_foreign: bool,
    /// The horizons when the tile's last event was counted.
    pub horizons: Horizons,
    /// Changes to apply once the tile has been read back.
    pending: Vec<Op>,
}

impl Slot {
    pub fn new(id: TileId) -> Self {
        Self {
            id,
            tile: Tile::default(),
            stored: None,
            included: 0,
            stamp_us: 0,
            changed: 0,
            is_foreign: false,
            horizons: Horizons::default(),
            pending: Vec::new(),
        }
    }

    fn apply(&mut self, op: Op) {
        let Op { offset, stamp_us, change } = op;
        if self.stored.is_some_and(|stored| offset < stored) {
            self.is_foreign = true;

            if offset + 1 == self.included {
                self.stamp_us = stamp_us;
            }
            return;
        }

        match change {
            Change::Add { cells, value } => {
                for cell in cells.into_iter().flatten() {
                    self.tile.add(cell, value);
                    self.changed |= 1 << cell;
                }
            }
            Change::Set { cell, count } => {
                self.tile.set(cell, count);
                self.changed |= 1 << cell;
            }
        }

        (self.included, self.stamp_us) = (offset + 1, stamp_us);
    }

    /// Sets the tile to what was stored, if anything.
    pub fn fill(&mut self, stored: Option<(Offset, Tile)>) {
        let (included, tile) = stored.unwrap_or_default();
        (self.tile, self.included, self.stored) = (tile, included, Some(included));
        for op in std::mem::take(&mut self.pending) {
            self.apply(op);
        }
    }

    /// Whether the tile must be written or published.
    pub fn is_due(&self) -> bool {
        self.changed != 0 || self.is_foreign
    }

    /// Whether the tile must be written to the list: it changed, or another process stored it and
    /// the list may be older, as after a restore. Its stamp is known once the last of its entries
    /// has been read.
    pub fn is_to_be_listed(&self) -> bool {
        self.id.is_span() && (self.changed != 0 || (self.is_foreign && self.stamp_us != 0))
    }

    /// The tile's time to live: that of its newest bucket. A day tile lives as long as its hours,
    /// which are kept at least as long as its quarter hours.
    pub fn ttl_s(&self, wall_s: i64) -> i32 {
        let (granularity, newest_s) = newest_of(self.id, &self.tile);
        self.ttl_of_bucket_s(granularity, newest_s, wall_s)
    }

    /// The time to live of one of the tile's buckets.
    pub fn ttl_of_bucket_s(&self, granularity: Granularity, time_s: i64, wall_s: i64) -> i32 {
        let now = Now { stamp_s: self.stamp_us.div_euclid(1_000_000), wall_s };
        ttl::ttl_s(time_s, self.horizons.of(granularity), now)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.tile.heap_len() + self.pending.capacity() * size_of::<Op>()
    }
}

/// The granularity that decides a tile's time to live, and the start of its newest bucket.
pub fn newest_of(id: TileId, tile: &Tile) -> (Granularity, i64) {
    if !id.is_span() {
        return (Granularity::Hour, id.bucket_of(0).1);
    }
    let newest = tile.cells().last().map_or(0, |(cell, _)| cell);
    (Granularity::Day, id.bucket_of(newest).1)
}

/// The tiles of a key.
#[derive(Debug, Default)]
pub struct Record {
    pub generation: Generation,
    pub key: Box<str>,
    pub slots: Vec<Slot>,
    /// Whether this process has listed the key.
    pub is_noted: bool,
    /// Number of the commit before which it was last used.
    used: u32,
    is_changed: bool,
    /// Its size when sizes were last added up.
    bytes: usize,
}

impl Record {
    fn slot(&mut self, id: TileId) -> &mut Slot {
        let index = self.slots.iter().position(|slot| slot.id == id).unwrap_or_else(|| {
            self.slots.push(Slot::new(id));
            self.slots.len() - 1
        });
        &mut self.slots[index]
    }

    /// Whether the store held no span of it, so that the key may be new to its counter.
    pub fn is_new(&self) -> bool {
        !self.is_noted && self.slots.iter().any(|slot| slot.id.is_span() && slot.stored == Some(0))
    }

    fn is_settled(&self) -> bool {
        self.slots.iter().all(|slot| !slot.is_due() && slot.pending.is_empty())
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.key.len() + self.slots.iter().map(Slot::bytes).sum::<usize>()
    }
}

/// The tiles of recently counted keys.
pub struct Tiles {
    /// Places of the records, by generation and key.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    records: Vec<Record>,
    free: Vec<u32>,
    /// Records changed since the last commit, each once.
    changed_records: Vec<u32>,
    bytes: usize,
    bytes_max: usize,
    commits: u32,
    changed: usize,
    pending: usize,
}

impl Tiles {
    pub fn new(bytes_max: usize) -> Self {
        Self {
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            records: Vec::new(),
            free: Vec::new(),
            changed_records: Vec::new(),
            bytes: 0,
            bytes_max,
            commits: 0,
            changed: 0,
            pending: 0,
        }
    }

    /// Returns the place of a key, creating its record if necessary.
    pub fn place(&mut self, generation: Generation, key: &str) -> u32 {
        let hash = self.hasher.hash_one((generation, key));
        let is_it = |place: &u32| {
            let record = &self.records[*place as usize];
            record.generation == generation && *record.key == *key
        };
        if let Some(place) = self.index.find(hash, is_it) {
            return *place;
        }

        let record = Record { generation, key: key.into(), ..Record::default() };
        let place = match self.free.pop() {
            Some(place) => {
                self.records[place as usize] = record;
                place
            }
            None => {
                self.records.push(record);
                self.records.len() as u32 - 1
            }
        };

        let records = &self.records;
        let hasher = &self.hasher;
        self.index.insert_unique(hash, place, |place| hash_of(hasher, &records[*place as usize]));

        place
    }

    /// Changes a tile, now or once it has been read back. `horizons` are those of a counted event.
    pub fn change(&mut self, place: u32, id: TileId, op: Op, horizons: Option<&Horizons>) {
        let record = &mut self.records[place as usize];
        record.used = self.commits;

        if !std::mem::replace(&mut record.is_changed, true) {
            self.changed_records.push(place);
        }

        let slot = record.slot(id);
        if let Some(horizons) = horizons {
            slot.horizons = *horizons;
        }

        if slot.stored.is_none() {
            slot.pending.push(op);
            self.pending += 1;
            return;
        }

        let was_changed = slot.changed != 0;
        slot.apply(op);
        self.changed += usize::from(!was_changed && slot.changed != 0);
    }

    /// Number of tiles to write that have been read back.
    pub fn changed(&self) -> usize {
        self.changed
    }

    /// Number of changes that wait for their tile.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Takes out the records changed since the last commit, with their places.
    pub fn take_changed(&mut self) -> Vec<(u32, Record)> {
        (self.changed, self.pending) = (0, 0);
        let places = std::mem::take(&mut self.changed_records);
        places
            .into_iter()
            .map(|place| (place, std::mem::take(&mut self.records[place as usize])))
            .collect()
    }

    /// Puts records back, keeping changes that could not be written.
    pub fn put_back(&mut self, taken: Vec<(u32, Record)>) {
        for (place, mut record) in taken {
            record.is_changed = !record.is_settled();

            if record.is_changed {
                self.changed_records.push(place);
                self.pending += record.slots.iter().map(|slot| slot.pending.len()).sum::<usize>();
                self.changed += record.slots.iter().filter(|slot| slot.changed != 0).count();
            }

            let bytes = record.bytes();
            self.bytes = self.bytes - record.bytes + bytes;
            record.bytes = bytes;
            self.records[place as usize] = record;
        }
    }

    /// Drops a key with its unwritten changes. Returns the spans that it had.
    pub fn drop_key(&mut self, generation: Generation, key: &str) -> Vec<TileId> {
        let mut spans = Vec::new();
        self.retain(|record| {
            let stays = record.generation != generation || *record.key != *key;
            if !stays {
                spans.extend(record.slots.iter().map(|slot| slot.id).filter(|id| id.is_span()));
            }
            stays
        });
        spans
    }

    /// Extends the retention of a generation's buckets.
    pub fn keep_longer(&mut self, generation: Generation, horizons: &Horizons) {
        for place in self.index.iter() {
            let record = &mut self.records[*place as usize];
            if record.generation == generation {
                record
                    .slots
                    .iter_mut()
                    .for_each(|slot| slot.horizons = slot.horizons.min(*horizons));
            }
        }
    }

    /// Drops the tiles of a generation.
    pub fn forget(&mut self, generation: Generation) {
        self.retain(|record| record.generation != generation);
    }

    /// Drops the keys that were not counted for longest, until a quarter of the memory is free
    /// again.
    pub fn shrink(&mut self) {
        self.commits += 1;
        metrics::gauge!("raingauge_cql_writer_cache_bytes").set(self.bytes as f64);

        if self.bytes <= self.bytes_max || self.index.is_empty() {
            return;
        }

        let mut ages: Vec<u32> =
            self.index.iter().map(|place| self.records[*place as usize].used).collect();
        let middle = ages.len() / 2;
        let oldest = *ages.select_nth_unstable(middle).1;
        let enough = self.bytes_max / 4 * 3;
        let mut bytes = self.bytes;

        self.retain(|record| {
            let goes = bytes > enough && record.used <= oldest && record.is_settled();
            if goes {
                bytes -= record.bytes;
            }
            !goes
        });
    }

    fn retain(&mut self, mut stays: impl FnMut(&Record) -> bool) {
        let Self { index, records, free, bytes, changed_records, .. } = self;
        let mut has_changed = false;
        index.retain(|place| {
            let record = &mut records[*place as usize];
            if stays(record) {
                return true;
            }
            *bytes -= record.bytes;
            has_changed |= record.is_changed;
            *record = Record::default();
            free.push(*place);

            false
        });

        if has_changed {
            changed_records.retain(|place| records[*place as usize].is_changed);
        }
    }
}

fn hash_of(hasher: &DefaultHashBuilder, record: &Record) -> u64 {
    hasher.hash_one((record.generation, &*record.key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_core::bucket::DAY_S;

    const FIRST: Generation = 4_096;

    fn add(offset: Offset) -> Op {
        let change = Change::Add { cells: [Some((offset % 100) as u8), None], value: 1 };
        Op { offset, stamp_us: offset as i64, change }
    }

    /// Loads and writes what changed, as a commit does. Answers how many records that were.
    fn commit(tiles: &mut Tiles) -> usize {
        let mut taken = tiles.take_changed();
        for slot in taken.iter_mut().flat_map(|(_, record)| &mut record.slots) {
            if slot.stored.is_none() {
                slot.fill(None);
            }
            slot.changed = 0;
        }
        let len = taken.len();
        tiles.put_back(taken);
        tiles.shrink();
        len
    }

    fn sum_of_bytes(tiles: &Tiles) -> usize {
        tiles.index.iter().map(|place| tiles.records[*place as usize].bytes()).sum()
    }

    #[test]
    fn a_commit_takes_the_records_that_changed_and_no_others() {
        let mut tiles = Tiles::new(1 << 20);
        for offset in 0..1_000 {
            let place = tiles.place(FIRST, &format!("k{offset}"));
            tiles.change(place, TileId::day(1), add(offset), None);
        }
        assert_eq!((tiles.pending(), commit(&mut tiles), tiles.pending()), (1_000, 1_000, 0));
        for _ in 0..2 {
            let place = tiles.place(FIRST, "k7");
            tiles.change(place, TileId::day(1), add(2_000), None);
        }
        assert_eq!((tiles.changed(), commit(&mut tiles), commit(&mut tiles)), (1, 1, 0));
        assert_eq!(tiles.bytes, sum_of_bytes(&tiles));
    }

    #[test]
    fn what_was_not_written_is_taken_out_again() {
        let mut tiles = Tiles::new(1 << 20);
        let place = tiles.place(FIRST, "k");
        tiles.change(place, TileId::day(1), add(1), None);
        let taken = tiles.take_changed();
        tiles.put_back(taken);
        assert_eq!((tiles.pending(), tiles.take_changed().len()), (1, 1));
    }

    #[test]
    fn memory_stays_in_bounds_and_its_places_are_used_again() {
        let mut tiles = Tiles::new(50_000);
        for round in 0..100 {
            for number in 0..100 {
                let place = tiles.place(FIRST + round % 2, &format!("{round}:{number}"));
                tiles.change(place, TileId::day(1), add(u64::from(round) * 100 + number), None);
            }

            commit(&mut tiles);
            assert_eq!(tiles.bytes, sum_of_bytes(&tiles));
            assert!(tiles.bytes <= 50_000, "{}", tiles.bytes);
        }

        assert!(tiles.records.len() < 1_000, "{}", tiles.records.len());
        tiles.forget(FIRST + 1);
        assert!(tiles.index.iter().all(|place| tiles.records[*place as usize].generation == FIRST));

        let place = tiles.place(FIRST + 1, "99:0");
        assert!(tiles.records[place as usize].slots.is_empty());
    }

    #[test]
    fn a_span_tile_lasts_as_long_as_its_newest_day() {
        let first_day = 128 * 150;
        let day = |days: i64| (128 * 150 + days) * DAY_S;
        let mut slot = Slot::new(TileId::span(first_day));
        slot.fill(None);

        let horizons = Horizons { quarter_s: day(70), hour_s: day(70), day_s: day(70) };
        slot.horizons = horizons;

        let add = |cell, offset| {
            let change = Change::Add { cells: [Some(cell), None], value: 1 };
            Op { offset, stamp_us: day(100) * 1_000_000, change }
        };
        slot.apply(add(100, 0));

        let before = slot.ttl_s(day(100));
        slot.apply(add(71, 1));
        assert_eq!(
            slot.ttl_s(day(100)),
            before,
            "a late event does not shorten the life of newer days"
        );
        assert_eq!(slot.ttl_of_bucket_s(Granularity::Day, day(71), day(100)), 3 * DAY_S as i32);
    }
}

//! The tiles of a partition in memory.

use hashbrown::hash_map::EntryRef;
use hashbrown::{Equivalent, HashMap};
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::retention::Horizons;
use raingauge_core::tile::Tile;
use raingauge_core::tile::id::TileId;
use raingauge_ports::buckets::Generation;
use raingauge_ports::log::Offset;
use std::hash::{Hash, Hasher};

/// The longest time to live that Cassandra takes: 20 years.
const TTL_MAX_S: i64 = 630_720_000;

/// What one entry of the log changes in one tile.
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

/// For how many days, that of the last change included, the buckets of a tile are kept; `None` is for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lasting([Option<u32>; 3]);

impl Lasting {
    pub fn new(time_s: i64, horizons: &Horizons) -> Self {
        Self(Granularity::ALL.map(|granularity| {
            let horizon_s = horizons.of(granularity);
            // Nothing has a horizon in 1970 that is not kept for ever, or will be for longer than any table lasts.
            let days = (Granularity::Day.floor(time_s) - horizon_s) / DAY_S + 1;
            (horizon_s > 0).then(|| days.clamp(1, i64::from(u32::MAX)) as u32)
        }))
    }

    /// The time to live of a bucket that was last changed by an entry with this stamp; 0 is for ever.
    pub fn ttl_s(&self, granularity: Granularity, stamp_us: i64) -> i32 {
        let Some(days) = self.0[granularity as usize] else { return 0 };
        let now_s = stamp_us.div_euclid(1_000_000);
        let ttl_s = Granularity::Day.floor(now_s) + i64::from(days) * DAY_S - now_s;
        if ttl_s > TTL_MAX_S { 0 } else { ttl_s.max(1) as i32 }
    }
}

/// One tile of a key.
#[derive(Debug)]
pub struct Slot {
    pub id: TileId,
    pub tile: Tile,
    /// Entries before this are in the tile as it was read back; `None` while it has not been.
    pub stored: Option<Offset>,
    /// Entries before this are in the tile.
    pub included: Offset,
    /// The stamp of the last of them.
    pub stamp_us: i64,
    /// The cells that changed since the tile was written.
    pub changed: u128,
    /// Entries were passed over that somebody else had counted, who may have died before readers were told.
    pub is_foreign: bool,
    pub lasting: Lasting,
    /// What is to be changed when the tile has been read back.
    pending: Vec<Op>,
}

impl Slot {
    fn new(id: TileId) -> Self {
        Self {
            id,
            tile: Tile::default(),
            stored: None,
            included: 0,
            stamp_us: 0,
            changed: 0,
            is_foreign: false,
            lasting: Lasting::default(),
            pending: Vec::new(),
        }
    }

    fn apply(&mut self, op: Op) {
        let Op { offset, stamp_us, change } = op;
        if self.stored.is_some_and(|stored| offset < stored) {
            self.is_foreign = true;
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

    /// The tile is there as it was stored, or was never stored.
    pub fn fill(&mut self, stored: Option<(Offset, Tile)>) {
        let (included, tile) = stored.unwrap_or_default();
        (self.tile, self.included, self.stored) = (tile, included, Some(included));
        for op in std::mem::take(&mut self.pending) {
            self.apply(op);
        }
    }

    fn is_untold(&self) -> bool {
        self.changed != 0 || self.is_foreign
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.tile.heap_len() + self.pending.capacity() * size_of::<Op>()
    }
}

/// The tiles of a key.
#[derive(Debug, Default)]
pub struct Record {
    pub slots: Vec<Slot>,
    /// The commit before which it was last looked at.
    used: u32,
}

/// What a change has done to the number of changed tiles and of pending changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grown {
    changed: usize,
    pending: usize,
}

impl std::ops::AddAssign for Grown {
    fn add_assign(&mut self, other: Self) {
        self.changed += other.changed;
        self.pending += other.pending;
    }
}

impl Record {
    pub fn change(&mut self, id: TileId, op: Op, lasting: Lasting) -> Grown {
        let index = self.slots.iter().position(|slot| slot.id == id).unwrap_or_else(|| {
            self.slots.push(Slot::new(id));
            self.slots.len() - 1
        });
        let slot = &mut self.slots[index];
        if lasting != Lasting::default() {
            slot.lasting = lasting;
        }
        if slot.stored.is_none() {
            slot.pending.push(op);
            return Grown { changed: 0, pending: 1 };
        }
        let was_changed = slot.changed != 0;
        slot.apply(op);
        Grown { changed: usize::from(!was_changed && slot.changed != 0), pending: 0 }
    }

    fn is_settled(&self) -> bool {
        self.slots.iter().all(|slot| !slot.is_untold() && slot.pending.is_empty())
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Owned {
    generation: Generation,
    key: Box<str>,
}

#[derive(Clone, Copy)]
struct Borrowed<'a> {
    generation: Generation,
    key: &'a str,
}

impl Hash for Owned {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Borrowed { generation: self.generation, key: &self.key }.hash(state);
    }
}

impl Hash for Borrowed<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.generation);
        state.write(self.key.as_bytes());
    }
}

impl Equivalent<Owned> for Borrowed<'_> {
    fn equivalent(&self, owned: &Owned) -> bool {
        self.generation == owned.generation && *self.key == *owned.key
    }
}

/// The tiles of all keys that were counted lately.
pub struct Tiles {
    records: HashMap<Owned, Record>,
    bytes_max: usize,
    commits: u32,
    changed: usize,
    pending: usize,
}

impl Tiles {
    pub fn new(bytes_max: usize) -> Self {
        Self { records: HashMap::new(), bytes_max, commits: 0, changed: 0, pending: 0 }
    }

    pub fn record(&mut self, generation: Generation, key: &str) -> &mut Record {
        let record = match self.records.entry_ref(&Borrowed { generation, key }) {
            EntryRef::Occupied(found) => found.into_mut(),
            EntryRef::Vacant(place) => place.insert_with_key(Owned { generation, key: key.into() }, Record::default()),
        };
        record.used = self.commits;
        record
    }

    pub fn note(&mut self, grown: Grown) {
        self.changed += grown.changed;
        self.pending += grown.pending;
    }

    pub fn changed(&self) -> usize {
        self.changed
    }

    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Keys with tiles that have to be read back, and those tiles.
    pub fn missing(&mut self) -> impl Iterator<Item = (Generation, &str, Vec<&mut Slot>)> {
        self.pending = 0;
        self.records.iter_mut().filter_map(|(of, record)| {
            let missing: Vec<&mut Slot> = record.slots.iter_mut().filter(|slot| slot.stored.is_none()).collect();
            (!missing.is_empty()).then_some((of.generation, &*of.key, missing))
        })
    }

    /// Keys with tiles that have to be written or told, and those tiles.
    pub fn each_untold(&mut self) -> impl Iterator<Item = (Generation, &str, Vec<&mut Slot>)> {
        self.changed = 0;
        self.records.iter_mut().filter_map(|(of, record)| {
            let untold: Vec<&mut Slot> = record.slots.iter_mut().filter(|slot| slot.is_untold()).collect();
            (!untold.is_empty()).then_some((of.generation, &*of.key, untold))
        })
    }

    pub fn forget(&mut self, generation: Generation) {
        self.records.retain(|of, _| of.generation != generation);
    }

    /// Lets go of the keys that were not counted for longest, until a quarter of the memory is free again.
    pub fn shrink(&mut self) {
        self.commits += 1;
        let bytes_of = |of: &Owned, record: &Record| {
            size_of::<(Owned, Record)>() + of.key.len() + record.slots.iter().map(Slot::bytes).sum::<usize>()
        };
        let mut bytes: usize = self.records.iter().map(|(of, record)| bytes_of(of, record)).sum();
        metrics::gauge!("raingauge_cql_writer_cache_bytes").set(bytes as f64);
        if bytes <= self.bytes_max {
            return;
        }
        let mut ages: Vec<u32> = self.records.values().map(|record| record.used).collect();
        ages.sort_unstable();
        let oldest = ages[ages.len() / 2];
        let enough = self.bytes_max / 4 * 3;
        self.records.retain(|of, record| {
            let goes = bytes > enough && record.used <= oldest && record.is_settled();
            if goes {
                bytes -= bytes_of(of, record);
            }
            !goes
        });
    }
}

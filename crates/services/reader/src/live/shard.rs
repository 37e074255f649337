//! One part of the tiles in memory: records by key. The least recently used ones leave first.

use lru::LruCache;
use raingauge_core::plan::Plan;
use raingauge_core::tile::Tile;
use raingauge_core::tile::id::{self, TileId};
use raingauge_ports::buckets::{Generation, Sum};
use raingauge_ports::log::Offset;
use raingauge_ports::tiles::{Part, WriterId, is_of};

/// Most tiles of one key in memory. A range that needs more is read from storage.
pub const TILES_PER_KEY_MAX: usize = 256;

/// Distinguishes a placeholder from a later one for the same tile.
pub type Token = u64;

pub struct Shard {
    records: LruCache<Box<str>, Record>,
    bytes: usize,
    bytes_max: usize,
    token: Token,
}

/// The tiles of a key, in the order of their ids.
#[derive(Default)]
struct Record {
    entries: Vec<Entry>,
}

/// One tile, in the parts of its writers.
struct Entry {
    id: TileId,
    token: Token,
    /// Until the source has been read, this is a placeholder that gathers changes.
    is_loaded: bool,
    parts: Vec<(WriterId, Offset, Tile)>,
}

impl Entry {
    /// Keeps the newer one of two tiles of a writer.
    fn merge(&mut self, writer: WriterId, included: Offset, tile: &Tile) {
        match self.parts.iter_mut().find(|part| part.0 == writer) {
            Some(part) if part.1 >= included => {}
            Some(part) => *part = (writer, included, tile.clone()),
            None => self.parts.push((writer, included, tile.clone())),
        }
    }

    fn bytes(&self) -> usize {
        let heap: usize = self.parts.iter().map(|(_, _, tile)| tile.heap_len()).sum();
        size_of::<Self>() + self.parts.capacity() * size_of::<(WriterId, Offset, Tile)>() + heap
    }
}

impl Record {
    fn place(&self, id: TileId) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&id, |entry| entry.id)
    }

    fn entry(&self, id: TileId) -> Option<&Entry> {
        self.place(id).ok().map(|place| &self.entries[place])
    }

    fn entry_mut(&mut self, id: TileId) -> Option<&mut Entry> {
        self.place(id).ok().map(|place| &mut self.entries[place])
    }

    /// Puts a placeholder down, unless the tile or a placeholder is there. Returns whether it did.
    fn expect(&mut self, id: TileId, token: Token) -> bool {
        let Err(place) = self.place(id) else {
            return false;
        };
        self.entries.insert(place, Entry { id, token, is_loaded: false, parts: Vec::new() });
        true
    }

    /// Removes the oldest tiles that are not wanted now, until the key is within its limit.
    fn shrink(&mut self, wanted: &[TileId]) {
        while self.entries.len() > TILES_PER_KEY_MAX {
            let others =
                self.entries.iter().enumerate().filter(|(_, entry)| !wanted.contains(&entry.id));
            let Some((oldest, _)) = others.min_by_key(|(_, entry)| entry.token) else {
                return;
            };
            self.entries.remove(oldest);
        }
    }

    fn bytes(&self, key: &str) -> usize {
        let entries: usize = self.entries.iter().map(Entry::bytes).sum();
        // The key lies in the map and in the list of uses, each with its links.
        key.len() + size_of::<Self>() + 64 + entries
    }

    /// The sum over a plan, when all its tiles have been read.
    fn sum(&self, generation: Generation, plan: &Plan, has_plain_rows: bool) -> Option<Sum> {
        let mut total = 0;
        let mut is_empty = true;
        let edges = plan.edges.iter().flatten().map(|edge| TileId::day(edge.day));
        for id in id::spans(plan).chain(edges) {
            let entry = self.entry(id).filter(|entry| entry.is_loaded)?;
            is_empty &= entry.parts.is_empty();

            for (_, _, tile) in entry.parts.iter().filter(|(writer, ..)| is_of(*writer, generation))
            {
                match id::sum_of(plan, id, tile) {
                    Ok(sum) => total += sum,
                    Err(overflow) => return Some(Err(overflow)),
                }
            }
        }

        if is_empty && has_plain_rows { None } else { Some(Ok(total)) }
    }
}

impl Shard {
    pub fn new(bytes_max: usize) -> Self {
        Self { records: LruCache::unbounded(), bytes: 0, bytes_max, token: 0 }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// See [`Record::sum`].
    pub fn sum(
        &mut self,
        generation: Generation,
        key: &str,
        plan: &Plan,
        has_plain_rows: bool,
    ) -> Option<Sum> {
        self.records.get(key)?.sum(generation, plan, has_plain_rows)
    }

    /// The tiles that have to be read, with a placeholder for each.
    pub fn missing(&mut self, key: &str, ids: &[TileId]) -> Vec<(TileId, Token)> {
        let mut token = self.token;
        let missing = self.with(key, |record| {
            ids.iter().for_each(|id| token += Token::from(record.expect(*id, token + 1)));
            record.shrink(ids);
            let wanted =
                record.entries.iter().filter(|entry| !entry.is_loaded && ids.contains(&entry.id));
            wanted.map(|entry| (entry.id, entry.token)).collect()
        });
        self.token = token;
        self.shrink();
        missing
    }

    /// Puts placeholders down for tiles of a key in memory that are not there, if there is room for
    /// them.
    pub fn ahead(&mut self, key: &str, ids: &[TileId]) -> Vec<(TileId, Token)> {
        let Some(record) = self.records.peek(key) else {
            return Vec::new();
        };
        let absent: Vec<TileId> =
            ids.iter().filter(|id| record.entry(**id).is_none()).copied().collect();
        if absent.is_empty() || record.entries.len() + absent.len() > TILES_PER_KEY_MAX {
            return Vec::new();
        }
        self.missing(key, &absent)
    }

    /// Fills in the tiles of the source where the placeholders of this read still stand.
    pub fn fill(&mut self, key: &str, placeholders: &[(TileId, Token)], parts: &[Part]) {
        if self.records.peek(key).is_none() {
            return;
        }
        self.with(key, |record| {
            for (id, token) in placeholders {
                let Some(entry) = record.entry_mut(*id).filter(|entry| entry.token == *token)
                else {
                    continue;
                };
                for part in parts.iter().filter(|part| part.id == *id) {
                    entry.merge(part.writer, part.included, &part.tile);
                }
                entry.is_loaded = true;
            }
        });
        self.shrink();
    }

    /// Applies the change of a tile that is in memory or has a placeholder. Returns whether it has.
    pub fn change(&mut self, key: &str, part: Part) -> bool {
        let Some(record) = self.records.peek_mut(key) else {
            return false;
        };
        let Some(entry) = record.entry_mut(part.id) else {
            return false;
        };
        let before = entry.bytes();
        entry.merge(part.writer, part.included, &part.tile);
        self.bytes = self.bytes + entry.bytes() - before;
        self.shrink();
        true
    }

    /// Applies tiles that were read, where they are in memory or have placeholders.
    pub fn merge(&mut self, key: &str, parts: Vec<Part>) {
        for part in parts {
            self.change(key, part);
        }
    }

    /// Forgets everything. Returns the number of keys.
    pub fn clear(&mut self) -> usize {
        let len = self.records.len();
        self.records.clear();
        self.bytes = 0;
        len
    }

    /// Works on the record of a key, which is made when there is none.
    fn with<T>(&mut self, key: &str, work: impl FnOnce(&mut Record) -> T) -> T {
        if self.records.peek(key).is_none() {
            let record = Record::default();
            self.bytes += record.bytes(key);
            self.records.put(key.into(), record);
        }
        let record = self.records.get_mut(key).expect("it was put there");
        let before = record.bytes(key);
        let done = work(record);
        self.bytes = self.bytes + record.bytes(key) - before;
        done
    }

    fn shrink(&mut self) {
        while self.bytes > self.bytes_max {
            let Some((key, record)) = self.records.pop_lru() else {
                break;
            };
            self.bytes -= record.bytes(&key);
        }
    }
}

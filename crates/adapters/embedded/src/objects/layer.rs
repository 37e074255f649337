//! What changed since a checkpoint, in memory.
//!
//! Reads look into the layer that takes groups, then into the one that a checkpoint is writing,
//! then on the disk. A layer knows generations, not databases: an effect is resolved when it is
//! applied, so that a flush drops a map and an exchange swaps two numbers.

use super::keys::{Anchor, DATABASES_LEN, DueKey, Generation, Head};
use super::tally::Tally;
use bytes::Bytes;
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use raingauge_ports::objects::{Effect, Old};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Bytes that a pending record takes beside its name and its value, about.
const RECORD_BYTES: usize = 128;

/// Changes of all databases.
pub struct Layer {
    pub generations: HashMap<Generation, Changes>,
    /// The generation of each database.
    pub databases: [Generation; DATABASES_LEN],
    pub next_generation: Generation,
    pub next_id: u64,
    /// The stamp of the last group.
    pub stamp: u64,
    /// Generations that were flushed.
    pub flushed: Vec<Generation>,
    pub expiring: Mutex<Lazy<(i64, Generation, Bytes)>>,
    bytes: usize,
    /// Maps to be dropped by a thread that has the time.
    pub garbage: Vec<Changes>,
}

/// Changes of a generation.
#[derive(Default)]
pub struct Changes {
    /// Heads, `None` for those that were dropped.
    pub heads: HashMap<Bytes, Option<Head>>,
    names: Mutex<Lazy<Bytes>>,
    /// Entries by the number of their object, `None` for those that were dropped.
    pub entries: HashMap<u64, BTreeMap<Bytes, Option<Bytes>>>,
    pub killed: HashSet<u64>,
    /// Heads that the changes add, as far as it is known what was there before.
    pub added: Tally,
    /// Keys of which it is not known, with the wide object that the new head describes.
    pub unknown: Vec<(Bytes, Option<u64>)>,
    bytes: usize,
}

/// A set that is put in order when it is read.
pub struct Lazy<T> {
    new: Vec<T>,
    sorted: BTreeSet<T>,
}

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Self { new: Vec::new(), sorted: BTreeSet::new() }
    }
}

impl<T: Ord> Lazy<T> {
    fn add(&mut self, item: T) {
        self.new.push(item);
    }

    pub fn sorted(&mut self) -> &mut BTreeSet<T> {
        self.sorted.extend(self.new.drain(..));
        &mut self.sorted
    }
}

/// What lies below a layer: whether a key has a head there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Below {
    Absent,
    Present {
        wide: Option<u64>,
        expires: bool,
    },
    /// Only the disk knows.
    Disk,
}

impl Below {
    /// Of a layer that knows the key.
    pub fn of(head: Option<&Head>) -> Self {
        head.map_or(Self::Absent, |head| Self::Present {
            wide: head.wide,
            expires: head.expires_ms.is_some(),
        })
    }
}

impl Layer {
    /// The layer above a checkpoint.
    pub fn above(anchor: &Anchor) -> Self {
        Self::new(
            anchor.databases.map(|(generation, _)| generation),
            anchor.next_generation,
            anchor.next_id,
            anchor.stamp,
        )
    }

    fn new(
        databases: [Generation; DATABASES_LEN],
        next_generation: Generation,
        next_id: u64,
        stamp: u64,
    ) -> Self {
        Self {
            generations: HashMap::new(),
            databases,
            next_generation,
            next_id,
            stamp,
            flushed: Vec::new(),
            expiring: Mutex::default(),
            bytes: 0,
            garbage: Vec::new(),
        }
    }

    /// The empty layer above this one.
    pub fn next(&self) -> Self {
        Self::new(self.databases, self.next_generation, self.next_id, self.stamp)
    }

    /// Whether no group was applied since the checkpoint.
    pub fn is_empty_since(&self, stamp: u64) -> bool {
        self.stamp == stamp
    }

    /// Bytes in memory, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn generation(&self, database: u8) -> Generation {
        self.databases[usize::from(database)]
    }

    /// The change of a head: `Some(None)` if it was dropped, `None` if the layer does not know it.
    pub fn head(&self, generation: Generation, name: &[u8]) -> Option<Option<&Head>> {
        let changes = self.generations.get(&generation)?;
        changes.heads.get(name).map(Option::as_ref)
    }

    /// Heads that the changes of a generation add.
    pub fn added(&self, generation: Generation) -> Tally {
        self.generations.get(&generation).map(|changes| changes.added).unwrap_or_default()
    }

    /// Applies an effect. `below` tells what lies below the layer.
    pub fn apply(&mut self, effect: Effect, below: &dyn Fn(Generation, &Bytes) -> Below) {
        match effect {
            Effect::PutHead { key, head: bytes, expires_ms, wide, old } => {
                self.note_id(wide);
                let generation = self.generation(key.database);
                if let Some(at_ms) = expires_ms {
                    self.expiring.get_mut().add((at_ms, generation, key.name.clone()));
                }
                let head = Head { bytes, expires_ms, wide };
                self.set_head(generation, key.name, Some(head), old, below);
            }
            Effect::DropHead { key, old } => {
                let generation = self.generation(key.database);
                self.set_head(generation, key.name, None, old, below);
            }
            Effect::PutEntry { database, id, sub, value } => {
                self.note_id(Some(id));
                self.set_entry(database, id, sub, Some(value));
            }
            Effect::DropEntry { database, id, sub } => self.set_entry(database, id, sub, None),
            Effect::Kill { database, id } => {
                let generation = self.generation(database);
                let freed = self.changes(generation).kill(id);
                self.bytes -= freed.min(self.bytes);
            }
            Effect::Flush { database } => self.flush(database),
            Effect::Swap { a, b } => self.databases.swap(a.into(), b.into()),
        }
    }

    fn changes(&mut self, generation: Generation) -> &mut Changes {
        self.generations.entry(generation).or_default()
    }

    fn note_id(&mut self, id: Option<u64>) {
        self.next_id = self.next_id.max(id.map_or(0, |id| id.saturating_add(1)));
    }

    fn set_head(
        &mut self,
        generation: Generation,
        name: Bytes,
        head: Option<Head>,
        old: Old,
        below: &dyn Fn(Generation, &Bytes) -> Below,
    ) {
        let new_bytes = head.as_ref().map_or(0, |head| head.bytes.len());
        let wide = head.as_ref().and_then(|head| head.wide);
        let after = head.as_ref().map(Head::tally).unwrap_or_default();
        let changes = self.changes(generation);
        let bytes_before = changes.bytes;
        changes.bytes += new_bytes;

        // What lies below matters the first time only.
        let before = match changes.heads.get_mut(&name) {
            Some(known) => {
                let before = std::mem::replace(known, head);
                changes.bytes -= before.as_ref().map_or(0, |before| before.bytes.len());
                Below::of(before.as_ref())
            }
            None => {
                let below = below(generation, &name);
                changes.bytes += name.len() + RECORD_BYTES;
                changes.names.get_mut().add(name.clone());
                changes.heads.insert(name.clone(), head);
                below
            }
        };

        let before = match before {
            Below::Absent => Tally::default(),
            Below::Present { wide: before, expires } => {
                if let (Old::Unknown, Some(id)) = (old, before.filter(|id| Some(*id) != wide)) {
                    changes.kill(id);
                }
                Tally::of_one(expires)
            }
            Below::Disk => match old {
                Old::Absent => Tally::default(),
                Old::Present => Tally::of_one(false),
                Old::Expiring => Tally::of_one(true),
                Old::Unknown => {
                    changes.unknown.push((name, wide));
                    Tally::default()
                }
            },
        };
        changes.added = changes.added + after - before;
        let bytes = changes.bytes;
        self.bytes = (self.bytes + bytes).saturating_sub(bytes_before);
    }

    fn set_entry(&mut self, database: u8, id: u64, sub: Bytes, value: Option<Bytes>) {
        let generation = self.generation(database);
        let changes = self.changes(generation);
        let bytes_before = changes.bytes;
        changes.bytes += value.as_ref().map_or(0, Bytes::len);

        let sub_len = sub.len();
        match changes.entries.entry(id).or_default().insert(sub, value) {
            Some(before) => changes.bytes -= before.map_or(0, |before| before.len()),
            None => changes.bytes += sub_len + RECORD_BYTES,
        }
        let bytes = changes.bytes;
        self.bytes = (self.bytes + bytes).saturating_sub(bytes_before);
    }

    fn flush(&mut self, database: u8) {
        let generation = self.generation(database);
        if let Some(changes) = self.generations.remove(&generation) {
            self.bytes -= changes.bytes.min(self.bytes);
            self.garbage.push(changes);
        }
        self.flushed.push(generation);
        self.databases[usize::from(database)] = self.next_generation;
        self.next_generation += 1;
    }
}

impl Changes {
    /// Marks a wide object as dead. Returns the bytes that it took.
    pub fn kill(&mut self, id: u64) -> usize {
        self.killed.insert(id);
        let entries = self.entries.remove(&id).unwrap_or_default();
        let bytes = |(sub, value): (&Bytes, &Option<Bytes>)| {
            sub.len() + value.as_ref().map_or(0, Bytes::len) + RECORD_BYTES
        };
        let bytes = entries.iter().map(bytes).sum::<usize>().min(self.bytes);
        self.bytes -= bytes;
        bytes
    }

    /// At most `len_max` names behind one, in order.
    pub fn names_behind(&self, after: Option<&Bytes>, len_max: usize) -> Vec<Bytes> {
        let mut names = self.names.lock();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = names.sorted().range::<Bytes, _>((from, Bound::Unbounded));
        range.take(len_max).cloned().collect()
    }

    /// Takes over what a look at the disk found out about keys of which nothing was known.
    pub fn resolve(&mut self, found: &Found) {
        self.added = self.added - found.present;
        for id in &found.left {
            self.kill(*id);
        }
    }
}

/// What the disk had of keys of which nothing was known.
#[derive(Debug, Default)]
pub struct Found {
    /// How many of them had a head.
    pub present: Tally,
    /// Wide objects that they left behind.
    pub left: Vec<u64>,
}

/// The steps of the index of expiries are powers of two, beginning with this one.
const STEP_BITS_MIN: u32 = 10;

/// An index record of a head, as of a time. Its time is rounded up to a power of two of at most a
/// sixteenth of the time to live, so that an expiry that moves on writes few records.
pub fn due_key(expires_ms: i64, now_ms: i64, generation: Generation, name: Bytes) -> DueKey {
    let to_live = expires_ms.saturating_sub(now_ms).max(0);
    let bits = (to_live / 16).checked_ilog2().unwrap_or(0).max(STEP_BITS_MIN);
    DueKey { due_ms: due_ms(expires_ms, bits), generation, name }
}

/// The times of the index records that a head may have, each once.
pub fn due_times(expires_ms: i64) -> Vec<i64> {
    let bits_max = (i64::MAX / 16).ilog2();
    let mut times: Vec<i64> =
        (STEP_BITS_MIN..=bits_max).map(|bits| due_ms(expires_ms, bits)).collect();
    times.dedup();
    times
}

fn due_ms(expires_ms: i64, bits: u32) -> i64 {
    let step = 1_i64 << bits;
    expires_ms.saturating_add(step - 1).div_euclid(step).saturating_mul(step)
}

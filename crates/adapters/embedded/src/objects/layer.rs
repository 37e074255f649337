//! What changed since a checkpoint, in memory.
//!
//! Reads look into the layer that takes groups, then into the one that a checkpoint is writing,
//! then on the disk. A layer knows generations, not databases: an effect is resolved when it is
//! applied, so that a flush drops a map and an exchange swaps two numbers.

use super::keys::{Anchor, DATABASES_LEN, DueKey, Generation, Head};
use super::sharing::{Sample, Weight};
use super::tally::Tally;
use bytes::Bytes;
use hashbrown::{HashMap, HashSet};
use parking_lot::{Mutex, RwLock};
use raingauge_ports::objects::{Effect, Old};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::ops::Bound;

/// Bytes that a pending record takes beside its name and its value, about.
const RECORD_BYTES: usize = 128;
/// From this many keys of which nothing is known, a look at the disk begins before a checkpoint,
/// and that of a checkpoint is divided among threads.
pub const UNKNOWN_LEN_MIN: usize = 64;
/// Effects whose heads are looked for together.
const PREFETCH_LEN: usize = 32;

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
    /// Bytes that its groups take in the log, about.
    pub logged_bytes: usize,
    /// Bytes of changes that a start read from the log.
    pub replayed_bytes: usize,
    weight: Weight,
    sample: Sample,
    /// The part of the shared bytes that the layer holds alone, as of the last look.
    part_alone: f32,
    /// Bytes of the log at that look.
    looked_at: usize,
    /// Maps to be dropped by a thread that has the time.
    pub garbage: Vec<Changes>,
}

/// Changes of a generation.
#[derive(Default)]
pub struct Changes {
    /// Heads. Those that a checkpoint has written are taken away, and from then on the disk
    /// answers for them.
    pub heads: RwLock<HashMap<Bytes, Change>>,
    names: Mutex<Lazy<Bytes>>,
    /// Entries by the number of their object, `None` for those that were dropped.
    pub entries: HashMap<u64, BTreeMap<Bytes, Option<Bytes>>>,
    pub killed: HashSet<u64>,
    /// Heads that the changes add, as far as it is known what was there before.
    pub added: Tally,
    /// Keys of which it is not known, with the wide object that the new head describes.
    pub unknown: Vec<(Bytes, Option<u64>)>,
    weight: Weight,
}

/// The change of a head.
pub struct Change {
    /// `None` if it was dropped.
    pub head: Option<Head>,
    /// Whether something else held the buffer when it came.
    is_shared: bool,
}

impl Change {
    fn new(head: Option<Head>) -> Self {
        let is_shared = head.as_ref().is_some_and(|head| !head.bytes.is_unique());
        Self { head, is_shared }
    }

    /// What it weighs beside its name.
    fn weight(&self) -> Weight {
        let bytes = self.head.as_ref().map_or(0, |head| head.bytes.len());
        Weight { bytes, shared: if self.is_shared { bytes } else { 0 } }
    }
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
            logged_bytes: 0,
            replayed_bytes: 0,
            weight: Weight::default(),
            sample: Sample::default(),
            part_alone: 0.0,
            looked_at: 0,
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

    /// Bytes of all changes, about.
    pub fn weight(&self) -> Weight {
        self.weight
    }

    /// Bytes of memory that would be free without the layer, about, as of the last look.
    pub fn alone_bytes(&self) -> usize {
        self.weight.alone(self.part_alone)
    }

    /// Looks how much of the shared bytes nobody else holds any more.
    pub fn look(&mut self) {
        self.part_alone = self.part_alone();
        self.looked_at = self.logged_bytes;
    }

    /// Bytes of the log since the last look.
    pub fn unseen_bytes(&self) -> usize {
        self.logged_bytes - self.looked_at
    }

    /// The part of the shared bytes that nobody else holds.
    pub fn part_alone(&self) -> f32 {
        self.sample.part_alone(|generation, name| {
            let heads = self.generations.get(&generation)?.heads.read();
            let change = heads.get(name).filter(|change| change.is_shared)?;
            change.head.as_ref().map(|head| (head.bytes.len(), head.bytes.is_unique()))
        })
    }

    pub fn generation(&self, database: u8) -> Generation {
        self.databases[usize::from(database)]
    }

    /// A generation with keys to be looked up ahead of the checkpoint, if there is one.
    pub fn first_unknown(&self) -> Option<Generation> {
        let mut generations = self.generations.iter();
        let is_long = |changes: &Changes| changes.unknown.len() >= UNKNOWN_LEN_MIN;
        generations.find(|(_, changes)| is_long(changes)).map(|(generation, _)| *generation)
    }

    /// The change of a head: `Some(None)` if it was dropped, `None` if the layer does not know it.
    pub fn head(&self, generation: Generation, name: &[u8]) -> Option<Option<Head>> {
        let changes = self.generations.get(&generation)?;
        changes.heads.read().get(name).map(|change| change.head.clone())
    }

    /// Heads that the changes of a generation add.
    pub fn added(&self, generation: Generation) -> Tally {
        self.generations.get(&generation).map(|changes| changes.added).unwrap_or_default()
    }

    fn apply(&mut self, effect: Effect, below: &dyn Fn(Generation, &Bytes) -> Below) {
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
                self.weight -= freed;
            }
            Effect::Flush { database } => self.flush(database),
            Effect::Swap { a, b } => self.databases.swap(a.into(), b.into()),
        }
    }

    /// Applies effects in their order. `below` tells what lies below the layer.
    pub fn apply_all(&mut self, effects: Vec<Effect>, below: &dyn Fn(Generation, &Bytes) -> Below) {
        let mut effects = effects.into_iter();
        while !effects.as_slice().is_empty() {
            let next = effects.as_slice();
            self.prefetch(&next[..next.len().min(PREFETCH_LEN)]);
            for effect in effects.by_ref().take(PREFETCH_LEN) {
                self.apply(effect, below);
            }
        }
    }

    /// Looks up the heads that effects are about to replace, and reads the beginnings of all of
    /// them. The look-ups do not depend on each other, so the processor's reads of memory overlap.
    fn prefetch(&mut self, effects: &[Effect]) {
        let [Effect::PutHead { key, .. }, _, ..] = effects else { return };
        let database = key.database;
        let Some(changes) = self.generations.get_mut(&self.databases[usize::from(database)]) else {
            return;
        };

        let heads = changes.heads.get_mut();
        let known = |effect: &Effect| match effect {
            Effect::PutHead { key, .. } if key.database == database => heads.get(&key.name),
            _ => None,
        };
        let known: SmallVec<[&Change; PREFETCH_LEN]> = effects.iter().filter_map(known).collect();
        let first = |change: &&Change| change.head.as_ref()?.bytes.first().copied();
        black_box(known.iter().filter_map(first).fold(0, |sum, byte| sum ^ byte));
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
        let wide = head.as_ref().and_then(|head| head.wide);
        let after = head.as_ref().map(Head::tally).unwrap_or_default();
        let change = Change::new(head);
        let is_shared = change.is_shared;
        let changes = self.generations.entry(generation).or_default();
        let weight_before = changes.weight;
        changes.weight += change.weight();

        // What lies below matters the first time only.
        let heads = changes.heads.get_mut();
        let (before, was_shared) = match heads.get_mut(&name) {
            Some(known) => {
                let known = std::mem::replace(known, change);
                changes.weight -= known.weight();
                (Below::of(known.head.as_ref()), known.is_shared)
            }
            None => {
                let below = below(generation, &name);
                changes.weight.bytes += name.len() + RECORD_BYTES;
                changes.names.get_mut().add(name.clone());
                heads.insert(name.clone(), change);
                (below, false)
            }
        };
        if is_shared && !was_shared {
            self.sample.offer(generation, &name);
        }

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
        self.weight += changes.weight;
        self.weight -= weight_before;
    }

    fn set_entry(&mut self, database: u8, id: u64, sub: Bytes, value: Option<Bytes>) {
        let generation = self.generation(database);
        let changes = self.changes(generation);
        let weight_before = changes.weight;
        changes.weight.bytes += value.as_ref().map_or(0, Bytes::len);

        let sub_len = sub.len();
        match changes.entries.entry(id).or_default().insert(sub, value) {
            Some(before) => changes.weight.bytes -= before.map_or(0, |before| before.len()),
            None => changes.weight.bytes += sub_len + RECORD_BYTES,
        }
        let weight = changes.weight;
        self.weight += weight;
        self.weight -= weight_before;
    }

    fn flush(&mut self, database: u8) {
        let generation = self.generation(database);
        if let Some(changes) = self.generations.remove(&generation) {
            self.weight -= changes.weight;
            self.garbage.push(changes);
        }
        self.flushed.push(generation);
        self.databases[usize::from(database)] = self.next_generation;
        self.next_generation += 1;
    }
}

impl Changes {
    /// Marks a wide object as dead. Returns what it weighed.
    pub fn kill(&mut self, id: u64) -> Weight {
        self.killed.insert(id);
        let entries = self.entries.remove(&id).unwrap_or_default();
        let bytes = |(sub, value): (&Bytes, &Option<Bytes>)| {
            sub.len() + value.as_ref().map_or(0, Bytes::len) + RECORD_BYTES
        };
        let freed = Weight { bytes: entries.iter().map(bytes).sum(), shared: 0 };
        self.weight -= freed;
        freed
    }

    /// The names of all heads, in order.
    pub fn sorted_names(&self) -> Vec<Bytes> {
        let mut names: Vec<Bytes> = self.heads.read().keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// The first of some names, up to those whose heads have `bytes_max` bytes together, and
    /// whether any of these heads was not dropped.
    pub fn first_piece<'n>(&self, names: &'n [Bytes], bytes_max: usize) -> (&'n [Bytes], bool) {
        let heads = self.heads.read();
        let mut bytes = 0;
        let mut puts = false;
        let is_enough = |name: &Bytes| {
            let head = heads.get(name).and_then(|change| change.head.as_ref());
            puts |= head.is_some();
            bytes += name.len() + head.map_or(0, |head| head.bytes.len());
            bytes >= bytes_max
        };
        let len = names.iter().position(is_enough).map_or(names.len(), |last| last + 1);
        (&names[..len], puts)
    }

    /// Takes heads away that a checkpoint has written, to be dropped by the caller. Returns what
    /// they weighed as well.
    pub fn release(&self, names: &[Bytes]) -> (Vec<(Bytes, Change)>, Weight) {
        let mut heads = self.heads.write();
        let released: Vec<_> = names.iter().filter_map(|name| heads.remove_entry(name)).collect();
        drop(heads);

        let mut weight = Weight::default();
        for (name, change) in &released {
            weight += change.weight();
            weight.bytes += name.len() + RECORD_BYTES;
        }
        (released, weight)
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

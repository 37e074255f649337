//! What is read from the store, and whether it is still true when it arrives.

use bytes::Bytes;
use foldhash::fast::RandomState;
use raingauge_ports::objects::Key;
use raingauge_resp::Failure;
use raingauge_values::Object;
use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stamps of evicted keys, by the hash of a key.
const SHARDS: usize = 1_024;
/// Loads of which those that ended are looked for.
const LOADS_MIN: usize = 4_096;

/// The greatest stamp among the evicted keys with a common hash: what is loaded again is as new.
pub(super) struct Shards {
    hasher: RandomState,
    floors: Box<[u64]>,
}

impl Default for Shards {
    fn default() -> Self {
        Self { hasher: RandomState::default(), floors: vec![0; SHARDS].into_boxed_slice() }
    }
}

impl Shards {
    fn of(&mut self, database: u8, name: &[u8]) -> &mut u64 {
        let hash = self.hasher.hash_one((database, name));
        &mut self.floors[(hash >> 32) as usize % SHARDS]
    }

    pub(super) fn keep_stamp(&mut self, database: u8, name: &[u8], stamp: u64) {
        let floor = self.of(database, name);
        *floor = stamp.max(*floor);
    }

    pub(super) fn floor(&mut self, database: u8, name: &[u8]) -> u64 {
        *self.of(database, name)
    }
}

/// Whether a key has changed since it was missed. The loads of a key share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Staleness(Arc<AtomicBool>);

impl Staleness {
    pub(super) fn is_stale(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set_stale(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a load has it beside the keyspace.
    fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

/// The loads on their way, by key. What was read before a change is not inserted after it.
#[derive(Default)]
pub(super) struct Loads {
    keys: HashMap<(u8, Bytes), Staleness, RandomState>,
    /// How many there may be before those that ended without an insert are looked for.
    len_max: usize,
}

impl Loads {
    pub(super) fn begin(&mut self, database: u8, name: &Bytes) -> Staleness {
        if self.keys.len() >= self.len_max {
            self.keys.retain(|_, staleness| staleness.is_shared());
            self.len_max = LOADS_MIN.max(self.keys.len() * 2);
        }
        self.keys.entry((database, name.clone())).or_default().clone()
    }

    /// Ends a load, and returns whether what it brought still holds.
    pub(super) fn end(&mut self, database: u8, name: &Bytes, staleness: Staleness) -> bool {
        let is_stale = staleness.is_stale();
        drop(staleness);
        let key = (database, name.clone());
        if self.keys.get(&key).is_some_and(|staleness| !staleness.is_shared()) {
            self.keys.remove(&key);
        }
        !is_stale
    }

    /// Notes that a key changes.
    pub(super) fn change(&mut self, database: u8, name: &Bytes) {
        if self.keys.is_empty() {
            return;
        }
        if let Some(staleness) = self.keys.remove(&(database, name.clone())) {
            staleness.set_stale();
        }
    }

    /// Notes that whole databases change.
    pub(super) fn change_all(&mut self) {
        self.keys.drain().for_each(|(_, staleness)| staleness.set_stale());
    }
}

/// A key that is not in memory.
#[derive(Clone, Debug)]
pub(crate) struct Miss {
    pub key: Key,
    pub(super) staleness: Staleness,
}

/// What the store has of a key that was missed.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub miss: Miss,
    pub object: LoadedObject,
}

#[derive(Debug)]
pub(crate) enum LoadedObject {
    Absent,
    Whole(Object),
    /// An object whose time was over when it was read, with the number of a wide one.
    Expired {
        wide: Option<u64>,
    },
    /// A wide object whose entries do not fit its head. It changed between the two reads, and is
    /// read again; or nothing changed, and the store contradicts itself, as the failure says.
    Changed(Failure),
}

//! What is read from the store, whether it is still true when it arrives, and whose turn it is to
//! read what is large.

use bytes::Bytes;
use foldhash::fast::RandomState;
use raingauge_ports::objects::Key;
use raingauge_resp::Failure;
use raingauge_values::Object;
use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

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

/// What the loads of a key share.
#[derive(Clone, Debug, Default)]
pub(super) struct Load(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Whether the key has changed since it was missed.
    is_stale: AtomicBool,
    /// How often one of the loads has made the key resident.
    inserts: AtomicU32,
    /// Whose turn it is to read the entries of a large object.
    turn: OnceLock<Arc<Mutex<()>>>,
}

impl Load {
    pub(super) fn is_stale(&self) -> bool {
        self.0.is_stale.load(Ordering::Relaxed)
    }

    fn set_stale(&self) {
        self.0.is_stale.store(true, Ordering::Relaxed);
    }

    fn inserts(&self) -> u32 {
        self.0.inserts.load(Ordering::Relaxed)
    }

    pub(super) fn note_insert(&self) {
        self.0.inserts.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether another load has it beside the keyspace.
    fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

/// The right to read a large object, which ends when the object is resident: others that miss it
/// wait, and find it in memory. Only some connections have such rights at the same time.
#[derive(Debug)]
pub(crate) struct Claim {
    _turn: OwnedMutexGuard<()>,
    /// With the first claim of a connection.
    _permit: Option<OwnedSemaphorePermit>,
}

/// The loads on their way, by key. What was read before a change is not inserted after it.
#[derive(Default)]
pub(super) struct Loads {
    keys: HashMap<(u8, Bytes), Load, RandomState>,
    /// How many there may be before those that ended without an insert are looked for.
    len_max: usize,
}

impl Loads {
    pub(super) fn begin(&mut self, database: u8, name: &Bytes) -> Load {
        if self.keys.len() >= self.len_max {
            self.keys.retain(|_, load| load.is_shared());
            self.len_max = LOADS_MIN.max(self.keys.len() * 2);
        }
        self.keys.entry((database, name.clone())).or_default().clone()
    }

    /// Ends a load, and returns whether what it brought still holds.
    pub(super) fn end(&mut self, database: u8, name: &Bytes, load: Load) -> bool {
        let is_stale = load.is_stale();
        drop(load);
        let key = (database, name.clone());
        if self.keys.get(&key).is_some_and(|load| !load.is_shared()) {
            self.keys.remove(&key);
        }
        !is_stale
    }

    /// Notes that a key changes.
    pub(super) fn change(&mut self, database: u8, name: &Bytes) {
        if self.keys.is_empty() {
            return;
        }
        if let Some(load) = self.keys.remove(&(database, name.clone())) {
            load.set_stale();
        }
    }

    /// Notes that whole databases change.
    pub(super) fn change_all(&mut self) {
        self.keys.drain().for_each(|(_, load)| load.set_stale());
    }
}

/// A key that is not in memory.
#[derive(Clone, Debug)]
pub(crate) struct Miss {
    pub key: Key,
    pub(super) load: Load,
    /// How often the key had become resident when it was missed.
    pub(super) inserts: u32,
}

impl Miss {
    pub(super) fn new(key: Key, load: Load) -> Self {
        Self { inserts: load.inserts(), key, load }
    }

    /// Whether the key has changed since.
    pub(crate) fn is_stale(&self) -> bool {
        self.load.is_stale()
    }

    /// Whether the key has become resident in the meantime.
    pub(crate) fn is_resident(&self) -> bool {
        self.load.inserts() != self.inserts
    }

    /// Waits for the right to read the object, and for a permit.
    pub(crate) async fn claim(&self, large: &Arc<Semaphore>) -> Claim {
        let turn = self.turn().lock_owned().await;
        let permit = Arc::clone(large).acquire_owned().await;
        Claim { _turn: turn, _permit: Some(permit.expect("it is never closed")) }
    }

    /// The right to read the object, unless it would have to be waited for. Without `large`, the
    /// connection has a permit already.
    pub(crate) fn try_claim(&self, large: Option<&Arc<Semaphore>>) -> Option<Claim> {
        let turn = self.turn().try_lock_owned().ok()?;
        let permit = match large {
            Some(large) => Some(Arc::clone(large).try_acquire_owned().ok()?),
            None => None,
        };
        Some(Claim { _turn: turn, _permit: permit })
    }

    fn turn(&self) -> Arc<Mutex<()>> {
        Arc::clone(self.load.0.turn.get_or_init(Arc::default))
    }
}

/// What the store has of a key that was missed.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub miss: Miss,
    pub object: LoadedObject,
    /// Held while a large object is on its way.
    pub claim: Option<Claim>,
}

#[derive(Debug)]
pub(crate) enum LoadedObject {
    Absent,
    Whole(Object),
    /// What another load has made resident.
    Resident,
    /// An object whose time was over when it was read, with the number of a wide one.
    Expired {
        wide: Option<u64>,
    },
    /// A wide object whose entries do not fit its head. It changed between the two reads, and is
    /// read again; or nothing changed, and the store contradicts itself, as the failure says.
    Changed(Failure),
}

//! What is read from the store, and whether it is still true when it arrives.

use foldhash::fast::RandomState;
use raingauge_ports::objects::Key;
use raingauge_resp::Failure;
use raingauge_values::Object;
use std::hash::BuildHasher as _;

/// Counters of changes, by the hash of a key.
const SHARDS: usize = 1_024;

/// The changes of all keys with a common hash.
#[derive(Clone, Copy, Default)]
struct Shard {
    /// Raised by every change. What was read before a change is not inserted after it.
    changes: u64,
    /// The greatest stamp among the keys that were evicted: what is loaded again is as new.
    floor: u64,
}

pub(super) struct Shards {
    hasher: RandomState,
    shards: Box<[Shard]>,
}

impl Default for Shards {
    fn default() -> Self {
        Self {
            hasher: RandomState::default(),
            shards: vec![Shard::default(); SHARDS].into_boxed_slice(),
        }
    }
}

impl Shards {
    fn of(&mut self, database: u8, name: &[u8]) -> &mut Shard {
        let hash = self.hasher.hash_one((database, name));
        &mut self.shards[(hash >> 32) as usize % SHARDS]
    }

    pub(super) fn changes(&mut self, database: u8, name: &[u8]) -> u64 {
        self.of(database, name).changes
    }

    pub(super) fn raise(&mut self, database: u8, name: &[u8]) {
        self.of(database, name).changes += 1;
    }

    pub(super) fn raise_all(&mut self) {
        self.shards.iter_mut().for_each(|shard| shard.changes += 1);
    }

    pub(super) fn keep_stamp(&mut self, database: u8, name: &[u8], stamp: u64) {
        let shard = self.of(database, name);
        shard.floor = shard.floor.max(stamp);
    }

    pub(super) fn floor(&mut self, database: u8, name: &[u8]) -> u64 {
        self.of(database, name).floor
    }
}

/// A key that is not in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Miss {
    pub key: Key,
    /// Changes of its shard when it was missed.
    pub(super) changes: u64,
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

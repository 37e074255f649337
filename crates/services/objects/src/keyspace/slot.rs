//! A resident key.

use bytes::Bytes;
use foldhash::fast::RandomState;
use indexmap::IndexMap;
use raingauge_ports::objects::Old;
use raingauge_values::Object;

/// The resident keys of a database.
pub(super) type Slots = IndexMap<Bytes, Slot, RandomState>;

/// What is in memory about a key.
#[derive(Debug)]
pub(crate) struct Slot {
    /// `None`: there is no such object.
    pub object: Option<Object>,
    /// The last group that changed the key; 0 when the store brought it.
    pub stamp: u64,
    /// Whether the store has a head of the key, as of the last seal.
    pub stored: Old,
    /// Bytes that the key and its object were last counted with.
    pub weight: usize,
    /// When a command last used the key, in milliseconds since 1970.
    pub used_ms: i64,
    /// Tells one stay of the object in memory from the next: cursors of its entries end with it.
    pub load: u16,
    /// The last command that changed it.
    pub touched_by: u64,
    /// How often the key was used lately. Below 0 while the command that it was loaded for has yet
    /// to use it.
    pub uses: i8,
    /// Whether it may be evicted before those that are used again and again.
    pub is_on_probation: bool,
    /// Whether the key changed in this hold and has no effects yet.
    pub is_dirty: bool,
}

/// Where a slot is, until the end of the hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub database: u8,
    pub index: usize,
}

/// A key that changed in this hold, with what the store had before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dirty {
    pub place: Place,
    pub stored: Old,
    /// The wide object that the key had.
    pub wide: Option<u64>,
}

/// A key that the running command changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub place: Place,
    pub was_dirty: bool,
    /// Whether the command made the object, so that it goes again if the command fails.
    pub is_new: bool,
}

/// Bytes that a key takes beside its name and its object: the slot, the name's handle, the hash
/// and the index, and what eviction remembers of it.
const SLOT_BYTES: usize = size_of::<Slot>() + size_of::<Bytes>() + 24 + 24;

impl Slot {
    pub(crate) fn new(object: Option<Object>, stored: Old, now_ms: i64, load: u16) -> Self {
        Self {
            object,
            stamp: 0,
            stored,
            weight: 0,
            used_ms: now_ms,
            load,
            touched_by: 0,
            uses: 0,
            is_on_probation: false,
            is_dirty: false,
        }
    }

    /// Bytes of memory, about.
    pub(crate) fn weigh(&self, name: &Bytes) -> usize {
        let object = self.object.as_ref().map_or(0, |object| object.value.weight());
        SLOT_BYTES + name.len() + object
    }

    /// Whether the object is gone at a time.
    pub(crate) fn is_expired(&self, expired_ms: i64) -> bool {
        let expires_ms = self.object.as_ref().and_then(|object| object.expires_ms);
        expires_ms.is_some_and(|expires_ms| expires_ms <= expired_ms)
    }
}

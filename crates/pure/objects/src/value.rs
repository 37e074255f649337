//! An object of the store: its value, and what the keyspace and the store remember about it.

use bytes::Bytes;

use crate::{Collection, Hash, List, Set, Sorted, Text};

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Text,
    Hash,
    Set,
    List,
    Sorted,
}

impl Kind {
    /// The name that clients see.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "string",
            Kind::Hash => "hash",
            Kind::Set => "set",
            Kind::List => "list",
            Kind::Sorted => "zset",
        }
    }
}

/// A value. Collections are boxed, since most objects are strings.
#[derive(Debug, Clone)]
pub enum Value {
    Text(Text),
    Hash(Box<Hash>),
    Set(Box<Set>),
    List(Box<List>),
    Sorted(Box<Sorted>),
}

/// A value with its place in time and on disk.
#[derive(Debug, Clone)]
pub struct Object {
    pub value: Value,
    /// The millisecond since 1970 from which the object is gone.
    pub expires_ms: Option<i64>,
    /// The last group of effects that changed the object.
    pub stamp: u64,
    /// Where the entries of a wide collection lie. `None` for strings and packed collections.
    pub wide: Option<u64>,
}

impl Object {
    /// An object that the store does not have yet.
    pub fn new(value: Value) -> Object {
        Object { value, expires_ms: None, stamp: 0, wide: None }
    }

    /// Bytes of memory, estimated, without the key.
    pub fn weight(&self) -> usize {
        size_of::<Object>() + self.value.weight()
    }
}

impl Value {
    pub fn kind(&self) -> Kind {
        match self {
            Value::Text(_) => Kind::Text,
            Value::Hash(_) => Kind::Hash,
            Value::Set(_) => Kind::Set,
            Value::List(_) => Kind::List,
            Value::Sorted(_) => Kind::Sorted,
        }
    }

    /// The value as a collection. `None` for a string.
    pub fn collection(&self) -> Option<&dyn Collection> {
        match self {
            Value::Text(_) => None,
            Value::Hash(hash) => Some(&**hash),
            Value::Set(set) => Some(&**set),
            Value::List(list) => Some(&**list),
            Value::Sorted(sorted) => Some(&**sorted),
        }
    }

    /// The value as a collection that changes. `None` for a string.
    pub fn collection_mut(&mut self) -> Option<&mut dyn Collection> {
        match self {
            Value::Text(_) => None,
            Value::Hash(hash) => Some(&mut **hash),
            Value::Set(set) => Some(&mut **set),
            Value::List(list) => Some(&mut **list),
            Value::Sorted(sorted) => Some(&mut **sorted),
        }
    }

    /// Bytes of memory beyond the enum itself, estimated.
    pub fn weight(&self) -> usize {
        match self {
            Value::Text(text) => text.weight(),
            other => other.collection().map_or(0, |collection| collection.weight()),
        }
    }

    /// Bytes of a string or of the packed form of a collection.
    pub fn packed_len(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            other => other.collection().map_or(0, |collection| collection.packed_len()),
        }
    }

    /// Entries of a collection, or bytes of a string.
    pub fn len(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            other => other.collection().map_or(0, |collection| collection.len()),
        }
    }

    /// Whether there are no entries, or no bytes. No key may hold a collection without entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the value is a collection without entries, which no key may hold.
    pub fn is_empty_collection(&self) -> bool {
        self.collection().is_some_and(|collection| collection.is_empty())
    }

    /// The encoding that `OBJECT ENCODING` reports, as clients know it from other servers.
    pub fn encoding(&self) -> &'static str {
        match self {
            Value::Text(text) => text.encoding(),
            Value::Hash(hash) => hash.encoding(),
            Value::Set(set) => set.encoding(),
            Value::List(list) => list.encoding(),
            Value::Sorted(sorted) => sorted.encoding(),
        }
    }

    /// Loads a wide collection of a kind from its records. Text has none.
    pub fn load(
        kind: Kind,
        meta: &[u8],
        count: usize,
        entries: impl IntoIterator<Item = (Bytes, Bytes)>,
    ) -> Result<Value, crate::Damaged> {
        Ok(match kind {
            Kind::Text => return Err(crate::Damaged("a string has no entries")),
            Kind::Hash => Value::Hash(Box::new(Hash::load(meta, count, entries)?)),
            Kind::Set => Value::Set(Box::new(Set::load(meta, count, entries)?)),
            Kind::List => Value::List(Box::new(List::load(meta, count, entries)?)),
            Kind::Sorted => Value::Sorted(Box::new(Sorted::load(meta, count, entries)?)),
        })
    }
}

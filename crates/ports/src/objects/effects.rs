//! What changes a store.

use super::{
    DATABASES, Error, INTERNAL_DATABASE, OBJECT_ENTRY_LEN_MAX, OBJECT_GROUP_BYTES_MAX,
    OBJECT_NAME_LEN_MAX, OBJECT_VALUE_LEN_MAX,
};
use bytes::Bytes;

/// The key of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub database: u8,
    pub name: Bytes,
}

impl Key {
    pub fn new(database: u8, name: impl Into<Bytes>) -> Self {
        Self { database, name: name.into() }
    }
}

/// Whether the store holds a head of the key that an effect changes. An expired head that nobody
/// dropped is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Old {
    Absent,
    /// One that does not expire. A wide object that the key leaves behind is killed by an effect of
    /// the same group.
    Present,
    /// One that expires, and otherwise as [`Old::Present`].
    Expiring,
    /// The store finds out, later, and kills the wide object of the head that goes, unless the new
    /// head describes the same one.
    Unknown,
}

impl Old {
    /// Of a head that is held.
    pub fn held(expires_ms: Option<i64>) -> Self {
        if expires_ms.is_some() { Self::Expiring } else { Self::Present }
    }

    /// Whether a head is known to be held.
    pub fn is_held(self) -> bool {
        matches!(self, Self::Present | Self::Expiring)
    }
}

/// A change. The wide objects of a database are numbered by the service, which uses no number
/// twice: see [`Status::next_id`](super::Status). A wide object stays in its database; moved to
/// another one, it gets a new number there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    PutHead {
        key: Key,
        head: Bytes,
        /// Milliseconds since 1970. The store does not act on it: see [`super::ObjectStore::due`].
        expires_ms: Option<i64>,
        /// The number of the wide object that the head describes.
        wide: Option<u64>,
        old: Old,
    },
    DropHead {
        key: Key,
        old: Old,
    },
    PutEntry {
        database: u8,
        id: u64,
        sub: Bytes,
        value: Bytes,
    },
    DropEntry {
        database: u8,
        id: u64,
        sub: Bytes,
    },
    /// Removes all entries of a wide object, in constant time.
    Kill {
        database: u8,
        id: u64,
    },
    /// Removes all of a database, in constant time.
    Flush {
        database: u8,
    },
    /// Exchanges two databases, in constant time.
    Swap {
        a: u8,
        b: u8,
    },
}

impl Effect {
    /// Bytes of names and values.
    pub fn len(&self) -> usize {
        match self {
            Self::PutHead { key, head, .. } => key.name.len() + head.len(),
            Self::DropHead { key, .. } => key.name.len(),
            Self::PutEntry { sub, value, .. } => sub.len() + value.len(),
            Self::DropEntry { sub, .. } => sub.len(),
            Self::Kill { .. } | Self::Flush { .. } | Self::Swap { .. } => 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it only makes room.
    fn is_removal(&self) -> bool {
        match self {
            Self::DropHead { .. }
            | Self::DropEntry { .. }
            | Self::Kill { .. }
            | Self::Flush { .. } => true,
            Self::PutHead { .. } | Self::PutEntry { .. } | Self::Swap { .. } => false,
        }
    }

    /// Refuses an effect that exceeds a limit.
    fn check(&self) -> Result<(), Error> {
        let is_database = |database: u8| database < DATABASES || database == INTERNAL_DATABASE;
        let (databases, name_len, sub_len, value_len) = match self {
            Self::PutHead { key, head, .. } => ([key.database; 2], key.name.len(), 0, head.len()),
            Self::DropHead { key, .. } => ([key.database; 2], key.name.len(), 0, 0),
            Self::PutEntry { database, sub, value, .. } => {
                ([*database; 2], 0, sub.len(), value.len())
            }
            Self::DropEntry { database, sub, .. } => ([*database; 2], 0, sub.len(), 0),
            Self::Kill { database, .. } | Self::Flush { database } => ([*database; 2], 0, 0, 0),
            Self::Swap { a, b } => ([*a, *b], 0, 0, 0),
        };

        let why = if !databases.into_iter().all(is_database) {
            "it names a database that there is not"
        } else if name_len > OBJECT_NAME_LEN_MAX {
            "a key is too long"
        } else if sub_len > OBJECT_ENTRY_LEN_MAX {
            "the name of an entry is too long"
        } else if value_len > OBJECT_VALUE_LEN_MAX {
            "a value is too long"
        } else {
            return Ok(());
        };
        Err(Error::Invalid(why.to_owned()))
    }
}

/// Effects that happen together, in their order: all of them or none, after a crash as well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub effects: Vec<Effect>,
}

impl Group {
    /// Whether all of it makes room. A store whose disk is almost full still takes such a group.
    pub fn is_removal(&self) -> bool {
        self.effects.iter().all(Effect::is_removal)
    }

    /// Refuses a group that exceeds a limit.
    pub fn check(&self) -> Result<(), Error> {
        self.effects.iter().try_for_each(Effect::check)?;
        let bytes = self.effects.iter().map(|effect| effect.len() + EFFECT_BYTES).sum::<usize>();
        if bytes > OBJECT_GROUP_BYTES_MAX {
            return Err(Error::Invalid(format!("it has {bytes} bytes")));
        }
        Ok(())
    }
}

/// What an effect takes beside its names and values, at most.
const EFFECT_BYTES: usize = 48;

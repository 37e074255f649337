//! What all collections have in common, so that the keyspace treats them alike.

use bytes::Bytes;

/// A record that cannot be decoded. Says which part is wrong, for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored object is damaged: {0}")]
pub struct Damaged(pub &'static str);

/// A change of one entry of a wide collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Name of the entry's record within the object.
    pub sub: Bytes,
    /// What the record holds from now on. `None` drops it.
    pub value: Option<Bytes>,
}

/// A collection of entries, resident in memory as a whole.
///
/// Sizes are kept while entries change, so that asking for them costs nothing.
pub trait Collection {
    /// Number of entries.
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory, estimated.
    fn weight(&self) -> usize;

    /// Exact length of the packed form, in bytes.
    fn packed_len(&self) -> usize;

    /// Appends the packed form.
    fn pack(&self, packed: &mut Vec<u8>);

    /// All entries as records of the wide form: name and value.
    fn entries(&self) -> Box<dyn Iterator<Item = (Bytes, Bytes)> + '_>;

    /// What the head of the wide form keeps beside the number of entries. Empty for most kinds.
    fn meta(&self) -> Bytes {
        Bytes::new()
    }

    /// Remembers changes from now on: the collection is wide.
    fn track(&mut self);

    /// Forgets changes and remembers none, as if the collection had just been made. A clone is
    /// untracked as well.
    fn untrack(&mut self);

    /// Changes since the last call, each entry once. Empty while changes are not tracked.
    fn take_changes(&mut self) -> Vec<Change>;

    /// Decodes a packed form, which must be used up.
    fn unpack(packed: &[u8]) -> Result<Self, Damaged>
    where
        Self: Sized;

    /// An empty collection that [`Collection::add_entry`] fills from the records of the wide form.
    /// `count` is the number of entries to expect. Changes are tracked once all are added.
    fn begin(meta: &[u8], count: usize) -> Result<Self, Damaged>
    where
        Self: Sized;

    /// Adds one record of the wide form. Records arrive in order of their names.
    fn add_entry(&mut self, sub: &[u8], value: &[u8]) -> Result<(), Damaged>;

    /// Loads a wide collection from its records, and tracks its changes from then on.
    fn load(
        meta: &[u8],
        count: usize,
        entries: impl IntoIterator<Item = (Bytes, Bytes)>,
    ) -> Result<Self, Damaged>
    where
        Self: Sized,
    {
        let mut collection = Self::begin(meta, count)?;
        for (sub, value) in entries {
            collection.add_entry(&sub, &value)?;
        }
        if collection.len() != count {
            return Err(Damaged("the number of entries differs from the head"));
        }
        collection.track();
        Ok(collection)
    }

    /// Whether the packed form is small enough to be the record of the object.
    fn fits_packed(&self) -> bool {
        self.len() <= crate::limits::PACKED_ENTRIES_MAX
            && self.packed_len() <= crate::limits::PACKED_BYTES_MAX
    }
}

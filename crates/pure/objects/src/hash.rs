//! Hashes: fields with values, in no order, each with a position for random picks and walks.

use bytes::Bytes;
use foldhash::fast::RandomState;
use indexmap::IndexMap;

use crate::touched::Touched;
use crate::{Blob, Change, Collection, Damaged, cursor, heap_bytes, shrunk, varint};

/// Memory of an entry beside the heap of its field and value: the bucket and its index.
const ENTRY_BYTES: usize = size_of::<(u64, Blob, Blob)>() + 16;
/// Entries and longest string up to which clients see the encoding as `listpack`.
const LISTPACK_ENTRIES_MAX: usize = 512;
const LISTPACK_LEN_MAX: usize = 64;

/// A hash: values by field.
#[derive(Debug, Clone, Default)]
pub struct Hash {
    entries: IndexMap<Blob, Blob, RandomState>,
    heap_bytes: usize,
    packed_len: usize,
    touched: Touched,
    /// Whether it once outgrew what clients know as `listpack`.
    large: bool,
}

impl Hash {
    pub fn new() -> Hash {
        Hash::default()
    }

    pub fn get(&self, field: &[u8]) -> Option<&Blob> {
        self.entries.get(field)
    }

    pub fn contains(&self, field: &[u8]) -> bool {
        self.entries.contains_key(field)
    }

    /// Sets a field. Returns whether it is new.
    pub fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        self.touched.touch(field);
        self.packed_len += varint::blob_len(value);
        self.large |= field.len() > LISTPACK_LEN_MAX || value.len() > LISTPACK_LEN_MAX;

        if let Some(held) = self.entries.get_mut(field) {
            self.packed_len -= varint::blob_len(held);
            self.heap_bytes -= heap_bytes(held);
            // A new one: a short value in the room of a long one would keep that room.
            *held = Blob::from_slice(value);
            self.heap_bytes += heap_bytes(held);
            return false;
        }

        self.packed_len += varint::blob_len(field);
        let field = Blob::from_slice(field);
        let value = Blob::from_slice(value);
        self.heap_bytes += heap_bytes(&field) + heap_bytes(&value);
        self.entries.insert(field, value);
        self.large |= self.entries.len() > LISTPACK_ENTRIES_MAX;
        true
    }

    /// Removes a field. Returns whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        let Some((field, value)) = self.entries.swap_remove_entry(field) else {
            return false;
        };
        self.touched.touch(&field);
        self.packed_len -= varint::blob_len(&field) + varint::blob_len(&value);
        self.heap_bytes -= heap_bytes(&field) + heap_bytes(&value);
        if let Some(capacity) = shrunk(self.entries.len(), self.entries.capacity()) {
            self.entries.shrink_to(capacity);
        }
        true
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Blob, &Blob)> {
        self.entries.iter()
    }

    /// The entry at a position below the number of entries.
    pub fn at(&self, position: usize) -> Option<(&Blob, &Blob)> {
        self.entries.get_index(position)
    }

    /// Visits up to `count` entries from a cursor on; all of them while clients see a `listpack`.
    /// Returns the cursor for the next call, zero at the end.
    pub fn scan<'a>(
        &'a self,
        cursor: u64,
        load: u16,
        count: usize,
        mut visit: impl FnMut(&'a Blob, &'a Blob),
    ) -> u64 {
        let start = cursor::position(cursor, load, self.entries.len());
        let end = if self.large { start.saturating_sub(count) } else { 0 };
        for position in (end..start).rev() {
            if let Some((field, value)) = self.entries.get_index(position) {
                visit(field, value);
            }
        }
        cursor::at(end, load)
    }

    /// The encoding that `OBJECT ENCODING` reports.
    pub fn encoding(&self) -> &'static str {
        if self.large { "hashtable" } else { "listpack" }
    }
}

impl Collection for Hash {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn weight(&self) -> usize {
        size_of::<Hash>() + self.entries.len() * ENTRY_BYTES + self.heap_bytes
    }

    fn packed_len(&self) -> usize {
        self.packed_len
    }

    fn pack(&self, packed: &mut Vec<u8>) {
        for (field, value) in &self.entries {
            varint::write_blob(field, packed);
            varint::write_blob(value, packed);
        }
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (Bytes, Bytes)> + '_> {
        let copy = |(field, value): (&Blob, &Blob)| {
            (Bytes::copy_from_slice(field), Bytes::copy_from_slice(value))
        };
        Box::new(self.entries.iter().map(copy))
    }

    fn track(&mut self) {
        self.touched.track();
    }

    fn untrack(&mut self) {
        self.touched.untrack();
    }

    fn take_changes(&mut self) -> Vec<Change> {
        let change = |field: Blob| Change {
            value: self.entries.get(&field).map(|value| Bytes::copy_from_slice(value)),
            sub: Bytes::copy_from_slice(&field),
        };
        self.touched.take().into_iter().map(change).collect()
    }

    fn unpack(mut packed: &[u8]) -> Result<Hash, Damaged> {
        let mut hash = Hash::new();
        while !packed.is_empty() {
            let field = varint::read_blob(&mut packed)?;
            let value = varint::read_blob(&mut packed)?;
            hash.add_entry(field, value)?;
        }
        Ok(hash)
    }

    fn begin(_meta: &[u8], count: usize) -> Result<Hash, Damaged> {
        let mut hash = Hash::new();
        hash.entries.reserve(count.min(crate::limits::RESERVED_ENTRIES_MAX));
        Ok(hash)
    }

    fn add_entry(&mut self, sub: &[u8], value: &[u8]) -> Result<(), Damaged> {
        if self.set(sub, value) { Ok(()) } else { Err(Damaged("a field is there twice")) }
    }
}

#[cfg(test)]
mod tests;

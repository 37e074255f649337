//! Sets: members in no order, each with a position for random picks and walks.

use bytes::Bytes;
use foldhash::fast::RandomState;
use indexmap::IndexSet;

use crate::number::parse_i64;
use crate::touched::Touched;
use crate::{Blob, Change, Collection, Damaged, cursor, heap_bytes, shrunk, varint};

/// Memory of a member beside its heap: the bucket and its index.
const MEMBER_BYTES: usize = size_of::<(u64, Blob)>() + 16;
/// Members up to which clients see a set of integers as `intset`.
const INTSET_MEMBERS_MAX: usize = 512;

/// A set of members.
#[derive(Debug, Clone, Default)]
pub struct Set {
    members: IndexSet<Blob, RandomState>,
    heap_bytes: usize,
    packed_len: usize,
    touched: Touched,
    /// Whether it once outgrew what clients know as `intset`.
    large: bool,
}

impl Set {
    pub fn new() -> Set {
        Set::default()
    }

    pub fn contains(&self, member: &[u8]) -> bool {
        self.members.contains(member)
    }

    /// Adds a member. Returns whether it is new.
    pub fn insert(&mut self, member: &[u8]) -> bool {
        let blob = Blob::from_slice(member);
        let heap_bytes = heap_bytes(&blob);
        if !self.members.insert(blob) {
            return false;
        }
        self.touched.touch(member);
        self.packed_len += varint::blob_len(member);
        self.heap_bytes += heap_bytes;

        if !self.large {
            self.large = self.members.len() > INTSET_MEMBERS_MAX || parse_i64(member).is_none();
        }
        true
    }

    /// Removes a member. Returns whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match self.members.get_index_of(member) {
            Some(position) => self.take_at(position).is_some(),
            None => false,
        }
    }

    /// Removes the member at a position; the last one takes its place.
    pub fn take_at(&mut self, position: usize) -> Option<Blob> {
        let member = self.members.swap_remove_index(position)?;
        self.touched.touch(&member);
        self.packed_len -= varint::blob_len(&member);
        self.heap_bytes -= heap_bytes(&member);
        if let Some(capacity) = shrunk(self.members.len(), self.members.capacity()) {
            self.members.shrink_to(capacity);
        }
        Some(member)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Blob> {
        self.members.iter()
    }

    /// The member at a position below the number of members.
    pub fn at(&self, position: usize) -> Option<&Blob> {
        self.members.get_index(position)
    }

    /// Visits up to `count` members from a cursor on; all of them while clients see an `intset`.
    /// Returns the cursor for the next call, zero at the end.
    pub fn scan<'a>(
        &'a self,
        cursor: u64,
        load: u16,
        count: usize,
        mut visit: impl FnMut(&'a Blob),
    ) -> u64 {
        let start = cursor::position(cursor, load, self.members.len());
        let end = if self.large { start.saturating_sub(count) } else { 0 };
        for position in (end..start).rev() {
            if let Some(member) = self.members.get_index(position) {
                visit(member);
            }
        }
        cursor::at(end, load)
    }

    /// The encoding that `OBJECT ENCODING` reports.
    pub fn encoding(&self) -> &'static str {
        if self.large { "hashtable" } else { "intset" }
    }
}

impl<'a> FromIterator<&'a [u8]> for Set {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(members: I) -> Set {
        let mut set = Set::new();
        for member in members {
            set.insert(member);
        }
        set
    }
}

impl Collection for Set {
    fn len(&self) -> usize {
        self.members.len()
    }

    fn weight(&self) -> usize {
        size_of::<Set>() + self.members.len() * MEMBER_BYTES + self.heap_bytes
    }

    fn packed_len(&self) -> usize {
        self.packed_len
    }

    fn pack(&self, packed: &mut Vec<u8>) {
        for member in &self.members {
            varint::write_blob(member, packed);
        }
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (Bytes, Bytes)> + '_> {
        Box::new(self.members.iter().map(|member| (Bytes::copy_from_slice(member), Bytes::new())))
    }

    fn track(&mut self) {
        self.touched.track();
    }

    fn untrack(&mut self) {
        self.touched.untrack();
    }

    fn take_changes(&mut self) -> Vec<Change> {
        let change = |member: Blob| Change {
            value: self.members.contains(&member).then(Bytes::new),
            sub: Bytes::copy_from_slice(&member),
        };
        self.touched.take().into_iter().map(change).collect()
    }

    fn unpack(mut packed: &[u8]) -> Result<Set, Damaged> {
        let mut set = Set::new();
        while !packed.is_empty() {
            let member = varint::read_blob(&mut packed)?;
            set.add_entry(member, &[])?;
        }
        Ok(set)
    }

    fn begin(_meta: &[u8], count: usize) -> Result<Set, Damaged> {
        let mut set = Set::new();
        set.members.reserve(count.min(crate::limits::RESERVED_ENTRIES_MAX));
        Ok(set)
    }

    fn add_entry(&mut self, sub: &[u8], value: &[u8]) -> Result<(), Damaged> {
        if !value.is_empty() {
            return Err(Damaged("a member of a set has a value"));
        }
        if self.insert(sub) { Ok(()) } else { Err(Damaged("a member is there twice")) }
    }
}

#[cfg(test)]
mod tests;

//! Lists: entries in the order of their indexes, with cheap changes at either end.
//!
//! ```text
//!   index on disk    first, first + 1, … last        a record each, while the list is wide
//!   position         0, 1, … len - 1                 what callers name
//! ```
//!
//! An entry keeps its index while others come and go at the ends, so that a push or a pop changes
//! one record. An edit in the middle moves the entries of the shorter side to other indexes; beyond
//! [`LIST_MOVES_MAX`] of them it is refused, since each move writes a record.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;

use crate::limits::{LIST_MOVES_MAX, RESERVED_ENTRIES_MAX};
use crate::touched::Touched;
use crate::{Change, Collection, Damaged, shrunk, varint};

/// Bytes of memory for an entry beside its own: the handle, the allocation and some room of the
/// ring.
const ENTRY_BYTES: usize = size_of::<Bytes>() + 24;

/// An end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// An edit that would move too many entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the edit would move {moves} entries of the list, at most {LIST_MOVES_MAX} are allowed")]
pub struct TooManyMoves {
    pub moves: usize,
}

/// A list of strings.
#[derive(Debug, Clone, Default)]
pub struct List {
    entries: VecDeque<Bytes>,
    /// The index of the first entry, or of the next one in an empty list.
    first: i64,
    /// Bytes of all entries.
    bytes: usize,
    packed_len: usize,
    touched: Touched,
}

impl List {
    pub fn new() -> List {
        List::default()
    }

    /// The entry at a position.
    pub fn get(&self, position: usize) -> Option<&Bytes> {
        self.entries.get(position)
    }

    /// The entries of a range of positions, which is cut to those that there are.
    pub fn range(
        &self,
        positions: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = &Bytes> + ExactSizeIterator {
        let end = positions.end.min(self.entries.len());

        self.entries.range(positions.start.min(end)..end)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Bytes> + ExactSizeIterator {
        self.entries.iter()
    }

    pub fn push(&mut self, side: Side, entry: Bytes) {
        self.add(&entry);
        match side {
            Side::Left => {
                self.first -= 1;
                self.entries.push_front(entry);
                self.touch(0);
            }
            Side::Right => {
                self.entries.push_back(entry);
                self.touch(self.entries.len() - 1);
            }
        }
    }

    pub fn pop(&mut self, side: Side) -> Option<Bytes> {
        let last = self.entries.len().checked_sub(1)?;
        let entry = match side {
            Side::Left => {
                self.touch(0);
                self.first += 1;
                self.entries.pop_front()
            }
            Side::Right => {
                self.touch(last);
                self.entries.pop_back()
            }
        }?;
        self.subtract(&entry);
        self.shrink();

        Some(entry)
    }

    /// Replaces the entry at a position that there is.
    pub fn set(&mut self, position: usize, entry: Bytes) {
        self.add(&entry);
        let former = std::mem::replace(&mut self.entries[position], entry);

        self.subtract(&former);
        self.touch(position);
    }

    /// Inserts an entry before the one at a position, or at the end.
    pub fn insert(&mut self, position: usize, entry: Bytes) -> Result<(), TooManyMoves> {
        let behind = self.entries.len() - position;
        refuse_beyond(position.min(behind))?;

        self.add(&entry);
        self.entries.insert(position, entry);
        if position < behind {
            self.first -= 1;
            self.touch_all(0..position + 1);
        } else {
            self.touch_all(position..self.entries.len());
        }
        Ok(())
    }

    /// Removes the entries at some positions, which are given in rising order.
    pub fn remove(&mut self, positions: &[usize]) -> Result<(), TooManyMoves> {
        let len = self.entries.len();
        let still = longest_run(positions, len);
        refuse_beyond(len - positions.len() - still.len())?;

        // What stands left of the longest run moves right, and the other way round.
        self.touch_all(0..still.start);
        self.touch_all(still.end..len);
        let gone_left = positions.partition_point(|position| *position < still.start);

        for position in positions {
            let entry = std::mem::take(&mut self.entries[*position]);
            self.subtract(&entry);
        }
        let mut position = 0;
        let mut doomed = positions.iter().peekable();
        self.entries.retain(|_| {
            let goes = doomed.next_if(|next| **next == position).is_some();
            position += 1;
            !goes
        });
        self.first += gone_left as i64;
        self.shrink();

        Ok(())
    }

    /// Drops everything outside of a range of positions.
    pub fn keep(&mut self, positions: Range<usize>) {
        let len = self.entries.len();
        let end = positions.end.min(len);
        let start = positions.start.min(end);
        self.touch_all(0..start);
        self.touch_all(end..len);

        let gone = self.entries.range(..start).chain(self.entries.range(end..));
        let bytes: usize = gone.clone().map(Bytes::len).sum();
        let packed_len: usize = gone.map(|entry| varint::blob_len(entry)).sum();
        self.bytes -= bytes;
        self.packed_len -= packed_len;

        self.entries.truncate(end);
        self.entries.drain(..start);
        self.first += start as i64;
        self.shrink();
    }

    /// The encoding that `OBJECT ENCODING` reports.
    pub fn encoding(&self) -> &'static str {
        "quicklist"
    }

    fn add(&mut self, entry: &Bytes) {
        self.bytes += entry.len();
        self.packed_len += varint::blob_len(entry);
    }

    fn subtract(&mut self, entry: &Bytes) {
        self.bytes -= entry.len();
        self.packed_len -= varint::blob_len(entry);
    }

    fn shrink(&mut self) {
        if let Some(capacity) = shrunk(self.entries.len(), self.entries.capacity()) {
            self.entries.shrink_to(capacity);
        }
    }

    fn touch(&mut self, position: usize) {
        self.touched.touch(&record_name(self.first + position as i64));
    }

    fn touch_all(&mut self, positions: Range<usize>) {
        for position in positions {
            self.touch(position);
        }
    }
}

impl Collection for List {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn weight(&self) -> usize {
        size_of::<List>() + self.entries.len() * ENTRY_BYTES + self.bytes
    }

    fn packed_len(&self) -> usize {
        self.packed_len
    }

    fn pack(&self, packed: &mut Vec<u8>) {
        for entry in &self.entries {
            varint::write_blob(entry, packed);
        }
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (Bytes, Bytes)> + '_> {
        let name = |index| Bytes::copy_from_slice(&record_name(index));

        Box::new((self.first..).map(name).zip(self.entries.iter().cloned()))
    }

    /// The indexes of the first entry and of the one behind the last.
    fn meta(&self) -> Bytes {
        let behind = self.first + self.entries.len() as i64;

        [self.first.to_be_bytes(), behind.to_be_bytes()].concat().into()
    }

    fn track(&mut self) {
        self.touched.track();
    }

    fn untrack(&mut self) {
        self.touched.untrack();
    }

    fn take_changes(&mut self) -> Vec<Change> {
        let entry_of = |name: &[u8]| {
            let position = index_of(name)?.checked_sub(self.first)?;
            self.entries.get(usize::try_from(position).ok()?)
        };

        let change = |name: crate::Blob| Change {
            value: entry_of(&name).cloned(),
            sub: Bytes::copy_from_slice(&name),
        };
        self.touched.take().into_iter().map(change).collect()
    }

    fn unpack(packed: &[u8]) -> Result<List, Damaged> {
        let mut list = List::new();
        let mut rest = packed;

        while !rest.is_empty() {
            let entry = varint::read_blob(&mut rest)?;
            list.push(Side::Right, Bytes::copy_from_slice(entry));
        }
        Ok(list)
    }

    fn begin(meta: &[u8], count: usize) -> Result<List, Damaged> {
        let index = |at: Range<usize>| Some(i64::from_be_bytes(meta.get(at)?.try_into().ok()?));
        let damaged = Damaged("the indexes of a list are wrong");
        let first = index(0..8).ok_or(damaged)?;
        let behind = index(8..16).ok_or(damaged)?;

        let len = behind.checked_sub(first).and_then(|len| usize::try_from(len).ok());
        if meta.len() != 16 || len != Some(count) {
            return Err(damaged);
        }

        let entries = VecDeque::with_capacity(count.min(RESERVED_ENTRIES_MAX));
        Ok(List { entries, first, ..List::default() })
    }

    fn add_entry(&mut self, sub: &[u8], value: &[u8]) -> Result<(), Damaged> {
        if index_of(sub) != self.first.checked_add(self.entries.len() as i64) {
            return Err(Damaged("an entry of a list is not the next one"));
        }
        self.push(Side::Right, Bytes::copy_from_slice(value));

        Ok(())
    }
}

/// The name of an entry's record: its index, so that bytes sort as indexes do.
fn record_name(index: i64) -> [u8; 8] {
    ((index as u64) ^ (1 << 63)).to_be_bytes()
}

fn index_of(name: &[u8]) -> Option<i64> {
    let bits = u64::from_be_bytes(name.try_into().ok()?);

    Some((bits ^ (1 << 63)) as i64)
}

fn refuse_beyond(moves: usize) -> Result<(), TooManyMoves> {
    if moves <= LIST_MOVES_MAX { Ok(()) } else { Err(TooManyMoves { moves }) }
}

/// The longest stretch of positions below `len` between some that go: what stays where it is.
fn longest_run(going: &[usize], len: usize) -> Range<usize> {
    let starts = std::iter::once(0).chain(going.iter().map(|position| position + 1));
    let ends = going.iter().copied().chain(std::iter::once(len));

    starts.zip(ends).map(|(start, end)| start..end).max_by_key(Range::len).unwrap_or(0..len)
}

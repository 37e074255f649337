//! Changes of records in memory: looked up by a hash, and put in order once, when they are written.
//!
//! ```text
//!   heap        │ key value │ key value │ …      in chunks that never move
//!   looked up   hash of a key    ──▶ its place in the heap
//!   rows        hash of a wallet ──▶ the places of its rows, in their order
//!   in order    due rows and sums: few, and one ranges over them
//! ```

use crate::books::keys;
use crate::store::Fault;
use crate::store::tables::Take;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Size of the pieces in which memory is taken, so that nothing is moved when it grows.
const CHUNK_LEN: usize = 1 << 20;
/// Bytes that an entry of a table takes, with those that are empty.
const SLOT_BYTES: usize = 2 * size_of::<Owner>();
/// Bytes that a record in order takes beside its key and its value.
const NODE_BYTES: usize = 96;

/// A change of a record; `None` removes it.
pub type Change<'a> = (&'a [u8], Option<&'a [u8]>);

/// What some turns changed.
#[derive(Default)]
pub struct Layer {
    heap: Heap,
    looked_up: HashTable<Record>,
    rows: HashTable<Owner>,
    in_order: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    in_order_bytes: usize,
    /// Entries of the journal that it includes.
    entries: usize,
}

/// A key and what became of its value.
#[derive(Clone, Copy)]
struct Record {
    hash: u64,
    chunk: u32,
    at: u32,
    key_len: u32,
    /// `None` if it was removed.
    value_len: Option<u32>,
}

/// The rows of a wallet, whose names they begin with.
struct Owner {
    hash: u64,
    rows: SmallVec<[Record; 1]>,
}

impl Layer {
    pub fn is_empty(&self) -> bool {
        self.looked_up.is_empty() && self.rows.is_empty() && self.in_order.is_empty()
    }

    /// Bytes that it takes in memory, about.
    pub fn bytes(&self) -> usize {
        let slots = self.looked_up.len() + self.rows.len();
        self.heap.bytes + slots * SLOT_BYTES + self.in_order_bytes
    }

    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Notes that it includes more entries of the journal.
    pub fn add_entries(&mut self, entries: usize) {
        self.entries += entries;
    }

    pub fn put(&mut self, key: &[u8], value: Option<&[u8]>) {
        if keys::is_in_order(key) {
            let before = self.in_order.insert(key.to_vec(), value.map(<[u8]>::to_vec));
            let taken = if before.is_none() { key.len() + NODE_BYTES } else { 0 };
            self.in_order_bytes += taken + value.map_or(0, <[u8]>::len);
        } else if let Some(wallet) = keys::wallet_of_row(key) {
            self.put_row(wallet, key, value);
        } else {
            self.put_looked_up(key, value);
        }
    }

    fn put_looked_up(&mut self, key: &[u8], value: Option<&[u8]>) {
        let Self { heap, looked_up, .. } = self;
        let hash = xxh3_64(key);
        let is_it = |record: &Record| record.hash == hash && heap.key(record) == key;
        match looked_up.entry(hash, is_it, |record| record.hash) {
            Entry::Occupied(mut found) => heap.change(found.get_mut(), key, value),
            Entry::Vacant(place) => {
                place.insert(heap.push(hash, key, value));
            }
        }
    }

    fn put_row(&mut self, wallet: &[u8], key: &[u8], value: Option<&[u8]>) {
        let Self { heap, rows, .. } = self;
        let hash = xxh3_64(wallet);
        let is_it = |owner: &Owner| owner.is_of(heap, hash, wallet);
        let mut owner = rows
            .entry(hash, is_it, |owner| owner.hash)
            .or_insert_with(|| Owner { hash, rows: SmallVec::new() });
        let owned = &mut owner.get_mut().rows;
        match owned.binary_search_by(|row| heap.key(row).cmp(key)) {
            Ok(place) => heap.change(&mut owned[place], key, value),
            Err(place) => owned.insert(place, heap.push(hash, key, value)),
        }
    }

    /// What became of a record; `None` if nothing did.
    pub fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        if keys::is_in_order(key) {
            return self.in_order.get(key).map(Option::as_deref);
        }
        if let Some(wallet) = keys::wallet_of_row(key) {
            let rows = self.rows_of(wallet);
            let place = rows.binary_search_by(|row| self.heap.key(row).cmp(key)).ok()?;
            return Some(self.heap.value(&rows[place]));
        }

        let hash = xxh3_64(key);
        let is_it = |record: &Record| record.hash == hash && self.heap.key(record) == key;
        let record = self.looked_up.find(hash, is_it)?;
        Some(self.heap.value(record))
    }

    fn rows_of(&self, wallet: &[u8]) -> &[Record] {
        let hash = xxh3_64(wallet);
        let owner = self.rows.find(hash, |owner| owner.is_of(&self.heap, hash, wallet));
        owner.map_or(&[], |owner| &owner.rows)
    }

    /// The changes in a range, in order: of rows of one wallet, or of records that are in order.
    pub fn range(
        &self,
        range: &Range<Vec<u8>>,
    ) -> Box<dyn DoubleEndedIterator<Item = Change<'_>> + '_> {
        if let Some(wallet) = keys::wallet_of_row(&range.start) {
            let rows = self.rows_of(wallet);
            let place = |key: &[u8]| rows.partition_point(|row| self.heap.key(row) < key);
            let rows = &rows[place(&range.start)..place(&range.end)];
            return Box::new(rows.iter().map(|row| (self.heap.key(row), self.heap.value(row))));
        }
        assert!(keys::is_in_order(&range.start), "such records are only looked up");
        let changes = self.in_order.range::<Vec<u8>, _>(&range.start..&range.end);
        Box::new(changes.map(|(key, value)| (&key[..], value.as_deref())))
    }

    /// Hands over all changes in order.
    pub fn write(&self, take: &mut Take<'_>) -> Result<(), Fault> {
        let mut in_order = self.in_order.iter().peekable();
        for record in self.sorted() {
            let key = self.heap.key(&record);
            while let Some((before, value)) = in_order.next_if(|(before, _)| before[..] < *key) {
                take(before, value.as_deref())?;
            }
            take(key, self.heap.value(&record))?;
        }
        in_order.try_for_each(|(key, value)| take(key, value.as_deref()))
    }

    /// All records of the heap, by their keys.
    fn sorted(&self) -> Vec<Record> {
        let records = self.looked_up.iter().chain(self.rows.iter().flat_map(|owner| &owner.rows));
        let records: Vec<Record> = records.copied().collect();
        let shared = self.shared_lens(&records);

        // Most keys differ in the bytes behind those that all of their kind have, and need not be
        // read again.
        let part = |record: &Record| {
            let (kind, rest) = self.heap.key(record).split_first().expect("keys have a kind");
            let mut part = [0; size_of::<u128>()];
            let rest = &rest[shared[usize::from(*kind)]..];
            let len = rest.len().min(part.len() - 1);
            part[0] = *kind;
            part[1..=len].copy_from_slice(&rest[..len]);
            u128::from_be_bytes(part)
        };
        let mut parts: Vec<(u128, Record)> =
            records.into_iter().map(|record| (part(&record), record)).collect();
        parts.sort_unstable_by(|(one, first), (other, second)| {
            one.cmp(other).then_with(|| self.heap.key(first).cmp(self.heap.key(second)))
        });
        parts.into_iter().map(|(_, record)| record).collect()
    }

    /// How many bytes behind their first all keys of a kind have in common.
    fn shared_lens(&self, records: &[Record]) -> [usize; 1 << u8::BITS] {
        let mut first: [Option<&[u8]>; 1 << u8::BITS] = [None; _];
        let mut lens = [0; _];
        for record in records {
            let (kind, rest) = self.heap.key(record).split_first().expect("keys have a kind");
            let kind = usize::from(*kind);
            let known = *first[kind].get_or_insert_with(|| {
                lens[kind] = rest.len();
                rest
            });
            let same = known.iter().zip(rest).take(lens[kind]).take_while(|(a, b)| a == b);
            lens[kind] = same.count();
        }
        lens
    }
}

impl Owner {
    fn is_of(&self, heap: &Heap, hash: u64, wallet: &[u8]) -> bool {
        let first = self.rows.first().map(|row| heap.key(row));
        self.hash == hash && first.and_then(keys::wallet_of_row) == Some(wallet)
    }
}

/// Keys and values, one behind the other.
#[derive(Default)]
struct Heap {
    chunks: Vec<Vec<u8>>,
    bytes: usize,
}

impl Heap {
    fn push(&mut self, hash: u64, key: &[u8], value: Option<&[u8]>) -> Record {
        let len = key.len() + value.map_or(0, <[u8]>::len);
        let has_room = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() >= len;
        if !self.chunks.last().is_some_and(has_room) {
            self.chunks.push(Vec::with_capacity(len.max(CHUNK_LEN)));
        }

        self.bytes += len;
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let at = chunk.len();
        chunk.extend_from_slice(key);
        chunk.extend_from_slice(value.unwrap_or_default());
        Record {
            hash,
            chunk: number as u32,
            at: at as u32,
            key_len: key.len() as u32,
            value_len: value.map(|value| value.len() as u32),
        }
    }

    /// Replaces a value, in its place if it fits there.
    fn change(&mut self, record: &mut Record, key: &[u8], value: Option<&[u8]>) {
        let len = value.map_or(0, <[u8]>::len);
        if len > record.value_len.unwrap_or_default() as usize {
            *record = self.push(record.hash, key, value);
            return;
        }
        let at = (record.at + record.key_len) as usize;
        self.chunks[record.chunk as usize][at..at + len].copy_from_slice(value.unwrap_or_default());
        record.value_len = value.map(|value| value.len() as u32);
    }

    fn key(&self, record: &Record) -> &[u8] {
        let at = record.at as usize;
        &self.chunks[record.chunk as usize][at..at + record.key_len as usize]
    }

    fn value(&self, record: &Record) -> Option<&[u8]> {
        let at = (record.at + record.key_len) as usize;
        let len = record.value_len? as usize;
        Some(&self.chunks[record.chunk as usize][at..at + len])
    }
}

//! How the changes of a checkpoint become durable: in one batch, or in tables of their own.
//!
//! ```text
//!   batch    heads, entries, indexes, position                 one commit
//!   tables   indexes, position that is begun ──▶ heads, piece by piece, entries ──▶ position
//! ```
//!
//! Records of a batch pass through fjall's journal and its memory, and are sorted and written
//! twice. Tables are written once, but each place by itself and apart from the position. A start
//! that finds a position that was begun writes the same changes again, out of the log, which was
//! synced up to there before. What cannot be found out again is in the record: how many keys there
//! are, and, in the index, which wide objects died.

use super::disk::{Records, Write};
use super::journal::{ADVICE, Journal};
use super::keys::{self, ANCHOR, Anchor, BEGUN, Generation, Place};
use super::layer::{Changes, Layer};
use super::state::State;
use super::{checkpoints::LeftObjects, read_dead, replay};
use crate::store::Fault;
use crate::store::tables::Take;
use bytes::Bytes;
use hashbrown::HashMap;
use raingauge_ports::objects::Error;

/// Writes a layer and its position with one batch.
pub fn commit_batch(
    records: &dyn Records,
    layer: &Layer,
    left: &LeftObjects,
    anchor: &Anchor,
    mut writes: Vec<Write>,
) -> Result<(), Fault> {
    for (generation, changes) in &layer.generations {
        let place = Place::Heads(*generation);
        push_heads(changes, &changes.sorted_names(), records.has(place), &mut |key, value| {
            writes.push(Write::of(place, key, value));
            Ok(())
        })?;

        let place = Place::Entries(*generation);
        let left = left_of(left, *generation);
        push_entries(changes, left, records.has(place), &mut |key, value| {
            writes.push(Write::of(place, key, value));
            Ok(())
        })?;
    }
    writes.push(Write::put(Place::Meta, ANCHOR.to_vec(), anchor.encode()));
    records.commit(writes)
}

/// Notes the position that a checkpoint in tables will reach.
pub fn begin(records: &dyn Records, anchor: &Anchor, mut writes: Vec<Write>) -> Result<(), Fault> {
    writes.push(Write::put(Place::Meta, BEGUN.to_vec(), anchor.encode()));
    records.commit(writes)
}

/// Writes again what a checkpoint in tables had begun to write, if one had. Returns the position up
/// to which the records go then.
pub fn complete(
    journal: &Journal,
    records: &dyn Records,
    anchor: Anchor,
    begun: Option<Anchor>,
) -> Result<Anchor, Error> {
    let Some(begun) = begun else {
        return Ok(anchor);
    };
    let dead = read_dead(records, &begun)?.into_iter();
    let left = dead.map(|(generation, ids)| (generation, ids.into_iter().collect())).collect();

    let mut state = State::new(anchor, HashMap::new());
    replay(journal, records, &mut state, begun.stamp)?;
    write(records, &state.current, &left, usize::MAX, &|_, _| {})?;
    reach(records, &begun)?;
    Ok(begun)
}

/// The position of a checkpoint in tables that may be incomplete. Its groups are in the log, which
/// ends at `end`.
pub fn begun(records: &dyn Records, end: u64) -> Result<Option<Anchor>, Error> {
    let Some(record) = records.get(Place::Meta, BEGUN)? else {
        return Ok(None);
    };
    let begun = Anchor::decode(&record).filter(|begun| begun.stamp <= end);
    let malformed = || Error::Corrupt(format!("its begun position is malformed: {ADVICE}"));
    begun.ok_or_else(malformed).map(Some)
}

/// Notes the position of a checkpoint whose tables are written.
pub fn reach(records: &dyn Records, anchor: &Anchor) -> Result<(), Fault> {
    records.commit(vec![
        Write::put(Place::Meta, ANCHOR.to_vec(), anchor.encode()),
        Write::remove(Place::Meta, BEGUN.to_vec()),
    ])
}

/// Called with the names of heads that are durable.
pub type Written<'a> = dyn Fn(Generation, &[Bytes]) + 'a;

/// Writes a layer as tables. Heads are written in pieces of about `piece_bytes`, so that the memory
/// of one is free before the next one is written.
pub fn write(
    records: &dyn Records,
    layer: &Layer,
    left: &LeftObjects,
    piece_bytes: usize,
    written: &Written<'_>,
) -> Result<(), Fault> {
    for (generation, changes) in &layer.generations {
        let place = Place::Heads(*generation);
        let names = changes.sorted_names();
        let mut rest = &names[..];
        while !rest.is_empty() {
            let (piece, puts) = changes.first_piece(rest, piece_bytes);
            rest = &rest[piece.len()..];
            let has_records = records.has(place);
            if has_records || puts {
                records.write_tables(place, &mut |take| {
                    push_heads(changes, piece, has_records, take)
                })?;
            }
            written(*generation, piece);
        }

        let place = Place::Entries(*generation);
        let has_records = records.has(place);
        let left = left_of(left, *generation);
        if !changes.entries.is_empty() {
            records
                .write_tables(place, &mut |take| push_entries(changes, left, has_records, take))?;
        }
    }
    Ok(())
}

fn left_of(left: &LeftObjects, generation: Generation) -> &[u64] {
    left.get(&generation).map(Vec::as_slice).unwrap_or_default()
}

/// Hands over heads of a generation. Nothing has to be removed where no records ever were.
fn push_heads(
    changes: &Changes,
    names: &[Bytes],
    has_records: bool,
    take: &mut Take<'_>,
) -> Result<(), Fault> {
    let heads = changes.heads.read();
    let mut key = Vec::new();
    let mut record = Vec::new();
    for (name, change) in names.iter().filter_map(|name| Some((name, heads.get(name)?))) {
        key.clear();
        keys::write_head(name, &mut key);
        match &change.head {
            Some(head) => {
                record.clear();
                head.write(&mut record);
                take(&key, Some(&record))?;
            }
            None if has_records => take(&key, None)?,
            None => {}
        }
    }
    Ok(())
}

/// Hands over the entries of the wide objects of a generation that live.
fn push_entries(
    changes: &Changes,
    left: &[u64],
    has_records: bool,
    take: &mut Take<'_>,
) -> Result<(), Fault> {
    let mut ids: Vec<u64> = changes.entries.keys().copied().collect();
    ids.sort_unstable();

    let mut key = Vec::new();
    for id in ids.into_iter().filter(|id| !changes.killed.contains(id) && !left.contains(id)) {
        for (sub, value) in changes.entries.get(&id).into_iter().flatten() {
            key.clear();
            keys::write_entry(id, sub, &mut key);
            match value {
                Some(value) => take(&key, Some(value))?,
                None if has_records => take(&key, None)?,
                None => {}
            }
        }
    }
    Ok(())
}

impl Write {
    fn of(place: Place, key: &[u8], value: Option<&[u8]>) -> Self {
        Self { place, key: key.to_vec(), value: value.map(<[u8]>::to_vec) }
    }

    pub fn put(place: Place, key: Vec<u8>, value: Vec<u8>) -> Self {
        Self { place, key, value: Some(value) }
    }

    pub fn remove(place: Place, key: Vec<u8>) -> Self {
        Self { place, key, value: None }
    }
}

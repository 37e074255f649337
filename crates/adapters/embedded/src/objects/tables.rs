//! How the changes of a checkpoint become durable: in one batch, or in tables of their own.
//!
//! ```text
//!   batch    heads, entries, indexes, position                 one commit
//!   tables   indexes, position that is begun ──▶ heads, entries ──▶ position
//! ```
//!
//! Records of a batch pass through fjall's journal and its memory, and are sorted and written
//! twice. Tables are written once, but each place by itself and apart from the position. A start
//! that finds a position that was begun writes the same changes again, out of the log, which was
//! synced up to there before. What cannot be found out again is in the record: how many keys there
//! are, and, in the index, which wide objects died.

use super::disk::{Records, Write};
use super::journal::{ADVICE, Journal};
use super::keys::{self, ANCHOR, Anchor, BEGUN, Generation, Head, Place};
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
        push_heads(changes, records.has(place), &mut |key, value| {
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

/// Writes a layer as tables, and then its position.
pub fn commit_tables(
    records: &dyn Records,
    layer: &Layer,
    left: &LeftObjects,
    anchor: &Anchor,
    mut writes: Vec<Write>,
) -> Result<(), Fault> {
    writes.push(Write::put(Place::Meta, BEGUN.to_vec(), anchor.encode()));
    records.commit(writes)?;
    write_tables(records, layer, left)?;
    reach(records, anchor)
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
    write_tables(records, &state.current, &left)?;
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

fn reach(records: &dyn Records, anchor: &Anchor) -> Result<(), Fault> {
    records.commit(vec![
        Write::put(Place::Meta, ANCHOR.to_vec(), anchor.encode()),
        Write::remove(Place::Meta, BEGUN.to_vec()),
    ])
}

fn write_tables(records: &dyn Records, layer: &Layer, left: &LeftObjects) -> Result<(), Fault> {
    for (generation, changes) in &layer.generations {
        let place = Place::Heads(*generation);
        let has_records = records.has(place);
        if !changes.heads.is_empty() && (has_records || changes.heads.values().any(Option::is_some))
        {
            records.write_tables(place, &mut |take| push_heads(changes, has_records, take))?;
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

/// Hands over the heads of a generation. Nothing has to be removed where no records ever were.
fn push_heads(changes: &Changes, has_records: bool, take: &mut Take<'_>) -> Result<(), Fault> {
    let mut heads: Vec<(&Bytes, &Option<Head>)> = changes.heads.iter().collect();
    heads.sort_unstable_by_key(|(name, _)| *name);

    let mut key = Vec::new();
    let mut record = Vec::new();
    for (name, head) in heads {
        key.clear();
        keys::write_head(name, &mut key);
        match head {
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

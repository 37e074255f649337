//! Applies the entries that the records lack.

use super::journal::{Page, Pages};
use super::loading::{Memory, commit, load, sums};
use super::pending::Pending;
use super::state::{check_prefix, due_hours, head, turn_of};
use raingauge_points::Footprint;
use raingauge_ports::points::{Error, Head};
use std::sync::Arc;

/// Bytes of the journal that are applied with one batch.
const PART_BYTES: usize = 1 << 20;
/// Bytes of wallets in memory while entries are applied.
const CACHE_BYTES: usize = 64 << 20;

/// Reads how far the records go, and refuses those that do not follow from the journal.
pub fn checked_head(records: &Pending, pages: &Pages) -> Result<Head, Error> {
    let head = head(records)?;
    check_prefix(&head, pages)?;
    Ok(head)
}

/// Applies the journal behind a head. Returns the head then.
pub fn catch_up(records: &Pending, pages: &Pages, mut head: Head) -> Result<Head, Error> {
    let from = head.sequence;
    let end = pages.end();
    let mut memory = Memory::new(CACHE_BYTES);

    while head.sequence < end {
        let part = pages.blocks(head.sequence, PART_BYTES)?;
        if part.is_empty() {
            return Err(Error::Corrupt(format!("its journal ends before entry {end}")));
        }
        records.make_room()?;
        apply(records, pages, &mut memory, &part, &mut head)?;
    }

    if from < end {
        tracing::info!(entries = end - from, "applied the end of the journal of points");
    }
    Ok(head)
}

fn apply(
    records: &Pending,
    pages: &Pages,
    memory: &mut Memory,
    part: &[Page],
    head: &mut Head,
) -> Result<(), Error> {
    let before = head.clone();
    let mut entries = Vec::new();
    let mut places = Vec::new();
    for page in part {
        advance(head, page)?;
        entries.extend(page.entries.iter().map(|(_, entry)| Arc::clone(entry)));
        places.extend(page.entries.iter().map(|(place, _)| *place));
    }

    let footprint = Footprint::of_entries(entries.iter().map(|entry| &**entry));
    let mut snapshot = load(records, pages, memory, &before, &footprint)?;
    let due_before = due_hours(&snapshot);
    for entry in &entries {
        snapshot.apply(entry);
    }
    let turn = turn_of(snapshot, &footprint, entries);

    let sums = sums(records, memory, &turn)?;
    commit(records, memory, head, &turn, &places, &due_before, sums);
    Ok(())
}

/// Moves a head behind a block, which has to follow it.
fn advance(head: &mut Head, page: &Page) -> Result<(), Error> {
    if page.base != head.sequence || page.before != head.chain {
        return Err(Error::Corrupt(format!(
            "the block of entry {} does not follow entry {}",
            page.base + 1,
            head.sequence
        )));
    }
    page.encodings().for_each(|(entry, bytes)| head.apply(entry, bytes));
    Ok(())
}

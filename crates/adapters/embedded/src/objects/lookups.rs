//! Looks up keys of which nothing is known.
//!
//! A head may be replaced without a look at what was there. How many keys there are, and which wide
//! object the replaced head has left behind, is found out later: a few keys at a time beside other
//! work, so that callers who read from the same disk are not held up, and the rest by the
//! checkpoint.

use super::disk::Records;
use super::keys::{self, Generation, Head, Place};
use super::layer::{Found, Layer, UNKNOWN_LEN_MIN};
use super::state::Shared;
use crate::store::Fault;
use bytes::Bytes;
use hashbrown::HashMap;
use raingauge_ports::objects::Error;
use std::time::{Duration, Instant};

/// Threads that look up heads for a checkpoint: each look-up may wait for the disk.
const LOOKUP_THREADS: usize = 8;
/// Keys that are looked up ahead at a time, and for how long without a pause.
const AHEAD_LEN: usize = 16;
const AHEAD_TIME: Duration = Duration::from_millis(5);

/// Looks up some keys of the current layer, if there are enough of them.
pub fn look_ahead(shared: &Shared) -> Result<(), Error> {
    let _resolving = shared.resolving.lock();
    let first = shared.state.lock().current.first_unknown();
    if let Some(generation) = first {
        let began = Instant::now();
        while resolve(shared, generation, AHEAD_LEN)? && began.elapsed() < AHEAD_TIME {}
    }
    Ok(())
}

/// Looks up keys of a generation in the current layer, `len_max` at most. Returns whether there are
/// more. The caller holds `resolving`, so that no layer is frozen until they are known.
pub fn resolve(shared: &Shared, generation: Generation, len_max: usize) -> Result<bool, Error> {
    let mut unknown = {
        let mut state = shared.state.lock();
        let Some(changes) = state.current.generations.get_mut(&generation) else {
            return Ok(false);
        };
        changes.unknown.split_off(changes.unknown.len().saturating_sub(len_max))
    };
    let found = find(&*shared.records, generation, &unknown);

    let mut state = shared.state.lock();
    // It is gone if its database was flushed.
    let Some(changes) = state.current.generations.get_mut(&generation) else {
        return Ok(false);
    };
    match found {
        Ok(found) => {
            changes.resolve(&found);
            Ok(!changes.unknown.is_empty())
        }
        Err(fault) => {
            changes.unknown.append(&mut unknown);
            Err(fault.into())
        }
    }
}

/// Looks up the keys of a layer of which it is not known whether they had a head.
pub fn look_up(records: &dyn Records, layer: &Layer) -> Result<HashMap<Generation, Found>, Fault> {
    let mut found = HashMap::new();
    for (generation, changes) in &layer.generations {
        if !changes.unknown.is_empty() {
            found.insert(*generation, find(records, *generation, &changes.unknown)?);
        }
    }
    Ok(found)
}

/// Looks up heads in equal parts, each on a thread of its own, the first one on this.
pub fn find(
    records: &dyn Records,
    generation: Generation,
    unknown: &[(Bytes, Option<u64>)],
) -> Result<Found, Fault> {
    let mut unknown: Vec<&(Bytes, Option<u64>)> = unknown.iter().collect();
    unknown.sort_unstable();
    let threads = if unknown.len() < UNKNOWN_LEN_MIN { 1 } else { LOOKUP_THREADS };

    let find_all = |part: &[&(Bytes, Option<u64>)]| -> Result<Found, Fault> {
        let mut found = Found::default();
        for (name, spared) in part {
            let Some(record) = records.get(Place::Heads(generation), &keys::head(name))? else {
                continue;
            };
            let head = Head::decode(record).ok_or_else(|| malformed(name))?;
            found.present = found.present + head.tally();
            found.left.extend(head.wide.filter(|id| Some(*id) != *spared));
        }
        Ok(found)
    };
    let mut parts = unknown.chunks(unknown.len().div_ceil(threads).max(1));
    let own = parts.next().unwrap_or_default();

    std::thread::scope(|scope| {
        let others: Vec<_> = parts.map(|part| scope.spawn(move || find_all(part))).collect();
        let mut found = find_all(own)?;
        for other in others {
            let other = other.join().unwrap_or_else(|why| std::panic::resume_unwind(why))?;
            found.present = found.present + other.present;
            found.left.extend(other.left);
        }
        Ok(found)
    })
}

pub fn malformed(name: &[u8]) -> Fault {
    let name = String::from_utf8_lossy(&name[..name.len().min(64)]);
    Fault::Corrupt(format!("the head of {name:?} is malformed"))
}

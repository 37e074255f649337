//! Checkpoints: the thread that writes what changed to its place and shortens the log.
//!
//! ```text
//!   current layer ──freeze──▶ frozen layer ──▶ log synced up to it ──▶ unknown heads looked up
//!        ▲                                                                     │
//!   new groups         frozen layer dropped, log trimmed ◀── one batch with the position,
//!                                                            or tables: see `tables`
//! ```
//!
//! Between checkpoints the thread looks up heads ahead, and removes the entries of dead wide
//! objects, a few at a time.

use super::disk::{Records, Write};
use super::journal::now_ms;
use super::keys::{self, Anchor, DueKey, Generation, Place};
use super::layer::{Changes, Layer, due_key};
use super::lookups::{look_ahead, look_up};
use super::state::{Frozen, Shared, State};
use super::tables;
use bytes::Bytes;
use hashbrown::{HashMap, HashSet};
use parking_lot::MutexGuard;
use raingauge_ports::objects::{Error, KeyCount};
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Heads that readers wait for while they are taken out of memory.
const RELEASED_LEN: usize = 512;
/// How often the thread looks what the layer holds alone, while objects may be evicted that share
/// it.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Entries of dead objects that are removed with one batch.
const REAPED_LEN: usize = 2_000;
/// The pause between parts of work that can wait for a checkpoint.
const PAUSE: Duration = Duration::from_millis(5);

/// Runs until the store stops, with a last checkpoint, or is closed.
pub fn run(shared: &Shared) {
    let ran = std::panic::catch_unwind(AssertUnwindSafe(|| take_turns(shared)));
    match ran {
        Ok(Ok(())) => {}
        Ok(Err(Error::Closed(_))) => {}
        Ok(Err(error)) => drop(shared.close(&error.to_string())),
        Err(_) => drop(shared.close("a checkpoint panicked, which is a defect of raingauge")),
    }
}

fn take_turns(shared: &Shared) -> Result<(), Error> {
    let mut before = Instant::now();
    loop {
        let interval = shared.checkpoint_interval;
        let is_due = wait(shared, before + interval);

        if is_due || before.elapsed() >= interval {
            checkpoint(shared)?;
            before = Instant::now();
        } else {
            look_ahead(shared)?;
            reap(shared)?;
        }
        let state = shared.state.lock();
        state.check()?;
        if state.is_stopping {
            return Ok(());
        }
    }
}

/// Waits until a checkpoint is due, or a time, and only for a moment while there is other work.
/// Returns whether a checkpoint is due.
fn wait(shared: &Shared, until: Instant) -> bool {
    let mut state = shared.state.lock();
    let pause = Instant::now() + PAUSE;
    loop {
        let is_wanted = state.requested > shared.checkpoints.borrow().served;
        if is_wanted || shared.is_due(&state) || state.is_stopping || state.closed.is_some() {
            return true;
        }
        let now = Instant::now();
        let has_work = !state.dead.is_empty() || state.current.first_unknown().is_some();
        let until = if has_work { until.min(pause) } else { until };
        if now >= until {
            return false;
        }

        let looks = shared.may_become_due(&state);
        let look = if looks { until.min(now + LOOK_EVERY) } else { until };
        if shared.checkpoint_wake.wait_until(&mut state, look).timed_out() {
            state.look();
        }
    }
}

/// Writes what changed since the last checkpoint, if anything did.
pub fn checkpoint(shared: &Shared) -> Result<(), Error> {
    let began = Instant::now();
    let resolving = shared.resolving.lock();
    let requested = shared.state.lock().requested;
    let Some((layer, letters)) = freeze(shared) else {
        shared.serve(requested);
        return Ok(());
    };

    // What the records include must be in the log, or its stamps would be used again.
    shared.write()?;
    shared.sync()?;

    let found = look_up(&*shared.records, &layer)?;
    let left = found.iter().map(|(generation, found)| (*generation, found.left.clone()));
    let left: LeftObjects = left.collect();
    let (anchor, dead) = {
        let mut state = shared.state.lock();
        if let Some(frozen) = &mut state.frozen {
            frozen.found = found;
        }
        (state.anchor_of(&layer), state.dead_of(&layer.flushed))
    };
    drop(resolving);

    let records = &*shared.records;
    let (writes, due_min) = index_writes(records, &layer, &left, letters, dead);
    if layer.weight().bytes < shared.tables_bytes {
        tables::commit_batch(records, &layer, &left, &anchor, writes)?;
        shared.due.lock().rewind(due_min);
    } else {
        tables::begin(records, &anchor, writes)?;
        shared.due.lock().rewind(due_min);
        let release = |generation, names: &[Bytes]| release(shared, &layer, generation, names);
        tables::write(records, &layer, &left, shared.piece_bytes, &release)?;
        tables::reach(records, &anchor)?;
    }

    let stamp = layer.stamp;
    let flushed = layer.flushed.clone();
    let garbage = settle(shared, layer);
    for generation in flushed {
        shared.records.remove(generation)?;
    }
    shared.journal.trim(stamp)?;
    shared.complete(requested, began.elapsed());
    drop(garbage);
    Ok(())
}

/// Wide objects that heads left behind of which nothing had been known.
pub type LeftObjects = HashMap<Generation, Vec<u64>>;

/// Puts an empty layer in the place of the one that takes groups; `None` if nothing changed.
/// Returns it with the records of the index of expiries that led nowhere by then.
fn freeze(shared: &Shared) -> Option<(Arc<Layer>, Vec<DueKey>)> {
    let mut state = shared.state.lock();
    // Numbers that an earlier version did not write are a change.
    let is_counted = state.anchor.expiring.is_some();
    let is_empty = state.current.is_empty_since(state.anchor.stamp);
    if is_empty && state.dead_letters.is_empty() && is_counted {
        return None;
    }
    let next = state.current.next();
    let mut layer = std::mem::replace(&mut state.current, next);
    let garbage = std::mem::take(&mut layer.garbage);
    let layer = Arc::new(layer);
    state.frozen = Some(Frozen::new(Arc::clone(&layer)));
    let letters = std::mem::take(&mut state.dead_letters);
    drop(state);
    drop(garbage);
    Some((layer, letters))
}

impl State {
    /// The anchor with which a layer becomes durable.
    fn anchor_of(&self, layer: &Layer) -> Anchor {
        let found = self.frozen.as_ref().map(|frozen| &frozen.found);
        let count = |generation: Generation| -> KeyCount {
            let before = self.counts.get(&generation).copied().unwrap_or_default();
            let added = layer.added(generation);
            let found = found.and_then(|found| found.get(&generation));
            let found = found.map(|found| found.present).unwrap_or_default();
            (before + added - found).into()
        };
        Anchor {
            stamp: layer.stamp,
            next_id: layer.next_id,
            next_generation: layer.next_generation,
            databases: layer.databases.map(|generation| (generation, count(generation).keys)),
            expiring: Some(layer.databases.map(|generation| count(generation).expiring)),
        }
    }

    /// The records of dead objects of generations that were flushed.
    fn dead_of(&self, flushed: &[Generation]) -> Vec<(Generation, u64)> {
        let of = |generation: &Generation| {
            let ids = self.dead.get(generation).into_iter().flatten();
            ids.map(|id| (*generation, *id)).collect::<Vec<_>>()
        };
        flushed.iter().flat_map(of).collect()
    }
}

/// Gives back the memory of heads that are on the disk now.
fn release(shared: &Shared, layer: &Layer, generation: Generation, names: &[Bytes]) {
    let Some(changes) = layer.generations.get(&generation) else {
        return;
    };
    for names in names.chunks(RELEASED_LEN) {
        let (released, weight) = changes.release(names);
        drop(released);
        if let Some(frozen) = &mut shared.state.lock().frozen {
            frozen.weight -= weight;
        }
    }
    shared.state.lock().look();
    shared.tick();
}

/// After a commit: the frozen layer is what the disk has.
fn settle(shared: &Shared, layer: Arc<Layer>) -> (Arc<Layer>, Option<Frozen>) {
    let mut state = shared.state.lock();
    let anchor = state.anchor_of(&layer);
    let frozen = state.frozen.take();

    for (generation, changes) in &layer.generations {
        let found = frozen.as_ref().and_then(|frozen| frozen.found.get(generation));
        let left = found.into_iter().flat_map(|found| &found.left);
        if shared.records.has(Place::Entries(*generation)) {
            let dead = changes.killed.iter().chain(left).copied();
            state.dead.entry(*generation).or_default().extend(dead);
        }
    }
    state.dead.retain(|generation, ids| !ids.is_empty() && !layer.flushed.contains(generation));
    state.counts = anchor.counts();
    state.anchor = anchor;
    drop(state);
    // They are dropped by the caller, after others could go on.
    (layer, frozen)
}

/// What a checkpoint changes beside heads and entries, and the first time at which something in it
/// is due.
fn index_writes(
    records: &dyn Records,
    layer: &Layer,
    left: &LeftObjects,
    letters: Vec<DueKey>,
    dead: Vec<(Generation, u64)>,
) -> (Vec<Write>, Option<DueKey>) {
    let now_ms = now_ms();
    let mut writes = Vec::new();
    let mut due = HashSet::new();

    for (generation, changes) in &layer.generations {
        let left = left.get(generation).map(Vec::as_slice).unwrap_or_default();
        push_dead(records, *generation, changes, left, &mut writes);
        for (name, change) in changes.heads.read().iter() {
            if let Some(at_ms) = change.head.as_ref().and_then(|head| head.expires_ms) {
                due.insert(due_key(at_ms, now_ms, *generation, name.clone()));
            }
        }
    }

    let buried: HashSet<DueKey> = letters.into_iter().filter(|key| !due.contains(key)).collect();
    writes.extend(buried.iter().map(|key| Write::remove(Place::Meta, key.encode())));
    writes.extend(
        dead.iter()
            .map(|(generation, id)| Write::remove(Place::Meta, keys::dead(*generation, *id))),
    );
    writes.extend(due.iter().map(|key| Write::put(Place::Meta, key.encode(), Vec::new())));
    (writes, due.into_iter().min())
}

fn push_dead(
    records: &dyn Records,
    generation: Generation,
    changes: &Changes,
    left: &[u64],
    writes: &mut Vec<Write>,
) {
    // Where no entry ever was, none is left.
    if records.has(Place::Entries(generation)) {
        let dead: HashSet<u64> = changes.killed.iter().chain(left).copied().collect();
        writes.extend(
            dead.into_iter()
                .map(|id| Write::put(Place::Meta, keys::dead(generation, id), Vec::new())),
        );
    }
}

/// Removes some entries of a dead object, and its record with the last ones.
fn reap(shared: &Shared) -> Result<(), Error> {
    let first_of = |state: &State| {
        state.dead.iter().find_map(|(generation, ids)| Some((*generation, *ids.first()?)))
    };
    let first = first_of(&shared.state.lock());
    let Some((generation, id)) = first else {
        return Ok(());
    };

    let place = Place::Entries(generation);
    let mut writes = Vec::new();
    shared.records.scan(place, keys::entries(id, None), &mut |key, _| {
        writes.push(Write::remove(place, key.to_vec()));
        let is_enough = writes.len() == REAPED_LEN;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;

    let is_last = writes.len() < REAPED_LEN;
    if is_last {
        writes.push(Write::remove(Place::Meta, keys::dead(generation, id)));
    }
    shared.records.commit(writes)?;
    if is_last {
        let mut state = shared.state.lock();
        forget(&mut state, generation, id);
    }
    Ok(())
}

fn forget(state: &mut MutexGuard<'_, State>, generation: Generation, id: u64) {
    if let Some(ids) = state.dead.get_mut(&generation) {
        ids.remove(&id);
        if ids.is_empty() {
            state.dead.remove(&generation);
        }
    }
}

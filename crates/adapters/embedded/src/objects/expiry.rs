//! Which keys are due: by what is pending, and by the index of expiries.
//!
//! Records of the index are never looked for when a head changes. One that leads to no head, or to
//! a head that expires later, is removed with the next checkpoint after it was found.

use super::due::Due;
use super::keys::{self, DueKey, Generation, Head, Place};
use super::layer::Layer;
use super::reader::read_head;
use super::state::{Shared, State};
use bytes::Bytes;
use hashbrown::HashSet;
use raingauge_ports::objects::{Error, Key};
use std::ops::ControlFlow;

/// Records of the index that are read in one step.
const STEP_LEN: usize = 512;

/// Keys that were found to be due, each once.
struct DueKeys {
    keys: Vec<Key>,
    known: HashSet<(Generation, Bytes)>,
    len_max: usize,
}

impl DueKeys {
    fn add(&mut self, database: u8, generation: Generation, name: &Bytes) {
        if self.known.insert((generation, name.clone())) {
            self.keys.push(Key { database, name: name.clone() });
        }
    }

    fn is_full(&self) -> bool {
        self.keys.len() >= self.len_max
    }
}

/// What a record of the index leads to.
enum Letter {
    Due {
        database: u8,
    },
    /// Not yet, by the time that was asked for.
    Early,
    Dead,
}

pub fn due(shared: &Shared, until_ms: i64, len_max: usize) -> Result<Vec<Key>, Error> {
    let mut due = shared.due.lock();
    let mut found = DueKeys { keys: Vec::new(), known: HashSet::new(), len_max };
    pending(&mut shared.state.lock(), until_ms, &mut found);

    let owed: Vec<DueKey> = due.owed.iter().cloned().collect();
    for letter in owed {
        if found.is_full() || letter.due_ms > until_ms {
            break;
        }
        follow(shared, &mut due, letter, until_ms, &mut found)?;
    }

    while !found.is_full() {
        let letters = read_index(shared, due.cursor.as_ref(), until_ms)?;
        let is_end = letters.len() < STEP_LEN;
        for letter in letters {
            if found.is_full() {
                return Ok(found.keys);
            }
            due.cursor = Some(letter.clone());
            follow(shared, &mut due, letter, until_ms, &mut found)?;
        }
        if is_end {
            break;
        }
    }
    Ok(found.keys)
}

/// Adds the keys that expire by what is pending.
fn pending(state: &mut State, until_ms: i64, found: &mut DueKeys) {
    let State { current, frozen, .. } = state;
    let databases = current.databases;
    let database_of = |generation| database_of(&databases, generation);
    if let Some(frozen) = frozen {
        let mut expiring = frozen.layer.expiring.lock();
        for (at_ms, generation, name) in expiring.sorted().iter() {
            if *at_ms > until_ms || found.is_full() {
                break;
            }
            let is_own = current.head(*generation, name).is_none()
                && expires_at(&frozen.layer, *generation, name) == Some(*at_ms);
            if let Some(database) = database_of(*generation).filter(|_| is_own) {
                found.add(database, *generation, name);
            }
        }
    }

    let mut stale = Vec::new();
    let mut expiring = current.expiring.lock();
    for item in expiring.sorted().iter() {
        let (at_ms, generation, name) = item;
        if *at_ms > until_ms || found.is_full() {
            break;
        }
        match database_of(*generation) {
            Some(database) if expires_at(current, *generation, name) == Some(*at_ms) => {
                found.add(database, *generation, name);
            }
            _ => stale.push(item.clone()),
        }
    }
    for item in stale {
        expiring.sorted().remove(&item);
    }
}

fn expires_at(layer: &Layer, generation: Generation, name: &Bytes) -> Option<i64> {
    layer.head(generation, name).flatten()?.expires_ms
}

/// The database that has a generation; `None` if it was flushed.
fn database_of(databases: &[Generation], generation: Generation) -> Option<u8> {
    let place = databases.iter().position(|known| *known == generation)?;
    u8::try_from(place).ok()
}

/// Acts on a record of the index.
fn follow(
    shared: &Shared,
    due: &mut Due,
    letter: DueKey,
    until_ms: i64,
    found: &mut DueKeys,
) -> Result<(), Error> {
    match examine(shared, &letter, until_ms)? {
        Letter::Due { database } => {
            found.add(database, letter.generation, &letter.name);
            due.owed.insert(letter);
        }
        Letter::Early => drop(due.owed.insert(letter)),
        Letter::Dead => {
            due.owed.remove(&letter);
            shared.state.lock().dead_letters.push(letter);
        }
    }
    Ok(())
}

fn examine(shared: &Shared, letter: &DueKey, until_ms: i64) -> Result<Letter, Error> {
    let (database, pending) = {
        let state = shared.state.lock();
        let pending = state.pending_head(letter.generation, &letter.name);
        let pending = pending.map(|head| head.as_ref().and_then(expires_of));
        (database_of(&state.current.databases, letter.generation), pending)
    };
    let Some(database) = database else {
        return Ok(Letter::Dead);
    };

    let expires_ms = match pending {
        Some(expires_ms) => expires_ms,
        None => {
            let head = read_head(shared, letter.generation, &letter.name)?;
            head.as_ref().and_then(expires_of)
        }
    };
    Ok(match expires_ms {
        Some(at_ms) if at_ms <= until_ms => Letter::Due { database },
        Some(at_ms) if at_ms <= letter.due_ms => Letter::Early,
        // A later expiry has a record of its own.
        _ => Letter::Dead,
    })
}

fn expires_of(head: &Head) -> Option<i64> {
    head.expires_ms
}

fn read_index(
    shared: &Shared,
    after: Option<&DueKey>,
    until_ms: i64,
) -> Result<Vec<DueKey>, Error> {
    let mut range = keys::due_range(after, until_ms);
    if after.is_some() {
        range.start.push(0);
    }
    let mut letters = Vec::new();
    shared.records.scan(Place::Meta, range, &mut |key, _| {
        letters.extend(DueKey::decode(key));
        let is_enough = letters.len() == STEP_LEN;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(letters)
}

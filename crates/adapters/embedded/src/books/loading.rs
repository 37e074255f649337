//! Loads what a turn needs, and commits what it makes of the records. Wallets that were used before
//! are in memory; the rest is read ahead of the decision, in the order of the store: in one pass
//! where records lie side by side, as the wallets of a sweep do, and by several threads as soon as
//! it turns out that reads wait for the disk.

use super::journal::Pages;
use super::keys;
use super::pending::Pending;
use super::place::Place;
use super::records::{View as _, Write};
use super::state::{DueHours, budgets, decode_wallet, malformed, totals, writes_of};
use crate::cache::Cache;
use raingauge_points::{
    BookHead, Earned, Footprint, Key, Snapshot, TotalId, Totals, Turn, WalletId,
};
use raingauge_ports::points::{Error, Head};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Threads that read for a turn.
const READ_AHEAD_THREADS: usize = 4;
/// Reads of one thread that have taken this long wait for the disk.
const READ_ALONE_MAX: Duration = Duration::from_millis(2);

/// The value of a record, if there is one.
type Value = Option<Vec<u8>>;

/// The records of a footprint, in the order of its wallets and its keys.
struct Found {
    wallets: Vec<Value>,
    keys: Vec<Value>,
}

/// What a writer remembers of the records that it has read and written.
pub struct Memory {
    /// Wallets, as their last entries left them.
    wallets: Cache,
    /// The sums of programmes. Every turn changes some, and in the store each change leaves a
    /// version behind that a scan has to pass.
    totals: HashMap<Arc<str>, Totals>,
}

impl Memory {
    pub fn new(cache_bytes: usize) -> Self {
        Self { wallets: Cache::new(cache_bytes), totals: HashMap::new() }
    }

    fn totals(&mut self, records: &Pending, programme: &Arc<str>) -> Result<&Totals, Error> {
        if !self.totals.contains_key(programme) {
            self.totals.insert(Arc::clone(programme), totals(records, programme)?);
        }
        Ok(&self.totals[programme])
    }

    /// Follows a turn whose records were committed.
    fn apply(&mut self, wallets: impl Iterator<Item = Write>, sums: Vec<(TotalId, i128)>) {
        wallets.for_each(|(key, value)| self.wallets.put(key, value));
        for (id, sum) in sums {
            let totals = self.totals.get_mut(&id.programme);
            totals.expect("sums that a turn moves were read").0.insert(id, sum);
        }
    }
}

/// Loads a footprint. What it reads of wallets is remembered.
pub fn load(
    records: &Pending,
    pages: &Pages,
    memory: &mut Memory,
    head: &Head,
    footprint: &Footprint,
) -> Result<Snapshot, Error> {
    let mut snapshot = Snapshot { books: 1, ..Snapshot::default() };
    let Head { book, sequence, recorded_ms, .. } = *head;
    snapshot.heads = vec![BookHead { book, sequence, recorded_ms }];

    let found = read(records, &mut memory.wallets, footprint)?;
    put_wallets(&found.wallets, &footprint.wallets, &mut snapshot)?;
    put_keys(&found.keys, pages, &footprint.keys, &mut snapshot)?;

    put_others(records, footprint, &mut snapshot)?;
    // References lead to their budgets.
    for _ in 0..2 {
        put_others(records, &snapshot.missing(), &mut snapshot)?;
    }
    Ok(snapshot)
}

/// Returns what the sums that a turn moves are after it.
pub fn sums(
    records: &Pending,
    memory: &mut Memory,
    turn: &Turn,
) -> Result<Vec<(TotalId, i128)>, Error> {
    let after = |(id, amount): &(TotalId, i128)| {
        let before = memory.totals(records, &id.programme)?;
        Ok((id.clone(), before.after(id, *amount)))
    };
    turn.moved.iter().map(after).collect()
}

/// Reads wallets that are not in memory, and keys.
fn read(records: &Pending, cache: &mut Cache, footprint: &Footprint) -> Result<Found, Error> {
    let mut wallets = Vec::with_capacity(footprint.wallets.len());
    // The keys of wallets that are not in memory, and which of the wallets they are.
    let mut missing = Vec::new();
    let mut places = Vec::new();
    for (place, id) in footprint.wallets.iter().enumerate() {
        let key = keys::wallet(id);
        let cached = cache.get(&key);
        if cached.is_none() {
            missing.push(key);
            places.push(place);
        }
        wallets.push(cached.flatten());
    }

    missing.extend(footprint.keys.iter().map(|key| keys::key(*key)));
    let mut found = read_all(records, &missing, READ_ALONE_MAX)?;
    let keys = found.split_off(places.len());
    for ((place, key), value) in places.into_iter().zip(missing).zip(found) {
        wallets[place].clone_from(&value);
        cache.put(key, value);
    }
    Ok(Found { wallets, keys })
}

/// Reads records that lie side by side, others by this thread alone while that takes no longer than
/// `alone_max`, and the rest in equal parts by several threads, this one among them.
pub(super) fn read_all(
    records: &Pending,
    keys: &[Vec<u8>],
    alone_max: Duration,
) -> Result<Vec<Value>, Error> {
    let began = Instant::now();
    let mut found = records.get_neighbours(keys)?;
    while found.len() < keys.len() && began.elapsed() < alone_max {
        found.push(records.get(&keys[found.len()])?);
    }

    let rest = &keys[found.len()..];
    let read_part = |keys: &[Vec<u8>]| -> Result<Vec<Value>, Error> {
        keys.iter().map(|key| Ok(records.get(key)?)).collect()
    };
    let mut parts = rest.chunks(rest.len().div_ceil(READ_AHEAD_THREADS).max(1));
    let own = parts.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let readers: Vec<_> = parts.map(|part| scope.spawn(move || read_part(part))).collect();
        found.extend(read_part(own)?);
        for reader in readers {
            let read = reader.join();
            found.extend(read.unwrap_or_else(|why| std::panic::resume_unwind(why))?);
        }
        Ok(found)
    })
}

fn put_wallets(found: &[Value], ids: &[WalletId], snapshot: &mut Snapshot) -> Result<(), Error> {
    // Wallets that are new come in as well.
    snapshot.wallets.reserve(ids.len());
    for (id, value) in ids.iter().zip(found) {
        if let Some(bytes) = value {
            snapshot.wallets.insert(id.clone(), decode_wallet(bytes)?);
        }
    }
    Ok(())
}

fn put_keys(
    found: &[Value],
    pages: &Pages,
    ids: &[Key],
    snapshot: &mut Snapshot,
) -> Result<(), Error> {
    // Keys that are new come in as well.
    snapshot.keys.reserve(ids.len());
    for (key, value) in ids.iter().zip(found) {
        if let Some(bytes) = value {
            let place = Place::from_bytes(bytes).ok_or_else(|| malformed("a key"))?;
            snapshot.keys.insert(*key, pages.entry_at(&place)?);
        }
    }
    Ok(())
}

/// Loads references and budgets.
fn put_others(
    records: &Pending,
    footprint: &Footprint,
    snapshot: &mut Snapshot,
) -> Result<(), Error> {
    for id in &footprint.references {
        if let Some(bytes) = records.get(&keys::reference(id))? {
            let earned = Earned::decode(&bytes).map_err(|_| malformed("a reference"))?;
            snapshot.references.insert(id.clone(), earned);
        }
    }
    let used = budgets(records, &footprint.budgets)?;
    for (id, used) in footprint.budgets.iter().zip(used) {
        snapshot.budgets.extend(used.map(|used| (id.clone(), used)));
    }
    Ok(())
}

/// Takes what a turn makes of the records, which are written later. `sums` are those after it.
pub fn commit(
    records: &Pending,
    memory: &mut Memory,
    head: &Head,
    turn: &Turn,
    places: &[Place],
    due_before: &DueHours,
    sums: Vec<(TotalId, i128)>,
) {
    let writes = writes_of(head, turn, places, due_before, &sums);
    records.commit(&writes, turn.entries.len());
    memory.apply(writes.into_iter().take(turn.wallets.len()), sums);
}

//! The ledger of campaigns on fjall.
//!
//! ```text
//!   commit ──▶ position, states, budgets, decisions, timers, deliveries: one synced batch
//!   settle ──▶ a delivery and its budget: one batch, synced with the next commit
//! ```
//!
//! Writers of all kinds take turns. What is read often is in memory: states in a cache of bounded
//! size, and how far timers and deliveries have certainly been read, since the places of what was
//! removed slow a scan down until fjall has compacted them.

mod erasure;
mod expiry;
mod keys;
mod outbox;
mod progress;
mod reader;
mod writes;

use crate::cache::Cache;
use crate::room::Room;
use crate::store::{self, Fault, Store};
use fjall::OwnedWriteBatch;
use parking_lot::Mutex;
use progress::{Expiry, Sending};
use raingauge_ports::campaigns::{
    self, ActionId, Budget, BudgetKey, Checkpoint, Commit, Decision, Delivery, DeliveryRecord,
    Error, StateKey, Timer,
};
use raingauge_ports::{BoxFuture, log};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use writes::{CHECKPOINT_VERSION, Writes, put_checkpoint, put_decisions, put_delivery};

/// Version of the keys.
const FORMAT: u32 = 1;
const ADVICE: &str = "restore the data folder from a backup";

/// Options of the ledger.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of states in memory.
    pub cache_bytes: usize,
    /// Bytes of fjall's own cache of blocks.
    pub block_cache_bytes: u64,
    /// Most table files that fjall keeps open.
    pub open_files_max: usize,
    /// Bytes that are kept free on the disk.
    pub reserve_bytes: u64,
}

impl Options {
    /// A quarter of the cache, within the limits that keep fjall fast.
    fn memtable_bytes(&self) -> u64 {
        (self.cache_bytes as u64 / 4).clamp(4 << 20, 64 << 20)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 128 << 20,
            block_cache_bytes: 32 << 20,
            open_files_max: 300,
            reserve_bytes: 0,
        }
    }
}

/// The ledger of one data folder. Only one process has it open at a time.
pub struct CampaignLedger {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    room: Room,
    /// Held by everything that writes. It is locked before `sending`.
    writing: Mutex<Writing>,
    sending: Mutex<Sending>,
    /// What the worker has loaded or committed.
    states: Mutex<Cache>,
    /// There is no timer before this time.
    timers_from: Mutex<i64>,
}

struct Writing {
    checkpoint: Checkpoint,
    expiry: Expiry,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Corrupt(why) => Self::Corrupt(why),
            Fault::Io(why) => Self::Io(why),
            Fault::Locked => Self::Locked,
        }
    }
}

fn failed(error: fjall::Error) -> Error {
    Fault::from(error).into()
}

/// The error about a value that this program cannot read.
fn malformed(what: &str) -> Error {
    Error::Corrupt(format!("{what} is malformed, or was written by a newer version: {ADVICE}"))
}

impl CampaignLedger {
    pub fn open(folder: &Path, options: &Options) -> Result<Self, Error> {
        let settings = store::Options {
            block_cache_bytes: options.block_cache_bytes,
            open_files_max: options.open_files_max,
            ..store::Options::new("ledger", FORMAT, options.memtable_bytes(), ADVICE)
        };
        let store = Store::open(folder, &settings)?;
        let checkpoint = checkpoint_in(&store)?;
        let inner = Inner {
            store,
            room: Room::new(folder, options.reserve_bytes),
            writing: Mutex::new(Writing { checkpoint, expiry: Expiry::default() }),
            sending: Mutex::default(),
            states: Mutex::new(Cache::new(options.cache_bytes)),
            timers_from: Mutex::new(i64::MIN),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Merges the files on disk into as few as possible. Blocks the thread.
    pub fn compact(&self) -> Result<(), Error> {
        Ok(self.inner.store.compact()?)
    }

    /// Runs blocking work outside the asynchronous threads.
    fn in_background<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, Error> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, Error>> {
        store::in_background(&self.inner, work)
    }
}

fn checkpoint_in(store: &Store) -> Result<Checkpoint, Error> {
    let control = store.get(keys::CONTROL)?.unwrap_or_default();
    let Some(bytes) = store.get(keys::CHECKPOINT)? else {
        return Ok(Checkpoint { control, ..Checkpoint::default() });
    };
    let numbers = bytes.strip_prefix(&[CHECKPOINT_VERSION]).map(<[u8]>::as_chunks::<8>);
    match numbers {
        Some(([epoch, position, log_ms], [])) => Ok(Checkpoint {
            epoch: u64::from_le_bytes(*epoch),
            position: u64::from_le_bytes(*position),
            log_ms: i64::from_le_bytes(*log_ms),
            control,
        }),
        _ => Err(malformed("the checkpoint")),
    }
}

impl Inner {
    /// Commits a batch of changes, unless the disk is almost full.
    fn write(&self, mut batch: OwnedWriteBatch, writes: Writes) -> Result<(), Error> {
        if let Err(log::Error::Full { free_bytes, reserve_bytes }) = self.room.check() {
            return Err(Error::Full { free_bytes, reserve_bytes });
        }
        for (key, value) in writes {
            match value {
                Some(value) => batch.insert(&self.store.keyspace, key, value),
                None => batch.remove(&self.store.keyspace, key),
            }
        }
        Ok(self.store.commit(batch)?)
    }

    fn budget(&self, key: &BudgetKey) -> Result<Budget, Error> {
        match self.store.get(&keys::budget(key))? {
            Some(bytes) => Budget::from_bytes(&bytes).ok_or_else(|| malformed("a budget")),
            None => Ok(Budget::default()),
        }
    }

    fn is_granted(&self, action: ActionId) -> Result<bool, Error> {
        self.store.keyspace.contains_key(keys::action(action)).map_err(failed)
    }

    /// Refuses what was granted or handed to the outbox before.
    fn check_new(&self, commit: &Commit) -> Result<(), Error> {
        for Decision { action, .. } in commit.decisions.iter().filter(|one| one.is_granted) {
            if self.is_granted(*action)? {
                return Err(Error::Invalid(format!("{action} was granted before")));
            }
        }
        for Delivery { action, .. } in &commit.deliveries {
            if self.store.keyspace.contains_key(keys::delivery(*action)).map_err(failed)? {
                return Err(Error::Invalid(format!("{action} is in the outbox already")));
            }
        }
        Ok(())
    }

    fn commit(&self, commit: Commit) -> Result<(), Error> {
        let mut writing = self.writing.lock();
        writing.checkpoint.precedes(&commit)?;
        commit.check()?;
        self.check_new(&commit)?;

        let mut writes = Writes::new();
        for change in &commit.budgets {
            let budget = self.budget(&change.key)?.change(change)?;
            writes.insert(keys::budget(&change.key), Some(budget.to_bytes()));
        }
        put_decisions(&commit.decisions, &mut writes);
        for (due_ms, action) in &commit.fired {
            writes.insert(keys::timer(*due_ms, *action), None);
        }
        for timer in &commit.timers {
            writes.insert(keys::timer(timer.due_ms, timer.action), Some(timer.to_bytes()));
        }
        for delivery in &commit.deliveries {
            writes.insert(keys::body(delivery.action), Some(delivery.body.clone()));
            put_delivery(&DeliveryRecord::new(delivery.clone()), &mut writes);
        }

        let checkpoint = writing.checkpoint.after(&commit);
        put_checkpoint(&checkpoint, &mut writes);
        if let Some(control) = &commit.control {
            writes.insert(keys::CONTROL.to_vec(), Some(control.clone()));
        }
        let states: Vec<_> =
            commit.states.into_iter().map(|(key, value)| (keys::state(&key), value)).collect();
        writes.extend(states.iter().cloned());

        self.write(self.store.synced_batch(), writes)?;

        writing.checkpoint = checkpoint;
        writing.expiry.note(&commit.decisions);
        self.note_timers(&commit.timers);
        let due = commit.deliveries.iter().map(|one| (one.destination.as_str(), one.due_ms));
        self.sending.lock().note_pending(due);
        let mut cache = self.states.lock();
        states.into_iter().for_each(|(key, value)| cache.put(key, value));

        Ok(())
    }

    fn note_timers(&self, timers: &[Timer]) {
        let mut from = self.timers_from.lock();
        *from = timers.iter().map(|timer| timer.due_ms).fold(*from, i64::min);
    }

    fn due(&self, until_ms: i64, len_max: usize) -> Result<Vec<Timer>, Error> {
        let mut from = self.timers_from.lock();
        let end_ms = until_ms.saturating_add(1);
        if *from >= end_ms || len_max == 0 {
            return Ok(Vec::new());
        }

        let range = keys::timers_from(*from)..keys::timers_from(end_ms);
        let timers = self.timers_in(range, len_max)?;
        *from = timers.first().map_or(end_ms, |timer| timer.due_ms);
        Ok(timers)
    }

    fn timers_in(&self, range: Range<Vec<u8>>, len_max: usize) -> Result<Vec<Timer>, Error> {
        let mut timers = Vec::new();
        for guard in self.store.keyspace.range(range).take(len_max) {
            let (key, value) = guard.into_inner().map_err(failed)?;
            let timer = keys::timer_of(&key)
                .and_then(|(due_ms, action)| Timer::from_bytes(due_ms, action, &value));
            timers.push(timer.ok_or_else(|| malformed("a timer"))?);
        }
        Ok(timers)
    }

    fn load(&self, keys: &[StateKey]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut cache = self.states.lock();
        let values = keys.iter().map(|key| {
            let key = keys::state(key);
            if let Some(value) = cache.get(&key) {
                return Ok(value);
            }
            let value = self.store.get(&key)?;
            cache.put(key, value.clone());
            Ok(value)
        });
        values.collect()
    }
}

impl campaigns::Ledger for CampaignLedger {
    fn take_over(&self) -> Result<Checkpoint, Error> {
        let mut writing = self.inner.writing.lock();
        let epoch = writing.checkpoint.epoch + 1;
        let checkpoint = Checkpoint { epoch, ..writing.checkpoint.clone() };
        let mut writes = Writes::new();
        put_checkpoint(&checkpoint, &mut writes);
        self.inner.write(self.inner.store.synced_batch(), writes)?;
        writing.checkpoint = checkpoint.clone();
        Ok(checkpoint)
    }

    fn load(&self, keys: &[StateKey]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.inner.load(keys)
    }

    fn known(&self, actions: &[ActionId]) -> Result<Vec<bool>, Error> {
        actions.iter().map(|action| self.inner.is_granted(*action)).collect()
    }

    fn budgets(&self, keys: &[BudgetKey]) -> Result<Vec<Budget>, Error> {
        keys.iter().map(|key| self.inner.budget(key)).collect()
    }

    fn due(&self, until_ms: i64, len_max: usize) -> Result<Vec<Timer>, Error> {
        self.inner.due(until_ms, len_max)
    }

    fn timers_from(&self, place: (i64, ActionId), len_max: usize) -> Result<Vec<Timer>, Error> {
        let (due_ms, action) = place;
        self.inner.timers_in(keys::timer(due_ms, action)..keys::timers_end(), len_max)
    }

    fn timers_len(&self, len_max: usize) -> Result<usize, Error> {
        let range = keys::timers_from(i64::MIN)..keys::timers_end();
        let mut len = 0;
        for guard in self.inner.store.keyspace.range(range).take(len_max) {
            guard.key().map_err(failed)?;
            len += 1;
        }
        Ok(len)
    }

    fn commit(&self, commit: Commit) -> Result<(), Error> {
        self.inner.commit(commit)
    }
}

#[cfg(test)]
mod tests;

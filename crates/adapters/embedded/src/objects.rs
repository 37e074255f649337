//! The store of objects: a log of groups in segment files, and their records on fjall.
//!
//! ```text
//!   submit ──▶ layer in memory ───────────▶ checkpoint ──▶ fjall: heads, entries, position
//!      │            ▲                                        ▲
//!      └──▶ block ──┼──▶ log, synced together ──▶ durable    │
//!   reads ──────────┴────────────────────────────────────────┘
//! ```
//!
//! The log is the truth since the last checkpoint, and fjall before it: a checkpoint ends with the
//! position up to which it includes the log. What is overwritten in between is written to
//! fjall once, and no caller waits for fjall.

mod checkpoints;
mod disk;
mod due;
mod expiry;
mod groups;
mod journal;
mod keys;
mod layer;
mod log_thread;
mod lookups;
mod options;
mod read_ahead;
mod reader;
mod readers;
mod recount;
mod scheduling;
mod sharing;
mod state;
mod tables;
mod tally;
#[cfg(test)]
mod tests;
mod verify;
mod waiters;

use crate::files::DiskFolder;
use crate::room::Room;
use crate::store::Fault;
use bytes::Bytes;
use disk::{FjallRecords, Records};
use hashbrown::HashMap;
use journal::{ADVICE, Inspection, Journal};
use keys::{ANCHOR, Anchor, Generation, Place};
use raingauge_ports::BoxFuture;
use raingauge_ports::objects::{
    Durability, EntryPage, Error, FoundHead, Group, Key, KeyCount, ObjectControl, ObjectStore,
    Progress, Status, SyncMode,
};
use readers::Readers;
use state::{Opened, Shared, State};
use std::collections::BTreeSet;
use std::future::ready;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use options::Options;
pub use verify::{Description, Difference, Summary, WideObject, verify};

const LOG_FOLDER: &str = "log";
const STATE_FOLDER: &str = "state";
/// Longest time for which a caller is held up by a checkpoint. When that is not enough, groups are
/// refused.
const PACE_MAX: Duration = Duration::from_secs(5);

/// The objects of one data folder. Only one process has them open at a time. A store that is
/// dropped writes and syncs all of its groups, and a last checkpoint.
pub struct ObjectFiles {
    shared: Arc<Shared>,
    readers: Readers,
    log: Option<JoinHandle<()>>,
    checkpoints: Option<JoinHandle<()>>,
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

impl ObjectFiles {
    /// Opens the objects in `folder`, or creates them. A tail of the log that was never
    /// acknowledged is cut off; damage to anything acknowledged is an error, and changes nothing.
    pub fn open(folder: &Path, options: &Options) -> Result<Self, Error> {
        Self::start(Arc::new(open_shared(folder, options)?))
    }

    fn start(shared: Arc<Shared>) -> Result<Self, Error> {
        let spawn = |name: &str, run: fn(&Shared)| {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn(move || run(&shared)).map_err(|why| Error::Io(why.to_string()))
        };
        let readers = Readers::start(&shared)?;
        let mut store = Self { shared: Arc::clone(&shared), readers, log: None, checkpoints: None };
        store.log = Some(spawn("objects-log", log_thread::run)?);
        store.checkpoints = Some(spawn("objects-checkpoint", checkpoints::run)?);
        Ok(store)
    }
}

/// Opens what the threads share, before there are any.
fn open_shared(folder: &Path, options: &Options) -> Result<Shared, Error> {
    let log = open_log(folder)?;
    let state = folder.join(STATE_FOLDER);
    read_ahead::read_ahead(&state);
    let inspection = Inspection::of(log, options.segment_bytes)?;
    let records = FjallRecords::open(&state, options)?;
    let room = Room::new(folder, options.reserve_bytes);
    recover(inspection, Box::new(records), room, options)
}

/// Opens the folder of the log, which no other process has open then.
fn open_log(folder: &Path) -> Result<Arc<DiskFolder>, Error> {
    match DiskFolder::open(&folder.join(LOG_FOLDER)) {
        Ok(log) => Ok(Arc::new(log)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Error::Locked),
        Err(error) => Err(Error::Io(error.to_string())),
    }
}

/// Brings the state up to the log.
fn recover(
    inspection: Inspection,
    records: Box<dyn Records>,
    room: Room,
    options: &Options,
) -> Result<Shared, Error> {
    let anchor = checked_anchor(&inspection, &*records)?;
    let (_, end) = inspection.stamps();
    let begun = tables::begun(&*records, end)?;

    // From here on only the disk can refuse the start.
    let journal = inspection.open()?;
    let anchor = tables::complete(&journal, &*records, anchor, begun)?;
    remove_flushed(&*records, &anchor)?;
    let dead = read_dead(&*records, &anchor)?;
    let is_counted = anchor.expiring.is_some();
    let mut state = State::new(anchor, dead);
    replay(&journal, &*records, &mut state, end)?;
    if !is_counted {
        recount::count_expiring(&*records, &mut state)?;
    }
    Ok(Shared::new(Opened { journal, records, room, state }, options))
}

/// Reads how far the records go, and refuses those that do not belong to the log.
fn checked_anchor(inspection: &Inspection, records: &dyn Records) -> Result<Anchor, Error> {
    let anchor = match records.get(Place::Meta, ANCHOR)? {
        Some(record) => Anchor::decode(&record)
            .ok_or_else(|| Error::Corrupt(format!("its position is malformed: {ADVICE}")))?,
        None => Anchor::first(),
    };
    let (start, end) = inspection.stamps();
    if anchor.stamp > end {
        return Err(Error::Corrupt(format!(
            "its state includes {} groups, but its log ends at group {end}: {ADVICE}",
            anchor.stamp
        )));
    }
    if anchor.stamp < start {
        return Err(Error::Corrupt(format!(
            "its state includes {} groups, but its log begins behind group {start}: {ADVICE}",
            anchor.stamp
        )));
    }

    for (database, (generation, count)) in anchor.databases.iter().enumerate() {
        if *count > 0 && !records.has(Place::Heads(*generation)) {
            return Err(Error::Corrupt(format!(
                "its state counts {count} keys of database {database} and has none: {ADVICE}"
            )));
        }
    }
    Ok(anchor)
}

/// Removes generations that a crash left behind.
fn remove_flushed(records: &dyn Records, anchor: &Anchor) -> Result<(), Error> {
    let is_known =
        |generation: Generation| anchor.databases.iter().any(|(known, _)| *known == generation);
    let found: BTreeSet<Generation> =
        records.places().into_iter().filter_map(Place::generation).collect();
    for generation in found.into_iter().filter(|generation| !is_known(*generation)) {
        records.remove(generation)?;
    }
    Ok(())
}

fn read_dead(
    records: &dyn Records,
    anchor: &Anchor,
) -> Result<HashMap<Generation, BTreeSet<u64>>, Error> {
    let mut dead = HashMap::<Generation, BTreeSet<u64>>::new();
    records.scan(Place::Meta, keys::all_dead(), &mut |key, _| {
        if let Some((generation, id)) = keys::dead_of(key) {
            dead.entry(generation).or_default().insert(id);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    dead.retain(|generation, _| anchor.databases.iter().any(|(known, _)| known == generation));
    Ok(dead)
}

/// Applies the groups that the records lack, up to a stamp.
fn replay(
    journal: &Journal,
    records: &dyn Records,
    state: &mut State,
    until: u64,
) -> Result<(), Error> {
    let before = state.current.stamp;
    journal.replay(before, until, &mut |stamp, group| {
        state.apply(group, records);
        assert_eq!(state.current.stamp, stamp, "groups are numbered without a gap");
        Ok(())
    })?;

    state.current.replayed_bytes = state.current.weight().bytes;
    let groups = state.current.stamp - before;
    if groups > 0 {
        tracing::info!(groups, "applied the end of the log of objects");
    }
    Ok(())
}

impl Drop for ObjectFiles {
    fn drop(&mut self) {
        self.shared.state.lock().is_stopping = true;
        self.shared.checkpoint_wake.notify_all();
        if let Some(thread) = self.checkpoints.take() {
            let _ = thread.join();
        }

        self.shared.state.lock().is_ending = true;
        self.shared.log_wake.notify_all();
        if let Some(thread) = self.log.take() {
            let _ = thread.join();
        }
        if self.shared.state.lock().closed.is_none() {
            self.shared.state.lock().closed = Some("raingauge is stopping".to_owned());
        }
        self.shared.written.give_up();
        self.shared.synced.give_up();
    }
}

impl ObjectFiles {
    /// Whether a stamp is reached; an error if it will never be.
    fn is_reached(&self, stamp: u64, durability: Durability) -> Result<bool, Error> {
        let progress = &self.shared.progress;
        let reached = match durability {
            Durability::Written => progress.written(),
            Durability::Synced => progress.synced(),
        };
        if reached >= stamp {
            return Ok(true);
        }
        self.shared.state.lock().check()?;
        Ok(false)
    }

    async fn wait_for(&self, stamp: u64, durability: Durability) -> Result<(), Error> {
        if !self.is_reached(stamp, durability)? {
            // Callers that are ready now submit first, so that one write takes the groups of all.
            tokio::task::yield_now().await;
        }
        while !self.is_reached(stamp, durability)? {
            if durability == Durability::Written && self.shared.try_write()? {
                continue;
            }
            let waiters = match durability {
                Durability::Written => &self.shared.written,
                Durability::Synced => &self.shared.synced,
            };
            let reached = waiters.register(stamp);
            if self.is_reached(stamp, durability)? {
                break;
            }
            self.shared.wake_log(stamp, durability);
            // Waiters are given up when the store is closed, which the next turn sees.
            let _ = reached.await;
        }
        Ok(())
    }

    /// Waits for the checkpoint that runs, while changes gather faster than it writes them.
    async fn keep_pace(&self) {
        if !self.shared.is_behind() {
            return;
        }
        let began = Instant::now();
        let mut completed = self.shared.checkpoints.subscribe();
        while self.shared.is_behind()
            && began.elapsed() < PACE_MAX
            && !completed.borrow_and_update().is_over
        {
            if completed.changed().await.is_err() {
                break;
            }
        }
    }
}

impl ObjectStore for ObjectFiles {
    fn heads(
        &self,
        keys: Vec<Key>,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Option<Bytes>>, Error>> {
        let pending = reader::pending_heads(&self.shared, keys);
        if pending.missing.is_empty() {
            let heads = reader::read_missing(&self.shared, pending, bytes_max);
            return Box::pin(ready(heads));
        }
        self.readers.read(move |shared| reader::read_missing(shared, pending, bytes_max))
    }

    fn entries(
        &self,
        database: u8,
        id: u64,
        after: Option<Bytes>,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<EntryPage, Error>> {
        self.readers.read(move |shared| reader::entries(shared, database, id, after, bytes_max))
    }

    fn scan(
        &self,
        database: u8,
        after: Option<Bytes>,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<FoundHead>, Error>> {
        self.readers.read(move |shared| reader::scan(shared, database, after, len_max))
    }

    fn count(&self, database: u8) -> BoxFuture<'_, Result<KeyCount, Error>> {
        self.readers.read(move |shared| reader::count(shared, database))
    }

    fn due(&self, until_ms: i64, len_max: usize) -> BoxFuture<'_, Result<Vec<Key>, Error>> {
        self.readers.read(move |shared| expiry::due(shared, until_ms, len_max))
    }

    fn submit(&self, group: Group) -> Result<u64, Error> {
        self.shared.submit(group)
    }

    fn durable(&self, stamp: u64, durability: Durability) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.wait_for(stamp, durability).await?;
            self.keep_pace().await;
            Ok(())
        })
    }

    fn progress(&self) -> &Progress {
        &self.shared.progress
    }
}

impl ObjectControl for ObjectFiles {
    fn status(&self) -> Status {
        let completed = self.shared.checkpoints.borrow().clone();
        let log_bytes = self.shared.journal.bytes();
        let disk_bytes = self.shared.records.bytes();
        let state = self.shared.state.lock();
        let keys = state.current.databases.iter().map(|generation| {
            let layers = [Some(&state.current), state.frozen.as_ref().map(|frozen| &*frozen.layer)];
            let added = layers.into_iter().flatten().map(|layer| layer.added(*generation).keys);
            state.counts.get(generation).map_or(0, |count| count.keys) + added.sum::<i64>()
        });

        Status {
            next_id: state.current.next_id,
            keys: keys.sum::<i64>().max(0) as u64,
            log_bytes,
            pending_bytes: state.pending_bytes() as u64,
            lent_bytes: self.shared.lent_bytes() as u64,
            disk_bytes,
            dead_ids: state.dead.values().map(|ids| ids.len() as u64).sum(),
            checkpoints: completed.count,
            checkpoint_ms: completed.took.as_millis() as u64,
            checkpoint_s: completed.at_ms / 1_000,
            syncs: self.shared.syncs.load(Ordering::Relaxed),
            closed: state.closed.clone(),
        }
    }

    fn sync_mode(&self) -> SyncMode {
        self.shared.mode()
    }

    fn set_sync_mode(&self, mode: SyncMode) {
        self.shared.set_mode(mode);
    }

    fn lend(&self, bytes: usize) {
        self.shared.lend(bytes);
    }

    fn checkpoint(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let mut completed = self.shared.checkpoints.subscribe();
            let wanted = {
                let mut state = self.shared.state.lock();
                state.check()?;
                state.requested += 1;
                state.requested
            };
            self.shared.checkpoint_wake.notify_one();

            let is_over = completed
                .wait_for(|completed| completed.is_over || completed.served >= wanted)
                .await
                .is_ok_and(|completed| completed.is_over);
            if is_over { self.shared.state.lock().check() } else { Ok(()) }
        })
    }
}

//! The keyspace as doors see it.

use crate::failures;
use crate::keyspace::{Keyspace, Shared, Slot};
use crate::loader::Loader;
use crate::lock::Lock;
use crate::options::{Limits, Options};
use crate::pubsub::PubSub;
use crate::scan::Places;
use crate::session::{Session, Watched};
use crate::stats::{Stats, Totals};
use bytes::Bytes;
use parking_lot::Mutex;
use raingauge_ports::clock::{Clock, Look};
use raingauge_ports::objects::{
    DATABASES, Durability, Error, Group, KeyCount, ObjectControl, ObjectStore, Status, SyncMode,
};
use raingauge_resp::Failure;
use rand::Rng as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// All objects of the process.
pub struct Objects {
    pub(crate) lock: Lock,
    store: Arc<dyn ObjectStore>,
    control: Arc<dyn ObjectControl>,
    clock: Arc<dyn Clock>,
    pub(crate) loader: Loader,
    shared: Shared,
    places: Places,
    options: Options,
    /// Whether replies wait for the disk and not only for the kernel.
    waits_for_sync: AtomicBool,
    /// Whether the store refused the last group that adds, for want of room.
    is_full: AtomicBool,
    /// The numbers at the last reset.
    base: Mutex<Totals>,
}

impl Objects {
    /// The objects of a store. Starts nothing: see [`Objects::sweep_until`].
    pub fn open(
        store: Arc<dyn ObjectStore>,
        control: Arc<dyn ObjectControl>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Arc<Self> {
        let shared = Shared::default();
        let next_id = control.status().next_id;
        let keyspace = Keyspace::new(shared.clone(), &options, next_id);
        let object_bytes_max = options.limits.object_bytes_max;
        let together_bytes_max = options.together_bytes_max();
        let waits_for_sync = AtomicBool::new(control.sync_mode() == SyncMode::Always);

        Arc::new(Self {
            lock: Lock::new(keyspace),
            loader: Loader::new(Arc::clone(&store), object_bytes_max, together_bytes_max),
            store,
            control,
            clock,
            shared,
            places: Places::default(),
            options,
            waits_for_sync,
            is_full: AtomicBool::new(false),
            base: Mutex::default(),
        })
    }

    /// The state of a new connection.
    pub fn session(self: &Arc<Self>) -> Session {
        Session::new(Arc::clone(self))
    }

    /// Whether a reply that carries a stamp may go out.
    pub fn is_durable(&self, stamp: u64) -> bool {
        stamp <= self.durable_stamp()
    }

    /// Waits until a stamp is as durable as the mode of the server asks. A failure means that the
    /// outcome of the group is unknown: the connection ends without a reply.
    pub async fn durable(&self, stamp: u64) -> Result<(), Failure> {
        let is_synced = self.waits_for_sync.load(Ordering::Relaxed);
        let durability = if is_synced { Durability::Synced } else { Durability::Written };
        self.wait(stamp, durability).await
    }

    /// Waits until a stamp survives a power cut.
    pub async fn synced(&self, stamp: u64) -> Result<(), Failure> {
        self.wait(stamp, Durability::Synced).await
    }

    /// Hands a group to the store, and remembers whether there is room.
    pub(crate) fn submit(&self, group: Group) -> Result<u64, Error> {
        let shows_room = self.is_full() && !group.is_removal();
        let submitted = self.store.submit(group);
        match &submitted {
            Err(Error::Full { .. }) => self.is_full.store(true, Ordering::Relaxed),
            Ok(_) if shows_room => self.is_full.store(false, Ordering::Relaxed),
            _ => {}
        }
        submitted
    }

    /// Ends a hold: evicts what has no room, to be dropped without the lock, and lends the store
    /// half of what is free then. Objects may need it back before the store has written what is in
    /// it.
    pub(crate) fn make_room(&self, keyspace: &mut Keyspace, durable: u64) -> Vec<Slot> {
        let evicted = keyspace.evict(durable);
        self.control.lend(keyspace.free_bytes() / 2);
        evicted
    }

    /// Whether the store is expected to take only groups that remove.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Channels and their subscribers.
    pub fn pubsub(&self) -> &PubSub {
        &self.shared.pubsub
    }

    /// Numbers since the start, or since [`Objects::reset_stats`]. Takes no lock of the keyspace.
    pub fn stats(&self) -> Stats {
        let progress = self.store.progress();
        Stats {
            submitted: progress.submitted(),
            synced: progress.synced(),
            ..self.shared.counters.read().since(&self.base.lock())
        }
    }

    pub fn reset_stats(&self) {
        *self.base.lock() = self.shared.counters.read();
    }

    /// What the store holds.
    pub fn status(&self) -> Status {
        self.control.status()
    }

    /// The databases that have keys, and how many.
    pub async fn keyspace(&self) -> Result<Vec<(u8, KeyCount)>, Error> {
        let mut counts = Vec::new();
        for database in 0..DATABASES {
            let count = self.store.count(database).await?;
            if count.keys > 0 {
                counts.push((database, count));
            }
        }
        Ok(counts)
    }

    /// The classes of keyspace events that are published, as letters.
    pub fn notify_flags(&self) -> String {
        self.shared.flags.letters()
    }

    /// An error says what is wrong with the letters.
    pub fn set_notify_flags(&self, letters: &str) -> Result<(), &'static str> {
        self.shared.flags.set(letters)
    }

    pub fn sync_mode(&self) -> SyncMode {
        self.control.sync_mode()
    }

    /// Changes what a write waits for, from now on.
    pub fn set_sync_mode(&self, mode: SyncMode) {
        self.control.set_sync_mode(mode);
        self.waits_for_sync.store(mode == SyncMode::Always, Ordering::Relaxed);
    }

    /// Writes what changed since the last checkpoint, and shortens the log.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        self.control.checkpoint().await
    }

    pub fn limits(&self) -> Limits {
        self.options.limits
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Why there are no more changes: of the keyspace, or of its store.
    pub fn trouble(&self) -> Option<String> {
        self.lock.trouble().or_else(|| self.control.status().closed)
    }

    /// Waits until everything that was taken is synced.
    pub async fn close(&self) -> Result<(), Error> {
        let newest = self.store.progress().submitted();
        self.store.durable(newest, Durability::Synced).await
    }

    pub(crate) fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// A clock that is not sound may take its time to say so, which needs no lock.
    pub(crate) fn look_at_clock(&self) -> Look {
        self.clock.look()
    }

    /// Objects that expire up to here are gone.
    pub(crate) fn expired_ms(&self) -> i64 {
        let Look { now_ms, is_sound } = self.look_at_clock();
        if is_sound { now_ms } else { i64::MIN }
    }

    /// The stamp up to which replies may go out.
    pub(crate) fn durable_stamp(&self) -> u64 {
        let progress = self.store.progress();
        let is_synced = self.waits_for_sync.load(Ordering::Relaxed);
        if is_synced { progress.synced() } else { progress.written() }
    }

    /// The name of a random key in memory.
    pub(crate) fn resident_name(&self, database: u8) -> Option<Bytes> {
        const TRIES: usize = 16;
        let mut keyspace = self.lock.hold().ok()?;
        let len = keyspace.resident_len(database);
        if len == 0 {
            return None;
        }

        (0..TRIES).find_map(|_| {
            let index = keyspace.random().random_range(0..len);
            keyspace.resident_name(database, index)
        })
    }

    pub(crate) fn unwatch(&self, watched: &Watched) {
        let Ok(mut keyspace) = self.lock.hold() else { return };
        for (database, name) in &watched.keys {
            keyspace.watchers().remove(*database, name, &watched.watch);
        }
    }

    async fn wait(&self, stamp: u64, durability: Durability) -> Result<(), Failure> {
        self.store.durable(stamp, durability).await.map_err(|error| failures::of_store(&error))
    }
}

//! What the threads of the store share.

use super::journal::{Journal, PAYLOAD_HEAD_LEN, now_ms};
use super::keys::{Anchor, DueKey, Generation, Head, Place};
use super::layer::{Below, Found, Layer};
use super::sharing::Weight;
use super::tally::Tally;
use super::waiters::Waiters;
use super::{disk, groups};
use crate::log::segment::{BLOCK_HEADER_LEN, PAYLOAD_LEN_MAX};
use crate::log::segments::Failure;
use crate::room::Room;
use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::{Condvar, Mutex};
use raingauge_ports::log;
use raingauge_ports::objects::{
    Durability, Error, Group, OBJECT_REMOVAL_RESERVE_DIVISOR, Progress, SyncMode,
};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Bytes of groups after which a block is closed.
const BLOCK_BYTES: usize = 512 << 10;
/// Bytes of a written block's memory that are used again.
const SPARE_BYTES_MAX: usize = 1 << 20;
/// Blocks whose memory is kept: those that fifty pipelines of 100 KB fill before one is written.
const SPARES_MAX: usize = 8;
/// Callers are slowed down when changes hold this many times the memory of a checkpoint.
const SLOWED_LAYERS: usize = 3;
/// Groups are refused when they hold this many times that memory, and at least this many bytes.
const REFUSED_LAYERS: usize = 4;
const REFUSED_BYTES_MIN: usize = 8 << 20;
/// When this much memory is lent no longer, the thread of the checkpoints looks whether one is due.
const LENT_STEP: usize = 1 << 20;
/// While a layer grows by that of a checkpoint, it looks this often what it holds alone.
const LOOKS_PER_LAYER: usize = 16;

/// The store behind its ports.
pub struct Shared {
    pub journal: Journal,
    pub records: Box<dyn disk::Records>,
    pub room: Room,
    pub state: Mutex<State>,
    /// Wakes the thread of the log.
    pub log_wake: Condvar,
    /// Wakes the thread of the checkpoints.
    pub checkpoint_wake: Condvar,
    /// Held by the thread that writes blocks.
    pub writing: Mutex<()>,
    /// Held while keys are looked up of which it is not known whether they had a head.
    pub resolving: Mutex<()>,
    /// Held while due keys are looked for.
    pub due: Mutex<super::due::Due>,
    pub progress: Progress,
    pub written: Waiters,
    pub synced: Waiters,
    mode: AtomicU8,
    /// The greatest stamp that a caller wants to be synced.
    pub wanted: AtomicU64,
    /// The thread of the log waits for a moment until this many callers wait for a sync.
    pub gathering: AtomicUsize,
    /// Checkpoints that are complete.
    pub checkpoints: watch::Sender<Completed>,
    /// Bytes of memory, held by changes alone, for which a checkpoint is due where none is lent.
    layer_bytes: usize,
    /// Bytes of memory that objects leave free for now.
    lent_bytes: AtomicUsize,
    /// Bytes of the log for which one is due.
    pub log_bytes: usize,
    /// Bytes of changes from which a checkpoint becomes tables of its own.
    pub tables_bytes: usize,
    /// Bytes of heads that such a checkpoint writes together.
    pub piece_bytes: usize,
    pub checkpoint_interval: Duration,
    pub syncs: AtomicU64,
}

/// What waits for checkpoints looks at.
#[derive(Clone, Debug, Default)]
pub struct Completed {
    /// How many were completed.
    pub count: u64,
    /// How many requests they have served.
    pub served: u64,
    pub took: Duration,
    /// Milliseconds since 1970; 0 before the first.
    pub at_ms: i64,
    /// Raised so that those who wait look again.
    pub ticks: u64,
    /// No more will follow.
    pub is_over: bool,
}

/// What is behind the lock.
pub struct State {
    pub current: Layer,
    /// What a checkpoint is writing.
    pub frozen: Option<Frozen>,
    /// What the last checkpoint includes.
    pub anchor: Anchor,
    /// Heads on disk by generation.
    pub counts: HashMap<Generation, Tally>,
    /// Dead wide objects with entries on disk.
    pub dead: HashMap<Generation, BTreeSet<u64>>,
    /// Records of the index of expiries that lead nowhere.
    pub dead_letters: Vec<DueKey>,
    /// Blocks that are to be written.
    queue: VecDeque<Block>,
    /// Memory of blocks that were written, empty.
    spares: Vec<Vec<u8>>,
    /// How often a checkpoint was requested.
    pub requested: u64,
    /// The thread of the checkpoints writes a last one and ends.
    pub is_stopping: bool,
    /// The thread of the log writes and syncs what is queued and ends.
    pub is_ending: bool,
    /// Why no groups are taken any more.
    pub closed: Option<String>,
}

pub struct Frozen {
    pub layer: Arc<Layer>,
    /// What was found of keys of which nothing was known.
    pub found: HashMap<Generation, Found>,
    /// What is not on the disk yet.
    pub weight: Weight,
    /// The part of its shared bytes that the layer holds alone, as of the last look.
    pub part_alone: f32,
}

impl Frozen {
    pub fn new(layer: Arc<Layer>) -> Self {
        let part_alone = layer.part_alone();
        Self { weight: layer.weight(), part_alone, layer, found: HashMap::new() }
    }

    /// Bytes of memory that would be free without the layer, about, as of the last look.
    pub fn alone_bytes(&self) -> usize {
        self.weight.alone(self.part_alone)
    }
}

struct Block {
    bytes: Vec<u8>,
    count: u32,
}

impl State {
    pub fn new(anchor: Anchor, dead: HashMap<Generation, BTreeSet<u64>>) -> Self {
        Self {
            current: Layer::above(&anchor),
            frozen: None,
            counts: anchor.counts(),
            anchor,
            dead,
            dead_letters: Vec::new(),
            queue: VecDeque::new(),
            spares: Vec::new(),
            requested: 0,
            is_stopping: false,
            is_ending: false,
            closed: None,
        }
    }

    pub fn check(&self) -> Result<(), Error> {
        match &self.closed {
            Some(why) => Err(Error::Closed(why.clone())),
            None => Ok(()),
        }
    }

    /// Applies the group that follows.
    pub fn apply(&mut self, group: Group, records: &dyn disk::Records) {
        let Self { current, frozen, .. } = self;
        current.logged_bytes += logged_len(&group);
        let below = |generation: Generation, name: &Bytes| {
            let frozen = frozen.as_ref().and_then(|frozen| frozen.layer.head(generation, name));
            match frozen {
                Some(head) => Below::of(head.as_ref()),
                None if records.has(Place::Heads(generation)) => Below::Disk,
                None => Below::Absent,
            }
        };
        current.apply_all(group.effects, &below);
        current.stamp += 1;
    }

    /// Bytes of memory that changes hold alone until a checkpoint has written them, about, as of
    /// the last look.
    pub fn pending_bytes(&self) -> usize {
        let frozen = self.frozen.as_ref().map_or(0, Frozen::alone_bytes);
        self.current.alone_bytes() + frozen
    }

    /// Those of them that came since the start: of both layers, and of the one that takes groups.
    /// What a start read from the log lies where objects will lie that are not in memory yet.
    fn pressing_bytes(&self) -> (usize, usize) {
        let since_start = |alone: usize, layer: &Layer| alone.saturating_sub(layer.replayed_bytes);
        let current = since_start(self.current.alone_bytes(), &self.current);
        let frozen = self.frozen.as_ref();
        let frozen = frozen.map_or(0, |frozen| since_start(frozen.alone_bytes(), &frozen.layer));
        (current + frozen, current)
    }

    /// Looks how much memory both layers hold alone.
    pub fn look(&mut self) {
        self.current.look();
        if let Some(frozen) = &mut self.frozen {
            frozen.part_alone = frozen.layer.part_alone();
        }
    }

    /// The pending change of a head: `Some(None)` if it was dropped.
    pub fn pending_head(&self, generation: Generation, name: &[u8]) -> Option<Option<Head>> {
        let current = self.current.head(generation, name);
        current.or_else(|| self.frozen.as_ref()?.layer.head(generation, name))
    }

    fn push(&mut self, group: &Group) {
        let len = logged_len(group);
        let fits = |block: &Block| {
            block.bytes.len() < BLOCK_BYTES && block.bytes.len() + len < PAYLOAD_LEN_MAX
        };
        if !self.queue.back().is_some_and(fits) {
            let mut bytes = self.spares.pop().unwrap_or_default();
            bytes.resize(BLOCK_HEADER_LEN + PAYLOAD_HEAD_LEN, 0);
            self.queue.push_back(Block { bytes, count: 0 });
        }
        if let Some(block) = self.queue.back_mut() {
            groups::push(group, &mut block.bytes);
            block.count += 1;
        }
    }

    pub fn is_queued(&self) -> bool {
        !self.queue.is_empty()
    }
}

/// Bytes that a group takes in the log, about.
fn logged_len(group: &Group) -> usize {
    group.effects.iter().map(|effect| effect.len() + 32).sum()
}

/// Parts of a store before its threads run.
pub struct Opened {
    pub journal: Journal,
    pub records: Box<dyn disk::Records>,
    pub room: Room,
    pub state: State,
}

impl Shared {
    pub fn new(opened: Opened, options: &super::Options) -> Self {
        let Opened { journal, records, room, state } = opened;
        Self {
            progress: Progress::at(journal.end()),
            journal,
            records,
            room,
            state: Mutex::new(state),
            log_wake: Condvar::new(),
            checkpoint_wake: Condvar::new(),
            writing: Mutex::default(),
            resolving: Mutex::default(),
            due: Mutex::default(),
            written: Waiters::default(),
            synced: Waiters::default(),
            mode: AtomicU8::new(options.sync_mode as u8),
            wanted: AtomicU64::new(0),
            gathering: AtomicUsize::new(0),
            checkpoints: watch::Sender::default(),
            layer_bytes: options.layer_bytes(),
            lent_bytes: AtomicUsize::new(0),
            log_bytes: options.log_bytes,
            tables_bytes: options.tables_bytes(),
            piece_bytes: options.piece_bytes(),
            checkpoint_interval: options.checkpoint_interval,
            syncs: AtomicU64::new(0),
        }
    }

    pub fn mode(&self) -> SyncMode {
        const MODES: [SyncMode; 3] = [SyncMode::Always, SyncMode::EverySecond, SyncMode::No];
        let mode = self.mode.load(Ordering::Relaxed);
        MODES.into_iter().find(|known| *known as u8 == mode).unwrap_or_default()
    }

    pub fn set_mode(&self, mode: SyncMode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    pub fn submit(&self, group: Group) -> Result<u64, Error> {
        group.check()?;
        let part = if group.is_removal() { OBJECT_REMOVAL_RESERVE_DIVISOR } else { 1 };
        let room = self.room.check_part(part);
        if let Err(log::Error::Full { free_bytes, reserve_bytes }) = room {
            return Err(Error::Full { free_bytes, reserve_bytes });
        }

        let mut state = self.state.lock();
        state.check()?;
        let (pending, _) = state.pressing_bytes();
        let layer_bytes = self.layer_bytes();
        if pending > (layer_bytes * REFUSED_LAYERS).max(REFUSED_BYTES_MIN) {
            return Err(Error::Busy { pending_bytes: pending as u64 });
        }

        state.push(&group);
        let had_unknown = state.current.first_unknown().is_some();
        state.apply(group, &*self.records);
        let stamp = state.current.stamp;
        self.progress.raise_submitted(stamp);
        let looks = state.current.unseen_bytes() >= layer_bytes / LOOKS_PER_LAYER;
        if looks {
            state.look();
        }
        let has_unknown = !had_unknown && state.current.first_unknown().is_some();
        // From here on the thread looks by itself, however few groups follow.
        if has_unknown || looks && self.may_become_due(&state) || self.is_due(&state) {
            self.checkpoint_wake.notify_one();
        }
        Ok(stamp)
    }

    /// Changes may take this much more memory from now on. Where it was more before, a checkpoint
    /// may be due now.
    pub fn lend(&self, bytes: usize) {
        let before = self.lent_bytes.swap(bytes, Ordering::Relaxed);
        if bytes / LENT_STEP < before / LENT_STEP {
            // Taken so that the thread either sees the number or is woken.
            drop(self.state.lock());
            self.checkpoint_wake.notify_one();
        }
    }

    pub fn lent_bytes(&self) -> usize {
        self.lent_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of memory, held by changes alone, for which a checkpoint is due. Groups are refused
    /// before changes hold more than is lent, as long as it is not needed back.
    fn layer_bytes(&self) -> usize {
        self.layer_bytes + self.lent_bytes() / REFUSED_LAYERS
    }

    /// Whether a checkpoint is due once nobody shares what changed.
    pub fn may_become_due(&self, state: &State) -> bool {
        state.current.weight().bytes >= self.layer_bytes()
    }

    /// Whether there is enough for a checkpoint: for memory, or for a start that reads the log.
    pub fn is_due(&self, state: &State) -> bool {
        state.current.alone_bytes() >= self.layer_bytes()
            || state.current.logged_bytes >= self.log_bytes
    }

    /// Whether callers are slowed down until the checkpoint that runs, or is about to, is complete.
    pub fn is_behind(&self) -> bool {
        let state = self.state.lock();
        let (both, current) = state.pressing_bytes();
        let layers = if state.frozen.is_some() { 1 } else { 2 };
        let layer_bytes = self.layer_bytes();
        current > layer_bytes * layers
            || both > layer_bytes * SLOWED_LAYERS
            || state.current.logged_bytes > self.log_bytes * layers
    }

    /// Writes what is queued, unless another thread is doing that. Returns whether it did.
    pub fn try_write(&self) -> Result<bool, Error> {
        let Some(_writing) = self.writing.try_lock() else {
            return Ok(false);
        };
        self.write_queue()?;
        Ok(true)
    }

    /// Writes what is queued.
    pub fn write(&self) -> Result<(), Error> {
        let _writing = self.writing.lock();
        self.write_queue()
    }

    fn write_queue(&self) -> Result<(), Error> {
        loop {
            let block = {
                let mut state = self.state.lock();
                state.check()?;
                state.queue.pop_front()
            };
            let Some(Block { mut bytes, count }) = block else {
                return Ok(());
            };

            match self.journal.write(&mut bytes, count, self.progress.synced()) {
                Ok(end) => {
                    self.progress.raise_written(end);
                    self.written.reach(end);
                }
                // What was promised to be in order is in memory, and cannot be taken back.
                Err(Failure::NotTaken(error) | Failure::Broken(error)) => {
                    return Err(self.close(&error.to_string()));
                }
            }

            if bytes.capacity() <= SPARE_BYTES_MAX {
                bytes.clear();
                let mut state = self.state.lock();
                if state.spares.len() < SPARES_MAX {
                    state.spares.push(bytes);
                }
            }
        }
    }

    /// Makes durable what was written. Returns how many callers were waiting for that.
    pub fn sync(&self) -> Result<usize, Error> {
        let stamp = self.progress.written();
        self.state.lock().check()?;
        let mut released = 0;
        if stamp > self.progress.synced() {
            let began = Instant::now();
            let synced = self.journal.sync(stamp);
            synced.map_err(|error| self.close(&error.to_string()))?;
            metrics::histogram!("raingauge_objects_sync_seconds").record(began.elapsed());
            self.syncs.fetch_add(1, Ordering::Relaxed);
            self.progress.raise_synced(stamp);
            released = self.synced.reach(stamp);
        }
        Ok(released)
    }

    /// Asks the thread of the log to write, and to sync up to a stamp if that is wanted.
    pub fn wake_log(&self, stamp: u64, durability: Durability) {
        if durability == Durability::Synced {
            self.wanted.fetch_max(stamp, Ordering::SeqCst);
        }
        // It looks at the stamp when it no longer waits for others.
        if self.is_gathering() {
            return;
        }
        // Taken so that the thread either sees the stamp or is woken.
        drop(self.state.lock());
        self.log_wake.notify_one();
    }

    /// Whether the thread of the log waits for more callers.
    pub fn is_gathering(&self) -> bool {
        let callers = self.gathering.load(Ordering::SeqCst);
        callers > 0 && self.synced.len() < callers
    }

    /// Takes no more groups, and confirms none of those that are not durable.
    pub fn close(&self, why: &str) -> Error {
        let mut state = self.state.lock();
        if state.closed.is_none() {
            tracing::error!(%why, "the object store failed and takes no more writes");
            state.closed = Some(why.to_owned());
        }
        let why = state.closed.clone().unwrap_or_default();
        drop(state);

        self.written.give_up();
        self.synced.give_up();
        self.checkpoints.send_modify(|completed| completed.is_over = true);
        self.log_wake.notify_all();
        self.checkpoint_wake.notify_all();
        Error::Closed(why)
    }

    /// Notes that a checkpoint is complete, which began after this many requests.
    pub fn complete(&self, requested: u64, took: Duration) {
        metrics::histogram!("raingauge_objects_checkpoint_seconds").record(took);
        self.checkpoints.send_modify(|completed| {
            completed.count += 1;
            completed.took = took;
            completed.at_ms = now_ms();
        });
        self.serve(requested);
    }

    /// Wakes those who wait for a checkpoint, once a second and when a part of it is written.
    pub fn tick(&self) {
        self.checkpoints.send_modify(|completed| completed.ticks += 1);
    }

    /// Notes that requests are served.
    pub fn serve(&self, requested: u64) {
        self.checkpoints.send_modify(|completed| completed.served = requested);
    }
}

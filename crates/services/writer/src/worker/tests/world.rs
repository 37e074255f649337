//! A log with a clock that can be trimmed, stores that can crash, and a worker between them.

use crate::conductor::due;
use crate::control::{Bucket, Control};
use crate::state::Request;
use crate::worker::{Options, Worker};
use parking_lot::Mutex;
use raingauge_consumers::Registry;
use raingauge_core::bucket::DAY_S;
use raingauge_core::counter::Counter;
use raingauge_core::event::Event;
use raingauge_core::plan::Slice;
use raingauge_embedded::{TileOptions, TileStore};
use raingauge_memory as memory;
use raingauge_ports::BoxFuture;
use raingauge_ports::buckets::{BucketReader, BucketWriter, Cell, Generation};
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::consumers::ConsumerStore;
use raingauge_ports::log::{
    Appended, Batch, Block, Error, EventLog, EventSink, LogTimes, Needs, Offset, Partition,
};
use raingauge_ports::published::Published;
use raingauge_ports::record;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A day in 2024, when every test begins.
pub const START_S: i64 = 20_000 * DAY_S;
pub const ALLOWANCE_S: i64 = 300;

/// A control entry that counting skips.
pub const FOREIGN: &[u8] = br#"{"for":"campaigns","kind":"backfill","counter":1}"#;

/// The log in memory, with times of acceptance and a beginning that moves. What is appended before
/// anybody has read becomes one block now and then, as it does when many append at once.
pub struct DatedLog {
    log: memory::Log,
    clock: Arc<ManualClock>,
    inner: Mutex<Dates>,
}

#[derive(Default)]
struct Dates {
    /// When each block was appended, by its first offset.
    appended_ms: BTreeMap<Offset, i64>,
    start: Offset,
    /// Blocks before this have been read, and grow no more.
    read_to: Offset,
    /// What is older may be trimmed.
    oldest_ms: i64,
    /// Whether trimming fails.
    is_stuck: bool,
    /// A block that holds this offset cannot be read any more.
    rotten: Option<Offset>,
    /// Offsets that are read as taken by nothing that counts.
    voids: BTreeSet<Offset>,
}

impl DatedLog {
    pub fn new(clock: Arc<ManualClock>) -> Self {
        Self { log: memory::Log::default(), clock, inner: Mutex::default() }
    }

    /// Lets the next trim take what is older than now.
    pub fn let_go(&self) {
        self.inner.lock().oldest_ms = self.clock.now_ms();
    }

    /// Lets what lies at an offset be damaged.
    pub fn rot(&self, offset: Offset) {
        self.inner.lock().rotten = Some(offset);
    }

    /// Lets no trim succeed any more.
    pub fn refuse_trims(&self) {
        self.inner.lock().is_stuck = true;
    }

    /// Drops everything before this offset, counted or not, as a broker does.
    pub fn drop_before(&self, offset: Offset) {
        let mut inner = self.inner.lock();
        inner.start = offset;
        // Where the log begins now is the beginning of a block.
        let dated =
            inner.appended_ms.range(..=offset).next_back().map(|(_, appended_ms)| *appended_ms);
        inner.appended_ms.insert(offset, dated.unwrap_or_default());
    }

    /// Replaces the entry at this offset, which nobody has read, by one that counts nothing.
    fn make_void(&self, offset: Offset) {
        self.inner.lock().voids.insert(offset);
    }

    fn date(&self, base: Offset) {
        if self.log.end() == base {
            return;
        }
        let mut inner = self.inner.lock();
        let now_ms = self.clock.now_ms();
        let newest_ms = inner.appended_ms.values().next_back();
        if base.is_multiple_of(4) || base <= inner.read_to || newest_ms != Some(&now_ms) {
            inner.appended_ms.insert(base, now_ms);
        }
    }
}

impl EventSink for DatedLog {
    fn partitions(&self) -> Partition {
        self.log.partitions()
    }

    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, Error>> {
        let base = self.log.end();
        let appended = self.log.append(batch);
        self.date(base);
        appended
    }

    fn append_control(
        &self,
        partition: Partition,
        payload: Vec<u8>,
    ) -> BoxFuture<'_, Result<Offset, Error>> {
        let base = self.log.end();
        let appended = self.log.append_control(partition, payload);
        self.date(base);
        appended
    }
}

impl EventLog for DatedLog {
    fn partition(&self) -> Partition {
        self.log.partition()
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        let mut inner = self.inner.lock();
        if from < inner.start {
            return Err(Error::Trimmed { asked: from, start: inner.start });
        }

        if from >= self.log.end() {
            return Ok(Vec::new());
        }
        let base = inner.appended_ms.range(..=from).next_back().map_or(0, |(base, _)| *base);
        let mut blocks = Vec::<Block>::new();

        for block in self.log.read(base, usize::MAX)? {
            match (inner.appended_ms.get(&block.base), blocks.last_mut()) {
                (None, Some(last)) => {
                    last.len += block.len;
                    last.bytes.extend(block.bytes);
                }
                (appended_ms, _) => {
                    if blocks.iter().map(|block| block.bytes.len()).sum::<usize>() > bytes_max {
                        break;
                    }
                    blocks.push(Block { appended_ms: appended_ms.copied().unwrap_or(0), ..block });
                }
            }
        }

        let is_rotten = |block: &Block| {
            inner.rotten.is_some_and(|offset| (block.base..block.end()).contains(&offset))
        };
        if blocks.iter().any(is_rotten) {
            return Err(Error::Corrupt("a block has a wrong checksum".to_owned()));
        }
        inner.read_to = blocks.last().map_or(0, Block::end).max(inner.read_to);

        Ok(blocks.into_iter().map(|block| with_voids(block, &inner.voids)).collect())
    }

    fn start(&self) -> Offset {
        self.inner.lock().start
    }

    fn end(&self) -> Offset {
        self.log.end()
    }

    fn wait_beyond(&self, offset: Offset, timeout: Duration) -> Offset {
        self.log.wait_beyond(offset, timeout)
    }
}

impl LogTimes for DatedLog {
    fn start_ms(&self) -> i64 {
        let inner = self.inner.lock();
        let newest_ms = || inner.appended_ms.values().next_back().copied().unwrap_or(0);
        if inner.start == 0 {
            0
        } else {
            inner.appended_ms.get(&inner.start).copied().unwrap_or_else(newest_ms)
        }
    }

    fn trim(&self, needs: Needs) -> Result<(), Error> {
        let mut inner = self.inner.lock();
        if inner.is_stuck {
            return Err(Error::Closed("a file cannot be removed".to_owned()));
        }
        let end = self.log.end();
        let kept =
            inner.appended_ms.iter().find(|(_, appended_ms)| **appended_ms >= inner.oldest_ms);
        let kept = kept.map_or(end, |(base, _)| *base).min(needs.counting).min(needs.others);
        let boundary = inner.appended_ms.range(..=kept).next_back().map_or(0, |(base, _)| *base);
        inner.start = inner.start.max(if kept == end { end } else { boundary });
        Ok(())
    }
}

/// The block, with voids at these offsets.
fn with_voids(block: Block, voids: &BTreeSet<Offset>) -> Block {
    let mut rest = &block.bytes[..];
    let mut bytes = Vec::new();
    for offset in block.base..block.end() {
        let before = rest;
        record::split_entry(&mut rest).expect("as many entries as the block says");
        if voids.contains(&offset) {
            record::push_void(&mut bytes);
        } else {
            bytes.extend_from_slice(&before[..before.len() - rest.len()]);
        }
    }
    Block { bytes, ..block }
}

/// What a store is made of again after a crash.
pub enum Medium {
    Memory(Arc<memory::Buckets>, Arc<memory::Consumers>),
    /// A folder, and the cache, small enough that commits fall due by themselves.
    Disk(tempfile::TempDir, Option<Arc<TileStore>>),
}

impl Medium {
    pub fn memory() -> Self {
        Self::Memory(Arc::default(), Arc::default())
    }

    pub fn disk() -> Self {
        Self::Disk(tempfile::tempdir().expect("a folder"), None)
    }

    fn writer(&mut self) -> Arc<dyn BucketWriter> {
        match self {
            Self::Memory(store, _) => Arc::clone(store) as Arc<dyn BucketWriter>,
            Self::Disk(folder, store) => {
                let options = TileOptions {
                    cache_bytes: 16 << 10,
                    block_cache_bytes: 1 << 20,
                    ..TileOptions::default()
                };

                let opened = Arc::new(TileStore::open(folder.path(), &options).expect("a store"));
                *store = Some(Arc::clone(&opened));
                opened
            }
        }
    }

    /// The records of consumers, in the store that was opened last.
    pub fn consumers(&self) -> Arc<dyn ConsumerStore> {
        match self {
            Self::Memory(_, consumers) => Arc::clone(consumers) as Arc<dyn ConsumerStore>,
            Self::Disk(_, store) => Arc::clone(store.as_ref().expect("an open store")) as _,
        }
    }

    /// Loses what was not committed.
    fn crash(&mut self) {
        match self {
            Self::Memory(store, _) => store.crash(),
            Self::Disk(_, store) => *store = None,
        }
    }

    fn reader(&self) -> &dyn BucketReader {
        match self {
            Self::Memory(store, _) => &**store,
            Self::Disk(_, store) => &**store.as_ref().expect("an open store"),
        }
    }
}

pub struct World {
    runtime: tokio::runtime::Runtime,
    pub clock: Arc<ManualClock>,
    pub log: Arc<DatedLog>,
    pub published: Arc<Published>,
    pub medium: Medium,
    /// The consumers of the log, as the worker's process knows them.
    pub registry: Arc<Registry>,
    worker: Option<Worker>,
}

impl World {
    pub fn new(mut medium: Medium) -> Self {
        let clock = Arc::new(ManualClock::at_s(START_S));
        let log = Arc::new(DatedLog::new(Arc::clone(&clock)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (published, worker) = open(&log, &mut medium, &clock);
        let registry = Arc::clone(&worker.options.consumers);
        Self { runtime, clock, log, published, medium, registry, worker: Some(worker) }
    }

    pub fn worker(&mut self) -> &mut Worker {
        self.worker.as_mut().expect("a worker")
    }

    /// Ends the worker at once, and starts another from the last checkpoint.
    pub fn crash(&mut self) {
        self.worker = None;
        self.medium.crash();
        let (published, worker) = open(&self.log, &mut self.medium, &self.clock);
        self.registry = Arc::clone(&worker.options.consumers);
        self.published = published;
        self.worker = Some(worker);
    }

    /// The log and the store, without a worker between them.
    pub fn idle(&mut self) -> (Arc<DatedLog>, Arc<dyn BucketWriter>) {
        self.worker = None;
        self.medium.crash();
        (Arc::clone(&self.log), self.medium.writer())
    }

    pub fn append(&self, events: &[Event<'_>]) -> Appended {
        let mut batch = Batch::default();
        events.iter().for_each(|event| batch.push(event));
        self.runtime.block_on(self.log.append(batch)).expect("appended")
    }

    pub fn control(&self, control: &Control) -> Offset {
        self.runtime.block_on(self.log.append_control(0, control.to_json())).expect("appended") - 1
    }

    /// Appends what counts nothing, as a log does whose readers tell the duplicates.
    pub fn append_void(&self) -> Offset {
        let appended = self.runtime.block_on(self.log.append_control(0, b"refused".to_vec()));
        let offset = appended.expect("appended") - 1;
        self.log.make_void(offset);
        offset
    }

    /// Appends a control entry for another consumer.
    pub fn append_foreign(&self) {
        self.runtime.block_on(self.log.append_control(0, FOREIGN.to_vec())).expect("appended");
    }

    pub fn set_counter(&self, version: u32, counter: &Json) -> Offset {
        self.control(&Control::counter(version, 0, of_json(counter)))
    }

    pub fn set_buckets(&self, buckets: Vec<Bucket>, request: Option<Request>) -> Offset {
        self.control(&Control::Buckets { buckets, request: request.map(Box::new) })
    }

    /// Applies all there is, and ends all backfills.
    pub fn drain(&mut self) {
        while self.worker().apply_some().expect("applied")
            || self.worker().backfill_some().expect("backfilled")
            || self.conduct(false) > 0
        {}
    }

    /// Writes what is due; with `retires`, what was replaced is retired at once. Returns how many
    /// entries were written.
    pub fn conduct(&mut self, retires: bool) -> usize {
        let shown = self.worker().shown.lock().clone();
        let due = due(&BTreeMap::from([(0, shown)]), 1);
        let retire =
            |(counter, number): &(u32, u32)| Control::Retire { counter: *counter, number: *number };
        let retire = due.retire.keys().filter(|_| retires).map(retire);
        let entries: Vec<Control> =
            due.now.into_iter().map(|(_, control)| control).chain(retire).collect();
        for control in &entries {
            self.control(control);
        }
        entries.len()
    }

    /// Retires everything that was replaced.
    pub fn retire(&mut self) {
        self.remove();
        while self.conduct(true) > 0 {
            self.drain();
            self.remove();
        }
    }

    /// Removes what is retired, as the thread beside the worker does.
    pub fn remove(&mut self) {
        for _ in 0..2 {
            self.worker().commit().expect("committed");
            let removals = Arc::clone(&self.worker().removals);
            let store = Arc::clone(&self.worker().store);
            while removals.step(&*store).expect("removed") {}
        }
    }

    /// Does everything that is due now, as if the intervals had passed.
    pub fn keep_up(&mut self) {
        let upkeep = &mut self.worker().upkeep;
        (upkeep.trimmed, upkeep.expired) = (None, None);
        while self.worker().keep_up().expect("kept up") {}
    }

    pub fn pass_s(&self, seconds: i64) {
        self.clock.set_s(self.clock.now_s() + seconds);
    }

    pub fn cells(&self, generation: Generation, key: &str, slice: Slice) -> Vec<Cell> {
        self.runtime
            .block_on(self.medium.reader().cells(generation, key.to_owned(), slice))
            .expect("cells")
    }
}

fn open(
    log: &Arc<DatedLog>,
    medium: &mut Medium,
    clock: &Arc<ManualClock>,
) -> (Arc<Published>, Worker) {
    let published = Arc::<Published>::default();
    let store = medium.writer();
    let registry = Registry::of(&*medium.consumers(), 0).expect("a registry");

    // Few bytes at once, so that crashes and backfills fall between blocks.
    let options = Options {
        read_bytes: 200,
        future_allowance_s: ALLOWANCE_S,
        consumers: Arc::new(registry),
        ..Options::default()
    };

    let log = Arc::clone(log) as Arc<dyn EventLog>;
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let worker =
        Worker::open(log, store, Arc::clone(&published), clock, options).expect("a worker");

    (published, worker)
}

pub fn of_json(counter: &Json) -> Counter {
    Counter::from_json(counter).expect("a counter")
}

/// A counter that keeps everything, with some members of its own.
pub fn counter(id: u32, members: Json) -> Json {
    let mut counter = json!({"id": id, "name": "n", "template": format!("c{id}:{{k}}"), "eventType": "t",
        "retentionDays": {"quarter": null, "hour": null, "day": null}});
    if let (Some(counter), Json::Object(members)) = (counter.as_object_mut(), members) {
        counter.extend(members);
    }
    counter
}

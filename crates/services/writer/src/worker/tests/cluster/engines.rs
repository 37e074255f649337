//! Engines of a cluster in memory, which fail where a test wants them to.

use parking_lot::Mutex;
use raingauge_core::bucket::Granularity;
use raingauge_core::retention::Horizons;
use raingauge_ports::BoxFuture;
use raingauge_ports::buckets::{
    Addition, BucketRetention, BucketWriter, Cell, Checkpoint, Error, Generation, Progress,
};
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::cluster::{self, Checkpoints, StoredPosition};
use raingauge_ports::log::{self, Block, EventLog, LogTimes, Needs, Offset, Partition};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One partition of the log. Every append is a block.
pub struct SimLog {
    partition: Partition,
    clock: Arc<ManualClock>,
    inner: Mutex<Blocks>,
}

#[derive(Default)]
struct Blocks {
    blocks: Vec<Block>,
    end: Offset,
    start: Offset,
}

impl SimLog {
    pub fn new(partition: Partition, clock: Arc<ManualClock>) -> Self {
        Self { partition, clock, inner: Mutex::default() }
    }

    /// Appends encoded entries.
    pub fn push(&self, bytes: Vec<u8>, len: u64) {
        let mut inner = self.inner.lock();
        let base = inner.end;
        inner.blocks.push(Block { base, appended_ms: self.clock.now_ms(), len, bytes });
        inner.end += len;
    }

    /// The beginning of the block that holds an offset, or ends before it.
    pub fn block_of(&self, offset: Offset) -> Offset {
        let inner = self.inner.lock();
        inner
            .blocks
            .iter()
            .map(|block| block.base)
            .filter(|base| *base <= offset)
            .max()
            .unwrap_or(0)
    }

    /// Drops the blocks before an offset, as brokers do.
    pub fn drop_before(&self, offset: Offset) {
        let kept = self.block_of(offset);
        let mut inner = self.inner.lock();
        inner.start = inner.start.max(kept);
    }
}

impl EventLog for SimLog {
    fn partition(&self) -> Partition {
        self.partition
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, log::Error> {
        let inner = self.inner.lock();
        if from < inner.start {
            return Err(log::Error::Trimmed { asked: from, start: inner.start });
        }
        let first = inner.blocks.partition_point(|block| block.end() <= from);
        let mut bytes = 0;
        let wanted = inner.blocks[first..].iter().take_while(|block| {
            let wanted = bytes == 0 || bytes + block.bytes.len() <= bytes_max;
            bytes += block.bytes.len();
            wanted
        });
        Ok(wanted.cloned().collect())
    }

    fn start(&self) -> Offset {
        self.inner.lock().start
    }

    fn end(&self) -> Offset {
        self.inner.lock().end
    }

    fn wait_beyond(&self, _offset: Offset, _timeout: Duration) -> Offset {
        self.end()
    }
}

impl LogTimes for SimLog {
    fn start_ms(&self) -> i64 {
        let inner = self.inner.lock();
        let first = inner.blocks.iter().find(|block| block.base >= inner.start);
        if inner.start == 0 {
            0
        } else {
            first.map_or(self.clock.now_ms(), |block| block.appended_ms)
        }
    }

    fn begin_since(&self, appended_ms: i64) -> Offset {
        let inner = self.inner.lock();
        let first = inner.blocks.iter().find(|block| block.appended_ms >= appended_ms);
        first.map_or(inner.end, |block| block.base)
    }

    fn appended_ms(&self, offset: Offset) -> Option<i64> {
        let inner = self.inner.lock();
        inner.blocks.iter().find(|block| block.end() > offset).map(|block| block.appended_ms)
    }

    fn trim(&self, _needs: Needs) -> Result<(), log::Error> {
        Ok(())
    }
}

type At = (Generation, Partition, String, Granularity, i64);

/// The contents of the store's servers. Of two writes of a cell the one with the later stamp stays.
#[derive(Default)]
pub struct Servers {
    pub cells: BTreeMap<At, Stored>,
    rows: BTreeMap<Partition, Row>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    stamp_us: i64,
    /// The offset before which the cell includes its partition.
    included: Offset,
    /// `None` when it was removed.
    pub count: Option<i64>,
}

/// The checkpoint of a partition, each part with the timestamp of its write.
#[derive(Clone, Default)]
struct Row {
    position: (i64, Offset),
    state: (i64, Vec<u8>),
    progress: Option<Progress>,
}

impl Stored {
    pub fn value(&self) -> i64 {
        self.count.unwrap_or(0)
    }
}

impl Servers {
    fn put(&mut self, at: At, cell: Stored) {
        let stored = self.cells.entry(at).or_insert(cell);
        if cell.stamp_us >= stored.stamp_us {
            *stored = cell;
        }
    }

    pub fn position(&self, partition: Partition) -> Offset {
        self.rows.get(&partition).map_or(0, |row| row.position.1)
    }

    pub fn progress(&self, partition: Partition) -> Option<&Progress> {
        self.rows.get(&partition)?.progress.as_ref()
    }

    /// The sum of the days of a key in one partition.
    pub fn days(
        &self,
        generation: Generation,
        partition: Partition,
        key: &str,
    ) -> impl Iterator<Item = (i64, i64)> {
        let at = |time_s| (generation, partition, key.to_owned(), Granularity::Day, time_s);
        let cells = self.cells.range(at(i64::MIN)..at(i64::MAX));
        let counts = cells.filter_map(|((.., time_s), cell)| Some((*time_s, cell.count?)));
        counts.collect::<Vec<_>>().into_iter()
    }
}

/// The store of one worker. Several workers of one partition write to the same servers.
pub struct SimStore {
    partition: Partition,
    servers: Arc<Mutex<Servers>>,
    /// Changed cells after which it wants a commit.
    commits_after: usize,
    inner: Mutex<Writing>,
}

/// Cells that are removed in one go.
const REMOVED_TOGETHER: usize = 8;

/// A cell in memory.
struct Held {
    cell: Stored,
    /// The cell included the entries before this when it was read back.
    read: Offset,
    is_changed: bool,
}

#[derive(Default)]
struct Writing {
    cells: BTreeMap<At, Held>,
    /// Cells that are not written yet, each once.
    changed: Vec<At>,
    stamp_base_us: i64,
    stamp_us: i64,
    state: Option<Vec<u8>>,
    /// Writes that still succeed before the process dies.
    writes_left: Option<usize>,
}

impl SimStore {
    pub fn new(partition: Partition, servers: Arc<Mutex<Servers>>, commits_after: usize) -> Self {
        Self { partition, servers, commits_after, inner: Mutex::default() }
    }

    /// Makes the process die after this many writes.
    pub fn dies_after(&self, writes: usize) {
        self.inner.lock().writes_left = Some(writes);
    }

    /// Changes one cell in memory, unless it includes the entry already. The cell is read back
    /// before its first change.
    fn change(&self, at: At, offset: Offset, change: impl FnOnce(i64) -> i64) {
        let mut inner = self.inner.lock();
        let stamp_us = inner.stamp_base_us + offset as i64;
        let read_back = || {
            let stored = self.servers.lock().cells.get(&at).copied();
            let empty = Stored { stamp_us: i64::MIN, included: 0, count: Some(0) };
            let cell = stored.filter(|cell| cell.count.is_some()).unwrap_or(empty);
            Held { cell, read: cell.included, is_changed: false }
        };

        let Held { cell, read, is_changed } =
            inner.cells.entry(at.clone()).or_insert_with(read_back);

        // An entry may change a cell more than once.
        if offset >= *read {
            *cell = Stored { stamp_us, included: offset + 1, count: cell.count.map(change) };
            if !std::mem::replace(is_changed, true) {
                inner.changed.push(at);
            }
        }
    }
}

impl Writing {
    fn write(&mut self) -> Result<(), Error> {
        match &mut self.writes_left {
            Some(0) => Err(Error::Io("the process has died".to_owned())),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl BucketWriter for SimStore {
    fn checkpoint(&self) -> Result<Checkpoint, Error> {
        let row = self.servers.lock().rows.get(&self.partition).cloned().unwrap_or_default();
        self.inner.lock().stamp_us = row.position.0;
        let (stamp_us, position) = row.position;
        Ok(Checkpoint { position, state: row.state.1, stamp_us, progress: row.progress })
    }

    fn stamp_from(&self, base_us: i64) {
        self.inner.lock().stamp_base_us = base_us;
    }

    fn add(
        &self,
        generation: Generation,
        key: &str,
        added: Addition,
        horizons: &Horizons,
    ) -> Result<(), Error> {
        let Addition { offset, time_s, value } = added;
        for granularity in
            Granularity::ALL.into_iter().filter(|granularity| horizons.keeps(*granularity, time_s))
        {
            let at = (
                generation,
                self.partition,
                key.to_owned(),
                granularity,
                granularity.floor(time_s),
            );
            self.change(at, offset, |count| count + value);
        }

        Ok(())
    }

    fn set(
        &self,
        generation: Generation,
        key: &str,
        offset: Offset,
        cell: Cell,
    ) -> Result<(), Error> {
        let at = (generation, self.partition, key.to_owned(), cell.granularity, cell.time_s);
        self.change(at, offset, |_| cell.count);
        Ok(())
    }

    fn erase(&self, generation: Generation, key: &str, offset: Offset) -> Result<(), Error> {
        let is_own = |at: &&At| at.0 == generation && at.1 == self.partition && at.2 == key;
        let mut cells: Vec<At> = self.inner.lock().cells.keys().filter(is_own).cloned().collect();
        cells.extend(self.servers.lock().cells.keys().filter(is_own).cloned());
        cells.into_iter().for_each(|at| self.change(at, offset, |_| 0));
        Ok(())
    }

    fn commit(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        let mut inner = self.inner.lock();
        for at in std::mem::take(&mut inner.changed) {
            inner.write()?;
            // A generation that was removed in the meantime has nothing left to write.
            if let Some(Held { cell, is_changed, .. }) = inner.cells.get_mut(&at) {
                *is_changed = false;
                self.servers.lock().put(at, *cell);
            }
        }

        inner.write()?;
        inner.stamp_us = checkpoint.stamp_us;

        let is_restated = inner.state.as_ref() != Some(&checkpoint.state);
        let mut servers = self.servers.lock();
        let row = servers.rows.entry(self.partition).or_default();
        if checkpoint.stamp_us >= row.position.0 {
            row.position = (checkpoint.stamp_us, checkpoint.position);
        }

        if is_restated && checkpoint.stamp_us >= row.state.0 {
            row.state = (checkpoint.stamp_us, checkpoint.state.clone());
        }
        inner.state = Some(checkpoint.state.clone());
        inner.write()?;

        let is_higher = |progress: &&Progress| {
            row.progress.as_ref().is_none_or(|stored| stored.rank <= progress.rank)
        };
        if let Some(progress) = checkpoint.progress.as_ref().filter(is_higher) {
            row.progress = Some(progress.clone());
        }
        Ok(())
    }

    fn wants_commit(&self) -> bool {
        self.inner.lock().changed.len() >= self.commits_after
    }
}

impl BucketRetention for SimStore {
    fn expire(
        &self,
        _generation: Generation,
        _horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
        _scan_max: usize,
    ) -> Result<u64, Error> {
        *cursor = None;
        Ok(0)
    }

    fn remove(
        &self,
        generation: Generation,
        cursor: &mut Option<Vec<u8>>,
        _scan_max: usize,
    ) -> Result<u64, Error> {
        let mut inner = self.inner.lock();
        inner.cells.retain(|(of, ..), _| *of != generation);

        let stamp_us = inner.stamp_us;
        let partition = self.partition;
        let mut servers = self.servers.lock();
        let is_left = |(of, by, ..): &At, cell: &Stored| {
            (*of, *by) == (generation, partition)
                && cell.stamp_us <= stamp_us
                && cell.count.is_some()
        };

        let mut own = servers.cells.iter_mut().filter(|(at, cell)| is_left(at, cell));
        for (_, cell) in own.by_ref().take(REMOVED_TOGETHER) {
            inner.write()?;
            *cell = Stored { stamp_us, included: 0, count: None };
        }

        *cursor = own.next().map(|_| Vec::new());
        Ok(0)
    }
}

/// The checkpoints as other processes read them.
pub struct SimCheckpoints {
    pub servers: Arc<Mutex<Servers>>,
}

impl Checkpoints for SimCheckpoints {
    fn included(&self) -> BoxFuture<'_, Result<Vec<StoredPosition>, cluster::Error>> {
        let servers = self.servers.lock();
        let included = |(partition, row): (&Partition, &Row)| StoredPosition {
            partition: *partition,
            position: row.position.1,
            state_version: row.state.0,
        };
        let rows = servers.rows.iter().map(included).collect();
        Box::pin(async move { Ok(rows) })
    }

    fn state(&self, partition: Partition) -> BoxFuture<'_, Result<Vec<u8>, cluster::Error>> {
        let state = self
            .servers
            .lock()
            .rows
            .get(&partition)
            .map(|row| row.state.1.clone())
            .unwrap_or_default();
        Box::pin(async move { Ok(state) })
    }

    fn progress(&self, partition: Partition) -> BoxFuture<'_, Result<Vec<u8>, cluster::Error>> {
        let servers = self.servers.lock();
        let progress = servers.rows.get(&partition).and_then(|row| row.progress.clone());
        Box::pin(async move { Ok(progress.unwrap_or_default().bytes) })
    }
}

//! Writes the cells of one log partition.
//!
//! ```text
//!   add ──▶ tiles in memory ──commit──▶ read back tiles that are not known yet
//!                 ▲                     write each changed key in batches, until all are written
//!                 └──── evict ◀──────── write the checkpoint
//! ```

mod batch;
mod flush;
mod housekeeping;
mod tiles;
mod ttl;

use crate::states::{self, StateChunks};
use crate::{Cluster, error};
use housekeeping::{Context, Housekeeping, Progress, Work};
use parking_lot::Mutex;
use raingauge_core::bucket::Granularity;
use raingauge_core::retention::Horizons;
use raingauge_core::tile::id;
use raingauge_ports::buckets::{
    self, Addition, BucketRetention, BucketWriter, Cell, Checkpoint, Error, Generation,
};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{Offset, Partition};
use raingauge_ports::tiles::{TileChanges, TileFeed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tiles::{Change, Op, Tiles};
use tokio::runtime::Handle;

/// Changed tiles, plus changes to tiles that were not read back yet, after which a commit is due.
const CHANGED_MAX: usize = 50_000;
const PENDING_MAX: usize = 200_000;

/// For this long after a takeover every commit writes the state, in case a zombie overwrites it.
const ZOMBIE_MAX: Duration = Duration::from_secs(60);

/// A stored checkpoint: position, stamp and state, and the write times of the first and the last of
/// these.
pub type Stored = (i64, i64, Option<Vec<u8>>, Option<i64>, Option<i64>);

/// The cells of one log partition. Blocks the thread of its worker.
pub struct Writer {
    cql: Cluster,
    /// The log's name: its topic.
    log: String,
    partition: Partition,
    runtime: Handle,
    gives_up: AtomicBool,
    feed: Option<Feed>,
    housekeeping: Housekeeping,
    /// Removes generations in a task beside counting.
    removal: Housekeeping,
    inner: Mutex<Inner>,
}

/// Informs readers about stored tiles.
#[derive(Clone)]
pub struct Feed {
    pub feed: Arc<dyn TileFeed>,
    pub clock: Arc<dyn Clock>,
}

struct Inner {
    tiles: Tiles,
    /// An entry's stamp is at least this plus its offset.
    stamp_base_us: i64,
    /// Stamp of the last committed entry.
    committed_us: i64,
    /// Timestamp of the last checkpoint.
    checkpoint_us: i64,
    /// The last state that was written.
    state: Option<Vec<u8>>,
    /// The rows of the stored state, and the latest timestamp under which they may have been
    /// written.
    chunks: Option<(StateChunks, i64)>,
    /// When this process took the partition over. For a while its predecessor may still write its
    /// state.
    taken_over: Instant,
}

impl Writer {
    pub fn new(
        cql: Cluster,
        log: impl Into<String>,
        partition: Partition,
        runtime: Handle,
    ) -> Self {
        let tiles = Tiles::new(cql.options.writer_cache_bytes);
        let inner = Inner {
            tiles,
            stamp_base_us: 0,
            committed_us: 0,
            checkpoint_us: 0,
            state: None,
            chunks: None,
            taken_over: Instant::now(),
        };

        Self {
            cql,
            log: log.into(),
            partition,
            runtime,
            gives_up: AtomicBool::default(),
            feed: None,
            housekeeping: Housekeeping::default(),
            removal: Housekeeping::default(),
            inner: Mutex::new(inner),
        }
    }

    /// Publishes every tile after it has been written, and then the position.
    pub fn with_feed(self, feed: Feed) -> Self {
        Self { feed: Some(feed), ..self }
    }

    /// Starts a task beside counting, or reports its progress. `cursor` is not empty while it runs.
    fn advance(
        &self,
        generation: Generation,
        work: Work,
        stamp_us: i64,
        cursor: &mut Option<Vec<u8>>,
    ) -> Result<u64, Error> {
        let context = Context { cql: self.cql.clone(), partition: self.partition, stamp_us };
        let housekeeping = if work == Work::Remove { &self.removal } else { &self.housekeeping };
        let Progress { tiles, is_done } =
            housekeeping.advance(&self.runtime, context, generation, work)?;
        *cursor = (!is_done).then(Vec::new);
        Ok(tiles)
    }

    fn flush(&self) -> flush::Flush<'_> {
        let feed = self.feed.as_ref().map(|feed| &*feed.feed);
        flush::Flush { cql: &self.cql, partition: self.partition, gives_up: &self.gives_up, feed }
    }
}

impl BucketWriter for Writer {
    fn checkpoint(&self) -> Result<Checkpoint, Error> {
        let session = &self.cql.session;
        let statement = &self.cql.statements.checkpoint;
        let row = self
            .runtime
            .block_on(self.flush().until_done("the checkpoint is read", async || {
                let found = session
                    .execute_unpaged(statement, (&self.log, i32::from(self.partition)))
                    .await;
                let rows =
                    found.map_err(error::request)?.into_rows_result().map_err(error::request)?;
                let Some(mut row) = rows.maybe_first_row::<Stored>().map_err(error::request)?
                else {
                    return Ok(None);
                };
                let stored = row.2.take().unwrap_or_default();
                let chunks = StateChunks::decode(&stored)?;

                row.2 = Some(states::get(&self.cql, &self.log, self.partition, stored).await?);
                Ok(Some((row, chunks)))
            }))
            .map_err(Error::from)?;

        // The predecessor may have written tiles up to here without publishing them.
        if let Some(Feed { feed, .. }) = &self.feed {
            let position = row.as_ref().map_or(0, |((position, ..), _)| *position as Offset);
            feed.publish(
                self.partition,
                TileChanges::Resumed { partition: self.partition, position },
            );
        }

        let Some((row, chunks)) = row else {
            return Ok(Checkpoint::default());
        };
        let progress = self
            .runtime
            .block_on(self.flush().until_done("the progress of a backfill is read", async || {
                let values = (&self.log, i32::from(self.partition));
                let found = session.execute_unpaged(&self.cql.statements.progress, values).await;
                let rows =
                    found.map_err(error::request)?.into_rows_result().map_err(error::request)?;

                rows.maybe_first_row::<(i64, Vec<u8>)>().map_err(error::request)
            }))
            .map_err(Error::from)?;

        let progress = progress.map(|(rank, bytes)| buckets::Progress { rank, bytes });
        let (position, stamp_us, state, position_us, state_us) = row;

        // An older timestamp would lose against what is stored.
        let mut inner = self.inner.lock();
        let newest_us = position_us.max(state_us).unwrap_or(0);
        inner.checkpoint_us = inner.checkpoint_us.max(newest_us);
        inner.committed_us = inner.committed_us.max(stamp_us);
        inner.chunks = chunks.zip(state_us);

        Ok(Checkpoint {
            position: position as Offset,
            state: state.unwrap_or_default(),
            stamp_us,
            progress,
        })
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
        let keeps = |granularity| horizons.keeps(granularity, time_s);

        // Coarser buckets are kept at least as long as finer ones.
        if !keeps(Granularity::Day) {
            return Ok(());
        }
        let mut inner = self.inner.lock();
        let stamp_us = inner.stamp_base_us + offset as i64;
        let place = inner.tiles.place(generation, key);
        let cell = |granularity| keeps(granularity).then(|| id::cell_of(granularity, time_s));

        let mut change = |granularity, cells| {
            let op = Op { offset, stamp_us, change: Change::Add { cells, value } };
            inner.tiles.change(place, id::of_bucket(granularity, time_s), op, Some(horizons));
        };

        change(Granularity::Day, [cell(Granularity::Day), None]);

        if keeps(Granularity::Hour) {
            change(Granularity::Hour, [cell(Granularity::Quarter), cell(Granularity::Hour)]);
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
        let mut inner = self.inner.lock();
        let stamp_us = inner.stamp_base_us + offset as i64;
        let place = inner.tiles.place(generation, key);
        let change =
            Change::Set { cell: id::cell_of(cell.granularity, cell.time_s), count: cell.count };
        let id = id::of_bucket(cell.granularity, cell.time_s);
        inner.tiles.change(place, id, Op { offset, stamp_us, change }, None);
        Ok(())
    }

    fn erase(&self, generation: Generation, key: &str, offset: Offset) -> Result<(), Error> {
        let (spans, stamp_us) = {
            let mut inner = self.inner.lock();
            (inner.tiles.drop_key(generation, key), inner.stamp_base_us + offset as i64)
        };
        let flush = self.flush();
        self.runtime.block_on(async {
            housekeeping::remove_key(&flush, generation, key, &spans, stamp_us).await?;
            flush.forget_key(generation, key, stamp_us).await
        })?;

        // Readers hold tiles of the key that nothing will replace.
        if let Some(Feed { feed, .. }) = &self.feed {
            feed.publish(self.partition, TileChanges::Gap);
        }
        Ok(())
    }

    fn commit(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let flush = self.flush();
        self.runtime.block_on(async {
            let mut changed = inner.tiles.take_changed();
            let written = async {
                flush.load(&mut changed).await?;
                flush.write(&mut changed).await
            };
            let written = written.await;
            inner.tiles.put_back(changed);
            written?;

            let changed = inner.state.as_ref() != Some(&checkpoint.state);

            // The state is a function of the log up to the stamp, so a process that has read less
            // never wins. A state that changes although the log has not moved needs a later
            // timestamp.
            let restated = changed && checkpoint.stamp_us <= inner.checkpoint_us;
            inner.checkpoint_us =
                checkpoint.stamp_us.max(inner.checkpoint_us + i64::from(restated));

            let with_state = changed || inner.taken_over.elapsed() < ZOMBIE_MAX;
            if changed {
                flush.put_state(&self.log, &checkpoint.state, inner.checkpoint_us).await?;
            }
            flush.put_checkpoint(&self.log, checkpoint, with_state, inner.checkpoint_us).await?;
            inner.committed_us = checkpoint.stamp_us;

            if changed {
                let chunks =
                    StateChunks::of(&checkpoint.state).map(|chunks| (chunks, inner.checkpoint_us));
                let before = std::mem::replace(&mut inner.chunks, chunks);
                let is_in_use = |(before, _): &(StateChunks, i64)| {
                    chunks.is_some_and(|(now, _)| now == *before)
                };
                if let Some((before, written_us)) = before.filter(|before| !is_in_use(before)) {
                    flush.delete_state(&self.log, before, written_us).await?;
                }
                inner.state = Some(checkpoint.state.clone());
            }

            if let Some(progress) = &checkpoint.progress {
                flush.put_progress(&self.log, progress).await?;
            }
            Ok::<_, Error>(())
        })?;
        inner.tiles.shrink();

        if let Some(Feed { feed, clock }) = &self.feed {
            feed.beat(self.partition, checkpoint.position, clock.machine_ms());
        }
        Ok(())
    }

    fn give_up(&self) {
        self.gives_up.store(true, Ordering::Release);
        self.housekeeping.stop();
        self.removal.stop();
    }

    fn wants_commit(&self) -> bool {
        let inner = self.inner.lock();
        inner.tiles.changed() > CHANGED_MAX || inner.tiles.pending() > PENDING_MAX
    }
}

impl BucketRetention for Writer {
    fn prolong(
        &self,
        generation: Generation,
        horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
    ) -> Result<(), Error> {
        let stamp_us = {
            let mut inner = self.inner.lock();
            if cursor.is_none() {
                inner.tiles.keep_longer(generation, horizons);
            }
            inner.committed_us
        };
        self.advance(generation, Work::Prolong(*horizons), stamp_us, cursor).map(drop)
    }

    /// Expired cells disappear by themselves. This removes retired generations.
    fn expire(
        &self,
        generation: Generation,
        horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
        _scan_max: usize,
    ) -> Result<u64, Error> {
        let is_retired = horizons.quarter_s == i64::MAX;
        if !is_retired {
            *cursor = None;
            return Ok(0);
        }

        let stamp_us = {
            let mut inner = self.inner.lock();
            if cursor.is_none() {
                inner.tiles.forget(generation);
            }
            inner.checkpoint_us
        };
        self.advance(generation, Work::Remove, stamp_us, cursor)
    }
}

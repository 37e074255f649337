//! Writing the cells of one partition of the log.
//!
//! ```text
//!   add ──▶ tiles in memory ──commit──▶ read back what is not known yet
//!                 ▲                     write each changed key as one batch, until it is written
//!                 └──── evict ◀──────── write the checkpoint
//! ```

mod batch;
mod flush;
mod tiles;
mod ttl;

use crate::{Cql, cell, error, keys};
use parking_lot::Mutex;
use raingauge_core::bucket::Granularity;
use raingauge_core::retention::Horizons;
use raingauge_core::tile::id;
use raingauge_ports::buckets::{Added, BucketWriter, Cell, Checkpoint, Error, Generation};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{Offset, Partition};
use raingauge_ports::tiles::{TileChanges, TileFeed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tiles::{Change, Op, Tiles};
use tokio::runtime::Handle;

/// Changed tiles, and changes of tiles that are not read back yet, after which a commit is due.
const CHANGED_MAX: usize = 50_000;
const PENDING_MAX: usize = 200_000;

/// The cells of one partition of a log. Called by the thread of its worker, which it blocks.
pub struct CqlWriter {
    cql: Cql,
    /// The name of the log: its topic.
    log: String,
    partition: Partition,
    runtime: Handle,
    gives_up: AtomicBool,
    feed: Option<Feed>,
    inner: Mutex<Inner>,
}

/// Where readers learn of tiles that were written.
#[derive(Clone)]
pub struct Feed {
    pub feed: Arc<dyn TileFeed>,
    pub clock: Arc<dyn Clock>,
}

struct Inner {
    tiles: Tiles,
    /// Entries have this and their offset for a stamp.
    stamp_base_us: i64,
    /// The last checkpoint was written under this timestamp.
    checkpoint_us: i64,
    /// The state that was written last.
    state: Option<Vec<u8>>,
}

impl CqlWriter {
    pub fn new(cql: Cql, log: impl Into<String>, partition: Partition, runtime: Handle) -> Self {
        let tiles = Tiles::new(cql.options.writer_cache_bytes);
        let inner = Mutex::new(Inner { tiles, stamp_base_us: 0, checkpoint_us: 0, state: None });
        Self { cql, log: log.into(), partition, runtime, gives_up: AtomicBool::new(false), feed: None, inner }
    }

    /// Publishes every tile behind its write, and then how far they go.
    pub fn with_feed(self, feed: Feed) -> Self {
        Self { feed: Some(feed), ..self }
    }

    /// The number that the rows of a generation carry.
    fn writer(&self, generation: Generation) -> i64 {
        cell::writer_of(generation, self.partition)
    }

    fn flush(&self) -> flush::Flush<'_> {
        let feed = self.feed.as_ref().map(|feed| &*feed.feed);
        flush::Flush { cql: &self.cql, partition: self.partition, gives_up: &self.gives_up, feed }
    }
}

impl BucketWriter for CqlWriter {
    fn checkpoint(&self) -> Result<Checkpoint, Error> {
        let (session, statement) = (&self.cql.session, &self.cql.statements.checkpoint);
        let row = self
            .runtime
            .block_on(self.flush().until_done("the checkpoint is read", async || {
                let found = session.execute_unpaged(statement, (&self.log, i32::from(self.partition))).await;
                let rows = found.map_err(error::request)?.into_rows_result().map_err(error::request)?;
                rows.maybe_first_row::<(i64, i64, Option<Vec<u8>>)>().map_err(error::request)
            }))
            .map_err(Error::from)?;
        // Whoever counted the partition before may have written tiles up to here without telling.
        if let Some(Feed { feed, .. }) = &self.feed {
            feed.publish(self.partition, TileChanges::Gap);
        }
        let Some((position, stamp_us, state)) = row else { return Ok(Checkpoint::default()) };
        Ok(Checkpoint { position: position as Offset, state: state.unwrap_or_default(), stamp_us })
    }

    fn stamp_from(&self, base_us: i64) {
        self.inner.lock().stamp_base_us = base_us;
    }

    fn add(&self, generation: Generation, key: &str, added: Added, horizons: &Horizons) -> Result<(), Error> {
        let Added { offset, time_s, value } = added;
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

    fn set(&self, generation: Generation, key: &str, offset: Offset, cell: Cell) -> Result<(), Error> {
        let mut inner = self.inner.lock();
        let stamp_us = inner.stamp_base_us + offset as i64;
        let place = inner.tiles.place(generation, key);
        let change = Change::Set { cell: id::cell_of(cell.granularity, cell.time_s), count: cell.count };
        let id = id::of_bucket(cell.granularity, cell.time_s);
        inner.tiles.change(place, id, Op { offset, stamp_us, change }, None);
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

            inner.checkpoint_us = checkpoint.stamp_us.max(inner.checkpoint_us + 1);
            let changed = inner.state.as_ref() != Some(&checkpoint.state);
            flush.put_checkpoint(&self.log, checkpoint, changed, inner.checkpoint_us).await?;
            if changed {
                inner.state = Some(checkpoint.state.clone());
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
    }

    fn wants_commit(&self) -> bool {
        let inner = self.inner.lock();
        inner.tiles.changed() > CHANGED_MAX || inner.tiles.pending() > PENDING_MAX
    }

    /// What has expired goes by itself. What is looked at here are the keys of a generation that is retired.
    fn expire(
        &self,
        generation: Generation,
        horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
        scan_max: usize,
    ) -> Result<u64, Error> {
        let is_retired = horizons.quarter_s == i64::MAX;
        if !is_retired {
            *cursor = None;
            return Ok(0);
        }
        let stamp_us = self.inner.lock().checkpoint_us;
        let from = cursor.take().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let flush = self.flush();
        let (removed, next) = self.runtime.block_on(async {
            let mut keys = keys::keys_of(&self.cql, generation, usize::MAX).await?;
            keys.sort_unstable();
            let begin = from.map_or(0, |from| keys.partition_point(|key| *key <= from));
            let page = &keys[begin..keys.len().min(begin + scan_max)];
            let removed = flush.remove(self.writer(generation), page, stamp_us).await?;
            let is_last = begin + page.len() == keys.len();
            Ok::<_, Error>((removed, page.last().filter(|_| !is_last).cloned()))
        })?;
        *cursor = next.map(String::into_bytes);
        self.inner.lock().tiles.forget(generation);
        Ok(removed)
    }
}

//! Work on everything that a partition has stored of a generation: a task beside counting, which
//! the worker polls until it is done.
//!
//! It reads keys page by page, some at once, and the tiles of a key likewise, so neither memory nor
//! the number of statements grows with the amount of stored data.

use super::batch::{self, Write};
use super::flush::Flush;
use super::tiles::newest_of;
use super::ttl::{self, Now};
use crate::{Cluster, Error, cell, error, keys, wall_s};
use futures_util::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use raingauge_core::retention::Horizons;
use raingauge_core::tile::Tile;
use raingauge_core::tile::id::TileId;
use raingauge_ports::buckets::Generation;
use raingauge_ports::log::{Offset, Partition};
use scylla::response::PagingState;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Number of keys worked on at once: few, so that counting keeps the cluster's capacity.
const KEYS_IN_FLIGHT: usize = 16;
/// Statements in one batch, each with a tile of up to a kilobyte.
const STATEMENTS_MAX: usize = 128;
/// A key that was listed within this time stays listed, since its tile may not be written yet. It
/// is shorter than the life of replaced counts, so all keys that only those have are old enough.
const LISTED_MARGIN_S: i64 = 30;

/// The work on a generation's tiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// Deletes them.
    Remove,
    /// Writes them again, to live as long as these horizons require.
    Prolong(Horizons),
}

/// The tasks of one partition: one at a time.
#[derive(Default)]
pub struct Housekeeping {
    job: Mutex<Option<Job>>,
}

struct Job {
    generation: Generation,
    work: Work,
    task: JoinHandle<Result<(), Error>>,
    stop: Arc<AtomicBool>,
    /// Number of tiles processed, and of those already reported.
    tiles: Arc<AtomicU64>,
    reported: u64,
}

/// Progress of a task.
pub struct Progress {
    /// Tiles since the last report.
    pub tiles: u64,
    pub is_done: bool,
}

/// What a task needs from its writer.
#[derive(Clone)]
pub struct Context {
    pub cql: Cluster,
    pub partition: Partition,
    /// Timestamp of the task's writes: nothing stored has a later one, and everything written later
    /// has.
    pub stamp_us: i64,
}

impl Housekeeping {
    /// Starts a task, or reports its progress. Cancels another task that is running.
    pub fn advance(
        &self,
        runtime: &Handle,
        context: Context,
        generation: Generation,
        work: Work,
    ) -> Result<Progress, Error> {
        let mut job = self.job.lock();
        let is_same = |job: &mut Job| job.generation == generation && job.work == work;
        let Some(mut running) = job.take_if(is_same) else {
            let stop = Arc::<AtomicBool>::default();
            let tiles = Arc::<AtomicU64>::default();
            let handle = runtime.clone();
            let stop_of = Arc::clone(&stop);
            let tiles_of = Arc::clone(&tiles);
            let work_on =
                move || handle.block_on(run(&context, generation, work, &stop_of, &tiles_of));
            let task = runtime.spawn_blocking(work_on);

            if let Some(other) =
                job.replace(Job { generation, work, task, stop, tiles, reported: 0 })
            {
                other.stop.store(true, Ordering::Release);
            }

            return Ok(Progress { tiles: 0, is_done: false });
        };

        let is_done = running.task.is_finished();
        let all = running.tiles.load(Ordering::Acquire);
        let tiles = all - std::mem::replace(&mut running.reported, all);

        if is_done {
            let ended = runtime.block_on(running.task);
            ended.map_err(error::request)??;
        } else {
            *job = Some(running);
        }

        Ok(Progress { tiles, is_done })
    }

    pub fn stop(&self) {
        if let Some(job) = self.job.lock().take() {
            job.stop.store(true, Ordering::Release);
        }
    }
}

impl Drop for Housekeeping {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn run(
    context: &Context,
    generation: Generation,
    work: Work,
    stop: &AtomicBool,
    tiles: &AtomicU64,
) -> Result<(), Error> {
    let Context { cql, partition, stamp_us } = context;
    let flush = Flush { cql, partition: *partition, gives_up: stop, feed: None };
    let writer = cell::writer_of(generation, *partition);
    let walk = Walk { flush: &flush, generation, writer, stamp_us: *stamp_us, work };
    let listed_before_us = (wall_s() - LISTED_MARGIN_S) * 1_000_000;
    let mut pages = keys::Pages::new(cql, generation);
    while let Some(keys) = flush.until_done("keys are listed", async || pages.next().await).await? {
        let each = keys.iter().map(|key| walk.whole(key, tiles, listed_before_us));
        stream::iter(each).buffer_unordered(KEYS_IN_FLIGHT).try_collect::<()>().await?;
    }
    Ok(())
}

/// Removes everything that a partition has stored of one key. `spans` are those in memory: a
/// process that died may have listed a span without writing its tile.
pub async fn remove_key(
    flush: &Flush<'_>,
    generation: Generation,
    key: &str,
    spans: &[TileId],
    stamp_us: i64,
) -> Result<(), Error> {
    let writer = cell::writer_of(generation, flush.partition);
    let walk = Walk { flush, generation, writer, stamp_us, work: Work::Remove };
    let listed: Vec<Write> =
        spans.iter().filter_map(|id| walk.listed(key, *id, 0, &Tile::default())).collect();
    walk.write(key, &listed).await?;
    walk.key(key, &AtomicU64::default()).await
}

/// Iterates over one writer's tiles.
struct Walk<'a> {
    flush: &'a Flush<'a>,
    generation: Generation,
    writer: i64,
    stamp_us: i64,
    work: Work,
}

impl Walk<'_> {
    /// Processes a key. Removes it from its counter's list if nothing of it is left and it was not
    /// listed recently.
    async fn whole(
        &self,
        key: &str,
        tiles: &AtomicU64,
        listed_before_us: i64,
    ) -> Result<(), Error> {
        self.key(key, tiles).await?;
        // Of several partitions that remove a key at once, the last one finds nothing left.
        if self.work == Work::Remove && self.is_empty(key).await? {
            self.flush.forget_key(self.generation, key, listed_before_us).await?;
        }
        Ok(())
    }

    async fn key(&self, key: &str, tiles: &AtomicU64) -> Result<(), Error> {
        let mut paging = PagingState::start();
        while !self.flush.gives_up.load(Ordering::Acquire) {
            let read = async || self.page(key, paging.clone()).await;
            let (own, next) = self.flush.until_done("tiles are listed", read).await?;
            let writes =
                own.iter().flat_map(|(id, included, tile)| self.writes(key, *id, *included, tile));
            let writes: Vec<Write> = writes.collect();

            self.write(key, &writes).await?;

            // Written separately, since the list is another partition.
            let spans = own.iter().filter(|(id, ..)| id.is_span());
            let listed =
                spans.filter_map(|(id, included, tile)| self.listed(key, *id, *included, tile));
            let listed: Vec<Write> = listed.collect();
            self.write(key, &listed).await?;

            tiles.fetch_add(own.len() as u64, Ordering::AcqRel);

            match next {
                Some(state) => paging = state,
                None => return Ok(()),
            }
        }

        Err(error::request("it was given up"))
    }

    /// Whether no writer has any tile of a key.
    async fn is_empty(&self, key: &str) -> Result<bool, Error> {
        let cql = self.flush.cql;
        let mut paging = PagingState::start();

        loop {
            let read = async || {
                let page = cql
                    .session
                    .execute_single_page(&cql.statements.all_tiles, (key,), paging.clone())
                    .await;
                let (found, next) = page.map_err(error::execution)?;
                let rows = found.into_rows_result().map_err(error::request)?;
                let rows = rows.rows::<(i32, HashMap<i64, &[u8]>)>().map_err(error::request)?;
                let mut has_any = false;

                for row in rows {
                    has_any |= !row.map_err(error::request)?.1.is_empty();
                }
                Ok((has_any, next))
            };

            let (has_any, next) =
                self.flush.until_done("the tiles of a key are listed", read).await?;
            match next.into_paging_control_flow() {
                _ if has_any => return Ok(false),
                ControlFlow::Continue(state) => paging = state,
                ControlFlow::Break(()) => return Ok(true),
            }
        }
    }

    /// Reads some tiles of a key, and the state for the next page.
    async fn page(
        &self,
        key: &str,
        paging: PagingState,
    ) -> Result<(Vec<(TileId, Offset, Tile)>, Option<PagingState>), Error> {
        let cql = self.flush.cql;
        let page = cql.session.execute_single_page(&cql.statements.all_tiles, (key,), paging).await;
        let (found, next) = page.map_err(error::execution)?;
        let rows = found.into_rows_result().map_err(error::request)?;
        let mut own = Vec::new();

        for row in rows.rows::<(i32, HashMap<i64, &[u8]>)>().map_err(error::request)? {
            let (period, tiles) = row.map_err(error::request)?;
            if let Some(bytes) = tiles.get(&self.writer) {
                let (included, tile) = cell::decode(key, bytes)?;
                own.push((cell::id_of(period), included, tile));
            }
        }

        Ok((own, next.into_paging_control_flow().continue_value()))
    }

    async fn write(&self, key: &str, writes: &[Write]) -> Result<(), Error> {
        for part in writes.chunks(STATEMENTS_MAX) {
            let _permit = self.flush.permits(part.len()).await;
            self.flush.write_all(key, part).await?;
        }
        Ok(())
    }

    /// The change to a span's entry in its counter's list.
    fn listed(&self, key: &str, id: TileId, included: Offset, tile: &Tile) -> Option<Write> {
        let statements = &self.flush.cql.statements;
        let stamp_us = self.stamp_us;
        let of = (self.generation, self.writer);

        match self.work {
            Work::Remove => Some(batch::delete_span(statements, of, key, id, stamp_us)),
            Work::Prolong(horizons) => {
                let ttl_s = self.ttl_of_tile_s(&horizons, id, tile)?;
                Some(batch::span(
                    statements,
                    of,
                    key,
                    id,
                    cell::encode(included, tile),
                    (stamp_us, ttl_s),
                ))
            }
        }
    }

    /// A tile's time to live by these horizons; `None` if it has expired.
    fn ttl_of_tile_s(&self, horizons: &Horizons, id: TileId, tile: &Tile) -> Option<i32> {
        let (granularity, newest_s) = newest_of(id, tile);
        let is_kept = horizons.keeps(granularity, newest_s);
        is_kept.then(|| ttl::ttl_s(newest_s, horizons.of(granularity), self.now()))
    }

    fn now(&self) -> Now {
        Now { stamp_s: self.stamp_us.div_euclid(1_000_000), wall_s: wall_s() }
    }

    fn writes(&self, key: &str, id: TileId, included: Offset, tile: &Tile) -> Vec<Write> {
        let statements = &self.flush.cql.statements;
        let writer = self.writer;
        let stamp_us = self.stamp_us;
        let cells = tile.cells().filter(|_| self.flush.cql.options.write_tables);

        match self.work {
            Work::Remove => {
                let rows = cells.map(|(cell, _)| {
                    batch::delete_row(statements, writer, key, id.bucket_of(cell), stamp_us)
                });
                rows.chain([batch::delete_tile(statements, writer, key, id, stamp_us)]).collect()
            }
            Work::Prolong(horizons) => {
                let Some(tile_ttl_s) = self.ttl_of_tile_s(&horizons, id, tile) else {
                    return Vec::new();
                };
                let now = self.now();

                let rows = cells.filter_map(|(cell, count)| {
                    let (granularity, time_s) = id.bucket_of(cell);
                    let ttl_s = ttl::ttl_s(time_s, horizons.of(granularity), now);
                    let is_kept = horizons.keeps(granularity, time_s);

                    is_kept.then(|| {
                        batch::row(
                            statements,
                            writer,
                            key,
                            id.bucket_of(cell),
                            count,
                            (stamp_us, ttl_s),
                        )
                    })
                });

                let bytes = cell::encode(included, tile);
                let tile = batch::tile(statements, writer, key, id, bytes, (stamp_us, tile_ttl_s));
                rows.chain([tile]).collect()
            }
        }
    }
}

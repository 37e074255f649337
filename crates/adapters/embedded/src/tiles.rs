//! The bucket store: tiles in memory, written behind to fjall.
//!
//! ```text
//!   add ──▶ cache of tiles ──commit──▶ fjall: tiles + position + state, one atomic batch
//!              ▲    │
//!   sum ───────┘    └── a miss loads the tile; a tile that changed stays until it is committed
//! ```
//!
//! The cache is the memory of the writer and of the readers at once: what the writer adds is what
//! the next sum sees, and nothing has to be invalidated.

mod cache;
mod disk;
mod options;
mod places;

use crate::store::in_background;
use crate::tiles::cache::Shard;
use disk::Disk;
pub use options::Options;
use parking_lot::{Mutex, MutexGuard};
use raingauge_core::bucket::Granularity;
use raingauge_core::event::key_hash;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::retention::Horizons;
use raingauge_core::tile::id::{self, TileId};
use raingauge_core::tile::{Overflow, Tile};
use raingauge_ports::BoxFuture;
use raingauge_ports::buckets::{
    Addition, Answer, BucketReader, BucketRetention, BucketWriter, Cell, Checkpoint, Error,
    Generation, KeySource, Largest, Query, Sum,
};
use raingauge_ports::log::Offset;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The cache is split so that its users seldom contend.
const SHARDS: usize = 64;
/// Bytes of changed tiles after which a commit is due, at most a quarter of the cache.
const COMMIT_BYTES: usize = 32 << 20;
/// How often a reader tries to lock a shard before it leaves the fast path: about a microsecond.
const LOCK_TRIES: usize = 50;
/// Sums of one key under a single lock of a shard: some microseconds at most.
const SUMS_PER_LOCK: usize = 32;
/// How often a load is repeated because of evictions before it holds the shard while it reads.
const LOAD_TRIES: usize = 4;

/// The bucket store of one data folder. Only one process has it open at a time.
pub struct TileStore {
    inner: Arc<Inner>,
}

struct Inner {
    shards: Box<[Mutex<Shard>]>,
    disk: Disk,
    /// Approximate number of bytes changed since the last commit.
    dirty_bytes: AtomicUsize,
    commit_bytes: usize,
    /// Held while removing and while committing. Otherwise a removal during a commit, which gathers
    /// its changes, would be taken for committed.
    removing: Mutex<()>,
    hits: metrics::Counter,
    misses: metrics::Counter,
}

impl TileStore {
    pub fn open(folder: &Path, options: &Options) -> Result<Self, Error> {
        let shard = |_| Mutex::new(Shard::new(options.cache_bytes / SHARDS));
        let inner = Inner {
            shards: (0..SHARDS).map(shard).collect(),
            disk: Disk::open(folder, options)?,
            dirty_bytes: AtomicUsize::new(0),
            commit_bytes: COMMIT_BYTES.min(options.cache_bytes / 4),
            removing: Mutex::default(),
            hits: metrics::counter!("raingauge_tile_cache_hits_total"),
            misses: metrics::counter!("raingauge_tile_cache_misses_total"),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Bytes of tiles in memory.
    pub fn cached_bytes(&self) -> usize {
        self.inner.shards.iter().map(|shard| shard.lock().bytes()).sum()
    }

    /// Merges the files on disk into as few as possible. Blocks the thread.
    pub fn compact(&self) -> Result<(), Error> {
        self.inner.disk.compact()
    }

    /// Returns the sum of a range on this thread, which waits for the disk if necessary.
    pub fn sum_stored(
        &self,
        generation: Generation,
        key: &str,
        plan: &Plan,
    ) -> Result<i128, Error> {
        self.inner.sum(generation, key, plan)
    }
}

impl Inner {
    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    /// Locks the shard of a hash, unless it stays locked for longer than a sum or a change takes:
    /// its holder may then be waiting for the disk, and the caller must not.
    #[inline]
    fn lock_briefly(&self, hash: u64) -> Option<MutexGuard<'_, Shard>> {
        let mutex = self.shard(hash);
        if let Some(shard) = mutex.try_lock() {
            return Some(shard);
        }

        for _ in 0..LOCK_TRIES {
            std::hint::spin_loop();
            if !mutex.is_locked()
                && let Some(shard) = mutex.try_lock()
            {
                return Some(shard);
            }
        }

        None
    }

    /// Returns the shard with all tiles of `ids` loaded, and the index of the key's record in it.
    fn load(
        &self,
        generation: Generation,
        key: &str,
        ids: &[TileId],
    ) -> Result<(MutexGuard<'_, Shard>, usize), Error> {
        let hash = cache::hash(generation, key);
        let mutex = self.shard(hash);
        for attempt in 0.. {
            let mut shard = mutex.lock();
            let record = shard.record(hash, generation, key);
            let missing: Vec<TileId> = shard.missing(record, ids);
            if missing.is_empty() {
                return Ok((shard, record));
            }
            self.misses.increment(missing.len() as u64);

            if attempt == LOAD_TRIES {
                for id in missing {
                    let tile = self.disk.tile(generation, key, id)?;
                    shard.fill(record, id, tile);
                }
                return Ok((shard, record));
            }

            let evictions = shard.evictions();
            drop(shard);

            let tiles = missing.iter().map(|id| Ok((*id, self.disk.tile(generation, key, *id)?)));
            let tiles = tiles.collect::<Result<Vec<_>, Error>>()?;
            let mut shard = mutex.lock();

            // A tile that was changed, committed and evicted during the read is newer than what was
            // read.
            if shard.evictions() == evictions {
                for (id, tile) in tiles {
                    shard.fill(record, id, tile);
                }
            }
        }

        unreachable!("the last attempt returns")
    }

    fn sum(&self, generation: Generation, key: &str, plan: &Plan) -> Result<i128, Error> {
        let ids = id::of_plan(plan);
        let (mut shard, record) = self.load(generation, key, &ids)?;
        let sum = shard.sum(record, plan).unwrap_or(Ok(0));
        shard.shrink();
        Ok(sum?)
    }

    /// Returns the tiles of a key that are in memory, some of which may not be on disk yet.
    fn changed_tiles(&self, generation: Generation, key: &str) -> Vec<TileId> {
        let hash = cache::hash(generation, key);
        let mut shard = self.shard(hash).lock();
        shard.find(hash, generation, key).map(|record| shard.tiles_of(record)).unwrap_or_default()
    }

    /// Changes one tile in memory.
    fn change(
        &self,
        generation: Generation,
        key: &str,
        id: TileId,
        change: impl FnOnce(&mut Tile),
    ) -> Result<(), Error> {
        let (mut shard, record) = self.load(generation, key, &[id])?;
        let grown = shard.change(record, id, change);
        self.dirty_bytes.fetch_add(grown, Ordering::Relaxed);
        shard.shrink();
        Ok(())
    }

    fn cells(&self, generation: Generation, key: &str, slice: Slice) -> Result<Vec<Cell>, Error> {
        let mut cells = Vec::new();
        for id in id::of_slice(slice) {
            let (mut shard, record) = self.load(generation, key, &[id])?;
            let tile = shard.tile(record, id).cloned().unwrap_or_default();
            shard.shrink();
            drop(shard);

            for (cell, count) in tile.cells() {
                let (granularity, time_s) = id.bucket_of(cell);
                if granularity == slice.granularity && (slice.from_s..slice.to_s).contains(&time_s)
                {
                    cells.push(Cell { granularity, time_s, count: count? });
                }
            }
        }

        Ok(cells)
    }

    fn largest_keys(
        &self,
        generation: Generation,
        slice: Slice,
        len_max: usize,
        scan_max: usize,
    ) -> Result<Largest, Error> {
        let spans: Vec<TileId> =
            id::of_slice(Slice { granularity: Granularity::Day, ..slice }).collect();
        let mut changed = HashMap::new();
        for shard in &self.shards {
            shard.lock().changed_spans(generation, &mut changed);
        }

        let mut sums = HashMap::<String, i128>::new();
        let mut add = |key: &str, id: TileId, tile: &Tile| -> Result<(), Error> {
            if spans.contains(&id) {
                *sums.entry(key.to_owned()).or_default() +=
                    tile.sum(id.days_within(slice.from_s, slice.to_s))?;
            }
            Ok(())
        };

        let mut is_complete = true;
        for (number, found) in self.disk.spans(generation).enumerate() {
            if number == scan_max {
                is_complete = false;
                break;
            }

            let (key, id, tile) = found?;
            if !changed.contains_key(&(key.clone(), id)) {
                add(&key, id, &tile)?;
            }
        }

        for ((key, id), tile) in &changed {
            add(key, *id, tile)?;
        }
        let clamp = |sum: i128| sum.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        let mut sums: Vec<(String, i64)> =
            sums.into_iter().map(|(key, sum)| (key, clamp(sum))).collect();
        sums.sort_unstable_by(|left, right| {
            right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0))
        });
        sums.truncate(len_max);

        Ok(Largest { keys: sums, is_complete })
    }
}

impl BucketReader for TileStore {
    fn sum_cached(&self, generation: Generation, key: &str, plan: &Plan) -> Option<Sum> {
        let hash = cache::hash(generation, key);
        let mut shard = self.inner.lock_briefly(hash)?;
        let record = shard.find(hash, generation, key)?;
        shard.sum(record, plan)
    }

    fn sums_cached(
        &self,
        generation: Generation,
        key: &str,
        plans: &[Plan],
    ) -> Option<Result<Vec<i128>, Overflow>> {
        let hash = cache::hash(generation, key);
        let mut sums = Vec::with_capacity(plans.len());
        for plans in plans.chunks(SUMS_PER_LOCK) {
            let mut shard = self.inner.lock_briefly(hash)?;
            let record = shard.find(hash, generation, key)?;

            for plan in plans {
                match shard.sum(record, plan)? {
                    Ok(sum) => sums.push(sum),
                    Err(overflow) => return Some(Err(overflow)),
                }
            }
        }

        Some(Ok(sums))
    }

    fn note_hits(&self, sums: usize) {
        self.inner.hits.increment(sums as u64);
    }

    fn sums(&self, queries: Vec<Query>) -> BoxFuture<'_, Vec<Result<i128, Error>>> {
        let len = queries.len();
        let work = in_background(&self.inner, move |inner| {
            Ok(queries
                .iter()
                .map(|query| inner.sum(query.generation, &query.key, &query.plan))
                .collect())
        });
        Box::pin(async move { work.await.unwrap_or_else(|error| vec![Err(error); len]) })
    }

    fn cells(&self, generation: Generation, key: String, slice: Slice) -> Answer<'_, Vec<Cell>> {
        in_background(&self.inner, move |inner| inner.cells(generation, &key, slice))
    }

    fn largest_keys(
        &self,
        generation: Generation,
        slice: Slice,
        len_max: usize,
        scan_max: usize,
    ) -> Answer<'_, Largest> {
        in_background(&self.inner, move |inner| {
            inner.largest_keys(generation, slice, len_max, scan_max)
        })
    }
}

impl KeySource for TileStore {
    fn key_hashes(&self, generation: Generation) -> Answer<'_, Vec<u64>> {
        in_background(&self.inner, move |inner| {
            let mut changed = HashMap::new();
            for shard in &inner.shards {
                shard.lock().changed_spans(generation, &mut changed);
            }
            let mut hashes = inner.disk.key_hashes(generation)?;
            hashes.extend(changed.keys().map(|(key, _)| key_hash(key)));
            hashes.sort_unstable();
            hashes.dedup();
            Ok(hashes)
        })
    }
}

impl BucketWriter for TileStore {
    fn checkpoint(&self) -> Result<Checkpoint, Error> {
        self.inner.disk.checkpoint()
    }

    fn add(
        &self,
        generation: Generation,
        key: &str,
        added: Addition,
        horizons: &Horizons,
    ) -> Result<(), Error> {
        // Tiles and position move together, so no entry is applied twice.
        let Addition { time_s, value, .. } = added;
        let keeps = Granularity::ALL.map(|granularity| horizons.keeps(granularity, time_s));
        let ids = [TileId::day_of(time_s), TileId::span_of(time_s)];
        let wanted = match keeps {
            [false, false, true] => &ids[1..],
            [_, _, true] => &ids[..],
            // Coarser buckets are kept at least as long as finer ones.
            _ => return Ok(()),
        };

        let (mut shard, record) = self.inner.load(generation, key, wanted)?;
        let mut grown = shard
            .change(record, ids[1], |tile| tile.add(id::cell_of(Granularity::Day, time_s), value));

        if wanted.len() == 2 {
            grown += shard.change(record, ids[0], |tile| {
                for granularity in [Granularity::Quarter, Granularity::Hour] {
                    if horizons.keeps(granularity, time_s) {
                        tile.add(id::cell_of(granularity, time_s), value);
                    }
                }
            });
        }

        self.inner.dirty_bytes.fetch_add(grown, Ordering::Relaxed);
        shard.shrink();
        Ok(())
    }

    fn set(
        &self,
        generation: Generation,
        key: &str,
        _offset: Offset,
        cell: Cell,
    ) -> Result<(), Error> {
        let id = id::of_bucket(cell.granularity, cell.time_s);
        self.inner.change(generation, key, id, |tile| {
            tile.set(id::cell_of(cell.granularity, cell.time_s), cell.count)
        })
    }

    fn erase(&self, generation: Generation, key: &str, _offset: Offset) -> Result<(), Error> {
        let mut ids = self.inner.disk.tiles_of(generation, key)?;
        ids.extend(self.inner.changed_tiles(generation, key));
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            self.inner.change(generation, key, id, |tile| *tile = Tile::default())?;
        }
        Ok(())
    }

    fn commit(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        let _removing = self.inner.removing.lock();
        let mut batch = self.inner.disk.batch();
        for shard in &self.inner.shards {
            shard
                .lock()
                .each_changed(|generation, key, id, tile| batch.put(generation, key, id, tile));
        }

        batch.commit(checkpoint)?;
        let mut bytes = 0;
        for shard in &self.inner.shards {
            let mut shard = shard.lock();
            shard.settle();
            bytes += shard.bytes();
        }

        self.inner.dirty_bytes.store(0, Ordering::Relaxed);
        metrics::gauge!("raingauge_tile_cache_bytes").set(bytes as f64);
        Ok(())
    }

    fn wants_commit(&self) -> bool {
        self.inner.dirty_bytes.load(Ordering::Relaxed) > self.inner.commit_bytes
    }
}

impl BucketRetention for TileStore {
    fn expire(
        &self,
        generation: Generation,
        horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
        scan_max: usize,
    ) -> Result<u64, Error> {
        let mut removed = 0;
        let (found, next) = self.inner.disk.scan(generation, cursor.take(), scan_max)?;
        *cursor = next;
        for (key, id, tile) in found {
            let gone = id.expired(horizons);
            if tile.has_any(gone) {
                self.inner.change(generation, &key, id, |tile| tile.remove(gone))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn remove(
        &self,
        generation: Generation,
        cursor: &mut Option<Vec<u8>>,
        scan_max: usize,
    ) -> Result<u64, Error> {
        let _removing = self.inner.removing.lock();
        let (found, next) = self.inner.disk.scan(generation, cursor.take(), scan_max)?;
        *cursor = next;
        let removed = found.len() as u64;
        for (key, id, _) in found {
            self.inner.change(generation, &key, id, |tile| *tile = Tile::default())?;
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests;

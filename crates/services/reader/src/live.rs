//! Tiles of active keys in memory, kept current by the stream of their changes.
//!
//! ```text
//!   sum ──▶ all tiles of the range in memory, and the stream alive? ──▶ their sum
//!                    └─no─▶ a placeholder, then one read of the source ──┐
//!   stream ── a tile ──▶ in memory, or a placeholder? ── the newer one ──┴──▶ tile
//!          ── a gap, silence, or no lease ──▶ nothing is in memory any more
//! ```
//!
//! A reader first puts a placeholder down, then reads; a change that comes in between waits there, and of the two the one
//! that includes more of the log stays. So no change is lost, whichever comes first, and nothing ever has to expire.
//! A read that has lost its placeholder, since it was evicted or everything was dropped, fills in nothing.
//!
//! Memory answers under a lease alone ([`raingauge_ports::leases`]), which [`keep_lease`] renews by what was heard: whoever
//! acknowledges events waits for those who hold one.

mod ahead;
mod lease;
mod pulse;
mod shard;

pub use ahead::read_ahead;
pub use lease::keep_lease;

use ahead::Ahead;
use futures_util::future::join_all;
use parking_lot::Mutex;
use pulse::Pulse;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::tile::Overflow;
use raingauge_core::tile::id::{self, TileId};
use raingauge_ports::BoxFuture;
use raingauge_ports::buckets::{BucketReader, Cell, Error, Generation, Largest, Query};
use raingauge_ports::clock::Clock;
use raingauge_ports::leases::{LEASE_MS, Lease};
use raingauge_ports::log::{Offset, Partition};
use raingauge_ports::tiles::{Hearing, Part, TileChanges, TileSource};
use shard::{Shard, TILES_PER_KEY_MAX};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::sync::Notify;
use xxhash_rust::xxh3::xxh3_64;

/// The cache is split so that those who use it seldom meet.
const SHARDS: usize = 64;

/// The stream is taken for lost when the newest word of any partition came longer ago than this, and nothing tells that it is
/// all there is; or when it stays behind the store for longer. So no answer is staler.
pub const SILENCE_MAX_MS: i64 = 5_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveOptions {
    /// Bytes of tiles in memory.
    pub cache_bytes: usize,
    /// Partitions of the log. The stream is alive when it has heard of all of them.
    pub partitions: Partition,
    /// Whether keys without any tile may have counts all the same, which another system wrote. They are then asked of the
    /// store every time.
    pub has_plain_rows: bool,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self { cache_bytes: 256 << 20, partitions: 1, has_plain_rows: false }
    }
}

/// A bucket store whose tiles of active keys are in memory.
pub struct LiveTiles {
    options: LiveOptions,
    /// What answers when memory cannot.
    inner: Arc<dyn BucketReader>,
    source: Arc<dyn TileSource>,
    clock: Arc<dyn Clock>,
    shards: Box<[Mutex<Shard>]>,
    pulse: Pulse,
    lease: Lease,
    /// Somebody found that memory did not answer, and asked the store, which may be ahead of what memory holds.
    was_passed_over: AtomicBool,
    /// Told when the stream has told how far a partition goes.
    heard: Notify,
    ahead: Ahead,
    metrics: Metrics,
}

struct Metrics {
    hits: metrics::Counter,
    misses: metrics::Counter,
    changes: metrics::Counter,
    gaps: metrics::Counter,
    silences: metrics::Counter,
    lapses: metrics::Counter,
    bytes: metrics::Gauge,
}

impl LiveTiles {
    pub fn new(
        inner: Arc<dyn BucketReader>,
        source: Arc<dyn TileSource>,
        clock: Arc<dyn Clock>,
        options: LiveOptions,
    ) -> Self {
        let shard = |_| Mutex::new(Shard::new(options.cache_bytes / SHARDS));
        let drops = |reason| metrics::counter!("raingauge_live_drops_total", "reason" => reason);
        Self {
            options,
            inner,
            source,
            clock,
            shards: (0..SHARDS).map(shard).collect(),
            pulse: Pulse::new(options.partitions),
            lease: Lease::default(),
            was_passed_over: AtomicBool::new(false),
            heard: Notify::new(),
            ahead: Ahead::default(),
            metrics: Metrics {
                hits: metrics::counter!("raingauge_cache_hits_total", "strategy" => "live"),
                misses: metrics::counter!("raingauge_cache_misses_total", "strategy" => "live"),
                changes: metrics::counter!("raingauge_live_changes_total"),
                gaps: drops("gap"),
                silences: drops("silence"),
                lapses: drops("lapse"),
                bytes: metrics::gauge!("raingauge_live_bytes"),
            },
        }
    }

    /// Takes one message of the stream, in its order.
    pub fn apply(&self, message: TileChanges) {
        match message {
            TileChanges::Tile { key, part } => {
                if self.shard(&key).lock().change(&key, part) {
                    self.metrics.changes.increment(1);
                }
            }
            TileChanges::Heartbeat { partition, position, .. } => {
                self.drop_after_silence();
                self.pulse.beat(partition, position, self.clock.elapsed_ms());
                self.catch_up_with_the_store();
                self.heard.notify_one();
                self.metrics.bytes.set(self.bytes() as f64);
            }
            TileChanges::Resumed { partition, position } => {
                if self.pulse.position(partition) != Some(position) {
                    self.drop_all(&self.metrics.gaps);
                }
            }
            TileChanges::Gap => self.drop_all(&self.metrics.gaps),
        }
    }

    /// What was missed while nothing came is not known.
    fn drop_after_silence(&self) {
        if self.pulse.has_stopped(self.clock.elapsed_ms()) {
            self.drop_all(&self.metrics.silences);
        }
    }

    /// How far of a partition the stream has told.
    pub fn position(&self, partition: Partition) -> Option<Offset> {
        self.pulse.position(partition)
    }

    /// Whether tiles in memory answer. Whoever finds that they do not may ask the store: before memory answers again,
    /// it is emptied, so that no answer is older than one before it.
    pub fn is_live(&self) -> bool {
        self.may_answer() || {
            self.was_passed_over.store(true, Ordering::SeqCst);
            self.may_answer()
        }
    }

    fn may_answer(&self) -> bool {
        let now_ms = self.clock.elapsed_ms();
        self.lease.holds(now_ms) && !self.pulse.has_stopped(now_ms)
    }

    fn catch_up_with_the_store(&self) {
        if self.may_answer() && self.was_passed_over.swap(false, Ordering::SeqCst) {
            self.drop_all(&self.metrics.lapses);
        }
    }

    /// The word of the lease that was sent then, by [`Clock::elapsed_ms`], is in the topic.
    pub fn extend_lease(&self, sent_ms: i64) {
        let now_ms = self.clock.elapsed_ms();
        if now_ms >= sent_ms + LEASE_MS {
            return;
        }
        // What was acknowledged meanwhile, nobody waited for this reader to hear of.
        if !self.lease.holds(now_ms) {
            self.drop_all(&self.metrics.lapses);
        }
        self.lease.extend(sent_ms);
        self.catch_up_with_the_store();
    }

    /// Bytes of tiles in memory.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().bytes()).sum()
    }

    fn drop_all(&self, drops: &metrics::Counter) {
        let dropped: usize = self.shards.iter().map(|shard| shard.lock().clear()).sum();
        if dropped > 0 {
            drops.increment(1);
            tracing::warn!(
                keys = dropped,
                "the stream of changes was interrupted: tiles in memory are read anew"
            );
        }
    }

    fn shard(&self, key: &str) -> &Mutex<Shard> {
        self.shard_of(xxh3_64(key.as_bytes()))
    }

    fn shard_of(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    fn sum_in_memory(
        &self,
        generation: Generation,
        key: &str,
        plan: &Plan,
    ) -> Option<Result<i128, Overflow>> {
        if !self.is_live() {
            return None;
        }
        let hash = xxh3_64(key.as_bytes());
        let sum =
            self.shard_of(hash).lock().sum(generation, key, plan, self.options.has_plain_rows)?;
        if ahead::moves_on(plan, hash) {
            self.order_ahead(key, hash, plan);
        }
        Some(sum)
    }

    async fn sum(&self, query: Query) -> Result<i128, Error> {
        let ids = id::of_plan(&query.plan);
        if !self.is_live() || ids.len() > TILES_PER_KEY_MAX {
            return self.sum_of_inner(query).await;
        }
        let missing = self.shard(&query.key).lock().missing(&query.key, &ids);
        let mut parts = Vec::new();
        if !missing.is_empty() {
            let wanted = missing.iter().map(|(id, _)| *id).collect();
            parts = self.source.tiles(query.key.clone(), wanted).await?;
            self.shard(&query.key).lock().fill(&query.key, &missing, &parts);
        }
        if let Some(sum) = self.sum_in_memory(query.generation, &query.key, &query.plan) {
            return Ok(sum?);
        }
        // Evicted again, or dropped. What was read is as good, if it is all that is needed.
        if missing.len() == ids.len() && !(parts.is_empty() && self.options.has_plain_rows) {
            return Ok(sum_of_parts(&query, &parts)?);
        }
        self.sum_beside_memory(query, ids).await
    }

    /// Asks the store, for rows without a tile too. What has tiles by then is in memory before it is answered, which would
    /// otherwise hear of one after another and answer less.
    async fn sum_beside_memory(&self, query: Query, ids: Vec<TileId>) -> Result<i128, Error> {
        let Query { generation, ref key, plan } = query;
        let (key, sum) = (key.clone(), self.sum_of_inner(query).await?);
        let parts = self.source.tiles(key.clone(), ids).await?;
        if parts.is_empty() {
            return Ok(sum);
        }
        self.shard(&key).lock().merge(&key, parts);
        match self.sum_in_memory(generation, &key, &plan) {
            Some(newer) => Ok(newer?),
            None => Ok(sum),
        }
    }

    async fn sum_of_inner(&self, query: Query) -> Result<i128, Error> {
        let sum = self.inner.sums(vec![query]).await.into_iter().next();
        sum.unwrap_or_else(|| Err(Error::Io("the bucket store gave no answer".to_owned())))
    }
}

fn sum_of_parts(query: &Query, parts: &[Part]) -> Result<i128, Overflow> {
    let own =
        parts.iter().filter(|part| raingauge_ports::tiles::is_of(part.writer, query.generation));
    own.map(|part| id::sum_of(&query.plan, part.id, &part.tile)).sum()
}

impl Hearing for LiveTiles {
    fn has_heard(&self, partition: Partition, position: Offset) -> bool {
        self.position(partition) >= Some(position) || !self.is_live()
    }

    /// While a partition is silent, its writer away or at a standstill, memory stays current as long as the store includes no
    /// more of it than was heard.
    fn note_stored(&self, partition: Partition, position: Offset, asked: Instant) {
        self.drop_after_silence();
        let asked_ms = self.clock.elapsed_ms() - asked.elapsed().as_millis() as i64;
        self.pulse.note_stored(partition, position, asked_ms);
    }
}

impl BucketReader for LiveTiles {
    fn sum_cached(
        &self,
        generation: Generation,
        key: &str,
        plan: &Plan,
    ) -> Option<Result<i128, Overflow>> {
        let sum = self.sum_in_memory(generation, key, plan);
        if sum.is_some() { &self.metrics.hits } else { &self.metrics.misses }.increment(1);
        sum
    }

    fn sums(&self, queries: Vec<Query>) -> BoxFuture<'_, Vec<Result<i128, Error>>> {
        Box::pin(join_all(queries.into_iter().map(|query| self.sum(query))))
    }

    fn cells(
        &self,
        generation: Generation,
        key: String,
        slice: Slice,
    ) -> BoxFuture<'_, Result<Vec<Cell>, Error>> {
        self.inner.cells(generation, key, slice)
    }

    fn largest_keys(
        &self,
        generation: Generation,
        slice: Slice,
        len_max: usize,
        scan_max: usize,
    ) -> BoxFuture<'_, Result<Largest, Error>> {
        self.inner.largest_keys(generation, slice, len_max, scan_max)
    }
}

//! Tiles of active keys in memory, kept current by the stream of their changes.
//!
//! ```text
//!   sum ──▶ all tiles of the range in memory, and the stream alive? ──▶ their sum
//!                    └─no─▶ a placeholder, then one read of the source ──┐
//!   stream ── a tile ──▶ in memory, or a placeholder? ── the newer one ──┴──▶ tile
//!          ── a gap, silence, or no lease ──▶ nothing is in memory any more
//! ```
//!
//! A read first puts a placeholder down. A change that comes while it is under way waits there, and
//! of the two, the one that includes more of the log stays. So no change is lost, whichever comes
//! first, and nothing ever has to expire. A read whose placeholder was evicted or dropped fills in
//! nothing.
//!
//! Memory answers only under a lease ([`raingauge_ports::leases`]), which [`lease::keep_lease`]
//! renews with the positions that were heard: an acknowledgement of events waits for all holders.

mod ahead;
pub mod lease;
mod pulse;
mod shard;

use ahead::{Ahead, Order};
use futures_util::future::join_all;
use parking_lot::Mutex;
use pulse::Pulse;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::tile::id::{self, TileId};
use raingauge_ports::BoxFuture;
use raingauge_ports::buckets::{
    Answer, BucketReader, Cell, Error, Generation, Largest, Query, Sum,
};
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

/// The cache is split, so that its users seldom wait for each other's locks.
const SHARDS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveOptions {
    /// Bytes of tiles in memory.
    pub cache_bytes: usize,
    /// Partitions of the log. The stream is alive once it has brought news of all of them.
    pub partitions: Partition,
    /// Whether keys without a tile may have counts that another system wrote. The store is then
    /// asked for them every time.
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
    /// Answers when memory cannot.
    inner: Arc<dyn BucketReader>,
    source: Arc<dyn TileSource>,
    clock: Arc<dyn Clock>,
    shards: Box<[Mutex<Shard>]>,
    pulse: Pulse,
    lease: Lease,
    /// Whether a caller found that memory did not answer and asked the store, which may be ahead of
    /// memory.
    was_passed_over: AtomicBool,
    /// Notified when a heartbeat advances a partition's position.
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

    /// Applies one message of the stream, in its order.
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

    /// Drops all tiles after a silence, because changes may have been missed in it.
    fn drop_after_silence(&self) {
        if self.pulse.has_stopped(self.clock.elapsed_ms()) {
            self.drop_all(&self.metrics.silences);
        }
    }

    /// The offset of a partition up to which the stream has brought its changes.
    pub fn position(&self, partition: Partition) -> Option<Offset> {
        self.pulse.position(partition)
    }

    /// Whether tiles in memory answer. When they do not, the caller may ask the store. Memory is
    /// then emptied before it answers again, so that no answer is older than an earlier one.
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

    /// Extends the lease, whose message was sent at this [`Clock::elapsed_ms`] and is in the topic.
    pub fn extend_lease(&self, sent_ms: i64) {
        let now_ms = self.clock.elapsed_ms();
        if now_ms >= sent_ms + LEASE_MS {
            return;
        }
        // Acknowledgements since the last lease ended did not wait for this reader.
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
                "the stream of changes was interrupted: tiles in memory are read again"
            );
        }
    }

    fn shard(&self, key: &str) -> &Mutex<Shard> {
        self.shard_of(xxh3_64(key.as_bytes()))
    }

    fn shard_of(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    fn sum_in_memory(&self, generation: Generation, key: &str, plan: &Plan) -> Option<Sum> {
        if !self.is_live() {
            return None;
        }
        let hash = xxh3_64(key.as_bytes());
        let sum =
            self.shard_of(hash).lock().sum(generation, key, plan, self.options.has_plain_rows)?;
        if ahead::moves_on(plan, hash) {
            self.ahead.order(self.shard_of(hash), key, hash, plan, self.clock.now_s());
        }
        Some(sum)
    }

    /// Whether tiles wait to be read ahead.
    pub fn has_orders(&self) -> bool {
        !self.ahead.is_empty()
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

        // Evicted again, or dropped. The tiles that were read are as good, if they are all.
        if missing.len() == ids.len() && !(parts.is_empty() && self.options.has_plain_rows) {
            return Ok(sum_of_parts(&query, &parts)?);
        }
        self.sum_beside_memory(query, ids).await
    }

    /// Asks the store, which also has rows without a tile. A key that has tiles by now gets them
    /// into memory first: memory would otherwise learn of them one by one, and answer less.
    async fn sum_beside_memory(&self, query: Query, ids: Vec<TileId>) -> Result<i128, Error> {
        let Query { generation, ref key, plan } = query;
        let key = key.clone();
        let sum = self.sum_of_inner(query).await?;
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

fn sum_of_parts(query: &Query, parts: &[Part]) -> Sum {
    let own =
        parts.iter().filter(|part| raingauge_ports::tiles::is_of(part.writer, query.generation));
    own.map(|part| id::sum_of(&query.plan, part.id, &part.tile)).sum()
}

/// Reads the tiles that were ordered, key by key, for as long as it is polled. One task for each
/// [`LiveTiles`].
pub async fn read_ahead(live: Arc<LiveTiles>) {
    let Some(mut orders) = live.ahead.take() else {
        return;
    };
    while let Some(Order { key, placeholders }) = orders.recv().await {
        let ids = placeholders.iter().map(|(id, _)| *id).collect();
        // Tiles that cannot be read now are read with the next count that needs them.
        if let Ok(parts) = live.source.tiles(key.clone(), ids).await {
            live.shard(&key).lock().fill(&key, &placeholders, &parts);
        }
    }
}

impl Hearing for LiveTiles {
    fn has_heard(&self, partition: Partition, position: Offset) -> bool {
        self.position(partition) >= Some(position) || !self.is_live()
    }

    /// While a partition is silent because its writer is away or has nothing to do, memory stays
    /// current as long as the store includes no more of it than the stream has brought.
    fn note_stored(&self, partition: Partition, position: Offset, asked: Instant) {
        self.drop_after_silence();
        let asked_ms = self.clock.elapsed_ms() - asked.elapsed().as_millis() as i64;
        self.pulse.note_stored(partition, position, asked_ms);
    }
}

impl BucketReader for LiveTiles {
    fn sum_cached(&self, generation: Generation, key: &str, plan: &Plan) -> Option<Sum> {
        let sum = self.sum_in_memory(generation, key, plan);
        if sum.is_some() { &self.metrics.hits } else { &self.metrics.misses }.increment(1);
        sum
    }

    fn sums(&self, queries: Vec<Query>) -> BoxFuture<'_, Vec<Result<i128, Error>>> {
        Box::pin(join_all(queries.into_iter().map(|query| self.sum(query))))
    }

    fn cells(&self, generation: Generation, key: String, slice: Slice) -> Answer<'_, Vec<Cell>> {
        self.inner.cells(generation, key, slice)
    }

    fn largest_keys(
        &self,
        generation: Generation,
        slice: Slice,
        len_max: usize,
        scan_max: usize,
    ) -> Answer<'_, Largest> {
        self.inner.largest_keys(generation, slice, len_max, scan_max)
    }
}

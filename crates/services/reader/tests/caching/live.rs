use crate::support::{NOON_S, published, range};
use raingauge_core::bucket::{DAY_S, Granularity, HOUR_S, QUARTER_S};
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::tile::id::{self, TileId};
use raingauge_core::tile::{Overflow, Tile};
use raingauge_policy::cache::Policy;
use raingauge_ports::BoxFuture;
use raingauge_ports::buckets::{
    BucketReader, Cell, Error, Generation, Largest, Query, generation_of,
};
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::leases::LEASE_MS;
use raingauge_ports::log::{Offset, Partition};
use raingauge_ports::tiles::{Hearing, Part, TileChanges, TileSource, WriterId, is_of, writer_of};
use raingauge_reader::{
    CachePolicies, Engines, LiveOptions, LiveTiles, Options, Reader, read_ahead,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Instant;

pub const GENERATION: Generation = generation_of(1, 0);
pub const PARTITIONS: Partition = 3;

/// How far a read of the source may go: not yet, up to what it finds, up to its answer.
pub type Stage = Arc<AtomicU8>;
pub const FOUND: u8 = 1;
pub const ANSWERED: u8 = 2;

type Tiles = BTreeMap<(String, TileId, WriterId), (Offset, Tile)>;

/// Tiles as a store has them, whose reads are let on step by step.
#[derive(Default)]
pub struct Source {
    tiles: Mutex<Tiles>,
    /// Of the next read.
    pub stage: Mutex<Option<Stage>>,
    pub loads: AtomicUsize,
    /// What rows that are in no tile add to every sum.
    pub plain: AtomicI64,
    pub inner_reads: AtomicUsize,
}

impl Source {
    /// Counts one event, and answers the tiles that it changed.
    pub fn write(
        &self,
        key: &str,
        partition: Partition,
        offset: Offset,
        time_s: i64,
        value: i64,
    ) -> Vec<TileChanges> {
        let counter = key[1..2].parse().expect("the id of a counter");
        let writer = writer_of(generation_of(counter, 0), partition);
        let day = [Granularity::Quarter, Granularity::Hour]
            .map(|granularity| id::cell_of(granularity, time_s));
        let change = |id, cells: &[u8]| {
            let mut tiles = self.tiles.lock().unwrap();
            let (included, tile) = tiles.entry((key.to_owned(), id, writer)).or_default();
            *included = offset;
            cells.iter().for_each(|cell| tile.add(*cell, value));

            TileChanges::Tile {
                key: key.to_owned(),
                part: Part { id, writer, included: offset, tile: tile.clone() },
            }
        };

        let span = [id::cell_of(Granularity::Day, time_s)];
        vec![change(TileId::day_of(time_s), &day), change(TileId::span_of(time_s), &span)]
    }

    fn parts(&self, key: &str, ids: &[TileId]) -> Vec<Part> {
        let tiles = self.tiles.lock().unwrap();
        let own = tiles.iter().filter(|((of, id, _), _)| of == key && ids.contains(id));
        own.map(|((_, id, writer), (included, tile))| Part {
            id: *id,
            writer: *writer,
            included: *included,
            tile: tile.clone(),
        })
        .collect()
    }
}

/// A read of the source that looks when it may, and answers when it may.
struct Load {
    source: Arc<Source>,
    key: String,
    ids: Vec<TileId>,
    stage: Option<Stage>,
    found: Option<Vec<Part>>,
}

impl Future for Load {
    type Output = Result<Vec<Part>, Error>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let stage = self.stage.as_ref().map_or(ANSWERED, |stage| stage.load(Ordering::SeqCst));
        if stage >= FOUND && self.found.is_none() {
            self.found = Some(self.source.parts(&self.key, &self.ids));
        }
        match self.found.take() {
            Some(found) if stage >= ANSWERED => Poll::Ready(Ok(found)),
            found => {
                self.found = found;
                Poll::Pending
            }
        }
    }
}

/// The source, and what answers when nothing is in memory.
pub struct Store(pub Arc<Source>);

impl TileSource for Store {
    fn tiles(&self, key: String, ids: Vec<TileId>) -> BoxFuture<'_, Result<Vec<Part>, Error>> {
        self.0.loads.fetch_add(1, Ordering::SeqCst);
        let stage = self.0.stage.lock().unwrap().clone();
        Box::pin(Load { source: Arc::clone(&self.0), key, ids, stage, found: None })
    }
}

impl BucketReader for Store {
    fn sum_cached(&self, _: Generation, _: &str, _: &Plan) -> Option<Result<i128, Overflow>> {
        None
    }

    fn sums(&self, queries: Vec<Query>) -> BoxFuture<'_, Vec<Result<i128, Error>>> {
        self.0.inner_reads.fetch_add(queries.len(), Ordering::SeqCst);
        let sum = |query: &Query| {
            let parts = self.0.parts(&query.key, &id::of_plan(&query.plan));
            let own = parts.iter().filter(|part| is_of(part.writer, query.generation));
            let cells = own.flat_map(|part| {
                part.tile
                    .cells()
                    .map(|(cell, count)| (part.id.bucket_of(cell), count.expect("a count")))
            });

            let slices: Vec<Slice> = query.plan.slices().collect();
            let inside = cells.filter(|((granularity, time_s), _)| {
                let fits = |slice: &Slice| {
                    slice.granularity == *granularity && (slice.from_s..slice.to_s).contains(time_s)
                };
                slices.iter().any(fits)
            });

            let plain = i128::from(self.0.plain.load(Ordering::SeqCst));
            Ok(inside.map(|(_, count)| i128::from(count)).sum::<i128>() + plain)
        };

        let sums = queries.iter().map(sum).collect();
        Box::pin(async move { sums })
    }

    fn cells(&self, _: Generation, _: String, _: Slice) -> BoxFuture<'_, Result<Vec<Cell>, Error>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn largest_keys(
        &self,
        _: Generation,
        _: Slice,
        _: usize,
        _: usize,
    ) -> BoxFuture<'_, Result<Largest, Error>> {
        Box::pin(async { Ok(Largest { keys: Vec::new(), is_complete: true }) })
    }
}

/// As if the word of the lease had been sent in a far future.
const FOR_EVER_MS: i64 = i64::MAX / 2;

pub struct Setup {
    pub source: Arc<Source>,
    pub clock: Arc<ManualClock>,
    pub live: Arc<LiveTiles>,
}

pub fn setup(options: LiveOptions) -> Setup {
    let setup = setup_without_a_lease(options);
    setup.live.extend_lease(FOR_EVER_MS);
    setup
}

fn setup_without_a_lease(options: LiveOptions) -> Setup {
    let source = Arc::<Source>::default();
    let clock = Arc::new(ManualClock::at_s(NOON_S));
    let store = Arc::new(Store(Arc::clone(&source)));
    let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
    let live = Arc::new(LiveTiles::new(Arc::clone(&store) as _, store, shared, options));
    Setup { source, clock, live }
}

pub fn options() -> LiveOptions {
    LiveOptions { partitions: PARTITIONS, ..LiveOptions::default() }
}

impl Setup {
    pub fn beat(&self) {
        for partition in 0..PARTITIONS {
            self.live.apply(TileChanges::Heartbeat {
                partition,
                position: 1,
                at_ms: self.clock.now_ms(),
            });
        }
    }

    pub async fn sum(&self, key: &str, plan: Plan) -> i128 {
        let query = Query { generation: GENERATION, key: key.to_owned(), plan };
        self.live.sums(vec![query]).await.remove(0).expect("a sum")
    }

    fn counters(&self) -> (usize, usize) {
        (self.source.loads.load(Ordering::SeqCst), self.source.inner_reads.load(Ordering::SeqCst))
    }
}

/// Two days and some hours, which need a span and two day tiles.
pub fn wide() -> Plan {
    Plan::new(NOON_S - 2 * DAY_S, NOON_S + HOUR_S).expect("a range")
}

#[tokio::test]
async fn tiles_in_memory_follow_the_stream() {
    let setup = setup(options());
    setup.source.write("c1:x", 0, 1, NOON_S, 5);
    assert_eq!(setup.sum("c1:x", wide()).await, 5);
    assert_eq!(setup.counters(), (0, 1), "nothing was heard of the stream yet");
    setup.beat();
    assert_eq!(setup.sum("c1:x", wide()).await, 5);
    assert_eq!(setup.counters(), (1, 1));
    assert_eq!(setup.live.sum_cached(GENERATION, "c1:x", &wide()), Some(Ok(5)));
    assert_eq!(
        setup.live.sum_cached(generation_of(1, 1), "c1:x", &wide()),
        Some(Ok(0)),
        "another generation"
    );

    for change in setup.source.write("c1:x", 2, 9, NOON_S - DAY_S, 7) {
        setup.live.apply(change.clone());
        setup.live.apply(change);
    }

    assert_eq!(setup.live.sum_cached(GENERATION, "c1:x", &wide()), Some(Ok(12)));
    let quarter = Plan::new(NOON_S, NOON_S + QUARTER_S).unwrap();
    assert_eq!(setup.live.sum_cached(GENERATION, "c1:x", &quarter), Some(Ok(5)));
    assert_eq!(setup.live.sum_cached(GENERATION, "c1:y", &quarter), None);
    assert_eq!(setup.counters(), (1, 1));
}

#[tokio::test]
async fn a_gap_or_silence_empties_the_memory() {
    let setup = setup(options());
    setup.beat();

    let change = setup.source.write("c1:x", 0, 1, NOON_S, 5);
    change.into_iter().for_each(|change| setup.live.apply(change));
    assert_eq!(setup.sum("c1:x", wide()).await, 5);

    // The stream loses a change.
    setup.source.write("c1:x", 0, 2, NOON_S, 1);
    setup.live.apply(TileChanges::Gap);
    assert_eq!(setup.live.sum_cached(GENERATION, "c1:x", &wide()), None);
    assert_eq!((setup.sum("c1:x", wide()).await, setup.live.bytes() > 0), (6, true));
    setup.source.write("c1:x", 0, 3, NOON_S, 1);

    // The stream is silent for more than five seconds.
    setup.clock.set_s(NOON_S + 6);
    assert_eq!(setup.live.sum_cached(GENERATION, "c1:x", &wide()), None);
    assert_eq!(setup.sum("c1:x", wide()).await, 7);
    assert_eq!(setup.counters(), (2, 1), "storage answers while the stream is silent");
    setup.beat();
    assert_eq!(
        setup.live.sum_cached(GENERATION, "c1:x", &wide()),
        None,
        "the reader cannot know what it missed"
    );
    assert_eq!(setup.sum("c1:x", wide()).await, 7);
    assert_eq!(setup.live.sum_cached(GENERATION, "c1:x", &wide()), Some(Ok(7)));
}

#[tokio::test]
async fn without_a_lease_nothing_is_answered_from_memory() {
    let setup = setup_without_a_lease(options());
    setup.beat();
    setup.source.write("c1:x", 0, 1, NOON_S, 5);
    assert_eq!((setup.sum("c1:x", wide()).await, setup.counters()), (5, (0, 1)));

    let now_ms = || setup.clock.elapsed_ms();
    let grant = || setup.live.extend_lease(now_ms());
    grant();
    assert_eq!((setup.sum("c1:x", wide()).await, setup.counters()), (5, (1, 1)));

    let cached = || setup.live.sum_cached(GENERATION, "c1:x", &wide());
    setup.clock.set_s(NOON_S + 1);
    grant();
    setup.clock.set_s(NOON_S + 2);
    assert_eq!(cached(), Some(Ok(5)), "it was extended in time");
    setup.clock.set_s(NOON_S + 3);
    assert_eq!(cached(), None);
    setup.live.extend_lease(now_ms() - LEASE_MS);
    assert_eq!(cached(), None, "the word took longer than the lease lasts");

    // Nobody waits for a reader without a lease to hear of this.
    setup.source.write("c1:x", 0, 2, NOON_S, 1);
    grant();
    assert_eq!((cached(), setup.sum("c1:x", wide()).await), (None, 6));
    assert_eq!(cached(), Some(Ok(6)));
}

/// 300 keys, each asked for every ten minutes in three windows that end now, over three days.
#[tokio::test]
async fn midnight_is_no_boundary_either() {
    const KEYS: i64 = 300;

    let setup = setup(options());
    tokio::spawn(read_ahead(Arc::clone(&setup.live)));

    let mut loads = Vec::new();
    let begin_s = NOON_S - NOON_S % DAY_S;
    for minute in 0..3 * 24 * 60_i64 {
        let now_s = begin_s + minute * 60;

        // The stream is never silent.
        (0..=15).for_each(|step| {
            setup.clock.set_s(now_s - 60 + step * 4);
            setup.beat();
        });

        for number in (0..KEYS).filter(|number| number % 10 == minute % 10) {
            for window_s in [HOUR_S, DAY_S, 7 * DAY_S] {
                let plan = Plan::new(now_s - window_s, now_s).expect("a range");
                let key = format!("c1:{number}");
                if setup.live.sum_cached(GENERATION, &key, &plan).is_none() {
                    setup.sum(&key, plan).await;
                }
            }
        }

        while setup.live.has_orders() {
            tokio::task::yield_now().await;
        }

        if minute % 15 == 14 {
            loads.push(setup.counters().0);
        }
    }

    // The first day fills the memory; from then on, all that is read is what the turns of days
    // need.
    let each: Vec<usize> = loads[95..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    let all = each.iter().sum::<usize>();
    let most = each.iter().max().copied().unwrap_or_default();
    println!("{all} reads in {} quarter hours, {most} in the busiest one", each.len());
    assert!(all >= 2 * KEYS as usize, "tiles of other days were needed");
    assert!(most < KEYS as usize / 6, "{each:?}");
}

#[tokio::test]
async fn memory_is_bounded() {
    let setup = setup(LiveOptions { cache_bytes: 64 * 2_000, ..options() });
    setup.beat();

    for number in 0..2_000 {
        let key = format!("c1:{number}");
        setup.source.write(&key, 0, number, NOON_S, 1);
        assert_eq!(setup.sum(&key, wide()).await, 1);
        assert!(setup.live.bytes() <= 64 * 2_000);
    }

    let cached =
        |number: u64| setup.live.sum_cached(GENERATION, &format!("c1:{number}"), &wide()).is_some();
    assert!(cached(1_999) && !cached(0));

    // Days of one key, more than are kept of it.
    for day in 0..300 {
        let edge = Plan::new(NOON_S - day * DAY_S, NOON_S - day * DAY_S + HOUR_S).unwrap();
        assert_eq!(setup.sum("c1:1999", edge).await, i128::from(day == 0));
    }

    let century = Plan::new(NOON_S - 14_000 * DAY_S, NOON_S + 20_600 * DAY_S).unwrap();
    assert_eq!(setup.sum("c1:1999", century).await, 1, "more tiles than are kept of one key");
    assert!(setup.live.bytes() <= 64 * 2_000);
}

#[tokio::test]
async fn rows_without_a_tile_are_asked_for_every_time() {
    let setup = setup(LiveOptions { has_plain_rows: true, ..options() });
    setup.beat();
    setup.source.plain.store(487, Ordering::SeqCst);
    assert_eq!(setup.sum("c1:x", wide()).await, 487);
    assert_eq!(setup.live.sum_cached(GENERATION, "c1:x", &wide()), None);

    for change in setup.source.write("c1:x", 0, 1, NOON_S, 5) {
        setup.live.apply(change);
    }
    assert_eq!(
        setup.live.sum_cached(GENERATION, "c1:x", &wide()),
        Some(Ok(5)),
        "a key with tiles has nothing else"
    );
}

/// The store has all parts of a tile that is new, the stream tells them one after another: the
/// count never goes back.
#[tokio::test]
async fn a_key_that_begins_never_counts_less_than_before() {
    let setup = setup(LiveOptions { has_plain_rows: true, ..options() });
    setup.beat();
    assert_eq!(setup.sum("c1:x", wide()).await, 0);

    let changes: Vec<_> = (0..PARTITIONS)
        .map(|partition| setup.source.write("c1:x", partition, 1, NOON_S, 5))
        .collect();
    let all = 5 * i128::from(PARTITIONS);
    assert_eq!(
        setup.sum("c1:x", wide()).await,
        all,
        "nothing is in memory, so that the store is asked"
    );

    for change in changes.into_iter().flatten() {
        setup.live.apply(change);
        assert_eq!(setup.live.sum_cached(GENERATION, "c1:x", &wide()), Some(Ok(all)));
    }
}

#[tokio::test]
async fn only_counters_under_live_are_answered_from_it() {
    let setup = setup(options());
    setup.beat();

    for key in ["c1:x", "c2:x"] {
        setup.source.write(key, 0, 1, NOON_S, 5);
    }
    let policies = Arc::new(CachePolicies::new("reader-1"));
    let policy =
        json!({"strategy": "none", "rollout": [{"strategy": "live", "modulo": 4, "below": 2}]});
    policies.set(&Policy::from_json(&policy).unwrap());

    let store = Arc::new(Store(Arc::clone(&setup.source)));
    let engines = Engines {
        live: Some(setup.live.clone()),
        policies,
        ..Engines::new(store, Arc::new(published()), setup.clock.clone())
    };

    let reader = Reader::new(engines, Options::default());
    let ranges = ["c1:x", "c2:x"].map(|key| range(key, NOON_S, NOON_S + QUARTER_S));

    for round in 1..4 {
        let counts: Vec<i64> =
            reader.counts(&ranges).await.into_iter().map(|answer| answer.unwrap().count).collect();
        assert_eq!(counts, [5, 5]);
        assert_eq!(
            setup.counters(),
            (1, round),
            "one is loaded once, the other is read every time"
        );
    }
}

/// A writer that is restarted has told everything that it stored: nobody has to read it again.
#[tokio::test]
async fn a_writer_that_resumes_where_it_was_heard_empties_nothing() {
    let setup = setup(options());
    setup.beat();
    setup.source.write("c1:x", 0, 1, NOON_S, 5);
    assert_eq!(setup.sum("c1:x", wide()).await, 5);
    setup.live.apply(TileChanges::Resumed { partition: 0, position: 1 });
    assert_eq!(setup.live.sum_cached(GENERATION, "c1:x", &wide()), Some(Ok(5)));
    setup.live.apply(TileChanges::Resumed { partition: 0, position: 2 });
    assert_eq!(
        setup.live.sum_cached(GENERATION, "c1:x", &wide()),
        None,
        "something was stored and not told"
    );
}

/// The writer of a partition is away, and those of others go on: memory stays current as long as
/// the store says so.
#[tokio::test]
async fn a_silent_partition_leaves_memory_live_while_nothing_is_missed() {
    let setup = setup(options());
    setup.beat();
    setup.source.write("c1:x", 0, 1, NOON_S, 5);
    assert_eq!(setup.sum("c1:x", wide()).await, 5);

    for passed_s in [4, 8, 12] {
        setup.clock.set_s(NOON_S + passed_s);

        for partition in 1..PARTITIONS {
            // The clock of its writer is far behind.
            setup.live.apply(TileChanges::Heartbeat { partition, position: 1, at_ms: 0 });
        }

        setup.live.note_stored(0, 1, Instant::now());
        assert_eq!(
            setup.live.sum_cached(GENERATION, "c1:x", &wide()),
            Some(Ok(5)),
            "after {passed_s} s"
        );
    }
}

//! What one range count costs inside the process: from tiles in memory, through the reader, and
//! from fjall.
//!
//! `cargo bench -p raingauge-embedded`; `RAINGAUGE_BENCH_CELLS=1000000,100000000` sets how many
//! cells are stored. The keys that are asked for are the same number in every size, as the hot keys
//! of a service are: 100, whose tiles fit the caches of a processor, and 10,000, whose tiles do
//! not.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use raingauge_core::bucket::{DAY_S, QUARTER_S};
use raingauge_core::counter::Counter;
use raingauge_core::plan::Plan;
use raingauge_core::retention::Horizons;
use raingauge_core::ruleset::Ruleset;
use raingauge_embedded::{TileOptions, TileStore};
use raingauge_ports::buckets::{Addition, BucketReader, BucketWriter, Checkpoint, Query};
use raingauge_ports::clock::ManualClock;
use raingauge_ports::published::{Published, Timeline, View};
use raingauge_reader::{Engines, Options, Range, Reader};
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// As in the program: it asks the system for large pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Tables that stay open, as on a server with a high limit of open files.
const OPEN_FILES_MAX: usize = 900;
const FOREVER: Horizons = Horizons { quarter_s: 0, hour_s: 0, day_s: 0 };
const START_S: i64 = 19_700 * DAY_S;
const DAYS: i64 = 100;
const HOT_KEYS: [u64; 2] = [100, 10_000];
const KEYS_MIN: u64 = HOT_KEYS[1];
/// Cells that a key has: a quarter hour and an hour for each of 48 events, and a day for each of 48
/// days.
const CELLS_PER_KEY: u64 = 144;
const BIG_CACHE: usize = 16 << 30;

/// A pseudorandom number, the same in every run (splitmix64).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn key(number: u64) -> String {
    format!("bench:city:{number}")
}

/// A store with this number of cells. The hot keys are spread over all keys.
fn filled(folder: &std::path::Path, cells: u64, cache_bytes: usize) -> TileStore {
    let store = TileStore::open(
        folder,
        &TileOptions { cache_bytes, block_cache_bytes: 1 << 30, open_files_max: OPEN_FILES_MAX },
    )
    .expect("a store");

    let mut state = 7;
    for number in 0..(cells / CELLS_PER_KEY).max(KEYS_MIN) {
        let key = key(number);
        for event in 0..48 {
            let day = event * 2 + (random(&mut state) % 2) as i64;
            let quarter = (random(&mut state) % 96) as i64;
            let added = Addition {
                offset: 0,
                time_s: START_S + day * DAY_S + quarter * QUARTER_S,
                value: 1,
            };
            store.add(1, &key, added, &FOREVER).expect("added");
        }

        if store.wants_commit() {
            store.commit(&Checkpoint::default()).expect("committed");
        }
    }

    store.commit(&Checkpoint::default()).expect("committed");
    store.compact().expect("compacted");
    store
}

/// Ranges of a quarter hour up to 90 days, over keys that are asked again and again.
fn ranges(keys: u64, hot_keys: u64) -> Vec<(String, i64, i64)> {
    let mut state = 3;
    (0..65_536)
        .map(|_| {
            let len_s = QUARTER_S + (random(&mut state) % (90 * DAY_S - QUARTER_S) as u64) as i64;
            let latest_s = DAYS * DAY_S - len_s;
            let from_s = START_S + (random(&mut state) % latest_s as u64) as i64;
            let hot = random(&mut state) % hot_keys * (keys / hot_keys);
            (key(hot), from_s, from_s + len_s)
        })
        .collect()
}

fn reader(store: Arc<TileStore>) -> Reader {
    let counter = serde_json::json!({"id": 1, "name": "bench", "template": "bench:city:{city}", "eventType": "t",
        "retentionDays": {"quarter": null, "hour": null, "day": null}});
    let counter = Counter::from_json(&counter).expect("a counter");
    let published = Published::default();
    published.set_view(Arc::new(View {
        ruleset: Ruleset::new([counter]),
        timelines: vec![Timeline::new(vec![(0, 1)])],
        ..View::default()
    }));
    let clock = Arc::new(ManualClock::at_s(START_S + DAYS * DAY_S));
    Reader::new(Engines::new(store, Arc::new(published), clock), Options::default())
}

fn range_count(criterion: &mut Criterion) {
    let sizes =
        std::env::var("RAINGAUGE_BENCH_CELLS").unwrap_or_else(|_| "1000000,10000000".to_owned());
    for cells in sizes.split(',').filter_map(|size| size.parse::<u64>().ok()) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Arc::new(filled(folder.path(), cells, BIG_CACHE));
        for hot_keys in HOT_KEYS {
            from_memory(criterion, &store, cells, hot_keys);
        }
        drop(store);
        from_the_engine(criterion, folder.path(), cells);
    }
}

fn from_memory(criterion: &mut Criterion, store: &Arc<TileStore>, cells: u64, hot_keys: u64) {
    let ranges = ranges((cells / CELLS_PER_KEY).max(KEYS_MIN), hot_keys);
    let plans = plans(&ranges);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let query =
        |(key, plan): &(String, Plan)| Query { generation: 1, key: key.clone(), plan: *plan };

    runtime.block_on(store.sums(plans.iter().map(query).collect()));
    let through = reader(Arc::clone(store));
    let mut next = (0..plans.len()).cycle();
    let name = format!("{cells} cells, {hot_keys} hot keys");
    let mut group = criterion.benchmark_group("range_count");

    group.bench_function(BenchmarkId::new("tiles in memory", &name), |bencher| {
        bencher.iter(|| {
            let (key, plan) = &plans[next.next().unwrap_or(0)];
            black_box(store.sum_cached(1, key, plan).expect("warm"))
        });
    });
    group.bench_function(BenchmarkId::new("through the reader", &name), |bencher| {
        bencher.iter(|| {
            let (key, from_s, to_s) = &ranges[next.next().unwrap_or(0)];
            let range = Range { key, from_s: *from_s, to_s: *to_s, fresh: false };
            let mut counts = pin!(through.counts(std::slice::from_ref(&range)));
            black_box(at_once(counts.as_mut()))
        });
    });
    group.bench_function(BenchmarkId::new("100 through the reader", &name), |bencher| {
        bencher.iter(|| {
            let batch: [Range<'_>; 100] = std::array::from_fn(|_| {
                let (key, from_s, to_s) = &ranges[next.next().unwrap_or(0)];
                Range { key, from_s: *from_s, to_s: *to_s, fresh: false }
            });
            let mut counts = pin!(through.counts(&batch));
            black_box(at_once(counts.as_mut()))
        });
    });
}

/// The result of a future that has nothing to wait for.
fn at_once<T>(future: Pin<&mut impl Future<Output = T>>) -> T {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("everything is in memory"),
    }
}

/// With no tiles in memory: every tile is asked of fjall, whose blocks are.
fn from_the_engine(criterion: &mut Criterion, folder: &std::path::Path, cells: u64) {
    let options =
        TileOptions { cache_bytes: 0, block_cache_bytes: 4 << 30, open_files_max: OPEN_FILES_MAX };
    let store = TileStore::open(folder, &options).expect("a store");
    let plans = plans(&ranges((cells / CELLS_PER_KEY).max(KEYS_MIN), KEYS_MIN));
    for (key, plan) in &plans {
        store.sum_stored(1, key, plan).expect("a sum");
    }

    let mut next = (0..plans.len()).cycle();
    criterion.benchmark_group("range_count").bench_function(
        BenchmarkId::new("from the engine", cells),
        |bencher| {
            bencher.iter(|| {
                let (key, plan) = &plans[next.next().unwrap_or(0)];
                black_box(store.sum_stored(1, key, plan).expect("a sum"))
            });
        },
    );
}

fn plans(ranges: &[(String, i64, i64)]) -> Vec<(String, Plan)> {
    ranges
        .iter()
        .map(|(key, from, to)| (key.clone(), Plan::new(*from, *to).expect("a range")))
        .collect()
}

criterion_group!(benches, range_count);
criterion_main!(benches);

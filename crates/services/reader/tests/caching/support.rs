use raingauge_core::bucket::{DAY_S, QUARTER_S};
use raingauge_core::code::Refusal;
use raingauge_core::counter::Counter;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::retention::Horizons;
use raingauge_core::ruleset::Ruleset;
use raingauge_core::tile::Overflow;
use raingauge_memory as memory;
use raingauge_policy::cache::Policy;
use raingauge_ports::BoxFuture;
use raingauge_ports::buckets::{
    Addition, BucketReader, BucketWriter, Cell, Error, Generation, Largest, Query, generation_of,
};
use raingauge_ports::cache::{self, ResultCache};
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::published::{Published, Timeline, View};
use raingauge_reader::{Answer, CachePolicies, Engines, Options, Range, Reader};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// Noon of a day in 2024.
pub const NOON_S: i64 = 20_000 * DAY_S + DAY_S / 2;
/// Every quarter hour of these days has a count, that of `value_at`.
pub const DAYS: i64 = 4;

/// A store that is never in memory. Its reads can be held when they have seen what is stored, and
/// made to fail; they are counted.
pub struct Remote {
    pub store: memory::Buckets,
    pub reads: AtomicUsize,
    pub fails: AtomicBool,
    pub held: watch::Sender<bool>,
}

impl Remote {
    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }
}

impl BucketReader for Remote {
    fn sum_cached(&self, _: Generation, _: &str, _: &Plan) -> Option<Result<i128, Overflow>> {
        None
    }

    fn sums(&self, queries: Vec<Query>) -> BoxFuture<'_, Vec<Result<i128, Error>>> {
        Box::pin(async move {
            self.reads.fetch_add(queries.len(), Ordering::SeqCst);
            let seen = self.store.sums(queries).await;
            let mut held = self.held.subscribe();
            let _ = held.wait_for(|held| !held).await;

            if self.fails.load(Ordering::SeqCst) {
                return seen
                    .iter()
                    .map(|_| Err(Error::Io("the connection was closed".to_owned())))
                    .collect();
            }

            seen
        })
    }

    fn cells(
        &self,
        generation: Generation,
        key: String,
        slice: Slice,
    ) -> BoxFuture<'_, Result<Vec<Cell>, Error>> {
        self.store.cells(generation, key, slice)
    }

    fn largest_keys(
        &self,
        generation: Generation,
        slice: Slice,
        len_max: usize,
        scan_max: usize,
    ) -> BoxFuture<'_, Result<Largest, Error>> {
        self.store.largest_keys(generation, slice, len_max, scan_max)
    }
}

/// A cache in memory that remembers what it was asked, and can be made to fail or to hang.
pub struct Watched {
    pub cache: memory::Cache,
    pub gets: AtomicUsize,
    pub puts: Mutex<Vec<(String, i64, Duration)>>,
    pub fails: AtomicBool,
    pub hangs: AtomicBool,
}

impl ResultCache for Watched {
    fn get(&self, keys: Vec<String>) -> BoxFuture<'_, Result<Vec<Option<i64>>, cache::Error>> {
        self.gets.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            if self.hangs.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            if self.fails.load(Ordering::SeqCst) {
                return Err(cache::Error("refused".to_owned()));
            }
            self.cache.get(keys).await
        })
    }

    fn put(
        &self,
        entries: Vec<(String, i64)>,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<(), cache::Error>> {
        let told = entries.iter().map(|(key, value)| (key.clone(), *value, ttl));
        self.puts.lock().unwrap().extend(told);
        Box::pin(async move {
            if self.fails.load(Ordering::SeqCst) {
                return Err(cache::Error("refused".to_owned()));
            }
            self.cache.put(entries, ttl).await
        })
    }
}

/// Counters 1 to 4 with the keys `c1:…` to `c4:…`.
pub struct Service {
    pub remote: Arc<Remote>,
    pub cache: Arc<Watched>,
    pub clock: Arc<ManualClock>,
    pub policies: Arc<CachePolicies>,
    pub reader: Arc<Reader>,
}

/// What each quarter hour of a key counts.
pub fn value_at(quarter_s: i64) -> i64 {
    1 + quarter_s / QUARTER_S % 7
}

/// The sum over a range of quarter hours.
pub fn model(from_s: i64, to_s: i64) -> i64 {
    (from_s..to_s).step_by(QUARTER_S as usize).map(value_at).sum()
}

impl Service {
    pub fn new(policy: Json) -> Self {
        Self::with(policy, Options::default())
    }

    pub fn with(policy: Json, options: Options) -> Self {
        let clock = Arc::new(ManualClock::at_s(NOON_S + 400));
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let remote = Arc::new(Remote {
            store: memory::Buckets::default(),
            reads: AtomicUsize::new(0),
            fails: AtomicBool::new(false),
            held: watch::Sender::new(false),
        });

        let cache = Arc::new(Watched {
            cache: memory::Cache::new(Arc::clone(&shared), 1_000_000),
            gets: AtomicUsize::new(0),
            puts: Mutex::default(),
            fails: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
        });

        let policies = Arc::new(CachePolicies::new("reader-1"));
        policies.set(&Policy::from_json(&policy).expect("a policy"));

        let engines = Engines {
            results: Some(Arc::clone(&cache) as _),
            policies: Arc::clone(&policies),
            ..Engines::new(Arc::clone(&remote) as _, Arc::new(published()), shared)
        };

        let reader = Arc::new(Reader::new(engines, options));
        Self { remote, cache, clock, policies, reader }
    }

    /// Counts for every quarter hour of a key.
    pub fn fill(&self, key: &str) {
        fill(&self.remote.store, key);
    }

    /// Counts one more thing in the quarter hour before noon, as the writer of another process
    /// does: without any message.
    pub fn count_one_more(&self, key: &str) {
        add(&self.remote.store, key, NOON_S - QUARTER_S, 1);
    }

    pub async fn count(&self, key: &str, from_s: i64, to_s: i64) -> Result<Answer, Refusal> {
        self.reader.counts(&[range(key, from_s, to_s)]).await.remove(0)
    }

    /// The code of a count that has none, or the count.
    pub async fn outcome(&self, key: &str, from_s: i64, to_s: i64) -> Result<i64, &'static str> {
        self.count(key, from_s, to_s)
            .await
            .map(|answer| answer.count)
            .map_err(|failure| failure.code.as_str())
    }

    pub fn set(&self, policy: Json) {
        self.policies.set(&Policy::from_json(&policy).expect("a policy"));
    }

    /// Lets what goes on in the background end.
    pub async fn settle(&self) {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
}

pub fn fill(store: &memory::Buckets, key: &str) {
    for time_s in (NOON_S - DAYS * DAY_S..NOON_S + DAYS * DAY_S).step_by(QUARTER_S as usize) {
        add(store, key, time_s, value_at(time_s));
    }
}

fn add(store: &memory::Buckets, key: &str, time_s: i64, value: i64) {
    let counter: u32 = key[1..2].parse().expect("the id of a counter");
    let added = Addition { offset: 0, time_s, value };
    store.add(generation_of(counter, 0), key, added, &Horizons::default()).expect("added");
}

pub fn published() -> Published {
    let counters = (1..=4).map(|id| {
        let kept = json!({"quarter": null, "hour": null, "day": null});
        let counter = json!({"id": id, "name": "n", "template": format!("c{id}:{{k}}"), "eventType": "t",
            "retentionDays": kept});
        Counter::from_json(&counter).expect("a counter")
    });

    let published = Published::default();
    published.set_view(Arc::new(View {
        ruleset: Ruleset::new(counters),
        timelines: (1..=4).map(|id| Timeline::new(vec![(0, generation_of(id, 0))])).collect(),
        ..View::default()
    }));
    published
}

pub fn range(key: &str, from_s: i64, to_s: i64) -> Range<'_> {
    Range { key, from_s, to_s, fresh: false }
}

//! The reader: counts one by one and in batches, series, and the largest keys of a counter.

use crate::cache::windows::{self, Windows};
use crate::cache::{CachePolicies, Lookup, Results};
use crate::frequencies::Frequencies;
use crate::gate::{Gate, Options};
use crate::largest::{self, LargestKeys};
use crate::range::{Answer, Range};
use crate::read_plan::ReadPlan;
use crate::refusal::{lost, unavailable};
use crate::series::{self, Series};
use crate::step::Step;
use crate::storage::{Deadline, Storage};
use raingauge_core::code::Refusal;
use raingauge_core::plan::Plan;
use raingauge_policy::cache::Strategy;
use raingauge_ports::buckets::{BucketReader, Generation, Query, Sum};
use raingauge_ports::cache::ResultCache;
use raingauge_ports::clock::Clock;
use raingauge_ports::published::{Published, View};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a reader answers from, and by what.
pub struct Engines {
    pub buckets: Arc<dyn BucketReader>,
    /// Keeps the tiles of counters under `live` in memory. Without it, the bucket store answers for
    /// them; it may itself keep in memory what is in use, as the embedded one does.
    pub live: Option<Arc<dyn BucketReader>>,
    /// Keeps the sums of counters under `result` and `phased`. Without it, the bucket store answers
    /// for them.
    pub results: Option<Arc<dyn ResultCache>>,
    /// How each counter is cached.
    pub policies: Arc<CachePolicies>,
    /// What the writer, or the follower of one, has published.
    pub published: Arc<Published>,
    pub clock: Arc<dyn Clock>,
}

impl Engines {
    /// A bucket store that nothing is kept beside, under the default policy.
    pub fn new(
        buckets: Arc<dyn BucketReader>,
        published: Arc<Published>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let policies = Arc::new(CachePolicies::new(""));
        Self { buckets, live: None, results: None, policies, published, clock }
    }
}

/// Where the answers of a batch came from, in ranges. A range without an answer counts for the
/// engine that was to answer it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The reader itself: tiles in its memory, and refusals.
    pub memory: usize,
    /// The result cache.
    pub cache: usize,
    pub store: usize,
}

/// How the reader would answer a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub counter: u32,
    /// How the counter is cached.
    pub strategy: Strategy,
    /// Whether the result cache is asked before anything is read.
    pub asks_cache: bool,
    /// What is read otherwise, by generation.
    pub plans: Vec<(Generation, Plan)>,
    /// Tiles that this takes.
    pub rows: u64,
    /// Whether all of them are in memory at this moment.
    pub is_in_memory: bool,
}

pub struct Reader {
    storage: Storage,
    /// Where counters under `live` are read.
    live: Option<Storage>,
    results: Option<Results>,
    policies: Arc<CachePolicies>,
    published: Arc<Published>,
    clock: Arc<dyn Clock>,
    deadline: Duration,
    frequencies: Frequencies,
    counts: metrics::Counter,
    rows: metrics::Counter,
}

/// How a range gets its answer.
enum Route {
    /// All its tiles are in memory, and this is their sum.
    Memory(ReadPlan, Sum),
    /// The result cache may have it.
    Cache(ReadPlan, Windows, Lookup),
    /// It has to be read; from the engine of `live` where that is true.
    Storage(ReadPlan, bool),
}

/// A range that the result cache may answer.
struct CacheRead {
    /// The place in the batch.
    index: usize,
    windows: Windows,
    lookup: Lookup,
    /// What is read when the cache has no answer.
    plan: ReadPlan,
}

/// A range that is read from storage.
struct StoreRead {
    /// The place in the batch.
    index: usize,
    plan: ReadPlan,
    /// The name under which the result cache keeps the sum.
    name: Option<String>,
    is_live: bool,
}

/// Ranges on the way to their answers.
struct Batch<'a> {
    ranges: &'a [Range<'a>],
    /// In the order of the ranges; `None` while an answer is pending.
    answers: Vec<Option<Result<Answer, Refusal>>>,
    cache_reads: Vec<CacheRead>,
    store_reads: Vec<StoreRead>,
}

impl Reader {
    pub fn new(engines: Engines, options: Options) -> Self {
        let clock = engines.clock;
        let gate = Gate::new(options, Arc::clone(&clock));
        let storage = |buckets| Storage::new(buckets, Arc::clone(&gate));
        let results = |cache| Results::new(cache, Arc::clone(&clock), options.breaker);

        Self {
            storage: storage(engines.buckets),
            live: engines.live.map(storage),
            results: engines.results.map(results),
            policies: engines.policies,
            published: engines.published,
            clock,
            deadline: options.deadline,
            frequencies: Frequencies::default(),
            counts: metrics::counter!("raingauge_range_counts_total"),
            rows: metrics::counter!("raingauge_rows_read_total"),
        }
    }

    /// How often callers asked for each counter so far, approximately.
    pub fn frequencies(&self) -> BTreeMap<u32, u64> {
        self.frequencies.counts()
    }

    /// Answers ranges in their order. Each fails alone, and within the deadline of the options.
    pub async fn counts(&self, ranges: &[Range<'_>]) -> Vec<Result<Answer, Refusal>> {
        self.counts_with_sources(ranges).await.0
    }

    /// Answers ranges as [`counts`](Self::counts) does, and returns where the answers came from.
    pub async fn counts_with_sources(
        &self,
        ranges: &[Range<'_>],
    ) -> (Vec<Result<Answer, Refusal>>, Sources) {
        if let Some(refusal) = unavailable(&self.published) {
            let answers = vec![Err(refusal); ranges.len()];
            return (answers, Sources { memory: ranges.len(), ..Sources::default() });
        }

        self.counts.increment(ranges.len() as u64);

        let mut batch = self.route_all(ranges);
        let memory = ranges.len() - batch.cache_reads.len() - batch.store_reads.len();
        if memory == ranges.len() {
            return (batch.finish(), Sources { memory, ..Sources::default() });
        }

        let deadline = Deadline::after(self.deadline);

        // Half of the time at most, so that storage can still answer.
        self.ask_cache(&mut batch, deadline.half()).await;
        let store = batch.store_reads.len();
        self.ask_storage(&mut batch, deadline).await;

        let cache = ranges.len() - memory - store;
        (batch.finish(), Sources { memory, cache, store })
    }

    /// Answers what memory can, and notes for the rest which engine is to answer it.
    fn route_all<'a>(&self, ranges: &'a [Range<'a>]) -> Batch<'a> {
        let view = Arc::clone(&self.published.view());
        let now_s = self.clock.now_s();
        let choice = self.policies.choice();
        let sampled = self.frequencies.place(ranges.len());
        let mut batch = Batch::new(ranges);

        let mut rows = 0;
        let mut hits = 0;

        for (index, range) in ranges.iter().enumerate() {
            let plan = match ReadPlan::new(&view, range, now_s) {
                Ok(plan) => plan,
                Err(refusal) => {
                    batch.answers.push(Some(Err(refusal)));
                    continue;
                }
            };

            let counter = view.ruleset.rules()[plan.rule].counter.id;
            if index == sampled {
                self.frequencies.note(counter, ranges.len());
            }

            let strategy = choice.strategy_of(counter);
            let answer = match self.route(&view, range, strategy, plan, now_s) {
                Route::Memory(plan, sum) => {
                    rows += plan.rows();
                    hits += plan.plans.len();
                    Some(sum.map_err(Refusal::from).and_then(|sum| self.answer(&plan, sum)))
                }
                Route::Cache(plan, windows, lookup) => {
                    batch.cache_reads.push(CacheRead { index, windows, lookup, plan });
                    None
                }
                Route::Storage(plan, is_live) => {
                    rows += plan.rows();
                    batch.store_reads.push(StoreRead { index, plan, name: None, is_live });
                    None
                }
            };
            batch.answers.push(answer);
        }

        self.rows.increment(rows);
        self.storage.buckets.note_hits(hits);
        batch
    }

    fn route(
        &self,
        view: &View,
        range: &Range<'_>,
        strategy: Strategy,
        mut plan: ReadPlan,
        now_s: i64,
    ) -> Route {
        if self.results.is_some()
            && !range.fresh
            && let Some(windows) = windows_of(view, range, strategy, &mut plan, now_s)
        {
            let counter = view.ruleset.rules()[plan.rule].counter.id;
            let generation = view.timelines[plan.rule].newest();
            let lookup = Lookup::new(strategy, counter, generation, range.key, &windows);
            return Route::Cache(plan, windows, lookup);
        }

        let is_live = strategy == Strategy::Live;
        match self.sum_in_memory(range.key, &plan, is_live) {
            Some(sum) => Route::Memory(plan, sum),
            None => Route::Storage(plan, is_live),
        }
    }

    /// The sum of a plan, when all its tiles are in memory. Never waits.
    fn sum_in_memory(&self, key: &str, plan: &ReadPlan, is_live: bool) -> Option<Sum> {
        let buckets = &self.storage_of(is_live).buckets;
        let plans = plan.plans.iter();
        plans.map(|(generation, plan)| buckets.sum_cached(*generation, key, plan)).sum()
    }

    fn storage_of(&self, is_live: bool) -> &Storage {
        self.live.as_ref().filter(|_| is_live).unwrap_or(&self.storage)
    }

    /// Answers what lies in the result cache; the rest is left for storage.
    async fn ask_cache(&self, batch: &mut Batch<'_>, timeout: Duration) {
        let reads = std::mem::take(&mut batch.cache_reads);
        let Some(results) = self.results.as_ref().filter(|_| !reads.is_empty()) else {
            return;
        };

        let lookups: Vec<&Lookup> = reads.iter().map(|read| &read.lookup).collect();
        let found = results.get(&lookups, timeout).await;

        let mut rows = 0;
        for (CacheRead { index, windows, lookup, plan }, found) in reads.into_iter().zip(found) {
            match found.and_then(|(best, count)| Some((windows.lookups.get(best)?, count))) {
                Some(((from_s, to_s), count)) => {
                    let answer = Answer { from_s: *from_s, to_s: *to_s, count };
                    batch.answers[index] = Some(Ok(answer));
                }
                None => {
                    rows += plan.rows();
                    let place = windows.lookups.iter().position(|window| *window == windows.read);
                    let name = place.and_then(|place| lookup.names.into_iter().nth(place));
                    batch.store_reads.push(StoreRead { index, plan, name, is_live: false });
                }
            }
        }

        self.rows.increment(rows);
    }

    /// Answers what is left, in one round, and puts into the result cache what it is to keep.
    async fn ask_storage(&self, batch: &mut Batch<'_>, deadline: Deadline) {
        if batch.store_reads.is_empty() {
            return;
        }
        let (stored, live) = tokio::join!(
            self.storage_of(false).sums(batch.queries(false), deadline),
            self.storage_of(true).sums(batch.queries(true), deadline)
        );

        let mut stored = stored.into_iter();
        let mut live = live.into_iter();
        let mut kept = Vec::new();

        for StoreRead { index, plan, name, is_live } in std::mem::take(&mut batch.store_reads) {
            let sums = if is_live { &mut live } else { &mut stored };
            let sum = sums.by_ref().take(plan.plans.len()).sum::<Result<i128, Refusal>>();
            let answer = sum.and_then(|sum| self.answer(&plan, sum));
            if let (Some(name), Ok(answer)) = (name, &answer) {
                kept.push((name, answer.count));
            }
            batch.answers[index] = Some(answer);
        }

        if let Some(results) = self.results.as_ref().filter(|_| !kept.is_empty()) {
            results.put(kept);
        }
    }

    fn answer(&self, plan: &ReadPlan, sum: i128) -> Result<Answer, Refusal> {
        plan.answer(sum, &self.published)
    }

    /// How the reader would answer a range now. Reads nothing.
    pub fn explain(&self, range: &Range<'_>) -> Result<Explanation, Refusal> {
        let view = self.view()?;
        let plan = ReadPlan::new(&view, range, self.clock.now_s())?;
        let counter = view.ruleset.rules()[plan.rule].counter.id;
        let strategy = self.policies.choice().strategy_of(counter);
        let is_kept = matches!(strategy, Strategy::Result | Strategy::Phased);

        let sum = self.sum_in_memory(range.key, &plan, strategy == Strategy::Live);

        Ok(Explanation {
            counter,
            strategy,
            asks_cache: is_kept && self.results.is_some() && !range.fresh,
            rows: plan.rows(),
            plans: plan.plans.into_vec(),
            is_in_memory: sum.is_some(),
        })
    }

    /// The series of a key over `[from_s, to_s)`, both floored to quarter hours. The first and the
    /// last point cover only what lies inside the range.
    pub async fn series(
        &self,
        range: &Range<'_>,
        step: Step,
        zone: &str,
    ) -> Result<Series, Refusal> {
        let view = self.view()?;
        series::read(&self.storage, &view, range, (step, zone), self.clock.now_s()).await
    }

    /// The keys of a counter with the largest counts over the UTC days that touch `[from_s, to_s)`.
    pub async fn largest_keys(
        &self,
        counter: u32,
        from_s: i64,
        to_s: i64,
        len_max: usize,
    ) -> Result<LargestKeys, Refusal> {
        let view = self.view()?;
        largest::read(&self.storage, &view, counter, (from_s, to_s), len_max).await
    }

    /// The counters as they answer now, or why nothing answers.
    fn view(&self) -> Result<Arc<View>, Refusal> {
        match unavailable(&self.published) {
            Some(refusal) => Err(refusal),
            None => Ok(Arc::clone(&self.published.view())),
        }
    }
}

/// Where the result cache may have the answer to a range. `None` when its strategy or its times
/// keep it out of the cache. The plan becomes that of the window which is read.
fn windows_of(
    view: &View,
    range: &Range<'_>,
    strategy: Strategy,
    plan: &mut ReadPlan,
    now_s: i64,
) -> Option<Windows> {
    let windows = match strategy {
        Strategy::None | Strategy::Live => return None,
        Strategy::Result => windows::plain(range, now_s)?,
        Strategy::Phased => windows::phased(range, now_s)?,
    };

    if plan.covers(windows.read) {
        return Some(windows);
    }

    match ReadPlan::of_window(view, plan.rule, windows.read, now_s) {
        Ok(earlier) => {
            *plan = earlier;
            Some(windows)
        }
        // The quarter hour before has expired: the answer covers what the caller asked for.
        Err(_) => windows::plain(range, now_s),
    }
}

impl<'a> Batch<'a> {
    fn new(ranges: &'a [Range<'a>]) -> Self {
        let answers = Vec::with_capacity(ranges.len());
        Self { ranges, answers, cache_reads: Vec::new(), store_reads: Vec::new() }
    }

    /// What has to be read from the engine of `live`, or from the other one.
    fn queries(&self, is_live: bool) -> Vec<Query> {
        let reads = self.store_reads.iter().filter(|read| read.is_live == is_live);
        let queries = reads.flat_map(|StoreRead { index, plan, .. }| {
            let key = self.ranges[*index].key;
            plan.plans.iter().map(|(generation, plan)| Query {
                generation: *generation,
                key: key.to_owned(),
                plan: *plan,
            })
        });
        queries.collect()
    }

    /// The answers. A range that no engine answered is refused, never counted as 0.
    fn finish(self) -> Vec<Result<Answer, Refusal>> {
        self.answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(lost()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_core::code::Code;

    #[test]
    fn a_range_that_no_engine_answered_is_refused() {
        let range = Range { key: "a", from_s: 0, to_s: 900, fresh: false };
        let ranges = [range.clone(), range];
        let mut batch = Batch::new(&ranges);
        let answer = Answer { from_s: 0, to_s: 900, count: 7 };
        batch.answers = vec![Some(Ok(answer)), None];

        let answers = batch.finish();
        assert_eq!(answers[0], Ok(answer));
        assert_eq!(answers[1].as_ref().map_err(|refusal| refusal.code), Err(Code::Unavailable));
    }
}

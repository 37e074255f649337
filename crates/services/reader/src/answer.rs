//! Range counts, one by one and in batches.

use crate::asked::Asked;
use crate::cache::windows::{self, Windows};
use crate::cache::{self, CachePolicies, Lookup, Results};
use crate::refusal::{key_unknown, unavailable};
use crate::resolve::{End, Resolved, earlier, plan, plans};
use crate::storage::{Deadline, Gate, Options, Storage};
use raingauge_core::bucket::Granularity;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::tile::Overflow;
use raingauge_policy::cache::{Choice, Strategy};
use raingauge_ports::buckets::{BucketReader, Generation, Query};
use raingauge_ports::cache::ResultCache;
use raingauge_ports::clock::Clock;
use raingauge_ports::published::{Published, View};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Tiles that are looked at to find the largest keys.
const KEYS_SCAN_MAX: usize = 2_000_000;

/// What is asked of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range<'a> {
    pub key: &'a str,
    /// Seconds since 1970.
    pub from_s: i64,
    pub to_s: i64,
    /// Whether the quarter hour that is still open counts too.
    pub fresh: bool,
}

/// A count, and the range that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub from_s: i64,
    pub to_s: i64,
    pub count: i64,
}

/// Of the ranges of a batch, how many were answered from where. Those that could not be answered are under what was
/// asked for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// The reader itself: tiles in its memory, and refusals.
    pub memory: usize,
    /// The result cache.
    pub cache: usize,
    pub store: usize,
}

/// A key and its count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    pub key: String,
    pub count: i64,
}

/// The keys of a counter with the largest counts, largest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LargestKeys {
    pub keys: Vec<Key>,
    /// Whether every key was looked at. Left out of the JSON unless larger keys may be missing.
    #[serde(rename = "complete", skip_serializing_if = "Clone::clone")]
    pub is_complete: bool,
}

impl Default for LargestKeys {
    /// A counter without keys.
    fn default() -> Self {
        Self { keys: Vec::new(), is_complete: true }
    }
}

pub struct Reader {
    pub(crate) storage: Storage,
    /// Where counters under `live` are read.
    live: Option<Storage>,
    pub(crate) results: Option<Results>,
    pub(crate) policies: Arc<CachePolicies>,
    pub(crate) published: Arc<Published>,
    pub(crate) clock: Arc<dyn Clock>,
    gate: Arc<Gate>,
    options: Options,
    counts: metrics::Counter,
    rows: metrics::Counter,
    asked: Asked,
}

/// A range that the result cache may answer.
struct Cached {
    lookup: Lookup,
    windows: Windows,
    /// What is read when it does not.
    resolved: Resolved,
}

/// A range that memory did not answer.
struct Left {
    /// Its place in the batch.
    index: usize,
    resolved: Resolved,
    /// The name under which its sum is kept.
    keep: Option<String>,
    is_live: bool,
}

impl Reader {
    /// A reader that asks the bucket store for everything.
    pub fn new(
        buckets: Arc<dyn BucketReader>,
        published: Arc<Published>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let options = Options::default();
        let gate = Gate::new(options, Arc::clone(&clock));
        Self {
            storage: Storage::new(buckets, Arc::clone(&gate)),
            live: None,
            results: None,
            policies: Arc::new(CachePolicies::new("")),
            published,
            clock,
            gate,
            options,
            counts: metrics::counter!("raingauge_range_counts_total"),
            rows: metrics::counter!("raingauge_rows_read_total"),
            asked: Asked::default(),
        }
    }

    /// Reads within these limits. To be said first.
    pub fn with_options(self, options: Options) -> Self {
        let (gate, buckets) = (Gate::new(options, Arc::clone(&self.clock)), self.storage.buckets);
        let storage = Storage::new(buckets, Arc::clone(&gate));
        Self { storage, gate, options, ..self }
    }

    /// Treats each counter as these policies say.
    pub fn with_policies(self, policies: Arc<CachePolicies>) -> Self {
        Self { policies, ..self }
    }

    /// Answers counters under `result` and `phased` from this cache. Without one, they are read from storage.
    pub fn with_cache(self, cache: Arc<dyn ResultCache>) -> Self {
        let results = Results::new(cache, Arc::clone(&self.clock), self.options.breaker);
        Self { results: Some(results), ..self }
    }

    /// Answers counters under `live` from here. Without one, they are asked of the bucket store, which may keep what is in
    /// use in memory by itself, as the embedded one does.
    pub fn with_live(self, buckets: Arc<dyn BucketReader>) -> Self {
        let live = Storage::new(buckets, Arc::clone(&self.gate));
        Self { live: Some(live), ..self }
    }

    /// How often each counter was asked for so far, about.
    pub fn asked(&self) -> BTreeMap<u32, u64> {
        self.asked.counts()
    }

    /// Answers many ranges in their order.
    pub async fn counts(&self, ranges: &[Range<'_>]) -> Vec<Result<Answer, Refusal>> {
        self.counts_within(ranges, self.options.deadline).await.0
    }

    /// The same, and from where.
    pub async fn counts_served(
        &self,
        ranges: &[Range<'_>],
    ) -> (Vec<Result<Answer, Refusal>>, Served) {
        self.counts_within(ranges, self.options.deadline).await
    }

    /// Answers many ranges in their order; those for which the time does not suffice say so.
    pub async fn counts_within(
        &self,
        ranges: &[Range<'_>],
        deadline: Duration,
    ) -> (Vec<Result<Answer, Refusal>>, Served) {
        if let Some(failure) = unavailable(&self.published) {
            let answers = vec![Err(failure); ranges.len()];
            return (answers, Served { memory: ranges.len(), ..Served::default() });
        }
        self.counts.increment(ranges.len() as u64);
        let mut answers = Vec::with_capacity(ranges.len());
        let (mut left, mut cached) = (Vec::new(), Vec::new());
        self.sort_out(ranges, &mut answers, &mut left, &mut cached);
        let memory = ranges.len() - left.len() - cached.len();
        if memory == ranges.len() {
            return (answers, Served { memory, ..Served::default() });
        }
        let deadline = Deadline::after(deadline);
        if !cached.is_empty() {
            // Half of the time at most, so that storage can still answer.
            self.look_up(cached, &mut answers, &mut left, deadline.half()).await;
        }
        let served =
            Served { memory, cache: ranges.len() - memory - left.len(), store: left.len() };
        if !left.is_empty() {
            self.sum_in_storage(ranges, left, &mut answers, deadline).await;
        }
        (answers, served)
    }

    /// Answers what memory can, and tells the rest by what it needs. An answer that is still to come stands as 0.
    fn sort_out(
        &self,
        ranges: &[Range<'_>],
        answers: &mut Vec<Result<Answer, Refusal>>,
        left: &mut Vec<Left>,
        cached: &mut Vec<(usize, Cached)>,
    ) {
        let (view, now_s) = (Arc::clone(&self.published.view()), self.clock.now_s());
        let choice = self.policies.choice();
        let sampled = self.asked.place(ranges.len());
        let (mut rows, mut hits) = (0, 0);
        for (index, range) in ranges.iter().enumerate() {
            let pending = Ok(Answer { from_s: 0, to_s: 0, count: 0 });
            answers.push(match self.resolve(&view, &choice, range, now_s) {
                Err(failure) => Err(failure),
                Ok((strategy, resolved)) => {
                    if index == sampled {
                        self.asked
                            .note(view.ruleset.rules()[resolved.rule].counter.id, ranges.len());
                    }
                    match self.cached(&view, range, now_s, (strategy, resolved)) {
                        Ok(found) => {
                            cached.push((index, found));
                            pending
                        }
                        Err(resolved) => {
                            rows += resolved.rows();
                            let is_live = strategy == Strategy::Live;
                            match self.sum_in_memory(range.key, &resolved, is_live) {
                                Some(answer) => {
                                    hits += resolved.plans.len();
                                    answer
                                }
                                None => {
                                    left.push(Left { index, resolved, keep: None, is_live });
                                    pending
                                }
                            }
                        }
                    }
                }
            });
        }
        self.rows.increment(rows);
        self.storage.buckets.note_hits(hits);
    }

    /// The count of one range when all it needs is in memory. Never waits.
    pub fn count_cached(&self, range: &Range<'_>) -> Option<Result<Answer, Refusal>> {
        if let Some(failure) = unavailable(&self.published) {
            return Some(Err(failure));
        }
        let (view, choice) = (self.published.view(), self.policies.choice());
        match self.resolve(&view, &choice, range, self.clock.now_s()) {
            Ok((Strategy::Result | Strategy::Phased, _))
                if self.results.is_some() && !range.fresh =>
            {
                None
            }
            Ok((strategy, resolved)) => {
                let answer =
                    self.sum_in_memory(range.key, &resolved, strategy == Strategy::Live)?;
                self.storage.buckets.note_hits(resolved.plans.len());
                Some(answer)
            }
            Err(failure) => Some(Err(failure)),
        }
    }

    /// The keys of a counter with the largest counts over the UTC days that touch `[from_s, to_s)`.
    pub async fn largest_keys(
        &self,
        counter: u32,
        from_s: i64,
        to_s: i64,
        len_max: usize,
    ) -> Result<LargestKeys, Refusal> {
        if let Some(failure) = unavailable(&self.published) {
            return Err(failure);
        }
        Plan::new(from_s, to_s)?;
        let view = Arc::clone(&self.published.view());
        let Some(index) = view.ruleset.index_of(counter) else {
            return Err(Refusal {
                code: Code::CounterUnknown,
                detail: format!("counter {counter} does not answer: is it active?"),
            });
        };
        let (mut sums, mut is_complete) = (std::collections::HashMap::<String, i64>::new(), true);
        let (from_s, to_s) = (Granularity::Day.floor(from_s), Granularity::Day.ceil(to_s));
        let parts: Vec<_> = view.timelines[index].split(from_s, to_s).collect();
        // The largest of each part are enough unless a key is large only in the sum of parts, which there are seldom two of.
        let len_each = if parts.len() == 1 { len_max } else { KEYS_SCAN_MAX };
        for (generation, from_s, to_s) in parts {
            let slice = Slice { granularity: Granularity::Day, from_s, to_s };
            let read =
                self.storage.buckets.largest_keys(generation, slice, len_each, KEYS_SCAN_MAX);
            let largest = self.storage.alone(read).await?;
            is_complete &= largest.is_complete;
            for (key, sum) in largest.keys {
                let known = sums.entry(key).or_default();
                *known = known.saturating_add(sum);
            }
        }
        let mut keys: Vec<Key> = sums.into_iter().map(|(key, count)| Key { key, count }).collect();
        keys.sort_unstable_by(|left, right| {
            right.count.cmp(&left.count).then_with(|| left.key.cmp(&right.key))
        });
        keys.truncate(len_max);
        Ok(LargestKeys { keys, is_complete })
    }

    /// What a range needs, and how its counter is cached.
    pub(crate) fn resolve(
        &self,
        view: &View,
        choice: &Choice,
        range: &Range<'_>,
        now_s: i64,
    ) -> Result<(Strategy, Resolved), Refusal> {
        let Some(index) = view.ruleset.index_of_key(range.key) else {
            return Err(key_unknown(range.key));
        };
        let (plan, end) = plan(range, now_s)?;
        view.horizons(index, now_s).check(&plan)?;
        let strategy = choice.strategy_of(view.ruleset.rules()[index].counter.id);
        Ok((
            strategy,
            Resolved { rule: index, plans: plans(view, index, plan)?, from_s: plan.from_s, end },
        ))
    }

    /// A range as the result cache may answer it; back as it was when that is not asked.
    fn cached(
        &self,
        view: &View,
        range: &Range<'_>,
        now_s: i64,
        (strategy, mut resolved): (Strategy, Resolved),
    ) -> Result<Cached, Resolved> {
        let windows = match strategy {
            _ if self.results.is_none() || range.fresh => None,
            Strategy::None | Strategy::Live => None,
            Strategy::Result => windows::plain(range, now_s),
            Strategy::Phased => windows::phased(range, now_s),
        };
        let Some(mut windows) = windows else {
            return Err(resolved);
        };
        if !resolved.covers(windows.read) {
            match earlier(view, resolved.rule, windows.read, now_s) {
                Ok(earlier) => resolved = earlier,
                // The quarter hour before has expired: the range is answered as it was asked for.
                Err(_) => match windows::plain(range, now_s) {
                    Some(plain) => windows = plain,
                    None => return Err(resolved),
                },
            }
        }
        let counter = view.ruleset.rules()[resolved.rule].counter.id;
        let generation = view.timelines[resolved.rule].newest();
        let keys = windows
            .lookups
            .iter()
            .map(|window| cache::key(counter, generation, range.key, *window))
            .collect();
        Ok(Cached { lookup: Lookup { strategy, keys }, windows, resolved })
    }

    pub(crate) fn sum_in_memory(
        &self,
        key: &str,
        resolved: &Resolved,
        is_live: bool,
    ) -> Option<Result<Answer, Refusal>> {
        let buckets = &self.storage_of(is_live).buckets;
        let mut total = 0;
        for (generation, plan) in &resolved.plans {
            match buckets.sum_cached(*generation, key, plan)? {
                Ok(sum) => total += sum,
                Err(overflow) => return Some(Err(overflow.into())),
            }
        }
        Some(self.answer(resolved, total))
    }

    fn storage_of(&self, is_live: bool) -> &Storage {
        self.live.as_ref().filter(|_| is_live).unwrap_or(&self.storage)
    }

    /// The answer with a sum. An open end is looked up behind the sum, so that it lies behind all that was summed.
    fn answer(&self, resolved: &Resolved, total: i128) -> Result<Answer, Refusal> {
        let count = i64::try_from(total).map_err(|_| Overflow)?;
        let to_s = match resolved.end {
            End::At(to_s) => to_s,
            End::Open { to_s, end_s } => to_s.max(self.published.newest_event_s() + 1).min(end_s),
        };
        Ok(Answer { from_s: resolved.from_s, to_s, count })
    }

    /// Answers what lies in the result cache; the rest is left for storage.
    async fn look_up(
        &self,
        cached: Vec<(usize, Cached)>,
        answers: &mut [Result<Answer, Refusal>],
        left: &mut Vec<Left>,
        timeout: Duration,
    ) {
        let Some(results) = &self.results else { return };
        let (mut asked, mut lookups) =
            (Vec::with_capacity(cached.len()), Vec::with_capacity(cached.len()));
        for (index, Cached { lookup, windows, resolved }) in cached {
            asked.push((index, windows, resolved));
            lookups.push(lookup);
        }
        let found = results.get(&lookups, timeout).await;
        let mut rows = 0;
        for ((index, windows, resolved), (lookup, found)) in
            asked.into_iter().zip(lookups.into_iter().zip(found))
        {
            match found.and_then(|(best, count)| Some((windows.lookups.get(best)?, count))) {
                Some(((from_s, to_s), count)) => {
                    answers[index] = Ok(Answer { from_s: *from_s, to_s: *to_s, count });
                }
                None => {
                    rows += resolved.rows();
                    let place = windows.lookups.iter().position(|window| *window == windows.read);
                    let keep = place.and_then(|place| lookup.keys.into_iter().nth(place));
                    left.push(Left { index, resolved, keep, is_live: false });
                }
            }
        }
        self.rows.increment(rows);
    }

    /// Answers the ranges that memory could not, in one round, and keeps those sums that are to be kept.
    async fn sum_in_storage(
        &self,
        ranges: &[Range<'_>],
        left: Vec<Left>,
        answers: &mut [Result<Answer, Refusal>],
        deadline: Deadline,
    ) {
        let queries = |is_live| {
            let own = left.iter().filter(move |left| left.is_live == is_live);
            let queries = own.flat_map(|Left { index, resolved, .. }| {
                let query = |(generation, plan): &(Generation, Plan)| Query {
                    generation: *generation,
                    key: ranges[*index].key.to_owned(),
                    plan: *plan,
                };
                resolved.plans.iter().map(query)
            });
            queries.collect::<Vec<Query>>()
        };
        let (stored, live) = tokio::join!(
            self.storage_of(false).sums(queries(false), deadline),
            self.storage_of(true).sums(queries(true), deadline)
        );
        let (mut stored, mut live) = (stored.into_iter(), live.into_iter());
        let mut keep = Vec::new();
        for Left { index, resolved, keep: name, is_live } in left {
            let sums = if is_live { &mut live } else { &mut stored };
            let total = sums.by_ref().take(resolved.plans.len()).sum::<Result<i128, Refusal>>();
            answers[index] = total.and_then(|total| self.answer(&resolved, total));
            if let (Some(name), Ok(answer)) = (name, &answers[index]) {
                keep.push((name, answer.count));
            }
        }
        if let (Some(results), false) = (&self.results, keep.is_empty()) {
            results.put(keep);
        }
    }
}

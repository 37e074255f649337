//! Range counts, one by one and in batches.

use raingauge_core::bucket::Granularity;
use raingauge_core::limits::KEY_LEN_MAX;
use raingauge_core::plan::{self, Plan, Slice};
use raingauge_core::retention::Expired;
use raingauge_core::tile::Overflow;
use raingauge_ports::buckets::{self, BucketReader, Generation, Query};
use raingauge_ports::clock::Clock;
use raingauge_ports::published::{Published, View};
use serde::Serialize;
use std::sync::Arc;

/// Keys that are looked at to find the largest ones.
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

/// Why there is no count: a stable code, and a sentence that says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    pub code: &'static str,
    pub detail: String,
}

/// A key and its count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    pub key: String,
    pub count: i64,
}

pub struct Reader {
    pub(crate) buckets: Arc<dyn BucketReader>,
    pub(crate) published: Arc<Published>,
    pub(crate) clock: Arc<dyn Clock>,
    counts: metrics::Counter,
    rows: metrics::Counter,
}

/// A range that has been resolved: what to read, and what the answer will say.
struct Resolved {
    plans: Vec<(Generation, Plan)>,
    from_s: i64,
    end: End,
}

/// Where the answer says that its range ends.
#[derive(Clone, Copy)]
enum End {
    At(i64),
    /// At `to_s`, or behind the newest event when that lies later in the open quarter hour, which ends at `end_s`.
    Open {
        to_s: i64,
        end_s: i64,
    },
}

impl Reader {
    pub fn new(buckets: Arc<dyn BucketReader>, published: Arc<Published>, clock: Arc<dyn Clock>) -> Self {
        let counts = metrics::counter!("raingauge_range_counts_total");
        let rows = metrics::counter!("raingauge_rows_read_total");
        Self { buckets, published, clock, counts, rows }
    }

    /// Answers many ranges in their order.
    pub async fn counts(&self, ranges: &[Range<'_>]) -> Vec<Result<Answer, Failure>> {
        if let Some(reason) = self.published.failure() {
            return vec![Err(stopped(&reason)); ranges.len()];
        }
        let (view, now_s) = (Arc::clone(&self.published.view()), self.clock.now_s());
        self.counts.increment(ranges.len() as u64);
        let mut answers = Vec::with_capacity(ranges.len());
        let mut left = Vec::new();
        let mut rows = 0;
        for (index, range) in ranges.iter().enumerate() {
            answers.push(match self.resolve(&view, range, now_s) {
                Err(failure) => Err(failure),
                Ok(resolved) => {
                    rows += resolved.plans.iter().map(|(_, plan)| tiles_of(plan)).sum::<u64>();
                    self.sum_in_memory(range.key, &resolved).unwrap_or_else(|| {
                        left.push((index, resolved));
                        Ok(Answer { from_s: 0, to_s: 0, count: 0 })
                    })
                }
            });
        }
        self.rows.increment(rows);
        if !left.is_empty() {
            self.sum_in_storage(ranges, left, &mut answers).await;
        }
        answers
    }

    /// The count of one range when all it needs is in memory. Never waits.
    pub fn count_cached(&self, range: &Range<'_>) -> Option<Result<Answer, Failure>> {
        if let Some(reason) = self.published.failure() {
            return Some(Err(stopped(&reason)));
        }
        match self.resolve(&self.published.view(), range, self.clock.now_s()) {
            Ok(resolved) => self.sum_in_memory(range.key, &resolved),
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
    ) -> Result<Vec<Key>, Failure> {
        if let Some(reason) = self.published.failure() {
            return Err(stopped(&reason));
        }
        Plan::new(from_s, to_s)?;
        let view = Arc::clone(&self.published.view());
        let Some(index) = view.ruleset.index_of(counter) else {
            return Err(Failure {
                code: "counter_unknown",
                detail: format!("counter {counter} does not answer: is it active?"),
            });
        };
        let mut sums = std::collections::HashMap::<String, i64>::new();
        let (from_s, to_s) = (Granularity::Day.floor(from_s), Granularity::Day.ceil(to_s));
        let parts: Vec<_> = view.timelines[index].split(from_s, to_s).collect();
        // The largest of each part are enough unless a key is large only in the sum of parts, which there are seldom two of.
        let len_each = if parts.len() == 1 { len_max } else { KEYS_SCAN_MAX };
        for (generation, from_s, to_s) in parts {
            let slice = Slice { granularity: Granularity::Day, from_s, to_s };
            for (key, sum) in self.buckets.largest_keys(generation, slice, len_each, KEYS_SCAN_MAX).await? {
                let known = sums.entry(key).or_default();
                *known = known.saturating_add(sum);
            }
        }
        let mut keys: Vec<Key> = sums.into_iter().map(|(key, count)| Key { key, count }).collect();
        keys.sort_unstable_by(|left, right| right.count.cmp(&left.count).then_with(|| left.key.cmp(&right.key)));
        keys.truncate(len_max);
        Ok(keys)
    }

    fn resolve(&self, view: &View, range: &Range<'_>, now_s: i64) -> Result<Resolved, Failure> {
        let Some(index) = view.ruleset.index_of_key(range.key) else {
            return Err(key_unknown(range.key));
        };
        let (plan, end) = plan(range, now_s)?;
        view.horizons(index, now_s).check(&plan)?;
        let timeline = &view.timelines[index];
        let plans = match timeline.only() {
            Some(only) => vec![(only, plan)],
            None => timeline.plans(&plan)?,
        };
        Ok(Resolved { plans, from_s: plan.from_s, end })
    }

    fn sum_in_memory(&self, key: &str, resolved: &Resolved) -> Option<Result<Answer, Failure>> {
        let mut total = 0;
        for (generation, plan) in &resolved.plans {
            match self.buckets.sum_cached(*generation, key, plan)? {
                Ok(sum) => total += sum,
                Err(overflow) => return Some(Err(overflow.into())),
            }
        }
        Some(self.answer(resolved, total))
    }

    /// The answer with a sum. An open end is looked up behind the sum, so that it lies behind all that was summed.
    fn answer(&self, resolved: &Resolved, total: i128) -> Result<Answer, Failure> {
        let count = i64::try_from(total).map_err(|_| Overflow)?;
        let to_s = match resolved.end {
            End::At(to_s) => to_s,
            End::Open { to_s, end_s } => to_s.max(self.published.newest_event_s() + 1).min(end_s),
        };
        Ok(Answer { from_s: resolved.from_s, to_s, count })
    }

    /// Answers the ranges that memory could not, in one round.
    async fn sum_in_storage(
        &self,
        ranges: &[Range<'_>],
        left: Vec<(usize, Resolved)>,
        answers: &mut [Result<Answer, Failure>],
    ) {
        let queries = left.iter().flat_map(|(index, resolved)| {
            let key = ranges[*index].key;
            resolved.plans.iter().map(move |(generation, plan)| Query {
                generation: *generation,
                key: key.to_owned(),
                plan: *plan,
            })
        });
        let mut sums = self.buckets.sums(queries.collect()).await.into_iter();
        for (index, resolved) in left {
            let parts = sums.by_ref().take(resolved.plans.len());
            let total = parts.sum::<Result<i128, buckets::Error>>();
            answers[index] = total.map_err(Failure::from).and_then(|total| self.answer(&resolved, total));
        }
    }
}

/// The plan of a range, and where the answer will say that it ends.
///
/// With `fresh`, an end inside the open quarter hour takes in the whole of it. The answer then ends where the newest
/// event that is in it can lie, so that the count is exact for the range that the answer names.
fn plan(range: &Range<'_>, now_s: i64) -> Result<(Plan, End), Failure> {
    let quarter = Granularity::Quarter;
    let is_open = quarter.floor(range.to_s) == quarter.floor(now_s);
    if range.fresh && is_open && !quarter.starts_at(range.to_s) {
        let end_s = quarter.ceil(range.to_s);
        return Ok((Plan::new(range.from_s, end_s)?, End::Open { to_s: range.to_s, end_s }));
    }
    let plan = Plan::new(range.from_s, range.to_s)?;
    Ok((plan, End::At(plan.to_s)))
}

/// Tiles that a plan reads: one for each edge, one for each 128 days.
fn tiles_of(plan: &Plan) -> u64 {
    let edges = plan.edges.iter().flatten().count() as u64;
    let spans = if plan.has_days() { u64::from((plan.day_end - 1) / 128 - plan.day_first / 128) + 1 } else { 0 };
    edges + spans
}

/// Why a key has no counter.
pub(crate) fn key_unknown(key: &str) -> Failure {
    if key.len() > KEY_LEN_MAX {
        return Failure {
            code: "key_too_long",
            detail: format!("a key has at most {KEY_LEN_MAX} bytes; this one has {}", key.len()),
        };
    }
    Failure { code: "key_unknown", detail: format!("no counter has a template that renders `{key}`") }
}

pub(crate) fn stopped(reason: &str) -> Failure {
    Failure { code: "unavailable", detail: format!("counting has stopped: {reason}") }
}

impl From<plan::Error> for Failure {
    fn from(error: plan::Error) -> Self {
        Self { code: error.code(), detail: error.to_string() }
    }
}

impl From<Expired> for Failure {
    fn from(expired: Expired) -> Self {
        Self { code: "range_expired", detail: expired.to_string() }
    }
}

impl From<Overflow> for Failure {
    fn from(overflow: Overflow) -> Self {
        Self { code: "overflow", detail: overflow.to_string() }
    }
}

impl From<buckets::Error> for Failure {
    fn from(error: buckets::Error) -> Self {
        match error {
            buckets::Error::Overflow(overflow) => overflow.into(),
            error => Self { code: "unavailable", detail: error.to_string() },
        }
    }
}

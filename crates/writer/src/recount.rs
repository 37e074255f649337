//! Recount: the count of a key made again from the log, beside the stored one.

use crate::history::{Step, covered_from_s, walk};
use crate::state::{Control, Part};
use crate::worker::{Error, Writer};
use raingauge_core::bucket::Granularity;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::retention::Horizons;
use raingauge_core::ruleset::{Ruleset, Scratch};
use raingauge_ports::buckets::{BucketReader, BucketWriter};
use raingauge_ports::log::{EventLog, Offset};
use raingauge_ports::memory::MemoryBuckets;
use raingauge_ports::published::Published;
use serde::Serialize;
use std::sync::Arc;

/// Differences that a recount shows.
const DIFFERENCES_MAX: usize = 1_000;
/// How often a recount starts again because the key was counted while it looked.
const TRIES: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recount {
    pub key: String,
    pub from_time: i64,
    pub to_time: i64,
    /// Buckets before this are not compared, because the log no longer holds all their events; seconds since 1970.
    pub compared_from: i64,
    pub stored: i128,
    pub recounted: i128,
    pub equal: bool,
    pub differences: Vec<Difference>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub granularity: Granularity,
    pub time: i64,
    pub stored: Option<i64>,
    pub recounted: Option<i64>,
}

/// Everything that a recount looks at.
pub struct Recounter {
    pub log: Arc<dyn EventLog>,
    pub buckets: Arc<dyn BucketReader>,
    pub published: Arc<Published>,
    pub writer: Arc<Writer>,
    pub future_allowance_s: i64,
}

/// One compiled rule, and the offsets and times that it counted.
struct Counted {
    ruleset: Ruleset,
    since: Offset,
    until: Offset,
    from_s: i64,
    to_s: i64,
}

impl Recounter {
    /// Recounts one key. Answers `None` when no counter has a template that renders it.
    pub async fn recount(&self, key: &str, range: Plan) -> Result<Option<Recount>, Error> {
        let Some(index) = self.published.view().ruleset.index_of_key(key) else { return Ok(None) };
        let id = self.published.view().ruleset.rules()[index].counter.id;
        for _ in 0..TRIES {
            let model = Arc::new(MemoryBuckets::default());
            let parts = self.writer.parts(id);
            let before = self.published.applied();
            self.replay(key, &parts, 0, before, &model).await?;
            let answer = self.compare(key, index, range, &model).await?;
            // Whatever was applied while the stored cells were read must not have touched the key.
            let after = self.published.applied();
            if !self.replay(key, &parts, before, after, &model).await? {
                return Ok(Some(answer));
            }
        }
        Err(Error::State(format!(
            "{key} is counted too quickly to be recounted: leave out the open quarter hour, or try again"
        )))
    }

    /// Counts the entries of `[from, to)` into the model. Answers whether the key was touched.
    async fn replay(
        &self,
        key: &str,
        parts: &[Part],
        from: Offset,
        to: Offset,
        model: &Arc<MemoryBuckets>,
    ) -> Result<bool, Error> {
        let rules = compile(parts);
        let (log, model, key) = (Arc::clone(&self.log), Arc::clone(model), key.to_owned());
        let work = tokio::task::spawn_blocking(move || {
            let mut touched = false;
            walk(&*log, from.max(log.start()), to, |offset, appended_s, step| {
                for rule in rules.iter().filter(|rule| (rule.since..rule.until).contains(&offset)) {
                    touched |= rule.count(&key, appended_s, &step, &model);
                }
            })?;
            Ok(touched)
        });
        work.await.unwrap_or_else(|error| Err(Error::State(format!("the recount failed: {error}"))))
    }

    async fn compare(&self, key: &str, index: usize, range: Plan, model: &MemoryBuckets) -> Result<Recount, Error> {
        let covered_s = covered_from_s(&*self.log, self.future_allowance_s);
        let compared_from = range.from_s.max(covered_s.min(range.to_s));
        let timeline = self.published.view().timelines[index].clone();
        let mut recount = Recount {
            key: key.to_owned(),
            from_time: range.from_s,
            to_time: range.to_s,
            compared_from,
            stored: 0,
            recounted: 0,
            equal: true,
            differences: Vec::new(),
        };
        for (generation, from_s, to_s) in timeline.split(compared_from, range.to_s) {
            for granularity in Granularity::ALL {
                let slice = Slice { granularity, from_s: granularity.ceil(from_s), to_s: granularity.floor(to_s) };
                if slice.from_s >= slice.to_s {
                    continue;
                }
                let stored = self.buckets.cells(generation, key.to_owned(), slice).await?;
                let counted = model.cells(0, key.to_owned(), slice).await?;
                let mut times: Vec<i64> = stored.iter().chain(&counted).map(|cell| cell.time_s).collect();
                times.sort_unstable();
                times.dedup();
                for time in times {
                    let at = |cells: &[raingauge_ports::buckets::Cell]| {
                        cells.iter().find(|cell| cell.time_s == time).map(|cell| cell.count)
                    };
                    let (stored, recounted) = (at(&stored), at(&counted));
                    if stored.unwrap_or(0) != recounted.unwrap_or(0) {
                        recount.equal = false;
                        recount.differences.push(Difference { granularity, time, stored, recounted });
                    }
                }
            }
            if let Ok(plan) = Plan::new(from_s, to_s) {
                recount.stored += sum(&*self.buckets, generation, key, plan).await?;
                recount.recounted += sum(model, 0, key, plan).await?;
            }
        }
        recount.differences.truncate(DIFFERENCES_MAX);
        Ok(recount)
    }
}

impl Counted {
    /// Counts one entry, when it concerns the key. Answers whether it did.
    fn count(&self, key: &str, appended_s: i64, step: &Step<'_>, model: &MemoryBuckets) -> bool {
        let Some(rule) = self.ruleset.rules().first() else { return false };
        let mut touched = false;
        match step {
            Step::Event(event)
                if (self.from_s..self.to_s).contains(&event.time_s()) && rule.counter.listens_to(event) =>
            {
                let horizons: Horizons = rule.horizons(appended_s);
                let count = |_, rendered: &str, value| {
                    if rendered == key {
                        touched = true;
                        let _ = model.add(0, key, event.time_s(), value, &horizons);
                    }
                };
                self.ruleset.apply(event, &mut Scratch::default(), count, |_, _| {});
            }
            Step::Event(_) => {}
            Step::Control(payload) => {
                if let Ok(Control::Buckets { buckets }) = serde_json::from_slice(payload) {
                    for bucket in buckets.iter().filter(|bucket| bucket.key == key) {
                        if (self.from_s..self.to_s).contains(&bucket.time) {
                            touched = true;
                            let _ = model.set(0, key, bucket.cell());
                        }
                    }
                }
            }
        }
        touched
    }
}

/// The rules of all parts, each with what it counted. A rule that did not count takes part all the same:
/// buckets are set for paused counters too.
fn compile(parts: &[Part]) -> Vec<Counted> {
    let mut rules = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let to_s = parts.get(index + 1).map_or(i64::MAX, |next| next.from_s);
        for (place, rule) in part.rules.iter().enumerate() {
            let until = part.rules.get(place + 1).map_or(Offset::MAX, |next| next.since);
            let counter = if rule.counter.state.answers() { rule.counter.clone() } else { continue };
            let ruleset = Ruleset::new([counter]);
            rules.push(Counted { ruleset, since: rule.since, until, from_s: part.from_s, to_s });
        }
    }
    rules
}

async fn sum(buckets: &dyn BucketReader, generation: u32, key: &str, plan: Plan) -> Result<i128, Error> {
    let query = raingauge_ports::buckets::Query { generation, key: key.to_owned(), plan };
    Ok(buckets.sums(vec![query]).await.pop().unwrap_or(Ok(0))?)
}

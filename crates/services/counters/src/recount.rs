//! Recounts: the count of a key recounted from the log, beside the stored one.

mod tally;

use parking_lot::Mutex;
use raingauge_core::bucket::Granularity;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::ruleset::{Ruleset, Scratch};
use raingauge_ports::buckets::{BucketReader, Cell, Query};
pub use raingauge_ports::checks::Difference;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{EventLog, Offset, Partition};
use raingauge_ports::published::Published;
use raingauge_ports::record::Entry;
use raingauge_ports::scans::Stop;
use raingauge_writer::control::{Bucket, Control};
use raingauge_writer::history::{Step, covered_from_s, walk};
use raingauge_writer::state::{Part, timeline_of};
use raingauge_writer::states::States;
use raingauge_writer::worker::Error;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tally::Tally;

/// Most differences that a recount shows.
const DIFFERENCES_MAX: usize = 1_000;
/// Attempts of a recount whose key keeps being counted while it reads the store.
const TRIES: usize = 20;
/// How much earlier than its range a recount begins to read, besides the allowance for events from
/// the future: the clocks of several machines differ, and entries are not appended in the order of
/// their times.
const CLOCKS_MARGIN_S: i64 = 3_600;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recount {
    pub key: String,
    pub from_time: i64,
    pub to_time: i64,
    /// Buckets before this are not compared, because the log no longer holds all their events, or
    /// because they have expired; seconds since 1970.
    pub compared_from: i64,
    pub stored: i128,
    pub recounted: i128,
    pub equal: bool,
    pub differences: Vec<Difference>,
    /// Buckets of the range that were set by `POST /v1/buckets` since the log begins. A count that
    /// includes one is not a count of events.
    #[serde(skip_serializing_if = "is_zero")]
    pub set_buckets: usize,
    /// Every bucket that was compared and that exists on either side; not part of answers, which
    /// list the differences.
    #[serde(skip)]
    pub buckets: Vec<Difference>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A key and the range of its recount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub key: String,
    pub range: Plan,
}

/// The progress of a recount for its callers, and whether any of them still waits. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    walked: Arc<Steps>,
    stop: Stop,
}

#[derive(Debug, Default)]
struct Steps {
    entries: AtomicU64,
    of: AtomicU64,
}

impl Progress {
    /// The progress of a recount that ends on this stop signal.
    pub fn until(stop: &Stop) -> Self {
        Self { stop: stop.clone(), ..Self::default() }
    }

    /// Returns the entries of the log that were read, and how many there are to read.
    pub fn entries(&self) -> (u64, u64) {
        let of = self.walked.of.load(Ordering::Relaxed);
        (self.walked.entries.load(Ordering::Relaxed).min(of), of)
    }

    fn begin(&self, more: u64) {
        self.walked.of.fetch_add(more, Ordering::Relaxed);
    }

    fn step(&self) {
        self.walked.entries.fetch_add(1, Ordering::Relaxed);
    }
}

/// Everything that a recount reads.
pub struct Recounter {
    /// Every partition of the log.
    pub logs: Vec<Arc<dyn EventLog>>,
    pub buckets: Arc<dyn BucketReader>,
    pub published: Arc<Published>,
    pub states: Arc<dyn States>,
    pub clock: Arc<dyn Clock>,
    pub future_allowance_s: i64,
}

/// The recounted buckets of a key, and its configurations.
struct Model {
    /// Its place among the keys of the same walk.
    place: usize,
    counter: u32,
    parts: PartsOf,
    rules: BTreeMap<Partition, Vec<CountedRule>>,
    key: String,
    range: Plan,
    tally: Mutex<Tally>,
    /// A request set some of its buckets, and it is not known yet whether it repeats another
    /// request.
    is_unclear: AtomicBool,
}

/// The result for a key.
enum Answer {
    /// No counter has the key.
    Unknown,
    Recounted(Box<Recount>),
    /// It was counted during every attempt to read the stored cells.
    Busy,
    /// Its counter was changed during the recount.
    Changed,
    Failed(Error),
}

/// The configurations that counted, by partition.
type PartsOf = Vec<(Partition, Vec<Part>)>;

/// One compiled rule, and the offsets and times that it counted.
struct CountedRule {
    ruleset: Ruleset,
    since: Offset,
    until: Offset,
    from_s: i64,
    to_s: i64,
}

impl Recounter {
    /// Recounts one key. Returns `None` when no counter has a template that renders it.
    pub async fn recount(
        &self,
        key: &str,
        range: Plan,
        stop: &Stop,
    ) -> Result<Option<Recount>, Error> {
        let asked = KeyRange { key: key.to_owned(), range };
        self.recount_all(vec![asked], &Progress::until(stop)).await?.pop().unwrap_or(Ok(None))
    }

    /// Recounts many keys in one walk through the log, and returns the results in their order. Each
    /// fails alone, except for errors of the log or the store. Keys whose counter changes during
    /// the walk are recounted one by one.
    pub async fn recount_all(
        &self,
        asked: Vec<KeyRange>,
        progress: &Progress,
    ) -> Result<Vec<Result<Option<Recount>, Error>>, Error> {
        let mut answers: Vec<Option<Answer>> = asked.iter().map(|_| None).collect();
        for _ in 0..TRIES {
            let is_open = |place: &usize| matches!(answers[*place], None | Some(Answer::Changed));
            let open: Vec<usize> = (0..asked.len()).filter(is_open).collect();
            if open.is_empty() {
                break;
            }

            let again = open.iter().map(|place| asked[*place].clone()).collect();
            for (place, answer) in open.into_iter().zip(self.try_all(again, progress).await?) {
                answers[place] = Some(answer);
            }
        }

        let conclude = |(answer, asked): (Option<Answer>, KeyRange)| match answer {
            Some(Answer::Unknown) => Ok(None),
            Some(Answer::Recounted(recount)) => Ok(Some(*recount)),
            Some(Answer::Failed(error)) => Err(error),
            Some(Answer::Busy) => Err(Error::State(format!(
                "{} is counted too quickly to be recounted: leave out the open quarter hour, or try again",
                asked.key
            ))),
            Some(Answer::Changed) | None => Err(Error::State(format!(
                "the counter of {} is changed too often to be recounted: try again",
                asked.key
            ))),
        };
        Ok(answers.into_iter().zip(asked).map(conclude).collect())
    }

    async fn try_all(
        &self,
        asked: Vec<KeyRange>,
        progress: &Progress,
    ) -> Result<Vec<Answer>, Error> {
        let mut answers: Vec<Option<Answer>> = asked.iter().map(|_| None).collect();
        let mut models = Vec::new();
        for (place, asked) in asked.into_iter().enumerate() {
            match self.model(place, asked) {
                Ok(Some(model)) => models.push(Arc::new(model)),
                Ok(None) => answers[place] = Some(Answer::Unknown),
                Err(error) => answers[place] = Some(Answer::Failed(error)),
            }
        }

        let applied =
            |log: &Arc<dyn EventLog>| (log.partition(), self.published.applied(log.partition()));
        let mut counted_to: Vec<(Partition, Offset)> = self.logs.iter().map(applied).collect();
        let start = self.begin(&models).await;
        self.replay(&models, start, &counted_to, progress).await?;

        for _ in 0..TRIES {
            if models.is_empty() {
                break;
            }
            self.published
                .wait_applied(&counted_to)
                .await
                .map_err(|reason| Error::State(reason.to_string()))?;

            let mut found = Vec::with_capacity(models.len());
            for model in &models {
                found.push(self.compare(model).await);
            }

            // Entries that were applied while the stored cells were read are in the log by now;
            // none of them may have touched the key.
            let end: Vec<(Partition, Offset)> =
                self.logs.iter().map(|log| (log.partition(), log.end())).collect();
            let touched = self.replay(&models, counted_to, &end, progress).await?;
            counted_to = end;

            let mut again = Vec::new();
            for (model, found) in models.into_iter().zip(found) {
                let answer = match found {
                    _ if self.states.parts(model.counter) != model.parts => Answer::Changed,
                    _ if model.is_unclear.load(Ordering::Relaxed) => Answer::Changed,
                    Ok(None) => Answer::Changed,
                    Err(error) => Answer::Failed(error),
                    Ok(Some(_)) if touched.contains(&model.place) => {
                        answers[model.place] = Some(Answer::Busy);
                        again.push(model);
                        continue;
                    }
                    Ok(Some(recount)) => Answer::Recounted(Box::new(recount)),
                };
                answers[model.place] = Some(answer);
            }

            models = again;
        }

        Ok(answers.into_iter().map(|answer| answer.unwrap_or(Answer::Changed)).collect())
    }

    /// Returns the model of a key, or `None` when no counter has it.
    fn model(
        &self,
        place: usize,
        KeyRange { key, range }: KeyRange,
    ) -> Result<Option<Model>, Error> {
        let view = Arc::clone(&self.published.view());
        let Some(index) = view.ruleset.index_of_key(&key) else {
            return Ok(None);
        };
        let counter = view.ruleset.rules()[index].counter.id;
        let parts = self.states.parts(counter);

        check_alike(&parts)?;
        let rules = parts.iter().map(|(partition, parts)| (*partition, compile(parts))).collect();
        Ok(Some(Model {
            place,
            counter,
            parts,
            rules,
            key,
            range,
            tally: Mutex::default(),
            is_unclear: AtomicBool::default(),
        }))
    }

    /// Returns where to begin to read: events of a range arrived at its start at the earliest,
    /// apart from differences between clocks.
    async fn begin(&self, models: &[Arc<Model>]) -> Vec<(Partition, Offset)> {
        let from_s = models.iter().map(|model| model.range.from_s).min().unwrap_or(i64::MAX);
        let since_ms =
            from_s.saturating_sub(self.future_allowance_s + CLOCKS_MARGIN_S).saturating_mul(1_000);
        let logs = self.logs.clone();
        let begin =
            move || logs.iter().map(|log| (log.partition(), log.begin_since(since_ms))).collect();
        tokio::task::spawn_blocking(begin)
            .await
            .unwrap_or_else(|_| self.logs.iter().map(|log| (log.partition(), 0)).collect())
    }

    /// Counts the entries of `[from, to)` of each partition into the models. Returns the places of
    /// the models that they touched.
    async fn replay(
        &self,
        models: &[Arc<Model>],
        from: Vec<(Partition, Offset)>,
        to: &[(Partition, Offset)],
        progress: &Progress,
    ) -> Result<HashSet<usize>, Error> {
        let logs = self.logs.clone();
        let to = to.to_vec();
        let progress = progress.clone();
        let models = models.to_vec();

        // Repetitions are known only among the entries that are applied.
        let known = |log: &Arc<dyn EventLog>| {
            let applied = self.published.applied(log.partition());
            (applied, self.states.repetitions(log.partition()))
        };
        let known: Vec<(Offset, Vec<Offset>)> = self.logs.iter().map(known).collect();
        let work = tokio::task::spawn_blocking(move || {
            let mut touched = HashSet::new();
            let ways = logs.iter().zip(from.into_iter().zip(to)).map(
                |(log, ((partition, from), (_, to)))| (log, partition, from.max(log.start()), to),
            );
            let ways: Vec<_> = ways.collect();
            progress.begin(ways.iter().map(|(_, _, from, to)| to.saturating_sub(*from)).sum());

            for ((log, partition, from, to), (applied, repetitions)) in ways.into_iter().zip(known)
            {
                walk(&**log, from, to, &progress.stop, |step, scratch| {
                    progress.step();

                    if repetitions.binary_search(&step.offset).is_ok() {
                        return;
                    }
                    let is_applied = step.offset < applied;

                    for model in &models {
                        if model.count(partition, &step, is_applied, scratch) {
                            touched.insert(model.place);
                        }
                    }
                })?;
            }

            Ok(touched)
        });

        work.await.unwrap_or_else(|error| Err(Error::State(format!("the recount failed: {error}"))))
    }

    /// Compares the stored cells with those of the model. Returns `None` when the counter no longer
    /// answers.
    async fn compare(&self, model: &Model) -> Result<Option<Recount>, Error> {
        let Model { counter, parts, key, range, .. } = model;
        let horizons = {
            let view = self.published.view();
            let Some(index) = view.ruleset.index_of(*counter) else {
                return Ok(None);
            };
            view.horizons(index, self.clock.now_s())
        };

        let expired_s = if horizons.check(range).is_err() { horizons.quarter_s } else { 0 };
        let covered = |log: &Arc<dyn EventLog>| covered_from_s(&**log, self.future_allowance_s);
        let covered_s = self.logs.iter().map(covered).max().unwrap_or(0);
        let compared_from = range.from_s.max(covered_s).max(expired_s).min(range.to_s);
        let mut recount = Recount {
            key: key.clone(),
            from_time: range.from_s,
            to_time: range.to_s,
            compared_from,
            stored: 0,
            recounted: 0,
            equal: true,
            differences: Vec::new(),
            set_buckets: model.tally.lock().set_since(compared_from),
            buckets: Vec::new(),
        };

        // A counter that no writer has seen yet has no counts.
        let Some((_, first)) = parts.first() else {
            return Ok(Some(recount));
        };
        for (generation, from_s, to_s) in timeline_of(first).split(compared_from, range.to_s) {
            for granularity in Granularity::ALL {
                let from_s = granularity.ceil(from_s.max(horizons.of(granularity)));
                let slice = Slice { granularity, from_s, to_s: granularity.floor(to_s) };
                if slice.from_s < slice.to_s {
                    let stored = self.buckets.cells(generation, key.clone(), slice).await?;
                    let recounted = model.tally.lock().cells(slice)?;
                    recount.buckets.extend(side_by_side(&stored, &recounted));
                }
            }
            if let Ok(plan) = Plan::new(from_s, to_s) {
                recount.stored += sum(&*self.buckets, generation, key, plan).await?;
                recount.recounted += model.tally.lock().sum(&plan)?;
            }
        }

        let differs =
            |bucket: &&Difference| bucket.stored.unwrap_or(0) != bucket.recounted.unwrap_or(0);
        recount.differences = recount.buckets.iter().filter(differs).copied().collect();
        recount.equal = recount.differences.is_empty();
        recount.differences.truncate(DIFFERENCES_MAX);

        Ok(Some(recount))
    }
}

impl Model {
    /// Counts one entry. Returns whether it concerned the key and the range.
    fn count<'a>(
        &self,
        partition: Partition,
        step: &Step<'a>,
        is_applied: bool,
        scratch: &mut Scratch<'a>,
    ) -> bool {
        match &step.entry {
            Entry::Event(event) => {
                let time_s = event.time_s();
                let Some(rule) = self.rule_for(partition, step.offset, time_s) else {
                    return false;
                };
                let Some(compiled) =
                    rule.ruleset.rules().first().filter(|rule| rule.counter.listens_to(event))
                else {
                    return false;
                };

                let mut touched = false;
                let count = |_, rendered: &str, value| {
                    if rendered == self.key {
                        touched = true;
                        let horizons = compiled.horizons(step.appended_s);
                        self.tally.lock().add(partition, time_s, value, &horizons);
                    }
                };

                rule.ruleset.apply(event, scratch, count, |_, _| {});
                touched
            }
            Entry::Control(payload) => match Control::parse(payload) {
                Ok(Some(Control::Buckets { buckets, request })) => {
                    let touched = self.set_buckets(partition, step.offset, &buckets);
                    if touched && request.is_some() && !is_applied {
                        self.is_unclear.store(true, Ordering::Relaxed);
                    }
                    touched
                }
                Ok(Some(Control::Erase { counter, key }))
                    if counter == self.counter && key == self.key =>
                {
                    self.tally.lock().erase(partition);
                    true
                }
                _ => false,
            },
            Entry::Void => false,
        }
    }

    /// Sets the buckets that belong to the key. Returns whether there were any.
    fn set_buckets(&self, partition: Partition, offset: Offset, buckets: &[Bucket]) -> bool {
        let mut touched = false;
        for bucket in buckets.iter().filter(|bucket| bucket.key == self.key) {
            let rule =
                self.rule_for(partition, offset, bucket.time).filter(|rule| rule.owns(&self.key));
            if rule.is_some() {
                touched = true;
                self.tally.lock().set(partition, bucket.cell());
            }
        }
        touched
    }

    /// Returns the rule that was in force at an offset for this time; `None` outside the range.
    fn rule_for(&self, partition: Partition, offset: Offset, time_s: i64) -> Option<&CountedRule> {
        if !(self.range.from_s..self.range.to_s).contains(&time_s) {
            return None;
        }
        let in_force = |rule: &&CountedRule| {
            (rule.since..rule.until).contains(&offset) && (rule.from_s..rule.to_s).contains(&time_s)
        };
        self.rules.get(&partition)?.iter().find(in_force)
    }
}

impl CountedRule {
    /// Whether the rule's template renders the key.
    fn owns(&self, key: &str) -> bool {
        self.ruleset.index_of_key(key).is_some()
    }
}

/// Partitions whose backfill has not ended answer by other generations than the rest.
fn check_alike(parts: &PartsOf) -> Result<(), Error> {
    let generations = |parts: &[Part]| {
        parts.iter().map(|part| (part.from_s, part.generation)).collect::<Vec<_>>()
    };
    let mut of_each = parts.iter().map(|(_, parts)| generations(parts));
    let first = of_each.next();
    if of_each.all(|other| Some(other) == first) {
        return Ok(());
    }
    Err(Error::State(
        "a backfill of this counter has ended in some partitions only: try again when it has ended"
            .to_owned(),
    ))
}

/// Compiles the rules of all parts that answered, each with what it counted. A paused rule takes
/// part too, since its buckets can be set.
fn compile(parts: &[Part]) -> Vec<CountedRule> {
    let mut rules = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let to_s = parts.get(index + 1).map_or(i64::MAX, |next| next.from_s);
        for (place, rule) in
            part.rules.iter().enumerate().filter(|(_, rule)| rule.counter.state.answers())
        {
            let until = part.rules.get(place + 1).map_or(Offset::MAX, |next| next.since);
            let ruleset = Ruleset::new([rule.counter.clone()]);
            rules.push(CountedRule {
                ruleset,
                since: rule.since,
                until,
                from_s: part.from_s,
                to_s,
            });
        }
    }
    rules
}

/// Pairs two lists of cells, both ordered by time, bucket by bucket. A missing cell counts 0.
fn side_by_side(stored: &[Cell], recounted: &[Cell]) -> Vec<Difference> {
    let mut counts = BTreeMap::<(Granularity, i64), [Option<i64>; 2]>::new();
    for (side, cells) in [stored, recounted].into_iter().enumerate() {
        for cell in cells {
            counts.entry((cell.granularity, cell.time_s)).or_default()[side] = Some(cell.count);
        }
    }

    let bucket = |((granularity, time), [stored, recounted]): (_, [Option<i64>; 2])| Difference {
        granularity,
        time,
        stored,
        recounted,
    };
    counts.into_iter().map(bucket).collect()
}

async fn sum(
    buckets: &dyn BucketReader,
    generation: u32,
    key: &str,
    plan: Plan,
) -> Result<i128, Error> {
    let query = Query { generation, key: key.to_owned(), plan };
    Ok(buckets.sums(vec![query]).await.pop().unwrap_or(Ok(0))?)
}

//! What the writer publishes to the rest of the process: the counters, the generation of counts
//! that answers for each time, and how far the log has been applied.

use crate::BoxFuture;
use crate::activity::Activity;
use crate::buckets::Generation;
use crate::key_counts::KeyCounts;
use crate::log::{Offset, Partition};
use arc_swap::ArcSwap;
use raingauge_core::bucket::DAY_S;
use raingauge_core::plan::{self, Plan};
use raingauge_core::retention::Horizons;
use raingauge_core::ruleset::Ruleset;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::atomic::{self, AtomicI64, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tokio::sync::{Notify, watch};

/// Which generation of a counter holds the buckets from which day on. The first part begins at 0. A
/// backfill that cannot reach all history adds a part; nothing is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    parts: Vec<(i64, Generation)>,
    kept_from: Horizons,
}

impl Timeline {
    /// The parts by the second, the start of a UTC day, from which each is valid.
    pub fn new(parts: Vec<(i64, Generation)>) -> Self {
        assert!(parts.first().is_some_and(|(from_s, _)| *from_s == 0), "a timeline begins at 0");
        assert!(parts.iter().all(|(from_s, _)| from_s % DAY_S == 0), "parts begin with a day");
        assert!(parts.is_sorted(), "parts are in order");
        Self { parts, kept_from: Horizons::default() }
    }

    /// Buckets before these horizons have expired already, even if the retention of the counter has
    /// become longer since.
    pub fn kept_from(self, kept_from: Horizons) -> Self {
        Self { kept_from, ..self }
    }

    /// The generation that holds the buckets of this time.
    pub fn generation_at(&self, time_s: i64) -> Generation {
        match &self.parts[..] {
            [(_, only)] => *only,
            parts => parts[parts.partition_point(|(from_s, _)| *from_s <= time_s) - 1].1,
        }
    }

    /// Splits `[from_s, to_s)` by the generations that hold its buckets.
    pub fn split(
        &self,
        from_s: i64,
        to_s: i64,
    ) -> impl Iterator<Item = (Generation, i64, i64)> + '_ {
        self.parts.iter().enumerate().filter_map(move |(index, (begin, generation))| {
            let end = self.parts.get(index + 1).map_or(i64::MAX, |(next, _)| *next);
            let (from, to) = (from_s.max(*begin), to_s.min(end));
            (from < to).then_some((*generation, from, to))
        })
    }

    /// Returns the plans that answer a range, by generation. A part begins with a day, so the parts
    /// need no more cells than the whole.
    pub fn plans(&self, whole: &Plan) -> Result<Vec<(Generation, Plan)>, plan::Error> {
        self.split(whole.from_s, whole.to_s)
            .map(|(generation, from, to)| Ok((generation, Plan::new(from, to)?)))
            .collect()
    }

    /// The generation, when there is only one.
    pub fn only(&self) -> Option<Generation> {
        match self.parts[..] {
            [(_, only)] => Some(only),
            _ => None,
        }
    }

    /// The generation that answers for the newest times. Each backfill and each erasure brings
    /// another one.
    pub fn newest(&self) -> Generation {
        self.parts[self.parts.len() - 1].1
    }

    pub fn parts(&self) -> &[(i64, Generation)] {
        &self.parts
    }
}

/// The counters as the writer applies them.
#[derive(Debug, Default)]
pub struct View {
    pub ruleset: Ruleset,
    /// One per rule of the ruleset.
    pub timelines: Vec<Timeline>,
    /// Per rule, timelines that do not answer here but are counted all the same: replaced ones,
    /// which answer until every partition and every reader has switched, and the one that a running
    /// backfill will bring.
    pub beside: Vec<Vec<Timeline>>,
    /// The versions of all counters, including archived ones.
    pub versions: HashMap<u32, Standing>,
}

/// A lower version that is later than the known one by at least this margin is not outdated news
/// from another process: the catalog has lost versions. Clocks of the processes that change
/// counters differ by less.
const CLOCKS_MARGIN_S: i64 = 60;

/// Where a configuration of a counter stands in the order of all that the catalog ever had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub version: u32,
    /// When the catalog stored the version, in seconds since 1970; 0 when unknown.
    pub changed_at: i64,
    /// A hash of the configuration. A catalog that lost a version may give its number to another
    /// configuration.
    pub fingerprint: u64,
}

impl Standing {
    /// Whether `news` are newer. Every process finds the same order, whatever arrives first. A
    /// version put back by the only process that writes changes is always newer.
    pub fn gives_way_to(&self, news: &Self, put_back: bool) -> bool {
        let differs = self.fingerprint != news.fingerprint;
        match news.version.cmp(&self.version) {
            Ordering::Greater => true,
            Ordering::Equal => differs && (put_back || news.changed_at > self.changed_at),
            Ordering::Less if put_back => true,
            Ordering::Less => {
                self.changed_at > 0 && news.changed_at > self.changed_at + CLOCKS_MARGIN_S
            }
        }
    }
}

impl View {
    /// The generations that count an event of this time, each once: the one that answers, and those
    /// of the timelines beside it.
    pub fn generations_at(
        &self,
        index: usize,
        time_s: i64,
    ) -> impl Iterator<Item = Generation> + '_ {
        let beside = self.beside_at(index, time_s).map(|(_, generation)| generation);
        std::iter::once(self.timelines[index].generation_at(time_s)).chain(beside)
    }

    /// The generations beside the one that answers for this time, each once, with the position of
    /// its timeline.
    pub fn beside_at(
        &self,
        index: usize,
        time_s: i64,
    ) -> impl Iterator<Item = (usize, Generation)> + '_ {
        let beside = self.beside.get(index).map_or(&[][..], Vec::as_slice);
        beside.iter().enumerate().filter_map(move |(place, timeline)| {
            let generation = timeline.generation_at(time_s);
            let is_known = generation == self.timelines[index].generation_at(time_s)
                || beside[..place]
                    .iter()
                    .any(|earlier| earlier.generation_at(time_s) == generation);
            (!is_known).then_some((place, generation))
        })
    }

    /// The earliest times for which a timeline beside the answering one has buckets.
    pub fn horizons_beside(&self, index: usize, place: usize, now_s: i64) -> Horizons {
        self.ruleset.rules()[index].horizons(now_s).max(self.beside[index][place].kept_from)
    }

    /// The earliest times for which a rule has buckets.
    pub fn horizons(&self, index: usize, now_s: i64) -> Horizons {
        self.ruleset.rules()[index].horizons(now_s).max(self.timelines[index].kept_from)
    }
}

/// Progress of counting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Progress {
    /// Per partition, the offset before which all entries are counted and visible to every read of
    /// the store.
    applied: Vec<Offset>,
    /// Why the writer stopped. Nothing is counted or answered any more.
    failure: Option<Arc<str>>,
}

impl Progress {
    fn applied(&self, partition: Partition) -> Offset {
        self.applied.get(usize::from(partition)).copied().unwrap_or(0)
    }
}

/// Readers that must hear of counted events before every read sees them.
///
/// No contract suite: the writer implements it for the doors of the same process.
pub trait Audience: Send + Sync {
    /// Completes when all readers have heard of everything before these ends.
    fn heard(&self, ends: Vec<(Partition, Offset)>) -> BoxFuture<'_, ()>;
}

pub struct Published {
    view: ArcSwap<View>,
    progress: watch::Sender<Progress>,
    newest_event_s: AtomicI64,
    activity: Activity,
    keys: KeyCounts,
    /// Notified when a caller begins to wait.
    waiting: Notify,
    /// Notified when counting has stopped.
    failed: Notify,
    began: Instant,
    /// Until when the timelines of the view are known to be valid, in milliseconds since `began`;
    /// forever if this process decides them.
    known_until_ms: AtomicU64,
    audience: OnceLock<Arc<dyn Audience>>,
}

impl Default for Published {
    fn default() -> Self {
        Self {
            view: ArcSwap::default(),
            progress: watch::Sender::new(Progress::default()),
            newest_event_s: AtomicI64::new(0),
            activity: Activity::default(),
            keys: KeyCounts::default(),
            waiting: Notify::new(),
            failed: Notify::new(),
            began: Instant::now(),
            known_until_ms: AtomicU64::new(u64::MAX),
            audience: OnceLock::new(),
        }
    }
}

impl Published {
    pub fn view(&self) -> arc_swap::Guard<Arc<View>> {
        self.view.load()
    }

    pub fn set_view(&self, view: Arc<View>) {
        self.view.store(view);
    }

    /// Why counting stopped.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.progress.borrow().failure.clone()
    }

    /// Timelines decided by other processes are valid until then, unless they are read again.
    pub fn known_until(&self, until: Instant) {
        let until_ms = until.saturating_duration_since(self.began).as_millis() as u64;
        self.known_until_ms.store(until_ms, atomic::Ordering::Release);
    }

    /// Whether the timelines were last read too long ago: the generations they name may have been
    /// replaced and removed since.
    pub fn is_outdated(&self) -> bool {
        let until_ms = self.known_until_ms.load(atomic::Ordering::Acquire);
        until_ms < u64::MAX && self.began.elapsed().as_millis() as u64 >= until_ms
    }

    /// Recent activity of the counters in this process.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Approximate number of keys per counter, as counted by this process.
    pub fn keys(&self) -> &KeyCounts {
        &self.keys
    }

    /// The offset up to which a partition has been applied.
    pub fn applied(&self, partition: Partition) -> Offset {
        self.progress.borrow().applied(partition)
    }

    pub fn set_applied(&self, partition: Partition, applied: Offset) {
        self.progress.send_modify(|progress| {
            let place = usize::from(partition);
            if progress.applied.len() <= place {
                progress.applied.resize(place + 1, 0);
            }
            progress.applied[place] = applied;
        });
    }

    pub fn fail(&self, reason: &str) {
        self.progress.send_modify(|progress| progress.failure = Some(reason.into()));
        self.failed.notify_waiters();
    }

    /// Waits until counting has stopped. Does not count as waiting for partitions to be applied.
    pub async fn failed(&self) {
        let mut failed = std::pin::pin!(self.failed.notified());
        failed.as_mut().enable();
        if self.failure().is_none() {
            failed.await;
        }
    }

    /// Sets the audience, for which every wait for partitions waits too. Call at most once.
    pub fn set_audience(&self, audience: Arc<dyn Audience>) {
        let _ = self.audience.set(audience);
    }

    /// Waits until partitions are applied up to these offsets and every read sees it. Returns the
    /// failure when counting has stopped.
    pub async fn wait_applied(&self, ends: &[(Partition, Offset)]) -> Result<(), Arc<str>> {
        self.wait_stored(ends).await?;
        if let Some(audience) = self.audience.get() {
            audience.heard(ends.to_vec()).await;
        }
        Ok(())
    }

    async fn wait_stored(&self, ends: &[(Partition, Offset)]) -> Result<(), Arc<str>> {
        let reached = |progress: &Progress| {
            ends.iter().all(|(partition, end)| progress.applied(*partition) >= *end)
        };
        let mut receiver = self.progress.subscribe();
        self.waiting.notify_waiters();

        let waited =
            receiver.wait_for(|progress| reached(progress) || progress.failure.is_some()).await;
        match waited {
            Ok(progress) if reached(&progress) => Ok(()),
            Ok(progress) => {
                Err(progress.failure.clone().unwrap_or_else(|| "the writer stopped".into()))
            }
            Err(_) => Err("the writer stopped".into()),
        }
    }

    /// Whether any caller waits for partitions to be applied.
    pub fn is_waited_for(&self) -> bool {
        self.progress.receiver_count() > 0
    }

    /// Waits until a caller begins to wait for partitions to be applied.
    pub async fn waited_for(&self) {
        self.waiting.notified().await;
    }

    /// Upper bound for the time of every counted event, in seconds since 1970.
    pub fn newest_event_s(&self) -> i64 {
        self.newest_event_s.load(atomic::Ordering::Acquire)
    }

    pub fn saw_event(&self, time_s: i64) {
        self.newest_event_s.fetch_max(time_s, atomic::Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_failure_reaches_present_and_later_waiters() {
        let published = Published::default();
        let mut waiting = std::pin::pin!(published.failed());
        for applied in 1..3 {
            published.set_applied(0, applied);
            tokio::select! {
                biased;
                () = &mut waiting => panic!("nothing has failed"),
                () = std::future::ready(()) => {}
            }
        }

        assert!(!published.is_waited_for());
        published.fail("the disk is full");
        waiting.await;
        published.failed().await;
    }

    #[test]
    fn what_was_known_long_ago_is_outdated_until_it_is_looked_at_again() {
        let published = Published::default();
        assert!(!published.is_outdated(), "who decides the timelines knows them");
        let now = Instant::now();
        published.known_until(now);
        assert!(published.is_outdated());
        published.known_until(now + Duration::from_secs(3_600));
        assert!(!published.is_outdated());
    }

    #[test]
    fn a_timeline_splits_ranges_where_generations_change() {
        let timeline = Timeline::new(vec![(0, 1), (DAY_S, 2), (3 * DAY_S, 3)]);
        assert_eq!(
            [0, DAY_S - 1, DAY_S, 9 * DAY_S].map(|time_s| timeline.generation_at(time_s)),
            [1, 1, 2, 3]
        );
        let split: Vec<_> = timeline.split(900, 4 * DAY_S).collect();
        assert_eq!(split, [(1, 900, DAY_S), (2, DAY_S, 3 * DAY_S), (3, 3 * DAY_S, 4 * DAY_S)]);
        assert_eq!(timeline.split(5, 5).count(), 0);
        assert_eq!(timeline.plans(&Plan::new(0, 2 * DAY_S).unwrap()).unwrap().len(), 2);
        assert_eq!((timeline.only(), timeline.newest()), (None, 3));
    }
}

//! Follows the catalog and the writers of other processes: how a process of a cluster knows the
//! counters, and how far they are counted.
//!
//! ```text
//!   catalog ── revision, counters ──┐
//!                                   ├──▶ view of the counters ──▶ Published
//!   checkpoints of all partitions ──┘    how far each is applied
//! ```
//!
//! While the catalog is away, the last known counters stay in use; while the checkpoints cannot be
//! read, their last contents do for a limited time.

use crate::conductor::RETIRE_AFTER;
use crate::state::{Backfill, CounterState, Part, Progress, State, standing_of, timeline_of};
use crate::states::{PublishedState, PublishedStates, States};
use parking_lot::Mutex;
use raingauge_core::retention::Horizons;
use raingauge_core::ruleset::Ruleset;
use raingauge_ports::buckets::generation_of;
use raingauge_ports::catalog::{self, Catalog, Versioned};
use raingauge_ports::cluster::{self, Checkpoints};
use raingauge_ports::log::{Offset, Partition};
use raingauge_ports::published::{Published, Timeline, View};
use raingauge_ports::tiles::Hearing;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Interval between checks whether the catalog has changed.
const CATALOG_INTERVAL: Duration = Duration::from_millis(500);
/// Interval between reads of the checkpoints while a caller waits for them, and otherwise.
const WAITED_INTERVAL: Duration = Duration::from_millis(50);
const CHECKPOINT_INTERVAL: Duration = Duration::from_millis(500);
/// Interval between checks whether memory has caught up with a position.
const HEARING_INTERVAL: Duration = Duration::from_millis(5);
/// How long counts are answered by the last contents of the checkpoints. Later, what a backfill
/// replaced may be gone.
const KNOWN_MAX: Duration = Duration::from_secs(100);
const _: () = assert!(KNOWN_MAX.as_secs() < RETIRE_AFTER.as_secs());
/// How long a change of a counter waits for the writers.
const EFFECT_MAX: Duration = Duration::from_secs(5);

pub struct Follower {
    catalog: Arc<dyn Catalog>,
    checkpoints: Arc<dyn Checkpoints>,
    published: Arc<Published>,
    /// Number of partitions of the log.
    partitions: Partition,
    newest: watch::Sender<Arc<Vec<Versioned>>>,
    /// The catalog's revision that `newest` shows. The lock makes refreshes run one at a time.
    revision: tokio::sync::Mutex<Option<i64>>,
    states: Mutex<BTreeMap<Partition, VersionedState>>,
    /// Tiles in memory of this process, which lag a little behind the store.
    hearing: OnceLock<Arc<dyn Hearing>>,
}

/// The state that a partition's writer published, and its version.
struct VersionedState {
    version: i64,
    shown: PublishedState,
}

/// What could not be read, although it is needed before anything is answered.
#[derive(Debug, thiserror::Error)]
pub enum NotThere {
    #[error(transparent)]
    Catalog(#[from] catalog::Error),
    #[error("how far the log is counted cannot be read: {0}")]
    Checkpoints(#[from] cluster::Error),
}

impl Follower {
    /// Returns when the catalog and the checkpoints of all partitions have been read once: without
    /// the backfills' replacements, it would look for counts that are gone.
    pub async fn start(
        catalog: Arc<dyn Catalog>,
        checkpoints: Arc<dyn Checkpoints>,
        published: Arc<Published>,
        partitions: Partition,
    ) -> Result<Arc<Self>, NotThere> {
        let (newest, _) = watch::channel(Arc::default());
        let revision = tokio::sync::Mutex::default();
        let states = Mutex::default();
        let hearing = OnceLock::new();
        let follower =
            Self { catalog, checkpoints, published, partitions, newest, revision, states, hearing };
        // Only its writer knows which counted event is the newest: it may lie anywhere in the open
        // bucket.
        follower.published.saw_event(i64::MAX / 2);
        follower.refresh_counters().await?;
        follower.refresh_states().await?;
        Ok(Arc::new(follower))
    }

    /// Requires that memory has received a generation's tiles, too, before the generation answers.
    /// Call once.
    pub fn follow_hearing(&self, hearing: Arc<dyn Hearing>) {
        let _ = self.hearing.set(hearing);
    }

    /// Returns the counters as they are in the catalog.
    pub fn newest(&self) -> watch::Receiver<Arc<Vec<Versioned>>> {
        self.newest.subscribe()
    }

    /// Follows while it is polled.
    pub async fn run(&self) {
        tokio::join!(self.follow_catalog(), self.follow_checkpoints());
    }

    async fn follow_catalog(&self) {
        let mut is_away = false;
        loop {
            tokio::time::sleep(CATALOG_INTERVAL).await;
            let done = self.refresh_counters().await;
            note(
                &mut is_away,
                done,
                "the catalog is followed again",
                "the catalog is away; counters stay as they are",
            );
        }
    }

    async fn follow_checkpoints(&self) {
        let mut is_away = false;
        loop {
            let pause =
                if self.published.is_waited_for() { WAITED_INTERVAL } else { CHECKPOINT_INTERVAL };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.published.waited_for() => tokio::time::sleep(WAITED_INTERVAL).await,
            }
            let done = self.refresh_states().await;
            note(&mut is_away, done, "checkpoints are read again", "checkpoints cannot be read");
        }
    }

    pub(crate) async fn refresh_counters(&self) -> Result<(), catalog::Error> {
        let mut seen = self.revision.lock().await;
        let revision = self.catalog.revision().await?;
        if *seen != Some(revision) {
            self.newest.send_replace(Arc::new(self.catalog.list().await?));
            *seen = Some(revision);
            self.publish(&self.states.lock());
        }
        Ok(())
    }

    pub(crate) async fn refresh_states(&self) -> Result<(), cluster::Error> {
        let mut news = Vec::new();
        let mut behind_news = Vec::new();
        let asked = Instant::now();

        for included in self.checkpoints.included().await? {
            let partition = included.partition;
            let version = included.state_version;
            let position = included.position;

            if let Some(hearing) = self.hearing.get() {
                hearing.note_stored(partition, position, asked);
            }
            let known = self.states.lock().get(&partition).map(|seen| seen.version);
            if known == Some(version) {
                self.refresh_progress(partition).await?;
                self.published.set_applied(partition, position);
                continue;
            }

            let json = self.checkpoints.state(partition).await?;
            let state = Arc::new(State::from_json(&json).map_err(cluster::Error)?);
            let progress = self.progress_of(partition, &state).await?;
            self.wait_heard(partition, position).await;
            news.push((
                partition,
                VersionedState { version, shown: PublishedState::new(state, progress) },
            ));
            behind_news.push((partition, position));
        }

        if !news.is_empty() {
            self.take_up(news);
        }
        self.published.known_until(asked + KNOWN_MAX);

        // A caller that waits for an entry then reads by what the entry changed.
        behind_news
            .into_iter()
            .for_each(|(partition, position)| self.published.set_applied(partition, position));
        Ok(())
    }

    /// Publishes states, and answers by them from the same moment on.
    fn take_up(&self, news: Vec<(Partition, VersionedState)>) {
        let mut states = self.states.lock();
        states.extend(news);
        self.publish(&states);
    }

    /// Reads the progress of a partition's backfill, if it has one.
    async fn refresh_progress(&self, partition: Partition) -> Result<(), cluster::Error> {
        let Some(state) =
            self.states.lock().get(&partition).map(|seen| Arc::clone(&seen.shown.state))
        else {
            return Ok(());
        };
        if state.front().is_some() {
            let progress = self.progress_of(partition, &state).await?;
            if let Some(seen) = self.states.lock().get_mut(&partition) {
                seen.shown.progress = progress;
            }
        }
        Ok(())
    }

    /// Returns the progress of the backfill of a partition in this state, if it has one.
    async fn progress_of(
        &self,
        partition: Partition,
        state: &State,
    ) -> Result<Option<Progress>, cluster::Error> {
        match state.front() {
            Some(_) => Ok(Progress::from_json(&self.checkpoints.progress(partition).await?)),
            None => Ok(None),
        }
    }

    /// Waits until memory includes everything before a position. The wait is short, since a process
    /// that receives no tiles answers nothing from memory.
    async fn wait_heard(&self, partition: Partition, position: Offset) {
        let Some(hearing) = self.hearing.get() else {
            return;
        };
        while !hearing.has_heard(partition, position) {
            tokio::time::sleep(HEARING_INTERVAL).await;
        }
    }

    /// This process answers by the change from now on, the writers count by it, and other readers
    /// answer by it after their next check of the catalog. Writers that are away count by it when
    /// they are back.
    pub async fn take_effect(&self) -> Result<(), catalog::Error> {
        self.refresh_counters().await?;
        self.wait_in_effect().await;
        Ok(())
    }

    /// Whether the writer of every partition counts by the newest configurations, by its last
    /// checkpoint.
    fn is_in_effect(&self) -> bool {
        let newest = Arc::clone(&self.newest.borrow());
        let states = self.states.lock();
        let counts = |seen: &VersionedState| {
            let knows = |found: &Versioned| {
                let known = seen.shown.counter(found.counter.id);
                known
                    .is_some_and(|known| !known.standing().gives_way_to(&standing_of(found), false))
            };
            newest.iter().all(knows)
        };
        (0..self.partitions).all(|partition| states.get(&partition).is_some_and(counts))
    }

    /// Waits until every writer counts by the newest versions, but at most [`EFFECT_MAX`].
    async fn wait_in_effect(&self) {
        let deadline = Instant::now() + EFFECT_MAX;
        loop {
            let read = self.refresh_states().await;
            if self.is_in_effect() {
                return;
            }
            if Instant::now() >= deadline {
                tracing::warn!(away = read.is_err(), "a change of a counter waits for the writers");
                return;
            }
            tokio::time::sleep(WAITED_INTERVAL).await;
        }
    }

    fn publish(&self, states: &BTreeMap<Partition, VersionedState>) {
        let newest = Arc::clone(&self.newest.borrow());
        let answering = newest.iter().filter(|found| found.counter.state.answers());
        let ruleset = Ruleset::new(answering.map(|found| found.counter.clone()));
        let timelines =
            ruleset.rules().iter().map(|rule| timeline(states, rule.counter.id)).collect();
        let versions = newest.iter().map(|found| (found.counter.id, standing_of(found))).collect();
        self.published.set_view(Arc::new(View {
            ruleset,
            timelines,
            versions,
            beside: Vec::new(),
        }));
    }
}

/// Returns which generation answers for which time: the newest one that every partition has
/// switched to. A partition that has switched further still counts what it replaced.
fn timeline(states: &BTreeMap<Partition, VersionedState>, counter: u32) -> Timeline {
    let first = vec![(0, generation_of(counter, 0))];
    let known = || states.values().filter_map(|seen| seen.shown.counter(counter));
    let Some(number) = known().map(CounterState::answers_by).min() else {
        return Timeline::new(first);
    };
    let mut oldest = None;
    let mut kept_from = Horizons::default();

    for state in known() {
        let (parts, kept) = state.as_of(number);
        kept_from = kept_from.max(kept);

        if state.answers_by() == number || oldest.is_none() {
            oldest = Some(timeline_of(parts));
        }
    }

    oldest.unwrap_or_else(|| Timeline::new(first)).kept_from(kept_from)
}

impl States for Follower {
    fn parts(&self, counter: u32) -> Vec<(Partition, Vec<Part>)> {
        let states = self.states.lock();
        let known = || {
            states
                .iter()
                .filter_map(|(partition, seen)| Some((*partition, seen.shown.counter(counter)?)))
        };
        let Some(number) = known().map(|(_, state)| state.answers_by()).min() else {
            return Vec::new();
        };
        known().map(|(partition, state)| (partition, state.as_of(number).0.to_vec())).collect()
    }

    fn backfills(&self, counter: u32) -> Vec<(Partition, Backfill)> {
        let states = self.states.lock();
        states
            .iter()
            .filter_map(|(partition, seen)| Some((*partition, seen.shown.backfill(counter)?)))
            .collect()
    }

    fn repetitions(&self, partition: Partition) -> Vec<Offset> {
        let states = self.states.lock();
        states
            .get(&partition)
            .map(|seen| seen.shown.state.requests.repetitions().collect())
            .unwrap_or_default()
    }

    fn partitions(&self) -> Partition {
        self.partitions
    }
}

impl PublishedStates for Follower {
    fn shown(&self) -> BTreeMap<Partition, PublishedState> {
        self.states
            .lock()
            .iter()
            .map(|(partition, seen)| (*partition, seen.shown.clone()))
            .collect()
    }
}

/// Logs once that a dependency is away, and once that it is back.
fn note<E: std::fmt::Display>(is_away: &mut bool, done: Result<(), E>, back: &str, away: &str) {
    match done {
        Ok(()) if *is_away => tracing::info!("{back}"),
        Err(error) if !*is_away => tracing::warn!(%error, "{away}"),
        _ => return,
    }
    *is_away = !*is_away;
}

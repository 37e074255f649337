//! The workers of the partitions that this process is to count.
//!
//! ```text
//!   group ── partitions ──▶ fleet ──▶ worker of partition 0 ─┐
//!                             │       worker of partition 3 ─┼─▶ each with a log and a store of its own
//!   catalog ── counters ──────┴──▶ control entries           ┘
//! ```
//!
//! A partition that goes to another process is let go at once: whatever both of them write until they know is the same.

use crate::control::Control;
use crate::counters::is_known;
use crate::worker::{Options, Writer, tell_lost};
use parking_lot::Mutex;
use raingauge_ports::buckets::{BucketWriter, Generation};
use raingauge_ports::catalog::Versioned;
use raingauge_ports::clock::Clock;
use raingauge_ports::cluster::{Membership, Partitions};
use raingauge_ports::log::{EventSink, Partition};
use raingauge_ports::published::Published;
use raingauge_ports::tiles::TileFeed;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How often the fleet looks after its workers.
const TICK: Duration = Duration::from_millis(250);
/// How often readers are told of a partition that is counted here.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long a worker that ended waits before it is started again: doubled each time, up to the longest.
const RESTART_MIN: Duration = Duration::from_millis(250);
const RESTART_MAX: Duration = Duration::from_secs(10);
/// How long workers may take to commit when the process is to end.
const STOP_MAX: Duration = Duration::from_secs(8);
/// How long a change that was written to a partition may take before it is written again.
const ANNOUNCE_AGAIN: Duration = Duration::from_secs(5);

/// A worker that has run for so long is taken to have got over what ended the one before.
const SOUND_AFTER: Duration = Duration::from_secs(5);

/// Why partitions that this process should count are not counted.
pub type Troubles = Arc<Mutex<BTreeMap<Partition, String>>>;

/// Everything that the fleet works with.
pub struct Means {
    pub membership: Arc<dyn Membership>,
    pub partitions: Arc<dyn Partitions>,
    pub sink: Arc<dyn EventSink>,
    pub counters: watch::Receiver<Arc<Vec<Versioned>>>,
    pub clock: Arc<dyn Clock>,
    /// Where readers learn that tiles in memory are current.
    pub feed: Option<Arc<dyn TileFeed>>,
    pub options: Options,
}

pub struct Fleet {
    means: Means,
    assigned: watch::Receiver<Vec<Partition>>,
    running: BTreeMap<Partition, Running>,
    /// When a partition whose worker ended is to be started again, and how long it waited.
    resting: HashMap<Partition, (Instant, Duration)>,
    beaten: Option<Instant>,
    troubles: Troubles,
}

struct Running {
    writer: Arc<Writer>,
    store: Arc<dyn BucketWriter>,
    published: Arc<Published>,
    /// When which version of which counter was written to the partition.
    announced: HashMap<(u32, u32, i64), Instant>,
    /// When it was written that nothing is left of which generation.
    told_removed: HashMap<Generation, Instant>,
    began: Instant,
}

impl Fleet {
    pub fn new(means: Means) -> Self {
        let assigned = means.membership.assigned();
        let (running, resting, troubles) = (BTreeMap::new(), HashMap::new(), Troubles::default());
        Self { means, assigned, running, resting, beaten: None, troubles }
    }

    /// What keeps partitions from being counted, for those who ask.
    pub fn troubles(&self) -> Troubles {
        Arc::clone(&self.troubles)
    }

    /// Counts what is assigned until `stopping` turns true, then commits and leaves the group.
    pub async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        let mut counters = self.means.counters.clone();
        while !*stopping.borrow() {
            self.reconcile().await;
            self.announce().await;
            self.tell_removed().await;
            tokio::select! {
                _ = self.assigned.changed() => {}
                _ = counters.changed() => {}
                _ = stopping.changed() => {}
                () = tokio::time::sleep(TICK) => {}
            }
        }
        self.stop_all().await;
        let membership = Arc::clone(&self.means.membership);
        let _ = tokio::task::spawn_blocking(move || membership.leave()).await;
    }

    /// Lets every worker commit, as long as that may take, and ends them.
    async fn stop_all(&mut self) {
        let running = std::mem::take(&mut self.running);
        let stores: Vec<Arc<dyn BucketWriter>> = running.values().map(|running| Arc::clone(&running.store)).collect();
        let stops: Vec<_> = running.into_values().map(|running| tokio::spawn(running.stop())).collect();
        let ended = async {
            for stop in stops {
                let _ = stop.await;
            }
        };
        tokio::pin!(ended);
        if tokio::time::timeout(STOP_MAX, &mut ended).await.is_err() {
            tracing::warn!("what could not be stored in time is counted by whoever counts the partitions next");
            stores.iter().for_each(|store| store.give_up());
            ended.await;
        }
    }

    /// Lets go of what is somebody else's by now, and starts what is new or has ended.
    async fn reconcile(&mut self) {
        let assigned = self.assigned.borrow_and_update().clone();
        let gone: Vec<Partition> = self.running.keys().filter(|own| !assigned.contains(own)).copied().collect();
        for partition in gone {
            if let Some(running) = self.running.remove(&partition) {
                tracing::info!(partition, "a partition is counted by another process from now on");
                running.store.give_up();
                let _ = running.stop().await;
            }
        }
        self.forget_troubles(&assigned);
        for (partition, running) in &self.running {
            self.means.membership.committed(*partition, running.writer.committed());
        }
        self.beat();
        for partition in &assigned {
            self.look_after(*partition).await;
        }
        metrics::gauge!("raingauge_partitions_counted").set(self.running.len() as f64);
    }

    /// What is counted again, or is somebody else's, troubles this process no more.
    fn forget_troubles(&self, assigned: &[Partition]) {
        let is_sound = |partition: &Partition| {
            self.running
                .get(partition)
                .is_some_and(|running| running.began.elapsed() >= SOUND_AFTER && running.published.failure().is_none())
        };
        self.troubles.lock().retain(|partition, _| {
            let stays = assigned.contains(partition) && !is_sound(partition);
            if !stays {
                tell_lost(*partition, 0);
            }
            stays
        });
    }

    fn note_trouble(&self, partition: Partition, reason: &str) {
        self.troubles.lock().insert(partition, reason.to_owned());
    }

    /// Tells readers of every partition that is counted here, that they have heard of all its tiles: they are told with each
    /// commit, and also while there is nothing to commit, or the store is away.
    fn beat(&mut self) {
        let Some(feed) = &self.means.feed else { return };
        if self.beaten.is_some_and(|last| last.elapsed() < HEARTBEAT) {
            return;
        }
        self.beaten = Some(Instant::now());
        for (partition, running) in &self.running {
            feed.beat(*partition, running.writer.committed(), self.means.clock.machine_ms());
        }
    }

    async fn look_after(&mut self, partition: Partition) {
        if let Some(running) = self.running.get(&partition) {
            let Some(reason) = running.published.failure() else { return };
            tracing::warn!(partition, %reason, "the worker of a partition ended; it is started again");
            self.note_trouble(partition, &reason);
            let lasted = running.began.elapsed();
            self.running.remove(&partition);
            let pause = self.resting.get(&partition).map_or(RESTART_MIN, |(_, pause)| (*pause * 2).min(RESTART_MAX));
            let pause = if lasted > RESTART_MAX { RESTART_MIN } else { pause };
            self.resting.insert(partition, (Instant::now() + pause, pause));
        }
        if self.resting.get(&partition).is_some_and(|(until, _)| Instant::now() < *until) {
            return;
        }
        match self.start(partition).await {
            Ok(running) => {
                tracing::info!(partition, "a partition is counted here from now on");
                self.running.insert(partition, running);
            }
            Err(reason) => {
                tracing::warn!(partition, %reason, "a partition cannot be counted yet");
                self.note_trouble(partition, &reason);
                self.resting.insert(partition, (Instant::now() + RESTART_MAX / 10, RESTART_MIN));
            }
        }
    }

    async fn start(&self, partition: Partition) -> Result<Running, String> {
        let Means { partitions, clock, options, .. } = &self.means;
        let (partitions, clock, options) = (Arc::clone(partitions), Arc::clone(clock), options.clone());
        let start = move || {
            let log = partitions.log(partition).map_err(|error| error.to_string())?;
            let store = partitions.store(partition);
            let published = Arc::new(Published::default());
            let writer = Writer::start(log, Arc::clone(&store), Arc::clone(&published), clock, options);
            let writer = Arc::new(writer.map_err(|error| error.to_string())?);
            Ok(Running {
                writer,
                store,
                published,
                announced: HashMap::new(),
                told_removed: HashMap::new(),
                began: Instant::now(),
            })
        };
        tokio::task::spawn_blocking(start).await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Writes changes of counters to the partitions that do not know them, where they take effect in order with the events.
    async fn announce(&mut self) {
        let counters = Arc::clone(&self.means.counters.borrow());
        for (partition, running) in &mut self.running {
            for found in counters.iter() {
                if is_known(&running.published.view(), found) {
                    continue;
                }
                let change = (found.counter.id, found.version, found.changed_at);
                if running.announced.get(&change).is_some_and(|at| at.elapsed() < ANNOUNCE_AGAIN) {
                    continue;
                }
                let control = Control::counter(found.version, found.changed_at, found.counter.clone());
                match self.means.sink.append_control(*partition, control.to_json()).await {
                    Ok(_) => drop(running.announced.insert(change, Instant::now())),
                    Err(error) => {
                        tracing::warn!(partition, %error, "a change of a counter waits for the log");
                        return;
                    }
                }
            }
        }
    }

    /// Writes of which retired generations nothing is left to the partitions that they belonged to.
    async fn tell_removed(&mut self) {
        for (partition, running) in &mut self.running {
            running.told_removed.retain(|_, at| at.elapsed() < ANNOUNCE_AGAIN);
            for generation in running.writer.removed() {
                if running.told_removed.contains_key(&generation) {
                    continue;
                }
                let control = Control::Removed { generation };
                match self.means.sink.append_control(*partition, control.to_json()).await {
                    Ok(_) => drop(running.told_removed.insert(generation, Instant::now())),
                    Err(error) => return tracing::debug!(partition, %error, "what was removed is told later"),
                }
            }
        }
    }
}

impl Running {
    /// Commits, and ends the worker's thread.
    async fn stop(self) -> Result<(), tokio::task::JoinError> {
        tokio::task::spawn_blocking(move || self.writer.stop()).await
    }
}

//! One partition that is assigned to this process: a task that starts its worker, restarts it when
//! it ends, and stops it.

use super::lag::{Lag, LagMeter};
use super::{Deps, Troubles, Workers};
use crate::control::Control;
use crate::state::is_known;
use crate::worker::Handle;
use parking_lot::Mutex;
use raingauge_ports::buckets::{BucketWriter, Generation};
use raingauge_ports::catalog::Versioned;
use raingauge_ports::log::{self, EventLog, Offset, Partition};
use raingauge_ports::published::Published;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};

/// How long a worker that ended waits for its restart: doubled each time, up to the longest.
const RESTART_MIN: Duration = Duration::from_millis(250);
const RESTART_MAX: Duration = Duration::from_secs(10);
/// A worker that has run for this long has overcome what ended its predecessor.
const SOUND_AFTER: Duration = Duration::from_secs(5);
/// How often the task checks that the partition knows all counters.
const ANNOUNCE: Duration = Duration::from_millis(250);
/// How long a change that was written to a partition may take before it is written again.
const ANNOUNCE_AGAIN: Duration = Duration::from_secs(5);
/// Changes that are written to a partition at once.
const ANNOUNCED_AT_ONCE: usize = 64;

/// Whether and how a seat is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    Stay,
    /// When what was counted is committed.
    Committed,
    /// Another process counts the partition.
    AtOnce,
}

pub struct Seat {
    place: Arc<Place>,
    leave: watch::Sender<Leave>,
    task: JoinHandle<()>,
    meter: LagMeter,
}

/// What a seat has.
pub struct Place {
    partition: Partition,
    deps: Arc<Deps>,
    workers: Workers,
    troubles: Troubles,
    engines: Mutex<Engines>,
}

/// A version of a counter: its id, its number, and when the catalog took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CounterVersion(u32, u32, i64);

impl CounterVersion {
    fn of(found: &Versioned) -> Self {
        Self(found.counter.id, found.version, found.changed_at)
    }
}

#[derive(Default)]
struct Engines {
    log: Option<Arc<dyn EventLog>>,
    store: Option<Arc<dyn BucketWriter>>,
    worker: Option<Arc<Handle>>,
    /// An offset that was stored, and the time before which nothing from there on was appended.
    known: (Offset, i64),
    began: Option<Instant>,
}

impl Seat {
    /// Begins to count a partition, when the task of the previous seat has ended.
    pub fn take(
        partition: Partition,
        deps: Arc<Deps>,
        workers: Workers,
        troubles: Troubles,
        before: Option<JoinHandle<()>>,
    ) -> Self {
        let place =
            Arc::new(Place { partition, deps, workers, troubles, engines: Mutex::default() });
        let (leave, left) = watch::channel(Leave::Stay);
        let kept = Arc::clone(&place);
        let task = tokio::spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            kept.keep(left).await;
        });
        Self { place, leave, task, meter: LagMeter::default() }
    }

    /// Makes the task end. Does not wait for it.
    pub fn leave(&self, how: Leave) {
        self.leave.send_replace(how);
        // A worker that is being started has nothing to commit.
        if how == Leave::AtOnce || !self.is_running() {
            self.place.give_up();
        }
    }

    pub fn into_parts(self) -> (Arc<Place>, JoinHandle<()>) {
        (self.place, self.task)
    }

    pub fn is_running(&self) -> bool {
        self.place.engines.lock().worker.is_some()
    }

    /// Whether the worker has run for [`SOUND_AFTER`].
    pub fn is_sound(&self) -> bool {
        let engines = self.place.engines.lock();
        engines.worker.is_some()
            && engines.began.is_some_and(|began| began.elapsed() >= SOUND_AFTER)
    }

    /// The stored position of the partition.
    pub fn committed(&self) -> Offset {
        let stored = self.place.deps.stored.applied(self.place.partition);
        let engines = self.place.engines.lock();
        engines
            .worker
            .as_ref()
            .map_or(0, |worker| worker.committed())
            .max(stored)
            .max(engines.known.0)
    }

    /// The lag of the partition; `None` while its end is not known.
    pub fn measure(&mut self, now_ms: i64) -> Option<Lag> {
        let committed = self.committed();
        let engines = self.place.engines.lock();
        let log = engines.log.as_ref()?;
        let of_worker = engines.worker.as_ref().map_or(0, |worker| worker.committed_ms());
        // Entries that the log has dropped no longer wait.
        let from = committed.max(log.start());
        Some(self.meter.measure(now_ms, log.end(), from, of_worker.max(engines.known.1)))
    }
}

impl Place {
    /// Interrupts what the log and the store wait for.
    pub fn give_up(self: &Arc<Self>) {
        let engines = self.engines.lock();
        if let Some(store) = &engines.store {
            store.give_up();
        }
        if let Some(log) = &engines.log {
            log.stop_waiting();
        }
    }

    /// Keeps a worker running until the seat is left.
    async fn keep(self: &Arc<Self>, mut left: watch::Receiver<Leave>) {
        let mut pause = RESTART_MIN;
        while *left.borrow() == Leave::Stay {
            let began = Instant::now();
            pause = match self.start(&left).await {
                Ok((worker, published)) => {
                    tracing::info!(
                        partition = self.partition,
                        "a partition is counted here from now on"
                    );
                    let reason = self.attend(&worker, &published, &mut left).await;
                    self.end(worker).await;

                    let Some(reason) = reason else { break };
                    tracing::warn!(
                        partition = self.partition,
                        %reason,
                        "the worker of a partition ended; it is started again"
                    );
                    self.report(&left, reason.to_string());

                    if began.elapsed() > RESTART_MAX {
                        RESTART_MIN
                    } else {
                        (pause * 2).min(RESTART_MAX)
                    }
                }
                Err(_) if *left.borrow() != Leave::Stay => break,
                Err(reason) => {
                    tracing::warn!(
                        partition = self.partition,
                        %reason,
                        "a partition cannot be counted yet"
                    );
                    self.report(&left, reason);
                    RESTART_MAX / 10
                }
            };

            let _ = tokio::time::timeout(pause, left.wait_for(|leave| *leave != Leave::Stay)).await;
        }
    }

    /// Reports what keeps the partition from being counted, unless the seat was left: who leaves
    /// it says so first and removes its trouble then, and a trouble added later would stay.
    fn report(&self, left: &watch::Receiver<Leave>, reason: String) {
        let mut troubles = self.troubles.lock();
        if *left.borrow() == Leave::Stay {
            troubles.insert(self.partition, reason);
        }
    }

    /// Opens the log and the store, and starts a worker on them.
    async fn start(
        self: &Arc<Self>,
        left: &watch::Receiver<Leave>,
    ) -> Result<(Arc<Handle>, Arc<Published>), String> {
        let place = Arc::clone(self);
        let left = left.clone();
        let start = move || {
            let log =
                place.deps.partitions.log(place.partition).map_err(|error| error.to_string())?;
            let store = place.deps.partitions.store(place.partition);
            {
                let mut engines = place.engines.lock();
                engines.log = Some(Arc::clone(&log));
                engines.store = Some(Arc::clone(&store));
            }

            // Leaving before this could not interrupt the store.
            if *left.borrow() != Leave::Stay {
                return Err("the partition was left".to_owned());
            }
            place.learn_age(&*log);

            let published = Arc::new(Published::default());
            let clock = Arc::clone(&place.deps.clock);
            let options = place.deps.options.clone();
            let worker = Handle::start(log, store, Arc::clone(&published), clock, options);
            let worker = Arc::new(worker.map_err(|error| error.to_string())?);

            let mut engines = place.engines.lock();
            engines.worker = Some(Arc::clone(&worker));
            engines.began = Some(Instant::now());
            place.workers.lock().insert(place.partition, Arc::clone(&worker));

            Ok((worker, published))
        };

        spawn_blocking(start).await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Learns the age of the first entry that is not stored: the worker knows only what it has
    /// read.
    fn learn_age(&self, log: &dyn EventLog) {
        let stored = self.deps.stored.applied(self.partition);
        if stored < log.end()
            && let Some(appended_ms) = log.appended_ms(stored)
        {
            self.engines.lock().known = (stored, appended_ms);
        }
    }

    /// Watches a worker until it fails, and returns the reason, or until the seat is left.
    /// Announces changed counters to it.
    async fn attend(
        &self,
        worker: &Handle,
        published: &Published,
        left: &mut watch::Receiver<Leave>,
    ) -> Option<Arc<str>> {
        tokio::select! {
            _ = left.wait_for(|leave| *leave != Leave::Stay) => None,
            () = published.failed() => published.failure(),
            () = self.announce(worker, published) => None,
        }
    }

    /// Commits as far as the store allows, and ends the worker's thread.
    async fn end(&self, worker: Arc<Handle>) {
        self.workers.lock().remove(&self.partition);
        let _ = spawn_blocking(move || worker.stop()).await;
        let mut engines = self.engines.lock();
        let known = engines.worker.take().map(|worker| (worker.committed(), worker.committed_ms()));
        engines.known = engines.known.max(known.unwrap_or_default());
        engines.store = None;
    }

    /// Writes to the partition what it does not know, where it takes effect in order with the
    /// events: changes of counters, and which retired generations have been removed. Never ends.
    async fn announce(&self, worker: &Handle, published: &Published) {
        let mut counters = self.deps.counters.clone();
        let mut announced = HashMap::<CounterVersion, Instant>::new();
        let mut removed = HashMap::new();

        loop {
            let newest = Arc::clone(&counters.borrow_and_update());
            let view = Arc::clone(&published.view());
            announced.retain(|_, at| at.elapsed() < ANNOUNCE_AGAIN);

            let is_missing = |found: &&Versioned| {
                !is_known(&view, found) && !announced.contains_key(&CounterVersion::of(found))
            };

            let missing: Vec<&Versioned> = newest.iter().filter(is_missing).collect();
            for some in missing.chunks(ANNOUNCED_AT_ONCE) {
                if let Err(error) = self.write(some, &mut announced).await {
                    tracing::warn!(
                        partition = self.partition,
                        %error,
                        "a change of a counter waits for the log"
                    );
                    break;
                }
            }

            if let Err(error) = self.tell_removed(worker, &mut removed).await {
                tracing::debug!(
                    partition = self.partition,
                    %error,
                    "removed generations are announced later"
                );
            }

            tokio::select! {
                Ok(()) = counters.changed() => {}
                () = tokio::time::sleep(ANNOUNCE) => {}
            }
        }
    }

    async fn tell_removed(
        &self,
        worker: &Handle,
        told: &mut HashMap<Generation, Instant>,
    ) -> Result<(), log::Error> {
        told.retain(|_, at| at.elapsed() < ANNOUNCE_AGAIN);
        for generation in worker.removed() {
            let Entry::Vacant(untold) = told.entry(generation) else {
                continue;
            };
            let control = Control::Removed { generation }.to_json();
            self.deps.sink.append_control(self.partition, control).await?;
            untold.insert(Instant::now());
        }
        Ok(())
    }

    /// Writes some changes side by side. They concern different counters, so that their order does
    /// not matter.
    async fn write(
        &self,
        changes: &[&Versioned],
        announced: &mut HashMap<CounterVersion, Instant>,
    ) -> Result<(), log::Error> {
        let mut writes = JoinSet::new();
        for found in changes {
            let sink = Arc::clone(&self.deps.sink);
            let partition = self.partition;
            let change = CounterVersion::of(found);
            let control =
                Control::counter(found.version, found.changed_at, found.counter.clone()).to_json();

            writes.spawn(
                async move { sink.append_control(partition, control).await.map(|_| change) },
            );
        }

        while let Some(written) = writes.join_next().await {
            match written {
                Ok(change) => drop(announced.insert(change?, Instant::now())),
                Err(error) => tracing::debug!(%error, "a change of a counter was not written"),
            }
        }

        Ok(())
    }
}

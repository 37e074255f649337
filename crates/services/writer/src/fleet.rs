//! The workers of the partitions that are assigned to this process.
//!
//! ```text
//!   group ── partitions ──▶ fleet ──▶ seat of partition 0 ──▶ worker ─┐
//!                             │       seat of partition 3 ──▶ worker ─┼─▶ a log and a store each
//!                             │         ▲                             ┘
//!   catalog ── counters ──────┼─────────┴──▶ control entries
//!   timer ────────────────────┴──▶ heartbeats, lag
//! ```
//!
//! A partition that goes to another process is released at once: what both of them write until then
//! is the same. Each partition has a task of its own that starts, watches and stops its worker; the
//! fleet itself never waits for one.

mod lag;
mod seat;

use crate::worker::{Handle, Options, tell_lost};
use lag::Lag;
use parking_lot::Mutex;
use raingauge_ports::catalog::Versioned;
use raingauge_ports::clock::{Clock, every};
use raingauge_ports::cluster::{Membership, Partitions};
use raingauge_ports::log::{EventSink, Offset, Partition};
use raingauge_ports::published::Published;
use raingauge_ports::tiles::TileFeed;
use seat::{Leave, Seat};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How often the fleet checks its workers.
const TICK: Duration = Duration::from_millis(250);
/// How often readers are notified of a partition that is counted here.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long workers may take to commit when the process stops.
const STOP_MAX: Duration = Duration::from_secs(8);

/// Why partitions that this process should count are not counted.
pub type Troubles = Arc<Mutex<BTreeMap<Partition, String>>>;

/// The running workers.
type Workers = Arc<Mutex<BTreeMap<Partition, Arc<Handle>>>>;

/// Everything that the fleet works with.
pub struct Deps {
    pub membership: Arc<dyn Membership>,
    pub partitions: Arc<dyn Partitions>,
    pub sink: Arc<dyn EventSink>,
    pub counters: watch::Receiver<Arc<Vec<Versioned>>>,
    pub clock: Arc<dyn Clock>,
    /// The stored position of each partition, as far as this process knows it without its workers.
    pub stored: Arc<Published>,
    /// Notifies readers that tiles in memory are current.
    pub feed: Option<Arc<dyn TileFeed>>,
    pub options: Options,
    /// A partition in which events wait while nothing is committed for this long is not counted.
    pub stalled_after: Duration,
}

pub struct Fleet {
    deps: Arc<Deps>,
    assigned: watch::Receiver<Vec<Partition>>,
    seats: BTreeMap<Partition, Seat>,
    /// The tasks of seats that were left, until their workers have ended.
    leaving: BTreeMap<Partition, JoinHandle<()>>,
    workers: Workers,
    /// The positions that the group was notified of last.
    told: BTreeMap<Partition, Offset>,
    troubles: Troubles,
    /// Partitions whose trouble is that nothing is committed.
    stalled: BTreeSet<Partition>,
}

impl Fleet {
    pub fn new(deps: Deps) -> Self {
        Self {
            assigned: deps.membership.assigned(),
            deps: Arc::new(deps),
            seats: BTreeMap::new(),
            leaving: BTreeMap::new(),
            workers: Workers::default(),
            told: BTreeMap::new(),
            troubles: Troubles::default(),
            stalled: BTreeSet::new(),
        }
    }

    /// What keeps partitions from being counted.
    pub fn troubles(&self) -> Troubles {
        Arc::clone(&self.troubles)
    }

    /// Counts what is assigned until `stopping` turns true, then commits and leaves the group.
    pub async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        let beats = tokio::spawn(beat(Arc::clone(&self.deps), Arc::clone(&self.workers)));
        while !*stopping.borrow() {
            self.reconcile();
            self.measure();
            tokio::select! {
                _ = self.assigned.changed() => {}
                _ = stopping.changed() => {}
                () = tokio::time::sleep(TICK) => {}
            }
        }

        self.stop_all().await;
        beats.abort();

        let membership = Arc::clone(&self.deps.membership);
        let _ = tokio::task::spawn_blocking(move || membership.leave()).await;
    }

    /// Lets every worker commit, for at most [`STOP_MAX`], and ends them.
    async fn stop_all(&mut self) {
        let seats = std::mem::take(&mut self.seats);
        seats.values().for_each(|seat| seat.leave(Leave::Committed));

        let (stores, tasks): (Vec<_>, Vec<_>) = seats.into_values().map(Seat::into_parts).unzip();
        let tasks: Vec<_> =
            tasks.into_iter().chain(std::mem::take(&mut self.leaving).into_values()).collect();

        let ended = async {
            for task in tasks {
                let _ = task.await;
            }
        };

        tokio::pin!(ended);

        if tokio::time::timeout(STOP_MAX, &mut ended).await.is_err() {
            tracing::warn!(
                "what could not be stored in time is counted by the next writer of the partitions"
            );
            stores.iter().for_each(seat::Place::give_up);
            ended.await;
        }
    }

    /// Releases the partitions that are assigned to another process by now, and takes new ones.
    fn reconcile(&mut self) {
        let assigned = self.assigned.borrow_and_update().clone();
        let gone: Vec<Partition> =
            self.seats.keys().filter(|own| !assigned.contains(own)).copied().collect();
        for partition in gone {
            self.let_go(partition);
        }

        self.leaving.retain(|_, task| !task.is_finished());

        for partition in assigned {
            let before = &mut self.leaving;
            self.seats.entry(partition).or_insert_with(|| {
                Seat::take(
                    partition,
                    Arc::clone(&self.deps),
                    Arc::clone(&self.workers),
                    Arc::clone(&self.troubles),
                    before.remove(&partition),
                )
            });
        }
    }

    fn let_go(&mut self, partition: Partition) {
        let Some(seat) = self.seats.remove(&partition) else {
            return;
        };
        tracing::info!(partition, "a partition is counted by another process from now on");
        seat.leave(Leave::AtOnce);
        self.leaving.insert(partition, seat.into_parts().1);
        self.told.remove(&partition);
        self.troubles.lock().remove(&partition);
        self.stalled.remove(&partition);
        // The next writer of the partition measures its lag.
        tell_lost(partition, 0);
        Lag::default().tell(partition);
    }

    /// Measures the lag of each partition, whatever its worker does or waits for.
    fn measure(&mut self) {
        let now_ms = self.deps.clock.machine_ms();
        let mut counted = 0;
        for (partition, seat) in &mut self.seats {
            let Some(lag) = seat.measure(now_ms) else {
                continue;
            };
            lag.tell(*partition);

            let committed = seat.committed();
            if seat.is_running() && self.told.insert(*partition, committed) != Some(committed) {
                self.deps.membership.committed(*partition, committed);
            }

            let is_stalled =
                lag.events > 0 && lag.still_ms >= self.deps.stalled_after.as_millis() as i64;
            counted += usize::from(seat.is_running() && !is_stalled);

            let mut troubles = self.troubles.lock();
            if is_stalled && (self.stalled.contains(partition) || !troubles.contains_key(partition))
            {
                if self.stalled.insert(*partition) {
                    tracing::error!(
                        partition,
                        events = lag.events,
                        still_ms = lag.still_ms,
                        "counting stands still"
                    );
                }
                troubles.insert(*partition, lag.sentence());
            } else if !is_stalled && (self.stalled.remove(partition) || seat.is_sound()) {
                troubles.remove(partition);
                tell_lost(*partition, 0);
            }
        }

        metrics::gauge!("raingauge_partitions_counted").set(counted as f64);
    }
}

/// Notifies readers that they have received all tiles of every partition that is counted here: each
/// commit does so, and this also while there is nothing to commit, or the store is away.
async fn beat(deps: Arc<Deps>, workers: Workers) {
    let Some(feed) = &deps.feed else { return };
    let round = || async {
        for (partition, worker) in &*workers.lock() {
            feed.beat(*partition, worker.committed(), deps.clock.machine_ms());
        }
    };
    every(HEARTBEAT, round).await;
}

#[cfg(test)]
pub(crate) mod tests;

//! The tasks of all destinations, and the handle of the service.

use crate::destination::{Destination, Target};
use crate::documents::{Destinations, StoppedCampaigns};
use crate::local_worker::{LocalTarget, LocalWorker};
use crate::log_target::LogTarget;
use crate::points_target::{NoPoints, PointsTarget};
use crate::probe::{self, Probe};
use crate::results::Results;
use crate::shared::{GoneDestination, Shared};
use crate::status::{DestinationStatus, Place};
use crate::worker::Worker;
use crate::{destination, stopped};
use parking_lot::Mutex;
use raingauge_ports::campaigns::sender::Sender;
use raingauge_ports::campaigns::{self, Outbox};
use raingauge_ports::clock::{Clock, every};
use raingauge_ports::log::EventSink;
use raingauge_ports::points::Points;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

/// How often backlogs are measured.
const MEASURE_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no destination {0}")]
    DestinationUnknown(String),
    /// A part of this process is not asked.
    #[error("the destination {0} is a part of this service, which needs no probe")]
    NotHttp(String),
    #[error(transparent)]
    Ledger(#[from] campaigns::Error),
}

/// What the service is built on.
pub struct Deps {
    pub outbox: Arc<dyn Outbox>,
    pub sender: Arc<dyn Sender>,
    pub destinations: watch::Receiver<Destinations>,
    /// Complete from the start on, so that nothing of a paused campaign is sent.
    pub stopped: watch::Receiver<Arc<StoppedCampaigns>>,
    /// Takes the events that campaigns emit.
    pub log: Arc<dyn EventSink>,
    /// Takes the points that campaigns grant; `None` where this process has no ledger of points.
    pub points: Option<Arc<dyn Points>>,
    /// Told which destinations are gone, so that their documents can say so.
    pub gone: mpsc::UnboundedSender<GoneDestination>,
    pub clock: Arc<dyn Clock>,
}

/// The parts of this process that are destinations.
#[derive(Clone)]
struct Local {
    log: Arc<dyn EventSink>,
    points: Option<Arc<dyn Points>>,
}

/// The running service. It continues when the handle is dropped.
#[derive(Clone)]
pub struct Deliveries(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    running: Mutex<BTreeMap<String, Running>>,
    stop: watch::Sender<bool>,
    task: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

/// The task of a destination.
struct Running {
    place: Arc<Place>,
    documents: watch::Sender<Arc<Destination>>,
}

impl Deliveries {
    /// Starts the service, on the runtime of the caller.
    pub fn start(deps: Deps) -> Self {
        let Deps { outbox, sender, mut destinations, stopped, log, points, gone, clock } = deps;
        let local = Local { log, points };
        let shared = Shared { outbox, sender, stopped, clock, results: Results::default(), gone };
        let inner = Arc::new(Inner {
            shared: Arc::new(shared),
            running: Mutex::default(),
            stop: watch::Sender::new(false),
            task: tokio::sync::Mutex::default(),
        });

        let mut tasks = JoinSet::new();
        inner.reconcile(destinations.borrow_and_update().clone(), &local, &mut tasks);
        let task = tokio::spawn(supervise(Arc::clone(&inner), destinations, local, tasks));
        let changes = tokio::spawn(stopped::run(Arc::clone(&inner.shared), inner.stop.subscribe()));
        let own = Arc::clone(&inner);
        let measured = tokio::spawn(every(MEASURE_EVERY, move || {
            let own = Arc::clone(&own);
            async move { own.measure().await }
        }));
        let ended = async move {
            let result = task.await;
            for task in [changes, measured] {
                task.abort();
                // It is cancelled, or has ended before.
                let _ = task.await;
            }
            if let Err(error) = result {
                tracing::error!(%error, "the deliveries of campaigns have ended");
            }
        };
        *inner.task.try_lock().expect("nobody else has it") = Some(tokio::spawn(ended));

        Self(inner)
    }

    /// The destinations as they are sent to now, by name.
    pub async fn statuses(&self) -> Result<Vec<DestinationStatus>, Error> {
        let mut statuses = Vec::new();
        for (name, place) in self.0.places() {
            statuses.push(place.status(&name, &self.0.shared).await?);
        }
        Ok(statuses)
    }

    pub async fn status(&self, name: &str) -> Result<DestinationStatus, Error> {
        let place = self.0.with(name, |running| Arc::clone(&running.place))?;
        Ok(place.status(name, &self.0.shared).await?)
    }

    /// Sends a signed request that means nothing, at once, whatever the destination waits for.
    pub async fn probe(&self, name: &str) -> Result<Probe, Error> {
        let destination = self.0.with(name, |running| running.documents.borrow().clone())?;
        if !matches!(destination.target, Target::Http(_)) {
            return Err(Error::NotHttp(name.to_owned()));
        }
        Ok(probe::probe(&destination, &*self.0.shared.sender, &*self.0.shared.clock).await)
    }

    /// Ends the service when the requests that are under way have ended and all results are stored.
    pub async fn stop(&self) {
        self.0.stop.send_replace(true);
        if let Some(task) = self.0.task.lock().await.take() {
            // It reports its end itself.
            let _ = task.await;
        }
    }
}

impl Inner {
    fn with<T>(&self, name: &str, get: impl FnOnce(&Running) -> T) -> Result<T, Error> {
        let running = self.running.lock();
        running.get(name).map(get).ok_or_else(|| Error::DestinationUnknown(name.to_owned()))
    }

    fn places(&self) -> Vec<(String, Arc<Place>)> {
        let running = self.running.lock();
        running.iter().map(|(name, running)| (name.clone(), Arc::clone(&running.place))).collect()
    }

    async fn measure(&self) {
        for (name, place) in self.places() {
            match place.status(&name, &self.shared).await {
                Ok(status) => status.measure(self.shared.clock.now_ms()),
                Err(error) => {
                    tracing::warn!(destination = name, %error, "a backlog cannot be measured");
                }
            }
        }
    }

    /// Starts, changes and ends tasks, so that each destination has one.
    fn reconcile(&self, mut wanted: Destinations, local: &Local, tasks: &mut JoinSet<()>) {
        if wanted.iter().all(|destination| destination.name != destination::LOG) {
            wanted.push(Arc::new(Destination::log()));
        }

        let mut running = self.running.lock();
        // A task ends when the sender of its document is gone.
        running.retain(|name, running| {
            let kept = running.documents.borrow().clone();
            let is_wanted = wanted.iter().any(|destination| {
                destination.name == *name && destination.target.is_served_as(&kept.target)
            });
            is_wanted && !running.documents.is_closed()
        });

        for destination in wanted {
            match running.get(&destination.name) {
                Some(running) => {
                    running.place.follow(&destination);
                    running.documents.send_if_modified(|current| {
                        let is_changed = **current != *destination;
                        *current = destination;
                        is_changed
                    });
                }
                None => {
                    let name = destination.name.clone();
                    running.insert(name, self.start(destination, local, tasks));
                }
            }
        }
    }

    fn start(
        &self,
        destination: Arc<Destination>,
        local: &Local,
        tasks: &mut JoinSet<()>,
    ) -> Running {
        let place = Arc::new(Place::default());
        place.follow(&destination);
        let shared = Arc::clone(&self.shared);
        let stop = self.stop.subscribe();
        let (documents, changes) = watch::channel(Arc::clone(&destination));

        match local.target(&destination.target) {
            None => {
                tasks.spawn(Worker::new(shared, Arc::clone(&place), changes).run(stop));
            }
            Some(target) => {
                let name = destination.name.clone();
                let place = Arc::clone(&place);
                let worker = LocalWorker { shared, place, name, target, documents: changes };
                tasks.spawn(worker.run(stop));
            }
        }

        Running { place, documents }
    }
}

impl Local {
    /// The part of this process that a target is; `None` for a target elsewhere.
    fn target(&self, target: &Target) -> Option<Box<dyn LocalTarget>> {
        match target {
            Target::Http(_) => None,
            Target::Log => Some(Box::new(LogTarget(Arc::clone(&self.log)))),
            Target::Points(programme) => Some(match &self.points {
                Some(points) => Box::new(PointsTarget {
                    points: Arc::clone(points),
                    programme: programme.clone(),
                }),
                None => Box::new(NoPoints),
            }),
        }
    }
}

/// Runs a task for each destination until the service is stopped, and waits for their ends.
async fn supervise(
    inner: Arc<Inner>,
    mut destinations: watch::Receiver<Destinations>,
    local: Local,
    mut tasks: JoinSet<()>,
) {
    let shared = Arc::clone(&inner.shared);
    let results = tokio::spawn(async move { shared.results.run(&*shared.outbox).await });
    let mut stop = inner.stop.subscribe();
    let mut is_followed = true;

    while !*stop.borrow() {
        tokio::select! {
            changed = destinations.changed(), if is_followed => is_followed = changed.is_ok(),
            _ = stop.changed() => continue,
            Some(Err(error)) = tasks.join_next() => {
                tracing::error!(%error, "the task of a destination has ended, and begins again");
            }
        }

        let wanted = destinations.borrow_and_update().clone();
        inner.reconcile(wanted, &local, &mut tasks);
    }

    while tasks.join_next().await.is_some() {}
    inner.shared.results.close();
    if let Err(error) = results.await {
        tracing::error!(%error, "results of deliveries are lost; they are sent again");
    }
}

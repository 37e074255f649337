//! The threads and tasks of the service.

use crate::awards::Awards;
use crate::deps::{Deps, Options};
use crate::error::Error;
use crate::handle::{Handle, Started};
use crate::inflow::Inflow;
use crate::members::Members;
use crate::notifier::Notifier;
use crate::observer::Observer;
use crate::places::Places;
use crate::publisher::Publisher;
use crate::retry::Retry;
use crate::shared::Shared;
use crate::sweeper::Sweeper;
use crate::tail::Tail;
use crate::teller::{Progress, Worker};
use raingauge_ports::log::EventLog;
use raingauge_ports::points;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait for new entries of the log, after which a request to stop is noticed.
const WAIT: Duration = Duration::from_millis(100);
/// Pause after an error, before the teller continues behind its last turn.
const PAUSE: Duration = Duration::from_secs(1);

/// The service of points, of which a process has one.
pub struct Teller;

impl Teller {
    /// Reads what is in force and starts the threads and tasks of the service. Blocks the thread,
    /// which must not be one of the runtime's own.
    pub fn start(deps: Deps, options: Options) -> Result<Handle, Error> {
        let shared = Arc::new(Shared::new(options.waiting_max));
        let worker = Worker::open(deps.clone(), options.clone(), Arc::clone(&shared))?;
        let sweeper = Sweeper::new(deps.clone(), options.clone(), Arc::clone(&shared));
        let sweeper = Arc::new(sweeper);

        let mut threads = vec![spawn("teller", move || run(worker))?];
        if let Some(log) = deps.log.clone() {
            let own = Arc::clone(&shared);
            threads.push(spawn("teller-log", move || wake(&*log, &own))?);
        }
        let mut tasks = tasks(&deps, &options, &shared, &sweeper);
        let places =
            (!deps.partitions.is_empty()).then(|| Arc::new(Places::new(Arc::clone(&deps.books))));
        if let Some(places) = &places {
            let inflow = Inflow::new(&deps, options, Arc::clone(&shared), Arc::clone(places));
            tasks.push(deps.runtime.spawn(inflow.run()).abort_handle());
        }
        let members = Members::new(&deps, Arc::clone(&shared));
        let Deps { clock, queues, .. } = deps;
        Ok(Handle::new(Started { shared, clock, queues, members, sweeper, places, threads, tasks }))
    }
}

fn tasks(
    deps: &Deps,
    options: &Options,
    shared: &Arc<Shared>,
    sweeper: &Arc<Sweeper>,
) -> Vec<tokio::task::AbortHandle> {
    let runtime = &deps.runtime;
    let awards = Awards::new(deps.clone(), options.retry, Arc::clone(shared));
    let retry = Retry::new(deps.clone(), options.retry, Arc::clone(shared));
    let mut tasks = vec![
        runtime.spawn(awards.run()).abort_handle(),
        runtime.spawn(retry.run()).abort_handle(),
        runtime.spawn(Arc::clone(sweeper).run()).abort_handle(),
        runtime.spawn(Arc::clone(sweeper).obey()).abort_handle(),
        runtime.spawn(Arc::clone(sweeper).work()).abort_handle(),
        runtime.spawn(Observer::new(deps, Arc::clone(shared)).run()).abort_handle(),
    ];
    if options.publish {
        let publisher = Publisher::to_log(deps, Arc::clone(shared));
        let tail = Tail::new(deps, Arc::clone(shared), publisher);
        tasks.push(runtime.spawn(tail.run()).abort_handle());
    }
    if let Some(publisher) = Publisher::to_stream(deps, Arc::clone(shared)) {
        let tail = Tail::new(deps, Arc::clone(shared), publisher);
        tasks.push(runtime.spawn(tail.run()).abort_handle());
    }
    if let Some(notify) = options.notify.clone() {
        let notifier = Notifier::new(deps.clone(), notify, options.retry, Arc::clone(shared));
        let notifier = Arc::new(notifier);
        tasks.push(runtime.spawn(Arc::clone(&notifier).run_again()).abort_handle());
        let tail = Tail::new(deps, Arc::clone(shared), notifier);
        tasks.push(runtime.spawn(tail.run()).abort_handle());
    }
    tasks
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let builder = std::thread::Builder::new().name(name.to_owned());
    builder.spawn(run).map_err(|error| Error::Thread(error.to_string()))
}

/// Wakes the teller when the log grows.
fn wake(log: &dyn EventLog, shared: &Shared) {
    let mut end = log.end();
    while !shared.is_stopping() {
        let now = log.wait_beyond(end, WAIT);
        if now > end {
            end = now;
            shared.intake.wake();
        }
    }
}

/// Ends the intake with the teller, also when that panics, so that nobody waits in vain.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.intake.close("the teller has ended");
    }
}

fn run(mut worker: Worker) {
    let shared = worker.shared();
    let _ending = Ending(Arc::clone(&shared));
    let mut is_troubled = false;
    while !shared.is_stopping() {
        let turned = if is_troubled { worker.reopen() } else { Ok(()) };
        match turned.and_then(|()| worker.turn()) {
            Ok(progress) => {
                if std::mem::take(&mut is_troubled) {
                    shared.set_trouble(None);
                }
                if progress == Progress::Idle {
                    worker.wait();
                }
            }
            Err(error) => {
                tracing::error!(%error, "the ledger of points takes nothing");
                shared.set_trouble(Some(format!("the ledger of points takes nothing: {error}")));
                is_troubled = true;
                if is_final(&error) {
                    shared.intake.close(&error.to_string());
                    return;
                }
                std::thread::park_timeout(PAUSE);
            }
        }
    }

    // What is not stored is read again after the next start, if the log still has it.
    if !is_troubled && let Err(error) = worker.store_position() {
        tracing::error!(%error, "the ledger of points has not stored its position");
    }
}

/// Whether trying again cannot help.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Books(error) => matches!(
            error,
            points::Error::Closed(_)
                | points::Error::Corrupt(_)
                | points::Error::LogTooShort { .. }
                | points::Error::Locked
        ),
        _ => false,
    }
}

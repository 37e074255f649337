//! The thread of the worker.

use crate::error::Error;
use crate::handle::{Handle, Shared};
use crate::worker::{Progress, Worker};
use raingauge_consumers::Registry;
use raingauge_ports::campaigns::{DocumentStore, Ledger, LedgerRetention, Lookups, Outbox};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::EventLog;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for new entries, after which timers and a request to stop are noticed.
const WAIT: Duration = Duration::from_millis(50);
/// Pause after an error, before the worker continues behind its last commit.
const PAUSE: Duration = Duration::from_secs(1);

/// What the worker works with.
#[derive(Clone)]
pub struct Deps {
    pub log: Arc<dyn EventLog>,
    /// The consumers that the log is kept for.
    pub registry: Arc<Registry>,
    pub ledger: Arc<dyn Ledger>,
    pub retention: Arc<dyn LedgerRetention>,
    pub outbox: Arc<dyn Outbox>,
    pub documents: Arc<dyn DocumentStore>,
    pub lookups: Arc<dyn Lookups>,
    pub clock: Arc<dyn Clock>,
    /// Where asynchronous calls run, while the thread waits for them.
    pub runtime: tokio::runtime::Handle,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Shortest time between two commits, unless there is more than fits into one.
    pub commit_ms: u64,
    /// Most events of one commit.
    pub batch_events: usize,
    /// Bytes of the log that one commit takes, about.
    pub batch_bytes: usize,
    /// How long a commit waits for lookups.
    pub lookup_patience_ms: i64,
    /// Events that arrive later than this after they happened decide nothing.
    pub late_after_ms: i64,
    /// Most timers that fire in one commit.
    pub timers_max: usize,
    /// Bytes of the log that are read behind the position for each commit, to fill tallies.
    pub history_bytes: usize,
    /// How long decisions and ended deliveries are kept, in milliseconds.
    pub decisions_keep_ms: i64,
    /// How long ids of actions are kept, in milliseconds.
    pub actions_keep_ms: i64,
}

impl Default for Options {
    fn default() -> Self {
        const DAY_MS: i64 = 86_400_000;
        Self {
            commit_ms: 50,
            batch_events: 5_000,
            batch_bytes: 1 << 20,
            lookup_patience_ms: 200,
            late_after_ms: DAY_MS,
            timers_max: 1_000,
            history_bytes: 512 * 1_024,
            decisions_keep_ms: 30 * DAY_MS,
            actions_keep_ms: 400 * DAY_MS,
        }
    }
}

/// The worker of one partition.
pub struct Campaigner;

impl Campaigner {
    /// Takes the ledger over and starts the worker's thread. Blocks the thread until the documents
    /// in effect are read, so it must not be one of the runtime's own.
    pub fn start(deps: Deps, options: Options) -> Result<Handle, Error> {
        let worker = Worker::open(deps, options)?;
        let shared = worker.shared();
        let thread = std::thread::Builder::new()
            .name("campaigner".to_owned())
            .spawn(move || run(worker))
            .map_err(Error::Thread)?;
        Ok(Handle::new(shared, thread))
    }
}

fn run(mut worker: Worker) {
    let shared = worker.shared();
    let mut is_troubled = false;
    while !shared.is_stopping() {
        let turned = if is_troubled { worker.reopen() } else { Ok(()) };
        match turned.and_then(|()| worker.turn()) {
            Ok(progress) => {
                if std::mem::take(&mut is_troubled) {
                    shared.set_trouble(None);
                }
                pause(&worker, &shared, progress);
            }
            Err(error) => {
                tracing::error!(%error, "the campaign worker makes no progress");
                shared.set_trouble(Some(format!("the campaign worker stands: {error}")));
                is_troubled = true;
                if !error.may_pass() {
                    return;
                }
                std::thread::park_timeout(PAUSE);
            }
        }
    }
}

/// Waits until the next turn is worth it.
fn pause(worker: &Worker, shared: &Shared, progress: Progress) {
    match progress {
        Progress::Idle => worker.wait(WAIT),
        Progress::Waits(rest) if !shared.is_stopping() => std::thread::park_timeout(rest),
        Progress::Waits(_) | Progress::Busy => {}
    }
}

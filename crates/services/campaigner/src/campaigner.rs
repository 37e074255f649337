//! The thread of the worker.

use crate::deps::{Deps, Options};
use crate::error::Error;
use crate::handle::{Handle, Shared};
use crate::worker::{Progress, Worker};
use std::time::Duration;

/// Longest wait for new entries, after which timers and a request to stop are noticed.
const WAIT: Duration = Duration::from_millis(50);
/// Pause after an error, before the worker continues behind its last commit.
const PAUSE: Duration = Duration::from_secs(1);

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

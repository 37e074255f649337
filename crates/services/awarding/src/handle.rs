//! The service as others see it.

use crate::error::Error;
use crate::intake::Manner;
use crate::members::Members;
use crate::places::Places;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::sweeper::{SweepStatus, Sweeper};
use parking_lot::Mutex;
use raingauge_documents::InEffect;
use raingauge_points::limits::TOGETHER_MAX;
use raingauge_points::{Answer, Command};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{Offset, Partition};
use raingauge_ports::points::{Letter, QueueName, Queues, send_all};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// A running service. It ends when the last handle is dropped.
#[derive(Clone)]
pub struct Handle(Arc<Running>);

struct Running {
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    queues: Arc<dyn Queues>,
    members: Members,
    sweeper: Arc<Sweeper>,
    places: Option<Arc<Places>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    tasks: Vec<AbortHandle>,
}

/// The parts of a service that has been started.
pub(crate) struct Started {
    pub shared: Arc<Shared>,
    pub clock: Arc<dyn Clock>,
    pub queues: Arc<dyn Queues>,
    pub members: Members,
    pub sweeper: Arc<Sweeper>,
    /// Where several processes share the log.
    pub places: Option<Arc<Places>>,
    pub threads: Vec<JoinHandle<()>>,
    pub tasks: Vec<AbortHandle>,
}

impl Handle {
    pub(crate) fn new(started: Started) -> Self {
        let Started { shared, clock, queues, members, sweeper, places, threads, tasks } = started;
        let threads = Mutex::new(threads);
        let running = Running { shared, clock, queues, members, sweeper, places, threads, tasks };
        Self(Arc::new(running))
    }

    /// Decides commands, each by itself, and answers in their order once the entries are durable.
    pub async fn submit(&self, commands: Vec<Command>) -> Vec<Result<Answer, Error>> {
        self.0.shared.decide(commands, Manner::Each).await
    }

    /// Decides at most [`TOGETHER_MAX`] commands that happen together or not at all.
    pub async fn submit_together(&self, commands: Vec<Command>) -> Result<Vec<Answer>, Error> {
        if commands.len() > TOGETHER_MAX {
            let detail = format!("at most {TOGETHER_MAX} commands happen together");
            return Err(Error::TooLarge(detail));
        }
        let answers = self.0.shared.decide(commands, Manner::Together).await;
        answers.into_iter().collect()
    }

    /// Keeps commands in the queue `award`, durably when it returns. They are decided soon, and
    /// those that are malformed become dead letters.
    pub async fn submit_later(&self, commands: Vec<Command>) -> Result<(), Error> {
        self.0.shared.check_clock()?;
        let accepted_ms = Some(self.0.clock.now_ms());
        let accepted = commands.into_iter().map(|command| Command { accepted_ms, ..command });
        let letters = accepted.map(|command| Letter::of_command(&command)).collect();
        Ok(send_all(&*self.0.queues, QueueName::Award, letters, Duration::ZERO).await?)
    }

    /// Answers what commands would do now, one after the other. Nothing is written.
    pub async fn try_out(&self, commands: Vec<Command>) -> Vec<Result<Answer, Error>> {
        self.0.shared.decide(commands, Manner::Trial).await
    }

    /// Reads of members.
    pub fn members(&self) -> &Members {
        &self.0.members
    }

    /// What is in force.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.0.shared.snapshot()
    }

    /// The log is awarded up to here: what lies before is in the ledger, or in a queue.
    pub fn position(&self) -> Offset {
        *self.positions().borrow()
    }

    /// Follows the position.
    pub fn positions(&self) -> watch::Receiver<Offset> {
        self.0.shared.positions()
    }

    /// Grows whenever other programmes are in force.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.shared.changes()
    }

    /// Waits until everything before these ends of partitions is awarded, by whichever process.
    /// Answers `false` when the teller ends before that.
    pub async fn reached(&self, ends: &[(Partition, Offset)]) -> bool {
        if let Some(places) = &self.0.places {
            places.reached(ends).await;
            return true;
        }
        let end = end_of(ends);
        let mut positions = self.positions();
        let reached = positions.wait_for(|position| *position >= end).await;
        reached.is_ok()
    }

    /// How many entries of the log before these ends are not awarded, as far as this process knows.
    pub fn lag(&self, ends: &[(Partition, Offset)]) -> u64 {
        match &self.0.places {
            Some(places) => {
                let lag = |(partition, end): &(Partition, Offset)| {
                    places.known(*partition).map(|position| end.saturating_sub(position))
                };
                ends.iter().filter_map(lag).sum()
            }
            None => end_of(ends).saturating_sub(self.position()),
        }
    }

    /// Asks for a sweep of the wallets that are due now, or were at an earlier time, and returns
    /// at once: the sweep is carried out beside it. A time in the future is refused.
    pub fn begin_sweep(&self, until_ms: Option<i64>) -> Result<SweepStatus, Error> {
        self.0.sweeper.begin(until_ms)
    }

    /// The last sweeps that were asked for or found something, newest first.
    pub fn sweeps(&self) -> Vec<SweepStatus> {
        self.0.sweeper.statuses()
    }

    /// Commands that wait for the teller.
    pub fn waiting(&self) -> usize {
        self.0.shared.intake.len()
    }

    /// Why the service makes no progress, in a sentence.
    pub fn trouble(&self) -> Option<String> {
        let Running { shared, threads, .. } = &*self.0;
        let trouble = shared.trouble().or_else(|| shared.inflow_trouble());
        let has_ended = || threads.lock().iter().any(JoinHandle::is_finished);
        match trouble {
            None if !shared.is_stopping() && has_ended() => {
                Some("the teller of points has ended: see the log of this process".to_owned())
            }
            trouble => trouble,
        }
    }

    /// Ends the service behind the turn that is under way. Blocks the thread.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// The end of a log of one partition.
fn end_of(ends: &[(Partition, Offset)]) -> Offset {
    ends.iter().map(|(_, end)| *end).max().unwrap_or_default()
}

impl Running {
    fn stop(&self) {
        // Whatever a task was about to do, the next process does.
        self.tasks.iter().for_each(AbortHandle::abort);
        self.shared.stop();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread of points has panicked");
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The programmes that the teller has put into force, for the documents that wait for it.
pub struct Effect(pub Handle);

impl InEffect for Effect {
    fn version_of(&self, kind: &str, id: &str) -> Option<u32> {
        self.0.snapshot().version_of(kind, id)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes()
    }
}

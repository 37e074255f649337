//! Jobs: replays that take longer than a request. Each waits for its turn to read the log, tells
//! how far it has come, can be cancelled, and leaves its result for an hour.

use crate::Error;
use crate::limits::{JOB_KEPT_MS, JOB_RESULTS_BYTES_MAX, JOBS_MAX, JOBS_OPEN_MAX};
use crate::progress::Progress;
use parking_lot::Mutex;
use raingauge_ports::clock::Clock;
use raingauge_ports::scans::Scans;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Other scans of the log come first.
    Waiting,
    Running,
    Finished,
    Failed,
    Cancelled,
}

impl Status {
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Running)
    }
}

/// A job as its callers see it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub id: String,
    /// Such as `backtest`.
    pub kind: &'static str,
    /// The caller who began it.
    pub caller: String,
    pub status: Status,
    /// From 0 to 1; `None` while it is unknown how much there is to read.
    pub progress: Option<f64>,
    /// Entries of the log, or events of the caller, that were read.
    pub entries: u64,
    /// In seconds since 1970.
    pub created_at: i64,
    pub ended_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

struct Entry {
    id: String,
    kind: &'static str,
    caller: String,
    status: Status,
    progress: Progress,
    created_ms: i64,
    ended_ms: Option<i64>,
    result: Option<Arc<RawValue>>,
    error: Option<String>,
}

/// The jobs of a process. Clones share them.
#[derive(Clone)]
pub struct Jobs {
    state: Arc<Mutex<State>>,
    scans: Scans,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct State {
    /// In the order in which they were created.
    entries: VecDeque<Entry>,
    created: u64,
}

impl Jobs {
    pub fn new(scans: Scans, clock: Arc<dyn Clock>) -> Self {
        Self { state: Arc::default(), scans, clock }
    }

    /// Starts a job, which runs `work` on a thread of its own when its turn has come.
    pub fn start<T: Serialize>(
        &self,
        kind: &'static str,
        caller: &str,
        work: impl FnOnce(&Progress) -> Result<T, Error> + Send + 'static,
    ) -> Result<Job, Error> {
        let progress = Progress::default();
        let job = self.create(kind, caller, &progress)?;

        let jobs = self.clone();
        let id = job.id.clone();
        let caller = caller.to_owned();
        tokio::spawn(async move {
            let ended = jobs.run(&id, &caller, progress, work).await;
            jobs.end(&id, ended);
        });
        Ok(job)
    }

    async fn run<T: Serialize>(
        &self,
        id: &str,
        caller: &str,
        progress: Progress,
        work: impl FnOnce(&Progress) -> Result<T, Error> + Send + 'static,
    ) -> Result<Box<RawValue>, Error> {
        let turn = self.scans.turn(caller).await?;
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        self.change(id, |entry| entry.status = Status::Running);

        let progress = progress.until(turn.stop());
        let work = tokio::task::spawn_blocking(move || {
            let result = work(&progress)?;
            to_raw_value(&result).map_err(|error| Error::Failed(error.to_string()))
        });
        work.await?
    }

    fn create(&self, kind: &'static str, caller: &str, progress: &Progress) -> Result<Job, Error> {
        let now_ms = self.clock.now_ms();
        let mut state = self.state.lock();
        state.expire(now_ms);
        let open = state.entries.iter().filter(|entry| entry.status.is_open()).count();
        if open >= JOBS_OPEN_MAX {
            return Err(Error::TooManyJobs);
        }
        while state.entries.len() >= JOBS_MAX {
            let oldest = state.entries.iter().position(|entry| !entry.status.is_open());
            oldest.and_then(|oldest| state.entries.remove(oldest));
        }

        state.created += 1;
        let entry = Entry {
            id: format!("job_{now_ms:x}_{}", state.created),
            kind,
            caller: caller.to_owned(),
            status: Status::Waiting,
            progress: progress.clone(),
            created_ms: now_ms,
            ended_ms: None,
            result: None,
            error: None,
        };
        let job = entry.job();
        state.entries.push_back(entry);
        Ok(job)
    }

    fn end(&self, id: &str, ended: Result<Box<RawValue>, Error>) {
        let now_ms = self.clock.now_ms();
        self.change(id, |entry| {
            entry.ended_ms = Some(now_ms);
            match ended {
                // One that was cancelled stays so, even if it came to its end first.
                _ if entry.status == Status::Cancelled => {}
                Ok(result) if result.get().len() <= JOB_RESULTS_BYTES_MAX => {
                    entry.status = Status::Finished;
                    entry.result = Some(Arc::from(result));
                }
                Ok(_) => {
                    entry.status = Status::Failed;
                    entry.error = Some("the result is too large to be kept".to_owned());
                }
                Err(Error::Cancelled) => entry.status = Status::Cancelled,
                Err(error) => {
                    entry.status = Status::Failed;
                    entry.error = Some(error.to_string());
                }
            }
        });
        self.state.lock().expire(now_ms);
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Entry)) {
        let mut state = self.state.lock();
        if let Some(entry) = state.entries.iter_mut().find(|entry| entry.id == id) {
            change(entry);
        }
    }

    /// The jobs that are known, newest first, without their results.
    pub fn list(&self) -> Vec<Job> {
        let mut state = self.state.lock();
        state.expire(self.clock.now_ms());
        let jobs = state.entries.iter().rev();
        jobs.map(|entry| Job { result: None, ..entry.job() }).collect()
    }

    pub fn get(&self, id: &str) -> Result<Job, Error> {
        let mut state = self.state.lock();
        state.expire(self.clock.now_ms());
        let found = state.entries.iter().find(|entry| entry.id == id);
        found.map(Entry::job).ok_or_else(|| Error::UnknownJob(id.to_owned()))
    }

    /// Cancels a job that has not ended.
    pub fn cancel(&self, id: &str) -> Result<Job, Error> {
        self.change(id, |entry| {
            if entry.status.is_open() {
                entry.progress.cancel();
                entry.status = Status::Cancelled;
            }
        });
        self.get(id)
    }
}

impl Entry {
    fn job(&self) -> Job {
        let (entries, of) = self.progress.entries();
        let share = (of > 0).then(|| entries.min(of) as f64 / of as f64);
        let progress = if self.status == Status::Finished { Some(1.0) } else { share };
        Job {
            id: self.id.clone(),
            kind: self.kind,
            caller: self.caller.clone(),
            status: self.status,
            progress,
            entries,
            created_at: self.created_ms.div_euclid(1_000),
            ended_at: self.ended_ms.map(|at_ms| at_ms.div_euclid(1_000)),
            result: self.result.clone(),
            error: self.error.clone(),
        }
    }

    fn bytes(&self) -> usize {
        self.result.as_ref().map_or(0, |result| result.get().len())
    }
}

impl State {
    /// Forgets jobs that ended an hour ago, and the oldest results beyond the bytes of all.
    fn expire(&mut self, now_ms: i64) {
        self.entries
            .retain(|entry| entry.ended_ms.is_none_or(|ended_ms| now_ms - ended_ms < JOB_KEPT_MS));
        let mut bytes: usize = self.entries.iter().map(Entry::bytes).sum();
        while bytes > JOB_RESULTS_BYTES_MAX {
            let Some(oldest) = self.entries.iter().position(|entry| entry.result.is_some()) else {
                return;
            };
            bytes -= self.entries[oldest].bytes();
            self.entries.remove(oldest);
        }
    }
}

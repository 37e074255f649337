//! Recounts on request. They may take longer than a request may, so they run in the background.

use parking_lot::Mutex;
use raingauge_counters::recount::{KeyRange, Progress, Recount};
use std::collections::VecDeque;

/// Concurrent recounts. Each reads the log.
const RUNNING_MAX: usize = 2;
/// Recounts in memory.
const JOBS_MAX: usize = 50;

/// Why a check was not begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("an audit is running already: wait for its end")]
    Running,
    #[error("another portal is checking at this moment: try again when it has ended")]
    Elsewhere,
    #[error("the right to check could not be taken: {0}")]
    Lease(String),
    #[error("{0} recounts are running already: wait until one has ended")]
    Busy(usize),
}

/// The result of a recount; `None` when no counter has the key.
pub type Result = std::result::Result<Option<Recount>, String>;

/// One recount.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: String,
    pub asked: KeyRange,
    pub by: String,
    pub began_s: i64,
    pub progress: Progress,
    /// `None` while it runs.
    pub found: Option<Result>,
}

/// The recounts of this process, newest first.
#[derive(Default)]
pub struct Jobs(Mutex<VecDeque<Job>>);

impl Jobs {
    pub fn begin(
        &self,
        asked: KeyRange,
        by: &str,
        now_s: i64,
    ) -> std::result::Result<Job, Refusal> {
        let mut jobs = self.0.lock();
        let running = jobs.iter().filter(|job| job.found.is_none()).count();
        if running >= RUNNING_MAX {
            return Err(Refusal::Busy(running));
        }

        let id = hex::encode(rand::random::<[u8; 16]>());
        let job = Job {
            id,
            asked,
            by: by.to_owned(),
            began_s: now_s,
            progress: Progress::default(),
            found: None,
        };

        jobs.push_front(job.clone());
        jobs.truncate(JOBS_MAX);
        Ok(job)
    }

    pub fn end(&self, id: &str, found: Result) {
        if let Some(job) = self.0.lock().iter_mut().find(|job| job.id == id) {
            job.found = Some(found);
        }
    }

    pub fn find(&self, id: &str) -> Option<Job> {
        self.0.lock().iter().find(|job| job.id == id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_core::plan::Plan;

    fn asked() -> KeyRange {
        KeyRange { key: "k".to_owned(), range: Plan::new(0, 900).expect("a range") }
    }

    #[test]
    fn few_run_at_once_and_the_newest_are_remembered() {
        let jobs = Jobs::default();
        let first = jobs.begin(asked(), "zoe", 7).expect("begun");
        jobs.begin(asked(), "zoe", 7).expect("begun");
        assert_eq!(jobs.begin(asked(), "max", 7).err(), Some(Refusal::Busy(2)));
        assert!(jobs.find(&first.id).expect("known").found.is_none());
        jobs.end(&first.id, Ok(None));
        assert_eq!(jobs.find(&first.id).expect("known").found, Some(Ok(None)));
        for _ in 0..JOBS_MAX {
            let job = jobs.begin(asked(), "max", 8).expect("begun");
            jobs.end(&job.id, Err("the log is away".to_owned()));
        }
        assert!(jobs.find(&first.id).is_none());
    }
}

//! The newest events of the log: what a configuration would count of them, and what they look like.
//!
//! Every preview reads a part of the log, so callers take turns.

use crate::observed::{EVENTS_MAX, Observation, observed};
use crate::preview::{Comparison, Preview, compare, preview_newest};
use raingauge_core::counter::Counter;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{EventLog, Offset};
use raingauge_ports::scans::{self, Scans, Stop};
use raingauge_writer::worker;
use std::sync::Arc;
use tokio::sync::Mutex;

/// How long an observation is reused although more events have arrived.
const KEPT_MS: i64 = 5_000;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Busy(#[from] scans::Full),
    #[error(transparent)]
    Log(#[from] worker::Error),
    #[error("it ended with an error inside the server: {0}")]
    Failed(#[from] tokio::task::JoinError),
}

/// Previews, comparisons and observations of the newest events.
pub struct RecentEvents {
    /// Every partition of the log.
    logs: Vec<Arc<dyn EventLog>>,
    scans: Scans,
    clock: Arc<dyn Clock>,
    /// Serializes observations: callers wait for the one that runs.
    last: Arc<Mutex<Option<Snapshot>>>,
}

/// The newest observation.
struct Snapshot {
    at_ms: i64,
    /// The ends of the partitions when it was made.
    ends: Vec<Offset>,
    observed: Arc<Observation>,
}

impl RecentEvents {
    pub fn new(logs: Vec<Arc<dyn EventLog>>, scans: Scans, clock: Arc<dyn Clock>) -> Self {
        Self { logs, scans, clock, last: Arc::default() }
    }

    /// Partitions of the log.
    pub fn partitions(&self) -> usize {
        self.logs.len()
    }

    /// Returns what a configuration would have counted of the newest events.
    pub async fn preview(
        &self,
        caller: &str,
        draft: Counter,
        events_max: u64,
    ) -> Result<Preview, Error> {
        self.scan(caller, move |logs, stop| preview_newest(logs, &draft, events_max, stop)).await
    }

    /// Returns what two configurations would have counted of the newest events.
    pub async fn compare(
        &self,
        caller: &str,
        before: Counter,
        after: Counter,
        events_max: u64,
    ) -> Result<Comparison, Error> {
        self.scan(caller, move |logs, stop| compare(logs, &before, &after, events_max, stop)).await
    }

    /// Returns the types of the newest events and their fields, at most some seconds old. `redact`
    /// removes what must not be shown, before anything is kept.
    pub async fn observed(
        &self,
        redact: impl FnOnce(&mut Observation) + Send + 'static,
    ) -> Result<Arc<Observation>, Error> {
        let mut last = Arc::clone(&self.last).lock_owned().await;
        let at_ms = self.clock.now_ms();
        let ends: Vec<Offset> = self.logs.iter().map(|log| log.end()).collect();

        if let Some(last) = &*last {
            let is_recent = (last.at_ms..last.at_ms + KEPT_MS).contains(&at_ms);
            if is_recent || last.ends == ends {
                return Ok(Arc::clone(&last.observed));
            }
        }

        // The task holds the lock: when the caller goes away, no other observation begins before
        // this one has ended.
        let logs = self.logs.clone();
        let work = tokio::task::spawn_blocking(move || {
            let mut found = observed(&logs, EVENTS_MAX)?;
            redact(&mut found);

            let observed = Arc::new(found);
            *last = Some(Snapshot { at_ms, ends, observed: Arc::clone(&observed) });
            Ok::<_, worker::Error>(observed)
        });
        Ok(work.await??)
    }

    /// Runs a scan in the caller's turn. It stops when its caller goes away.
    async fn scan<T: Send + 'static>(
        &self,
        caller: &str,
        scan: impl FnOnce(&[Arc<dyn EventLog>], &Stop) -> Result<T, worker::Error> + Send + 'static,
    ) -> Result<T, Error> {
        let turn = self.scans.turn(caller).await?;
        let logs = self.logs.clone();
        let stop = turn.stop().clone();
        let found = tokio::task::spawn_blocking(move || scan(&logs, &stop)).await??;
        Ok(found)
    }
}

//! Programmes over events of the past: what a draft would have cost, and whether what was awarded
//! is what the programmes of the time say.
//!
//! ```text
//!                  forecast   a fork of the ledger for the draft, and one for what is in force
//!   events ──▶
//!                  audit      each award priced again, and each missing one sent to be awarded
//! ```
//!
//! Both are jobs, which read the log in turn with other scans, say how far they have come, and can
//! be cancelled.

mod audit;
mod feed;
mod forecast;
mod fork;
mod letters;
pub mod limits;
mod records;
mod report;
mod request;
#[cfg(test)]
mod tests;
mod versions;

pub use audit::{Audit, Difference};
pub use forecast::{Forecast, MemberChange};
pub use report::{LiabilityReport, SideReport};
pub use request::{AuditRequest, ForecastRequest};

use audit::{Auditor, count_differences};
use forecast::Setup;
use parking_lot::Mutex;
use raingauge_points::Programmes;
use raingauge_ports::campaigns::DocumentStore;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::EventLog;
use raingauge_ports::points::{BookReader, QueueControl, Queues};
use raingauge_ports::scans::Scans;
use raingauge_replay::source::Lines;
use raingauge_replay::{Error, Job, Jobs};
use std::sync::Arc;
use tokio::runtime::Handle;

/// The programmes in force at the moment, as the teller has them.
pub type InForce = Arc<dyn Fn() -> Arc<Programmes> + Send + Sync>;

/// What appraisals read, and the queue that they send missing awards to.
#[derive(Clone)]
pub struct Sources {
    /// Every partition of the log.
    pub logs: Vec<Arc<dyn EventLog>>,
    pub reader: Arc<dyn BookReader>,
    pub documents: Arc<dyn DocumentStore>,
    pub queues: Arc<dyn Queues>,
    pub control: Arc<dyn QueueControl>,
    pub in_force: InForce,
}

/// Forecasts and audits, as doors ask for them. Clones share the jobs.
#[derive(Clone)]
pub struct Appraisal {
    sources: Sources,
    jobs: Jobs,
    clock: Arc<dyn Clock>,
    last_audit: Arc<Mutex<Option<Arc<Audit>>>>,
}

impl Appraisal {
    pub fn new(sources: Sources, scans: Scans, clock: Arc<dyn Clock>) -> Self {
        let jobs = Jobs::new(scans, Arc::clone(&clock));
        count_differences(0);
        Self { sources, jobs, clock, last_audit: Arc::default() }
    }

    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// The result of the last audit that ended, while this process runs.
    pub fn last_audit(&self) -> Option<Arc<Audit>> {
        self.last_audit.lock().clone()
    }

    /// Starts a forecast over the log, or over the caller's events.
    pub fn forecast(
        &self,
        caller: &str,
        request: ForecastRequest,
        lines: Option<Lines>,
    ) -> Result<Job, Error> {
        let setup = Setup::new(&request, &(self.sources.in_force)())?;
        let logs = self.sources.logs.clone();
        self.jobs.start("forecast", caller, move |progress| setup.run(&logs, lines, progress))
    }

    /// Starts an audit of what the events of the log awarded.
    pub fn audit(&self, caller: &str, request: AuditRequest) -> Result<Job, Error> {
        let appraisal = self.clone();
        let handle = Handle::current();
        self.jobs.start("audit", caller, move |progress| {
            let now_ms = appraisal.clock.now_ms();
            let auditor = Auditor::new(&appraisal.sources, handle, request, now_ms)?;
            let found = auditor.run(progress)?;
            *appraisal.last_audit.lock() = Some(Arc::new(found.clone()));
            Ok(found)
        })
    }
}

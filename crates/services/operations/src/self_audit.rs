//! The self-audit: compares stored counts with the counts that the log yields, on a schedule.
//!
//! ```text
//!   every hour ──▶ lease ──▶ sample: recent keys, largest keys, earlier differences
//!                              └──▶ Recounter ──▶ Checks ──▶ page, alarm
//!   a form ──▶ Job ────────────────────┘
//! ```
//!
//! In a cluster one portal audits at a time. It holds the lease that compaction uses too: the lease
//! lies in the bucket store, which the audit reads anyway, and expires when its holder fails.

mod job;
mod sample;

pub use job::{Job, Refusal, Result as JobResult};

use job::Jobs;
use metrics::{counter, gauge};
use parking_lot::Mutex;
use raingauge_core::plan::Plan;
use raingauge_core::time::format_rfc3339;
use raingauge_counters::recount::{KeyRange, Progress, Recount, Recounter};
use raingauge_ports::catalog;
use raingauge_ports::checks::{CHECKS_KEPT, Check, Checks, DIFFERENCES_KEPT, Outcome, Selection};
use raingauge_ports::clock::{Clock, every};
use raingauge_ports::log::EventLog;
use raingauge_ports::maintenance::{LEASE_TTL, Lease};
use raingauge_ports::published::Published;
use raingauge_reader::Reader;
use raingauge_settings::settings;
use raingauge_writer::worker;
use sample::Sampler;
use std::sync::Arc;
use std::time::Duration;

/// The principal of scheduled checks.
pub const AUDITOR: &str = "raingauge";
/// Most keys of one audit, besides those that differed before.
pub const CHECK_KEYS_MAX: usize = 1_000;
/// Keys that differed and are checked again by each audit, until they agree.
const RECHECKED_MAX: usize = 100;
/// How often the schedule and the results of other portals are looked up.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// Newest checks that are searched for the last audit.
const LOOKED_BACK: usize = 500;

settings! {
    /// How the audit is done. Without an interval, audits run on request only.
    #[derive(Copy)]
    pub struct Options in "portal" {
        /// How often stored counts are compared with the log; 0 for never.
        interval as "check_interval_minutes": Option<Duration> = minutes(60, 0..=10_080);
        /// Keys that are compared each time; 0 for none.
        keys as "check_keys": usize = whole(20, 0..=1_000, "keys");
    }
}

/// The dependencies of the audit.
pub struct Deps {
    pub recounter: Arc<Recounter>,
    pub reader: Arc<Reader>,
    pub checks: Arc<dyn Checks>,
    pub lease: Arc<dyn Lease>,
    /// Every partition of the log.
    pub logs: Vec<Arc<dyn EventLog>>,
    pub published: Arc<Published>,
    pub clock: Arc<dyn Clock>,
    pub options: Options,
}

/// An audit in progress.
#[derive(Clone, Debug)]
pub struct Running {
    pub by: String,
    pub began_s: i64,
    pub progress: Progress,
}

/// The audit of this process.
pub struct SelfAudit {
    deps: Deps,
    state: Mutex<State>,
    jobs: Jobs,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    /// When the last known audit began, of any portal.
    last_s: Option<i64>,
}

impl SelfAudit {
    pub fn new(deps: Deps) -> Self {
        gauge!("raingauge_check_mismatches").set(0.0);
        Self { deps, state: Mutex::default(), jobs: Jobs::default() }
    }

    pub fn options(&self) -> Options {
        self.deps.options
    }

    pub fn checks(&self) -> &dyn Checks {
        &*self.deps.checks
    }

    pub fn running(&self) -> Option<Running> {
        self.state.lock().running.clone()
    }

    /// When the next audit is due, in seconds since 1970; `None` without a schedule.
    pub fn next_s(&self) -> Option<i64> {
        let interval = self.interval()?;
        Some(
            self.state
                .lock()
                .last_s
                .map_or_else(|| self.deps.clock.now_s(), |last_s| last_s + interval),
        )
    }

    fn interval(&self) -> Option<i64> {
        let Options { interval, keys } = self.deps.options;
        interval.filter(|_| keys > 0).map(|interval| interval.as_secs() as i64)
    }

    /// Audits on schedule, for as long as it is polled.
    pub async fn run(self: Arc<Self>) {
        // A process that has just started has more urgent work.
        tokio::time::sleep(LOOK_INTERVAL).await;
        every(LOOK_INTERVAL, || self.look()).await;
    }

    /// Audits once, if an audit is due.
    pub async fn look(self: &Arc<Self>) {
        if let Err(error) = self.refresh().await {
            tracing::debug!(%error, "what other portals checked could not be read");
            return;
        }

        let Some(interval) = self.interval() else {
            return;
        };
        let last_s = self.state.lock().last_s;
        if last_s.is_some_and(|last_s| self.deps.clock.now_s() < last_s + interval) {
            return;
        }

        match self.begin(AUDITOR).await {
            Ok(running) => self.finish(running).await,
            Err(Refusal::Lease(reason)) => tracing::warn!(reason, "the self-audit could not begin"),
            Err(reason) => tracing::debug!(%reason, "no self-audit for now"),
        }
    }

    /// Begins an audit in the background, on behalf of `by`.
    pub async fn start(self: &Arc<Self>, by: &str) -> Result<(), Refusal> {
        let running = self.begin(by).await?;
        let audit = Arc::clone(self);
        tokio::spawn(async move { audit.finish(running).await });
        Ok(())
    }

    async fn begin(&self, by: &str) -> Result<Running, Refusal> {
        let running = {
            let mut state = self.state.lock();
            if state.running.is_some() {
                return Err(Refusal::Running);
            }

            let began_s = self.deps.clock.now_s();
            let running = Running { by: by.to_owned(), began_s, progress: Progress::default() };
            state.running = Some(running.clone());

            running
        };

        let refused = match self.deps.lease.hold().await {
            Ok(true) => return Ok(running),
            Ok(false) => Refusal::Elsewhere,
            Err(error) => Refusal::Lease(error.to_string()),
        };

        self.state.lock().running = None;
        Err(refused)
    }

    async fn finish(&self, running: Running) {
        let audited = tokio::select! {
            audited = self.audit(&running) => audited,
            () = self.keep_lease() => Err("the right to check was lost to another portal".to_owned()),
        };
        {
            let mut state = self.state.lock();
            state.running = None;
            state.last_s = Some(running.began_s);
        }

        if let Err(reason) = audited {
            tracing::warn!(reason, "the self-audit did not complete");
        }

        if let Err(error) = self.deps.lease.release().await {
            tracing::debug!(%error, "the right to check could not be released; it expires by itself");
        }
    }

    /// Returns when the lease is lost.
    async fn keep_lease(&self) {
        loop {
            tokio::time::sleep(LEASE_TTL / 3).await;
            if !matches!(self.deps.lease.hold().await, Ok(true)) {
                return;
            }
        }
    }

    async fn audit(&self, running: &Running) -> Result<(), String> {
        let Deps { checks, options, recounter, clock, .. } = &self.deps;
        let differing = checks.differing(RECHECKED_MAX).await.map_err(|error| error.to_string())?;
        let again = differing.iter().filter_map(|check| {
            let range = Plan::new(check.from_s, check.to_s).ok()?;
            Some(KeyRange { key: check.key.clone(), range })
        });
        let mut asked: Vec<KeyRange> = again.collect();
        let recent = checks
            .list(Selection { len_max: LOOKED_BACK, ..Selection::default() })
            .await
            .unwrap_or_default();
        for sampled in Sampler::of(&self.deps).keys(options.keys.min(CHECK_KEYS_MAX), &recent).await
        {
            if asked.iter().all(|known| known.key != sampled.key) {
                asked.push(sampled);
            }
        }

        let recounts = recounter.recount_all(asked.clone(), &running.progress).await;
        let recounts = match recounts {
            Ok(recounts) => {
                recounts.into_iter().map(|found| found.map_err(|error| error.to_string())).collect()
            }
            Err(error) => vec![Err(error.to_string()); asked.len()],
        };

        let now_s = clock.now_s();
        let made = asked
            .iter()
            .zip(recounts)
            .filter_map(|(asked, found)| self.check(asked, found, &running.by, now_s));
        self.keep(made.collect()).await.map_err(|error| error.to_string())
    }

    /// The check of a recount; `None` for a key that no counter has any more.
    fn check(
        &self,
        asked: &KeyRange,
        found: Result<Option<Recount>, String>,
        by: &str,
        now_s: i64,
    ) -> Option<Check> {
        let view = self.deps.published.view();
        let rule = view.ruleset.index_of_key(&asked.key);
        let counter = rule.map_or(0, |rule| view.ruleset.rules()[rule].counter.id);
        let (from_s, to_s) = (asked.range.from_s, asked.range.to_s);
        let key = asked.key.clone();

        let by = by.to_owned();
        let blank = Check {
            id: 0,
            at_s: now_s,
            by,
            counter,
            key,
            from_s,
            to_s,
            compared_from_s: to_s,
            outcome: Outcome::Failed,
            stored: 0,
            recounted: 0,
            detail: String::new(),
            differences: Vec::new(),
        };

        Some(match found {
            Ok(None) => return None,
            Err(detail) => Check { detail, ..blank },
            Ok(Some(recount)) => Check {
                compared_from_s: recount.compared_from,
                outcome: if recount.compared_from >= to_s {
                    Outcome::Uncovered
                } else if recount.equal {
                    Outcome::Equal
                } else {
                    Outcome::Differs
                },
                stored: recount.stored,
                recounted: recount.recounted,
                detail: left_out(&recount),
                differences: recount.differences.into_iter().take(DIFFERENCES_KEPT).collect(),
                ..blank
            },
        })
    }

    /// Stores the results and logs every difference.
    async fn keep(&self, made: Vec<Check>) -> Result<(), catalog::Error> {
        for check in &made {
            counter!("raingauge_checks_total", "outcome" => check.outcome.name()).increment(1);
            if check.outcome == Outcome::Differs {
                tracing::error!(
                    counter = check.counter,
                    from = check.from_s,
                    to = check.to_s,
                    stored = %check.stored,
                    recounted = %check.recounted,
                    "a stored count differs from the log: see the page /checks"
                );
            }
        }

        self.deps.checks.add(made, CHECKS_KEPT).await?;
        self.refresh().await
    }

    /// Reads what this portal and the others have found.
    async fn refresh(&self) -> Result<(), catalog::Error> {
        let checks = &self.deps.checks;
        gauge!("raingauge_check_mismatches")
            .set(checks.differing(RECHECKED_MAX).await?.len() as f64);
        let newest =
            checks.list(Selection { len_max: LOOKED_BACK, ..Selection::default() }).await?;
        let last_s =
            newest.iter().filter(|check| check.by == AUDITOR).map(|check| check.at_s).max();
        let mut state = self.state.lock();
        state.last_s = state.last_s.max(last_s);
        Ok(())
    }

    /// Begins to recount one key in the background, on behalf of `by`. Returns the id of the job.
    pub fn recount(self: &Arc<Self>, asked: KeyRange, by: &str) -> Result<String, Refusal> {
        let job = self.jobs.begin(asked, by, self.deps.clock.now_s())?;
        let audit = Arc::clone(self);
        let id = job.id.clone();
        tokio::spawn(async move {
            let found = audit.recount_now(&job).await;
            audit.jobs.end(&job.id, found);
        });
        Ok(id)
    }

    async fn recount_now(&self, job: &Job) -> JobResult {
        let Deps { recounter, clock, .. } = &self.deps;
        let asked = job.asked.clone();
        let found = match recounter.recount_all(vec![asked], &job.progress).await {
            Ok(mut found) => found.pop().unwrap_or(Ok(None)),
            Err(error) => Err(error),
        };
        let found = found.map_err(|error: worker::Error| error.to_string());
        if let Some(check) = self.check(&job.asked, found.clone(), &job.by, clock.now_s())
            && let Err(error) = self.keep(vec![check]).await
        {
            tracing::warn!(%error, "the result of a recount could not be stored");
        }

        found
    }

    /// A recount that was begun here; those that ended long ago are forgotten.
    pub fn job(&self, id: &str) -> Option<Job> {
        self.jobs.find(id)
    }
}

/// Which part of its range a recount could not compare, as a sentence.
pub fn left_out(recount: &Recount) -> String {
    let Recount { from_time, to_time, compared_from, .. } = *recount;
    match compared_from {
        compared if compared >= to_time => {
            "Nothing could be compared: the log no longer holds all events of this range, or its buckets have expired."
                .to_owned()
        }
        compared if compared > from_time => format!(
            "Compared from {} on: the log no longer holds all events before that, or its buckets have expired.",
            format_rfc3339(compared)
        ),
        _ => String::new(),
    }
}

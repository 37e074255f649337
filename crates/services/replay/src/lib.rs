//! Campaigns over events of the past: tests, backtests, comparisons, explanations and audits.
//!
//! ```text
//!                  test       a few events, nothing kept
//!   events ──▶     backtest   what would have happened, when, to whom, and at which cost
//!   of the log     compare    who gains and who loses between two versions
//!   or the         explain    why a campaign did nothing for a subject
//!   caller         audit      whether what was decided is what a replay decides
//! ```
//!
//! All of them feed the engine that the worker feeds, in the order of the log, with states and
//! budgets in memory. A replay that takes long is a [job](jobs): it reads the log in turn with
//! other scans, says how far it has come, and can be cancelled.

pub mod answers;
pub mod audit;
pub mod backtest;
pub mod compare;
pub mod documents;
mod error;
pub mod explain;
mod feed;
mod figures;
pub mod jobs;
pub mod limits;
pub mod machine;
mod measure;
pub mod memory;
mod naive;
mod progress;
pub mod request;
pub mod source;
pub mod subject;
pub mod trial;

pub use error::Error;
pub use feed::{Feed, feed};
pub use jobs::{Job, Jobs};
pub use progress::Progress;

use answers::{Answers, RecordedAnswers};
use audit::{Audit, Draw};
use backtest::{Setup, Source};
use compare::Sides;
use explain::{Explanation, Ledger, by_event, explain_by_replay};
use limits::EXPLAIN_ENTRIES_MAX;
use parking_lot::Mutex;
use raingauge_campaigns::campaign::CampaignId;
use raingauge_campaigns::engine::{Documents, Engine};
use raingauge_ports::campaigns::{DecisionQuery, DocumentStore, LedgerReader, Lookups, Outbox};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::EventLog;
use raingauge_ports::scans::Scans;
use request::{AuditRequest, BacktestRequest, ExplainRequest, SourceName, TestRequest};
use source::{Lines, Span};
use std::sync::Arc;
use subject::{SubjectReplay, Timeline};
use tokio::runtime::Handle;
use trial::Trial;

/// What the engine decides by at the moment, as the worker has it.
pub type InEffect = Arc<dyn Fn() -> Documents + Send + Sync>;

/// What replays read.
#[derive(Clone)]
pub struct Sources {
    /// Every partition of the log.
    pub logs: Vec<Arc<dyn EventLog>>,
    pub ledger: Arc<dyn LedgerReader>,
    pub outbox: Arc<dyn Outbox>,
    pub documents: Arc<dyn DocumentStore>,
    pub in_effect: InEffect,
    /// `None` where nothing can be looked up.
    pub lookups: Option<Arc<dyn Lookups>>,
}

/// Replays, as doors ask for them. Clones share the jobs.
#[derive(Clone)]
pub struct Replay {
    sources: Sources,
    jobs: Jobs,
    clock: Arc<dyn Clock>,
    scans: Scans,
    last_audit: Arc<Mutex<Option<Arc<Audit>>>>,
}

/// An explanation, or the job that looks for it.
#[derive(Clone, Debug)]
pub enum Explained {
    Now(Box<Explanation>),
    Job(Box<Job>),
}

impl Replay {
    pub fn new(sources: Sources, scans: Scans, clock: Arc<dyn Clock>) -> Self {
        let jobs = Jobs::new(scans.clone(), Arc::clone(&clock));
        Self { sources, jobs, clock, scans, last_audit: Arc::default() }
    }

    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// The result of the last audit that ended, while this process runs.
    pub fn last_audit(&self) -> Option<Arc<Audit>> {
        self.last_audit.lock().clone()
    }

    /// Decides a few events by documents, and explains each decision.
    pub async fn test(&self, request: TestRequest) -> Result<Trial, Error> {
        let in_effect = (self.sources.in_effect)();
        let documents = documents::resolve(&request.campaigns, &request.shared, &in_effect)?;
        let lookups = self.sources.lookups.clone();
        let handle = Handle::current();
        let work = tokio::task::spawn_blocking(move || {
            let assumptions = request.lookups.clone();
            let mut answers = Answers::assumed(assumptions).with_current(lookups, handle);
            trial::test(&request, documents, &mut answers)
        });
        work.await?
    }

    /// Starts a backtest of the log, or of the caller's events.
    pub fn backtest(
        &self,
        caller: &str,
        request: BacktestRequest,
        lines: Option<Lines>,
    ) -> Result<Job, Error> {
        let in_effect = (self.sources.in_effect)();
        let documents = documents::resolve(&request.campaigns, &request.shared, &in_effect)?;
        if !request.before.is_empty() || !request.after.is_empty() {
            return Err(Error::invalid("before", "a backtest has `campaigns` alone"));
        }

        let setup = Setup::new(documents, &request, self.clock.now_ms());
        let source = self.source(&request, lines)?;
        let replay = self.clone();
        let handle = Handle::current();
        self.jobs.start("backtest", caller, move |progress| {
            let mut answers = replay.answers(&setup.documents, &request, handle)?;
            backtest::backtest(&setup, source, &mut answers, progress)
        })
    }

    /// Starts a comparison of two versions over the same events.
    pub fn compare(
        &self,
        caller: &str,
        request: BacktestRequest,
        lines: Option<Lines>,
    ) -> Result<Job, Error> {
        if !request.campaigns.is_empty() {
            let detail = "a comparison has campaigns `before` and `after`";
            return Err(Error::invalid("campaigns", detail));
        }
        let in_effect = (self.sources.in_effect)();
        let before = documents::resolve(&request.before, &request.shared, &in_effect)?;
        let after = documents::resolve(&request.after, &request.shared, &in_effect)?;

        let sides = Sides::new(before, after);
        let setup = Setup::new(sides.documents.clone(), &request, self.clock.now_ms());
        let source = self.source(&request, lines)?;
        let replay = self.clone();
        let handle = Handle::current();
        self.jobs.start("compare", caller, move |progress| {
            let mut answers = replay.answers(&setup.documents, &request, handle)?;
            compare::compare(sides, setup, source, &mut answers, progress)
        })
    }

    /// Explains what a campaign did, or why it did nothing: at once, if that is recorded or the log
    /// is short, and otherwise by a job.
    pub async fn explain(
        &self,
        caller: &str,
        campaign: CampaignId,
        request: ExplainRequest,
    ) -> Result<Explained, Error> {
        let timeline = Timeline::load(&*self.sources.documents, campaign).await?;
        let ledger = self.ledger();
        let decisions = ledger.decisions_of(campaign, &request.subject).await?;
        if let Some(event) = &request.event
            && let Some(stored) = ledger.explain_named(&decisions, event).await?
        {
            return Ok(Explained::Now(Box::new(stored)));
        }

        let mut recorded = RecordedAnswers::default();
        decisions.iter().for_each(|decision| recorded.note(decision));
        let answers = Answers::assumed(Default::default())
            .with_recorded(recorded)
            .with_current(self.sources.lookups.clone(), Handle::current());
        let in_effect = (self.sources.in_effect)();
        let replay = SubjectReplay::new(
            timeline,
            [request.subject.clone()].into_iter().collect(),
            &in_effect,
            by_event(decisions.clone()),
        );

        let logs = self.sources.logs.clone();
        let handle = Handle::current();
        let work = move |progress: &Progress| {
            let mut answers = answers;
            let found = explain_by_replay(&logs, &request, replay, &mut answers, progress)?;
            // The newest event may be one that was decided.
            let stored = match &found.event {
                Some(event) if !found.came_in_vain() => {
                    handle.block_on(ledger.explain(&decisions, event))?
                }
                _ => None,
            };
            let events = found.events.clone();
            Ok(match stored {
                Some(stored) => Explanation { events, ..stored },
                None => found,
            })
        };
        let entries: u64 =
            self.sources.logs.iter().map(|log| Span::since(log, i64::MIN).len()).sum();
        if entries > EXPLAIN_ENTRIES_MAX {
            let job = self.jobs.start("explain", caller, work)?;
            return Ok(Explained::Job(Box::new(job)));
        }

        let turn = self.scans.turn(caller).await?;
        let progress = Progress::default().until(turn.stop());
        let found = tokio::task::spawn_blocking(move || work(&progress)).await??;
        Ok(Explained::Now(Box::new(found)))
    }

    /// Starts an audit of one campaign, or of one chosen at random.
    pub async fn audit(&self, caller: &str, request: AuditRequest) -> Result<Job, Error> {
        let in_effect = (self.sources.in_effect)();
        let seed = request.seed.unwrap_or_else(|| self.clock.now_ms().unsigned_abs());
        let campaign = match request.campaign {
            Some(campaign) => campaign,
            None => drawn(&in_effect, seed)
                .ok_or_else(|| Error::invalid("campaign", "there is no campaign to audit"))?,
        };
        let timeline = Timeline::load(&*self.sources.documents, campaign).await?;
        let draw = Draw::choose(&self.ledger(), timeline, seed).await?;

        let replay = self.clone();
        let handle = Handle::current();
        self.jobs.start("audit", caller, move |progress| {
            let Sources { lookups, logs, .. } = &replay.sources;
            let answers =
                Answers::assumed(Default::default()).with_current(lookups.clone(), handle);
            let audited_ms = replay.clock.now_ms();
            let found = audit::audit(logs, draw, &in_effect, answers, audited_ms, progress)?;
            *replay.last_audit.lock() = Some(Arc::new(found.clone()));
            Ok(found)
        })
    }

    fn ledger(&self) -> Ledger {
        let Sources { ledger, outbox, .. } = &self.sources;
        Ledger { reader: Arc::clone(ledger), outbox: Arc::clone(outbox) }
    }

    fn source(&self, request: &BacktestRequest, lines: Option<Lines>) -> Result<Source, Error> {
        match (request.source, lines) {
            (SourceName::Log, _) => Ok(Source::Log(self.sources.logs.clone())),
            (SourceName::Events, Some(lines)) => Ok(Source::Lines(lines)),
            (SourceName::Events, None) => {
                let detail = "send the events behind the request, a line each";
                Err(Error::invalid("source", detail))
            }
        }
    }

    /// The answers of a backtest, with those that were recorded for events of the log.
    fn answers(
        &self,
        documents: &Documents,
        request: &BacktestRequest,
        handle: Handle,
    ) -> Result<Answers, Error> {
        let mut recorded = RecordedAnswers::default();
        let is_log = request.source == SourceName::Log;
        if is_log && Engine::new(documents.clone()).looks_up() {
            for release in &documents.campaigns {
                let campaign = Some(release.campaign.id);
                let query = DecisionQuery { campaign, ..DecisionQuery::default() };
                let decisions = handle.block_on(self.ledger().decisions(query))?;
                decisions.iter().for_each(|decision| recorded.note(decision));
            }
        }
        let lookups = self.sources.lookups.clone();
        let answers = Answers::assumed(request.lookups.clone()).with_recorded(recorded);
        Ok(answers.with_current(lookups, handle))
    }
}

/// A campaign that decides, drawn by a seed.
fn drawn(in_effect: &Documents, seed: u64) -> Option<CampaignId> {
    let campaigns = in_effect.campaigns.iter().map(|release| &release.campaign);
    let ids: Vec<CampaignId> =
        campaigns.filter(|campaign| campaign.state.decides()).map(|campaign| campaign.id).collect();
    let len = u64::try_from(ids.len()).ok().filter(|len| *len > 0)?;
    ids.get(usize::try_from(seed % len).ok()?).copied()
}

//! Backtests: what campaigns would have done on events of the past.
//!
//! The machine decides like the worker, so a backtest of the log equals what was decided live, as
//! long as the documents are the same and nobody returned what was reserved. Budgets and limits
//! begin with the range; counts include what happened before it.

mod report;

pub use report::{Backtest, BudgetReport, StepReport};

use crate::Error;
use crate::answers::Answers;
use crate::machine::{Machine, Plan};
use crate::measure::Measures;
use crate::progress::Progress;
use crate::request::BacktestRequest;
use crate::source::{Lines, Span, read_lines, walk};
use raingauge_campaigns::calendar::Period;
use raingauge_campaigns::campaign::{Campaign, CampaignId, CountWindow};
use raingauge_campaigns::engine::Documents;
use raingauge_ports::log::EventLog;
use raingauge_ports::record::Entry;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

const DAY_MS: i64 = 86_400_000;
/// How much earlier than the times of its events the log is read: events may come from the future,
/// and clocks differ.
const CLOCKS_MARGIN_MS: i64 = DAY_MS;
/// A lateness that no event reaches.
const NEVER_LATE_MS: i64 = i64::MAX;

/// Where a replay gets its events.
pub enum Source {
    Log(Vec<Arc<dyn EventLog>>),
    Lines(Lines),
}

/// What is replayed.
pub struct Setup {
    pub documents: Documents,
    pub range_ms: Range<i64>,
    pub sample: u64,
    pub by: Vec<String>,
    /// Campaigns whose activity was replaced by the range.
    pub moved: BTreeSet<CampaignId>,
}

/// A machine that has been through all events, and what was measured.
pub struct Replayed {
    pub machine: Machine,
    pub measures: Measures,
}

impl Setup {
    /// Prepares documents for the range of a request. A campaign that is not active in the range,
    /// because it is yet to begin, is replayed as if the range were its activity.
    pub fn new(mut documents: Documents, request: &BacktestRequest, now_ms: i64) -> Self {
        let range_ms = request.range_ms();
        if request.ignore_lateness {
            documents.late_after_ms = NEVER_LATE_MS;
        }
        let mut moved = BTreeSet::new();
        for release in &mut documents.campaigns {
            if move_activity(&mut release.campaign, &range_ms, now_ms) {
                moved.insert(release.campaign.id);
            }
        }
        Self { documents, range_ms, sample: request.sample(), by: request.by.clone(), moved }
    }

    /// Feeds all events to a machine. Blocks the thread.
    pub fn replay(
        &self,
        source: Source,
        answers: &mut Answers,
        progress: &Progress,
    ) -> Result<Replayed, Error> {
        let measures = Measures::new(&self.documents, &self.by)?;
        let machine = Machine::new(Plan {
            documents: self.documents.clone(),
            range_ms: self.range_ms.clone(),
            sample: self.sample,
        })?;
        let mut replayed = Replayed { machine, measures };
        match source {
            Source::Lines(lines) => {
                read_lines(lines, progress, |event| replayed.take(event, event.time_ms, answers))?
            }
            Source::Log(logs) => self.read_log(&logs, &mut replayed, answers, progress)?,
        }
        Ok(replayed)
    }

    fn read_log(
        &self,
        logs: &[Arc<dyn EventLog>],
        replayed: &mut Replayed,
        answers: &mut Answers,
        progress: &Progress,
    ) -> Result<(), Error> {
        let since_ms = self.counted_from_ms().saturating_sub(CLOCKS_MARGIN_MS);
        let since_ms = if since_ms <= 0 { i64::MIN } else { since_ms };
        let until_ms = self.range_ms.end.saturating_add(self.documents.late_after_ms);

        let spans = logs.iter().map(|log| Span::since(log, since_ms)).collect();
        walk(spans, progress, |step| {
            if step.appended_ms > until_ms {
                return Ok(false);
            }
            if let Entry::Event(event) = &step.entry {
                replayed.take(event, step.appended_ms, answers)?;
            }
            Ok(true)
        })
    }

    /// The time of the first event that any count includes, for an event of the range.
    fn counted_from_ms(&self) -> i64 {
        let start_ms = self.range_ms.start;
        let campaigns = self.documents.campaigns.iter().map(|release| &release.campaign);
        let counted = campaigns.flat_map(|campaign| {
            campaign.counts.values().map(move |count| match &count.window {
                CountWindow::Campaign => campaign.activity_ms().0,
                CountWindow::Last(length) => start_ms.saturating_sub(length.ms()),
                // This period and the one before, in any zone.
                CountWindow::Calendar(period) => {
                    let days = match period {
                        Period::Day => 3,
                        Period::Week => 15,
                        Period::Month => 63,
                    };
                    start_ms.saturating_sub(days * DAY_MS)
                }
                CountWindow::Counter { .. } => start_ms,
            })
        });
        counted.min().unwrap_or(start_ms).min(start_ms)
    }
}

impl Replayed {
    fn take(
        &mut self,
        event: &raingauge_core::event::Event<'_>,
        appended_ms: i64,
        answers: &mut Answers,
    ) -> Result<(), Error> {
        self.measures.events += 1;
        if !self.machine.takes(event) {
            return Ok(());
        }
        let turn = self.machine.take(event, appended_ms, answers)?;
        if self.machine.is_in_range(event.time_ms) {
            self.measures.cover(event.time_ms);
        }
        self.measures.take(event, &turn, answers);
        Ok(())
    }
}

/// Replaces an activity that does not meet the range, or that is yet to begin.
fn move_activity(campaign: &mut Campaign, range_ms: &Range<i64>, now_ms: i64) -> bool {
    let (from_ms, until_ms) = campaign.activity_ms();
    let meets = from_ms < range_ms.end && range_ms.start < until_ms && from_ms <= now_ms;
    if meets {
        return false;
    }
    let seconds = |at_ms: i64| at_ms.div_euclid(1_000);
    campaign.active_from = (range_ms.start != i64::MIN).then(|| seconds(range_ms.start));
    campaign.active_until = (range_ms.end != i64::MAX).then(|| seconds(range_ms.end));
    true
}

/// Runs a backtest. Blocks the thread.
pub fn backtest(
    setup: &Setup,
    source: Source,
    answers: &mut Answers,
    progress: &Progress,
) -> Result<Backtest, Error> {
    let replayed = setup.replay(source, answers, progress)?;
    Ok(Backtest::of(setup, &replayed, answers))
}

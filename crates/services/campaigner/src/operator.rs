//! What operators ask of campaigns, by entries of the log: it takes effect at its place among the
//! events, in this process or, after a crash, in the next one.

use crate::handle::Handle;
use crate::orders::{RefusedStep, erasure_entry, redrive_entry};
use crate::turn::OFFSET;
use raingauge_campaigns::campaign::CampaignId;
use raingauge_campaigns::decision::{ActionId, Reason};
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use raingauge_ports::campaigns::{self, Decision, DecisionQuery, LedgerReader};
use raingauge_ports::log::{self, EventSink, Offset, Partition};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The partition whose worker decides.
const PARTITION: Partition = 0;
/// How long a call waits until its entry has taken effect.
const PATIENCE: Duration = Duration::from_secs(10);

/// Most refused actions that one call decides again: the oldest ones.
const REDRIVEN_ACTIONS_MAX: usize = 100_000;
/// Steps of one entry, which are decided in one commit.
const ENTRY_STEPS_MAX: usize = 200;

#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error(transparent)]
    Ledger(#[from] campaigns::Error),
    #[error(
        "it is in the log, and takes effect when campaigns get there; that has taken more than \
         {waited_s} s so far"
    )]
    NotInEffect { waited_s: u64 },
}

#[derive(Clone)]
pub struct Operator {
    sink: Arc<dyn EventSink>,
    ledger: Arc<dyn LedgerReader>,
    worker: Handle,
}

/// An action that its budget refused.
struct RefusedAction {
    action: ActionId,
    step: RefusedStep,
}

impl Operator {
    pub fn new(sink: Arc<dyn EventSink>, ledger: Arc<dyn LedgerReader>, worker: Handle) -> Self {
        Self { sink, ledger, worker }
    }

    /// Erases what campaigns remember of a subject: counts, usage, exposures, what waits for it,
    /// its decisions and its deliveries. Returns once that is durable.
    pub async fn erase(&self, subject: &str) -> Result<(), OperatorError> {
        self.order(erasure_entry(subject)).await
    }

    /// Decides again what budgets of a campaign, or of all, refused: the oldest first, under the
    /// same ids, by the documents of now. Returns how many actions that granted.
    pub async fn redrive(&self, campaign: Option<CampaignId>) -> Result<usize, OperatorError> {
        let mut known = HashSet::new();
        let mut steps = Vec::new();
        let mut actions = Vec::new();
        for RefusedAction { action, step } in self.refused(campaign).await? {
            if self.ledger.granted(action).await?.is_some() {
                continue;
            }
            actions.push(action);
            if known.insert(step.clone()) {
                steps.push(step);
            }
        }

        for steps in steps.chunks(ENTRY_STEPS_MAX) {
            self.order(redrive_entry(steps)).await?;
        }
        let mut granted = 0;
        for action in actions {
            granted += usize::from(self.ledger.granted(action).await?.is_some());
        }
        Ok(granted)
    }

    /// The actions that budgets refused, the oldest first, as far as their events can be found.
    async fn refused(
        &self,
        campaign: Option<CampaignId>,
    ) -> Result<VecDeque<RefusedAction>, OperatorError> {
        let outcome = Some(Reason::BudgetExhausted.as_str().to_owned());
        let mut query =
            DecisionQuery { campaign, outcome, len_max: LEDGER_PAGE_LEN_MAX, ..Default::default() };
        query.from_ms = i64::MIN;
        let mut found = VecDeque::new();
        let mut known = HashSet::new();
        loop {
            let page = self.ledger.decisions(query.clone()).await?;
            for Decision { action, campaign, step, evidence, .. } in page.decisions {
                let Some(offset) = offset_in(&evidence).filter(|_| known.insert(action)) else {
                    continue;
                };
                let step = RefusedStep { campaign, step, offset };
                found.push_front(RefusedAction { action, step });
                found.truncate(REDRIVEN_ACTIONS_MAX);
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(found),
            }
        }
    }

    /// Writes an entry, and waits until it has taken effect.
    async fn order(&self, entry: Vec<u8>) -> Result<(), OperatorError> {
        let end = self.sink.append_control(PARTITION, entry).await?;
        let deadline = Instant::now() + PATIENCE;
        if self.worker.wait_decided(end, deadline).await {
            Ok(())
        } else {
            Err(OperatorError::NotInEffect { waited_s: PATIENCE.as_secs() })
        }
    }
}

/// The place of the event in the log, as the evidence of a refusal has it.
fn offset_in(evidence: &str) -> Option<Offset> {
    let evidence: serde_json::Value = serde_json::from_str(evidence).ok()?;
    evidence[OFFSET].as_u64()
}

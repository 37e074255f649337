//! What waits for its time, as it is stored in a timer.

use crate::error::Error;
use raingauge_campaigns::decision::ActionId;
use raingauge_campaigns::engine::Held;
use raingauge_campaigns::states::BudgetKey;
use raingauge_core::event::Event;
use raingauge_ports::campaigns::limits::LEDGER_TIMER_LEN_MAX;
use raingauge_ports::campaigns::{CampaignId, Cost, Decision, Timer};
use raingauge_ports::log::Offset;
use serde::{Deserialize, Serialize};

/// Timers of paused campaigns wait behind all others, in the order in which they were due.
pub const PARKED_MS: i64 = 1 << 60;
/// When a lookup that failed is tried again, in seconds; then it is given up.
const RETRIES_S: [i64; 8] = [30, 60, 120, 240, 480, 960, 1_920, 3_600];

/// The body of a timer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Waiting {
    Action(Box<DelayedAction>),
    Evaluation(Box<HeldEvaluation>),
}

/// An action that was granted, and rendered then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DelayedAction {
    pub version: u32,
    pub step: String,
    pub name: String,
    pub variant: Option<String>,
    pub source: String,
    pub event: String,
    pub event_ms: i64,
    pub decided_ms: i64,
    pub destination: String,
    pub cost: Option<StoredCost>,
    pub body: String,
    /// The event, for an action that is rechecked.
    pub recheck: Option<StoredEvent>,
    /// Whether an event may cancel it.
    pub is_cancellable: bool,
    /// How often its recheck failed.
    pub tries: usize,
}

/// An evaluation that waits for lookups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldEvaluation {
    pub event: StoredEvent,
    pub held: Held,
    pub tries: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredCost {
    pub campaign: CampaignId,
    pub budget: String,
    pub period: i32,
    pub amount: i64,
    pub is_refunded: bool,
}

/// An event as the engine reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredEvent {
    pub source: String,
    pub id: String,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub time_ms: i64,
    pub data: String,
    /// Its place in the log, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Offset>,
}

/// A timer whose time has come, or that is cancelled.
#[derive(Clone, Debug)]
pub struct Due {
    pub due_ms: i64,
    pub action: ActionId,
    pub campaign: CampaignId,
    pub subject: String,
    pub waiting: Waiting,
}

impl Due {
    pub fn of(timer: Timer) -> Result<Self, Error> {
        let waiting = serde_json::from_slice(&timer.body)
            .map_err(|error| Error::Control(format!("a timer: {error}")))?;
        let Timer { due_ms, action, campaign, subject, body: _ } = timer;
        Ok(Self { due_ms, action, campaign, subject, waiting })
    }

    pub fn place(&self) -> (i64, ActionId) {
        (self.due_ms, self.action)
    }

    pub fn is_parked(&self) -> bool {
        self.due_ms >= PARKED_MS
    }

    /// The timer at another time. `None` for one that is too large to be kept.
    pub fn at(self, due_ms: i64) -> Option<Timer> {
        let Self { action, campaign, subject, mut waiting, .. } = self;
        let mut body = waiting.to_bytes();
        if body.len() > LEDGER_TIMER_LEN_MAX
            && let Waiting::Evaluation(evaluation) = &mut waiting
        {
            // What was answered is asked again.
            evaluation.held.answers.clear();
            body = waiting.to_bytes();
        }
        let fits = body.len() <= LEDGER_TIMER_LEN_MAX;
        fits.then_some(Timer { due_ms, action, campaign, subject, body })
    }
}

impl Waiting {
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers are JSON")
    }
}

/// How long to wait after this number of tries; `None` to give up.
pub fn retry_ms(tries: usize) -> Option<i64> {
    RETRIES_S.get(tries).map(|seconds| seconds * 1_000)
}

impl DelayedAction {
    /// The decision that ends an action which was granted and will not happen.
    pub fn ended(&self, due: &Due, outcome: &str, evidence: String, log_ms: i64) -> Decision {
        Decision {
            action: due.action,
            is_granted: false,
            campaign: due.campaign,
            version: self.version,
            step: self.step.clone(),
            name: self.name.clone(),
            subject: due.subject.clone(),
            source: self.source.clone(),
            event: self.event.clone(),
            event_ms: self.event_ms,
            // Both decisions are kept, by time and id.
            decided_ms: log_ms.max(self.decided_ms + 1),
            outcome: outcome.to_owned(),
            variant: self.variant.clone(),
            cost: self.cost.clone().map(Cost::from),
            evidence,
        }
    }
}

impl StoredEvent {
    pub fn of(event: &Event<'_>) -> Self {
        Self {
            source: event.source.clone().into_owned(),
            id: event.id.clone().into_owned(),
            kind: event.kind.clone().into_owned(),
            subject: event.subject.clone().map(|subject| subject.into_owned()),
            time_ms: event.time_ms,
            data: event.data.to_owned(),
            offset: None,
        }
    }

    pub fn event(&self) -> Event<'_> {
        Event {
            id: self.id.as_str().into(),
            source: self.source.as_str().into(),
            kind: self.kind.as_str().into(),
            subject: self.subject.as_deref().map(Into::into),
            time_ms: self.time_ms,
            data: &self.data,
            refused_keys: Default::default(),
        }
    }
}

impl From<&Cost> for StoredCost {
    fn from(cost: &Cost) -> Self {
        let BudgetKey { campaign, name, period } = cost.budget.clone();
        let Cost { amount, is_refunded, .. } = *cost;
        Self { campaign, budget: name, period, amount, is_refunded }
    }
}

impl From<StoredCost> for Cost {
    fn from(stored: StoredCost) -> Self {
        let StoredCost { campaign, budget: name, period, amount, is_refunded } = stored;
        Self { budget: BudgetKey { campaign, name, period }, amount, is_refunded }
    }
}

/// The id of the timer of an evaluation that waits. No action has it: campaigns begin at 1.
pub fn evaluation_id(event: &Event<'_>) -> ActionId {
    ActionId::new(0, (&event.source, &event.id), "", "evaluation", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_read_again() {
        let event = Event::of_data("order", 5, r#"{"user": "u"}"#);
        let stored = StoredEvent::of(&event);
        assert_eq!(stored.event(), event);

        let held = Held { campaigns: vec![7], counts: Vec::new(), answers: Vec::new() };
        let evaluation = HeldEvaluation { event: stored, held, tries: 2 };
        let due = Due {
            due_ms: 9,
            action: evaluation_id(&event),
            campaign: 0,
            subject: String::new(),
            waiting: Waiting::Evaluation(Box::new(evaluation)),
        };
        let timer = due.clone().at(10).unwrap();
        let read = Due::of(timer).unwrap();
        assert_eq!((read.due_ms, &read.waiting), (10, &due.waiting));
        assert_eq!(read.place(), (10, due.action));
        assert!(!read.is_parked());
    }

    #[test]
    fn a_lookup_is_tried_for_two_hours() {
        let waits: Vec<i64> = (0..9).map_while(retry_ms).collect();
        assert_eq!(waits.len(), 8);
        assert_eq!((waits[0], waits[7]), (30_000, 3_600_000));
    }
}

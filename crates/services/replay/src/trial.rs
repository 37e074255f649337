//! Tests of documents: a few events, what is decided on them, and why. Nothing is kept.

use crate::Error;
use crate::answers::{Answers, LookupCounts};
use crate::documents::reported_id;
use crate::figures::instant;
use crate::machine::{Machine, Plan, Turn};
use crate::request::{AssumedStates, EventName, TestRequest};
use raingauge_campaigns::campaign::CampaignId;
use raingauge_campaigns::decision::{ActionId, Decision, Reason};
use raingauge_campaigns::engine::{Documents, Nearest};
use raingauge_core::counter::Problem;
use raingauge_core::event::Event;
use serde::Serialize;
use serde_json::{Value as Json, json};

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// Of all events, in their order.
    pub decisions: Vec<TrialDecision>,
    /// The conditions of all events, in the order in which they were tested.
    pub trace: Vec<Json>,
    pub events: Vec<TrialEvent>,
    pub lookups: LookupCounts,
}

/// What one event led to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialEvent {
    pub event: EventName,
    pub decisions: Vec<TrialDecision>,
    /// What each campaign made of it, and why.
    pub explanations: Vec<TrialExplanation>,
    /// Actions of earlier events that it cancelled.
    pub cancelled: Vec<ActionId>,
    /// Campaigns that wait for a lookup without an answer.
    pub undecided: Vec<CampaignId>,
}

/// One campaign on one event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialExplanation {
    pub campaign: CampaignId,
    /// The first reason against it; `granted` or the reason of a gate, where its rule holds.
    pub code: Reason,
    pub trace: Vec<Json>,
    pub nearest: Vec<Nearest>,
}

/// A decision, as those of the ledger are listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialDecision {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    pub campaign: CampaignId,
    pub version: u32,
    pub step: String,
    pub name: String,
    pub subject: String,
    pub source: String,
    pub event: String,
    pub event_time: String,
    pub due_at: String,
    pub outcome: Reason,
    pub variant: Option<String>,
    pub cost: Option<Json>,
    pub evidence: Json,
}

impl TrialDecision {
    fn of(event: &Event<'_>, decision: &Decision) -> Self {
        let cost = decision.cost.as_ref();
        Self {
            action: decision.is_granted().then_some(decision.action),
            campaign: reported_id(decision.campaign),
            version: decision.version,
            step: decision.step.clone(),
            name: decision.name.clone(),
            subject: decision.subject.clone(),
            source: event.source.to_string(),
            event: event.id.to_string(),
            event_time: instant(event.time_ms),
            due_at: instant(decision.due_ms),
            outcome: decision.reason,
            variant: decision.variant.clone(),
            cost: cost.map(|cost| json!({"budget": cost.budget.name, "amount": cost.amount})),
            evidence: decision.evidence.clone(),
        }
    }
}

/// Runs a test. Each event counts as appended when it happened.
pub fn test(
    request: &TestRequest,
    documents: Documents,
    answers: &mut Answers,
) -> Result<Trial, Error> {
    let mut events = Vec::new();
    for (place, raw) in request.events.iter().enumerate() {
        let event = Event::from_json(raw.get().as_bytes());
        let refused = |refusal: raingauge_core::code::Refusal| {
            Error::invalid(format!("events[{place}]"), refusal.detail)
        };
        events.push(event.map_err(refused)?);
    }

    let ids: Vec<CampaignId> =
        documents.campaigns.iter().map(|release| release.campaign.id).collect();
    let range_ms = i64::MIN..i64::MAX;
    let mut machine = Machine::new(Plan { documents, range_ms, sample: 1 })?;
    if let Some(first) = events.first() {
        assume(&mut machine, &request.assume, &ids, first.time_ms)?;
    }

    let mut trial = Trial::default();
    for event in &events {
        let found = take(&mut machine, &ids, event, answers)?;
        trial.trace.extend(found.explanations.iter().flat_map(|one| one.trace.clone()));
        let decisions = found.turn.outcome.decisions.iter();
        let decisions: Vec<TrialDecision> =
            decisions.map(|decision| TrialDecision::of(event, decision)).collect();
        trial.decisions.extend(decisions.iter().cloned());
        trial.events.push(found.into_event(event, decisions));
    }
    trial.lookups = answers.counts();
    Ok(trial)
}

/// An event that was decided, with what each campaign made of it.
struct Found {
    turn: Turn,
    explanations: Vec<TrialExplanation>,
}

impl Found {
    fn into_event(self, event: &Event<'_>, decisions: Vec<TrialDecision>) -> TrialEvent {
        let outcome = &self.turn.outcome;
        let held = outcome.held.iter().flat_map(|held| &held.campaigns);
        TrialEvent {
            event: EventName { source: event.source.to_string(), id: event.id.to_string() },
            cancelled: outcome.cancelled.iter().map(|(_, action)| *action).collect(),
            undecided: held.map(|id| reported_id(*id)).collect(),
            explanations: self.explanations,
            decisions,
        }
    }
}

fn take(
    machine: &mut Machine,
    ids: &[CampaignId],
    event: &Event<'_>,
    answers: &mut Answers,
) -> Result<Found, Error> {
    let mut explained = Vec::new();
    let turn =
        machine.take_with(event, event.time_ms, answers, &mut |engine, pending, memory| {
            for id in ids {
                if let Some(explanation) = engine.explain(pending, *id, memory) {
                    explained.push((*id, explanation));
                }
            }
        })?;

    let explanations = explained.into_iter().map(|(id, explanation)| {
        let decided = turn.outcome.decisions.iter().filter(|decision| decision.campaign == id);
        let mut reasons: Vec<Reason> = decided.map(|decision| decision.reason).collect();
        // A step that is granted says more than one that is refused.
        reasons.sort_by_key(|reason| !matches!(reason, Reason::Granted | Reason::Delayed));
        let code = explanation.code.or(reasons.first().copied()).unwrap_or(Reason::Duplicate);
        let campaign = reported_id(id);
        TrialExplanation { campaign, code, trace: explanation.trace, nearest: explanation.nearest }
    });
    let explanations = explanations.collect();
    Ok(Found { explanations, turn })
}

/// Sets what the campaigns remember before the first event.
fn assume(
    machine: &mut Machine,
    assume: &AssumedStates,
    ids: &[CampaignId],
    at_ms: i64,
) -> Result<(), Error> {
    let mut problems = Vec::new();
    for (subject, counts) in &assume.counts {
        for (name, value) in counts {
            if !machine.assume_count(ids, name, subject, *value, at_ms) {
                let field = format!("assume.counts.{subject}.{name}");
                problems.push(Problem::new(field, "no condition reads a tally of this name"));
            }
        }
    }
    for (subject, steps) in &assume.usage {
        for (step, value) in steps {
            if !machine.assume_usage(ids, step, subject, *value, at_ms) {
                let field = format!("assume.usage.{subject}.{step}");
                problems.push(Problem::new(field, "no campaign has a step of this name"));
            }
        }
    }
    for (name, amount) in &assume.budgets {
        if *amount < 0 || !machine.assume_budget(ids, name, *amount, at_ms) {
            let field = format!("assume.budgets.{name}");
            problems
                .push(Problem::new(field, "there is no such budget, or less than nothing in it"));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::Invalid(problems)) }
}

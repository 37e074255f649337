//! The engine with what it remembers, fed by one stream of events: what the worker does, without
//! its log and its ledger.
//!
//! ```text
//!   entry ──▶ timers that are due ──▶ counts ──▶ lookups ──▶ decision ──▶ budgets, timers
//! ```
//!
//! An action with a delay holds its budget until it is due. A machine keeps those that an event may
//! cancel, or that are checked again, and returns what they had reserved.

use crate::Error;
use crate::answers::Answers;
use crate::documents::field_of;
use crate::memory::{Accounts, Memory};
use raingauge_campaigns::calendar::Zone;
use raingauge_campaigns::campaign::{Campaign, CampaignId};
use raingauge_campaigns::decision::{ActionId, Cost, Decision, Reason};
use raingauge_campaigns::engine::{At, Documents, Engine, Outcome, Pending};
use raingauge_campaigns::index::Scratch;
use raingauge_core::event::Event;
use raingauge_core::field::{Field, extract};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// What a machine is made of.
pub struct Plan {
    pub documents: Documents,
    /// The times of the events that decide. All others are counted.
    pub range_ms: Range<i64>,
    /// One in `sample` subjects takes part.
    pub sample: u64,
}

pub struct Machine {
    engine: Engine,
    /// Counts, and decides nothing.
    counting: Engine,
    campaigns: BTreeMap<CampaignId, Campaign>,
    range_ms: Range<i64>,
    sample: u64,
    subject: Vec<Field>,
    pub memory: Memory,
    pub accounts: Accounts,
    scratch: Scratch,
    waiting: BTreeMap<(i64, ActionId), WaitingAction>,
}

/// An action that is due later.
struct WaitingAction {
    undone: Undone,
    /// The event, if the action is checked again when it is due.
    event: Option<OwnedEvent>,
}

/// An action that was granted, and will not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    pub action: ActionId,
    pub campaign: CampaignId,
    pub step: String,
    pub name: String,
    pub reason: Reason,
    /// When the event happened.
    pub event_ms: i64,
    pub cost: Option<Cost>,
    /// Whether it is the first action of its step: a step is undone with it.
    pub is_first: bool,
}

/// What an event led to.
#[derive(Debug, Default)]
pub struct Turn {
    pub outcome: Outcome,
    /// Actions of earlier events that were cancelled, or failed when they were checked again.
    pub undone: Vec<Undone>,
}

/// An event that outlives the block that it was read in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedEvent {
    id: String,
    source: String,
    kind: String,
    subject: Option<String>,
    time_ms: i64,
    data: String,
}

impl OwnedEvent {
    pub fn of(event: &Event<'_>) -> Self {
        Self {
            id: event.id.to_string(),
            source: event.source.to_string(),
            kind: event.kind.to_string(),
            subject: event.subject.as_deref().map(str::to_owned),
            time_ms: event.time_ms,
            data: event.data.to_owned(),
        }
    }

    pub fn event(&self) -> Event<'_> {
        Event {
            id: self.id.as_str().into(),
            source: self.source.as_str().into(),
            kind: self.kind.as_str().into(),
            subject: self.subject.as_deref().map(Cow::Borrowed),
            time_ms: self.time_ms,
            data: &self.data,
            refused_keys: Cow::default(),
        }
    }
}

impl Machine {
    pub fn new(plan: Plan) -> Result<Self, Error> {
        let Plan { documents, range_ms, sample } = plan;
        let subject = sampled_subject(&documents, sample)?;
        let mut counting = documents.clone();
        counting.campaigns.iter_mut().for_each(|release| release.is_warming = true);
        let campaigns = documents.campaigns.iter().map(|release| &release.campaign);

        Ok(Self {
            campaigns: campaigns.map(|campaign| (campaign.id, campaign.clone())).collect(),
            engine: Engine::new(documents),
            counting: Engine::new(counting),
            range_ms,
            sample,
            subject,
            memory: Memory::default(),
            accounts: Accounts::new(sample),
            scratch: Scratch::default(),
            waiting: BTreeMap::new(),
        })
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Sets a count of a subject in all campaigns that have one of this name.
    pub fn assume_count(
        &mut self,
        campaigns: &[CampaignId],
        name: &str,
        subject: &str,
        value: i64,
        at_ms: i64,
    ) -> bool {
        let memory = &mut self.memory;
        let assumed = campaigns
            .iter()
            .filter(|id| self.engine.assume_count((**id, name), subject, value, at_ms, memory));
        assumed.count() > 0
    }

    /// Sets how often a subject got a step, in all campaigns that have one of this name.
    pub fn assume_usage(
        &mut self,
        campaigns: &[CampaignId],
        step: &str,
        subject: &str,
        value: i64,
        at_ms: i64,
    ) -> bool {
        let memory = &mut self.memory;
        let assumed = campaigns
            .iter()
            .filter(|id| self.engine.assume_usage((**id, step), subject, value, at_ms, memory));
        assumed.count() > 0
    }

    /// Sets what is reserved of a budget, in all campaigns that pay from one of this name.
    pub fn assume_budget(
        &mut self,
        campaigns: &[CampaignId],
        name: &str,
        amount: i64,
        at_ms: i64,
    ) -> bool {
        let found = campaigns.iter().filter_map(|id| self.engine.budget_of(*id, name, at_ms));
        let found: Vec<_> = found.collect();
        let is_known = !found.is_empty();
        for (key, max) in found {
            self.accounts.assume(key, max, amount);
        }
        is_known
    }

    pub fn campaigns(&self) -> impl Iterator<Item = &Campaign> {
        self.campaigns.values()
    }

    /// Whether an event of this time decides.
    pub fn is_in_range(&self, time_ms: i64) -> bool {
        self.range_ms.contains(&time_ms)
    }

    /// Whether the event belongs to a subject that takes part.
    pub fn takes(&self, event: &Event<'_>) -> bool {
        if self.sample <= 1 {
            return true;
        }
        let mut found = Vec::new();
        extract(event, &self.subject, &mut found);
        let subject = found.pop().flatten();
        subject.is_some_and(|subject| {
            xxh3_64(subject.as_text().as_bytes()).is_multiple_of(self.sample)
        })
    }

    /// Decides an event, or only counts it.
    pub fn take(
        &mut self,
        event: &Event<'_>,
        appended_ms: i64,
        answers: &mut Answers,
    ) -> Result<Turn, Error> {
        self.take_with(event, appended_ms, answers, &mut |_, _, _| {})
    }

    /// Decides an event, and shows its evaluation before that.
    pub fn take_with(
        &mut self,
        event: &Event<'_>,
        appended_ms: i64,
        answers: &mut Answers,
        show: &mut dyn FnMut(&Engine, &mut Pending<'_>, &mut Memory),
    ) -> Result<Turn, Error> {
        let mut turn = Turn { undone: self.fire(appended_ms, answers), ..Turn::default() };
        let is_decided = self.is_in_range(event.time_ms);
        let engine = if is_decided { &self.engine } else { &self.counting };

        let at = At { appended_ms };
        let mut pending = engine.begin(event, at, &mut self.memory, &mut self.scratch);
        answers.feed(engine, event, &mut pending);
        show(engine, &mut pending, &mut self.memory);

        self.accounts.turn_to(event.time_ms);
        turn.outcome = engine.decide(pending, &mut self.memory, &mut self.accounts);

        self.memory.note(&turn.outcome.decisions);
        self.settle(event, &mut turn);
        self.memory.check()?;
        Ok(turn)
    }

    /// Keeps what waits, and undoes what was cancelled.
    fn settle(&mut self, event: &Event<'_>, turn: &mut Turn) {
        for due in &turn.outcome.cancelled {
            if let Some(found) = self.waiting.remove(due) {
                turn.undone.push(self.undo(found.undone, Reason::Cancelled));
            }
        }

        let decisions = &turn.outcome.decisions;
        for (place, decision) in decisions.iter().enumerate() {
            match decision.reason {
                Reason::Delayed => {
                    let same_step = |other: &Decision| {
                        other.campaign == decision.campaign && other.step == decision.step
                    };
                    let before = place.checked_sub(1).and_then(|before| decisions.get(before));
                    let is_first = !before.is_some_and(same_step);
                    self.wait(event, decision, is_first);
                }
                Reason::BudgetExhausted => {
                    let gate = decision.evidence.get("gate");
                    let name = gate.and_then(|gate| gate.get("budget")?.as_str());
                    let account = name.and_then(|name| {
                        self.engine.budget_of(decision.campaign, name, event.time_ms)
                    });
                    if let Some((key, _)) = account {
                        self.accounts.refuse(&key);
                    }
                }
                _ => {}
            }
        }
    }

    fn wait(&mut self, event: &Event<'_>, decision: &Decision, is_first: bool) {
        let Some(campaign) = self.campaigns.get(&decision.campaign) else { return };
        let step = campaign.steps.iter().find(|step| step.name == decision.step);
        let action =
            step.and_then(|step| step.actions.iter().find(|action| action.name == decision.name));
        let Some(action) = action.filter(|one| one.cancel.is_some() || one.recheck.is_some())
        else {
            return;
        };

        let undone = Undone {
            action: decision.action,
            campaign: decision.campaign,
            step: decision.step.clone(),
            name: decision.name.clone(),
            reason: Reason::Delayed,
            event_ms: event.time_ms,
            cost: decision.cost.clone(),
            is_first,
        };
        let event = action.recheck.is_some().then(|| OwnedEvent::of(event));
        self.waiting.insert((decision.due_ms, decision.action), WaitingAction { undone, event });
    }

    /// Fires what is due once everything appended before `until_ms` has been applied.
    fn fire(&mut self, until_ms: i64, answers: &mut Answers) -> Vec<Undone> {
        let mut undone = Vec::new();
        while let Some(entry) = self.waiting.first_entry() {
            let (due_ms, _) = *entry.key();
            if due_ms > until_ms {
                break;
            }
            let waiting = entry.remove();
            if self.is_refused(&waiting, answers) {
                undone.push(self.undo(waiting.undone, Reason::RecheckFailed));
            }
        }
        undone
    }

    /// Whether an action that is due does not pass its recheck.
    fn is_refused(&self, waiting: &WaitingAction, answers: &mut Answers) -> bool {
        let Some(event) = waiting.event.as_ref().map(OwnedEvent::event) else { return false };
        let Undone { campaign, step, name, .. } = &waiting.undone;
        let Some(mut pending) = self.engine.recheck(&event, (*campaign, step, name)) else {
            return false;
        };
        answers.feed(&self.engine, &event, &mut pending);
        self.engine.recheck_result(&pending) == Some(false)
    }

    fn undo(&mut self, undone: Undone, reason: Reason) -> Undone {
        if let Some(cost) = undone.cost.as_ref().filter(|cost| cost.is_refunded) {
            self.accounts.give_back(&cost.budget, cost.amount);
        }
        Undone { reason, ..undone }
    }
}

/// The zone of a campaign's days. Where each subject has its own, it is UTC.
pub fn zone_of(campaign: &Campaign) -> Zone {
    Zone::of_name(&campaign.zone).unwrap_or_else(Zone::utc)
}

/// The subject by which a sample is drawn.
fn sampled_subject(documents: &Documents, sample: u64) -> Result<Vec<Field>, Error> {
    let mut subjects = documents.campaigns.iter().map(|release| release.campaign.subject.as_str());
    let Some(first) = subjects.next().filter(|_| sample > 1) else { return Ok(Vec::new()) };
    if subjects.any(|other| other != first) {
        let detail = "a sample is drawn from one kind of subjects: these campaigns have several";
        return Err(Error::invalid("sample", detail));
    }
    Ok(field_of(first).into_iter().collect())
}

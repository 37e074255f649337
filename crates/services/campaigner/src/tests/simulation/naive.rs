//! One walk through the log, entry by entry, that never fails, asks every lookup at once and gets
//! an answer, and remembers everything.

use super::faults::{FailingLookups, WalkChange};
use crate::control::{CONSUMER, order};
use crate::documents::{Documents, begins_in_log};
use crate::tallies::owners_of;
use crate::timer::StoredEvent;
use raingauge_campaigns::body::body;
use raingauge_campaigns::campaign::{CampaignId, State};
use raingauge_campaigns::decision::{ActionId, Cost, Decision, Reason};
use raingauge_campaigns::engine::{
    At, Engine, LookupKey, Pending, forget_waiting, tally_owner, waiting_key,
};
use raingauge_campaigns::index::Scratch;
use raingauge_campaigns::message::Answer;
use raingauge_campaigns::states::{BudgetKey, Budgets, StateKey, StateKind, States};
use raingauge_core::event::Event;
use raingauge_ports::campaigns::StoredDocument;
use raingauge_ports::consumers::Name;
use raingauge_ports::log::{Block, Offset};
use raingauge_ports::record::Entry;
use std::collections::{BTreeMap, BTreeSet};

const LATE_AFTER_MS: i64 = 86_400_000;

/// An action that waits for its time.
struct Later {
    decision: Decision,
    event: StoredEvent,
    body: String,
}

#[derive(Default)]
struct Remembered {
    states: BTreeMap<StateKey, Vec<u8>>,
    granted: BTreeSet<ActionId>,
}

/// Some tallies alone.
struct Only<'r> {
    remembered: &'r mut Remembered,
    owners: &'r BTreeSet<u128>,
}

#[derive(Default)]
pub struct Reserves(pub BTreeMap<BudgetKey, i64>);

pub struct Naive {
    documents: Documents,
    engine: Engine,
    /// Tallies that the worker is filling at this place: their campaigns decide nothing.
    filling: BTreeSet<u128>,
    /// All events so far.
    past: Vec<StoredEvent>,
    remembered: Remembered,
    pub budgets: Reserves,
    /// By the times at which they are due.
    later: BTreeMap<(i64, ActionId), Later>,
    /// Those that came due while their campaign was paused.
    parked: BTreeMap<(i64, ActionId), Later>,
    pub sent: BTreeMap<ActionId, String>,
    /// Every decision: its action and its outcome.
    pub decided: BTreeSet<(ActionId, &'static str)>,
}

impl States for Remembered {
    fn get(&mut self, key: &StateKey) -> Option<&[u8]> {
        self.states.get(key).map(Vec::as_slice)
    }

    fn put(&mut self, key: StateKey, value: Vec<u8>) {
        self.states.insert(key, value);
    }

    fn is_granted(&mut self, action: &ActionId) -> bool {
        self.granted.contains(action)
    }
}

impl Only<'_> {
    fn includes(&self, key: &StateKey) -> bool {
        key.kind == StateKind::Tally && self.owners.contains(&key.owner)
    }
}

impl States for Only<'_> {
    fn get(&mut self, key: &StateKey) -> Option<&[u8]> {
        if self.includes(key) { self.remembered.get(key) } else { None }
    }

    fn put(&mut self, key: StateKey, value: Vec<u8>) {
        if self.includes(&key) {
            self.remembered.put(key, value);
        }
    }

    fn is_granted(&mut self, _: &ActionId) -> bool {
        false
    }
}

impl Budgets for Reserves {
    fn free(&mut self, key: &BudgetKey, max: i64) -> i64 {
        (max - self.0.get(key).copied().unwrap_or(0)).max(0)
    }

    fn reserve(&mut self, key: &BudgetKey, _max: i64, amount: i64) {
        *self.0.entry(key.clone()).or_insert(0) += amount;
    }
}

impl Reserves {
    fn give_back(&mut self, cost: Option<&Cost>) {
        if let Some(cost) = cost {
            *self.0.get_mut(&cost.budget).unwrap() -= cost.amount;
        }
    }
}

impl Naive {
    /// Reads the whole log, with all versions of the documents that its entries name. How long
    /// tallies are filled is the worker's choice, which `walks` has.
    pub fn read(
        blocks: &[Block],
        walks: &[WalkChange],
        document: impl Fn(&str, &str, u32) -> StoredDocument,
    ) -> Self {
        let mut naive = Self {
            documents: Documents::default(),
            engine: Engine::new(Default::default()),
            filling: BTreeSet::new(),
            past: Vec::new(),
            remembered: Remembered::default(),
            budgets: Reserves::default(),
            later: BTreeMap::new(),
            parked: BTreeMap::new(),
            sent: BTreeMap::new(),
            decided: BTreeSet::new(),
        };
        let consumer = Name::new(CONSUMER).unwrap();
        for block in blocks {
            for entry in block.entries(0) {
                let (offset, entry) = entry.unwrap();
                naive.fire(block.appended_ms);
                match entry {
                    Entry::Event(event) => {
                        naive.fill(offset, walks);
                        naive.decide(&event, block.appended_ms);
                        naive.past.push(StoredEvent::of(&event));
                    }
                    Entry::Control(payload) => {
                        let changed = order(payload, &consumer, offset).unwrap().unwrap();
                        let changed = document(&changed.kind, &changed.id, changed.version);
                        naive.change(changed, block.appended_ms);
                    }
                    Entry::Void => {}
                }
            }
        }
        naive
    }

    fn owners(&self) -> BTreeSet<u128> {
        self.documents.campaigns().flat_map(owners_of).collect()
    }

    /// What the tallies that campaigns keep have come to.
    pub fn tallies(&self) -> impl Iterator<Item = (&StateKey, &Vec<u8>)> {
        let kept = self.owners();
        let states = self.remembered.states.iter();
        states.filter(move |(key, _)| key.kind == StateKind::Tally && kept.contains(&key.owner))
    }

    /// The engine at this place, where some campaigns may still be filled.
    fn compile(&mut self) {
        let filled = self.documents.campaigns();
        let filled = filled.filter(|one| owners_of(one).any(|owner| self.filling.contains(&owner)));
        let warming = filled.map(|campaign| campaign.id).collect();
        self.engine = Engine::new(self.documents.engine_documents(&warming, LATE_AFTER_MS));
    }

    /// Takes over what the worker was filling when it decided the entry at an offset.
    fn fill(&mut self, offset: Offset, walks: &[WalkChange]) {
        let change = walks.iter().rfind(|change| change.from <= offset);
        let filling = change.map(|change| change.tallies.clone()).unwrap_or_default();
        if filling != self.filling {
            self.filling = filling;
            self.compile();
        }
    }

    /// Counts all earlier events in the tallies that begin with a campaign and want them.
    fn count_past(&mut self, campaign: CampaignId, before: &BTreeSet<u128>, log_ms: i64) {
        let Some(campaign) = self.documents.campaign(campaign) else { return };
        let kept: BTreeSet<u128> = owners_of(campaign).collect();
        let counts = campaign.counts.values();
        let owners: BTreeSet<u128> = counts
            .filter(|count| begins_in_log(campaign, count, log_ms))
            .filter_map(|count| tally_owner(campaign, count))
            .filter(|owner| kept.contains(owner) && !before.contains(owner))
            .collect();
        for event in &self.past {
            let at = At { appended_ms: event.time_ms };
            let mut only = Only { remembered: &mut self.remembered, owners: &owners };
            self.engine.begin(&event.event(), at, &mut only, &mut Scratch::default());
        }
    }

    fn change(&mut self, document: StoredDocument, log_ms: i64) {
        let before = self.owners();
        let id: Option<CampaignId> = document.id.parse().ok();
        self.documents = self.documents.with([document]);
        self.compile();
        let after = self.owners();
        self.remembered.states.retain(|key, _| {
            let is_kept = !before.contains(&key.owner) || after.contains(&key.owner);
            key.kind != StateKind::Tally || is_kept
        });

        let Some(id) = id else { return };
        self.count_past(id, &before, log_ms);
        let state = self.documents.campaign(id).map(|campaign| campaign.state);
        let own = |later: &BTreeMap<(i64, ActionId), Later>| -> Vec<(i64, ActionId)> {
            let own = later.iter().filter(|(_, later)| later.decision.campaign == id);
            own.map(|(place, _)| *place).collect()
        };
        if state == Some(State::Archived) {
            for place in own(&self.later).into_iter().chain(own(&self.parked)) {
                let later = self.later.remove(&place).or_else(|| self.parked.remove(&place));
                self.end(&later.unwrap(), Reason::Cancelled);
            }
        } else if state.is_some_and(State::decides) {
            for place in own(&self.parked) {
                let later = self.parked.remove(&place).unwrap();
                self.act(later);
            }
        }
    }

    fn decide(&mut self, event: &Event<'_>, log_ms: i64) {
        let at = At { appended_ms: log_ms };
        let mut pending =
            self.engine.begin(event, at, &mut self.remembered, &mut Scratch::default());
        self.answer(&mut pending);
        let outcome = self.engine.decide(pending, &mut self.remembered, &mut self.budgets);
        for place in outcome.cancelled {
            if let Some(later) = self.later.remove(&place) {
                self.end(&later, Reason::Cancelled);
            }
        }
        for decision in outcome.decisions {
            self.decided.insert((decision.action, decision.reason.as_str()));
            if !decision.is_granted() {
                continue;
            }
            self.remembered.granted.insert(decision.action);
            let body = self.body(&decision, event);
            if decision.reason == Reason::Delayed {
                let place = (decision.due_ms, decision.action);
                let later = Later { decision, event: StoredEvent::of(event), body };
                self.later.insert(place, later);
            } else {
                self.sent.insert(decision.action, body);
            }
        }
    }

    fn answer(&self, pending: &mut Pending<'_>) {
        loop {
            let wanted = self.engine.wants(pending);
            if wanted.is_empty() {
                return;
            }
            for key in wanted {
                let truth = FailingLookups::truth(&key);
                self.engine.feed(pending, key, Some(truth));
            }
        }
    }

    fn body(&self, decision: &Decision, event: &Event<'_>) -> String {
        let released = self.documents.released(decision.campaign).unwrap();
        let action = released.action(&decision.step, &decision.name).unwrap();
        let answer = |key: &LookupKey| Some(FailingLookups::truth(key));
        let messages = released.messages().unwrap();
        let sources: (_, Answer<'_>) = (self.documents.rules(), &answer);
        let content = messages.content(&released.campaign, decision, action, event, sources);
        body(decision, action, event, &content.unwrap())
    }

    /// Fires what is due by the time of the log.
    pub fn fire(&mut self, log_ms: i64) {
        while let Some((place, later)) = self.later.pop_first() {
            if place.0 > log_ms {
                self.later.insert(place, later);
                return;
            }
            let state = self.documents.campaign(later.decision.campaign);
            if state.is_some_and(|campaign| campaign.state == State::Paused) {
                self.parked.insert(place, later);
            } else {
                self.act(later);
            }
        }
    }

    fn act(&mut self, later: Later) {
        let Decision { campaign, step, name, .. } = &later.decision;
        let event = later.event.event();
        if let Some(mut pending) = self.engine.recheck(&event, (*campaign, step, name)) {
            self.answer(&mut pending);
            if self.engine.recheck_result(&pending) != Some(true) {
                self.end(&later, Reason::RecheckFailed);
                return;
            }
        }
        self.forget(&later);
        self.sent.insert(later.decision.action, later.body);
    }

    fn end(&mut self, later: &Later, reason: Reason) {
        self.decided.insert((later.decision.action, reason.as_str()));
        self.budgets.give_back(later.decision.cost.as_ref());
        self.forget(later);
    }

    fn forget(&mut self, later: &Later) {
        let Decision { campaign, step, name, subject, action, .. } = &later.decision;
        let campaign = self.documents.campaign(*campaign).unwrap();
        let key = waiting_key(campaign, step, name, subject);
        forget_waiting(&mut self.remembered, key, *action);
    }
}

//! Evaluating the rules of an event, as far as values are at hand.

use super::lookup::{field_of, scalar_at};
use super::waiting::{read_waiting, waiting_key_of};
use super::{
    Bucket, Counting, Engine, Entry, Held, Lookup, LookupClass, LookupKey, OnError, Source,
    TallyDefinition,
};
use crate::calendar::Zone;
use crate::campaign::Campaign;
use crate::decision::ActionId;
use crate::index::Scratch;
use crate::limits::SUBJECT_LEN_MAX;
use crate::rule::TimePart;
use crate::states::{StateKey, StateKind, States};
use crate::tree::Progress;
use crate::values::Values;
use crate::window::{Change, Tally};
use hashbrown::HashMap;
use raingauge_core::event::Event;
use raingauge_core::field::{Field, Scalar, extract};
use raingauge_core::template::Template;
use raingauge_core::value::{FieldValue, Value, scaled};
use serde_json::Value as Json;

/// Quarter hours are what counters count in.
const QUARTER_S: i64 = 900;

/// When an event was appended to the stream, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    pub appended_ms: i64,
}

/// An event whose tallies are counted and whose rules are evaluated as far as values are at hand.
#[derive(Debug)]
pub struct Pending<'e> {
    pub(super) facts: Facts<'e>,
    pub(super) evaluations: Vec<Evaluation>,
    /// Actions that the event cancelled before they were due, and when they are.
    pub(super) cancelled: Vec<(i64, ActionId)>,
    pub(super) is_late: bool,
    candidates: usize,
}

impl Pending<'_> {
    /// How many steps the index found, of which the rules decide.
    pub fn candidates(&self) -> usize {
        self.candidates
    }
}

/// A step whose rule holds, or may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evaluation {
    pub entry: usize,
    pub progress: Progress,
}

/// What is known about an event.
#[derive(Debug)]
pub(super) struct Facts<'e> {
    pub event: Event<'e>,
    pub values: Values<'e>,
    /// Tallies before and after the event, by their numbers.
    pub changes: HashMap<usize, Change>,
    /// Grants before the event, by their owners.
    pub usages: HashMap<u128, i64>,
    /// `None` for a lookup that failed.
    pub answers: HashMap<LookupKey, Option<Json>>,
}

impl<'e> Facts<'e> {
    fn new(event: &Event<'e>) -> Self {
        Self {
            event: event.clone(),
            values: Values::default(),
            changes: HashMap::new(),
            usages: HashMap::new(),
            answers: HashMap::new(),
        }
    }
}

/// A subject's name, if it can have states.
pub(super) fn subject_in<'v>(value: Option<&'v Scalar<'_>>) -> Option<&'v str> {
    value
        .map(Scalar::as_text)
        .filter(|subject| !subject.is_empty() && subject.len() <= SUBJECT_LEN_MAX)
}

/// Whom an event is about, for a campaign; `None` where the event names no subject that can have
/// states.
pub fn subject_of(campaign: &Campaign, event: &Event<'_>) -> Option<String> {
    let field = field_of(&campaign.subject)?;
    let mut values = Vec::new();
    extract(event, std::slice::from_ref(&field), &mut values);
    subject_in(values.first()?.as_ref()).map(str::to_owned)
}

impl Bucket {
    /// The values of an event, and nothing else about it.
    pub(super) fn facts_of<'e>(&self, event: &Event<'e>) -> Facts<'e> {
        Facts { values: self.read(event), ..Facts::new(event) }
    }

    fn read<'e>(&self, event: &Event<'e>) -> Values<'e> {
        let mut values = Vec::with_capacity(self.fields.len() + self.locals.len());
        extract(event, &self.fields, &mut values);
        for (zone, part) in &self.locals {
            values.push(Some(part.value(zone.local(event.time_ms))));
        }
        Values::new(values)
    }

    pub(super) fn value<'v, 'e>(
        &self,
        values: &'v Values<'e>,
        field: &Field,
    ) -> Option<&'v Scalar<'e>> {
        values[self.slot_of(field)].as_ref()
    }
}

impl Engine {
    /// Counts an event in the tallies of its subject, and evaluates the rules that it may make
    /// hold.
    pub fn begin<'e>(
        &self,
        event: &Event<'e>,
        at: At,
        states: &mut dyn States,
        scratch: &mut Scratch,
    ) -> Pending<'e> {
        let mut pending = self.read(event, at);
        let Some(bucket) = self.buckets.get(&*event.kind) else { return pending };
        pending.facts.values = bucket.read(event);
        self.count(bucket, &mut pending.facts, states, scratch);
        pending.cancelled = cancel(bucket, &pending.facts, at, states, scratch, self);
        if pending.is_late {
            return pending;
        }

        let mut candidates = Vec::new();
        let Facts { values, changes, .. } = &pending.facts;
        let changes = changes.iter().map(|(tally, change)| (*tally, *change));
        bucket.entry_index.candidates(values, changes, scratch, |entry| candidates.push(entry));
        pending.candidates = candidates.len();
        for entry in candidates {
            self.evaluate(bucket, entry as usize, &mut pending, states);
        }
        pending
    }

    /// Continues an evaluation that was held, with its tallies as they were and current usage.
    pub fn resume<'e>(
        &self,
        event: &Event<'e>,
        held: &Held,
        states: &mut dyn States,
    ) -> Pending<'e> {
        let mut pending = self.read(event, At { appended_ms: event.time_ms });
        let Some(bucket) = self.buckets.get(&*event.kind) else { return pending };
        pending.facts.values = bucket.read(event);
        for (owner, before, after) in &held.counts {
            let is_owner =
                |tally: &TallyDefinition| format!("{:032x}", tally.owner) == owner.as_str();
            if let Some(number) = self.tallies.iter().position(is_owner) {
                let change = Change { before: *before, after: *after };
                pending.facts.changes.insert(number, change);
            }
        }
        for (key, answer) in &held.answers {
            pending.facts.answers.insert(key.clone(), Some(answer.clone()));
        }

        for entry in 0..bucket.entries.len() {
            let id = self.programs[bucket.entries[entry].program].id();
            let is_recheck = bucket.rechecks.values().any(|recheck| *recheck == entry);
            if held.campaigns.contains(&id) && !is_recheck {
                self.evaluate(bucket, entry, &mut pending, states);
            }
        }
        pending
    }

    /// Begins the rule that an action is rechecked by when it is due. `None` if there is none, and
    /// the action may happen.
    pub fn recheck<'e>(
        &self,
        event: &Event<'e>,
        (campaign, step, action): (u32, &str, &str),
    ) -> Option<Pending<'e>> {
        let bucket = self.buckets.get(&*event.kind)?;
        let number = self.programs.iter().position(|program| program.id() == campaign)?;
        let steps = &self.programs[number].campaign.steps;
        let step_place = steps.iter().position(|known| known.name == step)?;
        let actions = &steps[step_place].actions;
        let action_place = actions.iter().position(|known| known.name == action)?;
        let entry = *bucket.rechecks.get(&(number, step_place, action_place))?;

        let mut pending = self.read(event, At { appended_ms: event.time_ms });
        pending.facts.values = bucket.read(event);
        let progress = bucket.entries[entry].tree.start();
        pending.evaluations.push(Evaluation { entry, progress });
        self.continue_all(bucket, &mut pending);
        Some(pending)
    }

    /// Whether the rule of a recheck holds, once that is known.
    pub fn recheck_result(&self, pending: &Pending<'_>) -> Option<bool> {
        pending.evaluations.first().map_or(Some(false), |only| only.progress.result())
    }

    fn read<'e>(&self, event: &Event<'e>, at: At) -> Pending<'e> {
        let facts = Facts::new(event);
        let is_late = at.appended_ms.saturating_sub(event.time_ms) > self.late_after_ms;
        Pending { facts, evaluations: Vec::new(), cancelled: Vec::new(), is_late, candidates: 0 }
    }

    /// Adds the event to the tallies whose filters it passes.
    fn count(
        &self,
        bucket: &Bucket,
        facts: &mut Facts<'_>,
        states: &mut dyn States,
        scratch: &mut Scratch,
    ) {
        let mut counting = Vec::new();
        bucket.counting_index.candidates(&facts.values, [], scratch, |row| counting.push(row));
        for row in counting {
            let Counting { tally, filter } = &bucket.counting[row as usize];
            if !holds_now(self, filter, facts) {
                continue;
            }
            let definition = &self.tallies[*tally];
            let Some(value) = counted_value(definition, bucket, facts) else { continue };
            let Some(subject) = subject_in(bucket.value(&facts.values, &definition.subject)) else {
                continue;
            };

            let key = tally_key(definition, subject);
            let mut state = load(states, &key, definition);
            let change = definition.window.count(&mut state, facts.event.time_ms, value);
            states.put(key, state.encode());
            if let Some(change) = change {
                facts.changes.insert(*tally, change);
            }
        }
    }

    fn evaluate(
        &self,
        bucket: &Bucket,
        number: usize,
        pending: &mut Pending<'_>,
        states: &mut dyn States,
    ) {
        let entry = &bucket.entries[number];
        let program = &self.programs[entry.program];
        let is_active = program.campaign.is_active_at(pending.facts.event.time_ms);
        let subject = bucket.value(&pending.facts.values, &program.subject);
        if !is_active || subject_in(subject).is_none() {
            return;
        }

        let mut progress = entry.tree.start();
        while let Some(leaf) =
            entry.tree.advance(&mut progress, |leaf| self.test(entry, leaf, &pending.facts))
        {
            if self.load_state(bucket, entry, leaf, &mut pending.facts, states) {
                continue;
            }
            // A lookup comes first. What the ledger knows is loaded now, as it is before the event.
            for open in entry.tree.open(&progress) {
                self.load_state(bucket, entry, open, &mut pending.facts, states);
            }
            break;
        }
        if progress.result() != Some(false) {
            pending.evaluations.push(Evaluation { entry: number, progress });
        }
    }

    /// Loads what a leaf needs from the states. Answers `false` for a leaf that needs no state.
    pub(super) fn load_state(
        &self,
        bucket: &Bucket,
        entry: &Entry,
        leaf: usize,
        facts: &mut Facts<'_>,
        states: &mut dyn States,
    ) -> bool {
        let time_ms = facts.event.time_ms;
        match &entry.sources[leaf] {
            Source::Tally(tally) if !facts.changes.contains_key(tally) => {
                let definition = &self.tallies[*tally];
                let subject = subject_in(bucket.value(&facts.values, &definition.subject));
                let value = subject.and_then(|subject| {
                    let state = load(states, &tally_key(definition, subject), definition);
                    definition.window.value(&state, time_ms)
                });
                let value = value.unwrap_or(0);
                facts.changes.insert(*tally, Change { before: value, after: value });
                true
            }
            Source::Usage(owner) if !facts.usages.contains_key(owner) => {
                let subject = &self.programs[entry.program].subject;
                let subject = subject_in(bucket.value(&facts.values, subject)).unwrap_or_default();
                facts.usages.insert(*owner, usage(states, *owner, subject));
                true
            }
            _ => false,
        }
    }

    /// Whether the condition of a leaf holds. `None` if a value has to be loaded.
    pub(super) fn test(&self, entry: &Entry, leaf: usize, facts: &Facts<'_>) -> Option<bool> {
        let test = &entry.tree.leaves()[leaf].test;
        match &entry.sources[leaf] {
            Source::Slot(slot) => Some(facts.values.pass(*slot, test)),
            Source::Tally(tally) => facts.changes.get(tally).map(|change| test.holds_for(*change)),
            Source::Usage(owner) => {
                let used = facts.usages.get(owner)?.to_string();
                Some(test.holds(Some(&Scalar::Number(used.into()))))
            }
            Source::Counter { .. } => {
                self.test_answer(entry, leaf, facts, OnError::Hold, |answer| {
                    test.holds(scalar_at(answer, &[]).as_ref())
                })
            }
            Source::Lookup { lookup, path } => {
                self.test_answer(entry, leaf, facts, lookup.on_error, |answer| {
                    test.holds(scalar_at(answer, path).as_ref())
                })
            }
            Source::LocalTime { lookup, column, part } => {
                self.test_answer(entry, leaf, facts, lookup.on_error, |answer| {
                    let value = local_part(answer, column, *part, facts.event.time_ms);
                    test.holds(value.as_ref())
                })
            }
        }
    }

    fn test_answer(
        &self,
        entry: &Entry,
        leaf: usize,
        facts: &Facts<'_>,
        on_error: OnError,
        holds: impl FnOnce(&Json) -> bool,
    ) -> Option<bool> {
        // Without a key there is nothing to look up, and no value.
        let Some(key) = self.key_of(entry, leaf, facts) else { return Some(holds(&Json::Null)) };
        match (facts.answers.get(&key)?, on_error) {
            (Some(answer), _) => Some(holds(answer)),
            (None, OnError::False) => Some(false),
            (None, OnError::Hold) => None,
        }
    }

    /// What a leaf looks up.
    fn key_of(&self, entry: &Entry, leaf: usize, facts: &Facts<'_>) -> Option<LookupKey> {
        let bucket = self.buckets.get(&*facts.event.kind)?;
        match &entry.sources[leaf] {
            Source::Lookup { lookup, .. } | Source::LocalTime { lookup, .. } => {
                lookup_key(lookup, bucket, facts)
            }
            Source::Counter { template, length_ms } => {
                counter_key(template, *length_ms, bucket, facts)
            }
            _ => None,
        }
    }

    /// The next lookups that can still change a result: for each rule the cheapest.
    pub fn wants(&self, pending: &Pending<'_>) -> Vec<LookupKey> {
        let Some(bucket) = self.buckets.get(&*pending.facts.event.kind) else { return Vec::new() };
        let mut keys = Vec::new();
        for Evaluation { entry, progress } in &pending.evaluations {
            let entry = &bucket.entries[*entry];
            let next = entry.tree.next(progress);
            let key = next.and_then(|leaf| self.key_of(entry, leaf, &pending.facts));
            if let Some(key) = key
                && !pending.facts.answers.contains_key(&key)
                && !keys.contains(&key)
            {
                keys.push(key);
            }
        }
        keys
    }

    /// Takes the answer of a lookup; `None` if it failed.
    pub fn feed(&self, pending: &mut Pending<'_>, key: LookupKey, answer: Option<Json>) {
        pending.facts.answers.insert(key, answer);
        if let Some(bucket) = self.buckets.get(&*pending.facts.event.kind) {
            self.continue_all(bucket, pending);
        }
    }

    fn continue_all(&self, bucket: &Bucket, pending: &mut Pending<'_>) {
        let Pending { facts, evaluations, .. } = pending;
        for Evaluation { entry, progress } in evaluations {
            let entry = &bucket.entries[*entry];
            entry.tree.advance(progress, |leaf| self.test(entry, leaf, facts));
        }
    }

    /// The leaves that were tested, as the evidence of a decision.
    pub(super) fn trace(&self, bucket: &Bucket, facts: &Facts<'_>, one: &Evaluation) -> Vec<Json> {
        let entry = &bucket.entries[one.entry];
        let trace = one.progress.trace().map(|(leaf, held)| {
            let condition = &entry.tree.leaves()[leaf];
            let mut line = serde_json::Map::new();
            line.insert("leaf".into(), Json::from(&*condition.text));
            match &entry.sources[leaf] {
                Source::Tally(tally) => {
                    let change = facts.changes.get(tally);
                    line.insert("before".into(), Json::from(change.map(|change| change.before)));
                    line.insert("after".into(), Json::from(change.map(|change| change.after)));
                }
                Source::Usage(owner) => {
                    line.insert("is".into(), Json::from(facts.usages.get(owner).copied()));
                }
                Source::Slot(slot) => {
                    let is = facts.values[*slot].as_ref().map(Scalar::as_text);
                    line.insert("is".into(), Json::from(is));
                }
                Source::Counter { .. } | Source::Lookup { .. } | Source::LocalTime { .. } => {
                    let key = self.key_of(entry, leaf, facts);
                    let answer = key.and_then(|key| facts.answers.get(&key)?.clone());
                    line.insert("is".into(), answer.unwrap_or(Json::Null));
                }
            }
            line.insert("holds".into(), Json::from(held != condition.negated));
            Json::Object(line)
        });
        trace.collect()
    }
}

/// Finds what an event cancels before it was due, and forgets it.
fn cancel(
    bucket: &Bucket,
    facts: &Facts<'_>,
    at: At,
    states: &mut dyn States,
    scratch: &mut Scratch,
    engine: &Engine,
) -> Vec<(i64, ActionId)> {
    let mut rows = Vec::new();
    bucket.cancel_index.candidates(&facts.values, [], scratch, |row| rows.push(row));
    let mut cancelled = Vec::new();
    for row in rows {
        let cancelling = &bucket.cancels[row as usize];
        let program = &engine.programs[cancelling.rule.program];
        let Some(subject) = subject_in(bucket.value(&facts.values, &program.subject)) else {
            continue;
        };
        if !holds_now(engine, &cancelling.rule, facts) {
            continue;
        }

        let key = waiting_key_of(cancelling.owner, subject);
        let waiting = states.get(&key).map(read_waiting).unwrap_or_default();
        if !waiting.is_empty() {
            states.put(key, Vec::new());
        }
        cancelled.extend(waiting.into_iter().filter(|(due_ms, _)| *due_ms > at.appended_ms));
    }
    cancelled
}

/// Whether a rule over the event alone holds.
fn holds_now(engine: &Engine, entry: &Entry, facts: &Facts<'_>) -> bool {
    let mut progress = entry.tree.start();
    entry.tree.advance(&mut progress, |leaf| engine.test(entry, leaf, facts));
    progress.result() == Some(true)
}

fn counted_value(definition: &TallyDefinition, bucket: &Bucket, facts: &Facts<'_>) -> Option<i64> {
    match &definition.value {
        Value::Fixed(value) => Some(*value),
        Value::Field(FieldValue { field, scale }) => {
            let field = Field::of_path(field)?;
            scaled(bucket.value(&facts.values, &field), *scale)
        }
    }
}

pub(super) fn tally_key(definition: &TallyDefinition, subject: &str) -> StateKey {
    let owner = definition.owner;
    StateKey { kind: StateKind::Tally, owner, subject: subject.to_owned() }
}

fn load(states: &mut dyn States, key: &StateKey, definition: &TallyDefinition) -> Tally {
    let window = &definition.window;
    states.get(key).map_or_else(
        || window.empty(),
        |bytes| Tally::decode(window, bytes).expect("a tally is read as it was written"),
    )
}

/// How often a step was granted to a subject.
pub(super) fn usage(states: &mut dyn States, owner: u128, subject: &str) -> i64 {
    let key = StateKey { kind: StateKind::Usage, owner, subject: subject.to_owned() };
    states.get(&key).and_then(|bytes| bytes.try_into().ok()).map_or(0, i64::from_le_bytes)
}

fn lookup_key(lookup: &Lookup, bucket: &Bucket, facts: &Facts<'_>) -> Option<LookupKey> {
    Some(lookup.key_for(bucket.value(&facts.values, &lookup.key)?))
}

fn counter_key(
    template: &Template,
    length_ms: i64,
    bucket: &Bucket,
    facts: &Facts<'_>,
) -> Option<LookupKey> {
    let mut key = String::new();
    let values = template.fields().map(|field| bucket.value(&facts.values, field));
    if !template.render(values, &mut key) {
        return None;
    }

    let time_ms = facts.event.time_ms;
    let quarter = |ms: i64| ms.div_euclid(1_000 * QUARTER_S) * QUARTER_S;
    let range_s = (quarter(time_ms - length_ms), quarter(time_ms) + QUARTER_S);
    let name = template.as_str().to_owned();
    Some(LookupKey { class: LookupClass::Counter, name, key, range_s: Some(range_s) })
}

/// A part of the time in the zone that a table has for the subject.
fn local_part(
    answer: &Json,
    column: &str,
    part: TimePart,
    time_ms: i64,
) -> Option<Scalar<'static>> {
    let zone = Zone::of_name(answer.get(column)?.as_str()?)?;
    Some(part.value(zone.local(time_ms)))
}

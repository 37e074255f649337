//! Deciding: the gates behind a rule, in their fixed order, and what a grant changes.
//!
//! ```text
//!   holdout ▶ variant ▶ limits ▶ caps ▶ budgets ▶ group
//! ```
//!
//! All actions of a step are granted together, or none. The first gate that refuses is the reason.

mod again;

use super::evaluate::{Evaluation, Facts, Pending, subject_in, usage};
use super::waiting::{read_waiting, waiting_key, write_waiting};
use super::{Bucket, CompiledLimit, Engine, Held, Program};
use crate::calendar::Zone;
use crate::campaign::{Action, ActionKind, CampaignId, GroupMode, State, Step};
use crate::decision::{ActionId, Cost, Decision, Reason};
use crate::delay::Delay;
use crate::experiment::bucket as bucket_of;
use crate::limits::{ACTIONS_PER_EVENT_MAX, CHAIN_DEPTH_MAX, WAITING_ACTIONS_MAX};
use crate::message::chain_depth;
use crate::states::{
    BudgetKey, Budgets, StateKey, StateKind, States, exposure_owner, state_subject,
};
use crate::window::{Tally, Window};
use hashbrown::HashMap;
use raingauge_core::field::Scalar;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// What was decided on an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Granted and refused actions, in the order in which they were decided.
    pub decisions: Vec<Decision>,
    /// Units that saw a variant for the first time.
    pub exposures: Vec<Exposure>,
    /// Actions of earlier events that this one cancelled, with the times at which they are due.
    pub cancelled: Vec<(i64, ActionId)>,
    /// What waits for lookups that have no answer yet.
    pub held: Option<Held>,
    /// The event arrived too late to decide anything.
    pub is_late: bool,
    /// Steps whose actions had been granted before.
    pub repetitions: usize,
}

/// That a unit takes part in an experiment, or is held out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// The key of the experiment, or the seed of the holdout.
    pub key: String,
    pub unit: String,
    /// `None` for a unit that is held out.
    pub variant: Option<String>,
}

/// Actions with their ids and what they reserve.
type PricedActions<'p> = Vec<(&'p Action, ActionId, Option<Cost>)>;

/// The maximum of each budget, and what is reserved of it.
type Reservations = BTreeMap<BudgetKey, (i64, i64)>;

/// A step that passes all gates, and what granting it changes.
struct Grant<'p> {
    actions: PricedActions<'p>,
    reserved: Reservations,
    /// New values of limits, caps and usage.
    states: Vec<(StateKey, Vec<u8>)>,
}

impl Grant<'_> {
    fn cost(&self) -> i64 {
        self.reserved.values().fold(0, |sum, (_, amount)| sum.saturating_add(*amount))
    }
}

/// What becomes of a step whose rule still wants a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lacking {
    Waits,
    IsRefused,
}

/// A gate that refused, with what it saw.
struct Refused(Reason, Json);

/// The decision of one event, as it is made.
struct Turn<'t, 'e> {
    /// The time that delays begin at.
    from_ms: i64,
    engine: &'t Engine,
    bucket: &'t Bucket,
    facts: &'t Facts<'e>,
    states: &'t mut dyn States,
    budgets: &'t mut dyn Budgets,
    outcome: Outcome,
}

/// The steps of one campaign whose rules hold.
struct Contender {
    program: usize,
    evaluations: Vec<Evaluation>,
}

impl Engine {
    /// Decides what an event triggers. Evaluations that still want a lookup are held.
    pub fn decide(
        &self,
        pending: Pending<'_>,
        states: &mut dyn States,
        budgets: &mut dyn Budgets,
    ) -> Outcome {
        self.decide_with(pending, Lacking::Waits, states, budgets)
    }

    /// Decides as [`decide`](Self::decide) does, and gives up what still wants a lookup.
    pub fn give_up(
        &self,
        pending: Pending<'_>,
        states: &mut dyn States,
        budgets: &mut dyn Budgets,
    ) -> Outcome {
        self.decide_with(pending, Lacking::IsRefused, states, budgets)
    }

    fn decide_with(
        &self,
        pending: Pending<'_>,
        lacking: Lacking,
        states: &mut dyn States,
        budgets: &mut dyn Budgets,
    ) -> Outcome {
        let Pending { facts, mut evaluations, cancelled, is_late, .. } = pending;
        let outcome = Outcome { cancelled, is_late, ..Outcome::default() };
        let Some(bucket) = self.buckets.get(&*facts.event.kind) else { return outcome };
        let from_ms = facts.event.time_ms;
        let mut turn =
            Turn { from_ms, engine: self, bucket, facts: &facts, states, budgets, outcome };
        if lacking == Lacking::IsRefused {
            evaluations.retain(|one| {
                let is_known = one.progress.result().is_some();
                if !is_known {
                    turn.give_up(one);
                }
                is_known
            });
        }

        let (contenders, waiting) = self.contenders(bucket, evaluations);
        let best = turn.best_of_groups(&contenders);
        let mut first = Vec::new();
        for contender in &contenders {
            turn.decide_campaign(contender, &best, &mut first);
        }
        if !waiting.is_empty() {
            turn.outcome.held = Some(self.held(&facts, waiting));
        }
        turn.outcome
    }

    /// Campaigns whose rules hold, in the order of decision, and those that wait. Where one of a
    /// group waits, the whole group does.
    fn contenders(
        &self,
        bucket: &Bucket,
        evaluations: Vec<Evaluation>,
    ) -> (Vec<Contender>, Vec<usize>) {
        let program_of = |one: &Evaluation| bucket.entries[one.entry].program;
        let group_of = |program: usize| {
            let group = self.programs[program].campaign.group.as_ref();
            group.filter(|group| group.mode != GroupMode::All).map(|group| &group.name)
        };

        let open = evaluations.iter().filter(|one| one.progress.result().is_none());
        let mut waiting: Vec<usize> = open.map(program_of).collect();
        let waiting_groups: Vec<&String> =
            waiting.iter().filter_map(|program| group_of(*program)).collect();

        let mut contenders: Vec<Contender> = Vec::new();
        for one in evaluations.iter().filter(|one| one.progress.result() == Some(true)) {
            let program = program_of(one);
            if group_of(program).is_some_and(|group| waiting_groups.contains(&group)) {
                waiting.push(program);
                continue;
            }
            match contenders.last_mut() {
                Some(last) if last.program == program => last.evaluations.push(*one),
                _ => contenders.push(Contender { program, evaluations: vec![*one] }),
            }
        }
        waiting.sort_unstable();
        waiting.dedup();
        (contenders, waiting)
    }

    fn held(&self, facts: &Facts<'_>, waiting: Vec<usize>) -> Held {
        let counts = facts.changes.iter().map(|(tally, change)| {
            (format!("{:032x}", self.tallies[*tally].owner), change.before, change.after)
        });
        let mut counts: Vec<(String, i64, i64)> = counts.collect();
        counts.sort();
        let answered = facts.answers.iter().filter_map(|(key, answer)| {
            answer.as_ref().map(|answer| (key.clone(), answer.clone()))
        });
        let mut answers: Vec<_> = answered.collect();
        answers.sort_by(|(left, _), (right, _)| left.cmp(right));
        let campaigns = waiting.into_iter().map(|program| self.programs[program].id()).collect();
        Held { campaigns, counts, answers }
    }
}

impl<'t> Turn<'t, '_> {
    fn program(&self, contender: &Contender) -> &'t Program {
        let engine: &'t Engine = self.engine;
        &engine.programs[contender.program]
    }

    fn subject(&self, program: &Program) -> String {
        let value = self.bucket.value(&self.facts.values, &program.subject);
        subject_in(value).expect("a rule is evaluated for a subject").to_owned()
    }

    /// Refuses a step whose rule cannot be evaluated.
    fn give_up(&mut self, one: &Evaluation) {
        let engine: &'t Engine = self.engine;
        let entry = &self.bucket.entries[one.entry];
        let evidence = engine.trace(self.bucket, self.facts, one);
        let refused = Refused(Reason::LookupFailed, Json::Null);
        self.refuse(&engine.programs[entry.program], entry.step, refused, evidence);
    }

    /// The campaign that costs most in each group that is decided by cost.
    fn best_of_groups(&mut self, contenders: &[Contender]) -> HashMap<String, CampaignId> {
        let mut best: HashMap<String, (i64, CampaignId)> = HashMap::new();
        for contender in contenders {
            let program = self.program(contender);
            let Some(group) = &program.campaign.group else { continue };
            if group.mode != GroupMode::Best {
                continue;
            }

            let mut cost: Option<i64> = None;
            for one in &contender.evaluations {
                if let Ok(grant) = self.gates(program, self.bucket.entries[one.entry].step) {
                    cost = Some(cost.unwrap_or(0).saturating_add(grant.cost()));
                }
            }
            let Some(cost) = cost else { continue };
            let leads = best.get(&group.name).is_none_or(|(most, _)| cost > *most);
            if leads {
                best.insert(group.name.clone(), (cost, program.id()));
            }
        }
        best.into_iter().map(|(group, (_, campaign))| (group, campaign)).collect()
    }

    /// Decides the steps of a campaign in their order. `first` has the groups that are won.
    fn decide_campaign(
        &mut self,
        contender: &Contender,
        best: &HashMap<String, CampaignId>,
        first: &mut Vec<String>,
    ) {
        let program = self.program(contender);
        let group = program.campaign.group.as_ref();
        let loses = group.is_some_and(|group| match group.mode {
            GroupMode::All => false,
            GroupMode::First => first.contains(&group.name),
            GroupMode::Best => best.get(&group.name) != Some(&program.id()),
        });

        let mut wins = false;
        for one in &contender.evaluations {
            let step = self.bucket.entries[one.entry].step;
            let evidence = self.engine.trace(self.bucket, self.facts, one);
            self.expose(program);
            match self.gates(program, step) {
                Ok(_) if loses => {
                    let refused = Refused(Reason::GroupLost, json!({"group": group}));
                    self.refuse(program, step, refused, evidence);
                }
                Ok(grant) => {
                    wins = true;
                    self.grant(program, step, grant, evidence);
                }
                Err(Refused(Reason::Duplicate, _)) => self.outcome.repetitions += 1,
                Err(refused) => self.refuse(program, step, refused, evidence),
            }
        }
        if let Some(group) = group.filter(|_| wins) {
            first.push(group.name.clone());
        }
    }

    /// The variant that the unit of the event sees; `None` where it takes no part.
    fn variant(&self, program: &'t Program) -> Option<(&'t str, String)> {
        let experiment = program.campaign.experiment.as_ref()?;
        let (field, split) = program.experiment.as_ref()?;
        let unit = self.bucket.value(&self.facts.values, field)?.as_text().to_owned();
        let place = split.variant(bucket_of(&experiment.key, &unit))?;
        Some((experiment.variants[place].name.as_str(), unit))
    }

    fn is_held_out(&self, program: &Program) -> Option<&'t str> {
        let engine: &'t Engine = self.engine;
        let holdout = engine.holdouts.get(program.campaign.holdout.as_ref()?)?;
        holdout.holds(&self.subject(program)).then_some(holdout.seed.as_str())
    }

    /// Notes that the unit has come to where the experiment makes a difference, once.
    fn expose(&mut self, program: &'t Program) {
        let exposure = if let Some(seed) = self.is_held_out(program) {
            Exposure { key: seed.to_owned(), unit: self.subject(program), variant: None }
        } else if let Some((variant, unit)) = self.variant(program) {
            let key = program.campaign.experiment.as_ref().map(|found| found.key.clone());
            Exposure { key: key.unwrap_or_default(), unit, variant: Some(variant.to_owned()) }
        } else {
            return;
        };

        let owner = exposure_owner(&exposure.key);
        let subject = state_subject(&exposure.unit);
        let key = StateKey { kind: StateKind::Exposure, owner, subject };
        if self.states.get(&key).is_none() {
            let variant = exposure.variant.clone().unwrap_or_default();
            self.states.put(key, variant.into_bytes());
            self.outcome.exposures.push(exposure);
        }
    }

    /// Asks all gates of a step, and changes nothing.
    fn gates(&mut self, program: &'t Program, step: usize) -> Result<Grant<'t>, Refused> {
        let rule = &program.campaign.steps[step];
        let subject = self.subject(program);
        let refuse = |reason| Err(Refused(reason, Json::Null));
        if let Some(seed) = self.is_held_out(program) {
            return Err(Refused(Reason::Holdout, json!({"seed": seed})));
        }

        let variant = self.variant(program).map(|(variant, _)| variant);
        let sees = |variants: &[String]| {
            variants.is_empty() || variant.is_some_and(|own| variants.iter().any(|one| one == own))
        };
        let actions: Vec<(&Action, ActionId)> = rule
            .actions
            .iter()
            .filter(|action| sees(&rule.variants) && sees(&action.variants))
            .map(|action| (action, self.action_id(program, &subject, rule, action)))
            .collect();
        if actions.is_empty() {
            return refuse(Reason::Control);
        }
        if actions.iter().any(|(_, id)| self.states.is_granted(id)) {
            return refuse(Reason::Duplicate);
        }

        let mut states = Vec::new();
        self.limits(program, step, &mut states)?;
        self.caps(program, &subject, &actions, &mut states)?;
        if let Some(owner) = program.usage_owners[step] {
            let used = usage(self.states, owner, &subject) + 1;
            let key = StateKey { kind: StateKind::Usage, owner, subject };
            states.push((key, used.to_le_bytes().to_vec()));
        }

        let (actions, reserved) = self.budgets(program, step, actions)?;
        Ok(Grant { actions, reserved, states })
    }

    fn action_id(
        &self,
        program: &Program,
        subject: &str,
        step: &Step,
        action: &Action,
    ) -> ActionId {
        let event = (&*self.facts.event.source, &*self.facts.event.id);
        ActionId::new(program.id(), event, subject, &step.name, &action.name)
    }

    fn limits(
        &mut self,
        program: &Program,
        step: usize,
        states: &mut Vec<(StateKey, Vec<u8>)>,
    ) -> Result<(), Refused> {
        for (limit, compiled) in program.campaign.limits.iter().zip(&program.limits) {
            let CompiledLimit { step: of_step, per, owner, window } = compiled;
            if of_step.is_some_and(|of_step| of_step != step) || !limit.is_tracked() {
                continue;
            }

            let per = self.bucket.value(&self.facts.values, per).map(Scalar::as_text);
            let key = StateKey {
                kind: StateKind::Usage,
                owner: *owner,
                subject: state_subject(per.unwrap_or_default()),
            };
            let (used, counted) = self.counted(&key, window, 1);
            if used.is_none_or(|used| !limit.allows(used)) {
                return Err(Refused(Reason::LimitReached, json!({"limit": limit, "used": used})));
            }
            states.push((key, counted));
        }
        Ok(())
    }

    fn caps(
        &mut self,
        program: &Program,
        subject: &str,
        actions: &[(&Action, ActionId)],
        states: &mut Vec<(StateKey, Vec<u8>)>,
    ) -> Result<(), Refused> {
        let is_granted = |decision: &&Decision| decision.is_granted();
        let granted = self.outcome.decisions.iter().filter(is_granted).count();
        if granted + actions.len() > ACTIONS_PER_EVENT_MAX {
            let detail = json!({"actionsOfEvent": ACTIONS_PER_EVENT_MAX});
            return Err(Refused(Reason::CapReached, detail));
        }

        let emits = actions.iter().any(|(action, _)| action.kind == ActionKind::Emit);
        if emits && chain_depth(&self.facts.event) >= CHAIN_DEPTH_MAX {
            return Err(Refused(Reason::CapReached, json!({"chainDepth": CHAIN_DEPTH_MAX})));
        }

        let engine: &'t Engine = self.engine;
        for compiled in &engine.caps {
            let capped = |action: &Action| compiled.cap.destinations.contains(&action.to);
            let sent = actions.iter().filter(|(action, _)| capped(action)).count() as i64;
            if sent == 0 {
                continue;
            }
            let key = StateKey {
                kind: StateKind::Usage,
                owner: compiled.owner,
                subject: subject.to_owned(),
            };
            let (used, counted) = self.counted(&key, &compiled.window, sent);
            if used.is_none_or(|used| used + sent > compiled.cap.max) {
                let detail = json!({"destinations": compiled.cap.destinations, "used": used});
                return Err(Refused(Reason::CapReached, detail));
            }
            // What shadow campaigns would send takes nothing from the others.
            if program.campaign.state != State::Shadow {
                states.push((key, counted));
            }
        }
        Ok(())
    }

    /// A usage before the event, and its state with `more`. `None` where the event is too old for
    /// the usage of its period to be known.
    fn counted(&mut self, key: &StateKey, window: &Window, more: i64) -> (Option<i64>, Vec<u8>) {
        let mut tally = self
            .states
            .get(key)
            .and_then(|bytes| Tally::decode(window, bytes).ok())
            .unwrap_or_else(|| window.empty());
        let used = window.value(&tally, self.facts.event.time_ms);
        window.count(&mut tally, self.facts.event.time_ms, more);
        (used, tally.encode())
    }

    fn budgets<'p>(
        &mut self,
        program: &'p Program,
        step: usize,
        actions: Vec<(&'p Action, ActionId)>,
    ) -> Result<(PricedActions<'p>, Reservations), Refused> {
        let mut sums = Reservations::new();
        let mut granted = Vec::new();
        for (action, id) in actions {
            let Some(cost) = &action.cost else {
                granted.push((action, id, None));
                continue;
            };

            let place = program.campaign.steps[step]
                .actions
                .iter()
                .position(|known| known.name == action.name)
                .expect("it is an action of the step");
            let field = program.cost_fields[step][place].as_ref();
            let number = field
                .and_then(|field| self.bucket.value(&self.facts.values, field))
                .and_then(Scalar::as_decimal);
            let amount = cost.amount.cost(number).map_err(|error| {
                let detail = json!({"budget": cost.budget, "cost": error.to_string()});
                Refused(Reason::BudgetExhausted, detail)
            })?;
            let at_ms = self.facts.event.time_ms;
            let Some((budget, max)) = self.engine.budget(program, &cost.budget, at_ms) else {
                let detail = json!({"budget": cost.budget, "cost": "there is no such budget"});
                return Err(Refused(Reason::BudgetExhausted, detail));
            };

            let sum = sums.entry(budget.clone()).or_insert((max, 0));
            sum.1 = sum.1.saturating_add(amount);
            granted.push((action, id, Some(Cost { budget, amount, is_refunded: cost.refund })));
        }

        for (key, (max, amount)) in &sums {
            let free = self.budgets.free(key, *max);
            if *amount > free {
                let detail = json!({"budget": key.name, "free": free, "cost": amount});
                return Err(Refused(Reason::BudgetExhausted, detail));
            }
        }
        Ok((granted, sums))
    }

    fn grant(&mut self, program: &'t Program, step: usize, grant: Grant<'t>, trace: Vec<Json>) {
        for (key, value) in grant.states {
            self.states.put(key, value);
        }
        for (key, (max, amount)) in &grant.reserved {
            self.budgets.reserve(key, *max, *amount);
        }

        let step = &program.campaign.steps[step];
        let evidence = json!({"trace": trace});
        for (action, id, cost) in grant.actions {
            let due_ms = self.due_ms(program, action);
            let reason = match program.campaign.state {
                State::Shadow => Reason::Shadow,
                _ if due_ms > self.from_ms => Reason::Delayed,
                _ => Reason::Granted,
            };
            if reason == Reason::Delayed && action.cancel.is_some() {
                self.wait(program, step, action, (due_ms, id));
            }
            let decision = self.decision(program, step, action, (id, reason), evidence.clone());
            self.outcome.decisions.push(Decision { cost, due_ms, ..decision });
        }
    }

    /// Notes that an event may cancel an action until it is due.
    fn wait(&mut self, program: &Program, step: &Step, action: &Action, entry: (i64, ActionId)) {
        let key = waiting_key(&program.campaign, &step.name, &action.name, &self.subject(program));
        let mut waiting = self.states.get(&key).map(read_waiting).unwrap_or_default();
        waiting.push(entry);
        // The oldest ones are due first, so they are the ones that have fired.
        waiting.sort_unstable();
        let excess = waiting.len().saturating_sub(WAITING_ACTIONS_MAX);
        waiting.drain(..excess);
        self.states.put(key, write_waiting(&waiting));
    }

    fn due_ms(&self, program: &Program, action: &Action) -> i64 {
        let zone_of = |name: Option<&String>| {
            name.and_then(|name| Zone::of_name(name)).unwrap_or_else(|| program.zone.clone())
        };
        let due_ms = match &action.delay {
            None => self.from_ms,
            Some(delay @ Delay::At(at)) => delay.due_ms(self.from_ms, &zone_of(at.zone.as_ref())),
            Some(delay) => delay.due_ms(self.from_ms, &program.zone),
        };
        match &action.quiet {
            None => due_ms,
            Some(quiet) => quiet.end_ms(due_ms, &zone_of(quiet.zone.as_ref())),
        }
    }

    /// Notes a refusal for each action that the step would have granted.
    fn refuse(&mut self, program: &'t Program, step: usize, refused: Refused, trace: Vec<Json>) {
        let Refused(reason, gate) = refused;
        let step = &program.campaign.steps[step];
        let subject = self.subject(program);
        let evidence = json!({"trace": trace, "gate": gate});
        for action in &step.actions {
            let id = self.action_id(program, &subject, step, action);
            let decision = self.decision(program, step, action, (id, reason), evidence.clone());
            self.outcome.decisions.push(decision);
        }
    }

    fn decision(
        &self,
        program: &'t Program,
        step: &Step,
        action: &Action,
        (id, reason): (ActionId, Reason),
        evidence: Json,
    ) -> Decision {
        Decision {
            action: id,
            reason,
            campaign: program.id(),
            version: program.version,
            step: step.name.clone(),
            name: action.name.clone(),
            subject: self.subject(program),
            variant: self.variant(program).map(|(variant, _)| variant.to_owned()),
            cost: None,
            due_ms: self.facts.event.time_ms,
            evidence,
        }
    }
}

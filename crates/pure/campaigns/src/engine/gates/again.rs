//! Deciding again what a budget refused, once it has more.

use super::{Outcome, Refused, Turn};
use crate::campaign::{CampaignId, GroupMode, State};
use crate::decision::Reason;
use crate::engine::evaluate::subject_in;
use crate::engine::{Engine, Program};
use crate::states::{Budgets, States};
use raingauge_core::event::Event;
use serde_json::json;

impl Engine {
    /// Decides a step again that was refused because its budget was exhausted. Its rule held then
    /// and is not asked again; the gates behind it are asked as they are now, and delays begin at
    /// `now_ms`. Nothing is decided where the budget still does not suffice.
    pub fn decide_again(
        &self,
        event: &Event<'_>,
        (campaign, step): (CampaignId, &str),
        now_ms: i64,
        states: &mut dyn States,
        budgets: &mut dyn Budgets,
    ) -> Outcome {
        let outcome = Outcome::default();
        let acts = |program: &&Program| {
            let Program { campaign: own, decides, .. } = program;
            program.id() == campaign
                && *decides
                && own.state == State::Active
                && own.event_types.iter().any(|kind| **kind == *event.kind)
                && own.is_active_at(event.time_ms)
        };
        let Some(program) = self.programs.iter().find(acts) else { return outcome };
        let Some(bucket) = self.buckets.get(&*event.kind) else { return outcome };
        let place = program.campaign.steps.iter().position(|known| known.name == step);
        let Some(step) = place else { return outcome };

        let facts = bucket.facts_of(event);
        if subject_in(bucket.value(&facts.values, &program.subject)).is_none() {
            return outcome;
        }
        let mut turn =
            Turn { from_ms: now_ms, engine: self, bucket, facts: &facts, states, budgets, outcome };
        match turn.gates(program, step) {
            Ok(_) if turn.has_lost(program) => {
                let refused = Refused(Reason::GroupLost, json!({"group": program.campaign.group}));
                turn.refuse(program, step, refused, Vec::new());
            }
            Ok(grant) => turn.grant(program, step, grant, Vec::new()),
            Err(Refused(Reason::Duplicate | Reason::BudgetExhausted, _)) => {
                turn.outcome.repetitions += 1;
            }
            Err(refused) => turn.refuse(program, step, refused, Vec::new()),
        }
        turn.outcome
    }
}

impl<'t> Turn<'t, '_> {
    /// Whether another campaign of a group that has one winner was granted something.
    fn has_lost(&mut self, program: &Program) -> bool {
        let group = program.campaign.group.as_ref();
        let Some(group) = group.filter(|group| group.mode != GroupMode::All) else { return false };
        let engine: &'t Engine = self.engine;
        let kind = &*self.facts.event.kind;
        let is_rival = |other: &&Program| {
            let own = other.campaign.group.as_ref();
            other.id() != program.id()
                && own.is_some_and(|own| own.name == group.name)
                && other.campaign.event_types.iter().any(|known| **known == *kind)
        };

        for rival in engine.programs.iter().filter(is_rival) {
            let subject = subject_in(self.bucket.value(&self.facts.values, &rival.subject));
            let Some(subject) = subject.map(str::to_owned) else { continue };
            for step in &rival.campaign.steps {
                for action in &step.actions {
                    let id = self.action_id(rival, &subject, step, action);
                    if self.states.is_granted(&id) {
                        return true;
                    }
                }
            }
        }
        false
    }
}

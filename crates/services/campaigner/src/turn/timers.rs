//! What is due: delayed actions, and evaluations that waited for lookups.

use super::events::LogPlace;
use super::{Life, Turn};
use crate::error::Error;
use crate::timer::{DelayedAction, Due, HeldEvaluation, PARKED_MS, Waiting, retry_ms};
use raingauge_campaigns::decision::Reason;
use raingauge_campaigns::engine::{Pending, forget_waiting, waiting_key};
use raingauge_campaigns::states::States;
use raingauge_ports::campaigns::{Cost, Delivery};
use serde_json::json;

/// How long an evaluation waits while one of its campaigns is paused.
const PAUSED_WAIT_MS: i64 = 60_000;

impl<'t> Turn<'t> {
    /// Fires timers, in their order. Those that the events of this commit ended do not fire.
    pub fn fire(&mut self, due: &'t [Due], log_ms: i64) -> Result<(), Error> {
        self.answers.renew_patience();
        let engine = self.engine();
        let mut states = self.states.fork();
        let trials = due.iter().filter_map(|one| begun(one, engine, &mut states));
        let mut trials: Vec<Pending<'_>> = trials.collect();
        self.answers.settle_all(engine, &mut trials);

        for one in due {
            if one.due_ms > log_ms || self.ended.contains(&one.place()) {
                continue;
            }
            let fired = match &one.waiting {
                Waiting::Action(action) => self.act(one, action, log_ms),
                Waiting::Evaluation(evaluation) => self.resume(one, evaluation, log_ms)?,
            };
            metrics::counter!("raingauge_campaign_timers_total", "outcome" => fired).increment(1);
        }
        Ok(())
    }

    /// Does what was put off, and says in a word what became of it.
    fn act(&mut self, due: &'t Due, action: &'t DelayedAction, log_ms: i64) -> &'static str {
        let is_ended = self.is_of_an_ended_version(due.campaign, action.version);
        match self.life(due.campaign) {
            Life::Acts if is_ended => {
                let evidence = json!({"by": "the end of the campaign"}).to_string();
                self.end(due, Reason::Cancelled, evidence, log_ms);
                return "cancelled";
            }
            Life::Rests => return self.put_off(due, PARKED_MS.saturating_add(due.due_ms)),
            Life::IsOver => {
                let evidence = json!({"by": "the end of the campaign"}).to_string();
                self.end(due, Reason::Cancelled, evidence, log_ms);
                return "cancelled";
            }
            Life::Acts => {}
        }

        let Some(mut pending) = begun(due, self.engine(), &mut self.states) else {
            return self.deliver(due, action);
        };
        self.answers.settle(self.engine(), &mut pending);
        match (self.engine().recheck_result(&pending), retry_ms(action.tries)) {
            (Some(true), _) => self.deliver(due, action),
            (Some(false), _) => {
                self.end(due, Reason::RecheckFailed, "{}".to_owned(), log_ms);
                "recheck_failed"
            }
            (None, Some(wait_ms)) => {
                let again = DelayedAction { tries: action.tries + 1, ..action.clone() };
                let waiting = Waiting::Action(Box::new(again));
                self.put_off(&Due { waiting, ..due.clone() }, log_ms.saturating_add(wait_ms))
            }
            (None, None) => {
                self.end(due, Reason::LookupFailed, "{}".to_owned(), log_ms);
                "lookup_failed"
            }
        }
    }

    fn deliver(&mut self, due: &Due, action: &DelayedAction) -> &'static str {
        self.deliveries.push(Delivery {
            action: due.action,
            campaign: due.campaign,
            subject: due.subject.clone(),
            destination: action.destination.clone(),
            due_ms: due.due_ms,
            cost: action.cost.clone().map(Cost::from),
            body: action.body.clone().into_bytes(),
        });
        self.ended.insert(due.place());
        self.forget(due, action);
        "delivered"
    }

    /// Ends an action that was granted and will not happen.
    pub(super) fn end(&mut self, due: &Due, reason: Reason, evidence: String, log_ms: i64) {
        self.ended.insert(due.place());
        let Waiting::Action(action) = &due.waiting else { return };
        self.decisions.push(action.ended(due, reason.as_str(), evidence, log_ms));
        if let Some(cost) = action.cost.clone() {
            self.budgets.give_back(&Cost::from(cost));
        }
        self.forget(due, action);
    }

    /// An event can no longer cancel the action.
    fn forget(&mut self, due: &Due, action: &DelayedAction) {
        if !action.is_cancellable {
            return;
        }
        if let Some(campaign) = self.scene.documents.campaign(due.campaign) {
            let key = waiting_key(campaign, &action.step, &action.name, &due.subject);
            forget_waiting(&mut self.states, key, due.action);
        }
    }

    /// Moves a timer to another time.
    pub(super) fn put_off(&mut self, due: &Due, due_ms: i64) -> &'static str {
        if let Some(timer) = due.clone().at(due_ms) {
            self.ended.insert(due.place());
            self.timers.push(timer);
        }
        "put_off"
    }

    /// Continues an evaluation whose lookups may answer by now.
    fn resume(
        &mut self,
        due: &'t Due,
        evaluation: &'t HeldEvaluation,
        log_ms: i64,
    ) -> Result<&'static str, Error> {
        let HeldEvaluation { event, held, tries } = evaluation;
        if held.campaigns.iter().any(|campaign| self.life(*campaign) == Life::Rests) {
            return Ok(self.put_off(due, log_ms.saturating_add(PAUSED_WAIT_MS)));
        }

        self.ended.insert(due.place());
        let Some(mut pending) = begun(due, self.engine(), &mut self.states) else {
            return Ok("resumed");
        };
        let engine = self.engine();
        self.answers.settle(engine, &mut pending);
        let mut outcome = if retry_ms(*tries).is_some() {
            engine.decide(pending, &mut self.states, &mut self.budgets)
        } else {
            self.answers.settle_finally(engine, &mut pending);
            engine.give_up(pending, &mut self.states, &mut self.budgets)
        };

        let again = outcome.held.take();
        self.note(outcome, &event.event(), LogPlace { offset: event.offset, log_ms })?;
        match again {
            Some(held) => {
                self.hold(event.clone(), held, *tries, log_ms);
                Ok("put_off")
            }
            None => Ok("resumed"),
        }
    }
}

/// Begins what a timer has to evaluate, if anything.
fn begun<'t>(
    due: &'t Due,
    engine: &raingauge_campaigns::engine::Engine,
    states: &mut dyn States,
) -> Option<Pending<'t>> {
    match &due.waiting {
        Waiting::Evaluation(evaluation) => {
            Some(engine.resume(&evaluation.event.event(), &evaluation.held, states))
        }
        Waiting::Action(action) => {
            let event = action.recheck.as_ref()?.event();
            engine.recheck(&event, (due.campaign, &action.step, &action.name))
        }
    }
}

//! Deciding the events of a batch.

use super::Turn;
use super::rendering::Granted;
use crate::batch::Batch;
use crate::error::Error;
use crate::timer::{Due, HeldEvaluation, StoredEvent, Waiting, evaluation_id, retry_ms};
use raingauge_campaigns::decision::{ActionId, Decision, Reason};
use raingauge_campaigns::engine::{At, Held, Outcome};
use raingauge_core::event::Event;
use raingauge_ports::campaigns;
use raingauge_ports::campaigns::limits::LEDGER_EVIDENCE_LEN_MAX;
use raingauge_ports::log::Offset;
use serde_json::{Value as Json, json};
use std::time::Instant;

/// Refusals of one event that are kept; more are counted only.
const REFUSALS_MAX: usize = 1_000;
/// One event of each 64 of a batch is measured.
const MEASURED_EVERY: usize = 64;
/// Records after which a commit takes no more events.
const RECORDS_MAX: usize = 100_000;

/// The member of the evidence of a refusal that has the place of the event.
pub const OFFSET: &str = "offset";

/// Where an event stands in the log.
#[derive(Clone, Copy, Debug)]
pub struct LogPlace {
    /// `None` for one whose place was not stored.
    pub offset: Option<Offset>,
    /// The time of the log when it is decided.
    pub log_ms: i64,
}

impl<'t> Turn<'t> {
    /// Decides the events of a batch in their order. Returns how many: the others have no room.
    pub fn decide(&mut self, batch: &Batch<'t>) -> Result<usize, Error> {
        if batch.events.is_empty() {
            return Ok(0);
        }
        let engine = self.engine();
        if engine.looks_up() {
            self.ask_ahead(batch);
        }

        let mut candidates = 0;
        let mut decided = 0;
        for (number, logged) in batch.events.iter().enumerate() {
            if self.len() > RECORDS_MAX {
                break;
            }
            let at = At { appended_ms: logged.log_ms };
            let began = (number % MEASURED_EVERY == 0).then(Instant::now);
            let mut pending = engine.begin(&logged.event, at, &mut self.states, &mut self.scratch);
            if let Some(began) = began {
                metrics::histogram!("raingauge_campaign_match_seconds").record(began.elapsed());
            }
            candidates += pending.candidates();
            self.answers.settle(engine, &mut pending);
            let outcome = engine.decide(pending, &mut self.states, &mut self.budgets);
            let place = LogPlace { offset: Some(logged.offset), log_ms: logged.log_ms };
            self.note(outcome, &logged.event, place)?;
            decided += 1;
        }
        metrics::counter!("raingauge_campaign_candidates_total").increment(candidates as u64);
        Ok(decided)
    }

    /// Asks for what the events of a batch look up, all together. They are begun on a copy of the
    /// states, so an earlier grant may still make a difference: what is missing then is asked for
    /// by itself.
    fn ask_ahead(&mut self, batch: &Batch<'t>) {
        let engine = self.engine();
        let mut states = self.states.fork();
        let mut waiting = Vec::new();
        for logged in &batch.events {
            let at = At { appended_ms: logged.log_ms };
            let pending = engine.begin(&logged.event, at, &mut states, &mut self.scratch);
            if !engine.wants(&pending).is_empty() {
                waiting.push(pending);
            }
        }
        self.answers.settle_all(engine, &mut waiting);
    }

    /// Notes what was decided on an event.
    pub(super) fn note(
        &mut self,
        outcome: Outcome,
        event: &Event<'t>,
        at: LogPlace,
    ) -> Result<(), Error> {
        let LogPlace { offset, log_ms } = at;
        for place in outcome.cancelled {
            self.cancel(place, event, log_ms)?;
        }

        let mut refused = 0;
        for decision in outcome.decisions {
            count(&decision);
            if decision.is_granted() {
                self.states.grant(decision.action);
                let record = recorded(&decision, event, at);
                let place = self.decisions.len();
                self.decisions.push(record);
                self.granted.push(Granted { decision, event: event.clone(), place, log_ms });
                continue;
            }
            refused += 1;
            if refused <= REFUSALS_MAX {
                self.decisions.push(recorded(&decision, event, at));
            }
        }

        if let Some(held) = outcome.held {
            metrics::counter!("raingauge_campaign_held_total").increment(1);
            let event = StoredEvent { offset, ..StoredEvent::of(event) };
            self.hold(event, held, 0, log_ms);
        }
        Ok(())
    }

    /// Puts an evaluation off until its lookups may answer.
    pub(super) fn hold(&mut self, event: StoredEvent, held: Held, tries: usize, log_ms: i64) {
        let Some(wait_ms) = retry_ms(tries) else { return };
        let action = evaluation_id(&event.event());
        let subject = String::new();
        let waiting = HeldEvaluation { event, held, tries: tries + 1 };
        let waiting = Waiting::Evaluation(Box::new(waiting));
        let due_ms = log_ms.saturating_add(wait_ms);
        match (Due { due_ms, action, campaign: 0, subject, waiting }).at(due_ms) {
            Some(timer) => self.timers.push(timer),
            None => tracing::error!(%action, "an evaluation is too large to wait, and is dropped"),
        }
    }

    /// Ends an action that an event cancels before it is due.
    fn cancel(
        &mut self,
        (due_ms, action): (i64, ActionId),
        event: &Event<'t>,
        log_ms: i64,
    ) -> Result<(), Error> {
        let evidence = json!({"by": {"source": event.source, "id": event.id}}).to_string();
        let granted = self.granted.iter().position(|one| one.decision.action == action);
        if let Some(granted) = granted {
            // It was granted by an event of this batch, and has no timer yet.
            let Granted { place, .. } = self.granted.remove(granted);
            let granted = self.decisions[place].clone();
            if let Some(cost) = &granted.cost {
                self.budgets.give_back(cost);
            }
            self.decisions.push(campaigns::Decision {
                is_granted: false,
                decided_ms: log_ms.max(granted.decided_ms + 1),
                outcome: Reason::Cancelled.as_str().to_owned(),
                evidence,
                ..granted
            });
            return Ok(());
        }

        let timers = self.scene.ledger.timers_from((due_ms, action), 1)?;
        let timer = timers
            .into_iter()
            .next()
            .filter(|timer| (timer.due_ms, timer.action) == (due_ms, action));
        if let Some(timer) = timer {
            self.end(&Due::of(timer)?, Reason::Cancelled, evidence, log_ms);
        }
        Ok(())
    }
}

/// Evidence as it is stored.
fn evidence_with(offset: Option<Offset>, mut evidence: Json) -> String {
    if let Some(offset) = offset {
        evidence[OFFSET] = json!(offset);
    }
    evidence.to_string()
}

fn count(decision: &Decision) {
    let campaign = decision.campaign.to_string();
    let labels = [("campaign", campaign), ("outcome", decision.reason.as_str().to_owned())];
    metrics::counter!("raingauge_campaign_decisions_total", &labels).increment(1);
}

/// A decision as it is kept.
fn recorded(decision: &Decision, event: &Event<'_>, at: LogPlace) -> campaigns::Decision {
    let LogPlace { offset, log_ms } = at;
    // What a budget refuses may be decided again, and then the event is read again.
    let offset = offset.filter(|_| decision.reason == Reason::BudgetExhausted);
    let mut evidence = evidence_with(offset, decision.evidence.clone());
    if evidence.len() > LEDGER_EVIDENCE_LEN_MAX {
        evidence = evidence_with(offset, json!({"tooLong": evidence.len()}));
    }
    campaigns::Decision {
        action: decision.action,
        is_granted: decision.is_granted(),
        campaign: decision.campaign,
        version: decision.version,
        step: decision.step.clone(),
        name: decision.name.clone(),
        subject: decision.subject.clone(),
        source: event.source.clone().into_owned(),
        event: event.id.clone().into_owned(),
        event_ms: event.time_ms,
        decided_ms: log_ms,
        outcome: decision.reason.as_str().to_owned(),
        variant: decision.variant.clone(),
        cost: decision.cost.clone(),
        evidence,
    }
}

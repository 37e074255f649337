//! The bodies of what was granted. They are stored as they are sent, each time the same.

use super::Turn;
use crate::documents::Released;
use crate::timer::{DelayedAction, Due, StoredCost, StoredEvent, Waiting};
use raingauge_campaigns::body::body;
use raingauge_campaigns::campaign::Action;
use raingauge_campaigns::decision::{Decision, Reason};
use raingauge_campaigns::engine::LookupKey;
use raingauge_campaigns::message::Answer;
use raingauge_core::event::Event;
use raingauge_ports::campaigns::Delivery;
use raingauge_ports::campaigns::limits::LEDGER_BODY_LEN_MAX;
use serde_json::json;

/// An action that was granted.
pub struct Granted<'t> {
    pub decision: Decision,
    pub event: Event<'t>,
    /// Where its decision is among those of the commit.
    pub place: usize,
    /// The time of the log when it was decided.
    pub log_ms: i64,
}

impl<'t> Turn<'t> {
    /// Renders what was granted, with the lookups that texts name. The actions become deliveries
    /// and, where they are due later, timers.
    pub fn render(&mut self) {
        let granted = std::mem::take(&mut self.granted);
        let wanted: Vec<LookupKey> = granted.iter().flat_map(|one| self.wanted_by(one)).collect();
        if !wanted.is_empty() {
            self.answers.renew_patience();
            self.answers.ask(wanted);
        }
        for one in granted {
            let rendered = self.body_of(&one);
            match rendered {
                Ok((body, action)) => self.send(one, action, body),
                Err(why) => self.fail(&one, &why),
            }
        }
    }

    fn action_of(&self, decision: &Decision) -> Option<(&'t Released, &'t Action)> {
        let released = self.scene.documents.released(decision.campaign)?;
        Some((released, released.action(&decision.step, &decision.name)?))
    }

    fn wanted_by(&self, one: &Granted<'t>) -> Vec<LookupKey> {
        let Some((released, action)) = self.action_of(&one.decision) else { return Vec::new() };
        let Some(messages) = released.messages() else { return Vec::new() };
        let rules = self.scene.documents.rules();
        let step = one.decision.step.as_str();
        messages.wants(&released.campaign, (step, action), &one.event, rules)
    }

    fn body_of(&self, one: &Granted<'t>) -> Result<(String, &'t Action), String> {
        let missing = || "the campaign has no such action".to_owned();
        let (released, action) = self.action_of(&one.decision).ok_or_else(missing)?;
        let messages = released.messages().ok_or("its texts cannot be compiled")?;

        let answer = |key: &LookupKey| self.answers.of(key);
        let sources: (_, Answer<'_>) = (self.scene.documents.rules(), &answer);
        let Granted { decision, event, .. } = one;
        let content = messages
            .content(&released.campaign, decision, action, event, sources)
            .map_err(|error| error.to_string())?;
        let body = body(decision, action, event, &content);
        match body.len() {
            0..=LEDGER_BODY_LEN_MAX => Ok((body, action)),
            len => Err(format!("its body has {len} bytes: too many")),
        }
    }

    fn send(&mut self, one: Granted<'t>, action: &Action, body: String) {
        let Granted { decision, event, place, log_ms } = one;
        let cost = self.decisions[place].cost.clone();
        if decision.reason != Reason::Delayed {
            self.deliveries.push(Delivery {
                action: decision.action,
                campaign: decision.campaign,
                subject: decision.subject,
                destination: action.to.clone(),
                due_ms: log_ms,
                cost,
                body: body.into_bytes(),
            });
            return;
        }

        let delayed = DelayedAction {
            version: decision.version,
            step: decision.step,
            name: decision.name,
            variant: decision.variant,
            source: event.source.clone().into_owned(),
            event: event.id.clone().into_owned(),
            event_ms: event.time_ms,
            decided_ms: log_ms,
            destination: action.to.clone(),
            cost: cost.as_ref().map(StoredCost::from),
            body,
            recheck: action.recheck.is_some().then(|| StoredEvent::of(&event)),
            is_cancellable: action.cancel.is_some(),
            tries: 0,
        };
        let due = Due {
            due_ms: decision.due_ms,
            action: decision.action,
            campaign: decision.campaign,
            subject: decision.subject,
            waiting: Waiting::Action(Box::new(delayed)),
        };
        match due.at(decision.due_ms) {
            Some(timer) => self.timers.push(timer),
            None => self.refuse(place, "it is too large to wait"),
        }
    }

    fn fail(&mut self, one: &Granted<'t>, why: &str) {
        let Decision { campaign, step, name, .. } = &one.decision;
        tracing::warn!(campaign, %step, %name, %why, "an action could not be rendered");
        self.refuse(one.place, why);
    }

    /// Takes back what was granted and cannot happen.
    fn refuse(&mut self, place: usize, why: &str) {
        let record = &mut self.decisions[place];
        record.is_granted = false;
        record.outcome = Reason::RenderFailed.as_str().to_owned();
        record.evidence = json!({"why": why}).to_string();
        if let Some(cost) = record.cost.take() {
            self.budgets.give_back(&cost);
        }
    }
}

//! Explanations of what was decided, by the evidence of the ledger and the deliveries.

use super::earlier::{EarlierEvent, duplicate};
use super::{Explanation, is_on};
use crate::Error;
use crate::figures::instant;
use crate::limits::REPLAY_DECISIONS_MAX;
use crate::request::{EventName, NamedEvent};
use raingauge_campaigns::campaign::CampaignId;
use raingauge_campaigns::decision::{ActionId, Reason};
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use raingauge_ports::campaigns::{
    Decision, DecisionQuery, DeliveryRecord, LedgerReader, Outbox, Status,
};
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// What was decided, and what became of it.
#[derive(Clone)]
pub struct Ledger {
    pub reader: Arc<dyn LedgerReader>,
    pub outbox: Arc<dyn Outbox>,
}

/// Codes of actions that were granted, what went wrong first. Refusals come behind them: a step
/// that acts says more than one that does not.
const TELLING: [&str; 11] = [
    "dead",
    "refused",
    "render_failed",
    "recheck_failed",
    "cancelled",
    "paused",
    "retrying",
    "delayed",
    "granted",
    "delivered",
    "shadow",
];

/// A decision of the event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    pub step: String,
    pub name: String,
    pub outcome: String,
    /// What became of it: the outcome, or the state of its delivery.
    pub code: String,
    pub decided_at: String,
    pub variant: Option<String>,
    pub cost: Option<Json>,
    /// What the gate that refused it saw.
    pub gate: Json,
    pub delivery: Option<DeliveryReport>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryReport {
    pub destination: String,
    pub status: &'static str,
    pub tries: u32,
    /// When a pending one is due, and when any other got its status.
    pub at: String,
    pub note: String,
}

impl Ledger {
    /// Reads decisions, the newest first, up to the bound of a replay.
    pub async fn decisions(&self, query: DecisionQuery) -> Result<Vec<Decision>, Error> {
        let mut query = DecisionQuery { len_max: LEDGER_PAGE_LEN_MAX, ..query };
        let mut found = Vec::new();
        loop {
            let page = self.reader.decisions(query.clone()).await?;
            found.extend(page.decisions);
            if page.next.is_none() || found.len() >= REPLAY_DECISIONS_MAX {
                return Ok(found);
            }
            query.after = page.next;
        }
    }

    /// Reads what a campaign decided about a subject.
    pub async fn decisions_of(
        &self,
        campaign: CampaignId,
        subject: &str,
    ) -> Result<Vec<Decision>, Error> {
        let subject = Some(subject.to_owned());
        let query = DecisionQuery { campaign: Some(campaign), subject, ..DecisionQuery::default() };
        self.decisions(query).await
    }

    /// Explains what was decided on an event as a caller names it: a duplicate, if only another one
    /// of the same source and id is known. `None` if nothing was decided, or no longer is.
    pub async fn explain_named(
        &self,
        decisions: &[Decision],
        named: &NamedEvent,
    ) -> Result<Option<Explanation>, Error> {
        let name = named.name();
        let on_name: Vec<Decision> =
            decisions.iter().filter(|decision| is_on(decision, &name)).cloned().collect();
        let meant: Vec<Decision> =
            on_name.iter().filter(|decision| named.has_time(decision.event_ms)).cloned().collect();
        if !meant.is_empty() {
            return self.explain(&meant, &name).await;
        }

        let Some(first) = on_name.last() else { return Ok(None) };
        let unknown = Explanation {
            campaign: first.campaign,
            version: Some(first.version),
            subject: first.subject.clone(),
            event: Some(name),
            how: "stored",
            ..Explanation::default()
        };
        let first = EarlierEvent {
            event_time: instant(first.event_ms),
            offset: None,
            received_at: None,
            decided_at: Some(instant(first.decided_ms)),
        };
        Ok(Some(duplicate(&unknown, first)))
    }

    /// Explains what was decided on an event; `None` if nothing was, or no longer is.
    pub async fn explain(
        &self,
        decisions: &[Decision],
        event: &EventName,
    ) -> Result<Option<Explanation>, Error> {
        let on_event: Vec<&Decision> =
            decisions.iter().filter(|decision| is_on(decision, event)).collect();
        let Some(first) = on_event.first() else { return Ok(None) };

        let mut reports: Vec<DecisionReport> = Vec::new();
        let mut trace: Vec<Json> = Vec::new();
        // The oldest decision first. A later one of the same action says what became of it.
        for decision in on_event.iter().rev() {
            let evidence: Json = serde_json::from_str(&decision.evidence).unwrap_or_default();
            let lines = evidence.get("trace").and_then(Json::as_array).cloned();
            for line in lines.unwrap_or_default() {
                if !trace.contains(&line) {
                    trace.push(line);
                }
            }

            let report = self.report(decision, &evidence).await?;
            let same = |known: &&mut DecisionReport| {
                known.step == decision.step && known.name == decision.name
            };
            match reports.iter_mut().find(same) {
                Some(known) => *known = DecisionReport { action: known.action, ..report },
                None => reports.push(report),
            }
        }

        // Decisions of one moment have no order in the ledger.
        reports.sort_by(|left, right| (&left.step, &left.name).cmp(&(&right.step, &right.name)));
        let telling = reports.iter().min_by_key(|report| {
            TELLING.iter().position(|code| *code == report.code).unwrap_or(TELLING.len())
        });
        Ok(Some(Explanation {
            code: telling.map_or_else(String::new, |report| report.code.clone()),
            campaign: first.campaign,
            version: Some(first.version),
            subject: first.subject.clone(),
            event: Some(event.clone()),
            event_time: Some(instant(first.event_ms)),
            trace,
            decisions: reports,
            how: "stored",
            ..Explanation::default()
        }))
    }

    async fn report(&self, decision: &Decision, evidence: &Json) -> Result<DecisionReport, Error> {
        let record =
            if decision.is_granted { self.outbox.get(decision.action).await? } else { None };
        let code = match &record {
            Some(record) => code_of(record),
            None => decision.outcome.as_str(),
        };
        let cost = decision.cost.as_ref();
        Ok(DecisionReport {
            action: decision.is_granted.then_some(decision.action),
            step: decision.step.clone(),
            name: decision.name.clone(),
            outcome: decision.outcome.clone(),
            code: code.to_owned(),
            decided_at: instant(decision.decided_ms),
            variant: decision.variant.clone(),
            cost: cost.map(|cost| json!({"budget": cost.budget.name, "amount": cost.amount})),
            gate: evidence.get("gate").cloned().unwrap_or_default(),
            delivery: record.map(|record| DeliveryReport {
                destination: record.delivery.destination.clone(),
                status: record.status.name(),
                tries: record.tries,
                at: instant(record.at_ms),
                note: record.note,
            }),
        })
    }
}

/// The code of a delivery.
fn code_of(record: &DeliveryRecord) -> &'static str {
    match record.status {
        Status::Pending if record.tries > 0 => "retrying",
        Status::Pending => Reason::Delayed.as_str(),
        Status::Held => super::PAUSED,
        Status::Delivered => "delivered",
        Status::Refused => "refused",
        Status::Dead => "dead",
        Status::Cancelled => Reason::Cancelled.as_str(),
    }
}

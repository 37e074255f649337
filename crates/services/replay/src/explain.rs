//! *Why not*: why a campaign did nothing on an event, or what became of what it did.
//!
//! ```text
//!   decided?   ──▶ stored:   the evidence of the ledger, and the delivery
//!   otherwise  ──▶ replayed: received? duplicate? type? subject? in effect? active? in time?
//!                            rule? step?
//! ```

mod earlier;
mod stored;

use crate::Error;
use crate::answers::{Answers, LookupCounts};
use crate::figures::instant;
use crate::limits::EXPLAIN_EVENTS_SHOWN;
use crate::progress::Progress;
use crate::request::{EventName, ExplainRequest, NamedEvent};
use crate::source::{Span, walk};
use crate::subject::{Recorded, SubjectReplay, SubjectTurn};
use raingauge_campaigns::campaign::{CampaignId, State};
use raingauge_campaigns::decision::{Decision as Decided, Reason};
use raingauge_campaigns::engine::Nearest;
use raingauge_core::event::Event;
use raingauge_ports::campaigns::Decision;
use raingauge_ports::log::EventLog;
use raingauge_ports::record::{Entry, identity};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::VecDeque;
use std::sync::Arc;

use earlier::Arrivals;
pub use earlier::EarlierEvent;
pub use stored::{DecisionReport, DeliveryReport, Ledger};

/// Codes that no decision has.
const NOT_RECEIVED: &str = "not_received";
const NO_LISTENER: &str = "no_listener";
const PAUSED: &str = "paused";
const WARMING: &str = "warming";

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub code: String,
    pub campaign: CampaignId,
    /// The version in effect at the event; `None` before the first one.
    pub version: Option<u32>,
    pub subject: String,
    pub event: Option<EventName>,
    pub event_time: Option<String>,
    /// The conditions in the order in which they were tested.
    pub trace: Vec<Json>,
    /// For each step that did not hold, the fewest conditions that kept it from holding.
    pub nearest: Vec<Nearest>,
    pub decisions: Vec<DecisionReport>,
    /// The first event of this source and id, where this one came again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<EarlierEvent>,
    /// What the code alone does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// `stored` or `replayed`.
    pub how: &'static str,
    /// Where no event was named: the newest events of the subject, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<ExplainedEvent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lookups: Option<LookupCounts>,
}

/// One of the newest events of the subject.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedEvent {
    pub event: EventName,
    pub event_time: String,
    pub code: String,
    pub trace: Vec<Json>,
    pub nearest: Vec<Nearest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<EarlierEvent>,
}

impl Explanation {
    /// Whether the event came again and was granted nothing: what is recorded is about the first.
    pub(crate) fn came_in_vain(&self) -> bool {
        let granted = [Reason::Granted, Reason::Delayed, Reason::Shadow];
        self.first.is_some() && !granted.iter().any(|reason| reason.as_str() == self.code)
    }
}

/// Whether a decision is one of the campaign's on an event.
pub(crate) fn is_on(decision: &Decision, event: &EventName) -> bool {
    decision.source == event.source && decision.event == event.id
}

/// Explains by a replay of the log. Blocks the thread.
pub fn explain_by_replay(
    logs: &[Arc<dyn EventLog>],
    request: &ExplainRequest,
    mut replay: SubjectReplay,
    answers: &mut Answers,
    progress: &Progress,
) -> Result<Explanation, Error> {
    let campaign = replay.timeline().campaign;
    let unknown = Explanation {
        code: NOT_RECEIVED.to_owned(),
        campaign,
        subject: request.subject.clone(),
        event: request.event.as_ref().map(NamedEvent::name),
        how: "replayed",
        ..Explanation::default()
    };
    let mut found: Option<Explanation> = None;
    let mut newest: VecDeque<ExplainedEvent> = VecDeque::new();
    let mut arrivals = Arrivals::default();

    let spans = logs.iter().map(|log| Span::since(log, i64::MIN)).collect();
    walk(spans, progress, |step| {
        let target = match &step.entry {
            Entry::Event(event) => request.event.as_ref().filter(|named| is_named(named, event)),
            _ => None,
        };
        if target.is_some() {
            answers.ask_services();
        }
        let turn = replay.take(&step, answers)?;
        let Entry::Event(event) = &step.entry else { return Ok(true) };
        if target.is_none() && turn.is_none() {
            return Ok(true);
        }

        let first = arrivals.note(event, &step);
        if let Some(named) = target {
            // One of another time is not the one that is meant, which may be its duplicate.
            let is_meant = named.has_time(event.time_ms);
            found = is_meant.then(|| explained(&replay, &unknown, event, (turn.as_ref(), first)));
            return Ok(!is_meant);
        }
        if let (Some(turn), None) = (&turn, &request.event)
            && turn.is_listener
        {
            let explained = explained(&replay, &unknown, event, (Some(turn), first));
            note(&mut newest, &explained);
            found = Some(explained);
        }
        Ok(true)
    })?;

    if let (None, Some(named)) = (&found, &request.event) {
        let first = arrivals.first(named);
        found = first.map(|first| earlier::duplicate(&unknown, first));
    }
    let mut explanation = found.unwrap_or(unknown);
    explanation.events = newest.into_iter().rev().collect();
    explanation.lookups = Some(answers.counts());
    if explanation.code == NOT_RECEIVED {
        let start = logs.iter().map(|log| log.start_ms()).max().unwrap_or(0);
        explanation.detail = Some(if start == 0 {
            "the log has no such event".to_owned()
        } else {
            format!("the log has no such event; it begins at {}", instant(start))
        });
    }
    Ok(explanation)
}

fn is_named(named: &NamedEvent, event: &Event<'_>) -> bool {
    named.id == *event.id && named.source == *event.source
}

fn note(newest: &mut VecDeque<ExplainedEvent>, explained: &Explanation) {
    let (Some(event), Some(event_time)) = (&explained.event, &explained.event_time) else { return };
    if newest.len() == EXPLAIN_EVENTS_SHOWN {
        newest.pop_front();
    }
    newest.push_back(ExplainedEvent {
        event: event.clone(),
        event_time: event_time.clone(),
        code: explained.code.clone(),
        trace: explained.trace.clone(),
        nearest: explained.nearest.clone(),
        first: explained.first.clone(),
    });
}

/// The ladder for an event that was received, with what became of it, and the first one of its
/// source and id where it came again.
fn explained(
    replay: &SubjectReplay,
    unknown: &Explanation,
    event: &Event<'_>,
    (turn, first): (Option<&SubjectTurn>, Option<EarlierEvent>),
) -> Explanation {
    let base = Explanation {
        event: Some(EventName { source: event.source.to_string(), id: event.id.to_string() }),
        event_time: Some(instant(event.time_ms)),
        version: turn.and_then(|turn| turn.version),
        first,
        ..unknown.clone()
    };
    let answer = |code: &str, detail: Option<String>| Explanation {
        code: code.to_owned(),
        detail,
        ..base.clone()
    };
    let Some(turn) = turn else {
        // It concerns another subject, or is of a type that nothing of the campaign reads.
        return match replay.subject_of(event) {
            Some(found) if found == unknown.subject => answer(NO_LISTENER, None),
            Some(found) => {
                let detail = format!("the event is about {found}");
                answer(Reason::NoSubject.as_str(), Some(detail))
            }
            None => answer(Reason::NoSubject.as_str(), None),
        };
    };

    match turn.state {
        None => {
            let detail = "the campaign took effect later than this event";
            return answer(Reason::OutsideActivity.as_str(), Some(detail.to_owned()));
        }
        Some(State::Draft | State::Archived) => {
            let detail = "the campaign was a draft, or archived";
            return answer(Reason::OutsideActivity.as_str(), Some(detail.to_owned()));
        }
        Some(State::Paused | State::Active | State::Shadow) if !turn.is_listener => {
            return answer(NO_LISTENER, None);
        }
        Some(State::Paused) => return answer(PAUSED, None),
        Some(State::Active | State::Shadow) => {}
    }

    let recorded = replay.recorded(event);
    let Some(explanation) = &turn.explanation else { return answer(NO_LISTENER, None) };
    let decided = turn.outcome.as_ref().and_then(|outcome| outcome.decisions.first());
    let code = explanation.code.or(decided.map(|decision| decision.reason));
    let warms = turn.version.is_some_and(|version| replay.timeline().warms(version));
    let is_granted = decided.is_some_and(|one| one.is_granted() || one.reason == Reason::Shadow);

    let mut answer = match code {
        _ if base.first.is_some() && is_repetition(turn) => {
            answer(Reason::Duplicate.as_str(), Some(earlier::DETAIL.to_owned()))
        }
        // It would have acted, and did not: it was still counting what came before.
        _ if is_granted && recorded.is_empty() && warms && explanation.code.is_none() => {
            let detail = "nothing was decided: its counts were still filled from the log";
            answer(WARMING, Some(detail.to_owned()))
        }
        Some(reason) => answer(reason.as_str(), None),
        None if recorded.is_empty() => answer(Reason::Duplicate.as_str(), None),
        None => answer(&recorded[0].outcome, None),
    };
    answer.trace.clone_from(&explanation.trace);
    answer.nearest.clone_from(&explanation.nearest);
    answer
}

/// Whether an event passes every condition, and is granted nothing because it came before.
fn is_repetition(turn: &SubjectTurn) -> bool {
    let passes = turn.explanation.as_ref().is_some_and(|found| found.code.is_none());
    passes
        && turn.outcome.as_ref().is_none_or(|outcome| {
            outcome.repetitions > 0 && !outcome.decisions.iter().any(Decided::is_granted)
        })
}

/// The recorded decisions by their events.
pub fn by_event(decisions: Vec<Decision>) -> Recorded {
    let mut recorded = Recorded::new();
    for decision in decisions {
        let event = identity(&decision.source, &decision.event);
        recorded.entry(event).or_default().push(decision);
    }
    recorded
}

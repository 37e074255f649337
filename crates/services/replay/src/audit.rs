//! The self-audit: replays some subjects of a campaign, and compares what that decides with what
//! was decided.
//!
//! ```text
//!   log ──▶ engine with fresh states ──┐
//!      └──▶ naive reading ─────────────┴──▶ equal to what the ledger has?
//! ```
//!
//! What depends on others than the subject, such as a budget, is not compared.

use crate::Error;
use crate::answers::{Answers, RecordedAnswers};
use crate::explain::{Ledger, by_event};
use crate::figures::instant;
use crate::limits::{AUDIT_DIFFERENCES_MAX, AUDIT_SUBJECTS_MAX, REPLAY_DECISIONS_MAX};
use crate::machine::OwnedEvent;
use crate::naive::{Grant, Naive, Past};
use crate::progress::Progress;
use crate::request::EventName;
use crate::source::{Span, walk};
use crate::subject::{SubjectReplay, Timeline};
use hashbrown::{HashMap, HashSet};
use raingauge_campaigns::campaign::{CampaignId, State};
use raingauge_campaigns::decision::Reason;
use raingauge_campaigns::engine::{Documents, Outcome};
use raingauge_ports::campaigns::{Decision, DecisionQuery};
use raingauge_ports::log::EventLog;
use raingauge_ports::record::Entry;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const GRANTED: &str = Reason::Granted.as_str();
const SHADOW: &str = Reason::Shadow.as_str();

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    pub campaign: CampaignId,
    /// Chooses the subjects; the same audit again has the same seed.
    pub seed: u64,
    pub subjects: usize,
    /// Events of the subjects, and decisions that were compared.
    pub events: u64,
    pub compared: u64,
    /// Events on which the naive reading was compared as well.
    pub read_naively: u64,
    /// Differences in all, of which the first are listed.
    pub different: u64,
    pub differences: Vec<Difference>,
    pub audited_at: i64,
}

/// An event on which the replay decides something else than what was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    pub event: EventName,
    pub event_time: String,
    pub subject: String,
    /// Outcomes by step and action.
    pub stored: BTreeMap<String, String>,
    pub replayed: BTreeMap<String, String>,
    /// What the naive reading decides; `None` where it cannot tell.
    pub naive: Option<BTreeMap<String, String>>,
}

/// What an audit begins with.
pub struct Draw {
    pub timeline: Timeline,
    pub seed: u64,
    pub subjects: HashSet<String>,
    decisions: Vec<Decision>,
    /// The oldest decision that was read. What came before it is not compared.
    since_ms: i64,
}

impl Draw {
    /// Chooses subjects among those about whom something was decided.
    pub async fn choose(ledger: &Ledger, timeline: Timeline, seed: u64) -> Result<Self, Error> {
        let campaign = Some(timeline.campaign);
        let query = DecisionQuery { campaign, ..DecisionQuery::default() };
        let mut decisions = ledger.decisions(query).await?;
        let oldest = decisions.last().map(|decision| decision.decided_ms);
        // Of one moment, some may have been cut off.
        let is_cut = decisions.len() >= REPLAY_DECISIONS_MAX;
        let since_ms = oldest.map_or(i64::MAX, |oldest| oldest + i64::from(is_cut));

        let names: BTreeSet<&String> = decisions.iter().map(|decision| &decision.subject).collect();
        let mut drawn: Vec<&String> = names.into_iter().collect();
        drawn.sort_by_key(|name| xxh3_64_with_seed(name.as_bytes(), seed));
        let subjects: HashSet<String> =
            drawn.into_iter().take(AUDIT_SUBJECTS_MAX).cloned().collect();
        decisions.retain(|decision| subjects.contains(&decision.subject));
        Ok(Self { timeline, seed, subjects, decisions, since_ms })
    }
}

/// Runs an audit. Blocks the thread.
pub fn audit(
    logs: &[Arc<dyn EventLog>],
    draw: Draw,
    in_effect: &Documents,
    answers: Answers,
    audited_ms: i64,
    progress: &Progress,
) -> Result<Audit, Error> {
    let mut recorded = RecordedAnswers::default();
    draw.decisions.iter().for_each(|decision| recorded.note(decision));
    let mut answers = answers.with_recorded(recorded);
    let mut audit = Audit {
        campaign: draw.timeline.campaign,
        seed: draw.seed,
        subjects: draw.subjects.len(),
        events: 0,
        compared: 0,
        read_naively: 0,
        different: 0,
        differences: Vec::new(),
        audited_at: audited_ms.div_euclid(1_000),
    };
    if draw.subjects.is_empty() {
        return Ok(audit);
    }

    let mut replay =
        SubjectReplay::new(draw.timeline, draw.subjects, in_effect, by_event(draw.decisions));
    let since_ms = draw.since_ms.max(covered_from_ms(logs, replay.timeline()));
    let mut pasts: HashMap<String, Past> = HashMap::new();
    let spans = logs.iter().map(|log| Span::since(log, i64::MIN)).collect();
    walk(spans, progress, |step| {
        let Some(turn) = replay.take(&step, &mut answers)? else { return Ok(true) };
        let Entry::Event(event) = &step.entry else { return Ok(true) };
        audit.events += 1;
        let subject = replay.subject_of(event).unwrap_or_default();
        let past = pasts.entry_ref(subject.as_str()).or_default();
        past.events.push((step.appended_ms, OwnedEvent::of(event)));
        let decides = matches!(turn.state, Some(State::Active | State::Shadow));
        let naive = replay.only_version().filter(|_| decides).and_then(|campaign| {
            Naive { campaign, shared: replay.shared() }.decide(past, &mut answers)
        });

        // What is older than the first decision that was read may have been decided before that.
        let stored = stored_outcomes(replay.recorded(event));
        let is_compared = decides && step.appended_ms >= since_ms;
        let replayed = turn.outcome.as_ref().map(outcomes);
        let decided = if is_compared { Some(&stored) } else { replayed.as_ref() };
        past.note(decided.unwrap_or(&stored), event.time_ms);
        // An event that came again was decided the first time.
        let is_first = turn.outcome.as_ref().is_some_and(|outcome| outcome.repetitions == 0);
        let Some(replayed) = replayed.filter(|_| is_compared && is_first) else {
            return Ok(true);
        };

        audit.compared += stored.len().max(replayed.len()) as u64;
        audit.read_naively += u64::from(naive.is_some());
        let is_equal = stored == replayed && naive.as_ref().is_none_or(|naive| stored == *naive);
        if !is_equal {
            audit.different += 1;
            if audit.differences.len() < AUDIT_DIFFERENCES_MAX {
                let event_name =
                    EventName { source: event.source.to_string(), id: event.id.to_string() };
                audit.differences.push(Difference {
                    event: event_name,
                    event_time: instant(event.time_ms),
                    subject,
                    stored,
                    replayed,
                    naive,
                });
            }
        }
        Ok(true)
    })?;
    Ok(audit)
}

/// From when on the log has everything that a decision depends on, in milliseconds since 1970.
fn covered_from_ms(logs: &[Arc<dyn EventLog>], timeline: &Timeline) -> i64 {
    match logs.iter().map(|log| log.start_ms()).max().unwrap_or(0) {
        0 => i64::MIN,
        start_ms => start_ms.saturating_add(timeline.memory_ms()),
    }
}

impl Past {
    /// Notes the steps that were granted on an event.
    fn note(&mut self, outcomes: &BTreeMap<String, String>, time_ms: i64) {
        let mut granted: BTreeSet<&str> = BTreeSet::new();
        for (action, outcome) in outcomes {
            let is_granted = matches!(outcome.as_str(), GRANTED | SHADOW);
            if let Some((step, _)) = action.split_once('/').filter(|_| is_granted) {
                granted.insert(step);
            }
        }
        let grants = granted.into_iter().map(|step| Grant { step: step.to_owned(), time_ms });
        self.grants.extend(grants);
    }
}

/// The first outcome of each action: later ones say what became of it.
fn stored_outcomes(recorded: &[Decision]) -> BTreeMap<String, String> {
    let mut outcomes = BTreeMap::new();
    let mut sorted: Vec<&Decision> = recorded.iter().collect();
    sorted.sort_by_key(|decision| (decision.decided_ms, !decision.is_granted));
    for decision in sorted {
        let action = format!("{}/{}", decision.step, decision.name);
        outcomes.entry(action).or_insert_with(|| named(&decision.outcome));
    }
    outcomes
}

fn outcomes(outcome: &Outcome) -> BTreeMap<String, String> {
    let decisions = outcome.decisions.iter();
    decisions
        .map(|decision| {
            let action = format!("{}/{}", decision.step, decision.name);
            (action, named(decision.reason.as_str()))
        })
        .collect()
}

/// An outcome as it is compared: a delay is not what is audited.
fn named(outcome: &str) -> String {
    if outcome == Reason::Delayed.as_str() { GRANTED.to_owned() } else { outcome.to_owned() }
}

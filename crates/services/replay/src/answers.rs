//! Answers of lookups in a replay.
//!
//! ```text
//!   assumed by the request ─▶ recorded with a decision ─▶ tables, segments and counters as of now
//! ```
//!
//! Databases and services are not asked for events of the past: a backtest would ask them a million
//! times, and they would answer as of now. What has no answer has failed.

use crate::limits::REPLAY_ANSWERS_MAX;
use crate::request::Assumption;
use hashbrown::HashMap;
use raingauge_campaigns::engine::{Engine, LookupClass, LookupKey, Pending};
use raingauge_campaigns::rule::Lhs;
use raingauge_core::event::Event;
use raingauge_ports::campaigns::{Decision, Lookups};
use raingauge_ports::record::{Identity, identity};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use xxhash_rust::xxh3::xxh3_64;

/// How long a replay waits for one answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Of so large a whole are the shares of assumptions.
const SHARES: u64 = 10_000;

/// How many lookups were wanted, and where their answers came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LookupCounts {
    pub wanted: u64,
    pub assumed: u64,
    pub recorded: u64,
    /// Answered by tables, segments and counters.
    pub current: u64,
    pub failed: u64,
}

/// Answers that were recorded with decisions, by event and by the name of the lookup.
#[derive(Clone, Debug, Default)]
pub struct RecordedAnswers(HashMap<(Identity, String), Json>);

impl RecordedAnswers {
    /// Takes the answers out of the evidence of a decision.
    pub fn note(&mut self, decision: &Decision) {
        let Ok(evidence) = serde_json::from_str::<Json>(&decision.evidence) else { return };
        let trace = evidence.get("trace").and_then(Json::as_array);
        for line in trace.into_iter().flatten() {
            let (Some(leaf), Some(is)) = (line.get("leaf").and_then(Json::as_str), line.get("is"))
            else {
                continue;
            };
            let condition = leaf.split_once(": ").map_or(leaf, |(_, condition)| condition);
            let lhs = condition.split(' ').next().and_then(Lhs::parse);
            if let Some(name) = lhs.as_ref().and_then(name_of_lhs) {
                let event = identity(&decision.source, &decision.event);
                self.0.insert((event, name), is.clone());
            }
        }
    }
}

/// Answers the lookups of one replay.
pub struct Answers {
    assumptions: BTreeMap<String, Assumption>,
    recorded: RecordedAnswers,
    current: Option<(Arc<dyn Lookups>, Handle)>,
    /// Whether databases and services are asked too.
    asks_services: bool,
    kept: HashMap<LookupKey, Option<Json>>,
    counts: LookupCounts,
}

impl Answers {
    /// Answers by assumptions alone.
    pub fn assumed(assumptions: BTreeMap<String, Assumption>) -> Self {
        Self {
            assumptions,
            recorded: RecordedAnswers::default(),
            current: None,
            asks_services: false,
            kept: HashMap::new(),
            counts: LookupCounts::default(),
        }
    }

    /// Answers also by what was recorded.
    pub fn with_recorded(self, recorded: RecordedAnswers) -> Self {
        Self { recorded, ..self }
    }

    /// Answers also as of now. The caller runs on a thread that may block.
    pub fn with_current(self, lookups: Option<Arc<dyn Lookups>>, handle: Handle) -> Self {
        Self { current: lookups.map(|lookups| (lookups, handle)), ..self }
    }

    /// From here on, databases and services are asked as well.
    pub fn ask_services(&mut self) {
        self.asks_services = true;
        self.kept.clear();
    }

    pub fn counts(&self) -> LookupCounts {
        self.counts
    }

    /// Feeds an evaluation until it wants nothing more.
    pub fn feed(&mut self, engine: &Engine, event: &Event<'_>, pending: &mut Pending<'_>) {
        loop {
            let keys = engine.wants(pending);
            if keys.is_empty() {
                return;
            }
            for key in keys {
                let answer = self.answer(&key, event);
                engine.feed(pending, key, answer);
            }
        }
    }

    /// The answer for an event; `None` if there is none.
    pub fn answer(&mut self, key: &LookupKey, event: &Event<'_>) -> Option<Json> {
        self.counts.wanted += 1;
        let name = name_of(key);
        if let Some(assumption) = self.assumptions.get(&name) {
            self.counts.assumed += 1;
            return Some(assumption.answer(&name, &key.key));
        }

        let recorded = (!self.recorded.0.is_empty())
            .then(|| self.recorded.0.get(&(identity(&event.source, &event.id), name)))
            .flatten();
        if let Some(answer) = recorded {
            self.counts.recorded += 1;
            return Some(answer.clone());
        }

        let answer = self.current(key);
        if answer.is_some() {
            self.counts.current += 1;
        } else {
            self.counts.failed += 1;
        }
        answer
    }

    fn current(&mut self, key: &LookupKey) -> Option<Json> {
        let is_service = matches!(key.class, LookupClass::Database | LookupClass::Http);
        if is_service && !self.asks_services {
            return None;
        }
        if let Some(answer) = self.kept.get(key) {
            return answer.clone();
        }

        let (lookups, handle) = self.current.as_ref()?;
        let keys = std::slice::from_ref(key);
        let answer = handle.block_on(lookups.answers(keys, 0, PATIENCE)).pop()?.ok();
        if self.kept.len() >= REPLAY_ANSWERS_MAX {
            self.kept.clear();
        }
        self.kept.insert(key.clone(), answer.clone());
        answer
    }
}

impl Assumption {
    fn answer(&self, name: &str, key: &str) -> Json {
        match self {
            Self::Answer(fixed) => fixed.answer.clone(),
            Self::Share(shared) => {
                let place = xxh3_64(format!("{name}\0{key}").as_bytes()) % SHARES;
                let is_in = place < u64::from(shared.share);
                if is_in { shared.then.clone() } else { shared.otherwise.clone() }
            }
        }
    }
}

/// The name of a lookup, as conditions begin with it: `table.users`.
pub(crate) fn name_of(key: &LookupKey) -> String {
    let class = match key.class {
        LookupClass::Segment => "segment",
        LookupClass::Table => "table",
        LookupClass::Database => "db",
        LookupClass::Http => "http",
        LookupClass::Counter => "counter",
    };
    format!("{class}.{}", key.name)
}

fn name_of_lhs(lhs: &Lhs) -> Option<String> {
    match lhs {
        Lhs::Segment(name) => Some(format!("segment.{name}")),
        Lhs::Table { name, .. } => Some(format!("table.{name}")),
        Lhs::Database { name, .. } => Some(format!("db.{name}")),
        Lhs::Http { name, .. } => Some(format!("http.{name}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_campaigns::decision::ActionId;
    use serde_json::json;

    fn key(class: LookupClass, name: &str, key: &str) -> LookupKey {
        LookupKey { class, name: name.to_owned(), key: key.to_owned(), range_s: None }
    }

    #[test]
    fn shares_are_chosen_by_hash() {
        let assumed =
            json!({"segment.vip": {"share": 3000}, "http.risk": {"answer": {"score": 1}}});
        let mut answers = Answers::assumed(serde_json::from_value(assumed).expect("assumptions"));
        let event = Event::of_data("order", 0, "{}");
        let mut is_vip = |user: usize| {
            let answer =
                answers.answer(&key(LookupClass::Segment, "vip", &user.to_string()), &event);
            answer == Some(json!(true))
        };
        let vips: Vec<bool> = (0..10_000).map(&mut is_vip).collect();
        let share = vips.iter().filter(|vip| **vip).count();
        assert!((2_800..3_200).contains(&share), "{share}");
        assert_eq!((0..10_000).map(&mut is_vip).collect::<Vec<_>>(), vips);

        let risk = answers.answer(&key(LookupClass::Http, "risk", "u"), &event);
        assert_eq!(risk, Some(json!({"score": 1})));
        assert_eq!(answers.answer(&key(LookupClass::Http, "other", "u"), &event), None);
        let counts =
            LookupCounts { wanted: 20_002, assumed: 20_001, failed: 1, ..answers.counts() };
        assert_eq!(answers.counts(), counts);
    }

    #[test]
    fn evidence_answers_for_its_event() {
        let evidence = json!({"trace": [
            {"leaf": "rule: var.country eq sg", "is": "sg", "holds": true},
            {"leaf": "rule: http.risk.score lt 5", "is": {"score": 3}, "holds": true}]});
        let decision = Decision {
            action: ActionId([0; 16]),
            is_granted: true,
            campaign: 7,
            version: 1,
            step: "s".to_owned(),
            name: "a".to_owned(),
            subject: "u".to_owned(),
            source: "test".to_owned(),
            event: "1".to_owned(),
            event_ms: 0,
            decided_ms: 0,
            outcome: "granted".to_owned(),
            variant: None,
            cost: None,
            evidence: evidence.to_string(),
        };
        let mut recorded = RecordedAnswers::default();
        recorded.note(&decision);

        let mut answers = Answers::assumed(BTreeMap::new()).with_recorded(recorded);
        let risk = key(LookupClass::Http, "risk", "u");
        let event = Event::of_data("order", 0, "{}");
        assert_eq!(answers.answer(&risk, &event), Some(json!({"score": 3})));
        let other = Event { id: "2".into(), ..event };
        assert_eq!(answers.answer(&risk, &other), None);
        assert_eq!(answers.counts().recorded, 1);
    }
}

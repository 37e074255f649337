//! Why a campaign did nothing on an event.

use super::evaluate::{Evaluation, Facts, Pending, subject_in};
use super::{Engine, Entry, Source};
use crate::campaign::CampaignId;
use crate::decision::Reason;
use crate::states::States;
use crate::tree::ones;
use raingauge_core::field::Scalar;
use serde::Serialize;
use serde_json::Value as Json;

/// The first reason against a campaign, before the gates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// `None` where a step passes, so that the decision says what followed.
    pub code: Option<Reason>,
    /// The conditions that were tested, in their order.
    pub trace: Vec<Json>,
    /// For each step that does not hold, the fewest conditions that keep it from holding.
    pub nearest: Vec<Nearest>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nearest {
    pub step: String,
    pub change: Vec<Change>,
}

/// A condition that would have to turn around.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    pub lhs: String,
    pub is: Json,
    pub wants: String,
}

impl Engine {
    /// Explains a campaign on an event that has begun. Lookups that have been fed count; others
    /// are taken to hold. `None` for a campaign that the event does not concern.
    pub fn explain(
        &self,
        pending: &mut Pending<'_>,
        campaign: CampaignId,
        states: &mut dyn States,
    ) -> Option<Explanation> {
        let bucket = self.buckets.get(&*pending.facts.event.kind)?;
        let program = self.programs.iter().find(|program| program.id() == campaign)?;
        let early = |code| Explanation { code: Some(code), trace: Vec::new(), nearest: Vec::new() };

        let facts = &mut pending.facts;
        if pending.is_late {
            return Some(early(Reason::TooLate));
        }
        if subject_in(bucket.value(&facts.values, &program.subject)).is_none() {
            return Some(early(Reason::NoSubject));
        }
        if !program.campaign.is_active_at(facts.event.time_ms) {
            return Some(early(Reason::OutsideActivity));
        }

        let mut explanation = Explanation { code: None, trace: Vec::new(), nearest: Vec::new() };
        let mut codes = Vec::new();
        for (number, entry) in bucket.entries.iter().enumerate() {
            let is_step = !bucket.rechecks.values().any(|recheck| *recheck == number);
            if self.programs[entry.program].id() != campaign || !is_step {
                continue;
            }
            for leaf in 0..entry.tree.leaves().len() {
                self.load_state(bucket, entry, leaf, facts, states);
            }

            let mut progress = entry.tree.start();
            entry.tree.advance(&mut progress, |leaf| self.test(entry, leaf, facts));
            let evaluation = Evaluation { entry: number, progress };
            for line in self.trace(bucket, facts, &evaluation) {
                if !explanation.trace.contains(&line) {
                    explanation.trace.push(line);
                }
            }
            match progress.result() {
                Some(true) => codes.push(None),
                None => codes.push(Some(Reason::LookupFailed)),
                Some(false) => {
                    let missing = self.missing(entry, facts);
                    let of_rule =
                        |leaf: &usize| entry.tree.leaves()[*leaf].text.starts_with("rule: ");
                    let is_rule = missing.iter().any(of_rule);
                    codes.push(Some(if is_rule { Reason::RuleFalse } else { Reason::StepFalse }));
                    let step = program.campaign.steps[entry.step].name.clone();
                    let change = missing.into_iter().map(|leaf| change(entry, leaf, facts));
                    explanation.nearest.push(Nearest { step, change: change.collect() });
                }
            }
        }
        let passes = codes.iter().any(Option::is_none);
        explanation.code = if passes { None } else { codes.into_iter().flatten().next() };
        Some(explanation)
    }

    /// The leaves that keep a rule from holding.
    fn missing(&self, entry: &Entry, facts: &Facts<'_>) -> Vec<usize> {
        let leaves = entry.tree.leaves();
        let held = (0..leaves.len()).fold(0, |held, leaf| {
            // What is not known is taken to hold, after negation.
            let holds = self.test(entry, leaf, facts).unwrap_or(!leaves[leaf].negated);
            held | u64::from(holds) << leaf
        });
        ones(entry.tree.nearest(held)).collect()
    }
}

fn change(entry: &Entry, number: usize, facts: &Facts<'_>) -> Change {
    let leaf = &entry.tree.leaves()[number];
    let lhs = leaf.lhs.to_string();
    let is = match &entry.sources[number] {
        Source::Slot(slot) => Json::from(facts.values[*slot].as_ref().map(Scalar::as_text)),
        Source::Tally(tally) => Json::from(facts.changes.get(tally).map(|change| change.after)),
        Source::Usage(owner) => Json::from(facts.usages.get(owner).copied()),
        Source::Counter { .. } | Source::Lookup { .. } | Source::LocalTime { .. } => Json::Null,
    };
    let condition = leaf.text.split_once(": ").map_or(&*leaf.text, |(_, condition)| condition);
    let wants = condition.strip_prefix(&lhs).unwrap_or(condition).trim_start();
    let wants = if leaf.negated { format!("not {wants}") } else { wants.to_owned() };
    Change { lhs, is, wants }
}

//! Comparisons: two versions over the same events, in one pass.
//!
//! Both versions run in one engine, so that an event is read once and equal counts are one. The
//! campaigns of the second version have ids, budgets, groups and destinations of their own there,
//! and neither version sees what the other did. Campaigns that are equal in both, and share nothing
//! with those that differ, run once for both.

use crate::Error;
use crate::answers::{Answers, LookupCounts};
use crate::backtest::{Setup, Source};
use crate::documents::reported_id;
use crate::figures::instant;
use crate::limits::BACKTEST_SUBJECTS_SHOWN;
use crate::measure::{Measures, StepMeasure};
use crate::progress::Progress;
use hashbrown::HashMap;
use raingauge_campaigns::campaign::{Campaign, CampaignId};
use raingauge_campaigns::engine::{Documents, Release};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Added to the ids of the second version. The order of the ids within it stays as it is.
const SECOND: CampaignId = 1 << 31;
/// Stands before names of the second version. No document can have such a name.
const SECOND_NAME: &str = "\u{1}";

/// The versions as one set of documents.
pub struct Sides {
    pub documents: Documents,
    /// Campaigns that run once for both.
    common: BTreeSet<CampaignId>,
    /// The steps of all campaigns of either version.
    steps: Vec<(CampaignId, String)>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    pub steps: Vec<StepComparison>,
    /// What was reserved of all budgets, by name.
    pub spend: BTreeMap<String, SpendComparison>,
    pub events: u64,
    pub late: u64,
    pub lookups: LookupCounts,
    pub covered: Option<[String; 2]>,
    pub sample: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepComparison {
    pub campaign: CampaignId,
    pub step: String,
    pub before: StepTotal,
    pub after: StepTotal,
    /// Subjects that get the step more often.
    pub gain: SubjectChanges,
    /// Subjects that get it less often.
    pub lose: SubjectChanges,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StepTotal {
    pub triggers: u64,
    pub subjects: u64,
    pub spend: BTreeMap<String, i64>,
    pub refused: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SubjectChanges {
    pub subjects: u64,
    pub triggers: u64,
    /// Those with the largest difference: subject, triggers before and after.
    pub samples: Vec<(String, u64, u64)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SpendComparison {
    pub before: i64,
    pub after: i64,
    pub difference: i64,
}

impl Sides {
    pub fn new(before: Documents, after: Documents) -> Self {
        let common = common_campaigns(&before, &after);
        let mut steps = Vec::new();
        for Release { campaign, .. } in before.campaigns.iter().chain(&after.campaigns) {
            for step in &campaign.steps {
                let place = (campaign.id, step.name.clone());
                if !steps.contains(&place) {
                    steps.push(place);
                }
            }
        }

        let mut documents = before;
        let own = |name: &String| format!("{SECOND_NAME}{name}");
        let budgets = after.budgets.iter().map(|(name, budget)| (own(name), budget.clone()));
        documents.budgets.extend(budgets);
        for (name, cap) in &after.caps {
            let mut cap = cap.clone();
            cap.destinations.iter_mut().for_each(|to| *to = own(to));
            documents.caps.insert(own(name), cap);
        }
        for mut release in after.campaigns {
            if !common.contains(&release.campaign.id) {
                separate(&mut release.campaign);
                documents.campaigns.push(release);
            }
        }
        Self { documents, common, steps }
    }

    /// The measure of a step of the second version.
    fn second<'m>(
        &self,
        measures: &'m Measures,
        campaign: CampaignId,
        step: &str,
    ) -> Option<&'m StepMeasure> {
        let id = if self.common.contains(&campaign) { campaign } else { campaign | SECOND };
        measures.step(id, step)
    }
}

/// Gives a campaign of the second version names of its own for all that campaigns share.
fn separate(campaign: &mut Campaign) {
    campaign.id |= SECOND;
    let own = |name: &mut String| name.insert_str(0, SECOND_NAME);
    if let Some(group) = &mut campaign.group {
        own(&mut group.name);
    }
    for action in campaign.steps.iter_mut().flat_map(|step| &mut step.actions) {
        own(&mut action.to);
        if let Some(cost) = &mut action.cost
            && !campaign.budgets.contains_key(&cost.budget)
        {
            own(&mut cost.budget);
        }
    }
}

/// Campaigns that are equal in both versions and share nothing with any other that differs.
fn common_campaigns(before: &Documents, after: &Documents) -> BTreeSet<CampaignId> {
    let shared = |campaign: &Campaign, documents: &Documents| {
        let actions = || campaign.steps.iter().flat_map(|step| &step.actions);
        let groups = campaign.group.iter().map(|group| format!("group {}", group.name));
        let costs = actions().filter_map(|action| action.cost.as_ref());
        let foreign = costs.filter(|cost| !campaign.budgets.contains_key(&cost.budget));
        let budgets = foreign.map(|cost| format!("budget {}", cost.budget));
        let capped = documents
            .caps
            .iter()
            .filter(|(_, cap)| actions().any(|action| cap.destinations.contains(&action.to)));
        let caps = capped.map(|(name, _)| format!("cap {name}"));
        groups.chain(budgets).chain(caps).collect::<BTreeSet<String>>()
    };
    let of = |documents: &Documents| -> BTreeMap<CampaignId, (Campaign, BTreeSet<String>)> {
        let campaigns = documents.campaigns.iter().map(|release| &release.campaign);
        campaigns
            .map(|campaign| (campaign.id, (campaign.clone(), shared(campaign, documents))))
            .collect()
    };
    let first = of(before);
    let second = of(after);

    let is_equal = |id: &CampaignId| {
        first.get(id).map(|(campaign, _)| campaign) == second.get(id).map(|(campaign, _)| campaign)
    };
    let mut common: BTreeSet<CampaignId> = first.keys().copied().filter(is_equal).collect();
    loop {
        let differing = first.iter().chain(&second).filter(|(id, _)| !common.contains(id));
        let touched: BTreeSet<&String> = differing.flat_map(|(_, (_, shared))| shared).collect();
        let keeps = |id: &CampaignId| {
            first
                .get(id)
                .is_none_or(|(_, shared)| !shared.iter().any(|name| touched.contains(name)))
        };
        let kept: BTreeSet<CampaignId> = common.iter().copied().filter(keeps).collect();
        if kept.len() == common.len() {
            return kept;
        }
        common = kept;
    }
}

/// Runs a comparison. Blocks the thread.
pub fn compare(
    sides: Sides,
    setup: Setup,
    source: Source,
    answers: &mut Answers,
    progress: &Progress,
) -> Result<Comparison, Error> {
    let replayed = setup.replay(source, answers, progress)?;
    let measures = &replayed.measures;
    let mut spend: BTreeMap<String, SpendComparison> = BTreeMap::new();
    let mut steps = Vec::new();
    let empty = StepMeasure::default();
    for (campaign, step) in &sides.steps {
        let before = measures.step(*campaign, step).unwrap_or(&empty);
        let after = sides.second(measures, *campaign, step).unwrap_or(&empty);
        let comparison = StepComparison {
            campaign: reported_id(*campaign),
            step: step.clone(),
            before: StepTotal::of(before, setup.sample),
            after: StepTotal::of(after, setup.sample),
            gain: changes(&before.subjects, &after.subjects, setup.sample, false),
            lose: changes(&after.subjects, &before.subjects, setup.sample, true),
        };
        for (name, sum) in &comparison.before.spend {
            spend.entry(name.clone()).or_default().before += sum;
        }
        for (name, sum) in &comparison.after.spend {
            spend.entry(name.clone()).or_default().after += sum;
        }
        steps.push(comparison);
    }
    for sums in spend.values_mut() {
        sums.difference = sums.after - sums.before;
    }

    Ok(Comparison {
        steps,
        spend,
        events: measures.events,
        late: measures.late,
        lookups: answers.counts(),
        covered: measures.covered_ms.map(|(first, last)| [instant(first), instant(last)]),
        sample: setup.sample,
    })
}

impl StepTotal {
    fn of(measure: &StepMeasure, sample: u64) -> Self {
        let spend = measure.spend.iter().map(|(name, sum)| {
            let name = name.strip_prefix(SECOND_NAME).unwrap_or(name);
            (name.to_owned(), sum.saturating_mul(sample as i64))
        });
        Self {
            triggers: measure.triggers * sample,
            subjects: measure.subjects.len() as u64 * sample,
            spend: spend.collect(),
            refused: measure.refused.iter().map(|(code, count)| (*code, count * sample)).collect(),
        }
    }
}

/// Subjects that have more triggers in `more` than in `less`. `is_reversed` if `more` came first.
fn changes(
    less: &HashMap<Box<str>, u64>,
    more: &HashMap<Box<str>, u64>,
    sample: u64,
    is_reversed: bool,
) -> SubjectChanges {
    let mut found: Vec<(&str, u64, u64)> = more
        .iter()
        .map(|(name, count)| (&**name, less.get(name).copied().unwrap_or(0), *count))
        .filter(|(_, less, more)| more > less)
        .collect();
    found.sort_unstable_by(|left, right| {
        let difference = |(_, less, more): &(&str, u64, u64)| more - less;
        difference(right).cmp(&difference(left)).then_with(|| left.0.cmp(right.0))
    });

    let triggers: u64 = found.iter().map(|(_, less, more)| more - less).sum();
    let samples = found.iter().take(BACKTEST_SUBJECTS_SHOWN).map(|(name, less, more)| {
        let (before, after) = if is_reversed { (*more, *less) } else { (*less, *more) };
        ((*name).to_owned(), before, after)
    });
    SubjectChanges {
        subjects: found.len() as u64 * sample,
        triggers: triggers * sample,
        samples: samples.collect(),
    }
}

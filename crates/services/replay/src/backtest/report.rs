//! The answer of a backtest.

use super::{Replayed, Setup};
use crate::answers::{Answers, LookupCounts};
use crate::documents::reported_id;
use crate::figures::{ForecastDates, date, instant, interval};
use crate::limits::BACKTEST_SUBJECTS_SHOWN;
use crate::measure::{StepMeasure, expected_refusals};
use hashbrown::HashMap;
use raingauge_campaigns::budget::BudgetPeriod;
use raingauge_campaigns::calendar::Period;
use raingauge_campaigns::campaign::{Campaign, CampaignId};
use raingauge_campaigns::forecast::forecast;
use raingauge_campaigns::states::BudgetKey;
use serde::Serialize;
use std::collections::BTreeMap;

/// The forecast of equal spend is the same each time.
const FORECAST_SEED: u64 = 1;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Backtest {
    pub steps: Vec<StepReport>,
    pub budgets: Vec<BudgetReport>,
    /// Events that were read, and those that came too late to decide anything.
    pub events: u64,
    pub late: u64,
    /// Evaluations that a lookup without an answer left open, by campaign.
    pub undecided: BTreeMap<CampaignId, u64>,
    pub lookups: LookupCounts,
    /// The times of the first and last event of the range.
    pub covered: Option<[String; 2]>,
    /// One in this number of subjects was replayed.
    pub sample: u64,
}

/// What a step would have done. Numbers are scaled to all subjects.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepReport {
    pub campaign: CampaignId,
    pub name: String,
    pub step: String,
    pub triggers: u64,
    /// Of a sample: the interval that holds the true number in 95 of 100 cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(u64, u64)>,
    pub subjects: u64,
    pub by_day: Vec<(String, u64)>,
    pub spend: BTreeMap<String, i64>,
    /// When the first of its budgets had too little left.
    pub exhausted: Option<String>,
    pub forecast: Option<ForecastDates>,
    pub refused: BTreeMap<&'static str, u64>,
    pub by: BTreeMap<String, BTreeMap<String, u64>>,
    pub top_subjects: Vec<(String, u64)>,
    pub covered: Option<[String; 2]>,
    pub sample: u64,
    /// Whether the range took the place of the campaign's activity.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub activity_moved: bool,
}

/// A budget in one of its periods.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetReport {
    /// 0 for one that several campaigns share.
    pub campaign: CampaignId,
    pub name: String,
    pub period: i32,
    pub max: i64,
    pub reserved: i64,
    pub spend_by_day: Vec<(String, i64)>,
    pub exhausted: Option<String>,
    pub forecast: Option<ForecastDates>,
}

impl Backtest {
    pub(super) fn of(setup: &Setup, replayed: &Replayed, answers: &Answers) -> Self {
        let covered =
            replayed.measures.covered_ms.map(|(first, last)| [instant(first), instant(last)]);
        let budgets = budgets_of(setup, replayed);
        let mut steps = Vec::new();
        for release in &setup.documents.campaigns {
            let campaign = &release.campaign;
            for step in &campaign.steps {
                let Some(measure) = replayed.measures.step(campaign.id, &step.name) else {
                    continue;
                };
                let paid: Vec<&BudgetReport> = step
                    .actions
                    .iter()
                    .filter_map(|action| action.cost.as_ref())
                    .flat_map(|cost| {
                        let is_own = campaign.budgets.contains_key(&cost.budget);
                        let payer = if is_own { reported_id(campaign.id) } else { 0 };
                        budgets.iter().filter(move |budget| {
                            budget.name == cost.budget && budget.campaign == payer
                        })
                    })
                    .collect();
                let report = StepReport::of(setup, campaign, &step.name, measure);
                steps.push(StepReport {
                    exhausted: paid.iter().filter_map(|one| one.exhausted.clone()).min(),
                    forecast: paid.iter().find_map(|one| one.forecast.clone()),
                    covered: covered.clone(),
                    ..report
                });
            }
        }

        let undecided = replayed.measures.undecided.iter();
        Self {
            steps,
            budgets,
            events: replayed.measures.events,
            late: replayed.measures.late,
            undecided: undecided.map(|(id, count)| (reported_id(*id), *count)).collect(),
            lookups: answers.counts(),
            covered,
            sample: setup.sample,
        }
    }
}

impl StepReport {
    /// Without what follows from budgets and from all steps together.
    fn of(setup: &Setup, campaign: &Campaign, step: &str, measure: &StepMeasure) -> Self {
        let k = setup.sample;
        let scaled = |(name, count): (&String, &u64)| (name.clone(), count * k);
        let mut refused: BTreeMap<&'static str, u64> =
            measure.refused.iter().map(|(reason, count)| (*reason, count * k)).collect();
        for reason in expected_refusals(campaign, step) {
            refused.entry(reason.as_str()).or_default();
        }
        let by = setup.by.iter().zip(&measure.by);
        let by = by.map(|(path, values)| (path.clone(), values.iter().map(scaled).collect()));
        let spend = measure.spend.iter();
        let spend = spend.map(|(name, sum)| (name.clone(), sum.saturating_mul(k as i64)));

        Self {
            campaign: reported_id(campaign.id),
            name: campaign.name.clone(),
            step: step.to_owned(),
            triggers: measure.triggers * k,
            interval: (k > 1).then(|| interval(measure.subjects.values().copied(), k)),
            subjects: measure.subjects.len() as u64 * k,
            by_day: measure.by_day.iter().map(|(day, count)| (date(*day), count * k)).collect(),
            spend: spend.collect(),
            exhausted: None,
            forecast: None,
            refused,
            by: by.collect(),
            top_subjects: top_subjects(&measure.subjects),
            covered: None,
            sample: k,
            activity_moved: setup.moved.contains(&campaign.id),
        }
    }
}

/// The subjects with the most triggers. They are not scaled.
fn top_subjects(subjects: &HashMap<Box<str>, u64>) -> Vec<(String, u64)> {
    let mut top: Vec<(&str, u64)> =
        subjects.iter().map(|(name, count)| (&**name, *count)).collect();
    let order = |left: &(&str, u64), right: &(&str, u64)| {
        right.1.cmp(&left.1).then_with(|| left.0.cmp(right.0))
    };
    if top.len() > BACKTEST_SUBJECTS_SHOWN {
        top.select_nth_unstable_by(BACKTEST_SUBJECTS_SHOWN, order);
        top.truncate(BACKTEST_SUBJECTS_SHOWN);
    }
    top.sort_unstable_by(order);
    top.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

fn budgets_of(setup: &Setup, replayed: &Replayed) -> Vec<BudgetReport> {
    let k = i64::try_from(setup.sample).unwrap_or(i64::MAX);
    let accounts = replayed.machine.accounts.iter();
    let reports = accounts.map(|(key, account)| {
        let days = replayed.measures.spend_by_day.get(key);
        let spend = days.into_iter().flatten();
        BudgetReport {
            campaign: reported_id(key.campaign),
            name: key.name.clone(),
            period: key.period,
            max: account.max.saturating_mul(k),
            reserved: account.reserved.saturating_mul(k),
            spend_by_day: spend.map(|(day, sum)| (date(*day), sum.saturating_mul(k))).collect(),
            exhausted: account.exhausted_ms.map(instant),
            forecast: forecast_of(setup, replayed, key, account.max - account.reserved),
        }
    });
    reports.collect()
}

/// When a budget of a whole campaign will be exhausted, if it goes on like this.
fn forecast_of(
    setup: &Setup,
    replayed: &Replayed,
    key: &BudgetKey,
    free: i64,
) -> Option<ForecastDates> {
    let documents = &setup.documents;
    let payer =
        documents.campaigns.iter().map(|release| &release.campaign).find(|campaign| {
            campaign.id == key.campaign
                || key.campaign == 0
                    && campaign.steps.iter().flat_map(|step| &step.actions).any(|action| {
                        action.cost.as_ref().is_some_and(|cost| cost.budget == key.name)
                    })
        })?;
    let budget = payer.budgets.get(&key.name).or_else(|| documents.budgets.get(&key.name))?;
    if budget.period != BudgetPeriod::Campaign || free <= 0 {
        return None;
    }

    let zone = replayed.measures.zone(payer);
    let (first_ms, last_ms) = replayed.measures.covered_ms?;
    let first = Period::Day.number(&zone, first_ms);
    let last = Period::Day.number(&zone, last_ms);
    let days = replayed.measures.spend_by_day.get(key);
    let of_day = |day: i32| days.and_then(|days| days.get(&day)).copied().unwrap_or(0);
    let spend: Vec<i64> = (first..=last).map(of_day).collect();

    let found = forecast(&spend, free, FORECAST_SEED)?;
    let on = |days: Option<u32>| {
        days.and_then(|days| i32::try_from(days).ok()).map(|days| date(last + days))
    };
    Some(ForecastDates { p10: on(found.p10), p50: on(found.p50), p90: on(found.p90) })
}

//! What a replay measures: triggers, subjects, spend and refusals of each step.

use crate::answers::Answers;
use crate::documents::field_of;
use crate::limits::BACKTEST_VALUES_MAX;
use crate::machine::{Turn, Undone, zone_of};
use hashbrown::HashMap;
use raingauge_campaigns::calendar::{Period, Zone};
use raingauge_campaigns::campaign::{Campaign, CampaignId};
use raingauge_campaigns::decision::{Cost, Decision, Reason};
use raingauge_campaigns::engine::{Documents, LookupClass, LookupKey};
use raingauge_campaigns::rule::Lhs;
use raingauge_campaigns::states::BudgetKey;
use raingauge_core::event::Event;
use raingauge_core::field::{Field, Scalar, extract};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The value under which triggers without a value are counted, and those of values that are too
/// many to be listed.
pub const NO_VALUE: &str = "";
pub const OTHER_VALUES: &str = "(other values)";

/// What happened to one step.
#[derive(Clone, Debug, Default)]
pub struct StepMeasure {
    pub triggers: u64,
    /// Triggers of each subject.
    pub subjects: HashMap<Box<str>, u64>,
    /// Triggers of each local day, by its number.
    pub by_day: BTreeMap<i32, u64>,
    /// What was reserved, by budget.
    pub spend: BTreeMap<String, i64>,
    pub refused: BTreeMap<&'static str, u64>,
    /// Triggers by the value of each field.
    pub by: Vec<BTreeMap<String, u64>>,
}

/// A campaign as it is measured.
struct CampaignPlace {
    zone: Zone,
    steps: Vec<String>,
    /// The place of the first step among all.
    first: usize,
}

/// A field or a column by which triggers are divided.
enum Divisor {
    Field(usize),
    Column { class: LookupClass, name: String, key: usize, column: Option<String> },
}

pub struct Measures {
    campaigns: HashMap<CampaignId, CampaignPlace>,
    steps: Vec<StepMeasure>,
    divisors: Vec<Divisor>,
    fields: Vec<Field>,
    /// Spend of each budget on each day, as numbered in the zone of the campaign that pays.
    pub spend_by_day: BTreeMap<BudgetKey, BTreeMap<i32, i64>>,
    /// The times of the first and last event that decided, in milliseconds since 1970.
    pub covered_ms: Option<(i64, i64)>,
    /// Events that were read, and those that came too late to decide anything.
    pub events: u64,
    pub late: u64,
    /// Evaluations that a lookup without an answer left open, by campaign.
    pub undecided: BTreeMap<CampaignId, u64>,
}

impl Measures {
    /// Measures campaigns, whose triggers are divided `by` fields and columns.
    pub fn new(documents: &Documents, by: &[String]) -> Result<Self, crate::Error> {
        let mut fields = Vec::new();
        let mut place_of = |path: &str| {
            let field = field_of(path)?;
            let known = fields.iter().position(|known| *known == field);
            Some(known.unwrap_or_else(|| {
                fields.push(field);
                fields.len() - 1
            }))
        };
        let subject = documents.campaigns.first().map(|release| release.campaign.subject.clone());
        let subject = subject.unwrap_or_default();
        let mut divisors = Vec::new();
        for path in by {
            let unknown = || {
                let detail = format!("`{path}` is no field, segment or column of a table");
                crate::Error::invalid("by", detail)
            };
            let (class, name, column) = match Lhs::parse(path).ok_or_else(unknown)? {
                Lhs::Field(_) => {
                    divisors.push(Divisor::Field(place_of(path).ok_or_else(unknown)?));
                    continue;
                }
                Lhs::Table { name, column } => {
                    (LookupClass::Table, name.to_string(), Some(column.to_string()))
                }
                Lhs::Segment(name) => (LookupClass::Segment, name.to_string(), None),
                _ => return Err(unknown()),
            };

            let kind = if column.is_some() { "table" } else { "segment" };
            let rule = documents.lookups.get(&format!("{kind}.{name}"));
            let key = rule.and_then(|rule| rule.key.as_deref()).unwrap_or(&subject);
            let key = place_of(key).ok_or_else(unknown)?;
            divisors.push(Divisor::Column { class, name, key, column });
        }

        let mut steps = Vec::new();
        let mut campaigns = HashMap::new();
        for release in &documents.campaigns {
            let campaign = &release.campaign;
            let names = campaign.steps.iter().map(|step| step.name.clone()).collect();
            let first = steps.len();
            let place = CampaignPlace { zone: zone_of(campaign), steps: names, first };
            let by = vec![BTreeMap::new(); divisors.len()];
            let empty = StepMeasure { by, ..StepMeasure::default() };
            steps.resize(first + campaign.steps.len(), empty);
            campaigns.insert(campaign.id, place);
        }
        Ok(Self {
            campaigns,
            steps,
            divisors,
            fields,
            spend_by_day: BTreeMap::new(),
            covered_ms: None,
            events: 0,
            late: 0,
            undecided: BTreeMap::new(),
        })
    }

    /// Notes an event that was read, and may decide.
    pub fn cover(&mut self, time_ms: i64) {
        let (first, last) = self.covered_ms.unwrap_or((time_ms, time_ms));
        self.covered_ms = Some((first.min(time_ms), last.max(time_ms)));
    }

    /// The measure of a step.
    pub fn step(&self, campaign: CampaignId, step: &str) -> Option<&StepMeasure> {
        self.place(campaign, step).map(|place| &self.steps[place])
    }

    /// The zone that the days of a campaign are numbered in.
    pub fn zone(&self, campaign: &Campaign) -> Zone {
        self.campaigns.get(&campaign.id).map_or_else(Zone::utc, |place| place.zone.clone())
    }

    fn place(&self, campaign: CampaignId, step: &str) -> Option<usize> {
        let place = self.campaigns.get(&campaign)?;
        let number = place.steps.iter().position(|name| name == step)?;
        Some(place.first + number)
    }

    fn day(&self, campaign: CampaignId, at_ms: i64) -> i32 {
        self.campaigns.get(&campaign).map_or(0, |place| Period::Day.number(&place.zone, at_ms))
    }

    /// Adds what an event led to.
    pub fn take(&mut self, event: &Event<'_>, turn: &Turn, answers: &mut Answers) {
        self.late += u64::from(turn.outcome.is_late);
        if let Some(held) = &turn.outcome.held {
            for campaign in &held.campaigns {
                *self.undecided.entry(*campaign).or_default() += 1;
            }
        }
        for undone in &turn.undone {
            self.undo(undone);
        }

        let is_step = |one: &Decision, other: &Decision| {
            one.campaign == other.campaign && one.step == other.step
        };
        let mut values: Option<Vec<String>> = None;
        for step in turn.outcome.decisions.chunk_by(is_step) {
            let Some(place) = self.place(step[0].campaign, &step[0].step) else { continue };
            if let Some(refused) = step.iter().find(|decision| !decision.is_granted()) {
                *self.steps[place].refused.entry(refused.reason.as_str()).or_default() += 1;
                continue;
            }

            let values = values.get_or_insert_with(|| self.values(event, answers));
            let day = self.day(step[0].campaign, event.time_ms);
            let measure = &mut self.steps[place];
            measure.triggers += 1;
            *measure.by_day.entry(day).or_default() += 1;
            match measure.subjects.get_mut(step[0].subject.as_str()) {
                Some(count) => *count += 1,
                None => {
                    measure.subjects.insert(step[0].subject.as_str().into(), 1);
                }
            }
            for (by, value) in measure.by.iter_mut().zip(values.iter()) {
                add_value(by, value);
            }
            for cost in step.iter().filter_map(|decision| decision.cost.as_ref()) {
                self.spend(place, cost, day, cost.amount);
            }
        }
    }

    fn undo(&mut self, undone: &Undone) {
        let Some(place) = self.place(undone.campaign, &undone.step) else { return };
        if undone.is_first {
            *self.steps[place].refused.entry(undone.reason.as_str()).or_default() += 1;
        }
        if let Some(cost) = undone.cost.as_ref().filter(|cost| cost.is_refunded) {
            let day = self.day(undone.campaign, undone.event_ms);
            self.spend(place, cost, day, -cost.amount);
        }
    }

    fn spend(&mut self, place: usize, cost: &Cost, day: i32, amount: i64) {
        let spend = &mut self.steps[place].spend;
        let sum = match spend.get_mut(&cost.budget.name) {
            Some(sum) => sum,
            None => spend.entry(cost.budget.name.clone()).or_default(),
        };
        *sum = sum.saturating_add(amount);

        let days = self.spend_by_day.entry(cost.budget.clone()).or_default();
        let of_day = days.entry(day).or_default();
        *of_day = of_day.saturating_add(amount);
    }

    /// The values of the event by which triggers are divided.
    fn values(&self, event: &Event<'_>, answers: &mut Answers) -> Vec<String> {
        let mut found = Vec::new();
        if !self.fields.is_empty() {
            extract(event, &self.fields, &mut found);
        }
        let text = |place: usize| found[place].as_ref().map(Scalar::as_text);
        let values = self.divisors.iter().map(|divisor| match divisor {
            Divisor::Field(place) => text(*place).unwrap_or(NO_VALUE).to_owned(),
            Divisor::Column { class, name, key, column } => {
                let Some(key) = text(*key).map(str::to_owned) else { return NO_VALUE.to_owned() };
                let key = LookupKey { class: *class, name: name.clone(), key, range_s: None };
                let answer = answers.answer(&key, event).unwrap_or_default();
                let value = column.as_ref().map_or(Some(&answer), |column| answer.get(column));
                match value {
                    None | Some(Json::Null) => NO_VALUE.to_owned(),
                    Some(Json::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                }
            }
        });
        values.collect()
    }
}

/// Counts a trigger under a value, of which only the first ones are listed.
fn add_value(by: &mut BTreeMap<String, u64>, value: &str) {
    let is_listed = by.contains_key(value) || by.len() < BACKTEST_VALUES_MAX;
    let value = if is_listed { value } else { OTHER_VALUES };
    match by.get_mut(value) {
        Some(count) => *count += 1,
        None => {
            by.insert(value.to_owned(), 1);
        }
    }
}

/// Codes that stand in the refusals of a step that has a budget or a limit, also when there are
/// none.
pub fn expected_refusals(campaign: &Campaign, step: &str) -> Vec<Reason> {
    let is_limited = campaign
        .limits
        .iter()
        .any(|limit| limit.step.as_deref().is_none_or(|of_step| of_step == step));
    let actions = campaign.steps.iter().filter(|one| one.name == step).flat_map(|one| &one.actions);
    let is_paid = actions.into_iter().any(|action| action.cost.is_some());
    let limited = is_limited.then_some(Reason::LimitReached);
    limited.into_iter().chain(is_paid.then_some(Reason::BudgetExhausted)).collect()
}

//! A naive reading of a campaign, of another shape than the engine: no index, no laziness and no
//! tallies. It keeps every event and every grant of a subject, and goes through them each time.
//!
//! It decides what follows from the subject alone: the rule, the steps, the holdout, the experiment
//! and the limits. `None` stands for what it cannot know.

use crate::answers::{Answers, name_of};
use crate::documents::field_of;
use crate::machine::OwnedEvent;
use raingauge_campaigns::calendar::Zone;
use raingauge_campaigns::campaign::{Campaign, Count, CountWindow, State, Step};
use raingauge_campaigns::engine::{Documents, LookupClass, LookupKey, scalar_at};
use raingauge_campaigns::experiment::bucket;
use raingauge_campaigns::limit::LimitPeriod;
use raingauge_campaigns::rule::Lhs;
use raingauge_core::event::Event;
use raingauge_core::field::{Field, Scalar, extract};
use raingauge_core::filter::{Condition, Predicate};
use raingauge_core::value::{Value, scaled};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// A step that a subject was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub step: String,
    pub time_ms: i64,
}

/// What one subject has done and was granted.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// In the order of the log, each with the time at which it was appended.
    pub events: Vec<(i64, OwnedEvent)>,
    pub grants: Vec<Grant>,
}

/// Reads one campaign.
pub struct Naive<'n> {
    pub campaign: &'n Campaign,
    /// What it shares with others.
    pub shared: &'n Documents,
}

impl Naive<'_> {
    /// The outcomes on the newest event, by step and action.
    pub fn decide(&self, past: &Past, answers: &mut Answers) -> Option<BTreeMap<String, String>> {
        let mut outcomes = BTreeMap::new();
        let (appended_ms, now) = past.events.last()?;
        let event = now.event();
        let is_late = appended_ms - event.time_ms > self.shared.late_after_ms;
        let listens = self.campaign.event_types.iter().any(|kind| **kind == *event.kind);
        if is_late || !listens || !self.campaign.is_active_at(event.time_ms) {
            return Some(outcomes);
        }

        for step in &self.campaign.steps {
            let rule = self.holds(past, &event, self.campaign.rule.as_ref(), answers)?;
            let when = self.holds(past, &event, step.when.as_ref(), answers)?;
            if rule && when {
                self.gates(past, &event, step, &mut outcomes)?;
            }
        }
        Some(outcomes)
    }

    fn holds(
        &self,
        past: &Past,
        event: &Event<'_>,
        condition: Option<&Condition>,
        answers: &mut Answers,
    ) -> Option<bool> {
        let Some(condition) = condition else { return Some(true) };
        let inner = condition.conditions.as_deref().unwrap_or_default();
        let all = inner.iter().map(|inner| self.holds(past, event, Some(inner), answers));
        match condition.operator.as_str() {
            "and" => all.collect::<Option<Vec<bool>>>().map(|all| all.iter().all(|held| *held)),
            "or" => all.collect::<Option<Vec<bool>>>().map(|all| all.iter().any(|held| *held)),
            "not" => all.last()?.map(|held| !held),
            _ => self.leaf(past, event, condition, answers),
        }
    }

    fn leaf(
        &self,
        past: &Past,
        event: &Event<'_>,
        condition: &Condition,
        answers: &mut Answers,
    ) -> Option<bool> {
        let rhs = condition.rhs.as_ref();
        let holds = |value: Option<&Scalar<'_>>| {
            Predicate::parse(&condition.operator, rhs).ok().map(|found| found.holds(value))
        };
        let number = |value: i64| holds(Some(&Scalar::Number(value.to_string().into())));
        match Lhs::parse(condition.lhs.as_deref()?)? {
            Lhs::Field(field) => holds(value(event, field).as_ref()),
            Lhs::Time(part) => {
                let zone = Zone::of_name(&self.campaign.zone)?;
                holds(Some(&part.value(zone.local(event.time_ms))))
            }
            Lhs::Count(name) => {
                let count = self.campaign.counts.get(&*name)?;
                let before = self.count(past, count, false)?;
                let after = self.count(past, count, true)?;
                let edge = rhs.and_then(Json::as_i64);
                match condition.operator.as_str() {
                    "reaches" => edge.map(|edge| before < edge && edge <= after),
                    "every" => edge.map(|edge| after.div_euclid(edge) > before.div_euclid(edge)),
                    _ => number(after),
                }
            }
            Lhs::Usage(step) => {
                let granted = past.grants.iter().filter(|grant| *grant.step == *step);
                number(granted.count() as i64)
            }
            Lhs::Segment(name) => {
                let answer = self.look_up(event, LookupClass::Segment, &name, answers)?;
                holds(scalar_at(&answer, &[]).as_ref())
            }
            Lhs::Table { name, column } => {
                let answer = self.look_up(event, LookupClass::Table, &name, answers)?;
                holds(scalar_at(&answer, &[column]).as_ref())
            }
            Lhs::Database { name, column } => {
                let answer = self.look_up(event, LookupClass::Database, &name, answers)?;
                holds(scalar_at(&answer, &[column]).as_ref())
            }
            Lhs::Http { name, path } => {
                let answer = self.look_up(event, LookupClass::Http, &name, answers)?;
                let path: Vec<Box<str>> = path.split('.').map(Box::from).collect();
                holds(scalar_at(&answer, &path).as_ref())
            }
        }
    }

    fn look_up(
        &self,
        event: &Event<'_>,
        class: LookupClass,
        name: &str,
        answers: &mut Answers,
    ) -> Option<Json> {
        let key = |key: &str| LookupKey {
            class,
            name: name.to_owned(),
            key: key.to_owned(),
            range_s: None,
        };
        let rule = self.shared.lookups.get(&name_of(&key("")));
        let path = rule.and_then(|rule| rule.key.as_deref()).unwrap_or(&self.campaign.subject);
        match value(event, field_of(path)?) {
            Some(found) => answers.answer(&key(found.as_text()), event),
            None => Some(Json::Null),
        }
    }

    /// A count at the newest event, with or without it.
    fn count(&self, past: &Past, count: &Count, with_newest: bool) -> Option<i64> {
        let types = if count.event_types.is_empty() {
            &self.campaign.event_types
        } else {
            &count.event_types
        };
        let zone = Zone::of_name(&self.campaign.zone)?;
        let counted = past.events.iter().enumerate().filter_map(|(place, (_, event))| {
            let event = event.event();
            let is_counted = types.iter().any(|kind| **kind == *event.kind)
                && self.passes(&event, count.filter.as_ref());
            let amount = match &count.value {
                Value::Fixed(amount) => *amount,
                Value::Field(field) => {
                    scaled(value(&event, Field::of_path(&field.field)?).as_ref(), field.scale)?
                }
            };
            is_counted.then_some((event.time_ms, amount, place + 1 == past.events.len()))
        });
        let counted: Vec<(i64, i64, bool)> = counted.collect();

        let now_ms = past.events.last()?.1.event().time_ms;
        let newest_ms = counted.iter().map(|(at_ms, ..)| *at_ms).chain([now_ms]).max()?;
        let is_inside = |at_ms: i64| match &count.window {
            CountWindow::Campaign => Some(self.campaign.is_active_at(at_ms)),
            CountWindow::Calendar(period) => {
                Some(period.number(&zone, at_ms) == period.number(&zone, now_ms))
            }
            CountWindow::Last(length) => Some(at_ms >= newest_ms - length.ms()),
            CountWindow::Counter { .. } => None,
        };
        let mut sum = 0;
        for (at_ms, amount, is_newest) in counted {
            if is_inside(at_ms)? && (with_newest || !is_newest) {
                sum += amount;
            }
        }
        is_inside(now_ms).map(|_| sum)
    }

    /// Whether an event passes the filter of a count, which has no counts or lookups.
    fn passes(&self, event: &Event<'_>, condition: Option<&Condition>) -> bool {
        let Some(condition) = condition else { return true };
        let inner = condition.conditions.as_deref().unwrap_or_default();
        let mut all = inner.iter().map(|inner| self.passes(event, Some(inner)));
        match condition.operator.as_str() {
            "and" => all.all(|held| held),
            "or" => all.any(|held| held),
            "not" => all.all(|held| !held),
            operator => {
                let found = match condition.lhs.as_deref().and_then(Lhs::parse) {
                    Some(Lhs::Field(field)) => value(event, field),
                    Some(Lhs::Time(part)) => Zone::of_name(&self.campaign.zone)
                        .map(|zone| part.value(zone.local(event.time_ms))),
                    _ => None,
                };
                Predicate::parse(operator, condition.rhs.as_ref())
                    .is_ok_and(|predicate| predicate.holds(found.as_ref()))
            }
        }
    }

    fn gates(
        &self,
        past: &Past,
        event: &Event<'_>,
        step: &Step,
        outcomes: &mut BTreeMap<String, String>,
    ) -> Option<()> {
        let subject = value(event, field_of(&self.campaign.subject)?)?;
        let holdout =
            self.campaign.holdout.as_ref().and_then(|name| self.shared.holdouts.get(name));
        let variant = self.variant(event);
        let sees = |variants: &[String]| {
            variants.is_empty() || variants.iter().any(|one| Some(one) == variant.as_ref())
        };
        let shown = |name: &str| {
            let action = step.actions.iter().find(|action| action.name == name);
            sees(&step.variants) && action.is_some_and(|action| sees(&action.variants))
        };

        let refusal = if holdout.is_some_and(|holdout| holdout.holds(subject.as_text())) {
            Some("holdout")
        } else if !step.actions.iter().any(|action| shown(&action.name)) {
            Some("control")
        } else if self.is_limited(past, event, step)? {
            Some("limit_reached")
        } else {
            None
        };
        let is_shadow = self.campaign.state == State::Shadow;
        for action in step.actions.iter().filter(|one| refusal.is_some() || shown(&one.name)) {
            let outcome = refusal.unwrap_or(if is_shadow { "shadow" } else { "granted" });
            outcomes.insert(format!("{}/{}", step.name, action.name), outcome.to_owned());
        }
        Some(())
    }

    fn variant(&self, event: &Event<'_>) -> Option<String> {
        let experiment = self.campaign.experiment.as_ref()?;
        let path =
            if experiment.unit == "subject" { &self.campaign.subject } else { &experiment.unit };
        let unit = value(event, field_of(path)?)?;
        let place = experiment.split().variant(bucket(&experiment.key, unit.as_text()))?;
        Some(experiment.variants[place].name.clone())
    }

    /// Whether a limit refuses the step. `None` for limits that count more than the subject's
    /// grants.
    fn is_limited(&self, past: &Past, event: &Event<'_>, step: &Step) -> Option<bool> {
        let zone = Zone::of_name(&self.campaign.zone)?;
        for limit in self.campaign.limits.iter().filter(|limit| limit.is_tracked()) {
            if limit.step.as_ref().is_some_and(|name| *name != step.name) {
                continue;
            }
            if limit.per != "subject" && limit.per != self.campaign.subject {
                return None;
            }

            let mine = past
                .grants
                .iter()
                .filter(|grant| limit.step.as_ref().is_none_or(|name| *name == grant.step));
            let times: Vec<i64> = mine.map(|grant| grant.time_ms).collect();
            let newest_ms = times.iter().copied().chain([event.time_ms]).max()?;
            let is_inside = |at_ms: &&i64| match &limit.period {
                LimitPeriod::Campaign => self.campaign.is_active_at(**at_ms),
                LimitPeriod::Calendar(period) => {
                    period.number(&zone, **at_ms) == period.number(&zone, event.time_ms)
                }
                LimitPeriod::Last(length) => **at_ms >= newest_ms - length.ms(),
            };
            if times.iter().filter(is_inside).count() as i64 >= limit.max {
                return Some(true);
            }
        }
        Some(false)
    }
}

fn value<'e>(event: &Event<'e>, field: Field) -> Option<Scalar<'e>> {
    let mut found = Vec::new();
    extract(event, &[field], &mut found);
    found.pop().flatten()
}

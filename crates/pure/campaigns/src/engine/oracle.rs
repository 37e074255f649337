//! A naive engine of another shape, which the real one has to agree with: it keeps all events and
//! all grants, reads every document for every event, and counts by going through what it kept.

mod history;

use super::tests::{World, documents};
use super::*;
use crate::decision::Reason;
use crate::experiment::bucket as bucket_of;
use history::{Random, Sent, campaign, stream};
use proptest::prelude::*;
use raingauge_core::event::Event;
use raingauge_core::field::{Scalar, extract};
use raingauge_core::filter::{Condition, Predicate};
use serde_json::{Value as Json, json};

const DAY_MS: i64 = 86_400_000;
/// 2024-09-24T00:00:00Z.
const START_MS: i64 = 1_727_136_000_000;

impl Sent {
    fn event(&self) -> Event<'_> {
        let event = Event::of_data(self.kind, self.time_ms, &self.data);
        Event { id: self.id.as_str().into(), ..event }
    }

    fn value(&self, path: &str) -> Option<Scalar<'_>> {
        let field = Field::of_path(&path.replace("var.", "data.")).unwrap();
        let mut values = Vec::new();
        extract(&self.event(), &[field], &mut values);
        values.remove(0)
    }

    fn subject(&self) -> Option<String> {
        self.value("data.user").map(|value| value.as_text().to_owned())
    }
}

/// What the naive engine granted.
struct Granted {
    campaign: u32,
    is_shadow: bool,
    step: String,
    to: String,
    subject: String,
    country: String,
    time_ms: i64,
    cost: Option<(String, i64)>,
}

struct Naive<'n> {
    campaigns: Vec<Campaign>,
    shared: i64,
    holdout: Holdout,
    cap: i64,
    /// The events up to the current one.
    events: &'n [Sent],
    granted: Vec<Granted>,
}

type Line = (u32, String, &'static str, Option<i64>);

impl Naive<'_> {
    fn now(&self) -> &Sent {
        self.events.last().unwrap()
    }

    fn is_counted(
        &self,
        count: &crate::campaign::Count,
        campaign: &Campaign,
        event: &Sent,
    ) -> Option<i64> {
        let types =
            if count.event_types.is_empty() { &campaign.event_types } else { &count.event_types };
        if !types.iter().any(|kind| kind == event.kind) || event.subject() != self.now().subject() {
            return None;
        }
        if !count.filter.as_ref().is_none_or(|filter| self.simple(filter, event)) {
            return None;
        }
        match &count.value {
            Value::Fixed(value) => Some(*value),
            Value::Field(field) => event.value(&field.field)?.as_text().parse().ok(),
        }
    }

    /// Before and after the current event.
    fn count(&self, campaign: &Campaign, name: &str) -> (i64, i64) {
        let count = &campaign.counts[name];
        let counted: Vec<(i64, i64, bool)> = self
            .events
            .iter()
            .enumerate()
            .filter_map(|(place, event)| {
                let value = self.is_counted(count, campaign, event)?;
                Some((event.time_ms, value, place + 1 == self.events.len()))
            })
            .collect();

        let time_ms = self.now().time_ms;
        let zone = Zone::of_name(&campaign.zone).unwrap();
        let newest = counted.iter().map(|(at, ..)| *at).chain([time_ms]).max().unwrap();
        let inside = |at: i64| match &count.window {
            crate::campaign::CountWindow::Campaign => campaign.is_active_at(at),
            crate::campaign::CountWindow::Calendar(period) => {
                period.number(&zone, at) == period.number(&zone, time_ms)
            }
            crate::campaign::CountWindow::Last(last) => at >= newest - last.ms(),
            crate::campaign::CountWindow::Counter { .. } => unreachable!("no counters here"),
        };
        let sum = |with_current: bool| {
            let those =
                counted.iter().filter(|(at, _, current)| inside(*at) && (with_current || !current));
            those.map(|(_, value, _)| value).sum::<i64>()
        };
        (sum(false), sum(true))
    }

    /// A condition on fields alone.
    fn simple(&self, condition: &Condition, event: &Sent) -> bool {
        let predicate = Predicate::parse(&condition.operator, condition.rhs.as_ref()).unwrap();
        predicate.holds(event.value(condition.lhs.as_ref().unwrap()).as_ref())
    }

    fn holds(&self, campaign: &Campaign, condition: &Condition) -> bool {
        let inner = condition.conditions.as_deref().unwrap_or_default();
        let lhs = condition.lhs.as_deref().unwrap_or_default();
        let (kind, name) = lhs.split_once('.').unwrap_or_default();
        let rhs = condition.rhs.as_ref().and_then(Json::as_i64).unwrap_or(0);
        let number = |value: i64| {
            let predicate = Predicate::parse(&condition.operator, condition.rhs.as_ref()).unwrap();
            predicate.holds(Some(&Scalar::Number(value.to_string().into())))
        };
        match (condition.operator.as_str(), kind) {
            ("and", _) => inner.iter().map(|inner| self.holds(campaign, inner)).min().unwrap(),
            ("or", _) => inner.iter().map(|inner| self.holds(campaign, inner)).max().unwrap(),
            ("not", _) => !self.holds(campaign, &inner[0]),
            ("reaches", _) => {
                let (before, after) = self.count(campaign, name);
                before < rhs && after >= rhs
            }
            ("every", _) => {
                let (before, after) = self.count(campaign, name);
                after.div_euclid(rhs) > before.div_euclid(rhs)
            }
            (_, "count") => number(self.count(campaign, name).1),
            (_, "usage") => {
                let subject = self.now().subject();
                let mine = self.of(campaign).filter(|one| one.step == name);
                number(mine.filter(|one| Some(&one.subject) == subject.as_ref()).count() as i64)
            }
            (_, "segment") => {
                let is_vip = self.now().subject().as_deref() == Some("u1");
                condition.rhs == Some(json!(is_vip))
            }
            (_, "time") => {
                let zone = Zone::of_name(&campaign.zone).unwrap();
                number(zone.local(self.now().time_ms).hour().into())
            }
            _ => self.simple(condition, self.now()),
        }
    }

    fn is_shadow(campaign: &Campaign) -> bool {
        campaign.state == crate::campaign::State::Shadow
    }

    fn of(&self, campaign: &Campaign) -> impl Iterator<Item = &Granted> {
        let is_shadow = Self::is_shadow(campaign);
        self.granted
            .iter()
            .filter(move |one| one.campaign == campaign.id && one.is_shadow == is_shadow)
    }

    /// The cost of a step, or the reason against it.
    fn gates(
        &self,
        campaign: &Campaign,
        step: &crate::campaign::Step,
    ) -> Result<Option<(String, i64)>, &'static str> {
        let now = self.now();
        let subject = now.subject().unwrap();
        if campaign.holdout.is_some() && self.holdout.holds(&subject) {
            return Err("holdout");
        }
        let split = campaign.experiment.as_ref().unwrap().split();
        if !step.variants.is_empty() && split.variant(bucket_of("k", &subject)) != Some(1) {
            return Err("control");
        }

        let zone = Zone::of_name(&campaign.zone).unwrap();
        for limit in &campaign.limits {
            if limit.step.as_ref().is_some_and(|name| *name != step.name) {
                continue;
            }
            let country = now.value("var.country").unwrap().as_text().to_owned();
            let mine: Vec<i64> = self
                .of(campaign)
                .filter(|one| limit.step.as_ref().is_none_or(|name| *name == one.step))
                .filter(|one| {
                    if limit.per == "subject" {
                        one.subject == subject
                    } else {
                        one.country == country
                    }
                })
                .map(|one| one.time_ms)
                .collect();
            let newest = mine.iter().copied().chain([now.time_ms]).max().unwrap();
            let inside = |at: &&i64| match &limit.period {
                crate::limit::LimitPeriod::Campaign => true,
                crate::limit::LimitPeriod::Calendar(period) => {
                    period.number(&zone, **at) == period.number(&zone, now.time_ms)
                }
                crate::limit::LimitPeriod::Last(last) => **at >= newest - last.ms(),
            };
            if mine.iter().filter(inside).count() as i64 >= limit.max {
                return Err("limit_reached");
            }
        }

        let action = &step.actions[0];
        let today = |at: i64| at.div_euclid(DAY_MS);
        let sent = self.granted.iter().filter(|one| {
            !one.is_shadow
                && one.to == "r"
                && one.subject == subject
                && today(one.time_ms) == today(now.time_ms)
        });
        if action.to == "r" && sent.count() as i64 >= self.cap {
            return Err("cap_reached");
        }
        let Some(cost) = &action.cost else { return Ok(None) };
        self.afford(campaign, cost, &zone)
    }

    fn afford(
        &self,
        campaign: &Campaign,
        cost: &crate::campaign::Cost,
        zone: &Zone,
    ) -> Result<Option<(String, i64)>, &'static str> {
        let now = self.now();
        let amount = now.value("var.amount").and_then(|value| value.as_decimal());
        let Ok(amount) = cost.amount.cost(amount) else { return Err("budget_exhausted") };
        let is_shadow = Self::is_shadow(campaign);
        let spent = |one: &&Granted| {
            let is_own = cost.budget == "own";
            one.is_shadow == is_shadow && (!is_own || one.campaign == campaign.id)
        };
        let budget = campaign.budgets.get(&cost.budget);
        let period = |at: i64| budget.map_or(0, |budget| budget.period_number(at, zone));
        let paid = self.granted.iter().filter(spent).filter_map(|one| {
            let (name, amount) = one.cost.as_ref()?;
            (*name == cost.budget && period(one.time_ms) == period(now.time_ms)).then_some(*amount)
        });
        let max = budget.map_or(self.shared, |budget| budget.max);
        if paid.sum::<i64>() + amount > max {
            return Err("budget_exhausted");
        }
        Ok(Some((cost.budget.clone(), amount)))
    }

    fn decide(&mut self) -> Vec<Line> {
        let now = self.now();
        let subject = now.subject();
        let is_late = now.appended_ms - now.time_ms > DAY_MS;
        if now.kind != "order" || subject.is_none() || is_late {
            return Vec::new();
        }

        let mut holding: Vec<(Campaign, Vec<crate::campaign::Step>)> = Vec::new();
        for campaign in &self.campaigns {
            if !campaign.state.decides() || !campaign.is_active_at(now.time_ms) {
                continue;
            }
            let passes = |condition: &Option<Condition>| {
                condition.as_ref().is_none_or(|condition| self.holds(campaign, condition))
            };
            let steps: Vec<_> = campaign
                .steps
                .iter()
                .filter(|step| passes(&campaign.rule) && passes(&step.when))
                .cloned()
                .collect();
            if !steps.is_empty() {
                holding.push((campaign.clone(), steps));
            }
        }
        holding.sort_by_key(|(campaign, _)| (-campaign.priority, campaign.id));

        let mut best: BTreeMap<String, (i64, u32)> = BTreeMap::new();
        for (campaign, steps) in &holding {
            let Some(group) = campaign
                .group
                .as_ref()
                .filter(|group| group.mode == crate::campaign::GroupMode::Best)
            else {
                continue;
            };
            let costs: Vec<i64> = steps
                .iter()
                .filter_map(|step| self.gates(campaign, step).ok())
                .map(|cost| cost.map_or(0, |(_, amount)| amount))
                .collect();
            let total: i64 = costs.iter().sum();
            if !costs.is_empty() && best.get(&group.name).is_none_or(|(most, _)| total > *most) {
                best.insert(group.name.clone(), (total, campaign.id));
            }
        }

        let mut won: Vec<String> = Vec::new();
        let mut lines = Vec::new();
        for (campaign, steps) in holding {
            let group = campaign.group.as_ref();
            let loses = group.is_some_and(|group| match group.mode {
                crate::campaign::GroupMode::All => false,
                crate::campaign::GroupMode::First => won.contains(&group.name),
                crate::campaign::GroupMode::Best => {
                    best.get(&group.name).map(|(_, id)| *id) != Some(campaign.id)
                }
            });
            let mut wins = false;
            for step in steps {
                let decided = self.gates(&campaign, &step);
                let reason = match &decided {
                    Err(reason) => *reason,
                    Ok(_) if loses => "group_lost",
                    Ok(_) if Self::is_shadow(&campaign) => "shadow",
                    Ok(_) => "granted",
                };
                let cost = decided.ok().flatten().filter(|_| !loses);
                lines.push((
                    campaign.id,
                    step.name.clone(),
                    reason,
                    cost.as_ref().map(|(_, amount)| *amount),
                ));
                if !matches!(reason, "granted" | "shadow") {
                    continue;
                }
                wins = true;
                let now = self.now();
                let granted = Granted {
                    campaign: campaign.id,
                    is_shadow: Self::is_shadow(&campaign),
                    to: step.actions[0].to.clone(),
                    step: step.name,
                    subject: now.subject().unwrap(),
                    country: now.value("var.country").unwrap().as_text().to_owned(),
                    time_ms: now.time_ms,
                    cost,
                };
                self.granted.push(granted);
            }
            if let Some(group) = group.filter(|_| wins) {
                won.push(group.name.clone());
            }
        }
        lines
    }
}

/// Plays a history through both engines. Answers how many lines they agreed on, by reason.
fn play(seed: u64) -> BTreeMap<&'static str, usize> {
    let mut random = Random(seed | 1);
    (0..8).for_each(|_| {
        random.below(2);
    });
    let campaigns: Vec<Json> = (1..=6).map(|id| campaign(&mut random, id)).collect();
    let events = stream(&mut random);
    let mut all = documents(campaigns);
    let holdout = Holdout { seed: "h".to_owned(), share: 3_000 };
    let shared = random.below(20) as i64;
    let cap = 1 + random.below(3) as i64;
    all.holdouts.insert("h".to_owned(), holdout.clone());
    let budget = json!({"unit": "points", "max": shared});
    all.budgets.insert("shared".to_owned(), serde_json::from_value(budget).unwrap());
    let destinations = vec!["r".to_owned()];
    all.caps.insert("c".to_owned(), Cap { destinations, max: cap, zone: utc() });

    let mut naive = Naive {
        campaigns: all.campaigns.iter().map(|release| release.campaign.clone()).collect(),
        shared,
        holdout,
        cap,
        events: &[],
        granted: Vec::new(),
    };
    let mut world = World::new(all);
    for user in ["u0", "u1", "u2"] {
        let key = LookupKey {
            class: LookupClass::Segment,
            name: "vip".to_owned(),
            key: user.to_owned(),
            range_s: None,
        };
        world.answers.insert(key, Some(json!(user == "u1")));
    }

    let mut reasons = BTreeMap::new();
    for (place, sent) in events.iter().enumerate() {
        naive.events = &events[..=place];
        let expected = naive.decide();
        let outcome = world.decide(&sent.event(), sent.appended_ms);
        let decided: Vec<Line> = outcome
            .decisions
            .iter()
            .map(|decision| {
                let cost = decision.cost.as_ref().map(|cost| cost.amount);
                (decision.campaign, decision.step.clone(), decision.reason.as_str(), cost)
            })
            .collect();
        assert_eq!(decided, expected, "seed {seed}, event {place}: {}", sent.data);
        for (_, _, reason, _) in decided {
            *reasons.entry(reason).or_insert(0) += 1;
        }
    }
    reasons
}

/// The histories are not so tame that nothing is decided.
#[test]
fn histories_come_to_every_gate() {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 1..=40 {
        for (reason, count) in play(seed * 7_919) {
            *reasons.entry(reason).or_insert(0) += count;
        }
    }
    let gates = [
        Reason::Granted,
        Reason::Shadow,
        Reason::Holdout,
        Reason::Control,
        Reason::LimitReached,
        Reason::CapReached,
        Reason::BudgetExhausted,
        Reason::GroupLost,
    ];
    for gate in gates {
        assert!(
            reasons.get(gate.as_str()).is_some_and(|count| *count > 5),
            "{gate:?}: {reasons:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_engine_equals_the_naive_one(seed in any::<u64>()) {
        play(seed);
    }
}

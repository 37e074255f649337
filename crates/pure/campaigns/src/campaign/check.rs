//! What is wrong with a campaign, taken by itself.

use super::{Action, ActionKind, Campaign, Cost, Count, CountWindow, Step, ZoneSource};
use crate::budget::BudgetPeriod;
use crate::calendar::Zone;
use crate::delay::Delay;
use crate::limit::LimitPeriod;
use crate::limits::{
    ACTIONS_MAX, BUDGETS_MAX, CAMPAIGN_LIMITS_MAX, CAMPAIGN_NAME_LEN_MAX, COUNTS_MAX,
    EVENT_TYPES_MAX, KEPT_TIMES_MAX, RULE_LEAVES_MAX, STEPS_MAX,
};
use crate::message::Messages;
use crate::rule::{Lhs, Rule, Test, is_name};
use raingauge_core::counter::Problem;
use raingauge_core::filter::{Condition, Constant, Predicate};
use raingauge_core::limits::{ATTRIBUTE_LEN_MAX, COUNTER_ID_MAX, TEXT_LEN_MAX};
use raingauge_core::template::Template;
use raingauge_core::time::is_countable_s;
use raingauge_core::value::Value;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use std::collections::HashSet;

/// What values cost to load, beside those in memory.
const STATE: u32 = 2;
const TABLE: u32 = 3;
const COUNTER: u32 = 20;
const DATABASE: u32 = 100;
const HTTP: u32 = 1_000;

/// The weight that a lookup's document gives it; `None` for that of its class.
pub type Weights<'w> = &'w dyn Fn(&Lhs) -> Option<u32>;

/// Where a condition stands, and so what it may read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The rule of the campaign or of a step.
    Trigger,
    /// The filter of a count, or the rule of a cancellation: what every event brings with it.
    Filter,
    /// The rule that is tested when an action is due.
    Recheck,
}

/// Compiles a condition of a campaign.
pub fn compiled_rule(
    campaign: &Campaign,
    condition: &Condition,
    at: &str,
    place: Place,
    weights: Weights<'_>,
) -> Result<Rule, Vec<String>> {
    let zone_is_looked_up =
        matches!(ZoneSource::parse(&campaign.zone), Some(ZoneSource::Table { .. }));
    let mut weigh = |lhs: &Lhs, test: &Test| {
        check_place(lhs, place, zone_is_looked_up)?;
        if !matches!(lhs, Lhs::Count(_)) && !matches!(test, Test::Value(_)) {
            return Err(format!("`reaches` and `every` are for counts, and {lhs} is none"));
        }
        let class = match lhs {
            Lhs::Field(_) => 1,
            Lhs::Time(_) if zone_is_looked_up => TABLE,
            Lhs::Time(_) => 1,
            Lhs::Count(name) => return weigh_count(campaign, name, test),
            Lhs::Usage(name) => {
                let is_step = campaign.steps.iter().any(|step| step.name == **name);
                return if is_step { Ok(STATE) } else { Err(format!("there is no step `{name}`")) };
            }
            Lhs::Segment(_) | Lhs::Table { .. } => TABLE,
            Lhs::Database { .. } => DATABASE,
            Lhs::Http { .. } => HTTP,
        };
        Ok(weights(lhs).unwrap_or(class))
    };
    Rule::compile(condition, at, &mut weigh)
}

fn check_place(lhs: &Lhs, place: Place, zone_is_looked_up: bool) -> Result<(), String> {
    let is_state = matches!(lhs, Lhs::Count(_) | Lhs::Usage(_));
    let is_memory = match lhs {
        Lhs::Field(_) => true,
        Lhs::Time(_) => !zone_is_looked_up,
        _ => false,
    };
    match place {
        Place::Filter if !is_memory => Err(format!(
            "{lhs} is not part of the event: filters read fields and fixed local times"
        )),
        Place::Recheck if is_state => {
            Err(format!("{lhs} belongs to the event: a recheck reads lookups and fields"))
        }
        _ => Ok(()),
    }
}

fn weigh_count(campaign: &Campaign, name: &str, test: &Test) -> Result<u32, String> {
    let count = campaign.counts.get(name).ok_or_else(|| format!("there is no count `{name}`"))?;
    let largest = largest_in(test);
    match (&count.window, test) {
        (CountWindow::Counter { .. }, Test::Value(_)) => Ok(COUNTER),
        (CountWindow::Counter { .. }, _) => Err(format!(
            "count.{name} reads a counter, which may include later events: use `gte` and a limit"
        )),
        (CountWindow::Last(_), Test::Every(_)) => Err(format!(
            "count.{name} is rolling and goes down again: use `reaches`, or a calendar window"
        )),
        (CountWindow::Last(_), _) if largest >= KEPT_TIMES_MAX => Err(format!(
            "count.{name} is rolling and is compared with at most {}: use a counter",
            KEPT_TIMES_MAX - 1
        )),
        _ => Ok(STATE),
    }
}

/// The largest whole number that a test compares with.
fn largest_in(test: &Test) -> usize {
    let whole = |number: &Decimal| number.ceil().to_usize().unwrap_or(0);
    match test {
        Test::Reaches(count) | Test::Every(count) => usize::try_from(*count).unwrap_or(0),
        Test::Value(Predicate::In(one_of)) => one_of.numbers.iter().map(whole).max().unwrap_or(0),
        Test::Value(
            Predicate::Eq(Constant::Number(number))
            | Predicate::Ne(Constant::Number(number))
            | Predicate::Order(_, Constant::Number(number)),
        ) => {
            let too_large = *number > Decimal::from(KEPT_TIMES_MAX);
            if too_large { KEPT_TIMES_MAX } else { whole(number) }
        }
        Test::Value(_) => 0,
    }
}

impl Campaign {
    /// Everything that keeps the campaign from being used.
    pub fn problems(&self) -> Vec<Problem> {
        let mut check = Check { campaign: self, problems: Vec::new() };
        check.head();
        check.counts();
        let rule_leaves = check.rule();
        check.steps(rule_leaves);
        check.limits();
        check.budgets();
        check.templates();
        if let Some(experiment) = &self.experiment {
            check.all("experiment", experiment.problems());
            check.field("experiment.unit", &experiment.unit);
        }
        check.messages();
        check.problems
    }
}

struct Check<'c> {
    campaign: &'c Campaign,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn require(&mut self, ok: bool, at: &str, detail: impl FnOnce() -> String) {
        if !ok {
            self.problems.push(Problem::new(at, detail()));
        }
    }

    fn all(&mut self, at: &str, details: Vec<String>) {
        self.problems.extend(details.into_iter().map(|detail| Problem::new(at, detail)));
    }

    /// A part that others refer to by its name.
    fn name(&mut self, at: &str, name: &str) {
        self.require(is_name(name), at, || {
            format!("`{name}` must have 1 to {CAMPAIGN_NAME_LEN_MAX} letters, digits, `_` and `-`")
        });
    }

    fn field(&mut self, at: &str, path: &str) {
        let is_field = matches!(Lhs::parse(path), Some(Lhs::Field(_)));
        self.require(is_field, at, || {
            format!("`{path}` must name a field of the event, such as subject or var.user_id")
        });
    }

    fn zone(&mut self, at: &str, zone: Option<&str>) {
        let known = zone.is_none_or(|zone| Zone::of_name(zone).is_some());
        self.require(known, at, || "must be an IANA zone, such as Asia/Singapore".to_owned());
    }

    fn event_types(&mut self, at: &str, types: &[String]) {
        self.require(types.len() <= EVENT_TYPES_MAX, at, || {
            format!("names at most {EVENT_TYPES_MAX} types of events")
        });
        let fit = types.iter().all(|kind| !kind.is_empty() && kind.len() <= ATTRIBUTE_LEN_MAX);
        self.require(fit, at, || format!("a type has 1 to {ATTRIBUTE_LEN_MAX} bytes"));
    }

    fn rule_at(&mut self, condition: Option<&Condition>, at: &str, place: Place) -> usize {
        let Some(condition) = condition else { return 0 };
        match compiled_rule(self.campaign, condition, at, place, &|_| None) {
            Ok(rule) => rule.leaves(),
            Err(details) => {
                self.all(at, details);
                0
            }
        }
    }

    fn head(&mut self) {
        let campaign = self.campaign;
        let named =
            !campaign.name.trim().is_empty() && campaign.name.len() <= CAMPAIGN_NAME_LEN_MAX;
        self.require(campaign.id <= COUNTER_ID_MAX, "id", || {
            format!("must be at most {COUNTER_ID_MAX}")
        });
        self.require(named, "name", || format!("must have 1 to {CAMPAIGN_NAME_LEN_MAX} bytes"));
        self.require(!campaign.event_types.is_empty(), "eventTypes", || {
            "must name at least one type of events".to_owned()
        });
        self.event_types("eventTypes", &campaign.event_types);
        self.field("subject", &campaign.subject);

        let zone = ZoneSource::parse(&campaign.zone);
        self.require(zone.is_some(), "zone", || {
            "must be an IANA zone, such as Asia/Singapore, or a column, such as table.users.zone"
                .to_owned()
        });
        if matches!(zone, Some(ZoneSource::Table { .. })) {
            self.fixed_zone_needed();
        }

        for (at, time) in
            [("activeFrom", campaign.active_from), ("activeUntil", campaign.active_until)]
        {
            self.require(time.is_none_or(is_countable_s), at, || {
                "must be seconds since 1970, before the year 10000".to_owned()
            });
        }
        let (from_ms, until_ms) = campaign.activity_ms();
        self.require(from_ms < until_ms, "activeUntil", || "must lie after activeFrom".to_owned());
        for (at, text) in [("owner", &campaign.owner), ("description", &campaign.description)] {
            self.require(text.len() <= TEXT_LEN_MAX, at, || {
                format!("must have at most {TEXT_LEN_MAX} bytes")
            });
        }
        if let Some(group) = &campaign.group {
            self.name("group.name", &group.name);
        }
        if let Some(holdout) = &campaign.holdout {
            self.name("holdout", holdout);
        }
    }

    /// Periods of the calendar are cut in a zone that does not differ by subject.
    fn fixed_zone_needed(&mut self) {
        let campaign = self.campaign;
        let calendar = |count: &Count| matches!(count.window, CountWindow::Calendar(_));
        let limited =
            campaign.limits.iter().any(|limit| matches!(limit.period, LimitPeriod::Calendar(_)));
        let budgeted = campaign.budgets.values().any(|budget| {
            budget.zone.is_none() && matches!(budget.period, BudgetPeriod::Calendar(_))
        });
        let local = |action: &Action| {
            let delayed = matches!(&action.delay, Some(Delay::At(at)) if at.zone.is_none());
            delayed || action.quiet.as_ref().is_some_and(|quiet| quiet.zone.is_none())
        };
        let delayed = campaign.steps.iter().flat_map(|step| &step.actions).any(local);
        let needed = limited || budgeted || delayed || campaign.counts.values().any(calendar);
        self.require(!needed, "zone", || {
            "must be fixed: periods of the calendar and times of day need one zone for all"
                .to_owned()
        });
    }

    fn counts(&mut self) {
        let counts = &self.campaign.counts;
        self.require(counts.len() <= COUNTS_MAX, "counts", || {
            format!("a campaign has at most {COUNTS_MAX} counts")
        });
        for (name, count) in counts {
            let at = format!("counts.{name}");
            self.name(&at, name);
            self.event_types(&format!("{at}.eventTypes"), &count.event_types);
            self.rule_at(count.filter.as_ref(), &format!("{at}.filter"), Place::Filter);
            self.all(&format!("{at}.value"), count.value.problems());

            let is_one = count.value == Value::default();
            match &count.window {
                CountWindow::Last(_) => self.require(is_one, &format!("{at}.value"), || {
                    "a rolling count counts events: for sums over the last days use a counter"
                        .to_owned()
                }),
                CountWindow::Counter { template, .. } => {
                    let problems = Template::parse(template).err().unwrap_or_default();
                    self.all(&format!("{at}.window.counter"), problems);
                    let own = count.filter.is_none() && is_one && count.event_types.is_empty();
                    self.require(own && count.history.is_none(), &at, || {
                        "a counter has a filter, a value, types and a history of its own".to_owned()
                    });
                }
                CountWindow::Campaign | CountWindow::Calendar(_) => {}
            }
        }
    }

    fn rule(&mut self) -> usize {
        self.rule_at(self.campaign.rule.as_ref(), "rule", Place::Trigger)
    }

    fn steps(&mut self, rule_leaves: usize) {
        let steps = &self.campaign.steps;
        let few = !steps.is_empty() && steps.len() <= STEPS_MAX;
        self.require(few, "steps", || format!("a campaign has 1 to {STEPS_MAX} steps"));

        let mut names = HashSet::new();
        for (place, step) in steps.iter().enumerate() {
            let at = format!("steps[{place}]");
            self.name(&format!("{at}.name"), &step.name);
            self.require(names.insert(&step.name), &format!("{at}.name"), || {
                format!("`{}` is the name of another step", step.name)
            });

            self.require(step.name != "rule", &format!("{at}.name"), || {
                "`rule` stands for the rule of the campaign: choose another name".to_owned()
            });

            let when = format!("{at}.when");
            let leaves = self.rule_at(step.when.as_ref(), &when, Place::Trigger);
            self.require(leaves + rule_leaves <= RULE_LEAVES_MAX, &when, || {
                format!("has more than {RULE_LEAVES_MAX} conditions with those of the rule")
            });
            self.variants(&at, &step.variants);
            self.actions(&at, step);
        }
    }

    fn variants(&mut self, at: &str, variants: &[String]) {
        let experiment = self.campaign.experiment.as_ref();
        for name in variants {
            let known = experiment
                .is_some_and(|found| found.variants.iter().any(|variant| variant.name == *name));
            self.require(known, &format!("{at}.variants"), || {
                format!("`{name}` is no variant of the experiment")
            });
        }
    }

    fn actions(&mut self, at: &str, step: &Step) {
        let few = !step.actions.is_empty() && step.actions.len() <= ACTIONS_MAX;
        self.require(few, &format!("{at}.actions"), || {
            format!("a step has 1 to {ACTIONS_MAX} actions")
        });

        let mut names = HashSet::new();
        for (place, action) in step.actions.iter().enumerate() {
            let at = format!("{at}.actions[{place}]");
            self.name(&format!("{at}.name"), &action.name);
            self.require(names.insert(&action.name), &format!("{at}.name"), || {
                format!("`{}` is the name of another action of this step", action.name)
            });
            self.action(&at, action);
        }
    }

    fn action(&mut self, at: &str, action: &Action) {
        self.name(&format!("{at}.to"), &action.to);
        self.content(at, action);
        if let Some(recipient) = &action.recipient {
            self.field(&format!("{at}.recipient"), recipient);
        }
        if let Some(Cost { budget, amount, .. }) = &action.cost {
            self.name(&format!("{at}.cost.budget"), budget);
            self.all(&format!("{at}.cost"), amount.problems());
            if let Some(field) = amount.field() {
                self.field(&format!("{at}.cost.amount.field"), field);
            }
        }

        if let Some(delay) = &action.delay {
            self.all(&format!("{at}.delay"), delay.problems());
            if let Delay::At(moment) = delay {
                self.zone(&format!("{at}.delay.zone"), moment.zone.as_deref());
            }
        }
        if let Some(quiet) = &action.quiet {
            self.all(&format!("{at}.quiet"), quiet.problems());
            self.zone(&format!("{at}.quiet.zone"), quiet.zone.as_deref());
        }
        let waits = action.delay.is_some() || action.quiet.is_some();
        self.require(waits || action.cancel.is_none() && action.recheck.is_none(), at, || {
            "an action without a delay cannot be cancelled or rechecked".to_owned()
        });
        if let Some(cancel) = &action.cancel {
            let at = format!("{at}.cancel");
            self.require(!cancel.event_types.is_empty(), &at, || {
                "must name the types of events that cancel".to_owned()
            });
            self.event_types(&at, &cancel.event_types);
            self.rule_at(cancel.rule.as_ref(), &format!("{at}.rule"), Place::Filter);
        }
        self.rule_at(action.recheck.as_ref(), &format!("{at}.recheck"), Place::Recheck);
        self.variants(at, &action.variants);
    }

    /// The members that belong to the kind of an action, and no others.
    fn content(&mut self, at: &str, action: &Action) {
        let kind = action.kind;
        let allowed: &[&str] = match kind {
            ActionKind::Message => &["template", "locale"],
            ActionKind::Reward => &["reward"],
            ActionKind::Points => &["points", "amount", "multipliers", "budget"],
            ActionKind::Webhook => &["body"],
            ActionKind::Emit => &["eventType", "body"],
        };
        let present = [
            ("template", action.template.is_some()),
            ("locale", action.locale.is_some()),
            ("reward", action.reward.is_some()),
            ("points", action.points.is_some()),
            ("amount", action.amount.is_some()),
            ("multipliers", action.multipliers.is_some()),
            ("budget", action.budget.is_some()),
            ("eventType", action.event_type.is_some()),
            ("body", action.body.is_some()),
        ];
        for (name, _) in present.iter().filter(|(name, is)| *is && !allowed.contains(name)) {
            let detail = format!("a {} has no {name}", kind.as_str());
            self.problems.push(Problem::new(format!("{at}.{name}"), detail));
        }

        match kind {
            ActionKind::Message => {
                let template = action.template.as_deref().unwrap_or_default();
                let known = self.campaign.templates.contains_key(template);
                self.require(known, &format!("{at}.template"), || {
                    format!("there is no template `{template}`")
                });
                let locale = action.locale.as_deref();
                let read = locale.is_none_or(|lhs| {
                    matches!(
                        Lhs::parse(lhs),
                        Some(
                            Lhs::Field(_)
                                | Lhs::Table { .. }
                                | Lhs::Database { .. }
                                | Lhs::Http { .. }
                        )
                    )
                });
                self.require(read, &format!("{at}.locale"), || {
                    "must name a field or a lookup, such as table.users.locale".to_owned()
                });
            }
            ActionKind::Reward => self.require(action.reward.is_some(), at, || {
                "a reward says which one: \"reward\": \"MART5\"".to_owned()
            }),
            ActionKind::Points => {
                let one = action.points.is_some() != action.amount.is_some();
                self.require(one, at, || "points need either points or amount".to_owned());
                if let Some(amount) = &action.amount {
                    self.field(&format!("{at}.amount"), amount);
                }
                if let Some(budget) = &action.budget {
                    self.name(&format!("{at}.budget"), budget);
                }
            }
            ActionKind::Webhook => {}
            ActionKind::Emit => {
                let kind = action.event_type.as_deref().unwrap_or_default();
                let fits = !kind.is_empty() && kind.len() <= ATTRIBUTE_LEN_MAX;
                self.require(fits, &format!("{at}.eventType"), || {
                    "must name the type of the emitted event".to_owned()
                });
            }
        }
    }

    fn limits(&mut self) {
        let limits = &self.campaign.limits;
        self.require(limits.len() <= CAMPAIGN_LIMITS_MAX, "limits", || {
            format!("a campaign has at most {CAMPAIGN_LIMITS_MAX} limits")
        });
        for (place, limit) in limits.iter().enumerate() {
            let at = format!("limits[{place}]");
            self.all(&at, limit.problems());
            self.field(&format!("{at}.per"), &limit.per);
            let known = limit
                .step
                .as_ref()
                .is_none_or(|name| self.campaign.steps.iter().any(|step| step.name == *name));
            self.require(known, &format!("{at}.step"), || "there is no such step".to_owned());
        }
    }

    fn budgets(&mut self) {
        self.require(self.campaign.budgets.len() <= BUDGETS_MAX, "budgets", || {
            format!("a campaign has at most {BUDGETS_MAX} budgets")
        });
        for (name, budget) in &self.campaign.budgets {
            let at = format!("budgets.{name}");
            self.name(&at, name);
            self.all(&at, budget.problems());
            self.zone(&format!("{at}.zone"), budget.zone.as_deref());
        }
    }

    /// Compiles the texts, unless it is known already that some cannot be.
    fn messages(&mut self) {
        if self.problems.iter().any(|problem| problem.field.starts_with("templates")) {
            return;
        }
        if let Err(found) = Messages::compile(self.campaign) {
            self.problems.extend(found);
        }
    }

    fn templates(&mut self) {
        for (name, texts) in &self.campaign.templates {
            let at = format!("templates.{name}");
            self.name(&at, name);
            self.require(!texts.is_empty(), &at, || "needs a text in one language".to_owned());
        }
    }
}

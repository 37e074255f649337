//! Programmes, compiled: what prices awards and bounds them.

mod compile;

use crate::calendar::Zone;
use crate::day::Day;
use crate::document::{Negative, OwnFactors, Rate};
use crate::expiry::ExpiryPolicy;
use crate::limits::ENTRY_POINTS_MAX;
use crate::number::{Number, Rounding};
use crate::table::Table;
use crate::tiers::Tiers;
use crate::{Points, refused};
use raingauge_core::code::{Code, Refusal};
use raingauge_core::field::Field;
use raingauge_core::filter::Filter;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The source of commands that events lead to.
pub const EVENT_SOURCE: &str = "events";

/// The source of what campaigns award.
pub const CAMPAIGN_SOURCE: &str = "campaigns";

/// The sources of commands that raingauge sends itself. No partner may have their names: its bounds
/// would apply to them, and its token would read and reverse them.
pub const OWN_SOURCES: [&str; 2] = [EVENT_SOURCE, CAMPAIGN_SOURCE];

/// How the types of events begin that points publish themselves. They award nothing, or awards
/// would never end.
pub const OWN_EVENTS: &str = "raingauge.points.";

/// A version of a programme.
#[derive(Debug)]
pub struct Programme {
    pub version: u32,
    name: Arc<str>,
    unit: Arc<str>,
    decimals: u8,
    pub(crate) rounding: Rounding,
    pub(crate) expiry: ExpiryPolicy,
    pub(crate) pending_days: u16,
    pub(crate) negative: Negative,
    /// The lowest balance that a reversal may leave; `None` for any.
    pub(crate) arrears_floor: Option<Points>,
    pub(crate) hold_ms: i64,
    /// From the longest time before an expiry.
    pub(crate) remind_days: Vec<u16>,
    adjust_review: Option<Points>,
    unit_cost: Option<Number>,
    pub(crate) tiers: Option<Tiers>,
    pub(crate) tables: Vec<Table>,
    /// Rules by the type of their events; those without one stand under the empty type.
    pub(crate) groups: Vec<RuleGroup>,
    by_type: HashMap<Box<str>, usize>,
    /// The place of each rule, in the order of the document.
    pub(crate) order: Vec<(u32, RulePlace)>,
    partners: BTreeMap<Arc<str>, Partner>,
    /// Names of the partners that it has and had.
    partner_names: BTreeSet<Arc<str>>,
    pub(crate) budgets: BTreeMap<Arc<str>, Points>,
    rewards: BTreeMap<Arc<str>, Reward>,
    pub(crate) budget_default: Arc<str>,
    /// Budgets that have a limit or are those of a rule.
    pub(crate) budgets_known: BTreeSet<Arc<str>>,
}

/// The place of a rule among the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RulePlace {
    pub(crate) group: usize,
    pub(crate) rule: usize,
}

/// Rules for events of one type, which share the fields that they read.
#[derive(Debug, Default)]
pub(crate) struct RuleGroup {
    pub(crate) fields: Vec<Field>,
    pub(crate) rules: Vec<Rule>,
}

/// A rule, whose fields are numbers into those of its group.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) id: u32,
    pub(crate) name: Arc<str>,
    pub(crate) filter: Option<Filter>,
    pub(crate) member: Option<usize>,
    pub(crate) amount: Option<usize>,
    pub(crate) points: Option<Points>,
    pub(crate) factors: Vec<RuleFactor>,
    pub(crate) reference: Option<usize>,
    pub(crate) reverses: Option<usize>,
    pub(crate) budget: Arc<str>,
    pub(crate) extends: bool,
    pub(crate) qualifies: bool,
    pub(crate) pending_days: u16,
    pub(crate) per_event_max: Option<Points>,
    pub(crate) active_from_ms: i64,
    pub(crate) active_until_ms: i64,
}

impl Rule {
    pub(crate) fn is_active(&self, at_ms: i64) -> bool {
        (self.active_from_ms..self.active_until_ms).contains(&at_ms)
    }
}

/// A table, with the field for each of the values by which it is looked up.
#[derive(Debug)]
pub(crate) struct RuleFactor {
    pub(crate) table: usize,
    /// `None` for the tier.
    pub(crate) fields: Vec<Option<usize>>,
}

/// Another programme of loyalty, with its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partner {
    pub name: Arc<str>,
    pub own_factors: Option<OwnFactors>,
    pub per_award_max: Option<Points>,
    pub per_day_max: Option<Points>,
    pub exchange: Option<Rate>,
    pub exchange_in: Option<Rate>,
}

impl Partner {
    /// The budget of what it awards on a day.
    pub fn day_budget(&self, day: Day) -> Arc<str> {
        format!("partner:{}:{day}", self.name).into()
    }
}

/// Something that points can be exchanged for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reward {
    pub name: Arc<str>,
    pub description: Arc<str>,
    pub points: Points,
    pub stock: Option<u32>,
    pub per_member: Option<u32>,
    pub from_ms: Option<i64>,
    pub until_ms: Option<i64>,
}

impl Reward {
    /// The budget that counts how many were redeemed.
    pub fn stock_budget(&self) -> Arc<str> {
        format!("reward:{}", self.name).into()
    }

    /// The budget that counts how many a member redeemed.
    pub fn member_budget(&self, member: &str) -> Arc<str> {
        format!("reward:{}:{member}", self.name).into()
    }
}

impl Programme {
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What the points are called.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    pub fn decimals(&self) -> u8 {
        self.decimals
    }

    pub fn rounding(&self) -> Rounding {
        self.rounding
    }

    pub fn zone(&self) -> &Zone {
        self.expiry.zone()
    }

    pub fn expiry(&self) -> &ExpiryPolicy {
        &self.expiry
    }

    /// Points from which an adjustment needs a second person.
    pub fn adjust_review(&self) -> Option<Points> {
        self.adjust_review
    }

    /// What a point costs, in the operator's currency.
    pub fn unit_cost(&self) -> Option<Number> {
        self.unit_cost
    }

    pub fn partner(&self, name: &str) -> Option<&Partner> {
        self.partners.get(name)
    }

    /// Whether a name is that of a partner, or of one that the programme had.
    pub fn has_or_had_partner(&self, name: &str) -> bool {
        self.partner_names.contains(name)
    }

    /// Whether a name is that of a partner that has left.
    pub fn is_former_partner(&self, name: &str) -> bool {
        self.has_or_had_partner(name) && self.partner(name).is_none()
    }

    pub fn partners(&self) -> impl Iterator<Item = &Partner> {
        self.partners.values()
    }

    pub fn reward(&self, name: &str) -> Option<&Reward> {
        self.rewards.get(name)
    }

    pub fn rewards(&self) -> impl Iterator<Item = &Reward> {
        self.rewards.values()
    }

    /// Budgets with their limits.
    pub fn budgets(&self) -> impl Iterator<Item = (&Arc<str>, Points)> {
        self.budgets.iter().map(|(name, limit)| (name, *limit))
    }

    /// What an award is issued from whose caller names a budget: free names would make accounts
    /// without end, so those that the programme does not know stand for its default.
    pub(crate) fn budget_named(&self, name: Option<&Arc<str>>) -> &Arc<str> {
        name.and_then(|name| self.budgets_known.get(name)).unwrap_or(&self.budget_default)
    }

    /// Names of the tiers, from the lowest.
    pub fn tiers(&self) -> impl Iterator<Item = &Arc<str>> {
        let levels = self.tiers.iter().flat_map(|tiers| &tiers.levels);
        levels.map(|level| &level.name)
    }

    pub fn has_tier(&self, name: &str) -> bool {
        self.tiers.as_ref().is_some_and(|tiers| tiers.has(name))
    }

    /// The tier of a member whose wallet has this one: the lowest where it has none, or one of a
    /// former version.
    pub fn tier_of<'a>(&'a self, stored: Option<&'a Arc<str>>) -> Option<&'a Arc<str>> {
        let tiers = self.tiers.as_ref()?;
        Some(stored.filter(|stored| tiers.has(stored)).unwrap_or(tiers.lowest()))
    }

    /// Rules with their ids, in the order of the document.
    pub fn rules(&self) -> impl Iterator<Item = (u32, &Arc<str>)> {
        self.order.iter().map(|(id, place)| (*id, &self.rule_at(*place).name))
    }

    /// Whether a rule multiplies with the table of this name.
    pub(crate) fn has_factor(&self, rule: u32, table: &str) -> bool {
        let place = self.order.iter().find(|(id, _)| *id == rule);
        let factors = place.into_iter().flat_map(|(_, place)| &self.rule_at(*place).factors);
        factors.into_iter().any(|factor| *self.tables[factor.table].name == *table)
    }

    pub(crate) fn rule_at(&self, place: RulePlace) -> &Rule {
        &self.groups[place.group].rules[place.rule]
    }

    pub(crate) fn group_of(&self, event_type: &str) -> Option<usize> {
        self.by_type.get(event_type).copied()
    }

    /// Whether a rule is for events of this type.
    pub fn wants(&self, event_type: &str) -> bool {
        !event_type.is_empty() && self.by_type.contains_key(event_type)
    }

    /// Types of the events that rules are for.
    pub fn event_types(&self) -> impl Iterator<Item = &str> {
        self.by_type.keys().map(|kind| &**kind).filter(|kind| !kind.is_empty())
    }

    /// A number of points in the smallest units of the programme.
    pub fn points_of(&self, number: &Number) -> Result<Points, Refusal> {
        let is_whole = number.scale() <= i32::from(self.decimals);
        let points = number.round(self.decimals, Rounding::Down).filter(|_| is_whole);
        match points {
            Some(points) if points.unsigned_abs() <= ENTRY_POINTS_MAX as u64 => Ok(points),
            Some(_) => Err(too_many_points()),
            None => refused(
                Code::PointsInvalid,
                format!("{number} is no number of {} with {} decimals", self.unit, self.decimals),
            ),
        }
    }

    /// Points as people and callers read them: with the decimals of the programme.
    pub fn text_of(&self, points: Points) -> String {
        let number = Number::of_points(points, self.decimals).to_string();
        let decimals = usize::from(self.decimals);
        if decimals == 0 {
            return number;
        }
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        format!("{whole}.{fraction:0<decimals$}")
    }
}

pub(crate) fn too_many_points() -> Refusal {
    Refusal::new(Code::PointsInvalid, format!("more than {ENTRY_POINTS_MAX} units of points"))
}

/// Versions of a programme that are kept beside the one in force, also where nothing needs them.
const OTHER_VERSIONS_MAX: usize = 4;

/// The versions of programmes that are in force, and others that have priced awards which are
/// still to be decided: all factors of an award are of one version.
#[derive(Clone, Debug, Default)]
pub struct Programmes {
    by_name: BTreeMap<Arc<str>, Arc<Programme>>,
    others: BTreeMap<(Arc<str>, u32), Arc<Programme>>,
}

impl Programmes {
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a version in force.
    pub fn insert(&mut self, programme: Arc<Programme>) {
        self.by_name.insert(programme.name.clone(), programme);
    }

    pub fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    /// Keeps a version that may have priced awards.
    pub fn keep(&mut self, programme: Arc<Programme>) {
        self.others.insert((programme.name.clone(), programme.version), programme);
    }

    /// Keeps the versions that others know, and that are not in force here.
    pub fn keep_all_of(&mut self, others: &Self) {
        let known = others.others.values().chain(others.by_name.values());
        for programme in known {
            if self.get(&programme.name).is_none_or(|own| own.version != programme.version) {
                self.keep(Arc::clone(programme));
            }
        }
    }

    /// Forgets what is not in force, but for the newest few of each programme and what is needed.
    pub fn forget_others(&mut self, needed: &BTreeSet<(Arc<str>, u32)>) {
        let mut newer: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        for (name, version) in self.others.keys().rev().cloned().collect::<Vec<_>>() {
            let newer = newer.entry(name.clone()).or_default();
            let key = (name, version);
            if *newer >= OTHER_VERSIONS_MAX && !needed.contains(&key) {
                self.others.remove(&key);
            }
            *newer += 1;
        }
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Programme>> {
        self.by_name.get(name)
    }

    /// A version of a programme, in force or kept.
    pub fn version(&self, name: &str, version: u32) -> Option<&Arc<Programme>> {
        let in_force = self.get(name).filter(|programme| programme.version == version);
        in_force.or_else(|| self.others.get(&(Arc::from(name), version)))
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Programme>> {
        self.by_name.values()
    }
}

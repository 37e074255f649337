//! Programmes as documents: JSON with names in camel case, known by the name of the programme.
//!
//! [`ProgrammeDocument::parse`] reads and checks one; [`Programme::compile`] makes of it what
//! prices and decides.
//!
//! [`Programme::compile`]: crate::programme::Programme::compile

use crate::number::{Number, Rounding};
use raingauge_core::filter::Condition;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The kind of document that a programme is.
pub const PROGRAMME: &str = "programme";
/// The consumer of the log that programmes take effect in.
pub const CONSUMER: &str = "points";

/// A kind of points with its rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProgrammeDocument {
    /// The name, which never changes.
    pub programme: String,
    /// What the points are called.
    #[serde(default = "points")]
    pub unit: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// Decimals of a point.
    #[serde(default)]
    pub decimals: u8,
    #[serde(default)]
    pub rounding: Rounding,
    /// The zone of its months and days.
    #[serde(default = "utc")]
    pub timezone: String,
    #[serde(default)]
    pub expiry: ExpiryDocument,
    /// Days before points can be spent.
    #[serde(default)]
    pub pending_days: u16,
    #[serde(default)]
    pub negative: Negative,
    /// Lowest balance that a reversal may leave, in points; 0 or less.
    #[serde(default = "default_arrears_floor")]
    pub arrears_floor: Option<Number>,
    /// Hours after which a hold is released.
    #[serde(default = "hold_hours")]
    pub hold_hours: u32,
    /// Days before an expiry at which members are reminded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remind_days: Vec<u16>,
    /// Points from which an adjustment needs a second person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjust_review: Option<Number>,
    /// What a point costs, in the operator's currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_cost: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiers: Option<TiersDocument>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, TableDocument>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleDocument>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partners: Vec<PartnerDocument>,
    /// Names of partners that the programme had: a token with such a name stays a partner's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_partners: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub budgets: BTreeMap<String, BudgetDocument>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewards: Vec<RewardDocument>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<ExampleDocument>,
}

fn points() -> String {
    "points".to_owned()
}

fn utc() -> String {
    "UTC".to_owned()
}

/// Null in a document is no floor.
fn default_arrears_floor() -> Option<Number> {
    Some(Number::whole(-10_000))
}

fn hold_hours() -> u32 {
    72
}

/// When points expire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExpiryDocument {
    pub kind: ExpiryKind,
    /// After the last activity, after the award, or at least before the date of a year.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub months: Option<u16>,
    /// Whether a fixed expiry is the end of its month, or the very day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<ExpiryUntil>,
    /// Month and day of a yearly expiry, such as `12-31`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    #[serde(default = "grace_hours")]
    pub grace_hours: u16,
    #[serde(default = "reinstate_days")]
    pub reinstate_days: u16,
}

impl Default for ExpiryDocument {
    fn default() -> Self {
        Self {
            kind: ExpiryKind::Never,
            months: None,
            until: None,
            date: None,
            grace_hours: grace_hours(),
            reinstate_days: reinstate_days(),
        }
    }
}

fn grace_hours() -> u16 {
    24
}

fn reinstate_days() -> u16 {
    7
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExpiryKind {
    /// All points together, at the end of the month `months` after that of the last activity.
    Activity,
    /// Each award by itself.
    Fixed,
    /// Each award on a date of the calendar.
    Yearly,
    Never,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExpiryUntil {
    #[default]
    MonthEnd,
    Day,
}

/// What happens to a reversal that finds too few points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Negative {
    /// The member owes the rest, which later awards pay first.
    #[default]
    Arrears,
    /// The rest is written off.
    Cap,
    Refuse,
}

/// Tiers by the points earned in a period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TiersDocument {
    #[serde(default)]
    pub window: TierWindow,
    /// Months for which a tier is kept after the period in which it was reached.
    #[serde(default)]
    pub keep_months: u16,
    /// From the lowest, which begins at 0.
    pub levels: Vec<LevelDocument>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TierWindow {
    Month,
    Quarter,
    HalfYear,
    #[default]
    Year,
    /// A tier, once reached, is kept.
    Lifetime,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LevelDocument {
    pub name: String,
    /// Points of a period from which the tier is reached.
    pub from: Number,
}

/// A factor, looked up by fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TableDocument {
    /// Paths such as `data.country`, or `tier`.
    pub by: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Number>,
    /// By the values of the fields, joined by points; `*` stands for any.
    #[serde(default)]
    pub rows: BTreeMap<String, Number>,
}

/// Which events earn which points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleDocument {
    pub id: u32,
    pub name: String,
    /// `None`: the rule is for awards by API alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// The field that names the member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// A fixed number of points, in place of an amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Condition>,
    /// Names of tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<String>,
    /// The field by which the award can be reversed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The field that names the reference of an award that this event takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverses: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// Whether the event moves the expiry by activity.
    #[serde(default = "yes")]
    pub extends: bool,
    /// Whether the points count towards a tier.
    #[serde(default = "yes")]
    pub qualifies: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_days: Option<u16>,
    /// Most points of one event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_event_max: Option<Number>,
    /// Events that happened earlier earn nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_from: Option<String>,
    /// Events that happened at or after this earn nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_until: Option<String>,
}

fn yes() -> bool {
    true
}

/// Another programme of loyalty, which awards or exchanges points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PartnerDocument {
    /// The source of its commands.
    pub name: String,
    /// Absent: the partner may not bring factors of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_factors: Option<OwnFactors>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_award_max: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_day_max: Option<Number>,
    /// What a member gives, and what the partner makes of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Rate>,
    /// What the partner gives, and what the member gets; the inverse of `exchange` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange_in: Option<Rate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnFactors {
    /// The largest product of the factors of an award.
    pub max: Number,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rate {
    pub give: u32,
    pub get: u32,
}

/// Most points that a budget gives out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BudgetDocument {
    pub limit: Number,
}

/// Something that points can be exchanged for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RewardDocument {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The price.
    pub points: Number,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stock: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_member: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

impl ProgrammeDocument {
    /// Names of all partners that the programme has and had.
    pub fn partner_names(&self) -> impl Iterator<Item = &str> {
        let partners = self.partners.iter().map(|partner| &*partner.name);
        partners.chain(self.former_partners.iter().map(|name| &**name))
    }
}

/// An award that must come out of the rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExampleDocument {
    /// `None`: the first rule whose filter holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    pub data: Json,
    pub points: Number,
}

//! Campaigns as documents: which event, under which conditions, triggers which actions.
//!
//! A document is JSON with names in camel case. [`Campaign::from_json`] reads and checks it, and
//! reports everything that is wrong with it; what it returns serializes to the same document.

mod action;
mod check;
mod count;

pub use action::{Action, ActionKind, Cancel, Cost};
pub use check::{Place, Weights, compiled_rule};
pub use count::{Count, CountWindow, History};

use crate::budget::Budget;
use crate::calendar::Zone;
use crate::experiment::Experiment;
use crate::limit::Limit;
use crate::limits::CAMPAIGN_LEN_MAX;
use crate::rule::Lhs;
use raingauge_core::counter::Problem;
use raingauge_core::filter::Condition;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The id of a campaign: a small positive integer.
pub type CampaignId = u32;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Campaign {
    /// 0 in a document that has no id yet.
    #[serde(default)]
    pub id: CampaignId,
    pub name: String,
    /// Types of the events that may trigger a step.
    pub event_types: Vec<String>,
    /// The field that says whom the event is about.
    #[serde(default = "subject")]
    pub subject: String,
    /// An IANA name, or the column of a table that has the zone of the subject.
    #[serde(default = "utc")]
    pub zone: String,
    #[serde(default)]
    pub state: State,
    /// Seconds since 1970. Earlier events trigger nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_from: Option<i64>,
    /// Seconds since 1970. Events from here on trigger nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_until: Option<i64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, Count>,
    /// What must hold for every step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Condition>,
    pub steps: Vec<Step>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub budgets: BTreeMap<String, Budget>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Experiment>,
    /// The name of a holdout whose units this campaign leaves out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// Campaigns of higher priority are decided first.
    #[serde(default)]
    pub priority: i32,
    /// Texts by template and locale.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub templates: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    pub owner: String,
    #[serde(default)]
    pub description: String,
}

/// Where a campaign stands in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Does nothing.
    #[default]
    Draft,
    /// Decides without acting, with budgets and limits of its own.
    Shadow,
    Active,
    /// Counts, and decides nothing.
    Paused,
    /// Does nothing, and stays to be read.
    Archived,
}

impl State {
    /// Whether tallies are kept.
    pub const fn counts(self) -> bool {
        matches!(self, Self::Shadow | Self::Active | Self::Paused)
    }

    pub const fn decides(self) -> bool {
        matches!(self, Self::Shadow | Self::Active)
    }
}

/// Actions that are granted together when a condition holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
    /// The variants of the experiment that get this step; all, if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<String>,
    pub actions: Vec<Action>,
}

/// Campaigns that compete for an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    pub name: String,
    pub mode: GroupMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupMode {
    All,
    /// The first that passes all gates.
    First,
    /// The one that costs most.
    Best,
}

/// The zone of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub enum ZoneSource {
    Fixed(Zone),
    /// The column of a table that has the zone of the subject.
    Table {
        name: Box<str>,
        column: Box<str>,
    },
}

impl ZoneSource {
    /// `None` if the text is neither a zone nor a column.
    pub fn parse(text: &str) -> Option<Self> {
        match Lhs::parse(text) {
            Some(Lhs::Table { name, column }) => Some(Self::Table { name, column }),
            _ => Zone::of_name(text).map(Self::Fixed),
        }
    }
}

fn subject() -> String {
    "subject".to_owned()
}

fn utc() -> String {
    "UTC".to_owned()
}

impl Campaign {
    /// Reads and checks a document. A member of a wrong kind is reported by itself; otherwise all
    /// problems are reported together.
    pub fn from_json(json: &Json) -> Result<Self, Vec<Problem>> {
        if json.to_string().len() > CAMPAIGN_LEN_MAX {
            let detail = format!("a campaign has at most {CAMPAIGN_LEN_MAX} bytes of JSON");
            return Err(vec![Problem::new("", detail)]);
        }

        let campaign: Self = serde_path_to_error::deserialize(json).map_err(|error| {
            let path = error.path().to_string();
            vec![Problem::new(path.trim_matches('.'), error.inner().to_string())]
        })?;
        let problems = campaign.problems();
        if problems.is_empty() { Ok(campaign) } else { Err(problems) }
    }

    /// The beginning and the end of the activity, in milliseconds since 1970.
    pub fn activity_ms(&self) -> (i64, i64) {
        let ms = |seconds: i64| seconds.saturating_mul(1_000);
        (self.active_from.map_or(i64::MIN, ms), self.active_until.map_or(i64::MAX, ms))
    }

    pub fn is_active_at(&self, time_ms: i64) -> bool {
        let (from_ms, until_ms) = self.activity_ms();
        (from_ms..until_ms).contains(&time_ms)
    }
}

#[cfg(test)]
mod tests;

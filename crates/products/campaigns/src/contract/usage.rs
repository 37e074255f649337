//! What campaigns decided and used.

use super::{number, of_campaign, operation, text};
use raingauge_core::code::Code;
use raingauge_http::{Operation, query};
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use utoipa::ToSchema;

pub fn usage() -> Operation {
    of_campaign("readCampaignUsage", "What a campaign granted, refused and spent, by local day")
        .parameter(query("from", "Decided from here on; 30 days ago by default.", text()))
        .parameter(query("to", "Decided before this.", text()))
        .answers::<Usage>(200, "The days of the events, in the zone of the campaign.", Value::Null)
        .refusal(&[Code::TimeInvalid], "A time cannot be read.")
}

pub fn budgets() -> Operation {
    of_campaign("readCampaignBudgets", "The budgets of a campaign, and the shared ones it names")
        .answers::<BudgetReports>(200, "Each in its periods, newest first.", Value::Null)
}

pub fn exposures() -> Operation {
    of_campaign("readCampaignExposures", "How many units were exposed to each variant")
        .answers::<Exposures>(200, "The variants of the experiment.", Value::Null)
}

pub fn decisions() -> Operation {
    let limit = json!({
        "type": "integer", "minimum": 1, "maximum": LEDGER_PAGE_LEN_MAX, "default": 100,
    });
    operation("listDecisions", "What was decided, newest first")
        .text("With `Accept: application/x-ndjson`, all of them, one a line.")
        .parameter(query("campaign", "Those of this campaign.", number()))
        .parameter(query("subject", "Those about this subject.", text()))
        .parameter(query("outcome", "Those with this outcome.", text()))
        .parameter(query("from", "Decided from here on.", text()))
        .parameter(query("to", "Decided before this.", text()))
        .parameter(query("after", "The `next` of the page before.", text()))
        .parameter(query("limit", "Most decisions of a page.", limit))
        .answers::<Decisions>(200, "A page.", Value::Null)
        .refusal(&[Code::TimeInvalid], "A time cannot be read.")
}

#[derive(ToSchema)]
pub struct Usage {
    pub days: Vec<UsageDay>,
    /// Whether all decisions of the range were added up; there may be too many for one answer.
    pub complete: bool,
}

#[derive(ToSchema)]
pub struct UsageDay {
    /// Such as `2024-09-24`.
    pub day: Option<String>,
    pub step: String,
    /// Events on which the step was granted.
    #[schema(value_type = i128, minimum = 0)]
    pub granted: u64,
    #[schema(value_type = i128, minimum = 0)]
    pub subjects: u64,
    /// By budget.
    #[schema(value_type = BTreeMap<String, i64>)]
    pub spent: BTreeMap<String, i64>,
    /// Refused actions by reason.
    #[schema(value_type = BTreeMap<String, i64>)]
    pub refused: BTreeMap<String, i64>,
}

#[derive(ToSchema)]
pub struct BudgetReports {
    pub budgets: Vec<BudgetReport>,
}

#[derive(ToSchema)]
pub struct BudgetReport {
    pub name: String,
    pub unit: String,
    /// `campaign`, or the first day of the period.
    pub period: Option<String>,
    pub max: i64,
    /// What was granted and not returned, including what was spent.
    pub reserved: i64,
    /// What was delivered.
    pub spent: i64,
}

#[derive(ToSchema)]
pub struct Exposures {
    /// The key of the experiment; null without one.
    pub experiment: Option<String>,
    pub variants: Vec<VariantUnits>,
    /// Whether all units were counted; there may be too many for one answer.
    pub complete: bool,
}

#[derive(ToSchema)]
pub struct VariantUnits {
    pub name: String,
    #[schema(value_type = i128, minimum = 0)]
    pub units: u64,
}

#[derive(ToSchema)]
pub struct Decisions {
    pub decisions: Vec<Decision>,
    /// The parameter `after` of the next page; null at the end.
    pub next: Option<String>,
}

/// What was decided on one action of a step.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The id of the action; absent where nothing was granted.
    #[schema(required = false)]
    pub action: String,
    pub campaign: u32,
    pub version: u32,
    pub step: String,
    /// The name of the action within its step.
    pub name: String,
    pub subject: String,
    /// The event, by its source and id.
    pub source: String,
    pub event: String,
    pub event_time: String,
    pub decided_at: String,
    /// `granted`, or why not.
    pub outcome: String,
    pub variant: Option<String>,
    pub cost: Option<Cost>,
    /// What the decision is based on.
    #[schema(value_type = Object)]
    pub evidence: Value,
}

#[derive(ToSchema)]
pub struct Cost {
    pub budget: String,
    pub amount: i64,
}

//! What a step does: messages, rewards, points, webhooks and events.

use crate::cost::Amount;
use crate::delay::{Delay, Quiet};
use raingauge_core::filter::Condition;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Action {
    pub name: String,
    pub kind: ActionKind,
    /// The destination that it is sent to.
    pub to: String,
    /// The field of the recipient; the subject of the campaign, if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    /// Of a message: a template of the campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Of a message: a left-hand side that says the language, such as `table.users.locale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<String>,
    /// Of points: how many, or with `amount` the field that they follow from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multipliers: Option<Map<String, Json>>,
    /// Of points: the account of the programme that pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// Of an event that is emitted: its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// Of a webhook or an emitted event: further members of its data, whose texts are templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Map<String, Json>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<Quiet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Cancel>,
    /// What must hold, besides, when the action is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recheck: Option<Condition>,
    /// The variants of the experiment that get this action; all, if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionKind {
    Message,
    Reward,
    Points,
    Webhook,
    Emit,
}

impl ActionKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Reward => "reward",
            Self::Points => "points",
            Self::Webhook => "webhook",
            Self::Emit => "emit",
        }
    }
}

/// What an action takes from a budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// A budget of the campaign, or one that several share.
    pub budget: String,
    pub amount: Amount,
    /// Whether it is returned when the action is cancelled or refused.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub refund: bool,
}

fn yes() -> bool {
    true
}

fn is_yes(refund: &bool) -> bool {
    *refund
}

/// An event of the same subject that cancels an action before it is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cancel {
    pub event_types: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Condition>,
}

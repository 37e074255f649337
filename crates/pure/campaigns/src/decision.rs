//! Decisions: what was granted or refused on an event, and why.

use crate::campaign::CampaignId;
use crate::states::{BudgetKey, digest};
use raingauge_core::code::Code;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;
use std::fmt;
use std::str::FromStr;

/// The id of an action: a function of campaign, event, subject, step and action. An event that
/// comes back names the same action, under whatever version of the campaign it is decided.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub [u8; 16]);

impl ActionId {
    /// The beginning of every id in its text form.
    const PREFIX: &str = "act_";

    pub fn new(
        campaign: CampaignId,
        (source, event): (&str, &str),
        subject: &str,
        step: &str,
        action: &str,
    ) -> Self {
        let campaign = campaign.to_string();
        Self(digest(&["raingauge.action.1", &campaign, source, event, subject, step, action]))
    }
}

impl fmt::Display for ActionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{:032x}", Self::PREFIX, u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for ActionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl Serialize for ActionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ActionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The text is not the id of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the id of an action is `act_` and 32 hexadecimal digits in lower case")]
pub struct MalformedActionId;

impl FromStr for ActionId {
    type Err = MalformedActionId;

    fn from_str(text: &str) -> Result<Self, MalformedActionId> {
        let digits = text.strip_prefix(Self::PREFIX).ok_or(MalformedActionId)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() != 32 || !digits.bytes().all(is_digit) {
            return Err(MalformedActionId);
        }
        let number = u128::from_str_radix(digits, 16).map_err(|_| MalformedActionId)?;
        Ok(Self(number.to_be_bytes()))
    }
}

/// Why a step was granted or refused. The first gate that refuses is the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    Granted,
    /// Granted, and due later.
    Delayed,
    /// It would have been granted if the campaign were active.
    Shadow,
    OutsideActivity,
    TooLate,
    NoSubject,
    RuleFalse,
    StepFalse,
    LookupFailed,
    Duplicate,
    Holdout,
    Control,
    LimitReached,
    CapReached,
    BudgetExhausted,
    GroupLost,
    Cancelled,
    RecheckFailed,
    /// Its text or body could not be made of the event.
    RenderFailed,
}

impl Reason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Delayed => "delayed",
            Self::Shadow => "shadow",
            Self::OutsideActivity => "outside_activity",
            Self::TooLate => Code::TooLate.as_str(),
            Self::NoSubject => "no_subject",
            Self::RuleFalse => "rule_false",
            Self::StepFalse => "step_false",
            Self::LookupFailed => "lookup_failed",
            Self::Duplicate => "duplicate",
            Self::Holdout => "holdout",
            Self::Control => "control",
            Self::LimitReached => "limit_reached",
            Self::CapReached => "cap_reached",
            Self::BudgetExhausted => "budget_exhausted",
            Self::GroupLost => "group_lost",
            Self::Cancelled => "cancelled",
            Self::RecheckFailed => "recheck_failed",
            Self::RenderFailed => "render_failed",
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What an action costs, and has reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    pub budget: BudgetKey,
    pub amount: i64,
    /// Whether the amount is returned when the action is cancelled or refused.
    pub is_refunded: bool,
}

/// What was decided on one action of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The id that the action has, or would have had.
    pub action: ActionId,
    pub reason: Reason,
    pub campaign: CampaignId,
    pub version: u32,
    pub step: String,
    /// The action's name within its step.
    pub name: String,
    pub subject: String,
    pub variant: Option<String>,
    pub cost: Option<Cost>,
    /// When the action is due, in milliseconds since 1970; the time of the event, if there is no
    /// delay.
    pub due_ms: i64,
    /// What the decision is based on.
    pub evidence: Json,
}

impl Decision {
    /// Whether the action is to happen.
    pub fn is_granted(&self) -> bool {
        matches!(self.reason, Reason::Granted | Reason::Delayed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ids of the worked example, computed by another program.
    #[test]
    fn an_action_has_its_id_before_it_is_sent() {
        let id = |event: &str, step: &str, action: &str| {
            ActionId::new(7, ("mart", event), "u-7", step, action).to_string()
        };
        assert_eq!(id("o-3", "nudge", "msg"), "act_3607a20a5c6e936874c9ec850d9ffaac");
        assert_eq!(id("o-4", "reward", "voucher"), "act_bb9282cf452742f1394a4bc3dcf9c8a8");
        assert_eq!(id("o-4", "reward", "msg"), "act_cf48d82d6f6722789c3ea39c14362ba2");
        assert_ne!(id("o-4", "rewardm", "sg"), id("o-4", "reward", "msg"));
    }

    #[test]
    fn an_action_id_has_one_text() {
        let text = "act_0007a20a5c6e936874c9ec850d9ffaac";
        let id: ActionId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(id.0[..3], [0, 7, 0xa2]);
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<ActionId>(&json).unwrap(), id);

        for text in ["", "act_", "act_0007A20A5C6E936874C9EC850D9FFAAC", &text[4..], "act_+7"] {
            assert_eq!(text.parse::<ActionId>(), Err(MalformedActionId), "{text}");
        }
    }
}

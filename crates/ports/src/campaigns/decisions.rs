//! Decisions: what a campaign granted or refused, when and why.

use super::budgets::{read_cost, write_cost};
use super::bytes::{Reader, Writer};
use super::{ActionId, CampaignId, Cost};

/// What was decided on one action. Granted ones are what the campaign did; those refused behind the
/// step, by a limit or a budget, are kept as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The id that the action has, or would have had.
    pub action: ActionId,
    /// Whether the action is granted. An id is granted once.
    pub is_granted: bool,
    pub campaign: CampaignId,
    /// The version of the campaign that decided.
    pub version: u32,
    pub step: String,
    /// The action's name within its step.
    pub name: String,
    pub subject: String,
    /// The event, by its source and id.
    pub source: String,
    pub event: String,
    /// When the event happened, in milliseconds since 1970.
    pub event_ms: i64,
    /// When the decision was made, in milliseconds since 1970.
    pub decided_ms: i64,
    /// The code of the reason, such as `budget_exhausted`.
    pub outcome: String,
    pub variant: Option<String>,
    pub cost: Option<Cost>,
    /// What the decision is based on, as JSON.
    pub evidence: String,
}

/// The place of a decision among all: by time, then by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DecisionPlace {
    pub decided_ms: i64,
    pub action: ActionId,
}

/// Which decisions to read. Those without a campaign and a subject are read by time alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionQuery {
    pub campaign: Option<CampaignId>,
    pub subject: Option<String>,
    pub outcome: Option<String>,
    /// Decided from here on, in milliseconds since 1970.
    pub from_ms: i64,
    /// Decided before this, in milliseconds since 1970; `None` without an end.
    pub to_ms: Option<i64>,
    /// Continues behind this place, as the last answer said.
    pub after: Option<DecisionPlace>,
    pub len_max: usize,
}

/// A page of decisions, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    pub decisions: Vec<Decision>,
    /// Where the next page begins; `None` at the end. A page may be short, even empty, and have a
    /// next one: a call examines a bounded number of decisions.
    pub next: Option<DecisionPlace>,
}

impl Decision {
    const VERSION: u8 = 1;

    pub fn place(&self) -> DecisionPlace {
        DecisionPlace { decided_ms: self.decided_ms, action: self.action }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        Writer::new(Self::VERSION)
            .id(self.action)
            .u8(self.is_granted.into())
            .u32(self.campaign)
            .u32(self.version)
            .text(&self.step)
            .text(&self.name)
            .text(&self.subject)
            .text(&self.source)
            .text(&self.event)
            .i64(self.event_ms)
            .i64(self.decided_ms)
            .text(&self.outcome)
            .option(self.variant.as_deref(), Writer::text)
            .option(self.cost.as_ref(), write_cost)
            .text(&self.evidence)
            .finish()
    }

    /// `None` if the bytes are malformed, or of a newer version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut fields = Reader::new(bytes, Self::VERSION)?;
        let decision = Self {
            action: fields.id()?,
            is_granted: fields.bool()?,
            campaign: fields.u32()?,
            version: fields.u32()?,
            step: fields.text()?,
            name: fields.text()?,
            subject: fields.text()?,
            source: fields.text()?,
            event: fields.text()?,
            event_ms: fields.i64()?,
            decided_ms: fields.i64()?,
            outcome: fields.text()?,
            variant: fields.option(Reader::text)?,
            cost: fields.option(read_cost)?,
            evidence: fields.text()?,
        };
        fields.finish(decision)
    }
}

impl DecisionQuery {
    /// Whether the query asks for this decision, place and number aside.
    pub fn matches(&self, decision: &Decision) -> bool {
        self.campaign.is_none_or(|campaign| decision.campaign == campaign)
            && self.subject.as_ref().is_none_or(|subject| decision.subject == *subject)
            && self.outcome.as_ref().is_none_or(|outcome| decision.outcome == *outcome)
            && decision.decided_ms >= self.from_ms
            && self.to_ms.is_none_or(|to_ms| decision.decided_ms < to_ms)
    }
}

//! What the rules of a programme make of an event.

use crate::command::{Award, Basis, Body, Command};
use crate::limits::{MEMBER_LEN_MAX, REFERENCE_LEN_MAX};
use crate::programme::{EVENT_SOURCE, Programme, Rule};
use crate::refused;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::event::Event;
use raingauge_core::field::{self, Scalar};
use std::sync::Arc;

/// A rule that an event matches, and that cannot make a command of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpriced {
    /// A table has no row: it may come, so that a later try succeeds.
    Missing { rule: u32, key: Arc<str>, detail: String },
    /// It will not succeed at any time.
    Refused { rule: u32, key: Arc<str>, refusal: Refusal },
}

impl Programme {
    /// The command of each rule that the event matches, in the order of the document.
    pub fn price_event(&self, event: &Event<'_>) -> Vec<Result<Command, Unpriced>> {
        let Some(group) = self.group_of(&event.kind).map(|group| &self.groups[group]) else {
            return Vec::new();
        };
        if event.kind.is_empty() {
            return Vec::new();
        }

        let mut found = Vec::with_capacity(group.fields.len());
        field::extract(event, &group.fields, &mut found);
        let matching = group.rules.iter().filter(|rule| {
            rule.is_active(event.time_ms)
                && rule.filter.as_ref().is_none_or(|filter| filter.holds(&found))
        });
        matching.map(|rule| self.command_of(rule, event, &found)).collect()
    }

    fn command_of(
        &self,
        rule: &Rule,
        event: &Event<'_>,
        found: &[Option<Scalar<'_>>],
    ) -> Result<Command, Unpriced> {
        let key = Command::event_key(rule.id, &event.source, &event.id);
        let command = self.filled(rule, event, found, &key);
        command.map_err(|refusal| match refusal.code {
            Code::FactorMissing => Unpriced::Missing { rule: rule.id, key, detail: refusal.detail },
            _ => Unpriced::Refused { rule: rule.id, key, refusal },
        })
    }

    fn filled(
        &self,
        rule: &Rule,
        event: &Event<'_>,
        found: &[Option<Scalar<'_>>],
        key: &Arc<str>,
    ) -> Result<Command, Refusal> {
        let text = |field: Option<usize>, len_max: usize, name: &str, code: Code| {
            let Some(text) = field.map(|field| found[field].as_ref().map(Scalar::as_text)) else {
                return Ok(None);
            };
            match text {
                Some(text) if !text.is_empty() && text.len() <= len_max => {
                    Ok(Some(Arc::from(text)))
                }
                Some(_) => refused(code, format!("the {name} must have 1 to {len_max} bytes")),
                None => refused(code, format!("the {name} is missing")),
            }
        };
        let member = text(rule.member, MEMBER_LEN_MAX, "member", Code::MemberInvalid)?;
        let member =
            member.ok_or_else(|| Refusal::new(Code::MemberInvalid, "the rule names no member"))?;

        let names = rule.reverses.or(rule.reference);
        let reference = text(names, REFERENCE_LEN_MAX, "reference", Code::PointsInvalid)?;
        let body = match (rule.reverses, rule.amount) {
            (None, _) => {
                let priced = self.price(rule, found, None, &[])?;
                Body::Award(Award::of(Basis::Priced(priced)))
            }
            (Some(_), None) => {
                Body::Reverse { key: None, source: None, amount: None, points: None }
            }
            (Some(_), Some(field)) => {
                let amount = super::amount_in(found[field].as_ref())?;
                Body::Reverse { key: None, source: None, amount: Some(amount), points: None }
            }
        };

        Ok(Command {
            programme: self.name().clone(),
            member,
            key: key.clone(),
            source: EVENT_SOURCE.into(),
            occurred_ms: Some(event.time_ms),
            accepted_ms: None,
            reference,
            reason: Some(rule.name.clone()),
            body,
        })
    }
}

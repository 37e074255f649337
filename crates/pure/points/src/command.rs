//! Commands: what callers and events ask the ledger to do. Their JSON is the message of a queue.

use crate::Points;
use crate::day::Day;
use crate::identity::{Key, WalletId};
use crate::limits::POINTS_KEY_LEN_MAX;
use crate::number::Number;
use crate::pricing::Priced;
use crate::programme::EVENT_SOURCE;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    pub programme: Arc<str>,
    pub member: Arc<str>,
    /// What makes the command happen once, within programme and source.
    pub key: Arc<str>,
    /// Empty for the operator; otherwise the source of the caller's token, such as a partner.
    #[serde(default)]
    pub source: Arc<str>,
    /// `None`: when it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurred_ms: Option<i64>,
    /// When it was accepted, if that was before its turn. The same command that is sent again is
    /// accepted at another time, so this is not what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
    pub body: Body,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Body {
    Award(Award),
    Burn {
        points: Points,
    },
    Hold {
        /// `None`: the price of the reward.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        points: Option<Points>,
        /// When the hold is released by itself; the programme's time where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reward: Option<Arc<str>>,
    },
    Capture {
        /// The key of the hold.
        hold: Arc<str>,
        /// `None`: all of it. What is left is released.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        points: Option<Points>,
    },
    Release {
        hold: Arc<str>,
    },
    Transfer {
        /// The other member.
        to: Arc<str>,
        points: Points,
    },
    ExchangeOut {
        partner: Arc<str>,
        points: Points,
    },
    /// Either in points of the programme, or in those of the partner.
    ExchangeIn {
        partner: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        points: Option<Points>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        amount: Option<Number>,
    },
    /// Takes an award back: the part that follows from an amount, these points, or all of it.
    Reverse {
        /// The key of the award; `None`: the command's reference names it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Arc<str>>,
        /// The source of that key, where it is not the command's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        amount: Option<Number>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        points: Option<Points>,
    },
    Adjust {
        points: Points,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_on: Option<Day>,
    },
    /// Sets the tier, as another service decided.
    Tier {
        tier: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Day>,
    },
    Close,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Award {
    pub basis: Basis,
    /// The programme's default where absent. A rule's own budget goes before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_days: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_on: Option<Day>,
    /// Whether it moves the expiry by activity; as the rule says where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<bool>,
}

impl Award {
    pub fn of(basis: Basis) -> Self {
        Self { basis, budget: None, pending_days: None, expires_on: None, extends: None }
    }
}

/// What the points of an award follow from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Basis {
    /// A number of points, without a rule.
    Points(Points),
    /// An amount with facts, from which rule and factors are found, or with factors of its own.
    Amount {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        amount: Option<Number>,
        /// A rule, whose filter is not asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event_type: Option<Arc<str>>,
        /// An object: the fields of `data`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        facts: Option<Json>,
        /// In place of tables of the same name, or beside them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        factors: Vec<(Arc<str>, Number)>,
    },
    /// An event that was priced, but for the tier.
    Priced(Priced),
}

impl Command {
    pub fn wallet(&self) -> WalletId {
        WalletId { programme: self.programme.clone(), member: self.member.clone() }
    }

    pub fn key_hash(&self) -> Key {
        Key::of(&self.programme, &self.source, &self.key)
    }

    /// The key of what a rule makes of an event, which `source` and `id` identify.
    pub fn event_key(rule: u32, source: &str, id: &str) -> Arc<str> {
        // The length keeps two pairs apart whose texts, put together, are equal. What stands behind
        // the rule is the event's, so that its awards are recognized.
        let mut text = String::with_capacity(32 + source.len() + id.len());
        write!(text, "{rule}:{}:", source.len()).expect("a string takes all");
        text.push_str(source);
        text.push(':');
        text.push_str(id);
        if text.len() <= POINTS_KEY_LEN_MAX {
            return text.into();
        }
        let (_, event) = text.split_once(':').expect("it was written");
        let digest = Sha256::digest(event.as_bytes());
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{rule}:{hex}").into()
    }

    /// The reference of an operator's reversal, which may be the key of an award that has none.
    pub(crate) fn reference_as_key(&self) -> Option<&str> {
        let is_open = matches!(self.body, Body::Reverse { key: None, source: None, .. });
        self.reference.as_deref().filter(|_| is_open && self.source.is_empty())
    }

    /// What was known of an award when its event was priced.
    pub fn priced(&self) -> Option<&Priced> {
        match &self.body {
            Body::Award(Award { basis: Basis::Priced(priced), .. }) => Some(priced),
            _ => None,
        }
    }

    pub fn is_of_event(&self) -> bool {
        &*self.source == EVENT_SOURCE
    }

    /// A hash of what the command asks for, to recognize another one with the same key. An event
    /// is what its identity says, whatever its price is by now.
    pub fn fingerprint(&self) -> u64 {
        if self.is_of_event() {
            return 0;
        }
        // Points without more are what most callers send; JSON would be the dearest part of them.
        let mut text = Vec::with_capacity(128);
        for part in [&self.member, &self.programme] {
            text.extend_from_slice(part.as_bytes());
            text.push(0);
        }
        for part in [&self.reference, &self.reason] {
            text.push(u8::from(part.is_some()));
            text.extend_from_slice(part.as_deref().unwrap_or("").as_bytes());
            text.push(0);
        }
        text.extend_from_slice(&self.occurred_ms.unwrap_or(i64::MIN).to_le_bytes());

        let body = serde_json::to_vec(&self.body).expect("commands have plain members");
        text.extend_from_slice(&body);
        xxh3_64(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(body: Body) -> Command {
        Command {
            programme: "p".into(),
            member: "m".into(),
            key: "k".into(),
            source: "".into(),
            occurred_ms: None,
            accepted_ms: None,
            reference: None,
            reason: None,
            body,
        }
    }

    #[test]
    fn messages_lead_back() {
        let amount = Basis::Amount {
            amount: Number::parse("15.5"),
            rule: Some(1),
            event_type: None,
            facts: Some(serde_json::json!({"country": "SG"})),
            factors: vec![("own".into(), Number::parse("0.5").unwrap())],
        };
        for body in [
            Body::Award(Award::of(Basis::Points(100))),
            Body::Award(Award::of(amount)),
            Body::Hold { points: Some(1), until_ms: None, reward: None },
            Body::Tier { tier: "gold".into(), until: "2026-12-31".parse().ok() },
            Body::Close,
        ] {
            let command = command(body);
            let json = serde_json::to_string(&command).unwrap();
            assert_eq!(serde_json::from_str::<Command>(&json).unwrap(), command, "{json}");
        }
    }

    #[test]
    fn a_fingerprint_depends_on_what_is_asked_for() {
        let first = command(Body::Burn { points: 1 });
        let mut other = first.clone();
        assert_eq!(first.fingerprint(), other.fingerprint());
        other.reason = Some("".into());
        assert_ne!(first.fingerprint(), other.fingerprint());
        assert_ne!(first.fingerprint(), command(Body::Burn { points: 2 }).fingerprint());
    }

    #[test]
    fn keys_of_events_are_short_and_apart() {
        assert_ne!(Command::event_key(1, "a:b", "c"), Command::event_key(1, "a", "b:c"));
        assert_ne!(Command::event_key(1, "a", "b"), Command::event_key(2, "a", "b"));
        let long = Command::event_key(1, &"s".repeat(200), "id");
        assert!(long.len() <= POINTS_KEY_LEN_MAX);
        assert_ne!(long, Command::event_key(1, &"s".repeat(201), "id"));
    }
}

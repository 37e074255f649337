//! The items of batches: awards, transactions and corrections, as requests write them.

use crate::refused::{Answer, Refused};
use raingauge_awarding::limits::REQUEST_COMMANDS_MAX;
use raingauge_core::code::{Code, Refusal};
use raingauge_http::change::json_within;
use raingauge_points::{Day, Number};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// Most arrays and objects in the body of a batch: an award has facts.
const CONTAINERS_MAX: usize = 16_000;

/// An award.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AwardRequest {
    pub programme: Arc<str>,
    pub member: Arc<str>,
    pub key: Arc<str>,
    /// How many, in the programme's unit.
    pub points: Option<Number>,
    /// What they follow from.
    pub amount: Option<Number>,
    pub rule: Option<u32>,
    pub event_type: Option<Arc<str>>,
    pub facts: Option<Value>,
    /// The partner's own factors, by name, or a list without names.
    #[serde(default)]
    pub factors: Factors,
    pub occurred_at: Option<Time>,
    pub reason: Option<Arc<str>>,
    pub reference: Option<Arc<str>>,
    pub budget: Option<Arc<str>>,
    pub pending_days: Option<u16>,
    pub expires_on: Option<Day>,
    pub extends: Option<bool>,
}

/// A transaction or a correction.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TransactionRequest {
    pub kind: String,
    pub programme: Arc<str>,
    pub member: Arc<str>,
    pub key: Arc<str>,
    pub points: Option<Number>,
    /// The member that a transfer goes to, or the partner of an exchange.
    pub to: Option<Arc<str>>,
    pub partner: Option<Arc<str>>,
    /// The key of a hold.
    pub hold: Option<Arc<str>>,
    pub until: Option<Value>,
    pub reward: Option<Arc<str>>,
    pub reference: Option<Arc<str>>,
    /// The key of the award that is reversed.
    pub award: Option<Arc<str>>,
    /// The partner whose key that is, or `events`.
    pub source: Option<Arc<str>>,
    pub amount: Option<Number>,
    pub reason: Option<Arc<str>>,
    pub tier: Option<Arc<str>>,
    pub expires_on: Option<Day>,
    pub occurred_at: Option<Time>,
}

/// Factors in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Factors(pub Vec<(Arc<str>, Number)>);

impl<'de> Deserialize<'de> for Factors {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Named(std::collections::BTreeMap<Arc<str>, Number>),
            Listed(Vec<Number>),
        }

        Ok(Self(match Written::deserialize(deserializer)? {
            Written::Named(named) => named.into_iter().collect(),
            Written::Listed(listed) => listed
                .into_iter()
                .enumerate()
                .map(|(place, factor)| (format!("factor {}", place + 1).into(), factor))
                .collect(),
        }))
    }
}

/// A moment in milliseconds since 1970, written as RFC 3339 or in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub i64);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Value::deserialize(deserializer)?;
        time_of(&written).map(Self).ok_or_else(|| {
            serde::de::Error::custom("a time is RFC 3339, such as 2026-11-23T06:00:00Z, or seconds")
        })
    }
}

/// Reads a moment, in milliseconds since 1970.
pub fn time_of(written: &Value) -> Option<i64> {
    match written {
        Value::Number(seconds) => match seconds.as_i64() {
            Some(seconds) => seconds.checked_mul(1_000),
            None => seconds.as_f64().map(|seconds| (seconds * 1_000.0).round() as i64),
        },
        Value::String(text) => Some(text.parse::<jiff::Timestamp>().ok()?.as_millisecond()),
        _ => None,
    }
}

/// The body of a batch.
pub struct Batch {
    /// Each item, or why it cannot be read.
    pub items: Vec<Value>,
    /// Whether they happen together or not at all.
    pub is_atomic: bool,
}

impl Batch {
    /// Reads a body whose member `name` is the list.
    pub fn read(body: &[u8], name: &str) -> Answer<Self> {
        let mut document = json_within(body, CONTAINERS_MAX)?;
        let known = |member: &String| member == name || member == "atomic";
        if let Some(other) =
            document.as_object().and_then(|members| members.keys().find(|member| !known(member)))
        {
            let detail = format!("there is no member {other}: send {name}");
            return Err(Refused::new(Code::RequestMalformed, detail));
        }

        let Some(Value::Array(items)) = document.get_mut(name).map(Value::take) else {
            let detail = format!("send {{\"{name}\": […]}}");
            return Err(Refused::new(Code::RequestMalformed, detail));
        };
        if items.len() > REQUEST_COMMANDS_MAX {
            let detail =
                format!("a request has at most {REQUEST_COMMANDS_MAX} {name}: send several");
            return Err(Refused::new(Code::TooManyAwards, detail));
        }
        let is_atomic = match document.get("atomic") {
            None => false,
            Some(Value::Bool(is_atomic)) => *is_atomic,
            Some(other) => {
                let detail = format!("atomic is true or false, and not {other}");
                return Err(Refused::new(Code::RequestMalformed, detail));
            }
        };
        Ok(Self { items, is_atomic })
    }

    /// Reads a body whose items are decided each by itself.
    pub fn of_singles(body: &[u8], name: &str) -> Answer<Self> {
        let batch = Self::read(body, name)?;
        if batch.is_atomic {
            let detail = format!("{name} do not happen together: each has its own answer");
            return Err(Refused::new(Code::RequestMalformed, detail));
        }
        Ok(batch)
    }
}

/// Reads an item of a batch.
pub fn item_of<T: DeserializeOwned>(item: Value) -> Result<T, Refusal> {
    serde_json::from_value(item)
        .map_err(|error| Refusal::new(Code::RequestMalformed, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_award_is_read_with_its_numbers() {
        let award: AwardRequest = item_of(json!({
            "programme": "grab-sg", "member": "bob", "key": "o-1", "amount": "15.00",
            "facts": {"country": "SG"}, "occurredAt": "2026-11-23T06:00:00.5Z",
            "factors": {"own": 2.5}, "expiresOn": "2027-01-31",
        }))
        .unwrap();
        assert_eq!(award.amount, Number::parse("15"));
        assert_eq!(award.occurred_at, Some(Time(1_795_413_600_500)));
        assert_eq!(award.factors.0, [("own".into(), Number::parse("2.5").unwrap())]);

        let missing = item_of::<AwardRequest>(json!({"programme": "grab-sg"})).unwrap_err();
        assert_eq!(missing.code, Code::RequestMalformed);
        let more = json!({"programme": "p", "member": "m", "key": "k", "point": 5});
        assert!(item_of::<AwardRequest>(more).unwrap_err().detail.contains("point"));
    }

    #[test]
    fn a_batch_is_a_named_list() {
        let batch = Batch::read(br#"{"awards": [{}, {}]}"#, "awards").unwrap();
        assert_eq!((batch.items.len(), batch.is_atomic), (2, false));
        assert!(
            Batch::read(br#"{"transactions": [], "atomic": true}"#, "transactions")
                .unwrap()
                .is_atomic
        );
        let malformed = [
            "[]",
            "{}",
            r#"{"awards": {}}"#,
            r#"{"awards": [], "atom": true}"#,
            r#"{"awards": [], "atomic": 1}"#,
        ];
        for wrong in malformed {
            assert!(Batch::read(wrong.as_bytes(), "awards").is_err(), "{wrong}");
        }
        let together = |atomic: bool| json!({"awards": [], "atomic": atomic}).to_string();
        assert!(Batch::of_singles(together(true).as_bytes(), "awards").is_err());
        assert!(Batch::of_singles(together(false).as_bytes(), "awards").is_ok());
        let many = json!({"awards": vec![0; REQUEST_COMMANDS_MAX + 1]}).to_string();
        let refused = Batch::read(many.as_bytes(), "awards").err().unwrap();
        assert_eq!(refused.0.code(), Code::TooManyAwards);
    }
}

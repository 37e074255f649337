//! The items of batches: awards, transactions and corrections, as requests write them.

use crate::refused::{Answer, Refused};
use crate::transaction_kind::TransactionKind;
use raingauge_awarding::limits::REQUEST_COMMANDS_MAX;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::json::{changed_number, check_containers};
use raingauge_http::change::json_within;
use raingauge_points::{Day, Number};
use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Most arrays and objects in the body of a batch: an award has facts.
const CONTAINERS_MAX: usize = 16_000;
/// Members of items whose numbers are points, or points follow from them.
const WORTH_MEMBERS: [&str; 4] = ["points", "amount", "facts", "factors"];

/// An award.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an award, as an object")]
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
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object with a kind")]
pub struct TransactionRequest {
    pub kind: TransactionKind,
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

impl TransactionRequest {
    /// Refuses members that mean nothing for the kind: a caller that sends them expects something
    /// else of it.
    pub fn check_members(&self) -> Result<(), Refusal> {
        let known = self.kind.members();
        let members = [
            ("points", self.points.is_some()),
            ("to", self.to.is_some()),
            ("partner", self.partner.is_some()),
            ("hold", self.hold.is_some()),
            ("until", self.until.is_some()),
            ("reward", self.reward.is_some()),
            ("award", self.award.is_some()),
            ("source", self.source.is_some()),
            ("amount", self.amount.is_some()),
            ("tier", self.tier.is_some()),
            ("expiresOn", self.expires_on.is_some()),
        ];
        let foreign = members.iter().find(|(name, is_there)| *is_there && !known.contains(name));
        match foreign {
            Some((name, _)) => {
                let detail = format!("the kind {} has no `{name}`", self.kind);
                Err(Refusal::new(Code::RequestMalformed, detail))
            }
            None => Ok(()),
        }
    }
}

/// Factors in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Factors(pub Vec<(Arc<str>, Number)>);

impl<'de> Deserialize<'de> for Factors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "factors are numbers: an object by name, or a list")]
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
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Value::deserialize(deserializer)?;
        time_of(&written).map(Self).ok_or_else(|| {
            D::Error::custom("a time is RFC 3339, such as 2026-11-23T06:00:00Z, or seconds")
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

/// The body of a batch of requests `T`.
#[derive(Debug)]
pub struct Batch<T> {
    /// Each item, or why it cannot be read.
    pub items: Vec<Result<T, Refusal>>,
    /// Whether they happen together or not at all.
    pub is_atomic: bool,
}

impl<T: DeserializeOwned> Batch<T> {
    /// Reads a body whose member `name` is the list.
    pub fn read(body: &[u8], name: &str) -> Answer<Self> {
        // A tree takes most of the time of an award. It is needed only to say what is wrong.
        let is_sound =
            check_containers(body, CONTAINERS_MAX).is_ok() && changed_number(body).is_none();
        match is_sound.then(|| typed(body, name)).flatten() {
            Some((items, is_atomic)) => {
                Ok(Self { items: items.into_iter().map(Ok).collect(), is_atomic })
            }
            None => Self::by_tree(body, name),
        }
    }

    /// The same by a tree, which tells items that are sound from others, and which of two members
    /// with one name counts.
    fn by_tree(body: &[u8], name: &str) -> Answer<Self> {
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
        let texts = texts_of(body, name).unwrap_or_default();
        let items = items.into_iter().enumerate().map(|(place, item)| {
            let item = item_of(item)?;
            texts.get(place).map_or(Ok(()), |text| check_numbers(text))?;
            Ok(item)
        });
        Ok(Self { items: items.collect(), is_atomic })
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

/// The items of a body, and whether they happen together; `None` where anything is wrong.
fn typed<T: DeserializeOwned>(body: &[u8], name: &str) -> Option<(Vec<T>, bool)> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let members = Members { name, items: PhantomData };
    let (items, is_atomic) = deserializer.deserialize_map(members).ok()?;
    deserializer.end().ok()?;
    (items.len() <= REQUEST_COMMANDS_MAX).then_some((items, is_atomic))
}

/// The members of a body, each at most once.
struct Members<'a, T> {
    name: &'a str,
    items: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<'_, T> {
    type Value = (Vec<T>, bool);

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an object with {}", self.name)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut items = None;
        let mut is_atomic = None;
        while let Some(member) = members.next_key::<String>()? {
            if member == self.name && items.is_none() {
                items = Some(members.next_value()?);
            } else if member == "atomic" && is_atomic.is_none() {
                is_atomic = Some(members.next_value()?);
            } else {
                return Err(A::Error::custom("a member too many"));
            }
        }
        let items = items.ok_or_else(|| A::Error::custom("no items"))?;
        Ok((items, is_atomic.unwrap_or(false)))
    }
}

/// The items of a body as they are written, where a tree has one of its numbers otherwise.
fn texts_of<'a>(body: &'a [u8], name: &str) -> Option<Vec<&'a RawValue>> {
    changed_number(body)?;
    let members: HashMap<String, &'a RawValue> = serde_json::from_slice(body).ok()?;
    let items: &'a RawValue = members.get(name).copied()?;
    serde_json::from_str(items.get()).ok()
}

/// Refuses an item with a number that points may follow from and that is not read as it is written.
fn check_numbers(item: &RawValue) -> Result<(), Refusal> {
    let members: HashMap<String, &RawValue> = serde_json::from_str(item.get()).unwrap_or_default();
    let worth = WORTH_MEMBERS.iter().filter_map(|name| members.get(*name));
    match worth.filter_map(|value| changed_number(value.get().as_bytes())).next() {
        Some(number) => Err(Refusal::new(Code::RequestMalformed, inexact(number))),
        None => Ok(()),
    }
}

/// Why a number is refused.
pub fn inexact(number: &str) -> String {
    format!("{number} has more digits than are read of a number: write it as a text")
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
        let factors = json!({"programme": "p", "member": "m", "key": "k", "factors": {"own": "x"}});
        let detail = item_of::<AwardRequest>(factors).unwrap_err().detail;
        assert!(detail.starts_with("factors are numbers"), "{detail}");
        let detail = item_of::<AwardRequest>(json!(7)).unwrap_err().detail;
        assert!(detail.ends_with("an award, as an object"), "{detail}");
    }

    #[test]
    fn a_batch_is_a_named_list() {
        type Any = Batch<Value>;
        let batch = Any::read(br#"{"awards": [{}, {}]}"#, "awards").unwrap();
        assert_eq!((batch.items.len(), batch.is_atomic), (2, false));
        assert!(
            Any::read(br#"{"transactions": [], "atomic": true}"#, "transactions")
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
            assert!(Any::read(wrong.as_bytes(), "awards").is_err(), "{wrong}");
        }
        let together = |atomic: bool| json!({"awards": [], "atomic": atomic}).to_string();
        assert!(Any::of_singles(together(true).as_bytes(), "awards").is_err());
        assert!(Any::of_singles(together(false).as_bytes(), "awards").is_ok());
        let many = json!({"awards": vec![0; REQUEST_COMMANDS_MAX + 1]}).to_string();
        let refused = Any::read(many.as_bytes(), "awards").err().unwrap();
        assert_eq!(refused.0.code(), Code::TooManyAwards);
    }

    /// What is read by types must be what is read by a tree, refusals and their texts included.
    fn assert_equal<T: DeserializeOwned + fmt::Debug>(body: &str, name: &str) {
        let by_types = Batch::<T>::read(body.as_bytes(), name);
        let by_tree = Batch::<T>::by_tree(body.as_bytes(), name);
        assert_eq!(format!("{by_types:?}"), format!("{by_tree:?}"), "{body}");
    }

    #[test]
    fn types_read_what_a_tree_does() {
        let sound = r#""programme": "p", "member": "m\u00e9", "key": "k""#;
        let members = [
            r#""points": 5"#,
            r#""points": "5.50", "reason": null"#,
            r#""points": 1e3, "budget": "b", "pendingDays": 3, "extends": false"#,
            r#""amount": 15.10, "facts": {"a": [1, {"b": null}], "a": 2}, "rule": 7"#,
            r#""amount": 12345678901234567890123, "factors": [2, "0.5"]"#,
            r#""factors": {"own": 2.5, "own": 3}, "expiresOn": "2027-01-31""#,
            r#""factors": null"#,
            r#""occurredAt": 1795413600.25"#,
            r#""occurredAt": "2026-11-23T06:00:00Z""#,
            r#""occurredAt": "soon""#,
            r#""points": "five""#,
            r#""points": {}"#,
            r#""point": 5"#,
            r#""key": "twice""#,
            r#""points": 5, "points": 6"#,
            r#""pendingDays": -1"#,
            r#""rule": 1.0"#,
            r#""kind": "burn", "points": 3"#,
            r#""kind": "tier", "tier": "gold", "until": "2026-12-31""#,
            r#""kind": 3"#,
            r#""points": 1e999"#,
            r#""reason": "\ud800""#,
            r#""points": 05"#,
        ];
        for name in ["awards", "transactions"] {
            for members in members {
                let item = format!("{{{sound}, {members}}}");
                for body in [
                    format!(r#"{{"{name}": [{item}]}}"#),
                    format!(r#" {{"atomic": true, "{name}": [{item}, {{{sound}}}, 7]}} "#),
                    format!(r#"{{"{name}": [], "{name}": [{item}], "atomic": false}}"#),
                    format!(r#"{{"{name}": [{item}], "atomic": null}}"#),
                    format!(r#"{{"{name}": [{item}], "other": 1}}"#),
                    format!(r#"{{"{name}": [{item}]}} and more"#),
                    format!(r#"[[{item}], true]"#),
                    format!(r#"{{"{name}": [["p", "m", "k", 5]]}}"#),
                ] {
                    assert_equal::<AwardRequest>(&body, name);
                    assert_equal::<TransactionRequest>(&body, name);
                }
            }
        }
    }

    #[test]
    fn numbers_that_json_changes_are_refused() {
        let read = |member: &str| {
            let awards = format!(
                r#"{{"awards": [{{"programme": "p", "member": "m", "key": "k", {member}}}, 7]}}"#
            );
            let batch = Batch::<AwardRequest>::read(awards.as_bytes(), "awards").unwrap();
            batch.items.into_iter().next().unwrap().map_err(|refusal| refusal.detail)
        };
        let number = "99999999999999.4999";
        for member in [
            format!(r#""facts": {{"a": {{"amount": {number}}}}}"#),
            format!(r#""facts": 1, "f\u0061cts": {{"amount": [{number}]}}"#),
            format!(r#""amount": {number}"#),
            format!(r#""amount": 1, "factors": {{"own": {number}}}"#),
        ] {
            let detail = read(&member).unwrap_err();
            assert!(detail.starts_with(&format!("{number} has more digits")), "{member}: {detail}");
        }
        assert!(read(r#""facts": {"amount": "99999999999999.4999"}"#).is_ok());
        assert!(read(r#""facts": {"amount": 99999999999999.5}"#).is_ok());
        assert!(read(r#""amount": 5, "occurredAt": 1795413600.1234567"#).is_ok());
    }

    #[test]
    fn a_sound_body_needs_no_tree() {
        let award = json!({
            "programme": "grab-sg", "member": "bob", "key": "o-1", "amount": "15.00",
            "facts": {"country": "SG"}, "occurredAt": "2026-11-23T06:00:00.5Z",
        });
        let body = json!({"awards": [award]}).to_string();
        let (items, is_atomic) = typed::<AwardRequest>(body.as_bytes(), "awards").unwrap();
        assert_eq!((items.len(), is_atomic), (1, false));
    }
}

//! Values that have to be loaded: their keys, and evaluations that wait for them.

use super::{Lookup, LookupRule};
use crate::campaign::CampaignId;
use crate::rule::Lhs;
use raingauge_core::event::Event;
use raingauge_core::field::{Field, Scalar, extract};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LookupClass {
    Segment,
    Table,
    Database,
    Http,
    Counter,
}

/// What is looked up. The answer is JSON: `true` or `false` of a segment, an object of columns or
/// null of a table and a database, the body of a service, and the number of a counter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LookupKey {
    pub class: LookupClass,
    /// The name of the lookup, or the template of the counter.
    pub name: String,
    pub key: String,
    /// Of a counter: from and until when, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_s: Option<(i64, i64)>,
}

/// An evaluation that waits for answers, beside the event itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    pub campaigns: Vec<CampaignId>,
    /// Tallies as they were, by their owners in hexadecimal, before and after the event.
    pub counts: Vec<(String, i64, i64)>,
    pub answers: Vec<(LookupKey, Json)>,
}

/// The scalar at a path into an answer.
pub fn scalar_at<'j>(answer: &'j Json, path: &[Box<str>]) -> Option<Scalar<'j>> {
    let value = path.iter().try_fold(answer, |value, step| value.get(&**step))?;
    match value {
        Json::String(text) => Some(Scalar::Text(text.as_str().into())),
        Json::Number(number) => Some(Scalar::Number(number.to_string().into())),
        Json::Bool(flag) => Some(Scalar::Bool(*flag)),
        _ => None,
    }
}

/// The field that a path names, as a left-hand side writes it.
pub(crate) fn field_of(path: &str) -> Option<Field> {
    match Lhs::parse(path)? {
        Lhs::Field(field) => Some(field),
        _ => None,
    }
}

/// The document of the lookup that a left-hand side reads.
pub(super) fn lookup_name(lhs: &Lhs) -> Option<String> {
    match lhs {
        Lhs::Segment(name) => Some(format!("segment.{name}")),
        Lhs::Table { name, .. } => Some(format!("table.{name}")),
        Lhs::Database { name, .. } => Some(format!("db.{name}")),
        Lhs::Http { name, .. } => Some(format!("http.{name}")),
        _ => None,
    }
}

impl Lookup {
    /// The lookup of a left-hand side, by the subject where its document names no other key.
    pub(crate) fn of(
        lhs: &Lhs,
        rules: &BTreeMap<String, LookupRule>,
        subject: &Field,
    ) -> Option<Self> {
        let (class, name) = match lhs {
            Lhs::Segment(name) => (LookupClass::Segment, name),
            Lhs::Table { name, .. } => (LookupClass::Table, name),
            Lhs::Database { name, .. } => (LookupClass::Database, name),
            Lhs::Http { name, .. } => (LookupClass::Http, name),
            _ => return None,
        };
        let rule = rules.get(&lookup_name(lhs)?).cloned().unwrap_or_default();
        let key = rule.key.as_deref().and_then(field_of);
        Some(Self {
            class,
            name: name.clone(),
            key: key.unwrap_or_else(|| subject.clone()),
            on_error: rule.on_error,
        })
    }

    pub(super) fn key_for(&self, value: &Scalar<'_>) -> LookupKey {
        let name = self.name.to_string();
        LookupKey { class: self.class, name, key: value.as_text().to_owned(), range_s: None }
    }

    /// What is looked up for an event; `None` for one without the key.
    pub(crate) fn key_in(&self, event: &Event<'_>) -> Option<LookupKey> {
        let mut values = Vec::new();
        extract(event, std::slice::from_ref(&self.key), &mut values);
        values.first()?.as_ref().map(|value| self.key_for(value))
    }
}

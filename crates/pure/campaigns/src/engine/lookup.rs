//! Values that have to be loaded: their keys, and evaluations that wait for them.

use crate::campaign::CampaignId;
use raingauge_core::field::Scalar;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

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

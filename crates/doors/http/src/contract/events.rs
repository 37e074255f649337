//! Events and buckets.

use super::parameters::{header, query};
use super::refusals::Problem;
use super::words::words;
use super::{Operation, Refusal, Shared};
use raingauge_core::bucket;
use serde_json::{Value, json};
use utoipa::ToSchema;

pub fn post() -> Operation {
    let event = json!({
        "specversion": "1.0", "id": "7", "source": "gauge-1", "type": "rain_drop",
        "time": "2024-09-24T22:03:50Z", "data": { "city_id": 111_222, "millimetres": 3 },
    });
    let text = "Takes one CloudEvent, an array, lines, or attributes in `ce-` headers (binary \
                mode, the body is the data). Answers when the good events are durable in the log; \
                they are counted within a second, or before the answer with `wait=applied`. Good \
                events are taken although others of the same request are refused. Sending a \
                request again is safe: an event whose `source` and `id` are known is a duplicate \
                and is not counted again.";

    let wait = "`applied`: answer only when the events are counted, so that the next count holds \
                them. Products add further names, such as `decided`.";
    let packed = "`gzip` when the body is packed.";
    let operation = Operation::new("events", "postEvents", "Count events")
        .text(text)
        .parameter(query("wait", wait, json!({ "type": "string", "examples": ["applied"] })))
        .parameter(header(
            "content-encoding",
            packed,
            json!({ "type": "string", "enum": ["gzip", "identity"] }),
        ));

    let attributes = [
        ("ce-specversion", "Binary mode: `1.0`."),
        ("ce-id", "Binary mode: the attribute `id`, percent-encoded."),
        ("ce-source", "Binary mode: the attribute `source`."),
        ("ce-type", "Binary mode: the attribute `type`."),
        ("ce-subject", "Binary mode: the attribute `subject`, where there is one."),
        ("ce-time", "Binary mode: the attribute `time`, RFC 3339."),
    ];

    attributes
        .into_iter()
        .fold(operation, |operation, (name, text)| {
            operation.parameter(header(name, text, json!({ "type": "string" })))
        })
        .body_as::<CloudEvent>("application/cloudevents+json", event.clone())
        .body_as::<CloudEvents>("application/cloudevents-batch+json", json!([event]))
        .body_as::<EventLines>("application/x-ndjson", Value::Null)
        .body_as::<JsonEvents>("application/json", Value::Null)
        .answers::<Receipt>(
            200,
            "What became of the events.",
            json!({ "accepted": 1, "duplicates": 0, "rejected": [] }),
        )
        .answers_as::<NotAppliedYet>(
            202,
            PROBLEM,
            "With `wait`: the events are durable, and were not counted, or not processed by the \
             product, before the request had to end.",
            Value::Null,
        )
        .answers_as::<EventRefused>(
            422,
            PROBLEM,
            "A single event was refused: `code` is the one of the event, and the members of the \
             receipt stand beside it.",
            Value::Null,
        )
}

pub fn set_buckets() -> Operation {
    let text = "Loads history. Each bucket is set, not added to; the three granularities of a key \
                are independent of each other, and none follows from another. Answers when the \
                buckets are read. With a key the request may be sent again whatever was counted in \
                between.";
    let bucket = json!({
        "key": "rain_drops:city:111222", "granularity": "quarter", "time": "2024-09-24T22:00:00Z",
        "count": 3,
    });
    Operation::new("events", "postBuckets", "Set buckets to counts that were computed elsewhere")
        .text(text)
        .takes(&[Shared::IdempotencyKey])
        .body::<Buckets>(json!([bucket]))
        .answers::<Receipt>(200, "What became of the buckets; `duplicates` is 0.", Value::Null)
        .refuses(&[Refusal::NotRepeatable])
}

const PROBLEM: &str = "application/problem+json";

/// Seconds since 1970, or RFC 3339; from 1970 to the year 10000.
#[derive(ToSchema)]
#[schema(examples(1_727_215_430, "2024-09-24T22:03:50Z"))]
#[serde(untagged)]
pub enum Time {
    Seconds(f64),
    Text(String),
}

/// Seconds since 1970, RFC 3339, or a time relative to the request: `now`; `-90s`, `-15m`, `-24h`,
/// `-7d`, `-2w`, that long before it; `today` and `yesterday`, the midnight that began the day.
#[derive(ToSchema)]
#[schema(examples(1_727_215_430, "2024-09-24T22:03:50Z", "-7d"))]
#[serde(untagged)]
pub enum Moment {
    Seconds(f64),
    Text(String),
}

/// CloudEvents 1.0 in JSON, at most 65,536 bytes. `source` and `id` together identify it. Other
/// members are passed over.
#[derive(ToSchema)]
pub struct CloudEvent {
    #[schema(inline)]
    pub specversion: Specversion,
    #[schema(min_length = 1, max_length = 1_024)]
    pub id: String,
    #[schema(min_length = 1, max_length = 1_024)]
    pub source: String,
    #[schema(rename = "type", min_length = 1, max_length = 1_024)]
    pub kind: String,
    #[schema(required = false, max_length = 1_024)]
    pub subject: String,
    /// When it happened.
    #[schema(format = DateTime)]
    pub time: String,
    /// JSON; counters name fields of it.
    #[schema(required = false)]
    pub data: Value,
}

#[derive(ToSchema)]
#[schema(max_items = 50_000)]
pub struct CloudEvents(pub Vec<CloudEvent>);

/// One CloudEvent a line, at most 50,000; empty lines are passed over.
#[derive(ToSchema)]
pub struct EventLines(pub String);

/// In binary mode the event's data. Otherwise one event, or an array of them.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum JsonEvents {
    One(CloudEvent),
    Many(Vec<CloudEvent>),
    Data(Value),
}

#[derive(ToSchema)]
pub struct Receipt {
    /// Taken, and not known before.
    pub accepted: i128,
    /// Known already; not counted again.
    pub duplicates: i128,
    pub rejected: Vec<Rejected>,
}

#[derive(ToSchema)]
pub struct Rejected {
    /// Place in the request, from 0.
    #[schema(minimum = 0)]
    pub index: i128,
    /// Stable; docs/api.md lists them.
    pub code: String,
    pub detail: String,
}

#[derive(ToSchema)]
pub struct EventRefused {
    #[serde(flatten)]
    pub problem: Problem,
    #[serde(flatten)]
    pub receipt: Receipt,
}

#[derive(ToSchema)]
pub struct NotAppliedYet {
    #[serde(flatten)]
    pub receipt: Receipt,
    #[serde(flatten)]
    pub problem: Problem,
    #[schema(inline)]
    pub code: NotAppliedCode,
    /// Entries of the log up to these events that were not processed yet.
    #[schema(minimum = 0)]
    pub lag: i128,
}

#[derive(ToSchema)]
#[schema(max_items = 10_000)]
pub struct Buckets(pub Vec<Bucket>);

#[derive(ToSchema)]
pub struct Bucket {
    pub key: String,
    pub granularity: Granularity,
    /// Start of the bucket.
    pub time: Time,
    pub count: i64,
}

words! {
    /// A quarter hour, an hour, a day.
    Granularity = bucket::Granularity::ALL.map(bucket::Granularity::name);

    Specversion = ["1.0"];

    NotAppliedCode = ["not_applied_yet", "not_decided_yet", "not_awarded_yet"];
}

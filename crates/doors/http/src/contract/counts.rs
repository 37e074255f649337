//! Counts, series, recounts and the largest keys.

use super::events::{Granularity, Moment};
use super::parameters::query;
use super::words::words;
use super::{Operation, Refusal, Shared};
use raingauge_reader as reader;
use serde_json::{Value, json};
use utoipa::ToSchema;

fn operation(id: &str, summary: &str) -> Operation {
    Operation::new("counts", id, summary)
}

pub fn batch() -> Operation {
    let text = "Answers in the order of the requests; each item has a count or an error of its \
                own, and the status is 200 whatever the items say. Both ends are floored to \
                quarter hours; the range does not hold its end. A key without events counts 0.";
    let request = json!({
        "key": "rain_drops:city:111222", "fromTime": 1_727_215_430, "toTime": 1_727_400_000,
    });
    let timing = json!({
        "description": "From where the ranges were answered: how many by the process itself, by \
                        the result cache, and by the store.",
        "schema": { "type": "string" },
        "example": "memory;desc=0, cache;desc=1, store;desc=0",
    });

    operation("postCounts", "Count many ranges")
        .text(text)
        .body::<CountBatch>(json!({ "requests": [request] }))
        .answers::<CountResults>(
            200,
            "One result for each request.",
            json!({ "results": [example()] }),
        )
        .header(200, "Server-Timing", timing)
}

pub fn one() -> Operation {
    operation("getCount", "Count one range")
        .takes(&[Shared::Key, Shared::FromTime, Shared::ToTime, Shared::Fresh])
        .answers::<Count>(200, "The count.", example())
        .refuses(&[Refusal::KeyUnknown, Refusal::RangeRefused])
}

pub fn series() -> Operation {
    let granularity =
        json!({ "default": "hour", "allOf": [{ "$ref": "#/components/schemas/Step" }] });
    let mut zone = query(
        "timezone",
        "IANA name of a time zone.",
        json!({ "type": "string", "default": "UTC" }),
    );

    zone["example"] = json!("America/New_York");
    let text = "Hours, days, weeks and months begin where the clocks of the zone say so: a day may \
                have 23 or 25 hours, and a week begins on Monday. The first and the last point \
                cover only what lies inside the range. At most 10,000 points.";
    let point = json!({ "time": 1_727_215_200, "count": 10 });

    operation("getSeries", "Count bucket by bucket, cut in a time zone")
        .text(text)
        .takes(&[Shared::Key, Shared::FromTime, Shared::ToTime])
        .parameter(query("granularity", "Width of a point.", granularity))
        .parameter(zone)
        .answers::<Series>(
            200,
            "The series, empty buckets too.",
            json!({ "key": "rain_drops:city:111222", "granularity": "hour", "points": [point] }),
        )
        .refuses(&[Refusal::KeyUnknown, Refusal::RangeRefused])
}

pub fn recount() -> Operation {
    let text = "Reads the whole log that is kept. Buckets whose events the log no longer holds, \
                and expired ones, are not compared; `comparedFrom` says from when on.";
    let example = json!({
        "key": "rain_drops:city:111222", "fromTime": 1_727_215_200, "toTime": 1_727_218_800,
        "comparedFrom": 1_727_215_200, "stored": 10, "recounted": 10, "equal": true,
        "differences": [],
    });
    operation("recount", "Count a range again from the log, beside the stored counts")
        .text(text)
        .takes(&[Shared::Key, Shared::FromTime, Shared::ToTime])
        .answers::<Recount>(200, "Both counts, and every bucket in which they differ.", example)
        .refuses(&[Refusal::KeyUnknown, Refusal::RangeRefused, Refusal::TooManyRequests])
}

pub fn keys() -> Operation {
    let text = "Counts are those of whole UTC days that touch the range. A counter may have more \
                keys than can be looked at in time: then `complete` is false, and larger keys may \
                be missing. `Accept: text/csv` answers a CSV file, whose header `X-Complete` says \
                the same.";
    let time = json!({ "$ref": "#/components/schemas/Moment" });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": 1_000, "default": 20 });
    let key = json!({ "key": "rain_drops:city:111222", "count": 487 });

    let csv = json!({
        "schema": { "type": "string" },
        "example": "key,count\r\nrain_drops:city:111222,487\r\n",
    });

    let mut operation = operation("largestKeys", "The keys of a counter with the largest counts")
        .text(text)
        .takes(&[Shared::CounterId])
        .parameter(query("limit", "How many keys.", limit))
        .parameter(query(
            "fromTime",
            "Begin of the range; 1970 when left out or unreadable.",
            time.clone(),
        ))
        .parameter(query(
            "toTime",
            "End of the range; the present when left out or unreadable.",
            time,
        ))
        .answers::<LargestKeys>(200, "Keys, largest first.", json!({ "keys": [key] }))
        .refuses(&[Refusal::CounterUnknown, Refusal::RangeRefused, Refusal::TooManyRequests]);
    operation.document["responses"]["200"]["content"]["text/csv"] = csv;
    operation
}

fn example() -> Value {
    json!({
        "key": "rain_drops:city:111222", "fromTime": 1_727_215_200, "toTime": 1_727_399_700,
        "count": 487,
    })
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct CountRequest {
    #[schema(max_length = 512)]
    pub key: String,
    pub from_time: Moment,
    pub to_time: Moment,
    /// Take in the open quarter hour.
    #[schema(required = false, default = false)]
    pub fresh: bool,
}

#[derive(ToSchema)]
pub struct CountBatch {
    #[schema(max_items = 1_000)]
    pub requests: Vec<CountRequest>,
    /// `fresh` for all of them.
    #[schema(required = false, default = false)]
    pub fresh: bool,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Count {
    pub key: String,
    /// Begin of the range that was counted, in seconds since 1970.
    pub from_time: i64,
    /// End of the range that was counted, in seconds since 1970.
    pub to_time: i64,
    pub count: i64,
}

#[derive(ToSchema)]
pub struct CountResults {
    pub results: Vec<CountResult>,
}

#[derive(ToSchema)]
#[serde(untagged)]
pub enum CountResult {
    Count(Count),
    Error(CountFailure),
}

#[derive(ToSchema)]
pub struct CountFailure {
    pub key: String,
    pub error: ItemError,
}

#[derive(ToSchema)]
pub struct ItemError {
    #[schema(inline)]
    pub code: ItemCode,
    pub detail: String,
}

#[derive(ToSchema)]
pub struct Point {
    /// Start of the point, in seconds since 1970.
    pub time: i64,
    pub count: i64,
}

#[derive(ToSchema)]
pub struct Series {
    pub key: String,
    pub granularity: Step,
    pub points: Vec<Point>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Recount {
    pub key: String,
    /// Begin of the range, floored, in seconds since 1970.
    pub from_time: i64,
    /// End of the range, floored, in seconds since 1970.
    pub to_time: i64,
    /// Buckets before this are not compared, in seconds since 1970.
    pub compared_from: i64,
    pub stored: i128,
    pub recounted: i128,
    pub equal: bool,
    #[schema(max_items = 1_000)]
    pub differences: Vec<Difference>,
    /// Buckets of the range that were set by `POST /v1/buckets`, not counted; left out when there
    /// is none.
    #[schema(required = false, minimum = 1)]
    pub set_buckets: i128,
}

#[derive(ToSchema)]
pub struct Difference {
    pub granularity: Granularity,
    /// Start of the bucket, in seconds since 1970.
    pub time: i64,
    #[schema(required = true)]
    pub stored: Option<i128>,
    #[schema(required = true)]
    pub recounted: Option<i128>,
}

#[derive(ToSchema)]
pub struct LargestKeys {
    pub keys: Vec<KeyCount>,
    /// False when not every key could be looked at; left out otherwise.
    #[schema(required = false, default = true)]
    pub complete: bool,
}

#[derive(ToSchema)]
pub struct KeyCount {
    pub key: String,
    pub count: i64,
}

words! {
    ItemCode = [
        "key_missing", "key_too_long", "key_unknown", "time_invalid", "time_out_of_range",
        "range_backwards", "range_too_long", "range_expired", "overflow", "unavailable",
        "overloaded", "deadline_exceeded",
    ];

    /// The span of time of one point.
    Step = reader::Step::ALL.map(reader::Step::name);
}

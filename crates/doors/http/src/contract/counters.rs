//! Counter configurations, previews, backfills and erasure.

use super::events::Time;
use super::parameters::query;
use super::refusals::CounterProblem;
use super::words::words;
use super::{Operation, Refusal, Shared};
use raingauge_core::counter;
use raingauge_ports::buckets::Generation;
use raingauge_ports::catalog::Versioned;
use raingauge_ports::log::Offset;
use raingauge_writer::state::BackfillStatus;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use utoipa::ToSchema;

fn operation(id: &str, summary: &str) -> Operation {
    Operation::new("counters", id, summary)
}

/// An operation on the counter in the path.
fn of_counter(id: &str, summary: &str) -> Operation {
    operation(id, summary).takes(&[Shared::CounterId]).refuses(&[Refusal::CounterUnknown])
}

pub fn list() -> Operation {
    let text = json!({ "type": "string" });
    operation("listCounters", "All counters at their newest versions, by id")
        .parameter(query(
            "state",
            "Only those in this state.",
            json!({ "$ref": "#/components/schemas/State" }),
        ))
        .parameter(query("owner", "Only those of this owner.", text.clone()))
        .parameter(query("eventType", "Only those that count events of this type.", text))
        .answers::<Counters>(200, "The counters that pass every filter given.", Value::Null)
}

pub fn create() -> Operation {
    let text = "Under its `id`, or the next free one. When this answers, the counter counts what \
                is accepted from then on; a backfill counts what the log holds already.";
    operation("createCounter", "Create a counter")
        .text(text)
        .takes(&[Shared::Reason])
        .body::<CounterDraft>(draft())
        .answers::<Counter>(201, "The counter.", version(1))
        .etag(201, "counter", 1)
        .location("counter")
        .refuses(&[Refusal::IdTaken, Refusal::CounterInvalid])
}

pub fn read() -> Operation {
    of_counter("readCounter", "Read a counter")
        .answers::<Counter>(200, "The newest version.", version(1))
        .etag(200, "counter", 1)
}

pub fn replace() -> Operation {
    let text = "The body is the whole configuration: what is left out has its default. The members \
                that reading added (`version`, `changedBy`, `reason`, `changedAt`) are passed \
                over. Replacing a counter by itself makes no new version. A change cancels a \
                backfill of the counter that is running.";
    of_counter("replaceCounter", "Replace a counter")
        .text(text)
        .takes(&[Shared::IfMatch, Shared::Reason])
        .body::<CounterDraft>(draft())
        .answers::<Counter>(200, "The new version.", version(2))
        .etag(200, "counter", 1)
        .refuses(&[Refusal::TooManyVersions, Refusal::VersionMismatch, Refusal::CounterInvalid])
}

pub fn archive() -> Operation {
    let text = "It neither counts nor answers any more, and its template is free for others. Its \
                versions stay, and so do its counts until it is purged.";
    of_counter("archiveCounter", "Archive a counter")
        .text(text)
        .takes(&[Shared::IfMatch, Shared::Reason])
        .answers::<Counter>(200, "The counter, archived.", Value::Null)
        .etag(200, "counter", 1)
        .refuses(&[Refusal::TooManyVersions, Refusal::VersionMismatch, Refusal::TooManyRequests])
}

pub fn versions() -> Operation {
    of_counter("listVersions", "All versions of a counter, newest first").answers::<Versions>(
        200,
        "The versions: what, who, when and why.",
        Value::Null,
    )
}

pub fn erase_all() -> Operation {
    let text = "The counts of all keys are gone for good, and no backfill counts them again; the \
                counter goes on and counts from nothing. A backfill that runs is cancelled. The \
                space is freed in the background. The log keeps the events until its retention \
                ends.";
    of_counter("eraseCounts", "Erase everything that a counter has counted")
        .text(text)
        .answers::<Erased>(200, "What was erased.", erased(None))
        .refuses(&[Refusal::TooManyRequests])
}

pub fn erase() -> Operation {
    let text = "They are gone for good, and no backfill counts them again. The log keeps the \
                events until its retention ends.";
    let key = json!({
        "name": "key", "in": "path", "required": true,
        "description": "The key, with everything but letters, digits and `-_.~` encoded.",
        "schema": { "type": "string", "minLength": 1 },
    });
    of_counter("eraseKey", "Erase the counts of one key")
        .text(text)
        .parameter(key)
        .answers::<Erased>(200, "What was erased.", erased(Some("rain_drops:city:111222")))
        .refuses(&[Refusal::KeyNotErased, Refusal::TooManyRequests])
}

pub fn purge() -> Operation {
    let text = "Its counts are gone for good and the space is freed in the background; its \
                versions stay. A counter that is not archived is refused.";
    of_counter("purgeCounter", "Erase what an archived counter keeps")
        .text(text)
        .answers::<Erased>(200, "What was erased.", erased(None))
        .refuses(&[Refusal::NotArchived, Refusal::TooManyRequests])
}

pub fn preview() -> Operation {
    operation("previewDraft", "What a draft would have counted")
        .text("Nothing is changed.")
        .body::<CounterDraft>(draft())
        .answers::<Preview>(200, "What the newest million events of the log come to.", Value::Null)
        .refuses(&[Refusal::CounterInvalid, Refusal::Failed])
}

pub fn preview_of() -> Operation {
    of_counter("previewEdit", "What an edit of a counter would have counted")
        .text("Without a body, what the counter as it is would have counted. Nothing is changed.")
        .body::<CounterDraft>(Value::Null)
        .optional_body()
        .answers::<Preview>(200, "What the newest million events of the log come to.", Value::Null)
        .refuses(&[Refusal::CounterInvalid, Refusal::Failed])
}

pub fn backfill() -> Operation {
    let text = "Goes on behind live events. Until it has caught up the old counts answer. Where \
                the log was trimmed, only days that it covers whole are made again. While one is \
                running, this answers how far it is.";
    of_counter("startBackfill", "Make the counts of a counter again from the log")
        .text(text)
        .answers::<Backfill>(202, "The backfill has begun.", Value::Null)
        .refuses(&[Refusal::TooManyRequests])
}

pub fn read_backfill() -> Operation {
    of_counter("readBackfill", "How far the newest backfill of a counter has come")
        .answers::<Backfill>(200, "The backfill.", Value::Null)
        .refuses(&[Refusal::BackfillUnknown])
}

fn draft() -> Value {
    json!({
        "id": 34,
        "name": "count_rain_drops",
        "template": "rain_drops:city:{city_id}",
        "eventType": "rain_drop",
        "filter": {
            "operator": "and",
            "conditions": [{ "operator": "gte", "lhs": "data.millimetres", "rhs": 1 }],
        },
        "value": 1,
        "retentionDays": { "quarter": 90, "hour": 400, "day": null },
        "activeFrom": null,
        "activeUntil": null,
        "state": "active",
        "owner": "weather",
        "description": "",
    })
}

fn version(version: u32) -> Value {
    let mut counter = draft();
    counter["version"] = json!(version);
    counter["changedBy"] = json!("anonymous");
    counter["reason"] = json!("");
    counter["changedAt"] = json!(1_727_215_200);
    counter
}

fn erased(key: Option<&str>) -> Value {
    let mut erased =
        json!({ "counter": 34, "erasedAt": 1_727_215_200, "logForgetsAt": 1_727_820_000 });
    if let Some(key) = key {
        erased["key"] = json!(key);
    }
    erased
}

/// A condition on the event's fields. `and`, `or` and `not` take `conditions`; the others `lhs` and
/// `rhs`.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    #[schema(inline)]
    pub operator: Operator,
    #[schema(required = false, no_recursion)]
    pub conditions: Vec<Condition>,
    /// `data.…`, `id`, `source`, `type` or `subject`.
    #[schema(required = false)]
    pub lhs: String,
    /// A text, a number, true or false; a list of them for `in`, a text for `prefix`, true, false
    /// or nothing for `exists`.
    #[schema(required = false)]
    pub rhs: Value,
}

#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldValue {
    #[schema(examples("data.amount"))]
    pub field: String,
    /// The decimal times this must be a whole number.
    #[schema(required = false, minimum = 1, maximum = 1_000_000_000, default = 1)]
    pub scale: i128,
}

/// What each event adds.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum CounterValue {
    Fixed(i64),
    Field(FieldValue),
}

/// How many days each granularity is kept; null is for ever. quarter <= hour <= day.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetentionDays {
    #[schema(value_type = Option<i128>, minimum = 1, maximum = 36_600, default = 90)]
    pub quarter: Option<u32>,
    #[schema(value_type = Option<i128>, minimum = 1, maximum = 36_600, default = 400)]
    pub hour: Option<u32>,
    #[schema(value_type = Option<i128>, minimum = 1, maximum = 36_600, default = json!(null))]
    pub day: Option<u32>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
pub struct CounterDraft {
    /// 0, or left out, takes the next free one.
    #[schema(value_type = i128, required = false, minimum = 0, maximum = 999_999)]
    pub id: u32,
    #[schema(min_length = 1, max_length = 128)]
    pub name: String,
    /// Segments separated by `:`, each literal text, or one `{field}` with optional text before and
    /// behind it.
    #[schema(min_length = 1, max_length = 256)]
    pub template: String,
    /// The CloudEvents `type` that is counted.
    #[schema(min_length = 1, max_length = 1_024)]
    pub event_type: String,
    #[schema(default = json!(null))]
    pub filter: Option<Condition>,
    #[schema(required = false, default = 1)]
    pub value: CounterValue,
    #[schema(required = false)]
    pub retention_days: RetentionDays,
    /// Events that happened earlier are not counted.
    #[schema(default = json!(null))]
    pub active_from: Option<Time>,
    /// Events that happened at or after this are not counted.
    #[schema(default = json!(null))]
    pub active_until: Option<Time>,
    #[schema(required = false, default = "active")]
    pub state: State,
    #[schema(required = false, max_length = 2_000, default = "")]
    pub owner: String,
    #[schema(required = false, max_length = 2_000, default = "")]
    pub description: String,
}

/// A counter configuration and its version.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Counter {
    #[schema(value_type = i128, minimum = 0, maximum = 999_999)]
    pub id: u32,
    #[schema(min_length = 1, max_length = 128)]
    pub name: String,
    /// Segments separated by `:`, each literal text, or one `{field}` with optional text before and
    /// behind it.
    #[schema(min_length = 1, max_length = 256)]
    pub template: String,
    /// The CloudEvents `type` that is counted.
    #[schema(min_length = 1, max_length = 1_024)]
    pub event_type: String,
    #[schema(required = true)]
    pub filter: Option<Condition>,
    pub value: CounterValue,
    pub retention_days: RetentionDays,
    /// Events that happened earlier are not counted.
    #[schema(required = true)]
    pub active_from: Option<Time>,
    /// Events that happened at or after this are not counted.
    #[schema(required = true)]
    pub active_until: Option<Time>,
    pub state: State,
    #[schema(max_length = 2_000)]
    pub owner: String,
    #[schema(max_length = 2_000)]
    pub description: String,
    #[schema(value_type = i128, minimum = 1)]
    pub version: u32,
    #[serde(flatten)]
    #[schema(inline)]
    pub change: Change,
}

/// Who made a version, when and why.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Change {
    /// Name of the token, or `anonymous`.
    pub changed_by: String,
    #[schema(inline, required = false)]
    pub changed_by_kind: ChangedByKind,
    /// What the header `x-reason` said.
    pub reason: String,
    /// When, in seconds since 1970.
    pub changed_at: i64,
}

#[derive(Serialize, ToSchema)]
pub struct Counters {
    #[schema(value_type = Vec<Counter>)]
    pub counters: Vec<Versioned>,
}

#[derive(Serialize, ToSchema)]
pub struct Versions {
    #[schema(value_type = Vec<Counter>)]
    pub versions: Vec<Versioned>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Preview {
    /// Events that were looked at, of all types; at most 1,000,000.
    pub events: i128,
    pub events_of_type: i128,
    pub counted: i128,
    /// Events of its type that it would not have counted, by reason.
    pub skipped: BTreeMap<Skipped, i128>,
    /// Different keys.
    pub keys: i128,
    /// Buckets of all granularities for each day in which something happened.
    pub cells_per_day: f64,
    #[schema(inline)]
    pub daily: Daily,
    #[schema(inline, max_items = 20)]
    pub hottest: Vec<Hot>,
    /// When the earliest counted event happened, in seconds since 1970.
    #[schema(required = true)]
    pub from_time: Option<i64>,
    /// When the latest one happened.
    #[schema(required = true)]
    pub to_time: Option<i64>,
    /// Counters whose template could render the same key.
    pub conflicts: Vec<CounterProblem>,
    /// Whether `hottest` is left out, since the token lacks `counts:read` or the template has a
    /// masked field.
    pub keys_hidden: bool,
}

/// What such a day adds to the bucket store. A cell is a row in the count tables of a cluster.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Daily {
    pub quarter_cells: f64,
    pub hour_cells: f64,
    pub day_cells: f64,
    /// Bytes of the tiles that hold quarter hours and hours, about, before compression.
    pub fine_bytes: f64,
    /// Bytes of the counts of days, about.
    pub day_bytes: f64,
}

#[derive(ToSchema)]
pub struct Hot {
    pub key: String,
    pub events: i128,
    pub count: i128,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backfill {
    #[schema(value_type = BackfillState, inline)]
    pub status: BackfillStatus,
    /// The body of counts that is filled.
    #[schema(value_type = i128)]
    pub generation: Generation,
    /// Offset of the log at which it began.
    #[schema(value_type = i128)]
    pub from: Offset,
    /// Offset up to which it has come.
    #[schema(value_type = i128)]
    pub position: Offset,
    /// Only buckets from here on are made again; 0 is everything, in seconds since 1970.
    pub after_s: i64,
    /// Events counted so far.
    #[schema(value_type = i128)]
    pub counted: u64,
    /// When it finished or was cancelled, in seconds since 1970; 0 while it runs.
    pub ended_at: i64,
    /// Why it was cancelled; absent otherwise.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Offset that it has to reach, which moves on with live events.
    #[schema(value_type = i128)]
    pub end: Offset,
    #[schema(minimum = 0, maximum = 1)]
    pub progress: f64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Erased {
    #[schema(value_type = i128)]
    pub counter: u32,
    /// Absent where every key was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub key: Option<String>,
    /// Seconds since 1970.
    pub erased_at: i64,
    /// By when the log has forgotten the events too, in seconds since 1970; `null` where the
    /// retention of a topic says so.
    #[schema(required = true)]
    pub log_forgets_at: Option<i64>,
}

words! {
    /// draft and archived neither count nor answer, paused answers, active does both.
    State = counter::State::ALL.map(counter::State::name);

    Operator = ["and", "or", "not", "eq", "ne", "gt", "gte", "lt", "lte", "in", "exists", "prefix"];

    /// Set when a token made the change, whose name may be that of a person.
    ChangedByKind = ["token"];

    Skipped = ["outside_activity", "filtered", "no_key", "no_value", "too_many_keys"];

    BackfillState = ["running", "finished", "cancelled"];
}

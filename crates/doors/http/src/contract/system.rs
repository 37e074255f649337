//! The cache policy, compaction, health, metrics and the contract itself.

use super::counters::Change;
use super::words::words;
use super::{Operation, Refusal, Shared};
use raingauge_core::limits::POLICY_OVERRIDES_MAX;
use raingauge_operations::maintenance::Outcome;
use raingauge_policy::cache::Strategy;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use utoipa::openapi::{Object, ObjectBuilder};
use utoipa::{PartialSchema, ToSchema};

const TEXT: &str = "text/plain";

fn operation(id: &str, summary: &str) -> Operation {
    Operation::new("system", id, summary)
}

pub fn read_cache_policy() -> Operation {
    operation("readCachePolicy", "Which counters are answered through which cache")
        .answers::<CachePolicyVersion>(200, "The policy.", version())
        .etag(200, "policy", 3)
}

pub fn replace_policy() -> Operation {
    let text = "The body is the whole policy. The members that reading added (`version`, \
                `changedBy`, `reason`, `changedAt`) are passed over. Every instance follows within \
                two seconds.";
    operation("replaceCachePolicy", "Change that while everything runs")
        .text(text)
        .takes(&[Shared::IfMatch, Shared::Reason])
        .body::<CachePolicy>(policy())
        .answers::<CachePolicyVersion>(200, "The new version.", version())
        .etag(200, "policy", 3)
        .refuses(&[Refusal::VersionMismatch, Refusal::PolicyInvalid])
}

pub fn maintenance() -> Operation {
    operation(
        "readMaintenance",
        "When compaction is due, what is compacted now, and the last results",
    )
    .answers::<Maintenance>(200, "The state of maintenance.", Value::Null)
    .refuses(&[Refusal::MaintenanceAbsent])
}

pub fn compact() -> Operation {
    let text = "One node after the other, rack by rack. Answers at once; what becomes of it is in \
         `running` and then in `last`.";
    operation("startCompaction", "Compact all nodes now")
        .text(text)
        .answers::<Maintenance>(202, "It has begun.", Value::Null)
        .refuses(&[Refusal::MaintenanceAbsent, Refusal::CompactionRunning])
}

pub fn stop() -> Operation {
    operation("stopCompaction", "Stop the compaction that is running")
        .text(
            "The node that is compacted is stopped where the engine can, and waited for where it \
               cannot.",
        )
        .answers::<Maintenance>(202, "It has been asked to stop.", Value::Null)
        .refuses(&[Refusal::MaintenanceAbsent, Refusal::CompactionIdle])
}

pub fn metrics() -> Operation {
    operation("metrics", "Metrics in the text format of Prometheus").answers_as::<String>(
        200,
        TEXT,
        "See docs/metrics.md.",
        Value::Null,
    )
}

pub fn live() -> Operation {
    operation("live", "Whether the process lives").answers_as::<Live>(
        200,
        TEXT,
        "It does.",
        Value::Null,
    )
}

pub fn ready() -> Operation {
    operation("ready", "Whether events are taken and counts answered")
        .answers_as::<Ready>(200, TEXT, "They are.", Value::Null)
        .refuses(&[Refusal::NotReady])
}

pub fn this_document() -> Operation {
    operation("contract", "This document").answers::<Document>(200, "OpenAPI 3.1.", Value::Null)
}

fn policy() -> Value {
    json!({
        "strategy": "result",
        "rollout": [{ "strategy": "none", "modulo": 100, "below": 25 }],
        "overrides": { "canary-1": { "strategy": "none" } },
    })
}

fn version() -> Value {
    let mut version = policy();
    version["version"] = json!(3);
    version["changedBy"] = json!("ops");
    version["reason"] = json!("a quarter of the counters without Redis");
    version["changedAt"] = json!(1_730_796_360);
    version
}

/// The counters with `id % modulo < below`.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RolloutStep {
    pub strategy: CacheStrategy,
    #[schema(value_type = i128, minimum = 1, maximum = 4_294_967_295_u32)]
    pub modulo: u32,
    #[schema(value_type = i128, minimum = 0, maximum = 4_294_967_295_u32)]
    pub below: u32,
}

#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheChoice {
    pub strategy: CacheStrategy,
    /// Exceptions; the first step that a counter falls under decides.
    #[schema(required = false, max_items = 32)]
    pub rollout: Vec<RolloutStep>,
}

#[derive(ToSchema)]
pub struct CachePolicy {
    pub strategy: CacheStrategy,
    /// Exceptions; the first step that a counter falls under decides.
    #[schema(required = false, max_items = 32)]
    pub rollout: Vec<RolloutStep>,
    #[schema(required = false, schema_with = overrides)]
    pub overrides: BTreeMap<String, CacheChoice>,
}

fn overrides() -> Object {
    ObjectBuilder::new()
        .additional_properties(Some(CacheChoice::schema()))
        .max_properties(Some(POLICY_OVERRIDES_MAX))
        .description(Some("What single instances do instead, by the setting `cluster.instance`."))
        .build()
}

#[derive(ToSchema)]
pub struct CachePolicyVersion {
    #[serde(flatten)]
    pub policy: CachePolicy,
    /// 0 while nobody has set one.
    pub version: i128,
    #[serde(flatten)]
    #[schema(inline)]
    pub change: Change,
}

#[derive(ToSchema)]
pub struct Maintenance {
    /// IANA name of the time zone of the schedules.
    pub timezone: String,
    #[schema(inline)]
    pub schedules: Vec<Schedule>,
    #[schema(required = true)]
    pub running: Option<CompactionRun>,
    /// The runs that have ended, the newest first, since the process was started.
    #[schema(max_items = 20)]
    pub last: Vec<CompactionRun>,
}

#[derive(ToSchema)]
pub struct Schedule {
    /// A cron expression.
    pub expression: String,
    /// When it is due next, in seconds since 1970.
    pub next: i64,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct CompactionRun {
    /// The cron expression that was due, or the name of the token that asked.
    #[schema(inline)]
    pub trigger: Trigger,
    /// Seconds since 1970.
    pub started_at: i64,
    /// Seconds since 1970.
    #[schema(required = false)]
    pub ended_at: i64,
    #[schema(inline, required = false)]
    pub result: CompactionResult,
    /// Why it ended so, where there is more to say.
    #[schema(required = false)]
    pub detail: String,
    /// In the order in which they are compacted.
    pub nodes: Vec<NodeCompaction>,
}

#[derive(ToSchema)]
pub struct Trigger {
    #[schema(required = false)]
    pub schedule: String,
    #[schema(required = false)]
    pub request: String,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct NodeCompaction {
    pub node: String,
    pub rack: String,
    #[schema(inline)]
    pub state: NodeState,
    /// Seconds since 1970.
    #[schema(required = false)]
    pub started_at: i64,
    /// How long it took.
    #[schema(required = false)]
    pub seconds: f64,
    /// Where the engine tells.
    #[schema(inline, required = false)]
    pub progress: NodeProgress,
    #[schema(required = false)]
    pub error: String,
}

#[derive(ToSchema)]
pub struct NodeProgress {
    pub done: i128,
    pub total: i128,
    pub unit: String,
}

/// The first line; then one for each partition that this process should count and cannot.
#[derive(ToSchema)]
#[schema(pattern = "^ready\n")]
pub struct Ready(pub String);

#[derive(ToSchema)]
pub struct Document(pub serde_json::Map<String, Value>);

words! {
    /// `none`: read from the bucket store; `result`: sums are kept for five minutes; `phased`: the
    /// same, and each key moves on to the next quarter hour at a moment of its own; `live`: tiles
    /// in memory follow the writers.
    CacheStrategy = Strategy::ALL.map(Strategy::name);

    CompactionResult = Outcome::ALL.map(Outcome::name);

    NodeState = ["waiting", "running", "compacted", "failed", "stopped"];

    Live = ["live\n"];
}

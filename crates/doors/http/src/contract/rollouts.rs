//! Guarded rollouts of a cache strategy.

use super::parameters::path_id;
use super::system::{CachePolicy, CacheStrategy};
use super::words::words;
use super::{Operation, Refusal, Shared};
use raingauge_policy::cache::Strategy;
use raingauge_policy::rollout::{Limits, Plan, Rollout};
use raingauge_ports::catalog::TOKEN_PREFIX;
use raingauge_ports::rollouts::Run;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

fn operation(id: &str, summary: &str) -> Operation {
    Operation::new("system", id, summary)
}

/// An operation on the rollout in the path.
fn of_rollout(id: &str, summary: &str) -> Operation {
    operation(id, summary).parameter(path_id(7)).refuses(&[Refusal::RolloutUnknown])
}

pub fn list() -> Operation {
    operation("listRollouts", "The newest rollouts, newest first")
        .text("At most 20. One that runs is the first.")
        .answers::<Rollouts>(200, "The rollouts.", Value::Null)
}

pub fn begin() -> Operation {
    let text = "More and more counters get another cache strategy, and each share is watched. When \
                a limit is broken, the previous policy comes back by itself. One rollout runs at \
                a time. What is left out of the plan has its default.";
    operation("beginRollout", "Begin a guarded rollout of a cache strategy")
        .text(text)
        .takes(&[Shared::Reason])
        .body::<RolloutDraft>(json!({ "to": "phased", "shares": [5, 50, 100], "holdS": 600 }))
        .answers::<RolloutRun>(201, "It has begun.", Value::Null)
        .location("rollout")
        .refuses(&[Refusal::RolloutRefused, Refusal::RolloutInvalid])
}

pub fn read() -> Operation {
    of_rollout("readRollout", "A rollout: what was done, and what was seen of it")
        .answers::<RolloutRun>(200, "The rollout.", Value::Null)
}

pub fn stop() -> Operation {
    of_rollout("stopRollout", "Stop a rollout")
        .text("The previous policy is set again.")
        .answers::<RolloutRun>(200, "The rollout, which has ended or is about to.", Value::Null)
        .refuses(&[Refusal::RolloutRefused])
}

pub fn go_on() -> Operation {
    of_rollout("hurryRollout", "Go on with the next stage before the time of this one is over")
        .answers::<RolloutRun>(200, "The rollout.", Value::Null)
        .refuses(&[Refusal::RolloutRefused])
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RolloutDraft {
    /// The strategy that counters get.
    #[schema(value_type = CacheStrategy)]
    pub to: Strategy,
    /// Hundredths of the counters, which grow from step to step; 5, 25, 35, 75 and 100 by default.
    #[serde(default)]
    #[schema(value_type = Vec<i128>, min_items = 1, max_items = 20)]
    pub shares: Option<Vec<u32>>,
    /// How long a canary of one hundredth more is watched before each step, in seconds; 300 by
    /// default, 0 for no canary.
    #[serde(default)]
    #[schema(value_type = f64, minimum = 0, maximum = 604_800)]
    pub canary_s: Option<f64>,
    /// How long each step is watched, and the service before the first one, in seconds; 1,800 by
    /// default.
    #[serde(default)]
    #[schema(value_type = f64, exclusive_minimum = 0, maximum = 604_800)]
    pub hold_s: Option<f64>,
    #[serde(default)]
    #[schema(required = false)]
    pub limits: LimitsDraft,
}

/// What a rollout must not do to the service, compared with the service as it was before.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LimitsDraft {
    /// The 99th percentile of batches may be this many times the earlier one; 2 by default.
    #[schema(value_type = f64, minimum = 0)]
    pub p99_times: Option<f64>,
    /// Below this many milliseconds the 99th percentile never matters; 20 by default.
    #[schema(value_type = f64, minimum = 0)]
    pub p99_free_ms: Option<f64>,
    /// This share of the counts may fail more than before; 0.001 by default.
    #[schema(value_type = f64, minimum = 0)]
    pub failed_share: Option<f64>,
    /// Requests to the store for each count may be this many times the earlier number; 4 by
    /// default.
    #[schema(value_type = f64, minimum = 0)]
    pub store_times: Option<f64>,
    /// This many circuit breakers may open; 0 by default.
    #[schema(value_type = f64, minimum = 0)]
    pub breakers: Option<f64>,
    /// A window of fewer batches says nothing: more is waited for; 100 by default.
    #[schema(value_type = f64, minimum = 0)]
    pub batches_min: Option<f64>,
}

impl From<RolloutDraft> for Plan {
    fn from(draft: RolloutDraft) -> Self {
        let RolloutDraft { to, shares, canary_s, hold_s, limits } = draft;
        Self {
            to,
            shares: shares.unwrap_or_else(|| Self::SHARES.to_vec()),
            canary_s: canary_s.unwrap_or(Self::CANARY_S),
            hold_s: hold_s.unwrap_or(Self::HOLD_S),
            limits: limits.into(),
        }
    }
}

impl From<LimitsDraft> for Limits {
    fn from(draft: LimitsDraft) -> Self {
        let default = Self::DEFAULT;
        Self {
            p99_times: draft.p99_times.unwrap_or(default.p99_times),
            p99_free_ms: draft.p99_free_ms.unwrap_or(default.p99_free_ms),
            failed_share: draft.failed_share.unwrap_or(default.failed_share),
            store_times: draft.store_times.unwrap_or(default.store_times),
            breakers: draft.breakers.unwrap_or(default.breakers),
            batches_min: draft.batches_min.unwrap_or(default.batches_min),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct Rollouts {
    pub rollouts: Vec<RolloutRun>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutRun {
    #[schema(value_type = i128)]
    pub id: u64,
    /// Seconds since 1970.
    pub started_at: i64,
    pub started_by: String,
    /// Set when a token began it, whose name may be that of a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub started_by_kind: Option<&'static str>,
    pub reason: String,
    /// Seconds since 1970; `null` while it runs.
    #[schema(required = true)]
    pub ended_at: Option<i64>,
    #[serde(flatten)]
    #[schema(value_type = RolloutState)]
    pub rollout: Rollout,
}

impl From<Run> for RolloutRun {
    fn from(run: Run) -> Self {
        let token = run.started_by.strip_prefix(TOKEN_PREFIX);
        let started_by_kind = token.map(|_| "token");
        Self {
            id: run.id,
            started_at: run.started_at,
            started_by: token.unwrap_or(&run.started_by).to_owned(),
            started_by_kind,
            reason: run.reason,
            ended_at: run.ended_at,
            rollout: run.rollout,
        }
    }
}

/// A rollout, as far as it has come. Times are milliseconds since 1970.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct RolloutState {
    pub plan: RolloutPlan,
    /// The policy that was in force when it began.
    pub before: CachePolicy,
    /// The version of the policy that it set last, or began from.
    pub version: i128,
    /// The stages that are over; the first is the service as it was.
    pub watched: Vec<WatchedStage>,
    /// How often a window began again, because the process that watched it was gone.
    pub interruptions: i128,
    #[schema(inline)]
    pub phase: RolloutPhase,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct RolloutPlan {
    pub to: CacheStrategy,
    pub shares: Vec<i128>,
    pub canary_s: f64,
    pub hold_s: f64,
    /// As in the plan that was sent, with the defaults.
    pub limits: LimitsDraft,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct WatchedStage {
    #[schema(inline)]
    pub stage: RolloutStage,
    /// When the window began.
    pub from_ms: i64,
    /// What was seen in it.
    #[schema(value_type = Object)]
    pub window: Value,
    /// What was seen against each limit; none of the service as it was.
    #[schema(inline)]
    pub verdicts: Vec<RolloutVerdict>,
    /// Who went on before the time was over.
    #[schema(required = false)]
    pub cut_by: String,
}

#[derive(ToSchema)]
pub struct RolloutStage {
    #[schema(inline)]
    pub kind: StageKind,
    /// Hundredths of the counters.
    pub share: i128,
    pub seconds: f64,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct RolloutVerdict {
    #[schema(inline)]
    pub limit: LimitKind,
    pub seen: f64,
    pub at_most: f64,
}

/// What it is about.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct RolloutPhase {
    #[schema(inline)]
    pub name: PhaseName,
    /// Since when it is `following` or `watching`.
    #[schema(required = false)]
    pub since_ms: i64,
    /// The processes that do not follow the policy yet.
    #[schema(required = false)]
    pub lagging: Vec<String>,
    /// Up to when the service was watched.
    #[schema(required = false)]
    pub seen_ms: i64,
    /// What was seen so far.
    #[schema(value_type = Object, required = false)]
    pub tally: Value,
    #[schema(inline, required = false)]
    pub end: RolloutEnd,
    #[schema(required = false)]
    pub why: String,
}

words! {
    StageKind = ["before", "canary", "step"];

    LimitKind = ["latency", "errors", "store", "breakers"];

    PhaseName = ["setting", "following", "watching", "returning", "ended"];

    /// How it ended, or is about to.
    RolloutEnd = ["finished", "broken", "inconclusive", "failed", "stopped", "overruled"];
}

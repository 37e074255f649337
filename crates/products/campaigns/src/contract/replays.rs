//! Tests, backtests, comparisons, explanations and their jobs.

use super::{of_campaign, operation, path_name};
use raingauge_core::code::Code;
use raingauge_http::Operation;
use serde_json::{Value, json};
use utoipa::ToSchema;

const BUSY: &str = "Too many jobs or other requests are waiting.";
const INVALID: &str = "The request is wrong; `problems` has everything that is.";

/// A replay by a job.
fn by_job(id: &str, summary: &str) -> Operation {
    let location = json!({ "description": "Path of the job.", "schema": { "type": "string" } });
    operation(id, summary)
        .answers::<Job>(202, "The job, whose result is kept for an hour.", Value::Null)
        .header(202, "Location", location)
        .refusal(&[Code::CampaignInvalid, Code::EventMalformed], INVALID)
        .refusal(&[Code::TooManyJobs, Code::ScansWaiting, Code::BodiesInFlight], BUSY)
}

pub fn test() -> Operation {
    operation("testCampaigns", "What campaigns would decide on given events")
        .text("Nothing is kept. A number stands for a campaign in effect.")
        .body::<TestRequest>(json!({ "campaigns": [7], "events": [{
            "specversion": "1.0", "source": "mart", "id": "o-1", "type": "mart.order",
            "time": "2024-09-24T00:00:00Z", "data": { "user_id": "u-7" },
        }] }))
        .answers::<Trial>(200, "The decisions, and why.", Value::Null)
        .refusal(&[Code::CampaignInvalid], INVALID)
}

pub fn backtest() -> Operation {
    by_job("backtestCampaigns", "What campaigns would have decided on events of the past")
        .text(
            "With `\"source\": \"events\"`, the events follow the request as lines of JSON: the \
             request is the first line, and each further line is a CloudEvent. The body may be \
             packed with gzip.",
        )
        .body::<BacktestRequest>(json!({
            "campaigns": [7], "fromTime": "2024-09-01T00:00:00Z", "toTime": "2024-10-01T00:00:00Z",
            "by": ["var.country"], "sample": 10,
        }))
}

pub fn compare() -> Operation {
    by_job("compareCampaigns", "Who gains and who loses between two versions of campaigns")
        .body::<CompareRequest>(json!({ "before": [7], "after": [{ "id": 7, "name": "…" }] }))
}

pub fn audit() -> Operation {
    by_job("auditCampaign", "Compare what was decided with what a replay decides")
        .text("Without a campaign, one is chosen at random.")
        .body::<AuditRequest>(json!({ "campaign": 7 }))
        .optional_body()
        .refusal(&[Code::DocumentUnknown], "There is no such campaign.")
}

pub fn explain() -> Operation {
    let location = json!({ "description": "Path of the job.", "schema": { "type": "string" } });
    of_campaign("explainCampaign", "Why a subject got something, or did not")
        .text(
            "Without an event, the newest events of the subject are explained. A long log is \
             replayed by a job, whose `result` is the explanation.",
        )
        .body::<ExplainRequest>(
            json!({ "subject": "u-7", "event": { "source": "mart", "id": "o-2" } }),
        )
        .answers::<Explanation>(200, "The first reason, and the conditions.", Value::Null)
        .answers::<Job>(202, "The job that explains it.", Value::Null)
        .header(202, "Location", location)
        .refusal(&[Code::CampaignInvalid], INVALID)
        .refusal(&[Code::TooManyJobs, Code::ScansWaiting, Code::BodiesInFlight], BUSY)
}

pub fn jobs() -> Operation {
    operation("listJobs", "Jobs that are known, newest first, without their results")
        .answers::<Jobs>(200, "The jobs.", Value::Null)
}

/// An operation on the job in the path.
fn of_job(id: &str, summary: &str) -> Operation {
    operation(id, summary)
        .parameter(path_name("id", "job_192c4f1a2b0_1"))
        .answers::<Job>(200, "The job.", Value::Null)
        .refusal(&[Code::JobUnknown], "There is no such job, or its result was dropped.")
}

pub fn job() -> Operation {
    of_job("readJob", "How far a job has come, and its result")
}

pub fn cancel_job() -> Operation {
    of_job("cancelJob", "Cancel a job that has not ended")
}

/// Campaigns, what they share, and events.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub struct TestRequest(pub Value);

/// Campaigns, a range or events, and what the answer is divided by: `campaigns`, `shared`,
/// `fromTime`, `toTime`, `source`, `by`, `sample`, `lookups`, `ignoreLateness`.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub struct BacktestRequest(pub Value);

/// The same with campaigns `before` and `after`.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub struct CompareRequest(pub Value);

#[derive(ToSchema)]
pub struct AuditRequest {
    #[schema(required = false)]
    pub campaign: Option<u32>,
    /// Chooses campaign and subjects; the time, if it is absent.
    #[schema(value_type = i128, required = false, minimum = 0)]
    pub seed: Option<u64>,
}

#[derive(ToSchema)]
pub struct ExplainRequest {
    pub subject: String,
    #[schema(required = false)]
    pub event: Option<NamedEvent>,
}

#[derive(ToSchema)]
pub struct NamedEvent {
    pub source: String,
    pub id: String,
    /// The time that the event carries, such as `2024-09-24T22:03:50Z`. It tells the event
    /// from an earlier one of the same source and id, whose duplicate it is.
    #[schema(value_type = String, required = false)]
    pub time: Value,
}

/// `decisions`, `trace`, and what each event led to.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub struct Trial(pub Value);

/// `code`, `campaign`, `version`, `event`, `trace`, `nearest`, `decisions`, and `how`: `stored` or
/// `replayed`. `first` is the event of the same source and id whose duplicate this one is.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub struct Explanation(pub Value);

#[derive(ToSchema)]
pub struct Jobs {
    pub jobs: Vec<Job>,
}

/// A replay that takes longer than a request.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub id: String,
    /// The id again, where the job is answered in place of its result.
    #[schema(required = false)]
    pub job: String,
    /// Such as `backtest`.
    pub kind: String,
    /// Who began it.
    pub caller: String,
    /// `waiting`, `running`, `finished`, `failed` or `cancelled`.
    pub status: String,
    /// From 0 to 1; null while it is unknown how much there is to read.
    pub progress: Option<f64>,
    /// Entries of the log, or events of the caller, that were read.
    #[schema(value_type = i128, minimum = 0)]
    pub entries: u64,
    /// Seconds since 1970.
    pub created_at: i64,
    pub ended_at: Option<i64>,
    /// The answer of a job that has finished.
    #[schema(value_type = Object, required = false)]
    pub result: Value,
    /// Why it failed.
    #[schema(required = false)]
    pub error: String,
}

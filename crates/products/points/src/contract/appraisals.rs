//! Forecasts, audits and their jobs.

use super::{operation, path_name};
use raingauge_core::code::Code;
use raingauge_http::Operation;
use serde_json::{Value, json};
use utoipa::ToSchema;

pub fn preview() -> Operation {
    let operation = operation("previewProgramme", "What a programme would have cost")
        .text(
            "Replays past events on a fork of the ledger, for the draft in `programme`, or for the \
             programme as it is.",
        )
        .parameter(path_name("name", "grab-sg"))
        .body::<PreviewRequest>(json!({ "fromTime": "2026-01-01T00:00:00Z" }))
        .optional_body();
    started(operation).refusal(&[Code::ProgrammeInvalid], "The draft or the request is wrong.")
}

pub fn last_audit() -> Operation {
    operation("readPointsAudit", "The last audit that ended").answers::<LastAudit>(
        200,
        "What it found; null before the first one.",
        Value::Null,
    )
}

pub fn audit() -> Operation {
    let operation = operation("auditPoints", "Price the events of the log again, and compare")
        .text("With `resend`, awards that are nowhere are sent to the queue of awards.")
        .body::<AuditBody>(json!({ "programme": "grab-sg" }))
        .optional_body()
        .refusal(&[Code::ProgrammeUnknown], "There is no such programme.");
    started(operation).refusal(&[Code::ProgrammeInvalid], "The request is wrong.")
}

fn started(operation: Operation) -> Operation {
    let location = json!({ "description": "Path of the job.", "schema": { "type": "string" } });
    operation
        .answers::<PointsJob>(202, "The job that has begun.", Value::Null)
        .header(202, "Location", location)
        .refusal(&[Code::TooManyJobs], "Too many jobs wait.")
}

pub fn jobs() -> Operation {
    operation("listPointsJobs", "Forecasts and audits").answers::<PointsJobs>(
        200,
        "Newest first.",
        Value::Null,
    )
}

pub fn job() -> Operation {
    of_job("readPointsJob", "How far a job has come, and its result")
}

pub fn cancel() -> Operation {
    of_job("cancelPointsJob", "Cancel a job that has not ended")
}

fn of_job(id: &str, summary: &str) -> Operation {
    operation(id, summary)
        .parameter(path_name("id", "job_192c4f1a2b0_1"))
        .answers::<PointsJob>(200, "The job.", Value::Null)
        .refusal(&[Code::JobUnknown], "There is no such job, or its result was dropped.")
}

/// `programme`, `fromTime`, `toTime`, `source`, `by` and `days`.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub struct PreviewRequest(pub Value);

/// `programme`, `fromTime` and `resend`.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub struct AuditBody(pub Value);

#[derive(ToSchema)]
pub struct LastAudit {
    #[schema(value_type = Option<Object>)]
    pub last: Option<Value>,
}

#[derive(ToSchema)]
pub struct PointsJobs {
    pub jobs: Vec<PointsJob>,
}

/// A job, with its `status`, `progress` and `result`.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub struct PointsJob(pub Value);

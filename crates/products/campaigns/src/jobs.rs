//! `/v1/jobs`: replays that take longer than a request.

use crate::Campaigns;
use crate::Table;
use crate::contract::replays as doc;
use crate::refused::Answer;
use axum::Json;
use axum::extract::{Extension, Path};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use raingauge_core::access::Scope;
use raingauge_replay::Job;
use serde_json::{Value, json};
use std::sync::Arc;

pub fn add(table: Table) -> Table {
    let cancelled = (Scope::CampaignsWrite, "job.cancel");
    table
        .get("/v1/jobs", Scope::CampaignsRead, list, doc::jobs)
        .get("/v1/jobs/{id}", Scope::CampaignsRead, read, doc::job)
        .delete("/v1/jobs/{id}", cancelled, cancel, doc::cancel_job)
}

type Services = Extension<Arc<Campaigns>>;

/// `GET /v1/jobs`
async fn list(Extension(campaigns): Services) -> Json<Value> {
    Json(json!({ "jobs": campaigns.replay.jobs().list() }))
}

/// `GET /v1/jobs/{id}`
async fn read(Extension(campaigns): Services, Path(id): Path<String>) -> Answer<Json<Job>> {
    Ok(Json(campaigns.replay.jobs().get(&id)?))
}

/// `DELETE /v1/jobs/{id}`
async fn cancel(Extension(campaigns): Services, Path(id): Path<String>) -> Answer<Json<Job>> {
    Ok(Json(campaigns.replay.jobs().cancel(&id)?))
}

/// Answers that a job has begun, and where its result will be.
pub fn accepted(job: Job) -> Response {
    let place = (header::LOCATION, format!("/v1/jobs/{}", job.id));
    let mut answer = json!(job);
    answer["job"] = json!(job.id);
    (StatusCode::ACCEPTED, [place], Json(answer)).into_response()
}

//! What a draft would have cost, whether what was awarded is right, and the jobs that find out.

use crate::contract::appraisals as doc;
use crate::programmes::name_by_path;
use crate::refused::{Answer, Refused};
use crate::{Points, Table};
use axum::Json;
use axum::extract::{Extension, Path};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use raingauge_appraisal::{AuditRequest, ForecastRequest};
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_http::change::json_of;
use raingauge_http::{Body, Configuration};
use raingauge_people::Principal;
use raingauge_replay::Job;
use serde_json::{Value, json};
use std::sync::Arc;

type Services = Extension<Arc<Points>>;
type Caller = Extension<Principal>;

pub fn add(table: Table) -> Table {
    use Scope::{PointsAdmin, PointsRead, PointsWrite};
    table
        .ask("/v1/points/programmes/{name}/preview", PointsWrite, preview, doc::preview)
        .get("/v1/points/audits", PointsAdmin, last_audit, doc::last_audit)
        .post("/v1/points/audits", (PointsAdmin, "points.audit"), audit, doc::audit)
        .get("/v1/points/jobs", PointsRead, list, doc::jobs)
        .get("/v1/points/jobs/{id}", PointsRead, read, doc::job)
        .delete("/v1/points/jobs/{id}", (PointsWrite, "job.cancel"), cancel, doc::cancel)
}

/// `POST /v1/points/programmes/{name}/preview`: of a draft in the member `programme`, or of the
/// programme as it is.
async fn preview(
    Extension(points): Services,
    Extension(who): Caller,
    Path(name): Path<String>,
    body: Body<Configuration>,
) -> Answer {
    points.source(&who).check_operator()?;
    let mut request = request_of(&body.bytes)?;
    match &mut request["programme"] {
        absent @ Value::Null => *absent = json!(name),
        draft => name_by_path(&name, draft)?,
    }
    let request = ForecastRequest::parse(request.to_string().as_bytes())?;
    let job = points.appraisal.forecast(&who.recorded_name(), request, None)?;
    Ok(accepted(&job))
}

/// `GET /v1/points/audits`: the last one that ended.
async fn last_audit(Extension(points): Services, Extension(who): Caller) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    Ok(Json(json!({ "last": points.appraisal.last_audit() })))
}

/// `POST /v1/points/audits`
async fn audit(
    Extension(points): Services,
    Extension(who): Caller,
    body: Body<Configuration>,
) -> Answer {
    points.source(&who).check_operator()?;
    let request = request_of(&body.bytes)?;
    let request = AuditRequest::parse(request.to_string().as_bytes())?;
    if let Some(name) = &request.programme {
        points.programme(name)?;
    }
    let job = points.appraisal.audit(&who.recorded_name(), request)?;
    Ok(accepted(&job))
}

/// `GET /v1/points/jobs`
async fn list(Extension(points): Services, Extension(who): Caller) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    Ok(Json(json!({ "jobs": points.appraisal.jobs().list() })))
}

/// `GET /v1/points/jobs/{id}`
async fn read(
    Extension(points): Services,
    Extension(who): Caller,
    Path(id): Path<String>,
) -> Answer<Json<Job>> {
    points.source(&who).check_operator()?;
    Ok(Json(points.appraisal.jobs().get(&id)?))
}

/// `DELETE /v1/points/jobs/{id}`
async fn cancel(
    Extension(points): Services,
    Extension(who): Caller,
    Path(id): Path<String>,
) -> Answer<Json<Job>> {
    points.source(&who).check_operator()?;
    Ok(Json(points.appraisal.jobs().cancel(&id)?))
}

/// The object of a body, which may be empty.
fn request_of(body: &[u8]) -> Result<Value, Refused> {
    let request = if body.is_empty() { json!({}) } else { json_of(body)? };
    if request.is_object() {
        return Ok(request);
    }
    Err(Refused::new(Code::RequestMalformed, "the body is an object"))
}

/// Answers that a job has begun, and where its result will be.
fn accepted(job: &Job) -> Response {
    let place = (header::LOCATION, format!("/v1/points/jobs/{}", job.id));
    (StatusCode::ACCEPTED, [place], Json(json!(job))).into_response()
}

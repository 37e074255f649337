//! Guarded rollouts of a cache strategy: starting, reading, advancing and stopping them.

use super::Routes;
use super::audit::AuditDetails;
use super::body::{self, Body};
use super::caller::{Answer, Caller};
use super::change::{json_of, reason};
use super::contract::rollouts as doc;
use super::problem::Problem;
use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use raingauge_app::{self as app, App, Role};
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_core::counter::Problem as Wrong;
use raingauge_policy::rollout::Plan;
use serde_json::json;
use std::sync::Arc;

/// Most rollouts in a list.
const LISTED_MAX: usize = 20;

pub fn routes() -> Routes {
    use Scope::{Admin, CountsRead};
    Routes::of(Role::Portal)
        .get("/v1/rollouts", CountsRead, list, doc::list)
        .post("/v1/rollouts", Admin, "rollout.begin", begin, doc::begin)
        .get("/v1/rollouts/{id}", CountsRead, read, doc::read)
        .post("/v1/rollouts/{id}/stop", Admin, "rollout.stop", stop, doc::stop)
        .post("/v1/rollouts/{id}/go-on", Admin, "rollout.go_on", go_on, doc::go_on)
}

/// `GET /v1/rollouts`
pub async fn list(State(app): State<Arc<App>>) -> Answer<Json<doc::Rollouts>> {
    let runs = app.operations.rollouts.newest(LISTED_MAX).await?;
    Ok(Json(doc::Rollouts { rollouts: runs.into_iter().map(doc::RolloutRun::from).collect() }))
}

/// `POST /v1/rollouts`
pub async fn begin(
    Caller { app, who }: Caller,
    headers: HeaderMap,
    body: Body<body::Configuration>,
) -> Answer {
    let plan = plan_of(&body.bytes)?;
    let details = json!(plan);
    let run = app
        .operations
        .rollouts
        .begin(plan, &who.recorded_name(), reason(&headers).to_owned())
        .await?;

    let place = (header::LOCATION, format!("/v1/rollouts/{}", run.id));
    let details = Extension(AuditDetails(details));
    Ok((StatusCode::CREATED, details, [place], Json(doc::RolloutRun::from(run))).into_response())
}

/// `GET /v1/rollouts/{id}`
pub async fn read(
    State(app): State<Arc<App>>,
    Path(id): Path<u64>,
) -> Answer<Json<doc::RolloutRun>> {
    Ok(Json(app.operations.rollouts.get(id).await?.into()))
}

/// `POST /v1/rollouts/{id}/stop`
pub async fn stop(
    Caller { app, who }: Caller,
    Path(id): Path<u64>,
) -> Answer<Json<doc::RolloutRun>> {
    Ok(Json(app.operations.rollouts.stop(id, &who.name).await?.into()))
}

/// `POST /v1/rollouts/{id}/go-on`
pub async fn go_on(
    Caller { app, who }: Caller,
    Path(id): Path<u64>,
) -> Answer<Json<doc::RolloutRun>> {
    Ok(Json(app.operations.rollouts.go_on(id, &who.name).await?.into()))
}

/// Reads the plan in a body; missing members get their defaults.
fn plan_of(body: &[u8]) -> Result<Plan, Problem> {
    let draft = serde_json::from_value::<doc::RolloutDraft>(json_of(body)?);
    let plan = draft
        .map(Plan::from)
        .map_err(|error| invalid(&[Wrong::new("plan", format!("cannot be read: {error}"))]))?;
    let problems = plan.problems();
    if problems.is_empty() { Ok(plan) } else { Err(invalid(&problems)) }
}

fn invalid(problems: &[Wrong]) -> Problem {
    app::Problem::invalid(Code::RolloutInvalid, problems).into()
}

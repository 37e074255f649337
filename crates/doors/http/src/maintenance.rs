//! Compaction: what is scheduled, what runs and what has run; started and stopped on request.

use super::Routes;
use super::caller::{Answer, Caller};
use super::contract::system as doc;
use super::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use raingauge_app::App;
use raingauge_app::Role;
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_operations::maintenance::{Maintenance, Status};
use std::sync::Arc;

pub fn routes() -> Routes {
    use Scope::Admin;
    Routes::of(Role::Portal)
        .get("/v1/maintenance", Admin, status, doc::maintenance)
        .post("/v1/maintenance/compaction", Admin, "compaction.begin", compact, doc::compact)
        .delete("/v1/maintenance/compaction", Admin, "compaction.stop", stop, doc::stop)
}

/// `GET /v1/maintenance`
pub async fn status(State(app): State<Arc<App>>) -> Answer<Json<Status>> {
    Ok(Json(of(&app)?.status()))
}

/// `POST /v1/maintenance/compaction`
pub async fn compact(Caller { app, who }: Caller) -> Answer<(StatusCode, Json<Status>)> {
    let maintenance = of(&app)?;
    maintenance.compact(&who.name)?;
    Ok((StatusCode::ACCEPTED, Json(maintenance.status())))
}

/// `DELETE /v1/maintenance/compaction`
pub async fn stop(State(app): State<Arc<App>>) -> Answer<(StatusCode, Json<Status>)> {
    let maintenance = of(&app)?;
    maintenance.stop()?;
    Ok((StatusCode::ACCEPTED, Json(maintenance.status())))
}

fn of(app: &App) -> Result<&Maintenance, Problem> {
    app.operations.maintenance.as_deref().ok_or_else(|| {
        let detail = "this instance compacts nothing: ask one that runs with --role portal";
        Problem::new(Code::MaintenanceAbsent, detail)
    })
}

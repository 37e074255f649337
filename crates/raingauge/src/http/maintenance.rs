//! Compaction: what is planned, what runs, what was done; begun and stopped by hand.

use super::problem::Problem;
use super::{Door, Routes};
use crate::settings::Role;
use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_operations::maintenance::{Error, Maintenance, Status};
use raingauge_people::tokens::Who;
use std::sync::Arc;

pub fn routes() -> Routes {
    Routes::of(Role::Portal)
        .get("/v1/maintenance", Scope::Admin, status)
        .post("/v1/maintenance/compaction", Scope::Admin, "compaction.begin", compact)
        .delete("/v1/maintenance/compaction", Scope::Admin, "compaction.stop", stop)
}

/// `GET /v1/maintenance`
pub async fn status(State(door): State<Arc<Door>>) -> Result<Json<Status>, Problem> {
    Ok(Json(of(&door)?.status()))
}

/// `POST /v1/maintenance/compaction`
pub async fn compact(
    State(door): State<Arc<Door>>,
    Extension(who): Extension<Who>,
) -> Result<(StatusCode, Json<Status>), Problem> {
    let maintenance = of(&door)?;
    maintenance.compact(&who.name)?;
    Ok((StatusCode::ACCEPTED, Json(maintenance.status())))
}

/// `DELETE /v1/maintenance/compaction`
pub async fn stop(State(door): State<Arc<Door>>) -> Result<(StatusCode, Json<Status>), Problem> {
    let maintenance = of(&door)?;
    maintenance.stop()?;
    Ok((StatusCode::ACCEPTED, Json(maintenance.status())))
}

fn of(door: &Door) -> Result<&Maintenance, Problem> {
    door.services.maintenance.as_deref().ok_or_else(|| {
        let detail = "this instance compacts nothing: ask one that runs with --role portal";
        Problem::new(Code::MaintenanceAbsent, detail)
    })
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        match error {
            Error::Running => Self::new(Code::CompactionRunning, detail),
            Error::Idle => Self::new(Code::CompactionIdle, detail),
            _ => Self::new(Code::Unavailable, detail),
        }
    }
}

//! `/v1/points/sweeps` and `/v1/points/seals`: what is due is written down, and what is written is
//! sealed.

use crate::commands::until_ms;
use crate::contract::operations as doc;
use crate::refused::{Answer, Refused};
use crate::{Points, Table};
use axum::Json;
use axum::extract::Extension;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use raingauge_awarding::SweepStatus;
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_http::change::json_of;
use raingauge_http::queries::time;
use raingauge_http::{Body, Configuration};
use raingauge_people::Principal;
use raingauge_ports::points::{Error, Head};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

const HOUR_MS: i64 = 3_600_000;

type Services = Extension<Arc<Points>>;
type Caller = Extension<Principal>;

pub fn add(table: Table) -> Table {
    const ADMIN: Scope = Scope::PointsAdmin;
    table
        .get("/v1/points/sweeps", ADMIN, list, doc::sweeps)
        .post("/v1/points/sweeps", (ADMIN, "points.sweep"), sweep, doc::sweep)
        .get("/v1/points/seals", ADMIN, seals, doc::seals)
}

/// `GET /v1/points/sweeps`
async fn list(Extension(points): Services, Extension(who): Caller) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    let sweeps: Vec<Value> = points.teller.sweeps().iter().map(shown).collect();
    Ok(Json(json!({ "sweeps": sweeps })))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepRequest {
    until: Option<Value>,
}

/// `POST /v1/points/sweeps`
async fn sweep(
    Extension(points): Services,
    Extension(who): Caller,
    body: Body<Configuration>,
) -> Answer {
    points.source(&who).check_operator()?;
    let request = if body.bytes.is_empty() {
        SweepRequest::default()
    } else {
        serde_json::from_value(json_of(&body.bytes)?)
            .map_err(|error| Refused::new(Code::RequestMalformed, error.to_string()))?
    };
    let until = request.until.as_ref().map(until_ms).transpose()?;
    let status = points.teller.begin_sweep(until)?;
    let answer: Response = Json(shown(&status)).into_response();
    Ok((StatusCode::ACCEPTED, answer).into_response())
}

fn shown(status: &SweepStatus) -> Value {
    json!({
        "id": status.id.to_string(),
        "state": status.state.name(),
        "startedAt": time(status.id),
        "until": time(i64::from(status.until_hour) * HOUR_MS),
        "ranges": status.ranges,
        "rangesDone": status.ranges_done,
        "wallets": status.wallets,
        "entries": status.entries,
        "finishedAt": status.finished_ms.map(time),
        "error": status.error,
    })
}

/// `GET /v1/points/seals`
async fn seals(Extension(points): Services, Extension(who): Caller) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    let books = Arc::clone(&points.books);
    let read = move || (0..books.books()).map(|book| books.head(book)).collect();
    let heads: Result<Vec<Head>, Error> = tokio::task::spawn_blocking(read)
        .await
        .map_err(|_| Refused::new(Code::Failed, "the heads of the books could not be read"))?;
    let heads = heads.map_err(|error| Refused::new(Code::Unavailable, error.to_string()))?;

    let seals: Vec<Value> = heads
        .iter()
        .map(|head| {
            json!({
                "book": head.book,
                "sequence": head.sequence,
                "recordedAt": time(head.recorded_ms),
                "hash": head.chain.to_string(),
            })
        })
        .collect();
    Ok(Json(json!({ "seals": seals })))
}

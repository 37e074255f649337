//! Health, metrics, the contract.

use super::Door;
use super::problem::Problem;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// The contract of this door, OpenAPI 3.1.
const OPENAPI: &str = include_str!("openapi.json");

/// `GET /healthz`: the process lives.
pub async fn live() -> &'static str {
    "live\n"
}

/// `GET /readyz`: events are taken and counts are answered. A partition that is not counted is told, and keeps neither the
/// events of others nor its own from being taken.
pub async fn ready(State(door): State<Arc<Door>>) -> Result<String, Problem> {
    if *door.draining.borrow() {
        return Err(not_ready("the server is stopping"));
    }
    match door.services.unready() {
        Some(reason) => Err(not_ready(&reason)),
        None => {
            Ok(std::iter::once("ready".to_owned()).chain(door.services.troubles()).map(|line| line + "\n").collect())
        }
    }
}

pub fn not_ready(detail: &str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", detail)
}

/// `GET /metrics`: Prometheus text.
pub async fn metrics(State(door): State<Arc<Door>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], door.metrics.render()).into_response()
}

/// `GET /openapi.json`
pub async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

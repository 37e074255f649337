//! Health, metrics, the contract, the page.

use super::Door;
use super::problem::Problem;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use raingauge_portal::{Asset, CONTENT_SECURITY_POLICY};

/// The contract of this door, OpenAPI 3.1.
const OPENAPI: &str = include_str!("openapi.json");

/// `GET /healthz`: the process lives.
pub async fn live() -> &'static str {
    "live\n"
}

/// `GET /readyz`: events are taken and counts are answered.
pub async fn ready(State(door): State<Door>) -> Result<&'static str, Problem> {
    let not_ready = |detail: &str| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", detail);
    if *door.draining.borrow() {
        return Err(not_ready("the server is stopping"));
    }
    match door.services.published.failure() {
        Some(reason) => Err(not_ready(&format!("counting has stopped: {reason}"))),
        None => Ok("ready\n"),
    }
}

/// `GET /metrics`: Prometheus text.
pub async fn metrics(State(door): State<Door>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], door.metrics.render()).into_response()
}

/// `GET /openapi.json`
pub async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// A file of the page.
pub fn asset(asset: &'static Asset) -> Response {
    let headers = [
        (header::CONTENT_TYPE, asset.content_type),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, asset.body).into_response()
}

//! Health, metrics, the contract.

use super::problem::Problem;
use super::{Door, Routes};
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use std::sync::Arc;

/// The contract of this door, OpenAPI 3.1.
const OPENAPI: &str = include_str!("openapi.json");

pub fn routes() -> Routes {
    health().get("/metrics", Scope::MetricsRead, metrics).open("/openapi.json", openapi)
}

/// Routes that are answered over every connection, even one that the door has no place for.
pub fn health() -> Routes {
    Routes::everywhere().open("/healthz", live).open("/readyz", ready)
}

/// `GET /healthz`: the process lives.
pub async fn live() -> &'static str {
    "live\n"
}

/// `GET /readyz`: events are taken and counts are answered. A partition that is not counted is told, and keeps neither the
/// events of others nor its own from being taken. Only those who may read metrics are told why.
pub async fn ready(
    State(door): State<Arc<Door>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<String, Problem> {
    let answer = readiness(&door);
    if may_know_causes(&door, &headers, &uri) { answer } else { without_causes(&answer) }
}

/// The same status, for those who may not know why.
fn without_causes(answer: &Result<String, Problem>) -> Result<String, Problem> {
    match answer {
        Ok(_) => Ok("ready\n".to_owned()),
        Err(_) => Err(not_ready(
            "a token with the scope metrics:read is told why, and the log of the server says so",
        )),
    }
}

/// Causes name partitions, engines and addresses: they are for those who may read metrics.
fn may_know_causes(door: &Door, headers: &HeaderMap, uri: &Uri) -> bool {
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    match door.tokens.is_asked() {
        true => door.tokens.check(header, Scope::MetricsRead).is_ok(),
        false => raingauge_portal::foreign(headers, uri).is_none(),
    }
}

fn readiness(door: &Door) -> Result<String, Problem> {
    if *door.draining.borrow() {
        return Err(not_ready("the server is stopping"));
    }
    match door.services.unready() {
        Some(reason) => Err(not_ready(&reason)),
        None => Ok(std::iter::once("ready".to_owned())
            .chain(door.services.troubles())
            .map(|line| line + "\n")
            .collect()),
    }
}

pub fn not_ready(detail: &str) -> Problem {
    Problem::new(Code::NotReady, detail)
}

/// `GET /metrics`: Prometheus text.
pub async fn metrics(State(door): State<Arc<Door>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], door.metrics.render()).into_response()
}

/// `GET /openapi.json`
pub async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_causes_the_status_stays() {
        let troubled =
            Ok("ready\npartition 3 is not counted: kafka-7.internal:9092 is away\n".to_owned());
        assert_eq!(without_causes(&troubled).unwrap(), "ready\n");
        let stopped =
            without_causes(&Err(not_ready("counting has stopped: /var/lib/raingauge is full")))
                .unwrap_err();
        assert_eq!(stopped.refusal.code, Code::NotReady);
        assert!(!stopped.refusal.detail.contains("/var/lib"), "{}", stopped.refusal.detail);
    }
}

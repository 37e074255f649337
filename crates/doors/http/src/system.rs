//! Health, metrics and the API contract.

use super::Routes;
use super::contract::{self, system as doc};
use super::problem::Problem;
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use raingauge_app::{App, access};
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use std::future;
use std::sync::{Arc, OnceLock};

/// The contract, OpenAPI 3.1. It is written when the table of routes is complete.
#[derive(Clone, Default)]
pub struct Document(Arc<OnceLock<Bytes>>);

impl Document {
    pub fn describe(&self, routes: &Routes) {
        // Writing strings and numbers into memory does not fail.
        let text = serde_json::to_vec_pretty(&contract::contract(routes)).unwrap_or_default();
        let _ = self.0.set(text.into());
    }

    fn answer(&self) -> Response {
        let text = self.0.get().cloned().unwrap_or_default();
        ([(header::CONTENT_TYPE, "application/json")], text).into_response()
    }
}

pub fn routes(contract: &Document) -> Routes {
    let contract = contract.clone();
    Routes::everywhere()
        .get("/metrics", Scope::MetricsRead, metrics, doc::metrics)
        .open("/openapi.json", move || future::ready(contract.answer()), doc::this_document)
        .join(health())
}

/// Routes that are answered over every connection, even one without a place.
pub fn health() -> Routes {
    Routes::everywhere().open("/healthz", live, doc::live).open("/readyz", ready, doc::ready)
}

/// `GET /healthz`: the process is alive.
pub async fn live() -> &'static str {
    "live\n"
}

/// `GET /readyz`: the process accepts events and answers counts. The answer reports a partition
/// that is not counted, which keeps neither the events of others nor its own from being accepted.
/// Only callers who may read metrics see the cause.
pub async fn ready(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<String, Problem> {
    let answer = readiness(&app);
    // Causes name partitions, engines and addresses: they are for callers who may read metrics.
    let may_know = access::allows(&app.people.tokens, Scope::MetricsRead, &headers, &uri);
    if may_know { answer } else { without_causes(&answer) }
}

/// Returns the same status without the causes.
fn without_causes(answer: &Result<String, Problem>) -> Result<String, Problem> {
    match answer {
        Ok(_) => Ok("ready\n".to_owned()),
        Err(_) => Err(not_ready(
            "a token with the scope metrics:read gets the cause, which is also in the log of the server",
        )),
    }
}

fn readiness(app: &App) -> Result<String, Problem> {
    if *app.node.draining.borrow() {
        return Err(not_ready("the server is stopping"));
    }
    match app.unready() {
        Some(reason) => Err(not_ready(&reason)),
        None => Ok(std::iter::once("ready".to_owned())
            .chain((app.node.troubles)())
            .map(|line| line + "\n")
            .collect()),
    }
}

pub fn not_ready(detail: &str) -> Problem {
    Problem::new(Code::NotReady, detail)
}

/// `GET /metrics`: Prometheus text.
pub async fn metrics(State(app): State<Arc<App>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], (app.node.metrics)()).into_response()
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
        assert_eq!(stopped.code(), Code::NotReady);
        assert!(!stopped.0.refusal.detail.contains("/var/lib"), "{}", stopped.0.refusal.detail);
    }
}

//! What stands before every handler: the token's scope, the time a request may take, the metrics.

use super::Door;
use super::problem::Problem;
use crate::auth::{Denied, Scope, Tokens, Who};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Clone)]
pub struct Guard {
    tokens: Arc<Tokens>,
    scope: Option<Scope>,
    timeout: Duration,
    path: &'static str,
    seconds: metrics::Histogram,
    succeeded: metrics::Counter,
}

impl Guard {
    pub fn new(door: &Door, path: &'static str, scope: Option<Scope>) -> Self {
        Self {
            tokens: Arc::clone(&door.tokens),
            scope,
            timeout: door.request_timeout,
            path,
            seconds: metrics::histogram!("raingauge_http_request_seconds", "route" => path),
            succeeded: metrics::counter!("raingauge_http_requests_total", "route" => path, "status" => "200"),
        }
    }

    fn check(&self, request: &Request) -> Result<Option<Who>, Box<Problem>> {
        let Some(scope) = self.scope else { return Ok(None) };
        let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        self.tokens.check(header, scope).map(Some).map_err(|denied| Box::new(denied.into()))
    }

    fn note(&self, began: Instant, status: StatusCode) {
        self.seconds.record(began.elapsed().as_secs_f64());
        if status == StatusCode::OK {
            self.succeeded.increment(1);
        } else {
            let labels = [("route", self.path.to_owned()), ("status", status.as_u16().to_string())];
            metrics::counter!("raingauge_http_requests_total", &labels).increment(1);
        }
    }
}

/// Lets a request through to its handler, and says who asks.
pub async fn pass(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let response = match guard.check(&request) {
        Err(problem) => problem.into_response(),
        Ok(who) => {
            if let Some(who) = who {
                request.extensions_mut().insert(who);
            }
            match tokio::time::timeout(guard.timeout, next.run(request)).await {
                Ok(response) => response,
                Err(_) => {
                    let detail =
                        format!("the request took longer than {} s: ask for less at once", guard.timeout.as_secs());
                    Problem::new(StatusCode::GATEWAY_TIMEOUT, "timeout", detail).into_response()
                }
            }
        }
    };
    guard.note(began, response.status());
    response
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Missing => Self::new(
                StatusCode::UNAUTHORIZED,
                "token_missing",
                "send a token: Authorization: Bearer rg_…; `raingauge token` makes one",
            ),
            Denied::Unknown => {
                Self::new(StatusCode::UNAUTHORIZED, "token_unknown", "this token is not one of the configured ones")
            }
            Denied::Scope(scope) => Self::new(
                StatusCode::FORBIDDEN,
                "scope_missing",
                format!("this token lacks the scope {}", scope.name()),
            ),
        }
    }
}

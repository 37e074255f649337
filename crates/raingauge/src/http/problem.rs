//! Errors as problem documents (RFC 9457). Every one has a stable `code` and a `detail` that says what to do.

use super::guard::protect;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use raingauge_counters as counters;
use raingauge_ports::{catalog, log, scans};
use raingauge_reader::Failure;
use raingauge_writer::{ingest, worker};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// What a caller is told to wait while the disk has no room.
const DISK_FULL_RETRY_AFTER: Duration = Duration::from_secs(5);
/// What a caller is told to wait when too many scans wait already.
const SCANS_RETRY_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Problem {
    pub status: StatusCode,
    pub code: &'static str,
    pub detail: String,
    pub retry_after: Option<Duration>,
    members: Map<String, Value>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), retry_after: None, members: Map::new() }
    }

    /// The request itself is wrong.
    pub fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// Adds a member of its own to the document.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.members.insert(name.to_owned(), value);
        self
    }

    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        metrics::counter!("raingauge_errors_total", "code" => self.code).increment(1);
        let mut document = self.members;
        document.insert("type".to_owned(), json!(format!("urn:raingauge:problem:{}", self.code)));
        document
            .insert("title".to_owned(), json!(self.status.canonical_reason().unwrap_or("Error")));
        document.insert("status".to_owned(), json!(self.status.as_u16()));
        document.insert("code".to_owned(), json!(self.code));
        document.insert("detail".to_owned(), json!(self.detail));
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (self.status, kind, Value::Object(document).to_string()).into_response();
        protect(response.headers_mut());
        if self.status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(after) = self.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
        }
        response
    }
}

pub async fn not_found() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "route_unknown",
        "there is nothing at this path; /openapi.json lists what there is",
    )
}

pub async fn method_not_allowed() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "this path does not take this method; /openapi.json lists what there is",
    )
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let status = match failure.code {
            "key_unknown" | "counter_unknown" => StatusCode::NOT_FOUND,
            "unavailable" | "overloaded" => StatusCode::SERVICE_UNAVAILABLE,
            "deadline_exceeded" => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Self::new(status, failure.code, failure.detail)
    }
}

impl From<scans::Full> for Problem {
    fn from(full: scans::Full) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "scans_waiting", full.to_string())
            .retry_after(SCANS_RETRY_AFTER)
    }
}

impl From<log::Error> for Problem {
    fn from(error: log::Error) -> Self {
        match error {
            log::Error::Busy { retry_after } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "log_busy", error.to_string())
                    .retry_after(retry_after)
            }
            log::Error::Full { .. } => {
                let problem =
                    Self::new(StatusCode::SERVICE_UNAVAILABLE, "disk_full", error.to_string());
                problem.retry_after(DISK_FULL_RETRY_AFTER)
            }
            log::Error::ClockUnsound(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "clock_unsound", error.to_string())
            }
            log::Error::TooLarge { .. } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", error.to_string())
            }
            error => Self::unavailable(error.to_string()),
        }
    }
}

impl From<ingest::Error> for Problem {
    fn from(error: ingest::Error) -> Self {
        match error {
            ingest::Error::TooMany => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many_events", error.to_string())
            }
            ingest::Error::Lagging { retry_after, .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "writer_lagging", error.to_string())
                    .retry_after(retry_after)
            }
            ingest::Error::Log(error) => error.into(),
            ingest::Error::Stopped(_) => Self::unavailable(error.to_string()),
        }
    }
}

impl From<catalog::Error> for Problem {
    fn from(error: catalog::Error) -> Self {
        let detail = error.to_string();
        match error {
            catalog::Error::NotFound(_) => {
                Self::new(StatusCode::NOT_FOUND, "counter_unknown", detail)
            }
            catalog::Error::IdTaken(_) => Self::new(StatusCode::CONFLICT, "id_taken", detail),
            catalog::Error::VersionMismatch { current, .. }
            | catalog::Error::PolicyMismatch { current } => {
                Self::new(StatusCode::PRECONDITION_FAILED, "version_mismatch", detail)
                    .with("currentVersion", json!(current))
            }
            catalog::Error::Invalid(problems) => {
                let said: Vec<String> = problems
                    .iter()
                    .map(|problem| format!("{}: {}", problem.field, problem.detail))
                    .collect();
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "counter_invalid", said.join("; "))
                    .with("problems", json!(problems))
            }
            catalog::Error::Unavailable(_) => Self::unavailable(detail),
        }
    }
}

impl From<counters::Error> for Problem {
    fn from(error: counters::Error) -> Self {
        match error {
            counters::Error::Catalog(error) => error.into(),
            counters::Error::Log(error) => error.into(),
            counters::Error::Stopped(_) => Self::unavailable(error.to_string()),
            counters::Error::TooMany => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many_buckets", error.to_string())
            }
            counters::Error::KeyReused => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "idempotency_key_reused",
                error.to_string(),
            ),
            counters::Error::TooManyRefused => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "too_many_rejected", error.to_string())
            }
            counters::Error::KeyOfAnother { .. } => {
                Self::new(StatusCode::NOT_FOUND, "key_unknown", error.to_string())
            }
            counters::Error::NotArchived(_) => {
                Self::new(StatusCode::CONFLICT, "counter_not_archived", error.to_string())
            }
            counters::Error::ReasonTooLong => {
                Self::new(StatusCode::BAD_REQUEST, "reason_too_long", error.to_string())
            }
            counters::Error::ChangedTooOften(_) => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "changed_too_often", error.to_string())
            }
            counters::Error::TooManyVersions(_) => {
                Self::new(StatusCode::CONFLICT, "too_many_versions", error.to_string())
            }
        }
    }
}

impl From<worker::Error> for Problem {
    fn from(error: worker::Error) -> Self {
        Self::unavailable(error.to_string())
    }
}

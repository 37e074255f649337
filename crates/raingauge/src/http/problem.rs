//! Errors as problem documents (RFC 9457). Every one has a stable `code` and a `detail` that says what to do.

use super::guard::protect;
use super::status::status;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use raingauge_core::code::{Code, Refusal};
use raingauge_counters as counters;
use raingauge_ports::{catalog, log, scans};
use raingauge_writer::{ingest, worker};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// What a caller is told to wait while the disk has no room.
const DISK_FULL_RETRY_AFTER: Duration = Duration::from_secs(5);
/// What a caller is told to wait when too many scans wait already.
const SCANS_RETRY_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Problem {
    pub refusal: Refusal,
    pub retry_after: Option<Duration>,
    members: Map<String, Value>,
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Refusal::new(code, detail).into()
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
        Self::new(Code::Unavailable, detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Refusal { code, detail } = self.refusal;
        let status = status(code);
        metrics::counter!("raingauge_errors_total", "code" => code.as_str()).increment(1);

        let mut document = self.members;
        let mut insert = |name: &str, value: Value| document.insert(name.to_owned(), value);
        insert("type", json!(format!("urn:raingauge:problem:{}", code.as_str())));
        insert("title", json!(status.canonical_reason().unwrap_or("Error")));
        insert("status", json!(status.as_u16()));
        insert("code", json!(code));
        insert("detail", json!(detail));

        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (status, kind, Value::Object(document).to_string()).into_response();
        protect(response.headers_mut());
        if status == StatusCode::UNAUTHORIZED {
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
        Code::RouteUnknown,
        "there is nothing at this path; /openapi.json lists what there is",
    )
}

pub async fn method_not_allowed() -> Problem {
    Problem::new(
        Code::MethodNotAllowed,
        "this path does not take this method; /openapi.json lists what there is",
    )
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, retry_after: None, members: Map::new() }
    }
}

impl From<scans::Full> for Problem {
    fn from(full: scans::Full) -> Self {
        Self::new(Code::ScansWaiting, full.to_string()).retry_after(SCANS_RETRY_AFTER)
    }
}

impl From<log::Error> for Problem {
    fn from(error: log::Error) -> Self {
        match error {
            log::Error::Busy { retry_after } => {
                Self::new(Code::LogBusy, error.to_string()).retry_after(retry_after)
            }
            log::Error::Full { .. } => {
                let problem = Self::new(Code::DiskFull, error.to_string());
                problem.retry_after(DISK_FULL_RETRY_AFTER)
            }
            log::Error::ClockUnsound(_) => Self::new(Code::ClockUnsound, error.to_string()),
            log::Error::TooLarge { .. } => Self::new(Code::BodyTooLarge, error.to_string()),
            error => Self::unavailable(error.to_string()),
        }
    }
}

impl From<ingest::Error> for Problem {
    fn from(error: ingest::Error) -> Self {
        match error {
            ingest::Error::TooMany => Self::new(Code::TooManyEvents, error.to_string()),
            ingest::Error::Lagging { retry_after, .. } => {
                Self::new(Code::WriterLagging, error.to_string()).retry_after(retry_after)
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
            catalog::Error::NotFound(_) => Self::new(Code::CounterUnknown, detail),
            catalog::Error::IdTaken(_) => Self::new(Code::IdTaken, detail),
            catalog::Error::VersionMismatch { current, .. }
            | catalog::Error::PolicyMismatch { current } => {
                Self::new(Code::VersionMismatch, detail).with("currentVersion", json!(current))
            }
            catalog::Error::Invalid(problems) => {
                let said: Vec<String> = problems
                    .iter()
                    .map(|problem| format!("{}: {}", problem.field, problem.detail))
                    .collect();
                Self::new(Code::CounterInvalid, said.join("; ")).with("problems", json!(problems))
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
            counters::Error::TooMany => Self::new(Code::TooManyBuckets, error.to_string()),
            counters::Error::KeyReused => Self::new(Code::IdempotencyKeyReused, error.to_string()),
            counters::Error::TooManyRefused => Self::new(Code::TooManyRejected, error.to_string()),
            counters::Error::KeyOfAnother { .. } => Self::new(Code::KeyUnknown, error.to_string()),
            counters::Error::NotArchived(_) => {
                Self::new(Code::CounterNotArchived, error.to_string())
            }
            counters::Error::ReasonTooLong => Self::new(Code::ReasonTooLong, error.to_string()),
            counters::Error::ChangedTooOften(_) => {
                Self::new(Code::ChangedTooOften, error.to_string())
            }
            counters::Error::TooManyVersions(_) => {
                Self::new(Code::TooManyVersions, error.to_string())
            }
        }
    }
}

impl From<worker::Error> for Problem {
    fn from(error: worker::Error) -> Self {
        Self::unavailable(error.to_string())
    }
}

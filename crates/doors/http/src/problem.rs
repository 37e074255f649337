//! Errors as problem documents (RFC 9457). Each has a stable `code` and a `detail` that says what
//! to do.

use super::headers::protect;
use super::status::status;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use raingauge_app as app;
use raingauge_core::code::{Code, Refusal};
use serde_json::{Value, json};

/// A problem as this door writes it.
#[derive(Debug)]
pub struct Problem(pub app::Problem);

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(app::Problem::new(code, detail))
    }

    /// Adds a further member to the document.
    pub fn with(self, name: &str, value: Value) -> Self {
        Self(self.0.with(name, value))
    }

    pub fn code(&self) -> Code {
        self.0.refusal.code
    }
}

impl<E: Into<app::Problem>> From<E> for Problem {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let app::Problem { refusal: Refusal { code, detail }, retry_after, members } = self.0;
        let status = status(code);
        metrics::counter!("raingauge_errors_total", "code" => code.as_str()).increment(1);

        let mut document = members;
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

        if let Some(after) = retry_after {
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

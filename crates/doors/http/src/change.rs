//! What requests that change a document say, in their headers and in their body.

use super::problem::Problem;
use axum::http::{HeaderMap, header};
use raingauge_core::code::Code;
use raingauge_core::json::check_containers;
use raingauge_core::limits::CONFIGURATION_CONTAINERS_MAX;
use serde_json::Value;

/// Reads the JSON of a configuration.
pub fn json_of(body: &[u8]) -> Result<Value, Problem> {
    json_within(body, CONFIGURATION_CONTAINERS_MAX)
}

/// Reads JSON of at most this many arrays and objects.
pub fn json_within(body: &[u8], containers_max: usize) -> Result<Value, Problem> {
    check_containers(body, containers_max)
        .map_err(|detail| Problem::new(Code::JsonMalformed, detail))?;
    serde_json::from_slice(body).map_err(|error| {
        Problem::new(Code::JsonMalformed, format!("the body is not JSON: {error}"))
    })
}

/// Removes what reading a document adds to it, so that clients can send it back.
pub fn without_version(mut document: Value) -> Value {
    if let Some(members) = document.as_object_mut() {
        for name in ["version", "changedBy", "changedByKind", "reason", "changedAt"] {
            members.remove(name);
        }
    }
    document
}

/// Returns the version in `If-Match`; `None` when the header is missing or matches any version.
pub fn expected_version(headers: &HeaderMap) -> Result<Option<u32>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH).and_then(|value| value.to_str().ok()) else {
        return Ok(None);
    };
    if value.trim() == "*" {
        return Ok(None);
    }
    let version = value.trim().trim_matches('"').parse();
    version.map(Some).map_err(|_| {
        Problem::new(Code::EtagMalformed, "If-Match must be the ETag that was read, such as \"3\"")
    })
}

/// Returns the reason of a change from the header `x-reason`, whose length the guard has checked.
pub fn reason(headers: &HeaderMap) -> &str {
    headers.get("x-reason").and_then(|value| value.to_str().ok()).unwrap_or_default()
}

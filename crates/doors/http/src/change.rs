//! What requests that change a document say, in their headers and in their body.

use super::problem::Problem;
use super::queries::seconds;
use axum::http::{HeaderMap, HeaderName, header};
use raingauge_core::code::Code;
use raingauge_core::json::check_containers;
use raingauge_core::limits::CONFIGURATION_CONTAINERS_MAX;
use raingauge_ports::campaigns::StoredDocument;
use raingauge_ports::catalog::TOKEN_PREFIX;
use serde_json::{Value, json};

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

/// A document of a product as answers have it: its members, and those about its version. `own` is
/// the member that names it, which a deletion has alone.
pub fn with_version(stored: StoredDocument, own: (&str, Value)) -> Value {
    let StoredDocument { version, configuration, is_deleted, changed_by, reason, .. } = stored;
    let mut document = match configuration {
        Value::Object(members) => Value::Object(members),
        _ => json!({ own.0: own.1 }),
    };

    let token = changed_by.strip_prefix(TOKEN_PREFIX);
    document["version"] = json!(version);
    document["changedBy"] = json!(token.unwrap_or(&changed_by));
    if token.is_some() {
        document["changedByKind"] = json!("token");
    }
    document["reason"] = json!(reason);
    document["changedAt"] = json!(seconds(stored.changed_ms));
    if is_deleted {
        document["isDeleted"] = json!(true);
    }
    document
}

/// The header `ETag` of a version.
pub fn etag(version: u32) -> (HeaderName, String) {
    (header::ETAG, format!("\"{version}\""))
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

//! The audit entry of a request that changes something.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::Response;
use raingauge_app::{App, origin_of};
use raingauge_people::Origin;
use raingauge_people::audit::{AuditAction, AuditLog};
use serde_json::{Value, json};

/// What the entry needs of the request, kept until there is a response.
pub struct PendingAudit {
    verb: &'static str,
    origin: Origin,
    path: String,
    reason: Option<String>,
}

/// An entry that still lacks its actor.
pub struct AuditEntry {
    origin: Origin,
    action: AuditAction,
    outcome: String,
}

/// The details that a handler adds to its entry, in the extensions of the response.
#[derive(Clone, Debug)]
pub struct AuditDetails(pub Value);

impl PendingAudit {
    pub fn new(app: &App, verb: &'static str, request: &Request) -> Self {
        let reason = text(request.headers(), HeaderName::from_static("x-reason"));
        let origin = origin_of(request.extensions(), request.headers(), &app.people.options);
        let path = request.uri().path().to_owned();
        Self { verb, origin, path, reason: reason.map(str::to_owned) }
    }

    /// Returns the entry, with the outcome of the response.
    pub fn answered(self, response: &Response) -> AuditEntry {
        let mut details = json!({});
        if let Some(reason) = self.reason.filter(|reason| !reason.is_empty()) {
            details["reason"] = json!(reason);
        }

        if let Some(version) = text(response.headers(), header::ETAG) {
            let name = if self.verb.starts_with("draft.") { "revision" } else { "version" };
            details[name] = json!(version.trim_matches('"').parse::<u32>().ok());
        }

        if let Some(AuditDetails(answer)) = response.extensions().get::<AuditDetails>() {
            details["answer"] = answer.clone();
        }

        // The path of a created resource is in the response.
        let path = text(response.headers(), header::LOCATION).unwrap_or(&self.path);
        let status = response.status();
        let outcome = if status.is_success() {
            "done".to_owned()
        } else {
            format!("refused_{}", status.as_u16())
        };

        let action = AuditAction { details, ..AuditAction::of_path(self.verb, path) };
        AuditEntry { origin: self.origin, action, outcome }
    }
}

impl AuditEntry {
    pub async fn write(self, audit: &AuditLog, who: &str) {
        audit.note(who, &self.origin, self.action, &self.outcome).await;
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

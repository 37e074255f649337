//! The audit entry of a request that changes something.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::Response;
use raingauge_app::{App, caller_of};
use raingauge_people::Caller;
use raingauge_people::audit::{Actor, Audit, Deed};
use serde_json::{Value, json};

/// What the entry needs of the request, kept until there is an answer.
pub struct PendingAudit {
    verb: &'static str,
    caller: Caller,
    path: String,
    reason: Option<String>,
}

/// An entry that only lacks who made the change.
pub struct AuditEntry {
    caller: Caller,
    deed: Deed,
    outcome: String,
}

/// What a handler adds to the details of its entry, in the extensions of the response.
#[derive(Clone, Debug)]
pub struct AuditDetails(pub Value);

impl PendingAudit {
    pub fn new(app: &App, verb: &'static str, request: &Request) -> Self {
        let reason = text(request.headers(), HeaderName::from_static("x-reason"));
        let caller = caller_of(request.extensions(), request.headers(), &app.people.options);
        let path = request.uri().path().to_owned();
        Self { verb, caller, path, reason: reason.map(str::to_owned) }
    }

    /// The entry, by how the request was answered.
    pub fn answered(self, response: &Response) -> AuditEntry {
        let mut details = json!({});
        if let Some(reason) = self.reason.filter(|reason| !reason.is_empty()) {
            details["reason"] = json!(reason);
        }
        if let Some(version) = text(response.headers(), header::ETAG) {
            details["version"] = json!(version.trim_matches('"').parse::<u32>().ok());
        }
        if let Some(AuditDetails(answer)) = response.extensions().get::<AuditDetails>() {
            details["answer"] = answer.clone();
        }

        // Of what was created the path stands in the answer.
        let path = text(response.headers(), header::LOCATION).unwrap_or(&self.path);
        let status = response.status();
        let outcome = if status.is_success() {
            "done".to_owned()
        } else {
            format!("refused_{}", status.as_u16())
        };
        let deed = Deed { details, ..Deed::of_path(self.verb, path) };
        AuditEntry { caller: self.caller, deed, outcome }
    }
}

impl AuditEntry {
    pub async fn write(self, audit: &Audit, principal: &str) {
        let actor = Actor { name: principal, address: &self.caller.address };
        audit.deed(actor, self.deed, &self.outcome).await;
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

//! Which requests change something, and what the audit log says of them.

use super::Door;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, header};
use axum::response::Response;
use raingauge_portal::people::Caller;
use raingauge_portal::people::audit::{Actor, Deed};
use serde_json::{Value, json};

/// Every route that changes something, with what it does.
const CHANGES: [(Method, &str, &str); 11] = [
    (Method::POST, "/v1/buckets", "buckets.set"),
    (Method::POST, "/v1/counters", "counter.create"),
    (Method::PUT, "/v1/counters/{id}", "counter.replace"),
    (Method::DELETE, "/v1/counters/{id}", "counter.archive"),
    (Method::POST, "/v1/counters/{id}/backfill", "counter.backfill"),
    (Method::DELETE, "/v1/counters/{id}/keys", "counter.erase"),
    (Method::DELETE, "/v1/counters/{id}/keys/{key}", "counter.erase_key"),
    (Method::POST, "/v1/counters/{id}/purge", "counter.purge"),
    (Method::PUT, "/v1/cache-policy", "cache_policy.replace"),
    (Method::POST, "/v1/maintenance/compaction", "compaction.begin"),
    (Method::DELETE, "/v1/maintenance/compaction", "compaction.stop"),
];

/// Whether a request changes something that people define.
pub fn changes(method: &Method, route: &str) -> bool {
    verb_of(method, route).is_some()
}

fn verb_of(method: &Method, route: &str) -> Option<&'static str> {
    CHANGES
        .iter()
        .find(|(known, path, _)| known == method && *path == route)
        .map(|(_, _, verb)| *verb)
}

/// What the audit log will need of a request, kept until its answer is there.
pub struct Asked {
    verb: &'static str,
    caller: Caller,
    path: String,
    reason: Option<String>,
}

/// A line of the audit log, but for who did it.
pub struct Answered {
    pub deed: Deed,
    pub outcome: String,
    caller: Caller,
}

impl Answered {
    pub fn actor<'a>(&'a self, principal: &'a str) -> Actor<'a> {
        Actor { name: principal, address: &self.caller.address }
    }
}

impl Asked {
    /// None for a request that changes nothing.
    pub fn of(door: &Door, route: &str, request: &Request) -> Option<Self> {
        let verb = verb_of(request.method(), route)?;
        let reason =
            text(request.headers(), HeaderName::from_static("x-reason")).map(str::to_owned);
        let caller = Caller::of(request.extensions(), request.headers(), &door.people_options);
        Some(Self { verb, caller, path: request.uri().path().to_owned(), reason })
    }

    /// What became of it.
    pub fn answered(self, response: &Response) -> Answered {
        let status = response.status();
        let mut details = json!({});
        if let Some(reason) = self.reason.filter(|reason| !reason.is_empty()) {
            details["reason"] = json!(reason);
        }
        if let Some(version) = text(response.headers(), header::ETAG) {
            details["version"] = json!(version.trim_matches('"').parse::<u32>().ok());
        }
        if let Some(Said(said)) = response.extensions().get::<Said>() {
            details["answer"] = said.clone();
        }
        let object =
            object_of(self.verb, text(response.headers(), header::LOCATION).unwrap_or(&self.path));
        let outcome = if status.is_success() {
            "done".to_owned()
        } else {
            format!("refused_{}", status.as_u16())
        };
        Answered { deed: Deed::new(self.verb, object, details), outcome, caller: self.caller }
    }
}

/// What a handler adds to the details of its entry, in the extensions of the response.
#[derive(Clone, Debug)]
pub struct Said(pub Value);

/// `/v1/counters/34/backfill` is `counter 34`.
fn object_of(verb: &str, path: &str) -> String {
    let what = verb.split('.').next().unwrap_or(verb).replace('_', " ");
    match path.strip_prefix("/v1/counters/").and_then(|rest| rest.split('/').next()) {
        Some(id) => format!("{what} {id}"),
        None => what,
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests with a body that change nothing that people define.
    const ASKS: [(&str, &str); 4] = [
        ("post", "/v1/events"),
        ("post", "/v1/counts"),
        ("post", "/v1/counters/preview"),
        ("post", "/v1/counters/{id}/preview"),
    ];

    #[test]
    fn every_route_is_known_to_change_something_or_not() {
        let mut seen = 0;
        for line in include_str!("../http.rs")
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with(".add(\""))
        {
            let path = line.split('"').nth(1).expect("a path");
            let method = line.rsplit(", ").nth(1).expect("a method");
            if method == "get" {
                continue;
            }
            seen += 1;
            let changes = CHANGES.iter().any(|(known, route, _)| {
                known.as_str().eq_ignore_ascii_case(method) && *route == path
            });
            assert!(
                changes || ASKS.contains(&(method, path)),
                "say whether {method} {path} changes something"
            );
        }
        assert_eq!(seen, CHANGES.len() + ASKS.len());
    }

    #[test]
    fn objects_have_short_names() {
        assert_eq!(object_of("counter.backfill", "/v1/counters/34/backfill"), "counter 34");
        assert_eq!(object_of("counter.create", "/v1/counters"), "counter");
        assert_eq!(object_of("cache_policy.replace", "/v1/cache-policy"), "cache policy");
    }
}

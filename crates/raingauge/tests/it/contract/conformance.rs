//! Compares answers of the server with its contract: no member is missing, and none is unknown to
//! the contract.

use crate::auth::{home_with_tokens, token};
use crate::client::{Answer, Client, at, drop_event, drops_counter};
use serde_json::{Value, json};
use std::collections::BTreeSet;

struct Contract(Value);

impl Contract {
    /// Checks an answer to a request for this route of the contract.
    #[track_caller]
    fn check(&self, method: &str, route: &str, answer: &Answer) {
        let responses = &self.0["paths"][route][method.to_ascii_lowercase()]["responses"];
        let response = self.resolved(&responses[answer.status.to_string()]);
        let kind = answer.header("content-type").split(';').next().unwrap_or_default();
        let schema = &response["content"][kind]["schema"];

        assert!(
            schema.is_object(),
            "{method} {route} is answered {} with {kind}, which the contract lacks: {}",
            answer.status,
            answer.text()
        );
        let body = if kind == "text/plain" { json!(answer.text()) } else { answer.json() };
        if let Some(fault) = self.fault(schema, &body) {
            panic!("{method} {route} {}: {fault} in {body}", answer.status);
        }
    }

    fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(reference) => self.0.pointer(&reference[1..]).expect("references lead somewhere"),
            None => value,
        }
    }

    /// A schema and those that it consists of.
    fn parts<'a>(&'a self, schema: &'a Value) -> Vec<&'a Value> {
        let schema = self.resolved(schema);
        let inner = schema["allOf"].as_array().into_iter().flatten();
        std::iter::once(schema).chain(inner.flat_map(|part| self.parts(part))).collect()
    }

    /// Returns what is wrong with a value.
    fn fault(&self, schema: &Value, value: &Value) -> Option<String> {
        let parts = self.parts(schema);
        let mut named = BTreeSet::new();
        let mut is_map = false;

        for part in &parts {
            if let Some(fault) = self.fault_of_part(part, value) {
                return Some(fault);
            }
            named.extend(
                part["properties"].as_object().into_iter().flat_map(|members| members.keys()),
            );
            is_map |= part["additionalProperties"].is_object();
        }

        let unnamed = |name: &&String| !named.is_empty() && !is_map && !named.contains(name);
        let extra = value.as_object()?.keys().find(unnamed)?;
        Some(format!("`{extra}` is not in the contract"))
    }

    fn fault_of_part(&self, part: &Value, value: &Value) -> Option<String> {
        if let Some(alternatives) = part["anyOf"].as_array() {
            let faults = alternatives.iter().map(|alternative| self.fault(alternative, value));
            let faults: Option<Vec<String>> = faults.collect();
            return faults.map(|faults| faults.join(", or "));
        }

        let kinds = part["type"].as_array().cloned().unwrap_or_else(|| vec![part["type"].clone()]);
        if !kinds.iter().any(|kind| is_of(kind, value)) {
            return Some(format!("{value} is not {}", part["type"]));
        }

        if let Some(known) = part["enum"].as_array()
            && !known.contains(value)
        {
            return Some(format!("{value} is none of {known:?}"));
        }

        if let Some(values) = value.as_array() {
            return values.iter().find_map(|value| self.fault(&part["items"], value));
        }
        let members = value.as_object()?;
        let required = part["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(name) = required.into_iter().find(|name| !members.contains_key(*name)) {
            return Some(format!("`{name}` is missing"));
        }

        members.iter().find_map(|(name, value)| {
            let schema = part["properties"].get(name).unwrap_or(&part["additionalProperties"]);
            if schema.is_object() { self.fault(schema, value) } else { None }
        })
    }
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        _ => true,
    }
}

/// The id of an action that there is not.
const ACTION: &str = "act_0123456789abcdef0123456789abcdef";

/// Sends requests and checks the answers; the status is the expected one.
struct Asking<'a> {
    client: &'a Client,
    contract: Contract,
}

impl Asking<'_> {
    #[track_caller]
    fn ask(&self, method: &str, route: &str, query: &str, body: &Value, status: u16) {
        let id = match route.split('/').nth(2) {
            Some("rollouts") => "1",
            Some("campaigns") => "7",
            Some("jobs") => "job_0",
            _ => "34",
        };
        let path = route.replace("{id}", id).replace("{key}", "drops:oslo");
        let path = path.replace("{name}", "parts").replace("{action}", ACTION) + query;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers: &[(&str, &str)] =
            if body.is_empty() { &[] } else { &[("content-type", "application/json")] };
        let answer = self.client.send(method, &path, headers, body.as_bytes());
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        self.contract.check(method, route, &answer);
    }
}

#[test]
fn answers_are_as_the_contract_has_them() {
    let home = home_with_tokens();
    let server = home.start();
    let contract = Contract(server.get("/openapi.json").expect(200));
    let asking = Asking { client: &server.with_token(&token("admin")), contract };
    let ask = |method: &str, route: &str, query: &str, body: Value, status: u16| {
        asking.ask(method, route, query, &body, status);
    };

    let noon = at("2024-09-24T12:00:00Z");
    let range = format!("?key=drops:oslo&fromTime={noon}&toTime={}", noon + 3_600);
    let nothing = Value::Null;

    ask("POST", "/v1/counters", "", drops_counter(), 201);
    ask("POST", "/v1/counters", "", drops_counter(), 409);
    ask("POST", "/v1/counters", "", json!({ "name": "drops" }), 422);
    ask("POST", "/v1/counters", "", json!([]), 422);
    ask("GET", "/v1/counters", "", nothing.clone(), 200);
    ask("GET", "/v1/counters", "?colour=red", nothing.clone(), 400);
    ask("GET", "/v1/counters/{id}", "", nothing.clone(), 200);
    ask("PUT", "/v1/counters/{id}", "", drops_counter(), 200);
    ask("GET", "/v1/counters/{id}/versions", "", nothing.clone(), 200);
    ask("POST", "/v1/counters/preview", "", drops_counter(), 200);

    ask("POST", "/v1/events", "", drop_event("1", noon, "oslo"), 200);
    ask("POST", "/v1/events", "?wait=applied", json!([drop_event("2", noon, "oslo"), 7]), 200);
    ask("POST", "/v1/events", "", json!({ "id": "3" }), 422);
    ask("POST", "/v1/counters/{id}/preview", "", nothing.clone(), 200);
    ask("GET", "/v1/counts", &range, nothing.clone(), 200);
    ask("GET", "/v1/counts", "?key=none&fromTime=0&toTime=900", nothing.clone(), 404);
    ask("GET", "/v1/counts", "?key=drops:oslo", nothing.clone(), 422);

    let requests =
        json!([{ "key": "drops:oslo", "fromTime": noon, "toTime": noon + 900 }, { "key": "none" }]);
    ask("POST", "/v1/counts", "", json!({ "requests": requests }), 200);
    ask("POST", "/v1/counts", "", json!({}), 400);
    ask("GET", "/v1/series", &range, nothing.clone(), 200);
    ask("GET", "/v1/recount", &range, nothing.clone(), 200);
    ask("GET", "/v1/counters/{id}/keys", "", nothing.clone(), 200);

    let midnight = at("2024-09-24T00:00:00Z");
    let bucket = json!({ "key": "drops:oslo", "granularity": "day", "time": midnight, "count": 3 });
    ask("POST", "/v1/buckets", "", json!([bucket, 7]), 200);
    ask("GET", "/v1/recount", &range, nothing.clone(), 200);
    ask("GET", "/v1/counters/{id}/backfill", "", nothing.clone(), 404);
    ask("POST", "/v1/counters/{id}/backfill", "", nothing.clone(), 202);
    ask("GET", "/v1/counters/{id}/backfill", "", nothing.clone(), 200);
    ask("DELETE", "/v1/counters/{id}/keys/{key}", "", nothing.clone(), 200);
    ask("DELETE", "/v1/counters/{id}/keys", "", nothing.clone(), 200);
    ask("POST", "/v1/counters/{id}/purge", "", nothing.clone(), 409);
    ask("DELETE", "/v1/counters/{id}", "", nothing.clone(), 200);
    ask("POST", "/v1/counters/{id}/purge", "", nothing.clone(), 200);

    ask("GET", "/v1/cache-policy", "", nothing.clone(), 200);
    let policy = json!({ "strategy": "none", "overrides": { "canary": { "strategy": "live" } } });
    ask("PUT", "/v1/cache-policy", "", policy, 200);
    ask("PUT", "/v1/cache-policy", "", json!({ "strategy": "magic" }), 422);

    let plan = json!({ "to": "live", "shares": [50, 100], "limits": { "batchesMin": 5 } });
    ask("POST", "/v1/rollouts", "", plan.clone(), 201);
    ask("POST", "/v1/rollouts", "", plan, 409);
    ask("POST", "/v1/rollouts", "", json!({ "to": "live", "shares": [7, 7] }), 422);
    ask("GET", "/v1/rollouts", "", nothing.clone(), 200);
    ask("GET", "/v1/rollouts/{id}", "", nothing.clone(), 200);
    ask("POST", "/v1/rollouts/{id}/go-on", "", nothing.clone(), 409);
    ask("POST", "/v1/rollouts/{id}/stop", "", nothing.clone(), 200);

    ask("GET", "/v1/maintenance", "", nothing.clone(), 200);
    ask("GET", "/healthz", "", nothing.clone(), 200);
    ask("GET", "/readyz", "", nothing.clone(), 200);
    ask("GET", "/metrics", "", nothing.clone(), 200);
    ask("GET", "/openapi.json", "", nothing, 200);
}

#[test]
fn answers_about_campaigns_are_as_the_contract_has_them() {
    let home = home_with_tokens();
    let server = home.start();
    let contract = Contract(server.get("/openapi.json").expect(200));
    let asking = Asking { client: &server.with_token(&token("admin")), contract };
    let nothing = Value::Null;
    let ask = |method: &str, route: &str, query: &str, body: &Value, status: u16| {
        asking.ask(method, route, query, body, status);
    };

    // A document of each kind has the same life.
    let table = json!({ "kind": "table", "name": "parts", "columns": { "tier": "text" } });
    let budget = json!({ "name": "parts", "unit": "points", "max": 100 });
    for (list, document) in [
        ("/v1/destinations", json!({ "name": "parts", "url": "https://parts.example/hook" })),
        (
            "/v1/lookups",
            json!({ "name": "parts", "class": "http", "url": "https://p.example/{key}" }),
        ),
        ("/v1/tables", table),
        ("/v1/budgets", budget),
        ("/v1/holdouts", json!({ "name": "parts", "seed": "parts-1", "share": 100 })),
        ("/v1/caps", json!({ "name": "parts", "destinations": ["parts"], "max": 3 })),
    ] {
        let one = format!("{list}/{{name}}");
        ask("POST", list, "?validate=only", &document, 200);
        ask("POST", list, "", &document, 201);
        ask("POST", list, "", &document, 409);
        ask("POST", list, "", &json!({}), 422);
        ask("GET", list, "", &nothing, 200);
        ask("GET", &one, "", &nothing, 200);
        ask("PUT", &one, "", &document, 200);
        ask("GET", &format!("{one}/versions"), "", &nothing, 200);
    }
    ask("GET", "/v1/destinations/{name}/status", "", &nothing, 200);

    let step = json!({ "name": "s", "actions": [
        { "name": "a", "kind": "reward", "to": "parts", "reward": "r",
          "cost": { "budget": "parts", "amount": 1 } },
    ] });
    let campaign = json!({ "id": 7, "name": "c", "eventTypes": ["part"], "steps": [step] });
    ask("POST", "/v1/campaigns", "", &campaign, 201);
    ask("POST", "/v1/campaigns", "", &json!({ "name": "c" }), 422);
    ask("GET", "/v1/campaigns", "", &nothing, 200);
    ask("GET", "/v1/campaigns/{id}", "", &nothing, 200);
    ask("PUT", "/v1/campaigns/{id}", "", &campaign, 200);
    ask("DELETE", "/v1/destinations/{name}", "", &nothing, 409);
    for verb in ["activate", "pause", "resume", "shadow"] {
        ask("POST", &format!("/v1/campaigns/{{id}}/{verb}"), "", &nothing, 200);
    }

    let event = json!({ "subject": "u-1", "event": { "source": "s", "id": "e" } });
    ask("POST", "/v1/campaigns/{id}/explain", "", &event, 200);
    ask("POST", "/v1/campaigns/{id}/explain", "", &json!({}), 422);
    ask("POST", "/v1/campaigns/test", "", &json!({ "campaigns": [7], "events": [] }), 200);
    ask("POST", "/v1/campaigns/test", "", &json!({ "campaigns": [], "events": [] }), 422);
    ask("POST", "/v1/campaigns/backtest", "", &json!({ "campaigns": [7] }), 202);
    ask("POST", "/v1/campaigns/compare", "", &json!({ "before": [7], "after": [7] }), 202);
    ask("GET", "/v1/jobs", "", &nothing, 200);
    ask("GET", "/v1/jobs/{id}", "", &nothing, 404);
    ask("GET", "/v1/campaigns/{id}/usage", "", &nothing, 200);
    ask("GET", "/v1/campaigns/{id}/budgets", "", &nothing, 200);
    ask("GET", "/v1/campaigns/{id}/exposures", "", &nothing, 200);
    ask("GET", "/v1/decisions", "?subject=u-1", &nothing, 200);
    ask("GET", "/v1/decisions", "?colour=red", &nothing, 400);
    ask("GET", "/v1/actions", "?status=dead", &nothing, 200);
    ask("GET", "/v1/actions/{action}", "", &nothing, 404);
    ask("POST", "/v1/actions/{action}/redrive", "", &nothing, 404);
    ask("POST", "/v1/actions/redrive", "", &json!({ "destination": "parts" }), 200);
    ask("POST", "/v1/campaigns/{id}/archive", "", &nothing, 200);
    ask("GET", "/v1/campaigns/{id}/versions", "", &nothing, 200);
    ask("DELETE", "/v1/campaigns/{id}", "", &nothing, 200);
    ask("GET", "/v1/campaigns/{id}", "", &nothing, 404);
}

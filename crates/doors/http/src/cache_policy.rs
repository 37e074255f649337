//! The cache policy: which counters are answered through which cache.

use super::Routes;
use super::body::{self, Body};
use super::change::{expected_version, json_of, reason, without_version};
use super::contract::system as doc;
use super::problem::Problem;
use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use raingauge_app::App;
use raingauge_app::Role;
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_people::Principal;
use raingauge_policy::cache::Policy;
use raingauge_ports::catalog::VersionedPolicy;
use serde_json::json;
use std::sync::Arc;

pub fn routes() -> Routes {
    Routes::of(Role::Portal)
        .get("/v1/cache-policy", Scope::CountsRead, read, doc::read_cache_policy)
        .put("/v1/cache-policy", Scope::Admin, "cache_policy.replace", replace, doc::replace_policy)
}

/// `GET /v1/cache-policy`
pub async fn read(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    Ok(with_etag(app.counters.cache_policy().await?))
}

/// `PUT /v1/cache-policy`
pub async fn replace(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Principal>,
    headers: HeaderMap,
    body: Body<body::Configuration>,
) -> Result<Response, Problem> {
    let policy =
        Policy::from_json(&without_version(json_of(&body.bytes)?)).map_err(|problems| {
            let said: Vec<String> = problems
                .iter()
                .map(|problem| format!("{}: {}", problem.field, problem.detail))
                .collect();
            Problem::new(Code::PolicyInvalid, said.join("; ")).with("problems", json!(problems))
        })?;

    let expected = expected_version(&headers)?;
    let set = app
        .counters
        .set_cache_policy(policy, expected, &who.recorded_name(), reason(&headers))
        .await?;

    // Other processes follow the catalog; this one need not wait for that.
    app.operations.policies.follow(&set);
    Ok(with_etag(set))
}

fn with_etag(found: VersionedPolicy) -> Response {
    ([(header::ETAG, format!("\"{}\"", found.version))], Json(found)).into_response()
}

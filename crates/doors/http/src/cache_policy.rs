//! The cache policy: which counters are answered through which cache.

use super::Routes;
use super::body::{self, Body};
use super::caller::{Answer, Caller};
use super::change::{etag, expected_version, json_of, reason, without_version};
use super::contract::system as doc;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use raingauge_app::{self as app, App, Role};
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_policy::cache::Policy;
use raingauge_ports::catalog::VersionedPolicy;
use std::sync::Arc;

pub fn routes() -> Routes {
    Routes::of(Role::Portal)
        .get("/v1/cache-policy", Scope::CountsRead, read, doc::read_cache_policy)
        .put("/v1/cache-policy", Scope::Admin, "cache_policy.replace", replace, doc::replace_policy)
}

/// `GET /v1/cache-policy`
pub async fn read(State(app): State<Arc<App>>) -> Answer {
    Ok(with_etag(app.counters.cache_policy().await?))
}

/// `PUT /v1/cache-policy`
pub async fn replace(
    Caller { app, who }: Caller,
    headers: HeaderMap,
    body: Body<body::Configuration>,
) -> Answer {
    let policy = Policy::from_json(&without_version(json_of(&body.bytes)?))
        .map_err(|problems| app::Problem::invalid(Code::PolicyInvalid, &problems))?;

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
    ([etag(found.version)], Json(found)).into_response()
}

//! Exports configurations as files that `raingauge counters apply` accepts.

use crate::download;
use crate::fault::Fault;
use crate::fields::Query;
use crate::{Answer, Portal};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use raingauge_counters::export::{Error, Settings, counter_to_yaml};
use raingauge_ports::catalog::Versioned;

/// `GET /settings.yaml`: the counters that are not archived, and the cache policy; `?all=1`
/// includes archived counters.
pub async fn settings(State(portal): State<Portal>, Query(fields): Query) -> Answer {
    let counters = portal.list.counters(&portal).await?;
    let policy = portal.counters.cache_policy().await?.policy;
    let counters = counters.iter().map(|found| found.counter.clone());
    let settings = Settings::new(counters, policy, fields.given("all").is_some());
    file("raingauge.yaml", settings.to_yaml())
}

/// `GET /counters/{id}/counter.yaml`
pub async fn counter(State(portal): State<Portal>, Path(id): Path<u32>) -> Answer {
    let Versioned { counter, version, changed_by, changed_at, .. } =
        portal.counters.get(id).await?;
    file(
        &format!("counter-{id}.yaml"),
        counter_to_yaml(&counter, version.into(), changed_at, &changed_by),
    )
}

fn file(name: &str, yaml: Result<String, Error>) -> Answer {
    let yaml = yaml.map_err(|error| {
        let advice = format!("{error}. The API has the same as JSON, at /v1/counters.");
        Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "This cannot be written as YAML", advice)
    })?;
    Ok(download::file("application/yaml", name, yaml))
}

//! Destinations as they are sent to now, and probes of them.

use crate::Campaigns;
use crate::Table;
use crate::contract::actions as doc;
use crate::refused::Answer;
use axum::Json;
use axum::extract::{Extension, Path};
use raingauge_core::access::Scope;
use raingauge_deliveries::{Activity, DestinationStatus, Error};
use raingauge_http::queries::time;
use serde_json::{Value, json};
use std::sync::Arc;

pub fn add(table: Table) -> Table {
    let operate = (Scope::CampaignsOperate, "destination.probe");
    table.get("/v1/destinations/{name}/status", Scope::CampaignsRead, status, doc::status).post(
        "/v1/destinations/{name}/probe",
        operate,
        probe,
        doc::probe,
    )
}

/// `GET /v1/destinations/{name}/status`
async fn status(
    Extension(campaigns): Extension<Arc<Campaigns>>,
    Path(name): Path<String>,
) -> Answer<Json<Value>> {
    Ok(Json(shown(&campaigns.deliveries.status(&name).await?)))
}

/// `POST /v1/destinations/{name}/probe`
async fn probe(
    Extension(campaigns): Extension<Arc<Campaigns>>,
    Path(name): Path<String>,
) -> Answer<Json<Value>> {
    let probe = campaigns.deliveries.probe(&name).await?;
    let milliseconds = u64::try_from(probe.took.as_millis()).unwrap_or(u64::MAX);
    Ok(Json(json!({
        "id": probe.id,
        "status": probe.status,
        "accepted": probe.is_accepted,
        "detail": probe.note,
        "milliseconds": milliseconds,
    })))
}

impl Campaigns {
    /// The status of a destination; null in the moment before it is sent to for the first time.
    pub(crate) async fn destination_status(&self, name: &str) -> Answer<Value> {
        match self.deliveries.status(name).await {
            Ok(status) => Ok(shown(&status)),
            Err(Error::DestinationUnknown(_)) => Ok(Value::Null),
            Err(error) => Err(error.into()),
        }
    }
}

fn shown(status: &DestinationStatus) -> Value {
    let DestinationStatus { activity, backlog, .. } = status;
    let Activity { last_failure, .. } = activity;
    let failure =
        last_failure.as_ref().map(|found| json!({ "at": time(found.at_ms), "note": found.note }));
    json!({
        "version": activity.version,
        "obstacle": activity.obstacle,
        "perSecond": activity.per_second,
        "scheduledPerSecond": activity.scheduled_per_second,
        "breaker": format!("{:?}", activity.breaker).to_lowercase(),
        "concurrency": activity.concurrency,
        "inFlight": activity.in_flight,
        "lastFailure": failure,
        "pending": backlog.pending,
        "oldest": backlog.oldest_ms.map(time),
    })
}

//! Destinations as they are sent to now, and probes of them.

use crate::Campaigns;
use crate::Table;
use crate::contract::actions as doc;
use crate::refused::Answer;
use axum::Json;
use axum::extract::{Extension, Path};
use axum::http::HeaderMap;
use raingauge_campaigns::documents::Kind;
use raingauge_core::access::Scope;
use raingauge_deliveries::{Activity, DestinationStatus, Error};
use raingauge_documents::Provenance;
use raingauge_http::change::{expected_version, reason};
use raingauge_http::queries::time;
use raingauge_people::Principal;
use serde_json::{Value, json};
use std::sync::Arc;

pub fn add(table: Table) -> Table {
    const OPERATE: Scope = Scope::CampaignsOperate;
    let [status_path, probe_path, disable_path, enable_path] = [
        "/v1/destinations/{name}/status",
        "/v1/destinations/{name}/probe",
        "/v1/destinations/{name}/disable",
        "/v1/destinations/{name}/enable",
    ];
    table
        .get(status_path, Scope::CampaignsRead, status, doc::status)
        .post(probe_path, (OPERATE, "destination.probe"), probe, doc::probe)
        .post(disable_path, (OPERATE, "destination.disable"), disable, doc::disable)
        .post(enable_path, (OPERATE, "destination.enable"), enable, doc::enable)
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

/// `POST /v1/destinations/{name}/disable`: its deliveries wait. The reason becomes a part of its
/// document.
async fn disable(
    Extension(campaigns): Extension<Arc<Campaigns>>,
    Extension(who): Extension<Principal>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let by = who.recorded_name();
    let why = match reason(&headers) {
        "" => format!("disabled by {by}"),
        reason => reason.to_owned(),
    };
    campaigns.switch(&name, Some(why), &by, &headers).await
}

/// `POST /v1/destinations/{name}/enable`: what waits is sent.
async fn enable(
    Extension(campaigns): Extension<Arc<Campaigns>>,
    Extension(who): Extension<Principal>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Answer {
    campaigns.switch(&name, None, &who.recorded_name(), &headers).await
}

impl Campaigns {
    async fn switch(
        &self,
        name: &str,
        disabled: Option<String>,
        by: &str,
        headers: &HeaderMap,
    ) -> Answer {
        let expected = expected_version(headers)?;
        let provenance = Provenance { by, reason: reason(headers) };
        let member = ("disabled", json!(disabled));
        let kind = Kind::Destination;
        let stored = self.documents.set_member(kind, name, member, expected, provenance).await?;
        self.answer(kind, stored).await
    }

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

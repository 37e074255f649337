//! `/v1/tables`: definitions of tables and segments, and their rows.

use crate::Campaigns;
use crate::Table;
use crate::contract::documents as described;
use crate::contract::tables as doc;
use crate::documents;
use crate::refused::{Answer, Refused};
use crate::upload::Stream;
use axum::Json;
use axum::extract::{Extension, Path};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use raingauge_campaigns::documents::Kind;
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_core::decode::media_type;
use raingauge_core::limits::{BUCKETS_BODY_BYTES_MAX, CONFIGURATION_BODY_BYTES_MAX};
use raingauge_documents::Format;
use raingauge_http::queries::time;
use raingauge_http::{AuditDetails, Upload};
use raingauge_people::Principal;
use raingauge_ports::campaigns::TableVersion;
use serde_json::{Value, json};
use std::sync::Arc;

/// Longest body that changes single rows.
const CHANGES_BYTES_MAX: usize = BUCKETS_BODY_BYTES_MAX;

type Services = Extension<Arc<Campaigns>>;

pub fn add(table: Table) -> Table {
    const WRITE: Scope = Scope::CampaignsWrite;
    documents::lists::<described::Table>(table, WRITE)
        .put("/v1/tables/{name}", (WRITE, "table.load"), put, doc::put)
        .uploaded()
        .patch("/v1/tables/{name}", (WRITE, "table.change"), patch, doc::patch)
        .uploaded()
}

/// `PUT /v1/tables/{name}`: loads all rows, or replaces the definition if the body is JSON.
async fn put(
    Extension(campaigns): Services,
    Extension(who): Extension<Principal>,
    Path(name): Path<String>,
    headers: HeaderMap,
    upload: Upload,
) -> Answer {
    let mut stream = Stream::new(upload, &headers)?;
    let format = match &*kind_of(&headers) {
        "text/csv" => Format::Csv,
        kind if is_lines(kind) => Format::Lines,
        "application/json" => {
            let body = stream.whole(CONFIGURATION_BODY_BYTES_MAX).await?;
            return campaigns.replace(Kind::Table, &name, &who, &headers, &body).await;
        }
        _ => return Err(media_type_unknown()),
    };

    // A load that is not finished leaves the table as it was.
    let mut load = campaigns.uploads.begin(&name, format).await?;
    while let Some(bytes) = stream.next().await? {
        load.feed(&bytes).await?;
    }
    let loaded = shown(&load.finish().await?);
    Ok::<Response, _>((Extension(AuditDetails(loaded.clone())), Json(loaded)).into_response())
}

/// `PATCH /v1/tables/{name}`: sets and removes single rows.
async fn patch(
    Extension(campaigns): Services,
    Path(name): Path<String>,
    headers: HeaderMap,
    upload: Upload,
) -> Answer {
    if !is_lines(&kind_of(&headers)) {
        return Err(media_type_unknown());
    }
    let body = Stream::new(upload, &headers)?.whole(CHANGES_BYTES_MAX).await?;
    let changed = json!({ "changed": campaigns.uploads.change(&name, &body).await? });
    Ok::<Response, _>((Extension(AuditDetails(changed.clone())), Json(changed)).into_response())
}

fn kind_of(headers: &HeaderMap) -> String {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media_type(kind.unwrap_or_default())
}

fn is_lines(kind: &str) -> bool {
    let kinds = [
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonlines",
    ];
    kinds.contains(&kind)
}

fn media_type_unknown() -> Refused {
    let detail = "send rows as text/csv or application/x-ndjson, a definition as application/json";
    Refused::new(Code::MediaTypeUnknown, detail)
}

fn shown(version: &TableVersion) -> Value {
    json!({
        "name": version.name,
        "rows": version.rows,
        "loadedVersion": version.version,
        "loadedAt": time(version.loaded_ms),
    })
}

impl Campaigns {
    /// Adds to the definition of a table what was loaded into it.
    pub(crate) async fn add_rows(&self, name: &str, document: &mut Value) -> Answer<()> {
        let loaded = self.uploads.loaded().await?;
        let found = loaded.iter().find(|version| version.name == name);
        document["rows"] = json!(found.map_or(0, |version| version.rows));
        if let Some(version) = found {
            document["loadedVersion"] = json!(version.version);
            document["loadedAt"] = json!(time(version.loaded_ms));
        }
        Ok(())
    }
}

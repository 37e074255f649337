//! `/v1/points/entries`: entries with what they follow from.

use crate::answers;
use crate::contract::members as doc;
use crate::refused::{Answer, Refused};
use crate::source::Source;
use crate::{Points, Table};
use axum::Json;
use axum::extract::{Extension, Path, Query};
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_http::queries::Parameters;
use raingauge_people::Principal;
use raingauge_points::Entry;
use raingauge_points::programme::EVENT_SOURCE;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

pub fn add(table: Table) -> Table {
    const READ: Scope = Scope::PointsRead;
    table.get("/v1/points/entries", READ, by_key, doc::entries).get(
        "/v1/points/entries/{programme}/{book}/{sequence}",
        READ,
        one,
        doc::entry,
    )
}

/// `GET /v1/points/entries?programme=&key=`
async fn by_key(
    Extension(points): Extension<Arc<Points>>,
    Extension(who): Extension<Principal>,
    Query(given): Query<HashMap<String, String>>,
) -> Answer<Json<Value>> {
    let parameters = Parameters::of(given);
    let [programme, key] = ["programme", "key"].map(|name| parameters.text(name));
    let (Some(programme), Some(key)) = (programme, key) else {
        let detail = "name a programme and a key: ?programme=grab-sg&key=o-1";
        return Err(Refused::new(Code::RequestMalformed, detail));
    };

    let own = points.source(&who);
    let sources = match (&own, parameters.text("source")) {
        (Source::Operator, Some(named)) => vec![named],
        // Those of an operator, and those that events have made.
        (Source::Operator, None) => vec![own.name().to_string(), EVENT_SOURCE.to_string()],
        (own, Some(named)) => {
            own.check_partner(&named)?;
            vec![named]
        }
        (own, None) => vec![own.name().to_string()],
    };
    let programme = points.programme(&programme)?;
    let mut found = Vec::new();
    for source in sources {
        found.extend(points.teller.members().by_key(programme.name(), &source, &key).await?);
    }

    let entries: Vec<Value> = found.iter().map(|entry| answers::entry(entry, &programme)).collect();
    Ok(Json(json!({ "entries": entries })))
}

/// `GET /v1/points/entries/{programme}/{book}/{sequence}`
async fn one(
    Extension(points): Extension<Arc<Points>>,
    Extension(who): Extension<Principal>,
    Path((programme, book, sequence)): Path<(String, u16, u64)>,
) -> Answer<Json<Value>> {
    let programme = points.programme(&programme)?;
    let found = points.teller.members().entry(programme.name(), book, sequence).await?;
    let found = found.filter(|entry| is_visible(&points.source(&who), entry));
    let entry = found.ok_or_else(|| {
        let detail = format!("{} has no entry {book}:{sequence}", programme.name());
        Refused::new(Code::EntryUnknown, detail)
    })?;
    Ok(Json(answers::entry(&entry, &programme)))
}

/// A partner sees the entries of its own keys.
fn is_visible(source: &Source, entry: &Entry) -> bool {
    match source {
        Source::Operator => true,
        Source::Partner(name) => entry.key.as_ref().is_some_and(|key| *key.source == **name),
    }
}

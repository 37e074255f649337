//! `/v1/points/programmes`: programmes and their versions.

use crate::contract::programmes as doc;
use crate::refused::{Answer, Refused};
use crate::{Points, Table};
use axum::Json;
use axum::extract::{Extension, Path, Query};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use raingauge_app as app;
use raingauge_awarding::PROGRAMME;
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_core::counter::Problem;
use raingauge_documents::{Error, Provenance};
use raingauge_http::change::{
    etag, expected_version, json_within, reason, with_version, without_version,
};
use raingauge_http::queries::Parameters;
use raingauge_http::{Body, Trial};
use raingauge_people::Principal;
use raingauge_ports::campaigns::StoredDocument;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// Most arrays and objects in a programme: rules with their filters.
const CONTAINERS_MAX: usize = 32_000;
/// The member of a document that names the programme.
const NAME: &str = "programme";

type Services = Extension<Arc<Points>>;
type Caller = Extension<Principal>;

pub fn add(table: Table) -> Table {
    const READ: Scope = Scope::PointsRead;
    const WRITE: Scope = Scope::PointsWrite;
    let created = (WRITE, "programme.create");
    let replaced = (WRITE, "programme.replace");
    table
        .get("/v1/points/programmes", READ, list, doc::list)
        .post("/v1/points/programmes", created, create, doc::create)
        .get("/v1/points/programmes/{name}", READ, read, doc::read)
        .put("/v1/points/programmes/{name}", replaced, replace, doc::replace)
        .get("/v1/points/programmes/{name}/versions", READ, versions, doc::versions)
}

/// `GET /v1/points/programmes`
async fn list(Extension(points): Services, Extension(who): Caller) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    let stored = points.documents.list(PROGRAMME).await?;
    let listed: Vec<Value> = stored.into_iter().map(shown).collect();
    Ok(Json(json!({ "programmes": listed })))
}

/// `POST /v1/points/programmes`
async fn create(
    Extension(points): Services,
    Extension(who): Caller,
    Query(given): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Body<Trial>,
) -> Answer {
    points.source(&who).check_operator()?;
    let parameters = Parameters::of(given);
    let document = without_version(json_within(&body.bytes, CONTAINERS_MAX)?);
    match parameters.text("validate").as_deref() {
        None => {}
        Some("only") => {
            let checked = points.documents.check(PROGRAMME, &document).await?;
            return Ok(Json(checked).into_response());
        }
        Some(_) => {
            return Err(Refused::new(Code::ParameterUnknown, "validate may only be `only`"));
        }
    }

    let by = who.recorded_name();
    let provenance = Provenance { by: &by, reason: reason(&headers) };
    let stored = points.documents.create(PROGRAMME, &document, provenance).await?;
    let place = (header::LOCATION, format!("/v1/points/programmes/{}", stored.id));
    let tag = etag(stored.version);
    Ok((StatusCode::CREATED, [place, tag], Json(shown(stored))).into_response())
}

/// `GET /v1/points/programmes/{name}`
async fn read(
    Extension(points): Services,
    Extension(who): Caller,
    Path(name): Path<String>,
) -> Answer {
    points.source(&who).check_operator()?;
    let stored = points.documents.get(PROGRAMME, &name, None).await.map_err(unknown)?;
    Ok(answer(stored))
}

/// `PUT /v1/points/programmes/{name}`
async fn replace(
    Extension(points): Services,
    Extension(who): Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body<Trial>,
) -> Answer {
    points.source(&who).check_operator()?;
    let mut document = without_version(json_within(&body.bytes, CONTAINERS_MAX)?);
    name_by_path(&name, &mut document)?;
    let expected = expected_version(&headers)?;
    let by = who.recorded_name();
    let provenance = Provenance { by: &by, reason: reason(&headers) };
    let replaced = points.documents.replace(PROGRAMME, &name, &document, expected, provenance);
    Ok(answer(replaced.await.map_err(unknown)?))
}

/// `GET /v1/points/programmes/{name}/versions`
async fn versions(
    Extension(points): Services,
    Extension(who): Caller,
    Path(name): Path<String>,
) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    let versions = points.documents.versions(PROGRAMME, &name).await.map_err(unknown)?;
    let versions: Vec<Value> = versions.into_iter().map(shown).collect();
    Ok(Json(json!({ "versions": versions })))
}

/// A programme that is not there has a code of its own.
pub fn unknown(error: Error) -> Refused {
    match error {
        Error::NotFound { .. } => Refused::new(Code::ProgrammeUnknown, error.to_string()),
        error => error.into(),
    }
}

fn answer(stored: StoredDocument) -> Response {
    let tag = etag(stored.version);
    ([tag], Json(shown(stored))).into_response()
}

fn shown(stored: StoredDocument) -> Value {
    let name = json!(stored.id);
    with_version(stored, (NAME, name))
}

/// The name in the path is that of the document, which may leave it out, or be nothing but its
/// name.
pub fn name_by_path(name: &str, document: &mut Value) -> Result<(), Refused> {
    let given = match document {
        Value::Object(members) => members.entry(NAME).or_insert_with(|| json!(name)),
        Value::String(_) => document,
        _ => return Ok(()),
    };
    if *given == name {
        return Ok(());
    }
    let problem = Problem::new(NAME, format!("is {given}, but the path says {name:?}"));
    Err(Refused(app::Problem::invalid(Code::ProgrammeInvalid, &[problem]).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_names_the_programme() {
        let mut document = json!({ "unit": "GRP" });
        name_by_path("grab-sg", &mut document).unwrap();
        assert_eq!(document["programme"], "grab-sg");
        name_by_path("grab-sg", &mut json!("grab-sg")).unwrap();
        for mut other in [document, json!("grab-sg")] {
            let refused = name_by_path("grab-id", &mut other).unwrap_err();
            assert_eq!(refused.0.code(), Code::ProgrammeInvalid);
        }
    }
}

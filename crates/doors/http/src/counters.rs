//! Counter configurations, their versions, previews and backfills, and the erasure of their counts.

use super::Routes;
use super::audit::AuditDetails;
use super::body::{self, Body};
use super::caller::{Answer, Caller};
use super::change::{etag, expected_version, json_of, reason, without_version};
use super::contract::counters as doc;
use super::problem::Problem;
use axum::Json;
use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use raingauge_app::App;
use raingauge_app::Role;
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_core::counter::{self, Counter};
use raingauge_counters as counters;
use raingauge_counters::preview::EVENTS_MAX;
use raingauge_people::Principal;
use raingauge_ports::catalog::Versioned;
use raingauge_writer::states::{Progress, progress};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

type Parameters = Query<HashMap<String, String>>;

pub fn routes() -> Routes {
    use Scope::{Admin, CountersWrite as Write, CountsRead as Read};
    Routes::of(Role::Portal)
        .get("/v1/counters", Read, list, doc::list)
        .post("/v1/counters", Write, "counter.create", create, doc::create)
        .get("/v1/counters/{id}", Read, read, doc::read)
        .put("/v1/counters/{id}", Write, "counter.replace", replace, doc::replace)
        .delete("/v1/counters/{id}", Write, "counter.archive", archive, doc::archive)
        .get("/v1/counters/{id}/versions", Read, versions, doc::versions)
        .delete("/v1/counters/{id}/keys", Admin, "counter.erase", erase_all, doc::erase_all)
        .delete("/v1/counters/{id}/keys/{key}", Admin, "counter.erase_key", erase, doc::erase)
        .post("/v1/counters/{id}/purge", Admin, "counter.purge", purge, doc::purge)
        .post_unlogged("/v1/counters/{id}/preview", Write, preview_of, doc::preview_of)
        .post_unlogged("/v1/counters/preview", Write, preview, doc::preview)
        .post("/v1/counters/{id}/backfill", Write, "counter.backfill", backfill, doc::backfill)
        .get("/v1/counters/{id}/backfill", Read, read_backfill, doc::read_backfill)
}

/// `GET /v1/counters`
pub async fn list(
    State(app): State<Arc<App>>,
    Query(parameters): Parameters,
) -> Answer<Json<doc::Counters>> {
    let mut counters = app.counters.list().await?;
    for (name, wanted) in &parameters {
        match name.as_str() {
            "state" => counters.retain(|found| json!(found.counter.state) == *wanted),
            "owner" => counters.retain(|found| found.counter.owner == *wanted),
            "eventType" => counters.retain(|found| found.counter.event_type == *wanted),
            _ => {
                return Err(Problem::new(
                    Code::ParameterUnknown,
                    "counters are filtered by state, owner and eventType",
                ));
            }
        }
    }

    Ok(Json(doc::Counters { counters }))
}

/// `POST /v1/counters`
pub async fn create(
    Caller { app, who }: Caller,
    headers: HeaderMap,
    body: Body<body::Configuration>,
) -> Answer {
    let created = app
        .counters
        .create(counter_of(&json_of(&body.bytes)?)?, &who.recorded_name(), reason(&headers))
        .await?;
    let place = (header::LOCATION, format!("/v1/counters/{}", created.counter.id));
    Ok((StatusCode::CREATED, [place, etag(created.version)], Json(created)).into_response())
}

/// `GET /v1/counters/{id}`
pub async fn read(State(app): State<Arc<App>>, Path(id): Path<u32>) -> Answer {
    Ok(with_etag(app.counters.get(id).await?))
}

/// `PUT /v1/counters/{id}`
pub async fn replace(
    Caller { app, who }: Caller,
    Path(id): Path<u32>,
    headers: HeaderMap,
    body: Body<body::Configuration>,
) -> Answer {
    let counter = counter_of(&without_version(json_of(&body.bytes)?))?;
    if counter.id != 0 && counter.id != id {
        let detail = format!("is {}, but the path says {id}", counter.id);
        return Err(counters::Error::from(vec![counter::Problem::new("id", detail)]).into());
    }
    let counter = Counter { id, ..counter };
    let expected = expected_version(&headers)?;

    let replaced =
        app.counters.replace(counter, expected, &who.recorded_name(), reason(&headers)).await?;
    Ok(with_etag(replaced))
}

/// `DELETE /v1/counters/{id}`: archives it.
pub async fn archive(
    Caller { app, who }: Caller,
    Path(id): Path<u32>,
    headers: HeaderMap,
) -> Answer {
    let expected = expected_version(&headers)?;
    let reason = reason(&headers);
    Ok(with_etag(app.counters.archive(id, expected, &who.recorded_name(), reason).await?))
}

/// `DELETE /v1/counters/{id}/keys/{key}`: erases the counts of a key, and returns by when the log
/// has dropped the events too.
pub async fn erase(State(app): State<Arc<App>>, Path((id, key)): Path<(u32, String)>) -> Answer {
    app.counters.erase(id, &key).await?;
    Ok(erased(&app, id, Some(key)))
}

/// `DELETE /v1/counters/{id}/keys`: erases all counts of a counter, whatever its state.
pub async fn erase_all(State(app): State<Arc<App>>, Path(id): Path<u32>) -> Answer {
    app.counters.erase_all(id).await?;
    Ok(erased(&app, id, None))
}

/// `POST /v1/counters/{id}/purge`: erases the counts of an archived counter, and refuses any other.
pub async fn purge(State(app): State<Arc<App>>, Path(id): Path<u32>) -> Answer {
    app.counters.purge(id).await?;
    Ok(erased(&app, id, None))
}

/// Describes what was erased, and by when the log has dropped the events.
fn erased(app: &App, id: u32, key: Option<String>) -> Response {
    let now_s = app.clock.now_s();
    let forgets_at = app.counted.log_kept.map(|kept| now_s + kept.as_secs() as i64);
    let mut details = json!({ "logForgetsAt": forgets_at });
    if let Some(key) = &key {
        details["key"] = json!(key);
    }

    let answer = doc::Erased { counter: id, key, erased_at: now_s, log_forgets_at: forgets_at };
    (Extension(AuditDetails(details)), Json(answer)).into_response()
}

/// `GET /v1/counters/{id}/versions`
pub async fn versions(
    State(app): State<Arc<App>>,
    Path(id): Path<u32>,
) -> Answer<Json<doc::Versions>> {
    Ok(Json(doc::Versions { versions: app.counters.versions(id).await? }))
}

/// `POST /v1/counters/preview`: what the draft in the body would have counted.
pub async fn preview(
    Caller { app, who }: Caller,
    body: Body<body::Configuration>,
) -> Answer<Json<Value>> {
    preview_draft(&app, &who, counter_of(&json_of(&body.bytes)?)?).await
}

/// `POST /v1/counters/{id}/preview`: the same for an edit of a counter; without a body, for the
/// counter as it is.
pub async fn preview_of(
    Caller { app, who }: Caller,
    Path(id): Path<u32>,
    body: Body<body::Configuration>,
) -> Answer<Json<Value>> {
    let draft = if body.bytes.trim_ascii().is_empty() {
        app.counters.get(id).await?.counter
    } else {
        let mut draft = without_version(json_of(&body.bytes)?);
        if let Some(members) = draft.as_object_mut() {
            members.insert("id".to_owned(), json!(id));
        }
        counter_of(&draft)?
    };
    preview_draft(&app, &who, draft).await
}

async fn preview_draft(app: &App, who: &Principal, draft: Counter) -> Answer<Json<Value>> {
    let conflicts = app.counters.conflicts(&draft).await?;
    let shows_keys =
        who.allows(Scope::CountsRead) && app.limits.samples.may_show_keys_of(&draft.template);
    let preview = app.counted.recent.preview(&who.name, draft, EVENTS_MAX).await?;
    let mut answer = json!(preview);
    // Keys contain values of events, which a token that only defines counters may not read.
    answer["keysHidden"] = json!(!shows_keys);
    if !shows_keys {
        answer["hottest"] = json!([]);
    }
    answer["conflicts"] = json!(conflicts);
    Ok(Json(answer))
}

/// `POST /v1/counters/{id}/backfill`
pub async fn backfill(State(app): State<Arc<App>>, Path(id): Path<u32>) -> Answer {
    app.counters.backfill(id).await?;
    Ok((StatusCode::ACCEPTED, read_backfill(State(app), Path(id)).await?).into_response())
}

/// `GET /v1/counters/{id}/backfill`
pub async fn read_backfill(
    State(app): State<Arc<App>>,
    Path(id): Path<u32>,
) -> Answer<Json<doc::Backfill>> {
    let Some(Progress { backfill, end, share }) =
        progress(&*app.counted.states, &app.counted.published, id)
    else {
        let detail = format!("counter {id} has had no backfill; POST to this path begins one");
        return Err(Problem::new(Code::BackfillUnknown, detail));
    };
    Ok(Json(doc::Backfill {
        status: backfill.status,
        generation: backfill.generation,
        from: backfill.from,
        position: backfill.position,
        after_s: backfill.after_s,
        counted: backfill.counted,
        ended_at: backfill.ended_at,
        reason: backfill.reason,
        end,
        progress: share,
    }))
}

/// Reads the counter that a body describes.
fn counter_of(json: &Value) -> Result<Counter, Problem> {
    Counter::from_json(json).map_err(|problems| counters::Error::from(problems).into())
}

fn with_etag(found: Versioned) -> Response {
    ([etag(found.version)], Json(found)).into_response()
}

//! Drafts: the workflow by which a change of a document is proposed, reviewed and approved.

use super::Routes;
use super::body::{self, Body};
use super::caller::{Answer, Caller};
use super::change::{etag, expected_version, json_of, reason};
use super::contract::drafts as doc;
use super::problem::Problem;
use axum::Json;
use axum::extract::{Path, Query};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use raingauge_app::{App, Role};
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_counters::Drafts;
use raingauge_counters::drafts::{self, Actor, Decision, DraftChange, OPEN_MAX, Proposal};
use raingauge_people::tokens::Denial;
use raingauge_people::{Credential, Principal};
use raingauge_ports::drafts::Draft;
use serde::de::DeserializeOwned;
use std::collections::HashMap;

/// Most ended drafts in a list.
const ENDED_MAX: u32 = 50;

pub fn routes() -> Routes {
    use Scope::{CountersWrite, CountsRead};
    Routes::of(Role::Portal)
        .get("/v1/drafts", CountsRead, list, doc::list)
        .post("/v1/drafts", CountersWrite, "draft.save", create, doc::create)
        .get("/v1/drafts/{id}", CountsRead, read, doc::read)
        .put("/v1/drafts/{id}", CountersWrite, "draft.save", edit, doc::edit)
        .post("/v1/drafts/{id}/submit", CountersWrite, "draft.send", submit, doc::submit)
        .post("/v1/drafts/{id}/approve", CountersWrite, "draft.approve", approve, doc::approve)
        .post("/v1/drafts/{id}/reject", CountersWrite, "draft.reject", reject, doc::reject)
        .post("/v1/drafts/{id}/withdraw", CountersWrite, "draft.withdraw", withdraw, doc::withdraw)
        .post("/v1/drafts/{id}/apply", CountersWrite, "draft.apply", apply, doc::apply)
}

/// `GET /v1/drafts`: the open ones; with `state=ended`, the newest ended ones; of these, those that
/// the caller may read.
pub async fn list(
    Caller { app, who }: Caller,
    Query(parameters): Query<HashMap<String, String>>,
) -> Answer<Json<doc::Drafts>> {
    let mut is_open = true;
    for (name, value) in &parameters {
        match (name.as_str(), value.as_str()) {
            ("state", "open") => {}
            ("state", "ended") => is_open = false,
            _ => {
                let detail = "drafts are listed by state=open or state=ended";
                return Err(Problem::new(Code::ParameterUnknown, detail));
            }
        }
    }

    let limit = if is_open { OPEN_MAX } else { ENDED_MAX };
    let mut drafts = app.drafts.list(is_open, limit).await?;
    drafts.retain(|draft| check_right(&app, &who, &draft.kind, Step::Read).is_ok());
    Ok(Json(doc::Drafts { drafts: drafts.into_iter().map(doc::Draft::from).collect() }))
}

/// `GET /v1/drafts/{id}`
pub async fn read(Caller { app, who }: Caller, Path(id): Path<u64>) -> Answer {
    let draft = app.drafts.get(id).await?;
    check_right(&app, &who, &draft.kind, Step::Read)?;
    Ok(answer(draft))
}

/// `POST /v1/drafts`
pub async fn create(Caller { app, who }: Caller, body: Body<body::Configuration>) -> Answer {
    let doc::NewDraft { kind, configuration, base_version } = read_body(&body)?;
    check_right(&app, &who, &kind, Step::Propose)?;
    let proposal = Proposal { kind: &kind, configuration, base_version };
    let name = who.recorded_name();
    let DraftChange { draft, .. } = app.drafts.create(proposal, actor(&who, &name)).await?;
    let place = (header::LOCATION, format!("/v1/drafts/{}", draft.id));
    Ok((StatusCode::CREATED, [place], answer(draft)).into_response())
}

/// `PUT /v1/drafts/{id}`: changes what it proposes.
pub async fn edit(
    Caller { app, who }: Caller,
    Path(id): Path<u64>,
    headers: HeaderMap,
    body: Body<body::Configuration>,
) -> Answer {
    let doc::DraftEdit { configuration, base_version } = read_body(&body)?;
    let revision = revision(&headers)?;
    let drafts = &app.drafts;
    let before = drafts.get(id).await?;
    check_right(&app, &who, &before.kind, Step::Propose)?;
    let base_version = base_version.unwrap_or(before.base_version);

    let name = who.recorded_name();
    let by = actor(&who, &name);
    let DraftChange { draft, .. } =
        drafts.edit(id, revision, &configuration, base_version, by).await?;

    Ok(answer(draft))
}

/// A handler of `POST /v1/drafts/{id}/…`: a decision about the revision in `If-Match`, with its
/// reason or comment in `x-reason`.
macro_rules! decides {
    ($name:ident, $step:ident) => {
        #[doc = concat!("`POST /v1/drafts/{id}/", stringify!($name), "`")]
        pub async fn $name(
            Caller { app, who }: Caller,
            Path(id): Path<u64>,
            headers: HeaderMap,
        ) -> Answer {
            let name = who.recorded_name();
            let by = actor(&who, &name);
            let revision = revision(&headers)?;
            let kind = app.drafts.get(id).await?.kind;
            check_right(&app, &who, &kind, Step::$step)?;
            let decision = Decision { id, revision, text: reason(&headers), by };
            let DraftChange { draft, .. } = Drafts::$name(&app.drafts, decision).await?;
            Ok(answer(draft))
        }
    };
}

decides!(submit, Propose);
decides!(approve, Apply);
decides!(reject, Propose);
decides!(withdraw, Propose);
decides!(apply, Apply);

/// What is done with a draft, as far as rights differ.
#[derive(Clone, Copy)]
enum Step {
    Read,
    Propose,
    Apply,
}

/// Refuses a token that lacks what the kind of the document asks for, or to which the kind is
/// closed.
fn check_right(app: &App, who: &Principal, kind: &str, step: Step) -> Result<(), Problem> {
    let scopes = match (app.drafts.scopes_of(kind), step) {
        // While a product is switched off, its drafts are for administrators.
        (Err(drafts::Error::KindUnknown(_)), Step::Read) => return check_scope(who, Scope::Admin),
        (scopes, _) => scopes?,
    };

    let scope = match step {
        Step::Read => scopes.read,
        Step::Propose => scopes.propose,
        Step::Apply => scopes.apply,
    };
    check_scope(who, scope)?;

    match who.credential {
        Credential::Token(_) => Ok(app.drafts.check_token(kind, &who.name)?),
        _ => Ok(()),
    }
}

fn check_scope(who: &Principal, scope: Scope) -> Result<(), Problem> {
    if who.allows(scope) { Ok(()) } else { Err(Denial::Scope(scope).into()) }
}

fn actor<'a>(who: &'a Principal, name: &'a str) -> Actor<'a> {
    Actor { name, person: who.person() }
}

fn read_body<T: DeserializeOwned>(body: &Body<body::Configuration>) -> Result<T, Problem> {
    serde_json::from_value(json_of(&body.bytes)?).map_err(|error| {
        Problem::new(Code::JsonMalformed, format!("the body is not a draft: {error}"))
    })
}

/// Returns the revision in `If-Match`, so that a decision applies to what its author read.
fn revision(headers: &HeaderMap) -> Result<u32, Problem> {
    expected_version(headers)?.ok_or_else(|| {
        let detail = "name the revision that you read: If-Match: \"3\"";
        Problem::new(Code::RevisionMissing, detail)
    })
}

fn answer(draft: Draft) -> Response {
    ([etag(draft.revision)], Json(doc::Draft::from(draft))).into_response()
}

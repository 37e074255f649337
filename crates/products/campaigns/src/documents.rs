//! Documents of every kind: lists, versions, changes.

use crate::Campaigns;
use crate::Table;
use crate::contract::documents as doc;
use crate::contract::documents::Described;
use crate::refused::{Answer, Refused};
use axum::Json;
use axum::extract::{Extension, Path, Query};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse as _;
use raingauge_app::invalid_code;
use raingauge_campaigns::campaign::{Campaign, State};
use raingauge_campaigns::documents::Kind;
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_core::counter::Problem;
use raingauge_documents::Provenance;
use raingauge_http::change::{etag, expected_version, json_of, reason};
use raingauge_http::queries::Parameters;
use raingauge_http::{Body, Configuration};
use raingauge_people::Principal;
use raingauge_ports::campaigns::StoredDocument;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

type Services = Extension<Arc<Campaigns>>;
type GivenQuery = Query<HashMap<String, String>>;

pub fn add(table: Table) -> Table {
    use Scope::{CampaignsOperate as Operate, CampaignsWrite as Write};
    let table = kind::<doc::Campaign>(table, Write);
    let table = kind::<doc::Destination>(table, Operate);
    let table = kind::<doc::Lookup>(table, Operate);
    let table = kind::<doc::Budget>(table, Operate);
    let table = kind::<doc::Cap>(table, Operate);
    kind::<doc::Holdout>(table, Operate)
}

/// The routes of one kind, whose changes need this scope.
fn kind<D: Described>(table: Table, scope: Scope) -> Table {
    let replaced = (scope, D::VERBS[1]);
    lists::<D>(table, scope).put(D::PATHS[1], replaced, replace::<D>, doc::replace::<D>)
}

/// The same without replacing, for a kind that has more to replace.
pub fn lists<D: Described>(table: Table, scope: Scope) -> Table {
    let [all, one, old] = D::PATHS;
    let [created, _, deleted] = D::VERBS;
    table
        .get(all, Scope::CampaignsRead, list::<D>, doc::list::<D>)
        .post(all, (scope, created), create::<D>, doc::create::<D>)
        .get(one, Scope::CampaignsRead, read::<D>, doc::read::<D>)
        .delete(one, (scope, deleted), delete::<D>, doc::delete::<D>)
        .get(old, Scope::CampaignsRead, versions::<D>, doc::versions::<D>)
}

async fn list<D: Described>(
    Extension(campaigns): Services,
    Query(given): GivenQuery,
) -> Answer<Json<Value>> {
    let filters: &[&str] =
        if D::KIND == Kind::Campaign { &["state", "owner", "eventType"] } else { &[] };
    let parameters = Parameters::of(given);
    let mut listed = Vec::new();
    for stored in campaigns.documents.list(D::KIND).await? {
        let configuration = &stored.configuration;
        let fits = filters.iter().all(|name| match parameters.text(name) {
            None => true,
            Some(wanted) if *name == "eventType" => {
                let types = configuration["eventTypes"].as_array().into_iter().flatten();
                types.clone().any(|kind| *kind == wanted)
            }
            Some(wanted) => configuration[*name] == wanted,
        });
        if fits {
            listed.push(campaigns.shown(D::KIND, stored).await?);
        }
    }

    let name = D::PATHS[0].trim_start_matches("/v1/");
    Ok(Json(json!({ name: listed })))
}

async fn create<D: Described>(
    Extension(campaigns): Services,
    Extension(who): Extension<Principal>,
    Query(given): GivenQuery,
    headers: HeaderMap,
    body: Body<Configuration>,
) -> Answer {
    let parameters = Parameters::of(given);
    let document = without_status(json_of(&body.bytes)?);
    match parameters.text("validate").as_deref() {
        None => {}
        Some("only") => {
            let checked = campaigns.documents.check(D::KIND, &document).await?;
            return Ok(Json(checked).into_response());
        }
        Some(_) => {
            return Err(Refused::new(Code::ParameterUnknown, "validate may only be `only`"));
        }
    }

    check_state(&who, D::KIND, &document, State::Draft)?;
    let name = who.recorded_name();
    let provenance = Provenance { by: &name, reason: reason(&headers) };
    let stored = campaigns.documents.create(D::KIND, &document, provenance).await?;
    let place = (header::LOCATION, format!("{}/{}", D::PATHS[0], stored.id));
    let etag = etag(stored.version);
    let shown = campaigns.shown(D::KIND, stored).await?;
    Ok((StatusCode::CREATED, [place, etag], Json(shown)).into_response())
}

async fn read<D: Described>(Extension(campaigns): Services, Path(id): Path<String>) -> Answer {
    let stored = campaigns.documents.get(D::KIND, &id, None).await?;
    campaigns.answer(D::KIND, stored).await
}

async fn replace<D: Described>(
    Extension(campaigns): Services,
    Extension(who): Extension<Principal>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body<Configuration>,
) -> Answer {
    campaigns.replace(D::KIND, &id, &who, &headers, &body.bytes).await
}

async fn delete<D: Described>(
    Extension(campaigns): Services,
    Extension(who): Extension<Principal>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let name = who.recorded_name();
    let provenance = Provenance { by: &name, reason: reason(&headers) };
    let before = campaigns.documents.get(D::KIND, &id, None).await?;
    let expected = expected_version(&headers)?;
    let deleted = campaigns.remove(D::KIND, &id, expected, provenance).await?;

    // What is answered is what there was, at the version that ended it.
    let stored = StoredDocument { configuration: before.configuration, ..deleted };
    campaigns.answer(D::KIND, stored).await
}

async fn versions<D: Described>(
    Extension(campaigns): Services,
    Path(id): Path<String>,
) -> Answer<Json<Value>> {
    let versions = campaigns.documents.versions(D::KIND, &id).await?;
    let versions: Vec<Value> = versions.into_iter().map(flat).collect();
    Ok(Json(json!({ "versions": versions })))
}

impl Campaigns {
    /// Replaces a document by the one in a body.
    pub(crate) async fn replace(
        &self,
        kind: Kind,
        id: &str,
        who: &Principal,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Answer {
        let mut document = without_status(json_of(body)?);
        name_by_path(kind, id, &mut document)?;
        let before = self.documents.get(kind, id, None).await?;
        check_state(who, kind, &document, state_of(&before.configuration))?;

        let expected = expected_version(headers)?;
        let name = who.recorded_name();
        let provenance = Provenance { by: &name, reason: reason(headers) };
        let stored = self.documents.replace(kind, id, &document, expected, provenance).await?;
        self.answer(kind, stored).await
    }

    /// Deletes a document, and the rows of a table with it.
    async fn remove(
        &self,
        kind: Kind,
        id: &str,
        expected: Option<u32>,
        provenance: Provenance<'_>,
    ) -> Answer<StoredDocument> {
        let deleted = match kind {
            Kind::Table => self.uploads.delete(id, expected, provenance).await,
            _ => self.documents.delete(kind, id, expected, provenance).await,
        };
        Ok(deleted?)
    }

    pub(crate) async fn answer(&self, kind: Kind, stored: StoredDocument) -> Answer {
        let etag = etag(stored.version);
        Ok(([etag], Json(self.shown(kind, stored).await?)).into_response())
    }

    /// A document with its version, and with what follows from the state of this service.
    pub(crate) async fn shown(&self, kind: Kind, stored: StoredDocument) -> Answer<Value> {
        let id = stored.id.clone();
        let mut document = flat(stored);
        match kind {
            Kind::Campaign => {
                let status = self.status_of(&document).await?;
                document["status"] = json!(status);
            }
            Kind::Destination => document["status"] = self.destination_status(&id).await?,
            Kind::Table => self.add_rows(&id, &mut document).await?,
            Kind::Lookup | Kind::Budget | Kind::Cap | Kind::Holdout => {}
        }
        Ok(document)
    }

    /// The state of a campaign, or what an active one is in truth.
    async fn status_of(&self, document: &Value) -> Answer<String> {
        let Ok(campaign) = serde_json::from_value::<Campaign>(without_status(document.clone()))
        else {
            return Ok(document["state"].as_str().unwrap_or_default().to_owned());
        };
        if !campaign.state.decides() {
            return Ok(document["state"].as_str().unwrap_or_default().to_owned());
        }

        let now_ms = self.clock.now_ms();
        let (from_ms, until_ms) = campaign.activity_ms();
        let status = if now_ms >= until_ms {
            "ended"
        } else if now_ms < from_ms {
            "scheduled"
        } else if self.worker.snapshot().is_warming(campaign.id) {
            "warming"
        } else if self.is_exhausted(&campaign).await? {
            "exhausted"
        } else {
            document["state"].as_str().unwrap_or_default()
        };
        Ok(status.to_owned())
    }

    /// Whether every budget of the campaign, each for its whole activity, is spent.
    async fn is_exhausted(&self, campaign: &Campaign) -> Answer<bool> {
        use raingauge_campaigns::budget::BudgetPeriod;
        let lasts = |period: &BudgetPeriod| matches!(period, BudgetPeriod::Campaign);
        let all_last = campaign.budgets.values().all(|budget| lasts(&budget.period));
        if campaign.budgets.is_empty() || !all_last {
            return Ok(false);
        }
        let known = self.ledger.budgets_of(campaign.id).await?;
        let is_spent = |name: &String, max: i64| {
            known.iter().any(|(key, budget)| key.name == *name && budget.reserved >= max)
        };
        Ok(campaign.budgets.iter().all(|(name, budget)| is_spent(name, budget.max)))
    }
}

/// A document as answers have it: its members, and those about its version.
fn flat(stored: StoredDocument) -> Value {
    // A deletion has no content.
    let own = if stored.kind == Kind::Campaign.name() {
        ("id", json!(stored.id.parse::<u32>().unwrap_or(0)))
    } else {
        ("name", json!(stored.id))
    };
    raingauge_http::change::with_version(stored, own)
}

/// Removes what reading a document adds to it, so that clients can send it back.
fn without_status(document: Value) -> Value {
    let mut document = raingauge_http::change::without_version(document);
    if let Some(members) = document.as_object_mut() {
        for name in ["status", "rows", "loadedVersion", "loadedAt"] {
            members.remove(name);
        }
    }
    document
}

/// The name in the path is that of the document, which may leave it out.
fn name_by_path(kind: Kind, id: &str, document: &mut Value) -> Result<(), Refused> {
    let (member, own) = match kind {
        Kind::Campaign => ("id", json!(id.parse::<u32>().unwrap_or(0))),
        _ => ("name", json!(id)),
    };
    let Some(members) = document.as_object_mut() else { return Ok(()) };
    let given = members.entry(member).or_insert_with(|| own.clone());
    if kind == Kind::Campaign && *given == 0 {
        *given = own.clone();
    }
    if *given == own {
        return Ok(());
    }
    let problem = Problem::new(member, format!("is {given}, but the path says {own}"));
    Err(Refused::invalid(invalid_code(kind.name()), &[problem]))
}

fn state_of(configuration: &Value) -> State {
    serde_json::from_value(configuration["state"].clone()).unwrap_or_default()
}

/// Starting and stopping a campaign needs the right to operate, also by its document.
fn check_state(
    who: &Principal,
    kind: Kind,
    document: &Value,
    before: State,
) -> Result<(), Refused> {
    let is_change = kind == Kind::Campaign && state_of(document) != before;
    if !is_change || who.allows(Scope::CampaignsOperate) {
        return Ok(());
    }
    let detail = "to start or stop a campaign, the token needs the scope campaigns:operate: leave \
                  `state` as it is, which is `draft` for a new campaign";
    Err(Refused::new(Code::ScopeMissing, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(configuration: Value) -> StoredDocument {
        StoredDocument {
            kind: "destination".to_owned(),
            id: "rewards".to_owned(),
            version: 3,
            configuration,
            is_deleted: false,
            changed_by: "token:ops".to_owned(),
            reason: "why".to_owned(),
            changed_ms: 1_999,
        }
    }

    #[test]
    fn a_document_is_flat_and_can_be_sent_back() {
        let document = json!({ "name": "rewards", "url": "https://r.example" });
        let shown = flat(stored(document.clone()));
        assert_eq!((&shown["version"], &shown["changedAt"]), (&json!(3), &json!(1)));
        assert_eq!(
            (&shown["changedBy"], &shown["changedByKind"]),
            (&json!("ops"), &json!("token"))
        );
        assert_eq!(without_status(shown), document);

        let deleted = StoredDocument { is_deleted: true, ..stored(Value::Null) };
        assert_eq!(flat(deleted)["isDeleted"], true);
    }

    #[test]
    fn the_path_names_the_document() {
        let mut document = json!({ "url": "u" });
        name_by_path(Kind::Destination, "d", &mut document).unwrap();
        assert_eq!(document["name"], "d");
        assert!(name_by_path(Kind::Destination, "e", &mut document).is_err());

        let mut campaign = json!({ "id": 0 });
        name_by_path(Kind::Campaign, "7", &mut campaign).unwrap();
        assert_eq!(campaign["id"], 7);
    }

    #[test]
    fn starting_a_campaign_needs_a_scope_of_its_own() {
        let author = Principal::of_token("a".into(), [Scope::CampaignsWrite].into_iter().collect());
        let check =
            |document: Value, before| check_state(&author, Kind::Campaign, &document, before);
        assert!(check(json!({}), State::Draft).is_ok());
        assert!(check(json!({ "state": "active" }), State::Active).is_ok());
        assert!(check(json!({ "state": "active" }), State::Draft).is_err());
        assert!(check(json!({}), State::Active).is_err());
    }
}

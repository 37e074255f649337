//! The services of campaigns, as pages use them.

use crate::Campaigns;
use axum::http::StatusCode;
use raingauge_campaigner::Snapshot;
use raingauge_campaigns::campaign::{Campaign, CampaignId, State};
use raingauge_campaigns::states::{StateKey, StateKind, exposure_owner};
use raingauge_deliveries::DestinationStatus;
use raingauge_documents::{self as documents, Format, Provenance};
use raingauge_people::Principal;
use raingauge_policy::breaker;
use raingauge_portal::Fault;
use raingauge_portal::document::SaveError;
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use raingauge_ports::campaigns::{LedgerReader, Outbox, StoredDocument};
use raingauge_replay as replay;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Exposures that are counted. A page says that there are more.
const EXPOSURES_MAX: usize = 200_000;

/// A campaign and its place among its versions.
#[derive(Clone, Debug)]
pub struct Listed {
    pub campaign: Campaign,
    pub version: u32,
    pub changed_ms: i64,
    /// Its counts are still being filled from the log.
    pub is_warming: bool,
}

/// A destination as it is sent to now.
#[derive(Clone, Debug)]
pub struct DestinationView {
    pub name: String,
    pub url: String,
    /// Why nothing is sent.
    pub obstacle: Option<String>,
    pub breaker: &'static str,
    /// Requests a second, now and by the schedule; `None` without a bound.
    pub per_second: Option<u32>,
    pub scheduled_per_second: Option<u32>,
    /// Requests that may be under way, and those that are.
    pub concurrency: u16,
    pub in_flight: usize,
    pub pending: usize,
    pub oldest_ms: Option<i64>,
    /// When and how the last attempt failed.
    pub last_failure: Option<(i64, String)>,
}

/// An explanation, or the job that finds it.
pub enum Explained {
    Now(Json),
    Later(String),
}

#[derive(Clone)]
pub struct Desk(Arc<Campaigns>);

impl Desk {
    pub fn new(campaigns: &Campaigns) -> Self {
        Self(Arc::new(campaigns.clone()))
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.0.worker.snapshot()
    }

    /// The campaigns in effect, by name.
    pub fn campaigns(&self) -> Vec<Listed> {
        let snapshot = self.snapshot();
        let mut all: Vec<Listed> =
            snapshot.documents.campaigns().filter_map(|one| listed(&snapshot, one)).collect();
        all.sort_by(|left, right| left.campaign.name.cmp(&right.campaign.name));
        all
    }

    pub fn campaign(&self, id: CampaignId) -> Option<Listed> {
        let snapshot = self.snapshot();
        listed(&snapshot, snapshot.documents.campaign(id)?)
    }

    /// The name of a campaign, also of one that is gone.
    pub fn name_of(&self, id: CampaignId) -> String {
        let snapshot = self.snapshot();
        let campaign = snapshot.documents.campaign(id);
        campaign.map_or_else(|| format!("campaign {id}"), |campaign| campaign.name.clone())
    }

    /// How far the counts of a campaign are filled, in a sentence.
    pub fn warming(&self, id: CampaignId) -> Option<String> {
        let snapshot = self.snapshot();
        let warming = snapshot.warming.get(&id)?;
        let left = warming.until.saturating_sub(warming.next);
        Some(format!("{left} entries of the log are left"))
    }

    /// Why campaigns decide nothing.
    pub fn trouble(&self) -> Option<String> {
        self.0.worker.trouble()
    }

    /// The documents of a kind that are in effect.
    pub fn documents(&self, kind: &str) -> Vec<StoredDocument> {
        let snapshot = self.snapshot();
        snapshot.documents.iter().filter(|document| document.kind == kind).cloned().collect()
    }

    pub fn document(&self, kind: &str, id: &str) -> Option<StoredDocument> {
        self.snapshot().documents.get(kind, id).cloned()
    }

    /// All versions of a document, newest first.
    pub async fn versions(&self, kind: &str, id: &str) -> Result<Vec<StoredDocument>, Fault> {
        self.0.documents.versions(kind, id).await.map_err(Fault::from)
    }

    /// Checks a document among the others.
    pub async fn check(&self, kind: &str, document: &Json) -> Result<(), SaveError> {
        self.0.documents.check(kind, document).await?;
        Ok(())
    }

    /// Saves a document, and returns it once it is in effect. Version 0 is that of a new one.
    pub async fn save(
        &self,
        kind: &str,
        document: Json,
        version: u32,
        person: &Principal,
        reason: &str,
    ) -> Result<StoredDocument, SaveError> {
        let provenance = provenance(person, reason);
        let documents = &self.0.documents;
        if version == 0 {
            return Ok(documents.create(kind, &document, provenance).await?);
        }

        let id = id_of(&document);
        Ok(documents.replace(kind, &id, &document, Some(version), provenance).await?)
    }

    pub async fn remove(
        &self,
        kind: &str,
        id: &str,
        version: u32,
        person: &Principal,
        reason: &str,
    ) -> Result<(), Fault> {
        let provenance = provenance(person, reason);
        let removed = self.0.documents.delete(kind, id, Some(version), provenance).await;
        removed.map(|_| ()).map_err(Fault::from)
    }

    pub async fn set_state(
        &self,
        id: CampaignId,
        state: State,
        person: &Principal,
        reason: &str,
    ) -> Result<(), Fault> {
        let state = serde_json::to_value(state).unwrap_or_default();
        let state = state.as_str().unwrap_or_default();
        let provenance = provenance(person, reason);
        let id = id.to_string();
        let changed = self.0.documents.set_state("campaign", &id, state, None, provenance).await;
        changed.map(|_| ()).map_err(Fault::from)
    }

    /// Erases what campaigns remember of a subject.
    pub async fn erase(&self, subject: &str) -> Result<(), Fault> {
        self.0.operator.erase(subject).await.map_err(unavailable)
    }

    /// Decides again what the budgets of a campaign, or of all, refused. Returns how many actions
    /// that granted.
    pub async fn redrive_refused(&self, campaign: Option<CampaignId>) -> Result<usize, Fault> {
        self.0.operator.redrive(campaign).await.map_err(unavailable)
    }

    pub fn reader(&self) -> &dyn LedgerReader {
        &*self.0.ledger
    }

    pub fn outbox(&self) -> &dyn Outbox {
        &*self.0.outbox
    }

    /// The destinations, by name.
    pub async fn destinations(&self) -> Result<Vec<DestinationView>, Fault> {
        let statuses = self.0.deliveries.statuses().await.map_err(unavailable)?;
        Ok(statuses.into_iter().map(|status| self.view(status)).collect())
    }

    fn view(&self, status: DestinationStatus) -> DestinationView {
        let DestinationStatus { name, activity, backlog } = status;
        let document = self.document("destination", &name);
        let url = document.as_ref().and_then(|document| document.configuration["url"].as_str());
        DestinationView {
            url: url.unwrap_or_default().to_owned(),
            obstacle: activity.obstacle,
            breaker: match activity.breaker {
                breaker::State::Closed => "closed",
                breaker::State::HalfOpen => "half_open",
                breaker::State::Open => "open",
            },
            per_second: activity.per_second,
            scheduled_per_second: activity.scheduled_per_second,
            concurrency: activity.concurrency,
            in_flight: activity.in_flight,
            pending: backlog.pending,
            oldest_ms: backlog.oldest_ms,
            last_failure: activity.last_failure.map(|failure| (failure.at_ms, failure.note)),
            name,
        }
    }

    /// Disables a destination for a reason, or enables it.
    pub async fn switch_destination(
        &self,
        name: &str,
        disabled: Option<&str>,
        person: &Principal,
        reason: &str,
    ) -> Result<(), Fault> {
        let member = ("disabled", Json::from(disabled));
        let provenance = provenance(person, reason);
        let documents = &self.0.documents;
        let changed = documents.set_member("destination", name, member, None, provenance).await;
        changed.map(|_| ()).map_err(Fault::from)
    }

    /// Sends a request that asks for nothing. Returns its status, 0 without an answer.
    pub async fn probe(&self, name: &str) -> Result<u16, Fault> {
        let probe = self.0.deliveries.probe(name).await.map_err(unavailable)?;
        Ok(probe.status.unwrap_or(0))
    }

    /// The version and the rows of a table that was loaded.
    pub async fn table(&self, name: &str) -> Result<Option<(u64, u64)>, Fault> {
        let all = self.0.uploads.loaded().await.map_err(Fault::from)?;
        let found = all.into_iter().find(|table| table.name == name);
        Ok(found.map(|table| (table.version, table.rows)))
    }

    /// Loads the rows of a table from CSV. Returns their number, or what is wrong with them.
    pub async fn load(&self, name: &str, csv: &str) -> Result<Result<u64, String>, Fault> {
        let mut upload = match self.0.uploads.begin(name, Format::Csv).await {
            Ok(upload) => upload,
            Err(error) => return refused_rows(error),
        };
        if let Err(error) = upload.feed(csv.as_bytes()).await {
            return refused_rows(error);
        }
        match upload.finish().await {
            Ok(version) => Ok(Ok(version.rows)),
            Err(error) => refused_rows(error),
        }
    }

    /// How many units came to where an experiment makes a difference, by variant; those that are
    /// held out have none.
    pub async fn exposures(&self, key: &str) -> Result<BTreeMap<String, u64>, Fault> {
        let owner = exposure_owner(key);
        let mut from = StateKey { kind: StateKind::Exposure, owner, subject: String::new() };
        let mut counts = BTreeMap::new();
        let mut seen = 0;

        loop {
            let states = self.0.ledger.states(from.clone(), LEDGER_PAGE_LEN_MAX).await;
            let states = states.map_err(super::faults::ledger)?;
            let is_last = states.len() < LEDGER_PAGE_LEN_MAX;
            for (state, value) in states {
                if state.owner != owner || seen >= EXPOSURES_MAX {
                    return Ok(counts);
                }
                seen += 1;
                *counts.entry(String::from_utf8_lossy(&value).into_owned()).or_default() += 1;
                from = state;
            }
            if is_last {
                return Ok(counts);
            }
            // The smallest key behind the last one.
            from.subject.push('\0');
        }
    }

    /// Decides a few events, and keeps nothing.
    pub async fn test(&self, request: &Json) -> Result<Json, Fault> {
        let request = replay::request::TestRequest::parse(request.to_string().as_bytes());
        let trial = self.0.replay.test(request.map_err(Fault::from)?).await.map_err(Fault::from)?;
        Ok(json_of(&trial))
    }

    /// Begins a backtest. Returns its job.
    pub fn backtest(&self, request: &Json, person: &Principal) -> Result<String, Fault> {
        let request = replay::request::BacktestRequest::parse(request.to_string().as_bytes());
        let job = self.0.replay.backtest(&caller(person), request.map_err(Fault::from)?, None);
        Ok(job.map_err(Fault::from)?.id)
    }

    /// Begins a comparison. Returns its job.
    pub fn compare(&self, request: &Json, person: &Principal) -> Result<String, Fault> {
        let request = replay::request::BacktestRequest::parse(request.to_string().as_bytes());
        let job = self.0.replay.compare(&caller(person), request.map_err(Fault::from)?, None);
        Ok(job.map_err(Fault::from)?.id)
    }

    pub async fn explain(
        &self,
        campaign: CampaignId,
        request: &Json,
        person: &Principal,
    ) -> Result<Explained, Fault> {
        let request = replay::request::ExplainRequest::parse(request.to_string().as_bytes());
        let request = request.map_err(Fault::from)?;
        let found = self.0.replay.explain(&caller(person), campaign, request).await;
        Ok(match found.map_err(Fault::from)? {
            replay::Explained::Now(explanation) => Explained::Now(json_of(&*explanation)),
            replay::Explained::Job(job) => Explained::Later(job.id),
        })
    }

    /// Begins an audit of a campaign, or of one chosen at random. Returns its job.
    pub async fn audit(
        &self,
        campaign: Option<CampaignId>,
        person: &Principal,
    ) -> Result<String, Fault> {
        let request = replay::request::AuditRequest { campaign, ..Default::default() };
        let job = self.0.replay.audit(&caller(person), request).await.map_err(Fault::from)?;
        Ok(job.id)
    }

    /// The result of the last audit of this process, as the API answers it.
    pub fn last_audit(&self) -> Option<Json> {
        self.0.replay.last_audit().map(|audit| json_of(&*audit))
    }

    /// A job as the API answers it.
    pub fn job(&self, id: &str) -> Option<Json> {
        self.0.replay.jobs().get(id).ok().map(|job| json_of(&job))
    }

    pub fn end_job(&self, id: &str) -> Result<(), Fault> {
        self.0.replay.jobs().cancel(id).map(|_| ()).map_err(Fault::from)
    }
}

fn listed(snapshot: &Snapshot, campaign: &Campaign) -> Option<Listed> {
    let document = snapshot.documents.get("campaign", &campaign.id.to_string())?;
    Some(Listed {
        version: document.version,
        changed_ms: document.changed_ms,
        is_warming: snapshot.is_warming(campaign.id),
        campaign: campaign.clone(),
    })
}

fn provenance<'p>(person: &'p Principal, reason: &'p str) -> Provenance<'p> {
    Provenance { by: &person.name, reason }
}

/// The number of a campaign, or the name of another document.
fn id_of(document: &Json) -> String {
    match document["id"].as_u64() {
        Some(id) => id.to_string(),
        None => document["name"].as_str().unwrap_or_default().to_owned(),
    }
}

/// The name under which a person's replays take their turns.
fn caller(person: &Principal) -> String {
    format!("the portal: {}", person.name)
}

fn json_of(answer: &impl serde::Serialize) -> Json {
    serde_json::to_value(answer).unwrap_or_default()
}

/// What is wrong with uploaded rows, for the form; other errors are pages of their own.
fn refused_rows(error: documents::Error) -> Result<Result<u64, String>, Fault> {
    match error {
        documents::Error::Row { .. } | documents::Error::Upload(_) => Ok(Err(error.to_string())),
        error => Err(error.into()),
    }
}

fn unavailable(error: impl std::fmt::Display) -> Fault {
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, "This is out of reach", error.to_string())
}

//! `/v1/actions`: what is on its way to destinations, and what did not arrive.

use crate::Campaigns;
use crate::Table;
use crate::contract::actions as doc;
use crate::refused::{Answer, Refused};
use axum::Json;
use axum::extract::{Extension, Path, Query};
use axum::response::{IntoResponse as _, Response};
use raingauge_campaigns::decision::Reason;
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_http::change::json_of;
use raingauge_http::queries::{Parameters, time};
use raingauge_http::{AuditDetails, Body, Configuration};
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use raingauge_ports::campaigns::{
    ActionId, Deliveries, DeliveryPlace, DeliveryQuery, DeliveryRecord, Error, Selection, Status,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

pub fn add(table: Table) -> Table {
    const OPERATE: Scope = Scope::CampaignsOperate;
    table
        .get("/v1/actions", Scope::CampaignsRead, list, doc::list)
        .post("/v1/actions/redrive", (OPERATE, "action.redrive_all"), redrive_all, doc::redrive_all)
        .post("/v1/actions/cancel", (OPERATE, "action.cancel_all"), cancel_all, doc::cancel_all)
        .get("/v1/actions/{action}", Scope::CampaignsRead, read, doc::read)
        .post("/v1/actions/{action}/redrive", (OPERATE, "action.redrive"), redrive, doc::redrive)
        .post("/v1/actions/{action}/cancel", (OPERATE, "action.cancel"), cancel, doc::cancel)
}

type Services = Extension<Arc<Campaigns>>;

/// `GET /v1/actions`
async fn list(
    Extension(campaigns): Services,
    Query(given): Query<HashMap<String, String>>,
) -> Answer<Json<Value>> {
    let parameters = Parameters::of(given);
    let status = match parameters.text("status") {
        None => Status::Pending,
        Some(name) => Status::from_name(&name).ok_or_else(|| {
            let names = Status::ALL.map(Status::name).join(", ");
            Refused::new(Code::ParameterUnknown, format!("status is one of {names}"))
        })?,
    };

    let mut query = DeliveryQuery {
        status,
        destination: parameters.text("destination"),
        campaign: parameters.value("campaign")?,
        after: parameters.text("after").map(|text| place_of(&text)).transpose()?,
        len_max: parameters.limit(LEDGER_PAGE_LEN_MAX)?,
    };

    // The ledger examines a bounded number for each page.
    let Deliveries { records, next } = loop {
        let page = campaigns.outbox.list(query.clone()).await?;
        if !page.records.is_empty() || page.next.is_none() {
            break page;
        }
        query.after = page.next;
    };
    let actions: Vec<Value> = records.iter().map(shown).collect();
    let next = next.map(|DeliveryPlace { destination, at_ms, action }| {
        format!("{at_ms}_{action}_{destination}")
    });
    Ok(Json(json!({ "actions": actions, "next": next })))
}

/// `GET /v1/actions/{action}`: with what is sent.
async fn read(Extension(campaigns): Services, Path(action): Path<String>) -> Answer<Json<Value>> {
    let record = campaigns.delivery(action.parse()?).await?;
    let mut answer = shown(&record);
    let body = &record.delivery.body;
    answer["body"] =
        serde_json::from_slice(body).unwrap_or_else(|_| json!(String::from_utf8_lossy(body)));
    Ok(Json(answer))
}

/// `POST /v1/actions/{action}/redrive`
async fn redrive(
    Extension(campaigns): Services,
    Path(action): Path<String>,
) -> Answer<Json<Value>> {
    campaigns.change_one(action.parse()?, Change::Redrive).await
}

/// `POST /v1/actions/{action}/cancel`
async fn cancel(Extension(campaigns): Services, Path(action): Path<String>) -> Answer<Json<Value>> {
    campaigns.change_one(action.parse()?, Change::Cancel).await
}

/// `POST /v1/actions/redrive`: all dead ones of a destination, of a campaign, or of both; or, with
/// an outcome, what budgets refused.
async fn redrive_all(Extension(campaigns): Services, body: Body<Configuration>) -> Answer {
    campaigns.change_all(&body.bytes, Change::Redrive).await
}

/// `POST /v1/actions/cancel`: the same for all that are pending, held or dead.
async fn cancel_all(Extension(campaigns): Services, body: Body<Configuration>) -> Answer {
    campaigns.change_all(&body.bytes, Change::Cancel).await
}

#[derive(Clone, Copy)]
enum Change {
    Redrive,
    Cancel,
}

/// Which actions are changed; all, if it names nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bulk {
    destination: Option<String>,
    campaign: Option<u32>,
    /// Of decisions that granted nothing, and may be made again.
    outcome: Option<String>,
}

impl Campaigns {
    async fn delivery(&self, action: ActionId) -> Answer<DeliveryRecord> {
        let found = self.outbox.get(action).await?;
        found.ok_or_else(|| {
            let detail = format!("there is no action {action}, or it ended long ago");
            Refused::new(Code::ActionUnknown, detail)
        })
    }

    async fn change_one(&self, action: ActionId, change: Change) -> Answer<Json<Value>> {
        let before = self.delivery(action).await?;
        if self.change(Selection::One(action), change).await? == 0 {
            let status = before.status.name();
            let needed = match change {
                Change::Redrive => "only a dead action is sent again",
                Change::Cancel => {
                    "only one that is pending, held or dead, and not being sent, is cancelled"
                }
            };
            let detail = format!("action {action} is {status}: {needed}");
            return Err(Refused::new(Code::ActionRefused, detail));
        }
        Ok(Json(shown(&self.delivery(action).await?)))
    }

    async fn change_all(&self, body: &[u8], change: Change) -> Answer {
        let bulk: Bulk = serde_json::from_value(json_of(body)?).map_err(|error| {
            Refused::new(Code::JsonMalformed, format!("the body names no actions: {error}"))
        })?;
        let details = json!({
            "destination": bulk.destination, "campaign": bulk.campaign, "outcome": bulk.outcome,
        });
        let Bulk { destination, campaign, outcome } = bulk;
        if let Some(outcome) = outcome {
            self.check_outcome(&outcome, destination.as_deref(), change)?;
            let changed = self.operator.redrive(campaign).await?;
            return Ok(changed_all(&details, changed));
        }
        let selection = Selection::All { destination, campaign };

        // A call changes a bounded number, so that others have their turn.
        let mut changed = 0;
        loop {
            match self.change(selection.clone(), change).await? {
                0 => break,
                more => changed += more,
            }
        }
        Ok(changed_all(&details, changed))
    }

    /// Refuses what cannot be decided again.
    fn check_outcome(
        &self,
        outcome: &str,
        destination: Option<&str>,
        change: Change,
    ) -> Result<(), Refused> {
        let exhausted = Reason::BudgetExhausted.as_str();
        let detail = match change {
            Change::Cancel => {
                "what was refused has nothing to cancel: leave out outcome".to_owned()
            }
            Change::Redrive if outcome != exhausted => {
                format!("only decisions with the outcome {exhausted} are made again")
            }
            Change::Redrive if destination.is_some() => {
                "a decision has no destination: leave out destination, or outcome".to_owned()
            }
            Change::Redrive => return Ok(()),
        };
        Err(Refused::new(Code::RequestMalformed, detail))
    }

    async fn change(&self, selection: Selection, change: Change) -> Result<usize, Error> {
        let now_ms = self.clock.now_ms();
        match change {
            Change::Redrive => self.outbox.redrive(selection, now_ms).await,
            Change::Cancel => self.outbox.cancel(selection, now_ms).await,
        }
    }
}

/// The answer to a change of many actions.
fn changed_all(details: &Value, changed: usize) -> Response {
    let answer = json!({ "changed": changed });
    let details = Extension(AuditDetails(json!({ "of": details, "changed": changed })));
    (details, Json(answer)).into_response()
}

/// A delivery, as it is answered.
pub fn shown(record: &DeliveryRecord) -> Value {
    let delivery = &record.delivery;
    let cost = delivery.cost.as_ref();
    json!({
        "action": delivery.action,
        "campaign": delivery.campaign,
        "subject": delivery.subject,
        "destination": delivery.destination,
        "dueAt": time(delivery.due_ms),
        "status": record.status.name(),
        "tries": record.tries,
        "at": time(record.at_ms),
        "note": record.note,
        "cost": cost.map(|cost| json!({ "budget": cost.budget.name, "amount": cost.amount })),
    })
}

/// Reads the place that a page named as its `next`.
fn place_of(text: &str) -> Result<DeliveryPlace, Refused> {
    // The id of an action has an underscore of its own.
    let mut parts = text.splitn(4, '_');
    let mut part = || parts.next();
    let place = (|| {
        let at_ms = part()?.parse().ok()?;
        let action = format!("{}_{}", part()?, part()?).parse().ok()?;
        Some(DeliveryPlace { destination: part()?.to_owned(), at_ms, action })
    })();
    place.ok_or_else(|| {
        Refused::new(Code::RequestMalformed, "after must be the `next` of the page before")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_continued_where_it_ended() {
        let action = ActionId([7; 16]);
        let place = DeliveryPlace { destination: "a_b".to_owned(), at_ms: 5, action };
        assert_eq!(place_of(&format!("5_{action}_a_b")).unwrap(), place);
        for wrong in ["", "5", "5_act_7_d", "5_act"] {
            assert!(place_of(wrong).is_err(), "{wrong}");
        }
    }
}

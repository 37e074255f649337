//! `/v1/points/queues`: what waits, and what could not be done.

use crate::contract::operations as doc;
use crate::refused::{Answer, Refused};
use crate::{Points, Table};
use axum::Json;
use axum::extract::{Extension, Path, Query};
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_http::change::json_of;
use raingauge_http::queries::{Parameters, time};
use raingauge_http::{Body, Configuration};
use raingauge_people::Principal;
use raingauge_ports::points::{
    Death, Depth, LetterSelection, PeekedLetter, QUEUE_CALL_LEN_MAX, QueueError, QueueName, Shelf,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

type Services = Extension<Arc<Points>>;
type Caller = Extension<Principal>;

pub fn add(table: Table) -> Table {
    const ADMIN: Scope = Scope::PointsAdmin;
    table
        .get("/v1/points/queues", ADMIN, list, doc::queues)
        .get("/v1/points/queues/{queue}/messages", ADMIN, messages, doc::messages)
        .post("/v1/points/queues/{queue}/redrive", (ADMIN, "queue.redrive"), redrive, doc::redrive)
        .post("/v1/points/queues/{queue}/discard", (ADMIN, "queue.discard"), discard, doc::discard)
}

/// `GET /v1/points/queues`
async fn list(Extension(points): Services, Extension(who): Caller) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    let mut queues = Vec::new();
    for queue in QueueName::ALL {
        let Depth { waiting, in_flight, dead, oldest_ms } = points.queues.depth(queue).await?;
        queues.push(json!({
            "name": queue.name(),
            "waiting": waiting,
            "inFlight": in_flight,
            "dead": dead,
            "oldest": oldest_ms.map(time),
        }));
    }
    Ok(Json(json!({ "queues": queues })))
}

/// `GET /v1/points/queues/{queue}/messages`
async fn messages(
    Extension(points): Services,
    Extension(who): Caller,
    Path(name): Path<String>,
    Query(given): Query<HashMap<String, String>>,
) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    let parameters = Parameters::of(given);
    let (queue, shelf) = shelf_of(&name)?;
    let found = points.queues.peek(queue, shelf, parameters.limit(QUEUE_CALL_LEN_MAX)?).await?;
    let messages: Vec<Value> = found.iter().map(shown).collect();
    Ok(Json(json!({ "messages": messages })))
}

/// `POST /v1/points/queues/{queue}/redrive`
async fn redrive(
    Extension(points): Services,
    Extension(who): Caller,
    Path(name): Path<String>,
    body: Body<Configuration>,
) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    points.change(&name, &body.bytes, Change::Redrive).await
}

/// `POST /v1/points/queues/{queue}/discard`
async fn discard(
    Extension(points): Services,
    Extension(who): Caller,
    Path(name): Path<String>,
    body: Body<Configuration>,
) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    points.change(&name, &body.bytes, Change::Discard).await
}

/// What is done to dead letters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// They go back to their queue.
    Redrive,
    /// They are forgotten.
    Discard,
}

/// Which dead letters are changed; all, if it names none.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeRequest {
    ids: Option<Vec<String>>,
}

impl Points {
    async fn change(&self, name: &str, body: &[u8], change: Change) -> Answer<Json<Value>> {
        let (queue, _) = shelf_of(name)?;
        let selection = selection_of(body)?;
        let changed = self.change_letters(queue, &selection, change).await?;
        Ok(Json(json!({ "changed": changed })))
    }

    /// Changes the dead letters that are chosen, and returns how many. All of them are those that
    /// are dead now: one that dies again meets no second round.
    pub(crate) async fn change_letters(
        &self,
        queue: QueueName,
        selection: &LetterSelection,
        change: Change,
    ) -> Result<usize, QueueError> {
        let dead = self.queues.depth(queue).await?.dead;
        let mut changed = 0;
        loop {
            let moved = match change {
                Change::Redrive => self.queues.redrive(queue, selection.clone()).await?,
                Change::Discard => self.queues.discard(queue, selection.clone()).await?,
            };
            changed += moved;
            if moved == 0 || *selection != LetterSelection::All || changed as u64 >= dead {
                return Ok(changed);
            }
        }
    }
}

fn selection_of(body: &[u8]) -> Result<LetterSelection, Refused> {
    let request = if body.is_empty() {
        ChangeRequest::default()
    } else {
        serde_json::from_value(json_of(body)?)
            .map_err(|error| Refused::new(Code::RequestMalformed, error.to_string()))?
    };
    match request.ids {
        None => Ok(LetterSelection::All),
        Some(ids) if ids.len() <= QUEUE_CALL_LEN_MAX => Ok(LetterSelection::Ids(ids)),
        Some(_) => {
            let detail = format!("name at most {QUEUE_CALL_LEN_MAX} ids, or none for all");
            Err(Refused::new(Code::TooManyAwards, detail))
        }
    }
}

/// `retry` is what waits in a queue, and `retry.dead` what it gave up.
fn shelf_of(name: &str) -> Result<(QueueName, Shelf), Refused> {
    QueueName::shelf_from_name(name).ok_or_else(|| {
        let names = QueueName::ALL.map(QueueName::name).join(", ");
        let detail = format!("there is no queue {name}: they are {names}, each with NAME.dead");
        Refused::new(Code::QueueUnknown, detail)
    })
}

fn shown(found: &PeekedLetter) -> Value {
    let PeekedLetter { letter, receives, sent_ms, visible_ms, death } = found;
    let body = serde_json::from_str(&letter.body).unwrap_or_else(|_| json!(letter.body));
    let death = death.as_ref().map(|Death { reason, last_error, attempts, died_ms }| {
        json!({
            "reason": reason, "lastError": last_error, "attempts": attempts, "at": time(*died_ms),
        })
    });
    json!({
        "id": letter.id,
        "body": body,
        "firstError": letter.first_error,
        "attempts": receives,
        "sentAt": time(*sent_ms),
        "visibleAt": visible_ms.map(time),
        "death": death,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_letters_have_a_shelf_of_their_own() {
        assert_eq!(shelf_of("retry").unwrap(), (QueueName::Retry, Shelf::Waiting));
        assert_eq!(shelf_of("retry.dead").unwrap(), (QueueName::Retry, Shelf::Dead));
        assert_eq!(shelf_of("rain").unwrap_err().0.code(), Code::QueueUnknown);
    }

    #[test]
    fn a_change_names_ids_or_means_all() {
        assert_eq!(selection_of(b"").unwrap(), LetterSelection::All);
        assert_eq!(selection_of(b"{}").unwrap(), LetterSelection::All);
        let ids = LetterSelection::Ids(vec!["a".to_owned()]);
        assert_eq!(selection_of(br#"{"ids": ["a"]}"#).unwrap(), ids);
        assert!(selection_of(br#"{"id": "a"}"#).is_err());
    }
}

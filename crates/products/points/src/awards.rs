//! `POST /v1/points/awards`: awards by sources and partners.

use crate::answers::{self, ItemResult, Results};
use crate::commands::Conversion;
use crate::contract::ledger as doc;
use crate::refused::{Answer, Refused, item};
use crate::requests::{AwardRequest, Batch};
use crate::{Points, Table};
use axum::Json;
use axum::extract::{Extension, Query};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use raingauge_awarding as awarding;
use raingauge_core::access::Scope;
use raingauge_core::code::{Code, Refusal};
use raingauge_http::queries::Parameters;
use raingauge_http::{Body, Trial};
use raingauge_people::Principal;
use raingauge_points::{self as points, Command};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// How many replayed commands are read at the same time.
const READS_AT_ONCE: usize = 4;

pub fn add(table: Table) -> Table {
    table.ask("/v1/points/awards", Scope::PointsAward, award, doc::awards)
}

/// `POST /v1/points/awards`
async fn award(
    Extension(points): Extension<Arc<Points>>,
    Extension(who): Extension<Principal>,
    Query(given): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Body<Trial>,
) -> Answer {
    let parameters = Parameters::of(given);
    let is_trial = parameters.value::<bool>("dryRun")?.unwrap_or(false);
    let conversion = points.conversion(points.source(&who));
    let batch = Batch::<AwardRequest>::of_singles(&body.bytes, "awards")?;
    let commands: Vec<Result<Command, Refusal>> =
        batch.items.into_iter().map(|item| conversion.award(item?)).collect();

    if is_trial {
        let mut answer = points.tree_of_results(commands, Manner::Trial).await?;
        answer["dryRun"] = json!(true);
        return Ok(Json(answer).into_response());
    }
    if is_later(&headers) {
        return points.later(commands, &conversion).await;
    }
    Ok(Json(points.results(commands, Manner::Each).await?).into_response())
}

/// Whether the caller does not wait for the ledger (RFC 7240).
fn is_later(headers: &HeaderMap) -> bool {
    let mut preferred = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let is_async = |preference: &str| {
        let name = preference.split([';', '=']).next().unwrap_or_default();
        name.trim().eq_ignore_ascii_case("respond-async")
    };
    preferred.any(|value| value.split(',').any(is_async))
}

/// How the commands of a batch are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Each,
    /// All of them or none.
    Together,
    /// As `Each`, and nothing is written.
    Trial,
}

impl Points {
    /// Decides the commands of a batch. An item that is no command keeps its refusal.
    pub(crate) async fn results(
        &self,
        commands: Vec<Result<Command, Refusal>>,
        manner: Manner,
    ) -> Answer<Results> {
        let mut sound = Vec::with_capacity(commands.len());
        let keys: Vec<Result<Arc<str>, Refusal>> = commands
            .into_iter()
            .map(|command| {
                let command = command?;
                let key = Arc::clone(&command.key);
                sound.push(command);
                Ok(key)
            })
            .collect();
        let is_broken = sound.len() < keys.len();
        let answers = match manner {
            Manner::Each => self.teller.submit(sound).await,
            Manner::Trial => self.teller.try_out(sound).await,
            Manner::Together if is_broken => Vec::new(),
            Manner::Together => {
                let answers = self.teller.submit_together(sound).await?;
                answers.into_iter().map(Ok).collect()
            }
        };
        refuse_all(&answers)?;

        // A programme that has just taken effect may be newer than those of the conversion.
        let programmes = Arc::clone(self.teller.snapshot().programmes());
        let is_trial = manner == Manner::Trial;
        let members = self.teller.members();
        let mut answers = answers.into_iter();
        let results = keys.into_iter().map(|key| {
            let answered = key.map(|key| (key, answers.next()));
            let programmes = &programmes;
            async move {
                match answered {
                    Ok((key, Some(answer))) => {
                        answers::result(key, answer, programmes, members, is_trial).await
                    }
                    Ok((_, None)) => ItemResult::Other(item(&not_together())),
                    Err(refusal) => ItemResult::Other(item(&refusal)),
                }
            }
        });
        let results = stream::iter(results).buffered(READS_AT_ONCE).collect().await;
        Ok(Results { results })
    }

    /// Decides commands, and answers with a tree that can be looked into.
    pub(crate) async fn tree_of_results(
        &self,
        commands: Vec<Result<Command, Refusal>>,
        manner: Manner,
    ) -> Answer<Value> {
        Ok(json!(self.results(commands, manner).await?))
    }

    /// Keeps commands in the queue of awards, and answers that they are kept.
    async fn later(
        &self,
        commands: Vec<Result<Command, Refusal>>,
        conversion: &Conversion,
    ) -> Answer {
        let sound: Vec<Command> =
            commands.iter().filter_map(|command| command.as_ref().ok().cloned()).collect();
        self.teller.submit_later(sound).await?;

        let results: Vec<Value> = commands
            .iter()
            .map(|command| match command {
                Err(refusal) => item(refusal),
                Ok(command) => json!({
                    "programme": command.programme,
                    "member": command.member,
                    "key": command.key,
                    "source": conversion.source_name(),
                    "accepted": true,
                }),
            })
            .collect();
        let answer: Response = Json(json!({ "results": results })).into_response();
        Ok((StatusCode::ACCEPTED, answer).into_response())
    }
}

/// Refuses the whole request when the ledger took nothing of it, so that clients that know nothing
/// of items wait and repeat it.
fn refuse_all(answers: &[Result<points::Answer, awarding::Error>]) -> Result<(), Refused> {
    let first = answers.first().and_then(|answer| answer.as_ref().err());
    match first {
        Some(error) if answers.iter().all(Result::is_err) => Err(error.clone().into()),
        _ => Ok(()),
    }
}

fn not_together() -> Refusal {
    let detail = "another transaction of this request cannot be read, and they happen together";
    Refusal::new(Code::TransactionRefused, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_caller_may_prefer_not_to_wait() {
        let prefers = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("prefer", HeaderValue::from_static(text));
            is_later(&headers)
        };
        assert!(prefers("respond-async") && prefers("wait=5, respond-async"));
        assert!(prefers("Respond-Async") && prefers("respond-async; wait=5"));
        assert!(!prefers("return=minimal") && !is_later(&HeaderMap::new()));
    }
}

//! `/v1/points/rewards` and `/v1/points/redemptions`.
//!
//! A reward is a part of its programme. A redemption is a hold of its price, which the fulfiller
//! captures or releases.

use crate::awards::Manner;
use crate::contract::programmes as doc;
use crate::programmes::unknown;
use crate::refused::{Answer, Refused};
use crate::requests::{Batch, item_of};
use crate::{Points, Table};
use axum::Json;
use axum::extract::{Extension, Query};
use axum::http::HeaderMap;
use raingauge_app as app;
use raingauge_awarding::{Allowance, PROGRAMME};
use raingauge_core::access::Scope;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::counter::Problem;
use raingauge_documents::Provenance;
use raingauge_http::change::{json_of, reason};
use raingauge_http::queries::Parameters;
use raingauge_http::{Body, Configuration, Trial};
use raingauge_people::Principal;
use raingauge_points::{Body as CommandBody, Command};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

type Services = Extension<Arc<Points>>;
type Caller = Extension<Principal>;

pub fn add(table: Table) -> Table {
    let saved = (Scope::PointsWrite, "reward.save");
    table
        .get("/v1/points/rewards", Scope::PointsRead, list, doc::rewards)
        .post("/v1/points/rewards", saved, save, doc::put_reward)
        .ask("/v1/points/redemptions", Scope::PointsSpend, redeem, doc::redeem)
}

/// `GET /v1/points/rewards`
async fn list(
    Extension(points): Services,
    Extension(who): Caller,
    Query(given): Query<HashMap<String, String>>,
) -> Answer<Json<Value>> {
    let documents = &points.documents;
    let programmes = match Parameters::of(given).text("programme") {
        Some(only) => {
            points.check_named(&who, &only)?;
            vec![documents.get(PROGRAMME, &only, None).await.map_err(unknown)?]
        }
        None => {
            let mut all = documents.list(PROGRAMME).await?;
            all.retain(|stored| points.check_named(&who, &stored.id).is_ok());
            all
        }
    };
    let mut rewards = Vec::new();
    for stored in programmes {
        let stocks = points.stocks(&stored.id).await?;
        for reward in stored.configuration["rewards"].as_array().into_iter().flatten() {
            let mut shown = with_programme(reward, &stored.id);
            let name = reward["name"].as_str().unwrap_or_default();
            if let Some(left) = Allowance::left_of(&stocks, name) {
                shown["left"] = json!(left);
            }
            rewards.push(shown);
        }
    }
    Ok(Json(json!({ "rewards": rewards })))
}

/// `POST /v1/points/rewards`
async fn save(
    Extension(points): Services,
    Extension(who): Caller,
    headers: HeaderMap,
    body: Body<Configuration>,
) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    let mut reward = json_of(&body.bytes)?;
    let programme = reward.as_object_mut().and_then(|members| members.remove("programme"));
    let (Some(Value::String(programme)), Value::String(name)) = (programme, reward["name"].clone())
    else {
        let problem = Problem::new("programme", "name the programme and the reward");
        let refused = app::Problem::invalid(Code::ProgrammeInvalid, &[problem]);
        return Err(Refused(refused.into()));
    };

    let stored = points.documents.get(PROGRAMME, &programme, None).await.map_err(unknown)?;
    let document = with_reward(stored.configuration, &name, reward);
    let by = who.recorded_name();
    let provenance = Provenance { by: &by, reason: reason(&headers) };
    let version = Some(stored.version);
    let saved =
        points.documents.replace(PROGRAMME, &programme, &document, version, provenance).await?;
    let rewards = saved.configuration["rewards"].as_array();
    let saved = rewards.into_iter().flatten().find(|reward| reward["name"] == name);
    Ok(Json(with_programme(saved.unwrap_or(&Value::Null), &programme)))
}

impl Points {
    /// The stocks of rewards; none of a programme that is not in force yet.
    async fn stocks(&self, programme: &str) -> Answer<Vec<Allowance>> {
        let allowances = self.teller.members().allowances(programme).await?;
        Ok(allowances.unwrap_or_default().rewards)
    }
}

fn with_programme(reward: &Value, programme: &str) -> Value {
    let mut shown = json!({ "programme": programme });
    for (name, value) in reward.as_object().into_iter().flatten() {
        shown[name] = value.clone();
    }
    shown
}

/// A programme with a reward, in place of the one of the same name.
fn with_reward(mut document: Value, name: &str, reward: Value) -> Value {
    let rewards = &mut document["rewards"];
    if !rewards.is_array() {
        *rewards = json!([]);
    }
    if let Some(rewards) = rewards.as_array_mut() {
        match rewards.iter_mut().find(|known| known["name"] == name) {
            Some(known) => *known = reward,
            None => rewards.push(reward),
        }
    }
    document
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Redemption {
    programme: Arc<str>,
    member: Arc<str>,
    reward: Arc<str>,
    key: Arc<str>,
    reason: Option<Arc<str>>,
}

/// `POST /v1/points/redemptions`
async fn redeem(
    Extension(points): Services,
    Extension(who): Caller,
    body: Body<Trial>,
) -> Answer<Json<Value>> {
    let conversion = points.conversion(points.source(&who));
    let source = conversion.source_name();
    let command = |item: Value| -> Result<Command, Refusal> {
        let Redemption { programme, member, reward, key, reason } = item_of(item)?;
        conversion.programme(&programme)?;
        Ok(Command {
            programme,
            member,
            key,
            source: Arc::clone(&source),
            occurred_ms: None,
            accepted_ms: None,
            reference: None,
            reason: reason.or_else(|| Some(Arc::clone(&reward))),
            body: CommandBody::Hold { points: None, until_ms: None, reward: Some(reward) },
        })
    };

    let given = json_of(&body.bytes)?;
    if given.get("redemptions").is_some() {
        let batch = Batch::<Value>::of_singles(&body.bytes, "redemptions")?;
        let commands = batch.items.into_iter().map(|item| command(item?)).collect();
        return Ok(Json(points.tree_of_results(commands, Manner::Each).await?));
    }

    let mut answer = points.tree_of_results(vec![Ok(command(given)?)], Manner::Each).await?;
    let mut result = answer["results"][0].take();
    let error = result["error"].take();
    let Some(code) = error["code"].as_str().and_then(Code::parse) else {
        if let Some(members) = result.as_object_mut() {
            members.remove("error");
        }
        return Ok(Json(result));
    };
    Err(Refused::new(code, error["detail"].as_str().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reward_takes_the_place_of_one_of_its_name() {
        let coffee = json!({"name": "coffee", "points": 100});
        let document = with_reward(json!({"programme": "p"}), "coffee", coffee);
        let dearer = json!({"name": "coffee", "points": 120});
        let document = with_reward(document, "coffee", dearer.clone());
        let document = with_reward(document, "tea", json!({"name": "tea", "points": 80}));
        assert_eq!(document["rewards"][0], dearer);
        assert_eq!(document["rewards"].as_array().map(Vec::len), Some(2));
    }
}

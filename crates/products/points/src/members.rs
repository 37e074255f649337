//! `/v1/points/{programme}/members`: what members have, and how they came to it.

use crate::answers;
use crate::contract::members as doc;
use crate::refused::{Answer, Refused, item};
use crate::requests::{item_of, time_of};
use crate::{Points, Table};
use axum::Json;
use axum::extract::{Extension, Path, Query};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use raingauge_app::csv::cell;
use raingauge_awarding::limits::{BALANCES_LEN_MAX, STATEMENT_LEN_MAX};
use raingauge_core::access::Scope;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::moment::Moment;
use raingauge_http::change::json_within;
use raingauge_http::queries::Parameters;
use raingauge_http::{Body, Problem, Trial};
use raingauge_people::Principal;
use raingauge_points::limits::MEMBER_LEN_MAX;
use raingauge_points::{Programme, WalletId};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// Most arrays and objects in a request for balances.
const CONTAINERS_MAX: usize = BALANCES_LEN_MAX + 8;
/// The columns of a statement as CSV.
const COLUMNS: [&str; 9] = [
    "sequence",
    "kind",
    "points",
    "balanceAfter",
    "occurredAt",
    "recordedAt",
    "reason",
    "reference",
    "key",
];

/// The time of a request for balances as they are. It is the same as none: by the clock of the
/// ledger, which may have gone on, the moment of the request is in the past, and a balance of the
/// past is made of all entries until then.
const NOW: &str = "now";

type Services = Extension<Arc<Points>>;
type Caller = Extension<Principal>;
type GivenQuery = Query<HashMap<String, String>>;

pub fn add(table: Table) -> Table {
    const READ: Scope = Scope::PointsRead;
    table
        .ask("/v1/points/balances", READ, balances, doc::balances)
        .get("/v1/points/{programme}/members/{member}", READ, member, doc::member)
        .get("/v1/points/{programme}/members/{member}/statement", READ, statement, doc::statement)
        .get("/v1/points/{programme}/members/{member}/explain", READ, explain, doc::explain)
        .get("/v1/points/{programme}/liability", READ, liability, doc::liability)
        .get("/v1/points/{programme}/budgets", READ, budgets, doc::budgets)
        .get("/v1/points/{programme}/partners/{name}/settlement", READ, settlement, doc::settlement)
}

/// `GET /v1/points/{programme}/members/{member}`
async fn member(
    Extension(points): Services,
    Extension(who): Caller,
    Path((programme, member)): Path<(String, String)>,
    Query(given): GivenQuery,
) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    let parameters = Parameters::of(given);
    let at_ms = at(&parameters, points.clock.now_ms())?;
    let programme = points.programme(&programme)?;
    let id = wallet_id(programme.name(), &member)?;

    let found = points.teller.members().balances(vec![id], at_ms).await?;
    let found = found.into_iter().next().unwrap_or_else(|| Err(unknown(programme.name())))?;
    Ok(Json(answers::balance(&found, &programme)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BalancesRequest {
    members: Vec<Value>,
    at: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberName {
    programme: String,
    member: String,
}

/// `POST /v1/points/balances`
async fn balances(
    Extension(points): Services,
    Extension(who): Caller,
    body: Body<Trial>,
) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    let request = json_within(&body.bytes, CONTAINERS_MAX)?;
    let BalancesRequest { members, at } = serde_json::from_value(request)
        .map_err(|error| Refused::new(Code::RequestMalformed, error.to_string()))?;
    if members.len() > BALANCES_LEN_MAX {
        let detail = format!("a request has at most {BALANCES_LEN_MAX} members: send several");
        return Err(Refused::new(Code::TooManyAwards, detail));
    }

    let at_ms = at.as_ref().map(|at| moment(at, points.clock.now_ms())).transpose()?.flatten();
    let named = |item: Value| {
        let MemberName { programme, member } = item_of(item)?;
        wallet_id(&programme, &member)
    };
    let results = points.balances(members.into_iter().map(named).collect(), at_ms).await?;
    Ok(Json(json!({ "results": results })))
}

impl Points {
    /// What members have, each as an answer has it, or its refusal.
    pub(crate) async fn balances(
        &self,
        ids: Vec<Result<WalletId, Refusal>>,
        at_ms: Option<i64>,
    ) -> Answer<Vec<Value>> {
        let known = ids.iter().flatten().cloned().collect();
        let mut found = self.teller.members().balances(known, at_ms).await?.into_iter();
        let snapshot = self.teller.snapshot();

        let results = ids.into_iter().map(|id| {
            let next = |id: WalletId| found.next().unwrap_or_else(|| Err(unknown(&id.programme)));
            let shown = id.and_then(next).and_then(|balance| {
                match snapshot.programme(&balance.id.programme) {
                    Some(programme) => Ok(answers::balance(&balance, programme)),
                    None => Err(unknown(&balance.id.programme)),
                }
            });
            shown.unwrap_or_else(|refusal| item(&refusal))
        });
        Ok(results.collect())
    }
}

/// The wallet that an item of a request names.
pub(crate) fn wallet_id(programme: &str, member: &str) -> Result<WalletId, Refusal> {
    if member.is_empty() || member.len() > MEMBER_LEN_MAX {
        let detail = format!("a member has between 1 and {MEMBER_LEN_MAX} bytes");
        return Err(Refusal::new(Code::MemberInvalid, detail));
    }
    Ok(WalletId::new(programme, member))
}

/// `GET /v1/points/{programme}/members/{member}/statement`
async fn statement(
    Extension(points): Services,
    Extension(who): Caller,
    Path((programme, member)): Path<(String, String)>,
    Query(given): GivenQuery,
    headers: HeaderMap,
) -> Answer {
    points.source(&who).check_operator()?;
    let parameters = Parameters::of(given);
    let before = parameters.value::<u64>("before")?;
    let len_max = parameters.limit(STATEMENT_LEN_MAX)?;
    let programme = points.programme(&programme)?;
    let id = wallet_id(programme.name(), &member)?;

    let rows = points.teller.members().statement(&id, before, len_max).await?;
    let rows: Vec<Value> = rows.iter().map(|row| answers::row(row, &programme)).collect();
    if accepts_csv(&headers) {
        return Ok(csv(&rows));
    }
    Ok(Json(json!({ "rows": rows })).into_response())
}

/// `GET /v1/points/{programme}/members/{member}/explain`
async fn explain(
    Extension(points): Services,
    Extension(who): Caller,
    Path((programme, member)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    let programme = points.programme(&programme)?;
    let id = wallet_id(programme.name(), &member)?;
    let explanation = points.teller.members().explain(&id).await??;
    Ok(Json(answers::explanation(&explanation, &programme)))
}

/// `GET /v1/points/{programme}/liability`
async fn liability(
    Extension(points): Services,
    Extension(who): Caller,
    Path(programme): Path<String>,
) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    let programme = points.programme(&programme)?;
    let liability = points.teller.members().liability(programme.name()).await??;
    Ok(Json(answers::liability(&liability, &programme)))
}

/// `GET /v1/points/{programme}/budgets`
async fn budgets(
    Extension(points): Services,
    Extension(who): Caller,
    Path(programme): Path<String>,
) -> Answer<Json<Value>> {
    points.source(&who).check_operator()?;
    let programme = points.programme(&programme)?;
    let allowances = points.teller.members().allowances(programme.name()).await??;
    Ok(Json(answers::budgets(&allowances.budgets, &programme)))
}

/// `GET /v1/points/{programme}/partners/{name}/settlement`
async fn settlement(
    Extension(points): Services,
    Extension(who): Caller,
    Path((programme, partner)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    points.source(&who).check_partner(&partner)?;
    let programme = points.programme(&programme)?;
    if !programme.has_or_had_partner(&partner) {
        let detail = format!("{} has no partner {partner}", programme.name());
        return Err(Refused::new(Code::PartnerUnknown, detail));
    }
    let settlement = points.teller.members().settlement(programme.name(), &partner).await?;
    Ok(Json(answers::settlement(&settlement, &programme)))
}

impl Points {
    /// A programme in force.
    pub(crate) fn programme(&self, name: &str) -> Result<Arc<Programme>, Refusal> {
        self.teller.snapshot().programme(name).cloned().ok_or_else(|| unknown(name))
    }
}

fn unknown(programme: &str) -> Refusal {
    Refusal::new(Code::ProgrammeUnknown, format!("there is no programme {programme}"))
}

/// Reads the time of a request for balances.
fn moment(written: &Value, now_ms: i64) -> Result<Option<i64>, Refused> {
    if written == NOW {
        return Ok(None);
    }
    let relative = written.as_str().and_then(Moment::parse);
    let relative = relative.and_then(|moment| moment.at_s(now_ms.div_euclid(1_000)));
    let at_ms = time_of(written).or_else(|| Some(relative?.saturating_mul(1_000)));
    at_ms.map(Some).ok_or_else(|| {
        let detail = "at is RFC 3339, epoch seconds, or an age such as -7d";
        Refused::new(Code::TimeInvalid, detail)
    })
}

/// The time in an address; `None` for now.
fn at(parameters: &Parameters, now_ms: i64) -> Result<Option<i64>, Problem> {
    let is_now = parameters.text("at").is_some_and(|at| at == NOW);
    if is_now { Ok(None) } else { parameters.time_ms("at", now_ms) }
}

fn accepts_csv(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/csv"))
}

/// Rows of a statement as CSV, with the names of the columns first.
fn csv(rows: &[Value]) -> Response {
    let mut text = COLUMNS.join(",");
    text.push('\n');
    for row in rows {
        text.push_str(&COLUMNS.map(|column| csv_cell(&row[column])).join(","));
        text.push('\n');
    }
    ([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], text).into_response()
}

/// Numbers are no formulas, whatever their sign.
fn csv_cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.parse::<f64>().is_ok() => text.clone(),
        Value::String(text) => cell(text),
        other => cell(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_statement_are_numbers_or_quoted_texts() {
        assert_eq!(csv_cell(&json!(-180)), "-180");
        assert_eq!(csv_cell(&json!("-1.50")), "-1.50");
        assert_eq!(csv_cell(&json!("=1+1")), "\"'=1+1\"");
        assert_eq!(csv_cell(&Value::Null), "");
    }

    #[test]
    fn a_moment_is_fixed_or_relative() {
        assert_eq!(moment(&json!("1970-01-01T00:00:01.5Z"), 0).unwrap(), Some(1_500));
        assert_eq!(moment(&json!(7), 0).unwrap(), Some(7_000));
        assert_eq!(moment(&json!("-1h"), 7_200_000).unwrap(), Some(3_600_000));
        assert!(moment(&json!("soon"), 0).is_err() && moment(&json!([]), 0).is_err());
    }

    /// As a time in the past it would take all entries of a wallet, which may be too many.
    #[test]
    fn now_is_no_time_in_the_past() {
        let in_address = |text: &str| {
            let parameters = Parameters::of(HashMap::from([("at".to_owned(), text.to_owned())]));
            at(&parameters, 7_200_000).unwrap()
        };
        assert_eq!(in_address("now"), None);
        assert_eq!(in_address("-1h"), Some(3_600_000));
        assert_eq!(moment(&json!("now"), 7_200_000).unwrap(), None);
    }
}

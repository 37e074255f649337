//! `raingauge.v1.Points`: awards and balances by gRPC, which answers what the routes do.

use crate::awards::Manner;
use crate::members::wallet_id;
use crate::refused::Refused;
use crate::requests::{AwardRequest, Factors, Time, inexact};
use crate::{Points, commands};
use raingauge_app::budget::Class;
use raingauge_app::{Problem, Role};
use raingauge_awarding::limits::{BALANCES_LEN_MAX, REQUEST_COMMANDS_MAX};
use raingauge_core::access::Scope;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::json::changed_number;
use raingauge_core::limits::BUCKETS_BODY_BYTES_MAX;
use raingauge_grpc::proto::raingauge::v1 as proto;
use raingauge_grpc::{MethodSource, Methods, refused};
use raingauge_http::change::json_within;
use raingauge_people::Principal;
use raingauge_points::{Command, Day, Number};
use serde_json::Value;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Most arrays and objects in the facts of one award.
const FACTS_CONTAINERS_MAX: usize = 64;

impl MethodSource for Points {
    fn add_to<'a>(&self, methods: Methods<'a>) -> Methods<'a> {
        let service = Service(Arc::new(self.clone()));
        let len_max = BUCKETS_BODY_BYTES_MAX.min(methods.message_len_max());
        let server = proto::points_server::PointsServer::new(service);
        let server = server.max_decoding_message_size(len_max);
        methods
            .add(
                "/raingauge.v1.Points/Award",
                Scope::PointsAward,
                Role::Portal,
                Class::Buckets,
                server.clone(),
            )
            .add(
                "/raingauge.v1.Points/Balances",
                Scope::PointsRead,
                Role::Portal,
                Class::Buckets,
                server,
            )
    }
}

struct Service(Arc<Points>);

#[tonic::async_trait]
impl proto::points_server::Points for Service {
    async fn award(
        &self,
        request: Request<proto::AwardRequest>,
    ) -> Result<Response<proto::AwardResponse>, Status> {
        let conversion = self.0.conversion(self.0.source(caller(&request)?));
        let proto::AwardRequest { awards, dry_run } = request.into_inner();
        check_len(awards.len(), REQUEST_COMMANDS_MAX, "awards")?;
        let commands = awards.into_iter().map(|award| command(award, &conversion)).collect();

        let manner = if dry_run { Manner::Trial } else { Manner::Each };
        let answer = self.0.tree_of_results(commands, manner).await.map_err(status)?;
        let results = answer["results"].as_array().into_iter().flatten().map(award_result);
        Ok(Response::new(proto::AwardResponse { results: results.collect() }))
    }

    async fn balances(
        &self,
        request: Request<proto::BalancesRequest>,
    ) -> Result<Response<proto::BalancesResponse>, Status> {
        self.0.source(caller(&request)?).check_operator().map_err(refused)?;
        let proto::BalancesRequest { members, at_time } = request.into_inner();
        check_len(members.len(), BALANCES_LEN_MAX, "members")?;
        let at_ms = at_time.map(milliseconds).transpose().map_err(refused)?;

        let ids = members.iter().map(|named| wallet_id(&named.programme, &named.member)).collect();
        let results = self.0.balances(ids, at_ms).await.map_err(status)?;
        let results = results.iter().map(balance_result).collect();
        Ok(Response::new(proto::BalancesResponse { results }))
    }
}

/// Who calls: the guard of the door has found out.
fn caller<T>(request: &Request<T>) -> Result<&Principal, Status> {
    request.extensions().get().ok_or_else(|| Status::internal("the caller is not known"))
}

fn check_len(len: usize, len_max: usize, what: &str) -> Result<(), Status> {
    if len <= len_max {
        return Ok(());
    }
    let detail = format!("a request has at most {len_max} {what}: send several");
    Err(refused(Problem::new(Code::TooManyAwards, detail)))
}

fn status(Refused(problem): Refused) -> Status {
    refused(problem.0)
}

fn command(award: proto::Award, conversion: &commands::Conversion) -> Result<Command, Refusal> {
    conversion.award(award_of(award)?)
}

fn award_of(award: proto::Award) -> Result<AwardRequest, Refusal> {
    let mut factors = Vec::with_capacity(award.factors.len());
    for (name, factor) in award.factors {
        let factor = number(&factor, "a factor")?;
        factors.extend(factor.map(|factor| (Arc::from(name), factor)));
    }
    // A map has no order, and the same award has the same factors.
    factors.sort_unstable_by(|(left, _): &(Arc<str>, Number), (right, _)| left.cmp(right));

    let pending_days = award.pending_days.map(u16::try_from).transpose();
    Ok(AwardRequest {
        programme: award.programme.into(),
        member: award.member.into(),
        key: award.key.into(),
        points: number(&award.points, "points")?,
        amount: number(&award.amount, "amount")?,
        rule: award.rule,
        event_type: present(award.event_type),
        facts: facts_of(&award.facts)?,
        factors: Factors(factors),
        occurred_at: award.occurred_time.map(milliseconds).transpose()?.map(Time),
        reason: present(award.reason),
        reference: present(award.reference),
        budget: present(award.budget),
        pending_days: pending_days.map_err(|_| malformed("pending_days is too large"))?,
        expires_on: day(&award.expires_on)?,
        extends: award.extends,
    })
}

fn malformed(detail: impl Into<String>) -> Refusal {
    Refusal::new(Code::RequestMalformed, detail)
}

/// A text that is there.
fn present(text: String) -> Option<Arc<str>> {
    (!text.is_empty()).then(|| text.into())
}

fn number(text: &str, name: &str) -> Result<Option<Number>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    let number = Number::parse(text);
    number.map(Some).ok_or_else(|| malformed(format!("{name} is no number: {text:?}")))
}

fn day(text: &str) -> Result<Option<Day>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    let day = text.parse();
    day.map(Some).map_err(|_| malformed(format!("expires_on is no date: {text:?}")))
}

fn facts_of(text: &str) -> Result<Option<Value>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    if let Some(number) = changed_number(text.as_bytes()) {
        return Err(malformed(format!("facts: {}", inexact(number))));
    }
    let facts = json_within(text.as_bytes(), FACTS_CONTAINERS_MAX);
    let facts =
        facts.map_err(|problem| malformed(format!("facts: {}", problem.0.refusal.detail)))?;
    if facts.is_object() { Ok(Some(facts)) } else { Err(malformed("facts are an object of JSON")) }
}

fn milliseconds(seconds: i64) -> Result<i64, Refusal> {
    let beyond = || Refusal::new(Code::TimeInvalid, "the time is beyond the calendar");
    seconds.checked_mul(1_000).ok_or_else(beyond)
}

/// A member of an answer as a text: numbers as they are written, and nothing for null.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn error_of(result: &Value) -> Option<proto::Error> {
    let error = result.get("error")?;
    Some(proto::Error { code: text(&error["code"]), detail: text(&error["detail"]) })
}

fn award_result(result: &Value) -> proto::AwardResult {
    use proto::award_result::Outcome;

    let outcome = match error_of(result) {
        Some(error) => Outcome::Error(error),
        None => Outcome::Awarded(proto::Awarded {
            entry: text(&result["entry"]),
            programme: text(&result["programme"]),
            member: text(&result["member"]),
            key: text(&result["key"]),
            points: text(&result["points"]),
            balance: text(&result["balance"]),
            tier: text(&result["tier"]),
            expires_on: text(&result["expiresOn"]),
            replayed: result["replayed"] == true,
        }),
    };
    proto::AwardResult { outcome: Some(outcome) }
}

fn balance_result(result: &Value) -> proto::BalanceResult {
    use proto::balance_result::Outcome;

    let lot = |lot: &Value| proto::Lot {
        points: text(&lot["points"]),
        expires_on: text(&lot["expiresOn"]),
    };
    let outcome = match error_of(result) {
        Some(error) => Outcome::Error(error),
        None => Outcome::Balance(proto::Balance {
            programme: text(&result["programme"]),
            member: text(&result["member"]),
            available: text(&result["available"]),
            pending: text(&result["pending"]),
            held: text(&result["held"]),
            arrears: text(&result["arrears"]),
            tier: text(&result["tier"]),
            expires_on: text(&result["expiresOn"]),
            lots: result["lots"].as_array().into_iter().flatten().map(lot).collect(),
            closed: result["closed"] == true,
        }),
    };
    proto::BalanceResult { outcome: Some(outcome) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_award_is_what_the_route_takes() {
        let award = proto::Award {
            programme: "grab-sg".to_owned(),
            member: "bob".to_owned(),
            key: "o-1".to_owned(),
            amount: "15.00".to_owned(),
            facts: r#"{"country": "SG"}"#.to_owned(),
            factors: [("b".to_owned(), "2".to_owned()), ("a".to_owned(), "1.5".to_owned())].into(),
            occurred_time: Some(1_795_413_600),
            expires_on: "2027-01-31".to_owned(),
            ..proto::Award::default()
        };
        let read = award_of(award.clone()).unwrap();
        assert_eq!(read.amount, Number::parse("15"));
        assert_eq!((read.points, read.reference, read.rule), (None, None, None));
        assert_eq!(read.facts, Some(json!({"country": "SG"})));
        assert_eq!(read.occurred_at, Some(Time(1_795_413_600_000)));
        let names: Vec<&str> = read.factors.0.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["a", "b"]);

        let wrong = [
            proto::Award { amount: "many".to_owned(), ..award.clone() },
            proto::Award { facts: "[]".to_owned(), ..award.clone() },
            proto::Award { facts: r#"{"a": 99999999999999.4999}"#.to_owned(), ..award.clone() },
            proto::Award { expires_on: "soon".to_owned(), ..award.clone() },
            proto::Award { pending_days: Some(70_000), ..award.clone() },
        ];
        for award in wrong {
            assert_eq!(award_of(award).unwrap_err().code, Code::RequestMalformed);
        }
        let late = proto::Award { occurred_time: Some(i64::MAX), ..award };
        assert_eq!(award_of(late).unwrap_err().code, Code::TimeInvalid);
    }

    #[test]
    fn results_are_those_of_the_route() {
        let done = award_result(&json!({"entry": "p:0:1", "points": 180, "balance": "1.50",
            "tier": null, "replayed": true}));
        let Some(proto::award_result::Outcome::Awarded(awarded)) = done.outcome else {
            panic!("it was awarded")
        };
        assert_eq!((&*awarded.points, &*awarded.balance, &*awarded.tier), ("180", "1.50", ""));
        assert!(awarded.replayed);

        let failed = json!({"error": {"code": "budget_spent", "detail": "it is"}});
        let failed = balance_result(&failed).outcome;
        let code = |outcome| match outcome {
            Some(proto::balance_result::Outcome::Error(error)) => error.code,
            _ => String::new(),
        };
        assert_eq!(code(failed), "budget_spent");
    }
}

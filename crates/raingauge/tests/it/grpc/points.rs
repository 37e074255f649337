//! Points over gRPC are those over HTTP.

use super::proto::raingauge::v1::award_result::Outcome;
use super::proto::raingauge::v1::{
    Award, AwardRequest, Awarded, Balance, BalancesRequest, Lot, Member, balance_result,
};
use super::{Grpc, assert_refused};
use crate::points::rights::{secret, setting_of};
use crate::points::{award, create, member};
use crate::server::Home;
use serde_json::{Value, json};
use tonic::Code;

fn home() -> Home {
    let partner = "\"points:award\"";
    let tokens = setting_of(&[
        ("boss", "\"admin\""),
        ("shop", "\"points:award\", \"points:read\""),
        ("skyair", partner),
    ]);
    Home::with(&[("server.grpc_listen", "127.0.0.1:0"), ("auth.tokens", &tokens)])
}

fn programme() -> Value {
    json!({
        "programme": "shop", "decimals": 2, "expiry": {"kind": "fixed", "months": 12},
        "partners": [{"name": "skyair", "perAwardMax": 500}],
        "rules": [{"id": 1, "name": "order", "amount": "data.amount", "factors": ["country"]}],
        "tables": {"country": {"by": ["data.country"], "rows": {"SG": 2}}},
    })
}

fn bob(key: &str) -> Award {
    Award {
        programme: "shop".to_owned(),
        member: "bob".to_owned(),
        key: key.to_owned(),
        ..Award::default()
    }
}

/// The award of each result, or its code.
fn outcomes(grpc: &Grpc, awards: Vec<Award>) -> Vec<Result<Awarded, String>> {
    let answer = grpc.award(AwardRequest { awards, dry_run: false }).expect("an answer");
    let outcome = |outcome| match outcome {
        Some(Outcome::Awarded(awarded)) => Ok(awarded),
        Some(Outcome::Error(error)) => Err(error.code),
        None => panic!("a result without an outcome"),
    };
    answer.results.into_iter().map(|result| outcome(result.outcome)).collect()
}

#[test]
fn both_doors_make_the_same_awards() {
    let home = home();
    let server = home.start();
    let boss = server.with_token(&secret("boss"));
    create(&boss, &programme());
    let mut grpc = Grpc::new(&server);
    grpc.set_token(&secret("shop"));

    let facts = r#"{"country": "SG"}"#.to_owned();
    let order = Award { amount: "7.625".to_owned(), rule: Some(1), facts, ..bob("o-1") };
    let broken = Award { amount: "many".to_owned(), ..bob("o-2") };
    let trial = AwardRequest { awards: vec![order.clone()], dry_run: true };
    let tried = grpc.award(trial).expect("an answer").results.remove(0);
    assert!(matches!(tried.outcome, Some(Outcome::Awarded(awarded)) if awarded.points == "15.25"));
    assert_eq!(member(&boss, "shop", "bob")["available"], "0.00");

    let found = outcomes(&grpc, vec![order.clone(), broken]);
    let first = found[0].as_ref().expect("it was awarded");
    assert_eq!((&*first.points, &*first.balance, first.replayed), ("15.25", "15.25", false));
    assert_eq!(found[1], Err("request_malformed".to_owned()));
    let over_http = award(
        &boss,
        &json!({"programme": "shop", "member": "bob", "key": "o-1", "amount": "7.625", "rule": 1,
                "facts": {"country": "SG"}}),
    );
    assert_eq!((&over_http["replayed"], &over_http["entry"]), (&json!(true), &json!(first.entry)));
    assert!(outcomes(&grpc, vec![order]).remove(0).expect("the first answer").replayed);

    let named = |member: &str| Member { programme: "shop".to_owned(), member: member.to_owned() };
    let members = vec![named("bob"), named("nobody"), named("")];
    let asked = BalancesRequest { members, at_time: None };
    let mut answer = grpc.balances(asked).expect("an answer").results.into_iter();
    let mut next = || answer.next().and_then(|result| result.outcome);
    let Some(balance_result::Outcome::Balance(balance)) = next() else { panic!("a balance") };
    let Balance { available, lots, .. } = balance;
    assert_eq!(available, "15.25");
    let expires_on = first.expires_on.clone();
    assert_eq!(lots, [Lot { points: "15.25".to_owned(), expires_on }]);
    let Some(balance_result::Outcome::Balance(balance)) = next() else { panic!("zeros") };
    assert_eq!((&*balance.available, balance.lots.len()), ("0.00", 0));
    let Some(balance_result::Outcome::Error(error)) = next() else { panic!("an error") };
    assert_eq!(error.code, "member_invalid");
    assert!(server.terminate().0.success());
}

#[test]
fn methods_of_points_ask_for_their_scopes() {
    let home = home();
    let server = home.start();
    let boss = server.with_token(&secret("boss"));
    create(&boss, &programme());

    let mut grpc = Grpc::new(&server);
    let none = || AwardRequest::default();
    assert_refused(grpc.award(none()), Code::Unauthenticated, "token_missing");
    grpc.set_token(&secret("skyair"));
    let members = vec![Member::default()];
    let asked = || BalancesRequest { members: members.clone(), at_time: None };
    assert_refused(grpc.balances(asked()), Code::PermissionDenied, "scope_missing");

    // A partner awards within its bounds, under keys of its own.
    let gift = |key: &str, points: &str| Award { points: points.to_owned(), ..bob(key) };
    let found = outcomes(&grpc, vec![gift("k-1", "500"), gift("k-2", "500.01")]);
    assert!(found[0].is_ok());
    assert_eq!(found[1], Err("partner_limit".to_owned()));
    grpc.set_token(&secret("shop"));
    let own = outcomes(&grpc, vec![gift("k-1", "1")]).remove(0).expect("another key");
    assert!(!own.replayed);

    let many = AwardRequest { awards: vec![Award::default(); 1_001], dry_run: false };
    assert_refused(grpc.award(many), Code::InvalidArgument, "too_many_awards");
    assert!(server.terminate().0.success());
}

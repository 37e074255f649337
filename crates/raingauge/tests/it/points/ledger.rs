//! What the ledger answers: awards, transactions, corrections, refusals, trials, and what is read.

use super::{award, code, correct, create, member, results, transact, verify};
use crate::client::Client;
use crate::server::{Home, until};
use serde_json::{Value, json};

fn programme() -> Value {
    json!({
        "programme": "shop", "unit": "points", "expiry": {"kind": "fixed", "months": 12},
        "budgets": {"sorry": {"limit": 150}},
        "partners": [{"name": "skyair", "ownFactors": {"max": 10}, "exchange": {"give": 2, "get": 1}}],
        "rewards": [{"name": "coffee", "points": 30, "stock": 2}],
        "rules": [{"id": 1, "name": "order", "eventType": "order", "member": "data.user",
                   "amount": "data.amount", "reference": "data.order", "factors": ["country"]}],
        "tables": {"country": {"by": ["data.country"], "rows": {"SG": 2}}},
    })
}

fn item(name: &str, key: &str, more: &Value) -> Value {
    let mut item = json!({"programme": "shop", "member": name, "key": key, "reason": "a test"});
    for (name, value) in more.as_object().expect("members") {
        item[name] = value.clone();
    }
    item
}

fn give(server: &Client, name: &str, points: i64) {
    let given = award(server, &item(name, &format!("gift-{name}"), &json!({"points": points})));
    assert_eq!(given["points"], points, "{given}");
}

#[test]
fn a_key_is_awarded_once_and_other_content_is_refused() {
    let home = Home::new();
    let server = home.start();
    create(&server, &programme());

    let first = award(&server, &item("ann", "k-1", &json!({"points": 100})));
    assert_eq!((&first["points"], &first["balance"]), (&json!(100), &json!(100)), "{first}");
    assert_eq!((&first["replayed"], &first["key"]), (&json!(false), &json!("k-1")));
    assert!(first["entry"].as_str().is_some_and(|entry| entry.starts_with("shop:")), "{first}");

    let again = award(&server, &item("ann", "k-1", &json!({"points": 100})));
    assert_eq!((&again["replayed"], &again["entry"]), (&json!(true), &first["entry"]));
    let other = award(&server, &item("ann", "k-1", &json!({"points": 99})));
    assert_eq!(code(&other), "key_reused");
    assert_eq!(member(&server, "shop", "ann")["available"], 100);

    let found = server.get("/v1/points/entries?programme=shop&key=k-1").expect(200);
    assert_eq!(found["entries"].as_array().map(Vec::len), Some(1), "{found}");
    let none = server.get("/v1/points/entries?programme=shop&key=k-2").expect(200);
    assert_eq!(none["entries"], json!([]));
    let long = format!("/v1/points/shop/members/{}", "x".repeat(129));
    server.get(&long).expect_problem(422, "member_invalid");
    server
        .post("/v1/points/audits", &json!({"programme": "nowhere"}))
        .expect_problem(404, "programme_unknown");
}

#[test]
fn a_batch_answers_each_item_in_its_place() {
    let home = Home::new();
    let server = home.start();
    create(&server, &programme());
    let facts = json!({"country": "SG"});
    let items = [
        item("ann", "k-1", &json!({"points": 5})),
        json!({"programme": "shop", "member": "ann"}),
        item("ann", "k-2", &json!({"programme": "nowhere", "points": 5})),
        item("ann", "k-3", &json!({"points": 100, "budget": "sorry"})),
        item("bob", "k-4", &json!({"points": 100, "budget": "sorry"})),
        item("ann", "k-5", &json!({"rule": 1, "amount": "12.50", "facts": facts})),
        item("ann", "k-6", &json!({"rule": 1, "amount": "1", "facts": {"country": "XX"}})),
        item("ann", "k-7", &json!({"points": "0.5"})),
    ];
    let found = results(&server, "/v1/points/awards", "awards", &items);
    let codes: Vec<&str> =
        found.iter().map(|result| result["error"]["code"].as_str().unwrap_or("")).collect();
    let expected = [
        "",
        "request_malformed",
        "programme_unknown",
        "",
        "budget_spent",
        "",
        "factor_missing",
        "points_invalid",
    ];
    assert_eq!(codes, expected, "{found:?}");
    assert_eq!(found[5]["points"], 25);
    assert_eq!(member(&server, "shop", "ann")["available"], 130);
    let budgets = server.get("/v1/points/shop/budgets").expect(200);
    let sorry = json!([{"name": "sorry", "limit": 150, "used": 100, "left": 50}]);
    assert_eq!(budgets["budgets"], sorry);

    // A result is that of all entries of its command.
    let order = |key| item("cat", key, &json!({"points": 10, "reference": "o"}));
    results(&server, "/v1/points/awards", "awards", &[order("c-1"), order("c-2")]);
    let back = json!({"kind": "reverse", "programme": "shop", "member": "cat", "key": "c-3",
                      "reference": "o", "reason": "returned"});
    let path = "/v1/points/corrections";
    let tried = server.post(&format!("{path}?dryRun=true"), &json!({"corrections": [back]}));
    tried.expect_problem(400, "parameter_unknown");
    let mut first = results(&server, path, "corrections", std::slice::from_ref(&back)).remove(0);
    assert_eq!((&first["points"], &first["balance"]), (&json!(-20), &json!(0)), "{first}");

    // So is that of a replay, whatever came later.
    results(&server, "/v1/points/awards", "awards", &[order("c-4")]);
    first["replayed"] = json!(true);
    assert_eq!(results(&server, path, "corrections", &[back])[0], first);
    let of_key = server.get("/v1/points/entries?programme=shop&key=c-3").expect(200);
    assert_eq!(of_key["entries"].as_array().expect("entries").len(), 2);

    // What another member sends in the same turn belongs to another command.
    results(&server, "/v1/points/awards", "awards", &[item("dan", "d-1", &json!({"points": 9}))]);
    let burn = item("cat", "t-1", &json!({"kind": "burn", "points": 4}));
    let gift = item("dan", "t-2", &json!({"kind": "transfer", "to": "cat", "points": 7}));
    let path = "/v1/points/transactions";
    let mut first = results(&server, path, "transactions", &[burn.clone(), gift]).remove(0);
    assert_eq!((&first["points"], &first["balance"]), (&json!(-4), &json!(6)), "{first}");
    first["replayed"] = json!(true);
    assert_eq!(results(&server, path, "transactions", &[burn])[0], first);
    server.get("/v1/points/rewards?programme=nowhere").expect_problem(404, "programme_unknown");
    server.post("/v1/points/awards", &json!([])).expect_problem(400, "request_malformed");
    let many = vec![json!({}); 1_001];
    let many = server.post("/v1/points/awards", &json!({ "awards": many }));
    many.expect_problem(413, "too_many_awards");
}

#[test]
fn a_trial_writes_nothing_and_a_queue_awards_later() {
    let home = Home::new();
    let server = home.start();
    create(&server, &programme());
    let body = json!({"awards": [item("ann", "k-1", &json!({"points": 7}))]});
    let tried = server.post("/v1/points/awards?dryRun=true", &body).expect(200);
    assert_eq!((&tried["dryRun"], &tried["results"][0]["points"]), (&json!(true), &json!(7)));
    assert_eq!(tried["results"][0]["entry"], Value::Null, "it is no entry");
    assert_eq!(member(&server, "shop", "ann")["available"], 0);

    let headers = [("content-type", "application/json"), ("prefer", "respond-async")];
    let bytes = body.to_string();
    let later = server.send("POST", "/v1/points/awards", &headers, bytes.as_bytes()).expect(202);
    assert_eq!(later["results"][0]["accepted"], true, "{later}");
    until("the queue awards it", || {
        (member(&server, "shop", "ann")["available"] == 7).then_some(())
    });
}

#[test]
fn points_are_held_captured_transferred_and_exchanged() {
    let home = Home::new();
    let server = home.start();
    create(&server, &programme());
    give(&server, "ann", 100);

    let held = transact(&server, &item("ann", "h-1", &json!({"kind": "hold", "points": 60})));
    assert_eq!((&held["points"], &held["balance"]), (&json!(-60), &json!(40)), "{held}");
    let burn = item("ann", "b-1", &json!({"kind": "burn", "points": 41}));
    assert_eq!(code(&transact(&server, &burn)), "insufficient_points");
    // A refusal stays the answer for its key.
    let again = transact(&server, &burn);
    assert_eq!(again["error"]["replayed"], true, "{again}");

    let capture = json!({"kind": "capture", "hold": "h-1", "points": 25});
    transact(&server, &item("ann", "c-1", &capture));
    let ann = member(&server, "shop", "ann");
    assert_eq!((&ann["available"], &ann["held"]), (&json!(75), &json!(0)), "{ann}");
    let release = item("ann", "r-1", &json!({"kind": "release", "hold": "h-1"}));
    assert_eq!(code(&transact(&server, &release)), "hold_resolved");

    transact(&server, &item("ann", "t-1", &json!({"kind": "transfer", "to": "bob", "points": 15})));
    assert_eq!(member(&server, "shop", "bob")["available"], 15);
    let out = json!({"kind": "exchangeOut", "partner": "skyair", "points": 20});
    transact(&server, &item("ann", "x-1", &out));
    let settled = server.get("/v1/points/shop/partners/skyair/settlement").expect(200);
    assert_eq!(settled["balance"], 20, "{settled}");
    let days = settled["days"].as_array().expect("days");
    assert_eq!((days.len(), &days[0]["points"]), (1, &json!(20)), "{settled}");
    assert_eq!(member(&server, "shop", "ann")["available"], 40);

    let statement = "/v1/points/shop/members/ann/statement";
    let rows = server.get(&format!("{statement}?limit=2")).expect(200)["rows"].clone();
    assert_eq!(rows[0]["kind"], "exchangeOut", "{rows}");
    let before = rows[1]["sequence"].as_u64().expect("a sequence");
    let older = server.get(&format!("{statement}?before={before}")).expect(200);
    assert!(older["rows"][0]["sequence"].as_u64() < Some(before), "{older}");
    let csv = server.send("GET", statement, &[("accept", "text/csv")], b"");
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    assert!(csv.text().starts_with("sequence,kind,points,balanceAfter,"), "{}", csv.text());
    server.kill();
    verify(&home);
}

#[test]
fn transactions_happen_together_or_not_at_all() {
    let home = Home::new();
    let server = home.start();
    create(&server, &programme());
    give(&server, "ann", 100);
    let together = |points: i64, key: &str| {
        json!({"atomic": true, "transactions": [
            item("ann", &format!("{key}-1"), &json!({"kind": "burn", "points": 60})),
            item("ann", &format!("{key}-2"), &json!({"kind": "burn", "points": points})),
        ]})
    };
    let refused = server.post("/v1/points/transactions", &together(41, "a")).expect(200);
    assert!(refused["results"][1]["error"].is_object(), "{refused}");
    assert!(refused["results"][0]["error"].is_object(), "{refused}");
    assert_eq!(member(&server, "shop", "ann")["available"], 100);
    let done = server.post("/v1/points/transactions", &together(40, "b")).expect(200);
    assert_eq!(done["results"][1]["balance"], 0, "{done}");
}

#[test]
fn a_reversal_takes_back_and_leaves_arrears() {
    let home = Home::new();
    let server = home.start();
    create(&server, &programme());
    let more = json!({"rule": 1, "amount": 30, "facts": {"country": "SG"}, "reference": "order-1"});
    assert_eq!(award(&server, &item("ann", "k-1", &more))["points"], 60);
    transact(&server, &item("ann", "b-1", &json!({"kind": "burn", "points": 50})));

    let part = json!({"kind": "reverse", "reference": "order-1", "amount": 10});
    let reversed = correct(&server, &item("ann", "r-1", &part));
    assert_eq!((&reversed["points"], &reversed["balance"]), (&json!(-20), &json!(-10)));
    let ann = member(&server, "shop", "ann");
    assert_eq!((&ann["available"], &ann["arrears"]), (&json!(0), &json!(10)), "{ann}");

    // Later awards pay first. One without a reference is reversed by its key.
    assert_eq!(award(&server, &item("ann", "k-2", &json!({"points": 15})))["balance"], 5);
    let by_key = json!({"kind": "reverse", "reference": "k-2"});
    assert_eq!(correct(&server, &item("ann", "r-2", &by_key))["points"], -15);
    let silent = item("ann", "r-3", &json!({"kind": "adjust", "points": 5, "reason": ""}));
    assert_eq!(code(&correct(&server, &silent)), "reason_missing");
}

#[test]
fn a_reference_that_is_also_a_key_means_all_of_its_awards() {
    let home = Home::new();
    let server = home.start();
    create(&server, &programme());
    for key in ["order-1", "order-1-bonus"] {
        let given = item("ann", key, &json!({"points": 20, "reference": "order-1"}));
        award(&server, &given);
    }
    let back = item("ann", "r-1", &json!({"kind": "reverse", "reference": "order-1"}));
    correct(&server, &back);
    assert_eq!(member(&server, "shop", "ann")["available"], 0);
    assert_eq!(correct(&server, &back)["replayed"], true);

    // The key of another member's award is no obstacle.
    award(&server, &item("bob", "order-2", &json!({"points": 5})));
    award(&server, &item("ann", "k-2", &json!({"points": 7, "reference": "order-2"})));
    let back = item("ann", "r-2", &json!({"kind": "reverse", "reference": "order-2"}));
    assert_eq!(correct(&server, &back)["points"], -7);
}

#[test]
fn a_reward_cannot_be_oversold() {
    let home = Home::new();
    let server = home.start();
    create(&server, &programme());
    for name in ["ann", "bob", "cat"] {
        give(&server, name, 100);
    }
    let redeem = |name: &str| json!({"programme": "shop", "member": name, "reward": "coffee", "key": format!("r-{name}")});
    let all = ["ann", "bob", "cat"].map(redeem);
    let found = results(&server, "/v1/points/redemptions", "redemptions", &all);
    assert_eq!(code(&found[2]), "reward_sold_out");
    assert_eq!(found[0]["points"], -30, "{found:?}");
    let left = || {
        let rewards = server.get("/v1/points/rewards?programme=shop").expect(200);
        rewards["rewards"][0]["left"].clone()
    };
    assert_eq!(left(), 0);
    transact(&server, &item("ann", "f-1", &json!({"kind": "capture", "hold": "r-ann"})));
    transact(&server, &item("bob", "f-2", &json!({"kind": "release", "hold": "r-bob"})));
    assert_eq!(member(&server, "shop", "bob")["available"], 100);
    assert_eq!(left(), 1);
    // What was returned can be sold again.
    let single =
        json!({"programme": "shop", "member": "cat", "reward": "coffee", "key": "r-cat-2"});
    let single = server.post("/v1/points/redemptions", &single).expect(200);
    assert_eq!(single["points"], -30, "{single}");

    let tea = json!({"programme": "shop", "name": "tea", "points": 20});
    server.post("/v1/points/rewards", &tea).expect(200);
    let rewards = server.get("/v1/points/rewards?programme=shop").expect(200);
    assert_eq!(rewards["rewards"].as_array().map(Vec::len), Some(2), "{rewards}");
    assert_eq!(rewards["rewards"][1].get("left"), None, "{rewards}");
}

#[test]
fn a_missing_row_is_tried_again_until_it_is_there() {
    let mut home = Home::new();
    home.set("points.retry_most_s", "1");
    let server = home.start();
    create(&server, &programme());
    let order = crate::client::event(
        "order",
        "o-1",
        crate::client::now_s(),
        json!({"user": "ann", "amount": 10, "order": "o-1", "country": "ID"}),
    );
    server.lines("/v1/events?wait=awarded", &[order]).expect(200);
    assert_eq!(member(&server, "shop", "ann")["available"], 0);
    let waiting = server.get("/v1/points/queues/retry/messages").expect(200);
    assert_eq!(waiting["messages"].as_array().map(Vec::len), Some(1), "{waiting}");

    let known = server.get("/v1/points/programmes/shop").expect(200);
    let mut programme = programme();
    programme["tables"]["country"]["rows"]["ID"] = json!(3);
    let version = format!("\"{}\"", known["version"]);
    let headers = [("content-type", "application/json"), ("if-match", version.as_str())];
    let body = programme.to_string();
    let path = "/v1/points/programmes/shop";
    let replaced = server.send("PUT", path, &headers, body.as_bytes()).expect(200);
    assert_eq!(replaced["version"], 2);
    until("the event is awarded", || {
        (member(&server, "shop", "ann")["available"] == 30).then_some(())
    });
    server.send("PUT", path, &headers, body.as_bytes()).expect_problem(412, "version_mismatch");
    let versions = server.get(&format!("{path}/versions")).expect(200);
    assert_eq!(versions["versions"].as_array().map(Vec::len), Some(2), "{versions}");
}

#[test]
fn awards_are_taken_back_before_they_can_be_spent_and_by_the_keys_of_partners() {
    let home = Home::new();
    let server = home.start();
    create(&server, &programme());
    let pending = item("ann", "p-1", &json!({"points": 40, "pendingDays": 5, "reference": "o-1"}));
    assert_eq!(award(&server, &pending)["points"], 40);
    let back = json!({"kind": "reverse", "reference": "o-1", "points": 15});
    let taken = correct(&server, &item("ann", "r-1", &back));
    assert_eq!((&taken["points"], &taken["balance"]), (&json!(-15), &json!(0)), "{taken}");
    assert_eq!(member(&server, "shop", "ann")["pending"], 25);

    // Nobody has awarded under this key but the operator.
    let foreign = json!({"kind": "reverse", "award": "p-1", "source": "skyair"});
    assert_eq!(code(&correct(&server, &item("ann", "r-2", &foreign))), "reference_unknown");
    let own = json!({"kind": "reverse", "award": "p-1"});
    assert_eq!(correct(&server, &item("ann", "r-3", &own))["points"], -25);

    let together = json!({"awards": [pending], "atomic": true});
    server.post("/v1/points/awards", &together).expect_problem(400, "request_malformed");
    let nobody = json!({"kind": "exchangeOut", "partner": "nobody", "points": 1});
    let refused = transact(&server, &item("ann", "x-1", &nobody));
    assert_eq!(code(&refused), "partner_unknown");
    assert_eq!(refused["error"]["entry"], Value::Null, "it is no entry of the ledger");
}

//! Tests of documents.

use crate::world::{World, mart};
use raingauge_replay::Error;
use raingauge_replay::request::TestRequest;
use serde_json::{Value as Json, json};

async fn test(world: &World, request: Json) -> Result<Json, Error> {
    let request = TestRequest::parse(request.to_string().as_bytes())?;
    world.replay.test(request).await.map(|trial| json!(trial))
}

fn event(id: &str, data: Json) -> Json {
    json!({"specversion": "1.0", "id": id, "source": "mart", "type": "mart.order",
        "time": "2024-09-24T03:00:00Z", "data": data})
}

/// `A & (B | C) & (D | E)` with the weights of the published description: B, D and C are loaded, E
/// is skipped, and A is never reached.
#[tokio::test(flavor = "multi_thread")]
async fn the_trace_has_the_order_of_evaluation() {
    let world = World::new().await;
    let leaf =
        |name: &str| json!({"operator": "eq", "lhs": format!("http.{name}.value"), "rhs": 1});
    let campaign = json!({
        "id": 1, "name": "t", "eventTypes": ["mart.order"], "subject": "data.user_id",
        "rule": {"operator": "and", "conditions": [
            leaf("a"),
            {"operator": "or", "conditions": [leaf("b"), leaf("c")]},
            {"operator": "or", "conditions": [leaf("d"), leaf("e")]}]},
        "steps": [{"name": "s", "actions": [{"name": "x", "kind": "reward", "to": "r", "reward": "R"}]}]});
    let weights = [("b", 1), ("d", 2), ("e", 3), ("c", 4), ("a", 5)];
    let shared: Vec<Json> = weights
        .iter()
        .map(|(name, weight)| {
            json!({"kind": "lookup", "name": name, "class": "http", "weight": weight,
            "url": format!("https://{name}.internal/{{subject}}")})
        })
        .collect();
    let values = [("a", 1), ("b", 0), ("c", 0), ("d", 1), ("e", 1)];
    let lookups: serde_json::Map<String, Json> = values
        .iter()
        .map(|(name, value)| (format!("http.{name}"), json!({"answer": {"value": value}})))
        .collect();
    let request = json!({"campaigns": [campaign], "shared": shared, "lookups": lookups,
        "events": [event("o-1", json!({"user_id": "u-7"}))]});
    let found = test(&world, request).await.expect("tested");

    let leaves: Vec<(&str, &Json)> = found["trace"]
        .as_array()
        .expect("a trace")
        .iter()
        .map(|line| (line["leaf"].as_str().expect("a leaf"), &line["holds"]))
        .collect();
    let expected = [
        ("rule: http.b.value eq 1", &json!(false)),
        ("rule: http.d.value eq 1", &json!(true)),
        ("rule: http.c.value eq 1", &json!(false)),
    ];
    assert_eq!(leaves, expected);
    let explanation = &found["events"][0]["explanations"][0];
    assert_eq!(
        (&explanation["code"], &explanation["trace"]),
        (&json!("rule_false"), &found["trace"])
    );
    assert_eq!(found["decisions"], json!([]));
    assert_eq!(found["lookups"]["assumed"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn states_are_assumed() {
    let world = World::new().await;
    let completed = json!({"user_id": "u-7", "status": "completed", "country": "sg"});
    let request = |assume: Json| json!({"campaigns": [mart()], "assume": assume, "events": [event("o-4", completed.clone())]});
    let outcomes = async |assume: Json| {
        let found = test(&world, request(assume)).await.expect("tested");
        let decisions = found["decisions"].as_array().expect("decisions").clone();
        let line = |decision: &Json| {
            format!("{}/{} {}", decision["step"], decision["name"], decision["outcome"])
                .replace('"', "")
        };
        (decisions.iter().map(line).collect::<Vec<_>>(), found)
    };

    let counts = json!({"u-7": {"orders": 2}});
    let (lines, found) = outcomes(json!({"counts": counts})).await;
    assert_eq!(lines, ["reward/voucher granted", "reward/msg granted"]);
    let first = &found["decisions"][0];
    assert_eq!(first["action"], "act_bb9282cf452742f1394a4bc3dcf9c8a8");
    assert_eq!(first["cost"], json!({"budget": "vouchers", "amount": 500}));
    assert_eq!(found["events"][0]["explanations"][0]["code"], "granted");

    let (lines, _) = outcomes(json!({"counts": counts, "budgets": {"vouchers": 501}})).await;
    assert_eq!(lines, ["reward/voucher budget_exhausted", "reward/msg budget_exhausted"]);
    let usage = json!({"u-7": {"reward": 1}});
    let (lines, found) = outcomes(json!({"counts": counts, "usage": usage})).await;
    assert_eq!(lines, ["reward/voucher limit_reached", "reward/msg limit_reached"]);
    assert!(found["decisions"][0].get("action").is_none());
    let (lines, found) = outcomes(json!({})).await;
    assert_eq!(
        (lines.len(), &found["events"][0]["explanations"][0]["code"]),
        (0, &json!("step_false"))
    );

    let unknown =
        json!({"counts": {"u-7": {"rides": 2}}, "usage": {"u-7": {"x": 1}}, "budgets": {"x": 1}});
    let Err(Error::Invalid(problems)) = test(&world, request(unknown)).await else {
        panic!("it assumes what is unknown");
    };
    assert_eq!(problems.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_request_says_what_is_wrong() {
    let world = World::new().await;
    let invalid = async |request: Json| match test(&world, request).await {
        Err(Error::Invalid(problems)) => problems[0].field.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(invalid(json!({"campaigns": [99], "events": []})).await, "campaigns[0]");
    assert_eq!(invalid(json!({"campaigns": [mart()], "events": [{"id": 1}]})).await, "events[0]");
    let many = vec![event("1", json!({})); 1_001];
    assert_eq!(invalid(json!({"campaigns": [mart()], "events": many})).await, "events");
    let mut campaign = mart();
    campaign["steps"][0]["when"]["lhs"] = json!("count.rides");
    assert!(
        invalid(json!({"campaigns": [campaign], "events": []}))
            .await
            .starts_with("campaigns[0].steps")
    );
}

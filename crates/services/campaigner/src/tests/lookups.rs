//! Lookups: asked together, put off when they fail, and given up in the end.

use super::stage::{HOUR_MS, MemoryStage};
use raingauge_ports::campaigns::{LookupError, Status};
use serde_json::{Value as Json, json};

fn campaign() -> Json {
    json!({
        "id": 7, "name": "c", "eventTypes": ["order"], "subject": "data.user", "state": "active",
        "counts": {"orders": {"window": {"calendar": "day"}}},
        "rule": {"operator": "and", "conditions": [
            {"operator": "lt", "lhs": "http.risk.score", "rhs": 50},
            {"operator": "eq", "lhs": "segment.vip", "rhs": true}]},
        "steps": [{"name": "s", "actions": [
            {"name": "a", "kind": "message", "to": "m", "template": "t",
             "locale": "table.users.locale"}]}],
        "templates": {"t": {"en": "Hello", "de": "Hallo {{ table.users.name | default('du') }}"}},
    })
}

fn stage() -> MemoryStage {
    let stage = MemoryStage::in_memory();
    drop(stage.open());
    stage.save_campaign(&campaign());
    stage
}

fn failed() -> Result<Json, LookupError> {
    Err(LookupError::Failed("503".to_owned()))
}

#[test]
fn what_many_events_look_up_is_asked_at_once_and_cheap_first() {
    let stage = stage();
    for user in ["a", "b", "c"] {
        stage.lookups.set("vip", user, Ok(json!(user != "c")));
        stage.lookups.set("risk", user, Ok(json!({"score": 7})));
        stage.lookups.set("users", user, Ok(json!({"locale": "de"})));
    }
    for (id, user) in [("1", "a"), ("2", "b"), ("3", "c"), ("4", "a")] {
        stage.send(id, "order", &json!({"user": user}));
    }
    stage.run(&mut stage.open());

    let asked =
        [vec!["vip a", "vip b", "vip c"], vec!["risk a", "risk b"], vec!["users a", "users b"]];
    assert_eq!(stage.lookups.asked(), asked);
    assert_eq!(stage.lines(), ["1 s/a granted", "2 s/a granted", "4 s/a granted"]);
    let texts = stage.deliveries(Status::Pending);
    assert!(texts.iter().all(|sent| String::from_utf8_lossy(&sent.body).contains("Hallo du")));
}

#[test]
fn an_evaluation_waits_for_its_lookup_and_delays_nobody() {
    let stage = stage();
    stage.lookups.set("vip", "a", Ok(json!(true)));
    stage.lookups.set("vip", "b", Ok(json!(true)));
    stage.lookups.set("risk", "a", failed());
    stage.lookups.set("risk", "b", Ok(json!({"score": 7})));
    stage.send("1", "order", &json!({"user": "a"}));
    stage.send("2", "order", &json!({"user": "b"}));
    let mut worker = stage.open();
    stage.run(&mut worker);
    assert_eq!(stage.lines(), ["2 s/a granted"]);

    // It is tried again after half a minute, with the answers that it has.
    stage.lookups.asked();
    stage.lookups.set("risk", "a", Ok(json!({"score": 9})));
    stage.clock.advance(29_999);
    stage.run(&mut worker);
    assert_eq!(stage.lookups.asked(), Vec::<Vec<String>>::new());
    stage.clock.advance(1);
    let mut worker = stage.open();
    stage.run(&mut worker);
    assert_eq!(stage.lookups.asked(), [vec!["risk a"], vec!["users a"]]);
    assert_eq!(stage.lines(), ["2 s/a granted", "1 s/a granted"]);
}

#[test]
fn an_evaluation_is_given_up_in_the_end() {
    let stage = stage();
    stage.lookups.set("vip", "a", Ok(json!(true)));
    stage.lookups.set("risk", "a", Err(LookupError::Late));
    stage.send("1", "order", &json!({"user": "a"}));
    let mut worker = stage.open();
    for _ in 0..3 {
        stage.run(&mut worker);
        assert_eq!(stage.lines(), Vec::<String>::new());
        stage.clock.advance(60_000);
    }
    for _ in 0..9 {
        stage.run(&mut worker);
        stage.clock.advance(HOUR_MS);
    }
    assert_eq!(stage.lines(), ["1 s/a lookup_failed"]);
    assert_eq!(stage.deliveries(Status::Pending), []);
}

#[test]
fn a_text_that_cannot_be_made_is_a_reason_and_gives_the_budget_back() {
    let stage = MemoryStage::in_memory();
    drop(stage.open());
    stage.save_campaign(&json!({
        "id": 7, "name": "c", "eventTypes": ["order"], "subject": "data.user", "state": "active",
        "steps": [{"name": "s", "actions": [
            {"name": "a", "kind": "message", "to": "m", "template": "t",
             "cost": {"budget": "b", "amount": 5}}]}],
        "budgets": {"b": {"unit": "points", "max": 10}},
        "templates": {"t": {"en": "Hello {{ data.name }}"}},
    }));
    stage.send("1", "order", &json!({"user": "a"}));
    stage.send("2", "order", &json!({"user": "a", "name": "Mei"}));
    stage.run(&mut stage.open());
    assert_eq!(stage.lines(), ["1 s/a render_failed", "2 s/a granted"]);
    assert_eq!(stage.reserved("b"), 5);
}

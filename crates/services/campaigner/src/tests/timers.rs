//! Delayed actions: sent when they are due by the log, cancelled and rechecked.

use super::stage::{HOUR_MS, MemoryStage};
use raingauge_ports::campaigns::Status;
use serde_json::{Value as Json, json};

/// A reminder an hour behind a cart, unless an order comes.
fn campaign() -> Json {
    json!({
        "id": 7, "name": "c", "eventTypes": ["cart"], "subject": "data.user", "state": "active",
        "steps": [{"name": "s", "actions": [
            {"name": "a", "kind": "reward", "to": "m", "reward": "R", "delay": {"after": "PT1H"},
             "cost": {"budget": "b", "amount": 5},
             "cancel": {"eventTypes": ["order"]}}]}],
        "budgets": {"b": {"unit": "points", "max": 100}},
    })
}

fn stage(campaign: &Json) -> MemoryStage {
    let stage = MemoryStage::in_memory();
    drop(stage.open());
    stage.save_campaign(campaign);
    stage
}

#[test]
fn a_delayed_action_is_sent_when_it_is_due_without_a_new_event() {
    let stage = stage(&campaign());
    let mut worker = stage.open();
    stage.send("1", "cart", &json!({"user": "u"}));
    stage.run(&mut worker);
    assert_eq!(stage.lines(), ["1 s/a delayed"]);
    assert_eq!(stage.reserved("b"), 5);

    stage.clock.advance(HOUR_MS - 1);
    stage.run(&mut worker);
    assert_eq!(stage.deliveries(Status::Pending), []);
    stage.clock.advance(1);
    stage.run(&mut worker);
    let sent = stage.deliveries(Status::Pending);
    assert_eq!((sent.len(), sent[0].cost.as_ref().map(|cost| cost.amount)), (1, Some(5)));
    stage.clock.advance(HOUR_MS);
    stage.run(&mut worker);
    assert_eq!(stage.deliveries(Status::Pending).len(), 1);
}

/// Both when the cart is committed before the order comes, and when one commit has them both.
#[test]
fn an_event_cancels_before_the_time_and_not_behind_it() {
    for runs_between in [true, false] {
        let stage = stage(&campaign());
        let mut worker = stage.open();
        stage.send("1", "cart", &json!({"user": "u"}));
        if runs_between {
            stage.run(&mut worker);
        }
        stage.clock.advance(HOUR_MS - 1);
        stage.send("2", "order", &json!({"user": "u"}));
        stage.run(&mut worker);
        assert_eq!(stage.lines(), ["1 s/a delayed", "1 s/a cancelled"], "{runs_between}");
        assert_eq!(stage.reserved("b"), 0);

        stage.send("3", "cart", &json!({"user": "u"}));
        stage.clock.advance(HOUR_MS);
        stage.send("4", "order", &json!({"user": "u"}));
        stage.run(&mut stage.open());
        assert_eq!(stage.deliveries(Status::Pending).len(), 1);
        assert_eq!(stage.reserved("b"), 5);
    }
}

#[test]
fn an_action_is_rechecked_when_it_is_due() {
    let mut campaign = campaign();
    campaign["steps"][0]["actions"][0]["recheck"] =
        json!({"operator": "eq", "lhs": "segment.vip", "rhs": true});
    let stage = stage(&campaign);
    let mut worker = stage.open();
    for user in ["yes", "no", "late"] {
        stage.send(user, "cart", &json!({"user": user}));
    }
    stage.run(&mut worker);
    assert_eq!(stage.lookups.asked(), Vec::<Vec<String>>::new());

    stage.lookups.set("vip", "yes", Ok(json!(true)));
    stage.lookups.set("vip", "no", Ok(json!(false)));
    stage.clock.advance(HOUR_MS);
    stage.run(&mut worker);
    assert_eq!(stage.deliveries(Status::Pending).len(), 1);
    assert_eq!(stage.reserved("b"), 10);
    assert!(stage.lines().contains(&"no s/a recheck_failed".to_owned()));

    stage.lookups.set("vip", "late", Ok(json!(true)));
    stage.clock.advance(30_000);
    stage.run(&mut worker);
    assert_eq!(stage.deliveries(Status::Pending).len(), 2);
}

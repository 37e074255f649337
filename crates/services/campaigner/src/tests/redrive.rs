//! Steps that a budget refused, and that are decided again when it has more.

use super::stage::{HOUR_MS, MemoryStage};
use crate::campaigner::Campaigner;
use crate::operator::Operator;
use crate::worker::Worker;
use raingauge_ports::campaigns::{DocumentStore as _, Status};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// A voucher and a message for every order, as long as there is money.
fn campaign(max: u32) -> Json {
    json!({
        "id": 7, "name": "c", "eventTypes": ["order"], "subject": "data.user", "state": "active",
        "steps": [{"name": "s", "actions": [
            {"name": "a", "kind": "reward", "to": "r", "reward": "R",
             "cost": {"budget": "b", "amount": 5}},
            {"name": "m", "kind": "message", "to": "m", "template": "t"}]}],
        "budgets": {"b": {"unit": "points", "max": max}},
        "limits": [{"step": "s", "per": "subject", "max": 2, "period": "campaign"}],
        "templates": {"t": {"en": "For {{ data.item }}"}},
    })
}

fn order(stage: &MemoryStage, id: &str, user: &str) {
    stage.send(id, "order", &json!({"user": user, "item": format!("item {id}")}));
}

/// Four orders, of which the budget covers the first.
fn begun() -> (MemoryStage, Worker) {
    let stage = MemoryStage::in_memory();
    let mut worker = stage.open();
    stage.save_campaign(&campaign(5));
    for (id, user) in [("1", "u"), ("2", "u"), ("3", "v"), ("4", "u")] {
        stage.clock.advance(1);
        order(&stage, id, user);
    }
    stage.run(&mut worker);
    (stage, worker)
}

/// Asks a running worker to decide again. Returns how many actions it granted.
fn redrive(stage: &MemoryStage) -> usize {
    let handle = Campaigner::start(stage.deps(), MemoryStage::options()).unwrap();
    let operator =
        Operator::new(Arc::clone(&stage.log) as _, Arc::clone(&stage.ledger) as _, handle.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let granted = runtime.block_on(operator.redrive(Some(7))).unwrap();
    handle.stop();
    granted
}

fn granted(stage: &MemoryStage) -> Vec<String> {
    let granted = stage.decisions().into_iter().filter(|one| one.is_granted);
    let mut lines: Vec<String> = granted.map(|one| format!("{} {}", one.event, one.name)).collect();
    lines.sort();
    lines
}

#[test]
fn what_a_budget_refused_is_granted_when_it_has_more() {
    let (stage, worker) = begun();
    drop(worker);
    assert_eq!(granted(&stage), ["1 a", "1 m"]);
    let refused: Vec<_> = stage.decisions().into_iter().filter(|one| !one.is_granted).collect();
    assert_eq!(refused.len(), 6);
    assert_eq!(redrive(&stage), 0, "there is no more than before");
    assert_eq!(stage.decisions().len(), 8, "and nothing new to say");

    // There is money for one more: the oldest one gets it, with its message.
    stage.clock.advance(HOUR_MS);
    stage.save_campaign(&campaign(12));
    assert_eq!(redrive(&stage), 2);
    assert_eq!(granted(&stage), ["1 a", "1 m", "2 a", "2 m"]);
    assert_eq!(stage.reserved("b"), 10);
    let second = refused.iter().filter(|one| one.event == "2").map(|one| one.action);
    let mut expected: Vec<_> = second.collect();
    expected.sort();
    let again = stage.decisions().into_iter().filter(|one| one.is_granted && one.event == "2");
    let mut ids: Vec<_> = again.map(|one| one.action).collect();
    ids.sort();
    assert_eq!(ids, expected, "under the same ids");
    let bodies = stage.deliveries(Status::Pending);
    let bodies: Vec<String> =
        bodies.into_iter().map(|sent| String::from_utf8(sent.body).unwrap()).collect();
    assert!(bodies.iter().any(|body| body.contains("For item 2")), "{bodies:?}");

    // Each of those that are left once, as far as other gates allow it.
    stage.save_campaign(&campaign(100));
    assert_eq!(redrive(&stage), 2);
    assert_eq!(granted(&stage), ["1 a", "1 m", "2 a", "2 m", "3 a", "3 m"]);
    assert!(stage.lines().contains(&"4 s/a limit_reached".to_owned()));
    assert_eq!(redrive(&stage), 0);
    assert_eq!(stage.reserved("b"), 15);
}

#[test]
fn a_campaign_that_does_not_act_is_not_decided_again() {
    for state in ["paused", "archived", "shadow"] {
        let (stage, worker) = begun();
        drop(worker);
        let mut document = campaign(100);
        document["state"] = json!(state);
        stage.save_campaign(&document);
        assert_eq!(redrive(&stage), 0, "{state}");
        assert_eq!(granted(&stage), ["1 a", "1 m"], "{state}");
    }

    let (stage, worker) = begun();
    drop(worker);
    stage.save("campaign", "7", Json::Null);
    assert_eq!(redrive(&stage), 0);
    let deleted = stage.runtime.block_on(stage.documents.get("campaign", "7", None)).unwrap();
    assert!(deleted.unwrap().is_deleted);
}

/// The document that raises the budget and the entry follow each other in the log.
#[test]
fn steps_are_decided_again_by_the_documents_before_them() {
    let (stage, mut worker) = begun();
    stage.save_campaign(&campaign(10));
    let steps = [crate::RefusedStep { campaign: 7, step: "s".to_owned(), offset: 2 }];
    stage.control(crate::orders::redrive_entry(&steps));
    stage.run(&mut worker);
    assert_eq!(granted(&stage), ["1 a", "1 m", "2 a", "2 m"]);

    // A place that is no event, and one that is not there, are passed over.
    let steps = [0, 99].map(|offset| crate::RefusedStep { offset, ..steps[0].clone() });
    stage.control(crate::orders::redrive_entry(&steps));
    stage.run(&mut worker);
    assert_eq!(stage.reserved("b"), 10);
}

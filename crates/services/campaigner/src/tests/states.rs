//! Campaigns that are paused, resumed, archived and deleted, and documents that take effect.

use super::stage::{HOUR_MS, MemoryStage};
use crate::campaigner::Campaigner;
use crate::deps::Options;
use crate::error::Error;
use crate::worker::{Progress, Worker};
use raingauge_campaigns::states::{StateKey, StateKind};
use raingauge_ports::campaigns::{LedgerReader as _, Outbox, Settled, Settlement, Status};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// A reward an hour behind an order, and one at once.
fn campaign(state: &str) -> Json {
    json!({
        "id": 7, "name": "c", "eventTypes": ["order"], "subject": "data.user", "state": state,
        "steps": [{"name": "s", "actions": [
            {"name": "later", "kind": "reward", "to": "m", "reward": "R",
             "delay": {"after": "PT1H"}, "cost": {"budget": "b", "amount": 5}},
            {"name": "now", "kind": "reward", "to": "m", "reward": "R",
             "cost": {"budget": "b", "amount": 5}}]}],
        "budgets": {"b": {"unit": "points", "max": 100}},
    })
}

fn stage() -> MemoryStage {
    let stage = MemoryStage::in_memory();
    drop(stage.open());
    stage.save_campaign(&campaign("active"));
    stage
}

/// Their position becomes durable once in a while, and not with each of them.
#[test]
fn events_that_nobody_listens_to_are_passed_over() {
    let stage = MemoryStage::in_memory();
    let options = Options { commit_ms: 500, ..Options::default() };
    let mut worker = Worker::open(stage.deps(), options).unwrap();
    stage.send("1", "order", &json!({"user": "u"}));
    assert_eq!((worker.turn().unwrap(), worker.position()), (Progress::Busy, 1));

    stage.send("2", "order", &json!({"user": "u"}));
    assert!(matches!(worker.turn().unwrap(), Progress::Waits(_)));
    assert_eq!(worker.position(), 1);
    stage.clock.advance(500);
    assert_eq!((worker.turn().unwrap(), worker.position()), (Progress::Busy, 2));

    stage.save_campaign(&campaign("active"));
    stage.send("3", "order", &json!({"user": "u"}));
    while stage.decisions().is_empty() {
        stage.clock.advance(500);
        worker.turn().unwrap();
    }
}

#[test]
fn a_paused_campaign_holds_what_is_due_until_it_is_resumed() {
    let stage = stage();
    let mut worker = stage.open();
    stage.send("1", "order", &json!({"user": "u"}));
    stage.save_campaign(&campaign("paused"));
    stage.send("2", "order", &json!({"user": "u"}));
    stage.run(&mut worker);
    assert!(worker.shared().snapshot().is_paused(7));

    stage.clock.advance(HOUR_MS);
    stage.run(&mut worker);
    stage.clock.advance(HOUR_MS);
    let mut worker = stage.open();
    stage.run(&mut worker);
    assert_eq!(stage.deliveries(Status::Pending).len(), 1);
    assert_eq!(stage.decisions().len(), 2);

    // The sender holds what it finds, and a resumed campaign sends all of it.
    let taken = stage.runtime.block_on(stage.ledger.take("m", i64::MAX, 9)).unwrap();
    let held = taken.iter().map(|delivery| Settled {
        action: delivery.action,
        at_ms: 0,
        settlement: Settlement::Held,
        note: String::new(),
    });
    stage.runtime.block_on(stage.ledger.settle(held.collect())).unwrap();
    stage.save_campaign(&campaign("active"));
    stage.run(&mut worker);
    assert_eq!(stage.deliveries(Status::Held), []);
    assert_eq!(stage.deliveries(Status::Pending).len(), 2);
    assert_eq!(stage.reserved("b"), 10);
}

#[test]
fn an_archived_campaign_cancels_what_waits_and_gives_it_back() {
    for document in [campaign("archived"), Json::Null] {
        let stage = stage();
        let mut worker = stage.open();
        stage.send("1", "order", &json!({"user": "u"}));
        stage.run(&mut worker);
        assert_eq!(stage.reserved("b"), 10);

        stage.save("campaign", "7", document);
        stage.run(&mut worker);
        assert_eq!(stage.deliveries(Status::Pending), []);
        assert_eq!(stage.deliveries(Status::Cancelled).len(), 1);
        assert_eq!(stage.reserved("b"), 0);
        assert!(stage.lines().contains(&"1 s/later cancelled".to_owned()));

        stage.send("2", "order", &json!({"user": "u"}));
        stage.clock.advance(2 * HOUR_MS);
        stage.run(&mut worker);
        assert_eq!(stage.decisions().len(), 3);
    }
}

#[test]
fn a_document_takes_effect_at_its_place_and_is_read_again_by_the_next_process() {
    let stage = MemoryStage::in_memory();
    let mut worker = stage.open();
    stage.send("1", "order", &json!({"user": "u"}));
    stage.save_campaign(&campaign("active"));
    stage.send("2", "order", &json!({"user": "u"}));
    stage.run(&mut worker);
    let versions = |stage: &MemoryStage| {
        let decided = stage.decisions().into_iter().map(|one| (one.event, one.version));
        let decided: BTreeMap<String, u32> = decided.collect();
        decided
            .into_iter()
            .map(|(event, version)| format!("{event}: {version}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(versions(&stage), ["2: 1"]);

    // A version that is stored is not in effect before its entry.
    let newer = stage.store("campaign", "7", campaign("active"));
    let mut worker = stage.open();
    stage.send("3", "order", &json!({"user": "u"}));
    stage.run(&mut worker);
    assert_eq!(versions(&stage), ["2: 1", "3: 1"]);
    stage.control(crate::document_entry(&newer));
    stage.control(crate::document_entry(&newer));
    stage.send("4", "order", &json!({"user": "u"}));
    stage.run(&mut worker);
    assert_eq!(versions(&stage), ["2: 1", "3: 1", "4: 2"]);
    assert_eq!(worker.shared().snapshot().version_of("campaign", "7"), Some(2));
}

#[test]
fn an_entry_of_a_newer_version_stops_the_worker() {
    let stage = stage();
    let mut worker = stage.open();
    stage.send("1", "order", &json!({"user": "u"}));
    stage.control(br#"{"for": "campaigns", "kind": "rewind"}"#.to_vec());
    let trouble = stage.try_run(&mut worker).unwrap_err();
    assert!(matches!(trouble, Error::UnknownControl { offset: 2, .. }), "{trouble}");
    assert_eq!(stage.decisions().len(), 2);
}

#[test]
fn a_running_worker_says_when_it_has_decided() {
    let stage = stage();
    let handle = Campaigner::start(stage.deps(), MemoryStage::options()).unwrap();
    stage.send("1", "order", &json!({"user": "u"}));
    let deadline = Instant::now() + Duration::from_secs(60);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    assert!(runtime.block_on(handle.wait_decided(2, deadline)));
    assert_eq!((handle.position(), handle.trouble()), (2, None));
    assert_eq!(stage.decisions().len(), 2);
    assert!(!runtime.block_on(handle.wait_decided(3, Instant::now())));
    handle.stop();
}

/// Both versions are applied by one commit.
#[test]
fn a_campaign_that_is_archived_and_back_at_once_cancels_what_waited() {
    for ending in [campaign("archived"), Json::Null] {
        let stage = stage();
        let mut worker = stage.open();
        stage.send("1", "order", &json!({"user": "u"}));
        stage.run(&mut worker);
        stage.save("campaign", "7", ending);
        stage.save_campaign(&campaign("active"));
        stage.send("2", "order", &json!({"user": "u"}));
        stage.run(&mut worker);
        stage.clock.advance(2 * HOUR_MS);
        let mut worker = stage.open();
        stage.run(&mut worker);

        let lines = stage.lines();
        assert!(lines.contains(&"1 s/later cancelled".to_owned()), "{lines:?}");
        assert!(!lines.contains(&"2 s/later cancelled".to_owned()), "{lines:?}");
        // Two at once, and the later one of the second order.
        assert_eq!(stage.deliveries(Status::Pending).len(), 3);
        assert_eq!(stage.reserved("b"), 15);
    }
}

#[test]
fn tallies_that_no_campaign_wants_are_removed() {
    let counting = |state: &str| {
        let mut counting = campaign(state);
        counting["counts"] = json!({"orders": {"window": "campaign", "history": "none"}});
        counting["steps"][0]["when"] = json!({"operator": "gte", "lhs": "count.orders", "rhs": 2});
        counting
    };
    let stage = MemoryStage::in_memory();
    let mut worker = stage.open();
    stage.save_campaign(&counting("active"));
    for user in 0..5_000 {
        stage.send(&user.to_string(), "order", &json!({"user": format!("u{user}")}));
    }
    stage.run(&mut worker);
    let tallies = |stage: &MemoryStage| {
        let from = StateKey { kind: StateKind::Tally, owner: 0, subject: String::new() };
        stage.runtime.block_on(stage.ledger.states(from, 10_000)).unwrap().len()
    };
    assert_eq!(tallies(&stage), 5_000);

    // It comes back, and begins at nothing.
    stage.save_campaign(&counting("archived"));
    stage.send("a", "order", &json!({"user": "u1"}));
    stage.save_campaign(&counting("active"));
    stage.send("b", "order", &json!({"user": "u1"}));
    stage.run(&mut worker);
    assert_eq!(tallies(&stage), 1);
    assert_eq!(stage.lines(), Vec::<String>::new());
    stage.send("c", "order", &json!({"user": "u1"}));
    stage.run(&mut stage.open());
    assert_eq!(stage.lines(), ["c s/later delayed", "c s/now granted"]);
}

/// The same campaign twice: one acts, and one only says what it would do.
#[test]
fn a_shadow_decides_as_an_active_campaign_and_delivers_nothing() {
    let second = |id: u32, state: &str| {
        json!({
            "id": id, "name": "c", "eventTypes": ["order"], "subject": "data.user", "state": state,
            "counts": {"orders": {"window": "campaign", "history": "none"}},
            "steps": [{"name": "s", "when": {"operator": "every", "lhs": "count.orders", "rhs": 2},
                "actions": [{"name": "a", "kind": "reward", "to": "m", "reward": "R",
                             "cost": {"budget": "b", "amount": 5}}]}],
            "limits": [{"per": "subject", "max": 1, "period": "campaign"}],
            "budgets": {"b": {"unit": "points", "max": 100}},
        })
    };
    let stage = MemoryStage::in_memory();
    let mut worker = stage.open();
    stage.save_campaign(&second(7, "active"));
    stage.save_campaign(&second(8, "shadow"));
    let mut send = |ids: std::ops::RangeInclusive<u32>| {
        ids.for_each(|id| stage.send(&id.to_string(), "order", &json!({"user": "u"})));
        stage.run(&mut worker);
    };
    let of = |campaign: u32| {
        let own = stage.decisions().into_iter().filter(move |one| one.campaign == campaign);
        let mut lines: Vec<_> = own.map(|one| format!("{} {}", one.event, one.outcome)).collect();
        lines.sort();
        lines
    };

    send(1..=4);
    assert_eq!(of(7), ["2 granted", "4 limit_reached"]);
    assert_eq!(of(8), ["2 shadow", "4 limit_reached"]);
    let campaigns = || -> Vec<u32> {
        stage.deliveries(Status::Pending).iter().map(|delivery| delivery.campaign).collect()
    };
    assert_eq!(campaigns(), [7]);
    assert_eq!(stage.reserved("b"), 5);

    // Once it acts, its tally goes on, and what the shadow was granted no longer counts.
    stage.save_campaign(&second(8, "active"));
    send(5..=6);
    assert_eq!(of(7), ["2 granted", "4 limit_reached", "6 limit_reached"]);
    assert_eq!(of(8), ["2 shadow", "4 limit_reached", "6 granted"]);
    assert_eq!(campaigns(), [7, 8]);
}

//! Subjects that are erased.

use super::stage::{HOUR_MS, MemoryStage, START_MS};
use crate::erasure_entry;
use crate::worker::Worker;
use raingauge_campaigns::states::{StateKey, StateKind};
use raingauge_ports::campaigns::{Ledger, LedgerReader, LookupError, Status};
use raingauge_ports::log::EventLog;
use serde_json::{Value as Json, json};

/// Something at every second order, and something an hour behind each.
fn campaign() -> Json {
    json!({
        "id": 7, "name": "c", "eventTypes": ["order"], "subject": "data.user", "state": "active",
        "activeFrom": START_MS / 1_000,
        "counts": {"orders": {"window": "campaign"}},
        "steps": [
            {"name": "s", "when": {"operator": "reaches", "lhs": "count.orders", "rhs": 2},
             "actions": [{"name": "a", "kind": "reward", "to": "m", "reward": "R",
                          "cost": {"budget": "b", "amount": 5}}]},
            {"name": "l", "actions": [{"name": "a", "kind": "reward", "to": "m", "reward": "R",
                "delay": {"after": "PT1H"}, "cost": {"budget": "b", "amount": 1}}]}],
        "limits": [{"step": "s", "per": "subject", "max": 1, "period": "campaign"}],
        "budgets": {"b": {"unit": "points", "max": 100}},
    })
}

fn states_about(stage: &MemoryStage, subject: &str) -> usize {
    let of_kind = |kind| {
        let from = StateKey { kind, owner: 0, subject: String::new() };
        let states = stage.runtime.block_on(stage.ledger.states(from, 1_000)).unwrap();
        states.into_iter().filter(|(key, _)| key.subject == subject).count()
    };
    StateKind::OF_SUBJECTS.into_iter().map(of_kind).sum()
}

fn order(stage: &MemoryStage, id: &str, user: &str) {
    stage.send(id, "order", &json!({"user": user}));
}

fn begun() -> (MemoryStage, Worker) {
    let stage = MemoryStage::in_memory();
    let mut worker = stage.open();
    stage.save_campaign(&campaign());
    for (id, user) in [("1", "u"), ("2", "u"), ("3", "v"), ("4", "v")] {
        order(&stage, id, user);
    }
    stage.run(&mut worker);
    (stage, worker)
}

#[test]
fn nothing_is_left_of_a_subject_that_is_erased() {
    let (stage, mut worker) = begun();
    assert_eq!(stage.reserved("b"), 14);
    stage.control(erasure_entry("u"));
    // What comes behind the entry begins at nothing.
    order(&stage, "5", "u");
    stage.run(&mut worker);

    assert_eq!(states_about(&stage, "u"), 1);
    assert!(states_about(&stage, "v") > 1);
    let about = stage.decisions().into_iter().filter(|one| one.subject == "u");
    assert_eq!(about.map(|one| one.event).collect::<Vec<_>>(), ["5"]);
    let subjects: Vec<String> =
        stage.deliveries(Status::Pending).into_iter().map(|sent| sent.subject).collect();
    assert_eq!(subjects, ["v"]);
    assert_eq!(stage.reserved("b"), 14 - 7 + 1);

    // What waited for its time does not happen, and the others' does.
    stage.clock.advance(2 * HOUR_MS);
    stage.run(&mut worker);
    let sent = stage.deliveries(Status::Pending);
    assert_eq!(sent.iter().filter(|sent| sent.subject == "v").count(), 3);
    assert_eq!(sent.iter().filter(|sent| sent.subject == "u").count(), 1);

    // The second since then is rewarded, as that of a new user would be.
    order(&stage, "6", "u");
    stage.run(&mut worker);
    assert!(stage.lines().contains(&"6 s/a granted".to_owned()));
}

#[test]
fn an_erased_subject_is_not_counted_from_the_log_again() {
    let (stage, mut worker) = begun();
    stage.control(erasure_entry("u"));
    stage.run(&mut worker);

    // Another tally begins with the events of the log: two of v, and none of u.
    let mut second = campaign();
    second["id"] = json!(8);
    second["counts"] = json!({"orders": {"window": {"calendar": "month"}, "history": "log"}});
    second["steps"][0]["when"]["rhs"] = json!(3);
    stage.save_campaign(&second);
    stage.run(&mut worker);
    let mut worker = stage.open();
    for (id, user) in [("5", "u"), ("6", "v")] {
        order(&stage, id, user);
    }
    stage.run(&mut worker);
    let of_second = stage.decisions().into_iter().filter(|one| one.campaign == 8);
    let rewarded: Vec<String> =
        of_second.filter(|one| one.step == "s").map(|one| one.subject).collect();
    assert_eq!(rewarded, ["v"]);
}

#[test]
fn an_evaluation_that_waits_for_a_lookup_forgets_the_subject() {
    let stage = MemoryStage::in_memory();
    let mut worker = stage.open();
    let mut patient = campaign();
    patient["rule"] = json!({"operator": "eq", "lhs": "http.risk.low", "rhs": true});
    stage.save_campaign(&patient);
    for user in ["u", "v"] {
        stage.lookups.set("risk", user, Err(LookupError::Failed("503".to_owned())));
        order(&stage, user, user);
    }
    stage.run(&mut worker);

    stage.control(erasure_entry("u"));
    stage.run(&mut worker);
    assert_eq!(stage.ledger.due(i64::MAX, 9).unwrap().len(), 1);
    for user in ["u", "v"] {
        stage.lookups.set("risk", user, Ok(json!({"low": true})));
    }
    stage.clock.advance(60_000);
    stage.run(&mut worker);
    assert_eq!(stage.lines(), ["v l/a delayed"]);
    assert_eq!(worker.position(), stage.log.end());
}

/// The process ends between the erasure and the commit of its position.
#[test]
fn an_erasure_that_was_cut_short_is_done_again() {
    let (stage, mut worker) = begun();
    drop(worker);
    raingauge_ports::campaigns::LedgerErasure::erase(&*stage.ledger, "u").unwrap();
    stage.control(erasure_entry("u"));
    worker = stage.open();
    stage.run(&mut worker);
    assert_eq!(states_about(&stage, "u"), 0);
    // The timers of u are gone with it.
    assert_eq!(stage.ledger.due(i64::MAX, 9).unwrap().len(), 2);
    assert_eq!(stage.reserved("b"), 7);
}

//! Tallies that begin with the events of the log.

use super::stage::{HOUR_MS, MemoryStage, START_MS};
use crate::deps::Options;
use crate::worker::{Progress, Worker};
use raingauge_ports::log::EventLog;
use serde_json::{Value as Json, json};

/// The third order since the beginning, in whatever state.
fn campaign(state: &str) -> Json {
    json!({
        "id": 7, "name": "c", "eventTypes": ["order"], "subject": "data.user", "state": state,
        "activeFrom": START_MS / 1_000,
        "counts": {"orders": {"window": "campaign"},
                   "today": {"window": {"calendar": "day"}},
                   "fresh": {"window": {"last": "PT10H"}, "history": "none"}},
        "steps": [
            {"name": "s", "when": {"operator": "reaches", "lhs": "count.orders", "rhs": 5},
             "actions": [{"name": "a", "kind": "reward", "to": "m", "reward": "R"}]},
            {"name": "d", "when": {"operator": "reaches", "lhs": "count.today", "rhs": 5},
             "actions": [{"name": "a", "kind": "reward", "to": "m", "reward": "R"}]},
            {"name": "n", "when": {"operator": "reaches", "lhs": "count.fresh", "rhs": 2},
             "actions": [{"name": "a", "kind": "reward", "to": "m", "reward": "R"}]}],
    })
}

fn small_slices(stage: &MemoryStage) -> Worker {
    let options = Options { history_bytes: 1, ..MemoryStage::options() };
    Worker::open(stage.deps(), options).unwrap()
}

#[test]
fn history_is_counted_once_between_live_events() {
    let stage = MemoryStage::in_memory();
    drop(stage.open());
    for id in ["1", "2", "3"] {
        stage.send(id, "order", &json!({"user": "u"}));
    }
    stage.clock.advance(HOUR_MS);
    stage.save_campaign(&campaign("active"));
    let mut worker = small_slices(&stage);
    while !worker.shared().snapshot().is_warming(7) {
        assert_eq!(worker.turn().unwrap(), Progress::Busy);
    }
    let warming = worker.shared().snapshot().warming[&7];
    assert_eq!((warming.until, warming.covered_from_ms), (4, 0));

    // The fourth is counted live, while history is at its first event.
    assert_eq!(worker.turn().unwrap(), Progress::Busy);
    stage.send("4", "order", &json!({"user": "u"}));
    assert_eq!(worker.turn().unwrap(), Progress::Busy);
    assert!(worker.shared().snapshot().is_warming(7));
    let mut worker = small_slices(&stage);
    stage.run(&mut worker);
    assert!(!worker.shared().snapshot().is_warming(7));
    assert_eq!(stage.lines(), Vec::<String>::new());

    // The fifth is decided: the fifth of all, and the second since the campaign was saved.
    stage.send("5", "order", &json!({"user": "u"}));
    stage.run(&mut worker);
    assert_eq!(stage.lines(), ["5 d/a granted", "5 n/a granted", "5 s/a granted"]);
    assert_eq!(worker.shared().snapshot().position, stage.log.end());
}

#[test]
fn a_campaign_that_comes_back_counts_its_history_again() {
    let stage = MemoryStage::in_memory();
    let mut worker = stage.open();
    stage.clock.advance(1_000);
    stage.save_campaign(&campaign("active"));
    stage.send("1", "order", &json!({"user": "u"}));
    stage.save_campaign(&campaign("archived"));
    stage.send("2", "order", &json!({"user": "u"}));
    stage.send("3", "order", &json!({"user": "u"}));
    stage.save_campaign(&campaign("active"));
    stage.run(&mut worker);
    stage.send("4", "order", &json!({"user": "u"}));
    stage.run(&mut worker);
    assert_eq!(stage.lines(), Vec::<String>::new());
    stage.send("5", "order", &json!({"user": "u"}));
    stage.run(&mut worker);
    assert_eq!(stage.lines(), ["5 d/a granted", "5 n/a granted", "5 s/a granted"]);
}

#[test]
fn a_number_that_is_raised_finds_what_was_counted_before() {
    let of = |number: i64| {
        let mut campaign = campaign("active");
        campaign["steps"][2]["when"]["rhs"] = json!(number);
        campaign
    };
    let stage = MemoryStage::in_memory();
    let mut worker = stage.open();
    stage.save_campaign(&of(2));
    for id in ["1", "2", "3", "4", "5"] {
        stage.send(id, "order", &json!({"user": "u"}));
    }
    stage.save_campaign(&of(6));
    stage.send("6", "order", &json!({"user": "u"}));
    stage.run(&mut worker);
    assert_eq!(stage.lines(), ["2 n/a granted", "5 d/a granted", "5 s/a granted", "6 n/a granted"]);
}

/// A recheck reads lookups and fields alone, so that no rule may need a count that steps do not
/// read. A later version may.
#[test]
fn a_count_that_no_rule_reads_is_filled_and_counted_all_the_same() {
    let mut unread = campaign("active");
    for step in 0..3 {
        unread["steps"][step]["when"] = json!({"operator": "eq", "lhs": "var.n", "rhs": 1});
    }
    unread["steps"][0]["actions"][0]["delay"] = json!({"after": "PT1H"});
    unread["steps"][0]["actions"][0]["recheck"] =
        json!({"operator": "eq", "lhs": "var.user", "rhs": "u"});

    let stage = MemoryStage::in_memory();
    drop(stage.open());
    for id in ["1", "2", "3"] {
        stage.send(id, "order", &json!({"user": "u"}));
    }
    stage.clock.advance(HOUR_MS);
    stage.save_campaign(&unread);
    let mut worker = small_slices(&stage);
    stage.run(&mut worker);
    stage.send("4", "order", &json!({"user": "u"}));
    stage.save_campaign(&campaign("active"));
    stage.run(&mut worker);

    stage.send("5", "order", &json!({"user": "u"}));
    stage.run(&mut worker);
    assert_eq!(stage.lines(), ["5 d/a granted", "5 n/a granted", "5 s/a granted"]);
}

//! Work that is not done: rules that no event has to be tested with, and rows that are written once
//! for many events.

use super::stage::{MemoryStage, START_MS};
use crate::answers::Asking;
use crate::batch::{Batch, Bounds, Terms};
use crate::control::{CONSUMER, Control};
use crate::turn::{Scene, Turn};
use raingauge_campaigns::campaign::Campaign;
use raingauge_campaigns::engine::{At, Documents, Engine, Release};
use raingauge_campaigns::index::Scratch;
use raingauge_campaigns::states::{MemoryStates, StateKind};
use raingauge_core::event::Event;
use raingauge_ports::consumers::Name;
use raingauge_ports::log::EventLog as _;
use serde_json::{Value as Json, json};

const CAMPAIGNS: usize = 2_000;

/// One of many campaigns of the same type: for a country, a kind of ride, and a least fare.
fn targeted(number: usize) -> Json {
    let leaf = |operator: &str, lhs: &str, rhs: Json| json!({"operator": operator, "lhs": lhs, "rhs": rhs});
    let conditions = [
        leaf("eq", "var.country", json!(format!("c{}", number % 40))),
        leaf("eq", "var.kind", json!(format!("k{}", number / 40 % 10))),
        leaf("gte", "var.fare", json!(number % 7)),
    ];
    json!({
        "id": number + 1, "name": format!("c{number}"), "eventTypes": ["ride"],
        "subject": "data.user", "state": "active",
        "rule": {"operator": "and", "conditions": conditions},
        "steps": [{"name": "s", "actions": [
            {"name": "a", "kind": "reward", "to": "m", "reward": "R"}]}],
    })
}

#[test]
fn an_event_meets_one_campaign_in_a_hundred() {
    let release = |number| {
        let campaign = Campaign::from_json(&targeted(number)).unwrap();
        Release { version: 1, campaign, is_warming: false }
    };
    let campaigns: Vec<Release> = (0..CAMPAIGNS).map(release).collect();
    let engine = Engine::new(Documents { campaigns, ..Documents::default() });
    let mut candidates = 0;
    let events = 400;
    for number in 0..events {
        let data = json!({"user": "u", "country": format!("c{}", number % 40),
                          "kind": format!("k{}", number / 40), "fare": 9})
        .to_string();
        let event = Event::of_data("ride", START_MS, &data);
        let at = At { appended_ms: START_MS };
        let states = &mut MemoryStates::default();
        candidates += engine.begin(&event, at, states, &mut Scratch::default()).candidates();
    }
    // Each of them concerns five campaigns, and by its type alone all of them.
    assert_eq!(candidates, 5 * events);
    assert!(candidates * 100 <= CAMPAIGNS * events);
}

#[test]
fn many_triggers_of_a_commit_write_one_row_of_usage() {
    let stage = MemoryStage::in_memory();
    drop(stage.open());
    stage.save_campaign(&json!({
        "id": 7, "name": "c", "eventTypes": ["order"], "subject": "data.user", "state": "active",
        "counts": {"orders": {"window": "campaign", "history": "none"}},
        "steps": [{"name": "s", "when": {"operator": "gte", "lhs": "count.orders", "rhs": 1},
            "actions": [{"name": "a", "kind": "reward", "to": "m", "reward": "R",
                         "cost": {"budget": "b", "amount": 1}}]}],
        "limits": [{"per": "subject", "max": 9_999, "period": "campaign"}],
        "budgets": {"b": {"unit": "points", "max": 100_000}}}));
    let mut worker = stage.open();
    stage.run(&mut worker);
    for number in 0..500 {
        stage.send(&format!("e{number}"), "order", &json!({"user": "u"}));
        stage.send(&format!("v{number}"), "visit", &json!({"user": "u"}));
    }

    let from = worker.position();
    let blocks = stage.log.read(from, usize::MAX).unwrap();
    // Visits, which no campaign listens to, take no room.
    let bounds = Bounds { events_max: 500, bytes_max: usize::MAX };
    let consumer = Name::new(CONSUMER).unwrap();
    let snapshot = worker.shared().snapshot();
    let terms = Terms { bounds, consumer: &consumer, compiled: &snapshot.compiled };
    let batch = Batch::of(&blocks, from, START_MS, terms).unwrap();
    assert_eq!(batch.events.len(), 500);
    let deps = stage.deps();
    let scene = Scene {
        documents: &snapshot.documents,
        compiled: &snapshot.compiled,
        ledger: &*deps.ledger,
        asking: Asking {
            lookups: &*deps.lookups,
            clock: &*deps.clock,
            runtime: &deps.runtime,
            patience_ms: 0,
        },
    };
    let control = Control::default();
    let mut turn = Turn::new(scene, &control, batch.end);
    assert_eq!(turn.decide(&batch).unwrap(), 500);
    let commit = turn.into_commit().unwrap();
    assert_eq!(commit.decisions.len(), 500);

    let rows = |kind| commit.states.iter().filter(|(key, _)| key.kind == kind).count();
    assert_eq!(rows(StateKind::Tally), 1);
    assert!(commit.states.len() <= 3, "{:?}", commit.states);
    let reserved: Vec<i64> = commit.budgets.iter().map(|change| change.reserve).collect();
    assert_eq!(reserved, [500]);
}

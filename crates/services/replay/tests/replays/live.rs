//! The worker and a backtest decide alike on the same stream.

use crate::world::{HOUR_S, START_S, World};
use raingauge_campaigns::decision::ActionId;
use raingauge_core::event::Event;
use raingauge_ports::log::EventLog;
use raingauge_ports::record::Entry;
use raingauge_replay::answers::Answers;
use raingauge_replay::machine::{Machine, Plan};
use raingauge_replay::source::{Span, walk};
use raingauge_replay::{Progress, documents};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A linear congruential generator, so that a stream follows from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn campaign(random: &mut Random, id: u32) -> Json {
    let windows = [json!("campaign"), json!({"calendar": "day"}), json!({"last": "PT6H"})];
    let window = random.below(3) as usize;
    // A rolling count goes down again, and so has no multiples.
    let edge = if window == 2 { "reaches" } else { ["reaches", "every"][random.below(2) as usize] };
    let budget = ["own", "shared"][random.below(2) as usize];
    let cost = json!({"budget": budget, "amount": 1 + random.below(4)});
    let mut action =
        json!({"name": "a", "kind": "reward", "to": "rewards", "reward": "R", "cost": cost});
    if random.below(3) == 0 {
        action["delay"] = json!({"after": "PT2H"});
        action["cancel"] = json!({"eventTypes": ["cancel"]});
    }
    let mut campaign = json!({
        "id": id, "name": format!("c{id}"), "eventTypes": ["order"], "subject": "data.user",
        "state": "active", "priority": random.below(3), "zone": "Asia/Singapore",
        "counts": {"n": {"window": windows[window],
            "filter": {"operator": "gte", "lhs": "var.amount", "rhs": random.below(4)}}},
        "rule": {"operator": "or", "conditions": [
            {"operator": "lt", "lhs": "var.amount", "rhs": random.below(10)},
            {"operator": "eq", "lhs": "segment.vip", "rhs": true}]},
        "steps": [
            {"name": "first", "when": {"operator": edge, "lhs": "count.n", "rhs": 1 + random.below(4)},
             "actions": [action]},
            {"name": "again", "when": {"operator": "and", "conditions": [
                {"operator": "gte", "lhs": "usage.first", "rhs": 1},
                {"operator": "gte", "lhs": "count.n", "rhs": 2 + random.below(3)}]},
             "actions": [{"name": "m", "kind": "reward", "to": "other", "reward": "S"}]}],
        "limits": [{"step": "again", "max": 1 + random.below(3), "period": "day"}],
        "budgets": {"own": {"unit": "points", "max": random.below(30), "period": "day"}}});
    if random.below(2) == 0 {
        let mode = ["first", "best"][random.below(2) as usize];
        campaign["group"] = json!({"name": "g", "mode": mode});
    }
    campaign
}

fn shared() -> [(&'static str, &'static str, Json); 2] {
    [
        (
            "budget",
            "shared",
            json!({"kind": "budget", "name": "shared", "unit": "points", "max": 25}),
        ),
        ("cap", "cap", json!({"kind": "cap", "name": "cap", "destinations": ["other"], "max": 2})),
    ]
}

/// An event that happened up to thirty hours before it is appended; more than a day is too late.
fn text_of(random: &mut Random, number: u64) -> (String, &'static str, i64, String) {
    let late_h = if random.below(4) == 0 { random.below(30) as i64 } else { 0 };
    let kind = if random.below(6) == 0 { "cancel" } else { "order" };
    let data = json!({"user": format!("u-{}", random.below(5)), "amount": random.below(12)});
    (number.to_string(), kind, late_h, data.to_string())
}

async fn play(seed: u64) -> usize {
    let mut random = Random(seed);
    let world = World::new().await;
    let campaigns: Vec<Json> = (1..=5).map(|id| campaign(&mut random, id)).collect();
    for (kind, name, document) in shared() {
        world.save(kind, name, document).await;
    }
    for campaign in &campaigns {
        world.save_campaign(campaign).await;
    }
    let begin = world.log.end();

    let mut now_s = START_S;
    for number in 0..300 {
        now_s += random.below(2 * HOUR_S as u64) as i64;
        world.clock.set_s(now_s);
        let (id, kind, late_h, data) = text_of(&mut random, number);
        let event = Event::of_data(kind, (now_s - late_h * HOUR_S) * 1_000, &data);
        world.append(&[Event { id: id.into(), ..event }]).await;
        if random.below(5) == 0 {
            world.decided().await;
        }
    }
    world.decided().await;

    let stored = world.decisions().await;
    let mut live: Vec<String> = stored
        .iter()
        .map(|one| {
            let cost = one.cost.as_ref().map(|cost| cost.amount);
            let cost = cost.filter(|_| one.outcome != "cancelled");
            let action = format!("{} {}/{}", one.campaign, one.step, one.name);
            format!("{} {action} {} {cost:?}", one.event, one.outcome)
        })
        .collect();
    let log: Arc<dyn EventLog> = world.log.clone();
    let shared: Vec<Json> = shared().into_iter().map(|(.., document)| document).collect();
    let mut replayed =
        tokio::task::spawn_blocking(move || replay(&log, begin, &campaigns, &shared))
            .await
            .expect("replayed");
    live.sort();
    replayed.sort();
    let different = live.iter().zip(&replayed).find(|(live, replayed)| live != replayed);
    assert_eq!((different, live.len()), (None, replayed.len()), "seed {seed}");
    live.len()
}

/// Feeds the log to a machine, and lists what it decides and undoes.
fn replay(log: &Arc<dyn EventLog>, begin: u64, campaigns: &[Json], shared: &[Json]) -> Vec<String> {
    let none =
        raingauge_campaigns::engine::Documents { late_after_ms: 86_400_000, ..Default::default() };
    let documents = documents::resolve(campaigns, shared, &none).expect("documents");
    let range_ms = i64::MIN..i64::MAX;
    let mut machine = Machine::new(Plan { documents, range_ms, sample: 1 }).expect("a machine");
    let lookups = serde_json::from_value(json!({})).expect("no assumptions");
    let handle = tokio::runtime::Handle::current();
    let mut answers =
        Answers::assumed(lookups).with_current(Some(Arc::new(crate::world::KeyLookups)), handle);

    let mut lines = Vec::new();
    let span = Span { from: begin, ..Span::since(log, i64::MIN) };
    let mut granted: BTreeMap<ActionId, String> = BTreeMap::new();
    walk(vec![span], &Progress::default(), |step| {
        let Entry::Event(event) = &step.entry else { return Ok(true) };
        let turn = machine.take(event, step.appended_ms, &mut answers)?;
        for decision in &turn.outcome.decisions {
            let cost = decision.cost.as_ref().map(|cost| cost.amount);
            let action = format!("{} {}/{}", decision.campaign, decision.step, decision.name);
            let line = format!("{} {action} {} {cost:?}", event.id, decision.reason.as_str());
            lines.push(line);
            granted.insert(decision.action, event.id.to_string());
        }
        for undone in &turn.undone {
            let action = format!("{} {}/{}", undone.campaign, undone.step, undone.name);
            let event = &granted[&undone.action];
            lines.push(format!("{event} {action} {} None", undone.reason.as_str()));
        }
        Ok(true)
    })
    .expect("walked");
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backtest_equals_what_was_decided_live() {
    let mut decisions = 0;
    for seed in 1..=8 {
        decisions += play(seed).await;
    }
    assert!(decisions > 500, "the streams are too tame: {decisions} decisions");
}

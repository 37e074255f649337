//! A comparison finds what two backtests find.

use crate::world::{World, mart};
use serde_json::{Value as Json, json};

#[tokio::test(flavor = "multi_thread")]
async fn subjects_gain_and_lose() {
    let world = World::with_example().await;
    let mut after = mart();
    after["steps"][1]["when"]["rhs"] = json!(4);
    let found = world.compare(json!({"before": [7], "after": [after]})).await;

    let steps = found["steps"].as_array().expect("steps");
    let of = |name: &str| steps.iter().find(|step| step["step"] == name).expect("a step");
    let nudge = of("nudge");
    assert_eq!((&nudge["before"], &nudge["gain"]["subjects"]), (&nudge["after"], &json!(0)));
    let reward = of("reward");
    assert_eq!(
        (&reward["before"]["triggers"], &reward["after"]["triggers"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(reward["gain"]["samples"], json!([]));
    let lose = json!({"subjects": 1, "triggers": 1, "samples": [["u-8", 1, 0]]});
    assert_eq!(reward["lose"], lose);
    let spend = json!({"vouchers": {"before": 1000, "after": 500, "difference": -500}});
    assert_eq!(found["spend"], spend);
}

fn campaign(id: u32, priority: i32, at_least: u32) -> Json {
    json!({
        "id": id, "name": format!("c{id}"), "eventTypes": ["mart.order"],
        "subject": "data.user_id", "state": "active", "priority": priority,
        "counts": {"orders": {"window": "campaign"}},
        "steps": [{"name": "s", "when": {"operator": "gte", "lhs": "count.orders", "rhs": at_least},
            "actions": [{"name": "a", "kind": "reward", "to": "rewards", "reward": "R",
                "cost": {"budget": "shared", "amount": 1}}]}]})
}

/// Each side has budgets, groups and caps of its own, so the sides equal their backtests.
#[tokio::test(flavor = "multi_thread")]
async fn each_side_equals_its_backtest() {
    let world = World::with_example().await;
    let shared = json!([
        {"kind": "budget", "name": "shared", "unit": "points", "max": 6},
        {"kind": "cap", "name": "cap", "destinations": ["rewards"], "max": 3}]);
    let grouped = |mut campaign: Json, name: &str| {
        campaign["group"] = json!({"name": name, "mode": "first"});
        campaign
    };
    // Nothing of the third campaign meets the others.
    let mut alone = campaign(3, 0, 1);
    alone["budgets"] = json!({"shared": {"unit": "points", "max": 4}});
    alone["steps"][0]["actions"][0]["to"] = json!("elsewhere");
    let sides = [
        [grouped(campaign(1, 0, 1), "g"), grouped(campaign(2, 1, 2), "g"), alone.clone()],
        [grouped(campaign(1, 2, 2), "g"), grouped(campaign(2, 1, 2), "g"), alone],
    ];

    let compared =
        world.compare(json!({"before": sides[0], "after": sides[1], "shared": shared})).await;
    for (side, name) in sides.iter().zip(["before", "after"]) {
        let alone = world.backtest(json!({"campaigns": side, "shared": shared})).await;
        for step in alone["steps"].as_array().expect("steps") {
            let compared = compared["steps"].as_array().expect("steps");
            let found = compared.iter().find(|one| one["campaign"] == step["campaign"]);
            let found = &found.expect("a step")[name];
            for member in ["triggers", "subjects", "spend"] {
                assert_eq!(found[member], step[member], "{name} {member} {compared:?}");
            }
            let nonzero = |refused: &Json| {
                let members = refused.as_object().expect("refusals").clone();
                members.into_iter().filter(|(_, count)| *count != 0).collect::<Vec<_>>()
            };
            assert_eq!(nonzero(&found["refused"]), nonzero(&step["refused"]), "{name}");
        }
    }
    assert_ne!(compared["steps"][0]["before"], compared["steps"][0]["after"]);
}

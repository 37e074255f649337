//! Campaigns and streams of events that follow from a seed.

use super::{DAY_MS, START_MS};
use serde_json::{Value as Json, json};

/// Numbers that follow from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

fn leaf(random: &mut Random, steps: usize) -> Json {
    let order = random.one(&["eq", "ne", "gt", "gte", "lt", "lte"]);
    let small = random.below(4);
    let (operator, lhs, rhs) = match random.below(13) {
        0 | 1 => (random.one(&["eq", "ne"]), "var.country", json!(random.one(&["sg", "my", "id"]))),
        2 => ("in", "var.country", json!(["sg", random.one(&["my", "id"])])),
        3 => ("prefix", "var.country", json!(random.one(&["s", "m", ""]))),
        4 | 5 => (order, "var.amount", json!(random.below(10))),
        6 => ("exists", "var.amount", json!(random.chance(50))),
        7 => (order, "time.hour", json!(random.below(24))),
        8 => (order, random.one(&["count.a", "count.b", "count.c"]), json!(small)),
        9 => ("reaches", random.one(&["count.a", "count.b", "count.c"]), json!(small + 1)),
        10 => ("every", random.one(&["count.a", "count.b"]), json!(small + 1)),
        11 => ("eq", "segment.vip", json!(random.chance(70))),
        _ => (
            order,
            if steps > 1 && random.chance(50) { "usage.s1" } else { "usage.s0" },
            json!(small),
        ),
    };
    json!({"operator": operator, "lhs": lhs, "rhs": rhs})
}

fn rule(random: &mut Random, steps: usize, depth: u64) -> Json {
    if depth == 0 || random.chance(40) {
        return leaf(random, steps);
    }
    let operator = random.one(&["and", "or", "or", "not"]);
    let count = if operator == "not" { 1 } else { 1 + random.below(3) };
    let conditions: Vec<Json> = (0..count).map(|_| rule(random, steps, depth - 1)).collect();
    json!({"operator": operator, "conditions": conditions})
}

pub fn campaign(random: &mut Random, id: u32) -> Json {
    let steps = 1 + random.below(2) as usize;
    let period = |random: &mut Random| match random.below(3) {
        0 => json!("campaign"),
        1 => json!("day"),
        _ => json!({"last": "PT30H"}),
    };
    let mut step_list = Vec::new();
    for place in 0..steps {
        let mut action =
            json!({"name": "x", "kind": "reward", "to": random.one(&["r", "t"]), "reward": "R"});
        if random.chance(60) {
            let amount = match random.below(2) {
                0 => json!(1 + random.below(3)),
                _ => json!({"field": "var.amount", "percent": 50}),
            };
            action["cost"] = json!({"budget": random.one(&["own", "shared"]), "amount": amount});
        }
        let mut step = json!({"name": format!("s{place}"), "actions": [action]});
        if random.chance(80) {
            step["when"] = rule(random, steps, 2);
        }
        if random.chance(30) {
            step["variants"] = json!(["b"]);
        }
        step_list.push(step);
    }

    let filter = leaf(&mut Random(random.below(1 << 40) | 1), 1);
    let is_memory = filter["lhs"].as_str().is_some_and(|lhs| lhs.starts_with("var."));
    let mut counts = json!({
        "a": {"window": "campaign"},
        "b": {"window": {"calendar": random.one(&["day", "week"])},
              "value": {"field": "data.amount"}, "eventTypes": ["order", "other"]},
        "c": {"window": {"last": "PT20H"}, "eventTypes": [random.one(&["order", "other"])]}});
    if is_memory {
        counts["a"]["filter"] = filter;
    }

    let mut document = json!({
        "id": id, "name": format!("c{id}"), "eventTypes": ["order"], "subject": "data.user",
        "state": random.one(&["active", "active", "active", "shadow", "paused"]),
        "zone": random.one(&["UTC", "Asia/Tokyo", "America/New_York"]),
        "priority": random.below(3), "steps": step_list, "counts": counts,
        "budgets": {"own": {"unit": "points", "max": random.below(12),
                            "period": random.one(&["campaign", "day"])}},
        "experiment": {"key": "k", "coverage": 8000, "variants": [
            {"name": "a", "weight": 5000}, {"name": "b", "weight": 5000}]},
    });
    if random.chance(50) {
        document["rule"] = rule(random, steps, 2);
    }
    if random.chance(50) {
        document["activeFrom"] = json!(START_MS / 1_000 + random.below(100_000) as i64);
        document["activeUntil"] = json!(START_MS / 1_000 + 100_000 + random.below(200_000) as i64);
    }
    if random.chance(50) {
        let mut limit = json!({"per": random.one(&["subject", "var.country"]), "max": 1 + random.below(3), "period": period(random)});
        if random.chance(50) {
            limit["step"] = json!("s0");
        }
        document["limits"] = json!([limit]);
    }
    if random.chance(40) {
        document["group"] =
            json!({"name": random.one(&["g", "h"]), "mode": random.one(&["first", "best", "all"])});
    }
    if random.chance(20) {
        document["holdout"] = json!("h");
    }
    document
}

pub struct Sent {
    pub kind: &'static str,
    pub data: String,
    pub id: String,
    pub time_ms: i64,
    pub appended_ms: i64,
}

pub fn stream(random: &mut Random) -> Vec<Sent> {
    let mut now_ms = START_MS;
    let send = |place: u64| {
        now_ms += random.below(5 * 3_600_000) as i64;
        let late_ms = if random.chance(20) { random.below(30 * 3_600_000) as i64 } else { 0 };
        let mut data = json!({"user": format!("u{}", random.below(3)), "country": random.one(&["sg", "my", "id"])});
        if random.chance(80) {
            data["amount"] = json!(random.below(9));
        }
        if random.chance(5) {
            data["user"] = Json::Null;
        }
        Sent {
            kind: if random.chance(80) { "order" } else { "other" },
            data: data.to_string(),
            id: format!("e{place}"),
            time_ms: (now_ms - late_ms).max(START_MS - DAY_MS),
            appended_ms: now_ms,
        }
    };
    (0..60).map(send).collect()
}

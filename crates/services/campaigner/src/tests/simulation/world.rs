//! Campaigns and events that follow from a seed.

use crate::tests::stage::{HOUR_MS, START_MS};
use serde_json::{Value as Json, json};

/// Numbers that follow from a seed.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn of(seed: u64) -> Self {
        // Neighbouring seeds shall not begin alike.
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..4).for_each(|_| {
            random.below(2);
        });
        random
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The campaign whose rule asks the service that fails. Nothing about it ever changes.
pub const PATIENT: u32 = 9;

fn action(random: &mut Random, name: &str, is_delayed: bool) -> Json {
    let mut action = json!({"name": name, "kind": "message", "to": random.one(&["m", "r"]),
                            "template": "t"});
    if random.chance(50) {
        action["locale"] = json!("table.users.locale");
    }
    if random.chance(60) {
        action["cost"] = json!({"budget": random.one(&["own", "shared"]),
                                "amount": 1 + random.below(3)});
    }
    if is_delayed {
        action["delay"] = json!({"after": random.one(&["PT1H", "PT3H", "PT10H"])});
        if random.chance(70) {
            action["cancel"] = json!({"eventTypes": ["other"]});
        }
        // What it gives back, it gives back when its time comes: others must not wait for it.
        if random.chance(30) && action.get("cost").is_none() {
            action["recheck"] = json!({"operator": "eq", "lhs": "segment.vip", "rhs": true});
        }
    }
    action
}

fn leaf(random: &mut Random) -> Json {
    let count = random.one(&["count.all", "count.day", "count.rolling"]);
    match random.below(6) {
        0 => json!({"operator": "eq", "lhs": "segment.vip", "rhs": random.chance(70)}),
        1 => {
            // A rolling window goes down again, so that it has no every.
            let count = if count == "count.rolling" { "count.all" } else { count };
            json!({"operator": "every", "lhs": count, "rhs": 1 + random.below(3)})
        }
        2 => json!({"operator": "gte", "lhs": count, "rhs": random.below(4)}),
        3 => json!({"operator": "lt", "lhs": "usage.s0", "rhs": 1 + random.below(3)}),
        _ => json!({"operator": "reaches", "lhs": count, "rhs": 1 + random.below(4)}),
    }
}

/// Where a tally begins: with the log, or with the campaign.
fn history(random: &mut Random) -> &'static str {
    random.one(&["log", "none"])
}

/// Makes another tally of one of a campaign, which begins again, or the former one.
pub fn change_tally(random: &mut Random, campaign: &mut Json) {
    let counts = campaign["counts"].as_object_mut().unwrap();
    let count = counts[random.one(&["all", "day", "rolling"])].as_object_mut().unwrap();
    if count.remove("filter").is_none() {
        let filter = json!({"operator": "gte", "lhs": "var.n", "rhs": 2});
        count.insert("filter".to_owned(), filter);
    }
}

/// A campaign without lookups that fail.
pub fn campaign(random: &mut Random, id: u32) -> Json {
    let mut steps = Vec::new();
    for place in 0..1 + random.below(2) {
        let is_delayed = random.chance(40);
        let mut actions = vec![action(random, "a", is_delayed)];
        if random.chance(30) {
            actions.push(action(random, "b", false));
        }
        let when = leaf(random);
        steps.push(json!({"name": format!("s{place}"), "when": when, "actions": actions}));
    }

    let mut document = json!({
        "id": id, "name": format!("c{id}"), "eventTypes": ["order"], "subject": "data.user",
        "state": random.one(&["active", "active", "active", "shadow"]),
        "zone": random.one(&["UTC", "Asia/Tokyo"]),
        "priority": random.below(2), "steps": steps,
        "counts": {
            "all": {"window": "campaign", "history": history(random)},
            "day": {"window": {"calendar": "day"}, "eventTypes": ["order", "other"],
                    "history": history(random)},
            "rolling": {"window": {"last": "PT5H"}, "history": history(random)}},
        "budgets": {"own": {"unit": "points", "max": random.below(12),
                            "period": random.one(&["campaign", "day"])}},
        "templates": {"t": {"en": "{{ subject }}: {{ data.n }}", "de": "für {{ subject }}"}},
    });
    if random.chance(50) {
        document["limits"] = json!([{"max": 1 + random.below(3),
            "period": random.one(&["campaign", "day"])}]);
    }
    if random.chance(30) {
        document["group"] = json!({"name": "g", "mode": random.one(&["first", "best"])});
    }
    document
}

/// A campaign that grants once for each event of those whom the service likes.
pub fn patient() -> Json {
    json!({
        "id": PATIENT, "name": "patient", "eventTypes": ["order"], "subject": "data.user",
        "state": "active",
        "rule": {"operator": "eq", "lhs": "http.flaky.ok", "rhs": true},
        "steps": [{"name": "s", "actions": [
            {"name": "a", "kind": "reward", "to": "p", "reward": "R"}]}],
    })
}

/// An event, before it is sent.
pub struct Draft {
    pub id: String,
    pub kind: &'static str,
    pub time_ms: i64,
    pub data: String,
}

pub fn event(random: &mut Random, number: u64, now_ms: i64) -> Draft {
    let late_ms = if random.chance(15) { random.below(30 * HOUR_MS as u64) as i64 } else { 0 };
    let user = format!("u{}", random.below(4));
    Draft {
        id: format!("e{number}"),
        kind: random.one(&["order", "order", "order", "other"]),
        time_ms: (now_ms - late_ms).max(START_MS - 24 * HOUR_MS),
        data: json!({"user": user, "n": number}).to_string(),
    }
}

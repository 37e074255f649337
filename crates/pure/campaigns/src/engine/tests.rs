use super::*;
use crate::decision::{Decision, Reason};
use crate::index::Scratch;
use crate::states::{MemoryBudgets, MemoryStates};
use raingauge_core::event::Event;
use serde_json::{Value as Json, json};

/// An engine with what it remembers, for one stream of events.
pub(super) struct World {
    pub engine: Engine,
    pub states: MemoryStates,
    pub budgets: MemoryBudgets,
    pub answers: HashMap<LookupKey, Option<Json>>,
    /// All lookups that were wanted.
    pub wanted: Vec<LookupKey>,
}

impl World {
    pub fn new(documents: Documents) -> Self {
        Self {
            engine: Engine::new(documents),
            states: MemoryStates::default(),
            budgets: MemoryBudgets::default(),
            answers: HashMap::new(),
            wanted: Vec::new(),
        }
    }

    pub fn decide(&mut self, event: &Event<'_>, appended_ms: i64) -> Outcome {
        let at = At { appended_ms };
        let pending = self.engine.begin(event, at, &mut self.states, &mut Scratch::default());
        self.finish(pending)
    }

    pub fn finish(&mut self, mut pending: Pending<'_>) -> Outcome {
        loop {
            let mut answered = false;
            for key in self.engine.wants(&pending) {
                self.wanted.push(key.clone());
                if let Some(answer) = self.answers.get(&key) {
                    answered = true;
                    self.engine.feed(&mut pending, key, answer.clone());
                }
            }
            if !answered {
                break;
            }
        }
        let outcome = self.engine.decide(pending, &mut self.states, &mut self.budgets);
        self.states.note(&outcome.decisions);
        outcome
    }
}

pub(super) fn documents(campaigns: Vec<Json>) -> Documents {
    let release = |json: Json| {
        let campaign = Campaign::from_json(&json).unwrap_or_else(|problems| {
            panic!("{json} is refused: {problems:?}");
        });
        Release { version: 1, campaign, is_warming: false }
    };
    Documents {
        campaigns: campaigns.into_iter().map(release).collect(),
        late_after_ms: 86_400_000,
        ..Documents::default()
    }
}

/// 2024-09-24T00:00:00Z.
const START_MS: i64 = 1_727_136_000_000;
const HOUR_MS: i64 = 3_600_000;

fn mart_event(id: &str, data: &str, hour: i64) -> Event<'static> {
    let data: &'static str = Box::leak(data.to_owned().into_boxed_str());
    let event = Event::of_data("mart.order", START_MS + hour * HOUR_MS, data);
    Event { id: id.to_owned().into(), source: "mart".into(), ..event }
}

fn order(id: &str, user: &str, status: &str, hour: i64) -> Event<'static> {
    let data = json!({"user_id": user, "status": status, "country": "sg"}).to_string();
    mart_event(id, &data, hour)
}

/// The example of the published description of Trident, with limits and a budget.
fn mart() -> Json {
    json!({
        "id": 7, "name": "mart_three_orders", "eventTypes": ["mart.order"],
        "subject": "data.user_id", "zone": "Asia/Singapore", "state": "active",
        "activeFrom": 1727020800, "activeUntil": 1728230400,
        "counts": {"orders": {
            "filter": {"operator": "eq", "lhs": "var.status", "rhs": "completed"},
            "window": "campaign"}},
        "rule": {"operator": "eq", "lhs": "var.country", "rhs": "sg"},
        "steps": [
            {"name": "nudge", "when": {"operator": "reaches", "lhs": "count.orders", "rhs": 2},
             "actions": [{"name": "msg", "kind": "message", "to": "messages", "template": "one_more"}]},
            {"name": "reward", "when": {"operator": "reaches", "lhs": "count.orders", "rhs": 3},
             "actions": [
                {"name": "voucher", "kind": "reward", "to": "rewards", "reward": "MART5",
                 "cost": {"budget": "vouchers", "amount": 500}},
                {"name": "msg", "kind": "message", "to": "messages", "template": "congrats"}]}],
        "limits": [{"step": "reward", "per": "subject", "max": 1, "period": "campaign"}],
        "budgets": {"vouchers": {"unit": "SGD_cents", "max": 1000, "period": "campaign"}},
        "templates": {"one_more": {"en": "Make one more order to earn a reward"},
                      "congrats": {"en": "Congratulations, {{ subject }}!"}},
        "owner": "mart", "description": ""
    })
}

fn line(decision: &Decision) -> String {
    let Decision { step, name, subject, .. } = decision;
    format!("{subject} {step}/{name} {}", decision.reason.as_str())
}

fn lines(outcome: &Outcome) -> Vec<String> {
    outcome.decisions.iter().map(line).collect()
}

#[test]
fn the_worked_example() {
    let mut world = World::new(documents(vec![mart()]));
    let mut decide = |event: Event<'_>| {
        let outcome = world.decide(&event, event.time_ms);
        let ids = outcome.decisions.iter().filter(|decision| decision.is_granted());
        let ids: Vec<String> = ids.map(|decision| decision.action.to_string()).collect();
        (lines(&outcome), ids, outcome)
    };

    assert_eq!(decide(order("o-1", "u-7", "completed", 0)).0, [""; 0]);
    assert_eq!(decide(order("o-2", "u-7", "cancelled", 2)).0, [""; 0]);
    let (granted, ids, outcome) = decide(order("o-3", "u-7", "completed", 3));
    assert_eq!(granted, ["u-7 nudge/msg granted"]);
    assert_eq!(ids, ["act_3607a20a5c6e936874c9ec850d9ffaac"]);
    assert_eq!(
        outcome.decisions[0].evidence,
        json!({"trace": [
            {"leaf": "rule: var.country eq sg", "is": "sg", "holds": true},
            {"leaf": "nudge: count.orders reaches 2", "before": 1, "after": 2, "holds": true}]})
    );

    let (granted, ids, outcome) = decide(order("o-4", "u-7", "completed", 4));
    assert_eq!(granted, ["u-7 reward/voucher granted", "u-7 reward/msg granted"]);
    assert_eq!(
        ids,
        ["act_bb9282cf452742f1394a4bc3dcf9c8a8", "act_cf48d82d6f6722789c3ea39c14362ba2"]
    );
    let cost = outcome.decisions[0].cost.as_ref().unwrap();
    assert_eq!(
        (cost.amount, cost.budget.name.as_str(), cost.budget.campaign),
        (500, "vouchers", 7)
    );
    assert_eq!(decide(order("o-5", "u-7", "completed", 5)).0, [""; 0]);

    let mut later = Vec::new();
    for (place, user) in ["u-8", "u-8", "u-8", "u-9", "u-9", "u-9"].into_iter().enumerate() {
        let hour = 6 + place as i64;
        later.extend(decide(order(&format!("o-{hour}"), user, "completed", hour)).0);
    }
    assert_eq!(
        later,
        [
            "u-8 nudge/msg granted",
            "u-8 reward/voucher granted",
            "u-8 reward/msg granted",
            "u-9 nudge/msg granted",
            "u-9 reward/voucher budget_exhausted",
            "u-9 reward/msg budget_exhausted",
        ]
    );
    assert_eq!(world.budgets.reserved().values().copied().collect::<Vec<_>>(), [1_000]);
}

/// The event that was granted comes back long after, when the tally counts it again.
#[test]
fn an_action_is_granted_once() {
    let mut world = World::new(documents(vec![mart()]));
    for (id, hour) in [("o-1", 0), ("o-2", 1)] {
        world.decide(&order(id, "u-7", "completed", hour), START_MS);
    }

    let mut edited = mart();
    edited["steps"][0]["when"]["rhs"] = json!(3);
    world.engine = Engine::new(documents(vec![edited]));
    let outcome = world.decide(&order("o-2", "u-7", "completed", 1), START_MS);
    assert_eq!(outcome.repetitions, 1);
    assert_eq!(lines(&outcome), ["u-7 reward/voucher granted", "u-7 reward/msg granted"]);
}

/// A campaign on every event, with one step and these members in place of others.
fn simple(id: u32, members: Json) -> Json {
    let mut campaign = json!({
        "id": id, "name": format!("c{id}"), "eventTypes": ["mart.order"],
        "subject": "data.user_id", "state": "active",
        "steps": [{"name": "s", "actions": [
            {"name": "a", "kind": "reward", "to": "rewards", "reward": format!("R{id}")}]}]
    });
    for (name, value) in members.as_object().unwrap() {
        campaign[name] = value.clone();
    }
    campaign
}

fn only_reason(world: &mut World, event: &Event<'_>) -> Option<&'static str> {
    let outcome = world.decide(event, event.time_ms);
    assert!(outcome.decisions.len() <= 1, "{outcome:?}");
    outcome.decisions.first().map(|decision| decision.reason.as_str())
}

#[test]
fn what_is_outside_or_late_decides_nothing() {
    let from = START_MS / 1_000;
    let until = from + 7_200;
    let members = json!({"activeFrom": from, "activeUntil": until});
    let mut world = World::new(documents(vec![simple(1, members)]));
    let reasons: Vec<_> = [-1, 0, 1, 2]
        .map(|hour| only_reason(&mut world, &order(&format!("{hour}"), "u", "x", hour)))
        .into_iter()
        .collect();
    assert_eq!(reasons, [None, Some("granted"), Some("granted"), None]);

    let event = order("late", "u", "x", 1);
    let day_ms = 24 * HOUR_MS;
    let outcome = world.decide(&event, event.time_ms + day_ms + 1);
    assert_eq!((outcome.is_late, outcome.decisions.len()), (true, 0));
    assert_eq!(world.decide(&event, event.time_ms + day_ms).decisions.len(), 1);
    assert_eq!(only_reason(&mut world, &mart_event("n", r#"{"status": "x"}"#, 1)), None);
}

#[test]
fn paused_campaigns_count_and_shadows_keep_to_themselves() {
    let mut paused = mart();
    paused["state"] = json!("paused");
    let mut world = World::new(documents(vec![paused]));
    for (id, hour) in [("o-1", 0), ("o-2", 1)] {
        assert_eq!(world.decide(&order(id, "u-7", "completed", hour), START_MS).decisions, []);
    }

    let mut shadow = mart();
    shadow["state"] = json!("shadow");
    world.engine = Engine::new(documents(vec![shadow]));
    let event = order("o-3", "u-7", "completed", 2);
    let outcome = world.decide(&event, START_MS);
    assert_eq!(lines(&outcome), ["u-7 reward/voucher shadow", "u-7 reward/msg shadow"]);
    assert!(outcome.decisions.iter().all(|decision| !decision.is_granted()));
    let (budget, _) = world.budgets.reserved().first_key_value().unwrap();
    assert_eq!(budget.name, "shadow/vouchers");

    // The usage of the shadow is not that of the campaign.
    let mut all = mart();
    all["steps"][1]["when"]["rhs"] = json!(4);
    world.engine = Engine::new(documents(vec![all]));
    let outcome = world.decide(&order("o-4", "u-7", "completed", 3), START_MS);
    assert_eq!(lines(&outcome), ["u-7 reward/voucher granted", "u-7 reward/msg granted"]);
}

#[test]
fn the_first_gate_that_refuses_is_the_reason() {
    let experiment = json!({"key": "mart-3rd-order", "variants": [
        {"name": "control", "weight": 5000}, {"name": "b", "weight": 5000}]});
    let mut gated = simple(
        1,
        json!({"experiment": experiment, "holdout": "all", "limits": [{"max": 1, "period": "campaign"}],
               "budgets": {"b": {"unit": "points", "max": 1}}}),
    );
    gated["steps"][0]["variants"] = json!(["b"]);
    gated["steps"][0]["actions"][0]["cost"] = json!({"budget": "b", "amount": 1});
    let holdout = |share| Holdout { seed: "s".to_owned(), share };

    let mut all = documents(vec![gated]);
    all.holdouts.insert("all".to_owned(), holdout(10_000));
    let mut world = World::new(all.clone());
    assert_eq!(only_reason(&mut world, &order("1", "u-42", "x", 0)), Some("holdout"));

    all.holdouts.insert("all".to_owned(), holdout(0));
    world.engine = Engine::new(all);
    let reasons = [("1", "u-42"), ("2", "u-7"), ("3", "u-7"), ("4", "u-2")]
        .map(|(id, user)| only_reason(&mut world, &order(id, user, "x", 1)).unwrap());
    assert_eq!(reasons, ["control", "granted", "limit_reached", "budget_exhausted"]);
}

#[test]
fn exposures_are_noted_once_for_control_too() {
    let experiment = json!({"key": "mart-3rd-order", "unit": "data.user_id", "variants": [
        {"name": "control", "weight": 5000}, {"name": "b", "weight": 5000}]});
    let mut campaign = simple(1, json!({"experiment": experiment}));
    campaign["steps"][0]["variants"] = json!(["b"]);
    let mut world = World::new(documents(vec![campaign]));
    let exposures = [("1", "u-42"), ("2", "u-42"), ("3", "u-7"), ("4", "u-7")].map(|(id, user)| {
        let outcome = world.decide(&order(id, user, "x", 0), START_MS);
        outcome.exposures.into_iter().filter_map(|exposure| exposure.variant).collect::<Vec<_>>()
    });
    assert_eq!(exposures, [vec!["control".to_owned()], vec![], vec!["b".to_owned()], vec![]]);
}

#[test]
fn groups_choose_by_priority_or_by_cost() {
    let of = |id: u32, mode: &str, priority: i32, cost: i64| {
        let mut campaign = simple(
            id,
            json!({"group": {"name": "g", "mode": mode}, "priority": priority,
                   "budgets": {"b": {"unit": "points", "max": 10}}}),
        );
        campaign["steps"][0]["actions"][0]["cost"] = json!({"budget": "b", "amount": cost});
        campaign
    };
    let decided = |campaigns: Vec<Json>| {
        let mut world = World::new(documents(campaigns));
        let outcome = world.decide(&order("1", "u", "x", 0), START_MS);
        let line = |decision: &Decision| (decision.campaign, decision.reason.as_str());
        outcome.decisions.iter().map(line).collect::<Vec<_>>()
    };

    let first = vec![of(1, "first", 0, 1), of(2, "first", 5, 11), of(3, "first", 1, 1)];
    assert_eq!(decided(first), [(2, "budget_exhausted"), (3, "granted"), (1, "group_lost")]);
    let best = vec![of(1, "best", 9, 2), of(2, "best", 0, 7), of(3, "best", 1, 11)];
    assert_eq!(decided(best), [(1, "group_lost"), (3, "budget_exhausted"), (2, "granted")]);
    let all = vec![of(1, "all", 0, 1), of(2, "all", 0, 1)];
    assert_eq!(decided(all), [(1, "granted"), (2, "granted")]);
}

#[test]
fn caps_hold_over_all_campaigns() {
    let mut all = documents(vec![simple(1, json!({})), simple(2, json!({})), simple(3, json!({}))]);
    let cap = Cap { destinations: vec!["rewards".to_owned()], max: 2, zone: utc() };
    all.caps.insert("rewards".to_owned(), cap);
    let mut world = World::new(all);
    let mut reasons = |id: &str, hour: i64| {
        let outcome = world.decide(&order(id, "u", "x", hour), START_MS + hour * HOUR_MS);
        outcome.decisions.iter().map(|decision| decision.reason).collect::<Vec<_>>()
    };
    assert_eq!(reasons("1", 0), [Reason::Granted, Reason::Granted, Reason::CapReached]);
    assert_eq!(reasons("2", 23), [Reason::CapReached; 3]);
    assert_eq!(reasons("3", 24), [Reason::Granted, Reason::Granted, Reason::CapReached]);
}

#[test]
fn usage_is_what_was_granted_before() {
    let rule = json!({"operator": "lt", "lhs": "usage.s", "rhs": 2});
    let mut world = World::new(documents(vec![simple(1, json!({"rule": rule}))]));
    let reasons = ["1", "2", "3"].map(|id| only_reason(&mut world, &order(id, "u", "x", 0)));
    assert_eq!(reasons, [Some("granted"), Some("granted"), None]);
}

/// Events that campaigns emit trigger others, and that ends somewhere.
#[test]
fn a_chain_of_emitted_events_ends() {
    let mut campaign = simple(1, json!({}));
    campaign["steps"][0]["actions"] =
        json!([{"name": "a", "kind": "emit", "to": "log", "eventType": "mart.order"}]);
    let mut world = World::new(documents(vec![campaign]));
    let reasons = [0, 2, 3].map(|depth| {
        let data = json!({"user_id": "u", "campaign": {"depth": depth}}).to_string();
        only_reason(&mut world, &mart_event(&depth.to_string(), &data, 0))
    });
    assert_eq!(reasons, [Some("granted"), Some("granted"), Some("cap_reached")]);
}

/// Any value of an event may be limited, also one that is too long for a key.
#[test]
fn a_limit_holds_for_long_values_too() {
    let members = json!({"limits": [{"per": "var.status", "max": 1, "period": "day"}]});
    let mut world = World::new(documents(vec![simple(1, members)]));
    let long = ["a", "b"].map(|letter| letter.repeat(300));
    let reasons = [("1", &long[0]), ("2", &long[0]), ("3", &long[1])]
        .map(|(id, status)| only_reason(&mut world, &order(id, "u", status, 0)));
    assert_eq!(reasons, [Some("granted"), Some("limit_reached"), Some("granted")]);
}

/// A high limit writes no row for each subject.
#[test]
fn a_limit_that_nobody_reaches_is_not_tracked() {
    let states_with = |max: i64| {
        let members = json!({"limits": [{"max": max, "period": "day"}]});
        let mut world = World::new(documents(vec![simple(1, members)]));
        assert_eq!(only_reason(&mut world, &order("1", "u", "x", 0)), Some("granted"));
        world.states.len()
    };
    assert_eq!((states_with(99_999), states_with(100_000)), (1, 0));
}

fn table(name: &str, key: &str) -> LookupKey {
    LookupKey {
        class: LookupClass::Table,
        name: name.to_owned(),
        key: key.to_owned(),
        range_s: None,
    }
}

/// The external service is asked only when the table says yes, and a failure holds the evaluation.
#[test]
fn lookups_are_asked_for_in_the_order_of_their_cost() {
    let rule = json!({"operator": "and", "conditions": [
        {"operator": "lt", "lhs": "http.risk.score.value", "rhs": 50},
        {"operator": "eq", "lhs": "table.users.tier", "rhs": "gold"},
        {"operator": "eq", "lhs": "var.status", "rhs": "completed"}]});
    let mut world = World::new(documents(vec![simple(1, json!({"rule": rule}))]));
    let risk = LookupKey { class: LookupClass::Http, ..table("risk", "u") };
    world.answers.insert(table("users", "u"), Some(json!({"tier": "silver"})));
    world.answers.insert(table("users", "v"), Some(json!({"tier": "gold"})));

    assert_eq!(only_reason(&mut world, &order("1", "u", "cancelled", 0)), None);
    assert_eq!(world.wanted, []);
    assert_eq!(only_reason(&mut world, &order("2", "u", "completed", 0)), None);
    assert_eq!(world.wanted, [table("users", "u")]);

    world.wanted.clear();
    let event = order("3", "v", "completed", 0);
    let risk = LookupKey { key: "v".to_owned(), ..risk };
    world.answers.insert(risk.clone(), None);
    let outcome = world.decide(&event, START_MS);
    assert_eq!(world.wanted, [table("users", "v"), risk.clone()]);
    assert_eq!(outcome.decisions, []);
    let held = outcome.held.unwrap();
    assert_eq!((held.campaigns.as_slice(), held.answers.len()), (&[1][..], 1));

    // What is stored is read again, and the answer that was there is not asked for.
    let stored = serde_json::to_string(&held).unwrap();
    let held: Held = serde_json::from_str(&stored).unwrap();
    world.wanted.clear();
    world.answers.insert(risk.clone(), Some(json!({"score": {"value": 7.5}})));
    let pending = world.engine.resume(&event, &held, &mut world.states);
    let outcome = world.finish(pending);
    assert_eq!(lines(&outcome), ["v s/a granted"]);
    assert_eq!(world.wanted, [risk]);
}

#[test]
fn a_lookup_that_may_fail_does_not_hold() {
    let rule = json!({"operator": "not", "conditions": [
        {"operator": "eq", "lhs": "segment.vip", "rhs": true}]});
    let mut all = documents(vec![simple(1, json!({"rule": rule}))]);
    let may_fail = LookupRule { on_error: OnError::False, ..LookupRule::default() };
    all.lookups.insert("segment.vip".to_owned(), may_fail);
    let mut world = World::new(all);
    let key = LookupKey { class: LookupClass::Segment, ..table("vip", "u") };
    world.answers.insert(key, None);
    assert_eq!(only_reason(&mut world, &order("1", "u", "x", 0)), Some("granted"));
}

#[test]
fn counters_and_zones_are_looked_up() {
    let members = json!({
        "zone": "table.users.zone",
        "counts": {"month": {"window": {"counter": "orders:user:{user_id}", "last": "P30D"}}},
        "rule": {"operator": "and", "conditions": [
            {"operator": "gte", "lhs": "count.month", "rhs": 5},
            {"operator": "eq", "lhs": "time.hour", "rhs": 9}]}});
    let mut world = World::new(documents(vec![simple(1, members)]));
    // 00:20 UTC is 09:20 in Tokyo.
    let event = order("1", "u", "x", 0);
    let event = Event { time_ms: event.time_ms + 20 * 60_000, ..event };
    world.answers.insert(table("users", "u"), Some(json!({"zone": "Asia/Tokyo"})));
    let range_s = Some((START_MS / 1_000 + 900 - 30 * 86_400, START_MS / 1_000 + 1_800));
    let counter = LookupKey {
        class: LookupClass::Counter,
        name: "orders:user:{user_id}".to_owned(),
        key: "orders:user:u".to_owned(),
        range_s,
    };
    world.answers.insert(counter.clone(), Some(json!(5)));
    assert_eq!(only_reason(&mut world, &event), Some("granted"));
    assert_eq!(world.wanted, [table("users", "u"), counter]);
}

#[test]
fn delayed_actions_are_cancelled_and_rechecked() {
    let mut campaign =
        simple(1, json!({"rule": {"operator": "eq", "lhs": "var.status", "rhs": "cart"}}));
    campaign["steps"][0]["actions"][0]["delay"] = json!({"after": "PT1H"});
    campaign["steps"][0]["actions"][0]["cancel"] = json!({"eventTypes": ["mart.order"],
        "rule": {"operator": "eq", "lhs": "var.status", "rhs": "completed"}});
    campaign["steps"][0]["actions"][0]["recheck"] =
        json!({"operator": "eq", "lhs": "segment.vip", "rhs": true});
    let mut world = World::new(documents(vec![campaign]));

    let cart = order("1", "u", "cart", 0);
    let outcome = world.decide(&cart, cart.time_ms);
    let delayed = &outcome.decisions[0];
    assert_eq!((delayed.reason, delayed.due_ms), (Reason::Delayed, START_MS + HOUR_MS));

    // Another subject cancels nothing; the own one does, once, and only before the time.
    assert_eq!(world.decide(&order("2", "v", "completed", 0), START_MS + 1).cancelled, []);
    let early = world.decide(&order("3", "u", "completed", 0), START_MS + 2);
    assert_eq!(early.cancelled, [(delayed.due_ms, delayed.action)]);
    assert_eq!(world.decide(&order("4", "u", "completed", 0), START_MS + 3).cancelled, []);
    world.decide(&order("5", "u", "cart", 0), START_MS + 4);
    let due = world.decide(&order("6", "u", "completed", 1), START_MS + HOUR_MS);
    assert_eq!(due.cancelled, []);

    let mut recheck = world.engine.recheck(&cart, (1, "s", "a")).unwrap();
    assert_eq!(world.engine.recheck_result(&recheck), None);
    let key = world.engine.wants(&recheck).remove(0);
    world.engine.feed(&mut recheck, key, Some(json!(false)));
    assert_eq!(world.engine.recheck_result(&recheck), Some(false));
    assert!(world.engine.recheck(&cart, (1, "s", "b")).is_none());
}

#[test]
fn an_explanation_names_the_first_reason_and_the_nearest_change() {
    let mut world = World::new(documents(vec![mart()]));
    let mut explain = |event: Event<'_>, appended_ms: i64| {
        let at = At { appended_ms };
        let mut scratch = Scratch::default();
        let mut pending = world.engine.begin(&event, at, &mut world.states, &mut scratch);
        let explanation = world.engine.explain(&mut pending, 7, &mut world.states).unwrap();
        serde_json::to_value(explanation).unwrap()
    };

    explain(order("o-1", "u-7", "completed", 0), START_MS);
    let country = json!({"leaf": "rule: var.country eq sg", "is": "sg", "holds": true});
    let reaches = |step: &str, count: i64| {
        let leaf = format!("{step}: count.orders reaches {count}");
        json!({"leaf": leaf, "before": 1, "after": 1, "holds": false})
    };
    let change = |step: &str, wants: &str| json!({"step": step, "change": [{"lhs": "count.orders", "is": 1, "wants": wants}]});
    assert_eq!(
        explain(order("o-2", "u-7", "cancelled", 2), START_MS),
        json!({
            "code": "step_false",
            "trace": [country, reaches("nudge", 2), reaches("reward", 3)],
            "nearest": [change("nudge", "reaches 2"), change("reward", "reaches 3")]})
    );

    let abroad = mart_event("o-9", r#"{"user_id": "u-7", "country": "my"}"#, 3);
    assert_eq!(explain(abroad, START_MS)["code"], "rule_false");
    assert_eq!(explain(mart_event("o-9", "{}", 3), START_MS)["code"], "no_subject");
    assert_eq!(explain(order("o-9", "u-7", "x", 3), START_MS * 2)["code"], "too_late");
    assert_eq!(explain(order("o-9", "u-7", "x", 9_999), START_MS)["code"], "outside_activity");
    assert_eq!(explain(order("o-3", "u-7", "completed", 3), START_MS)["code"], Json::Null);
}

use super::*;
use serde_json::json;

fn mart() -> Json {
    json!({
        "id": 7, "name": "mart_three_orders", "eventTypes": ["mart.order"],
        "subject": "data.user_id", "zone": "Asia/Singapore", "state": "active",
        "activeFrom": 1727020800, "activeUntil": 1728230400,
        "counts": {
            "orders": {"filter": {"operator": "eq", "lhs": "var.status", "rhs": "completed"}, "window": "campaign"},
            "today": {"window": {"calendar": "day"}, "value": {"field": "data.total", "scale": 100}, "history": "none"},
            "recent": {"window": {"last": "PT24H"}, "eventTypes": ["mart.order", "ride"]},
            "month": {"window": {"counter": "orders:user:{user_id}", "last": "P30D"}}},
        "rule": {"operator": "eq", "lhs": "var.country", "rhs": "sg"},
        "steps": [
            {"name": "nudge", "when": {"operator": "reaches", "lhs": "count.orders", "rhs": 2},
             "actions": [{"name": "msg", "kind": "message", "to": "messages", "template": "one_more",
                          "locale": "table.users.locale", "recipient": "var.driver_id",
                          "delay": {"after": "PT8H"}, "quiet": {"from": "22:00", "to": "08:00"},
                          "cancel": {"eventTypes": ["mart.order"]},
                          "recheck": {"operator": "eq", "lhs": "segment.vip", "rhs": true}}]},
            {"name": "reward", "when": {"operator": "reaches", "lhs": "count.orders", "rhs": 3}, "variants": ["b"],
             "actions": [
                {"name": "voucher", "kind": "reward", "to": "rewards", "reward": "MART5",
                 "cost": {"budget": "vouchers", "amount": 500, "refund": false}},
                {"name": "points", "kind": "points", "to": "points", "amount": "var.total", "multipliers": {"tier": 2}},
                {"name": "event", "kind": "emit", "to": "log", "eventType": "mart.rewarded", "body": {"user": "{{ subject }}"}}]}],
        "limits": [{"step": "reward", "per": "subject", "max": 1, "period": "campaign"}],
        "budgets": {"vouchers": {"unit": "SGD_cents", "max": 1000, "period": "campaign"}},
        "experiment": {"key": "k", "unit": "subject", "hash": "growthbook2", "coverage": 10000,
                       "variants": [{"name": "a", "weight": 5000}, {"name": "b", "weight": 5000}]},
        "holdout": "all", "group": {"name": "mart", "mode": "first"}, "priority": 3,
        "templates": {"one_more": {"en": "Make one more order to earn a reward"}},
        "owner": "mart", "description": "three orders"
    })
}

#[test]
fn a_document_leads_back_to_itself() {
    let campaign = Campaign::from_json(&mart()).unwrap();
    assert_eq!(serde_json::to_value(&campaign).unwrap(), mart());
    assert_eq!(campaign.activity_ms(), (1_727_020_800_000, 1_728_230_400_000));

    let small = json!({"name": "n", "eventTypes": ["t"], "steps": [
        {"name": "s", "actions": [{"name": "a", "kind": "webhook", "to": "d"}]}]});
    let campaign = Campaign::from_json(&small).unwrap();
    assert_eq!(
        (campaign.id, campaign.state, campaign.subject.as_str()),
        (0, State::Draft, "subject")
    );
    let again = Campaign::from_json(&serde_json::to_value(&campaign).unwrap()).unwrap();
    assert_eq!(again, campaign);
}

/// Replaces what is at a pointer, and answers the fields of all problems.
fn problems_with(changes: &[(&str, Json)]) -> Vec<String> {
    let mut json = mart();
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        match json.pointer_mut(parent).unwrap() {
            Json::Array(values) => values[name.parse::<usize>().unwrap()] = value.clone(),
            parent => parent[name] = value.clone(),
        }
    }
    match Campaign::from_json(&json) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.into_iter().map(|problem| problem.field).collect(),
    }
}

#[test]
fn each_fault_is_found_where_it_is() {
    let leaf = |operator: &str, lhs: &str, rhs: Json| json!({"operator": operator, "lhs": lhs, "rhs": rhs});
    let when = "/steps/0/when";
    for (pointer, value, field) in [
        ("/id", json!(1_000_000), "id"),
        ("/name", json!(" "), "name"),
        ("/eventTypes", json!([]), "eventTypes"),
        ("/subject", json!("user"), "subject"),
        ("/zone", json!("Mars/Olympus"), "zone"),
        ("/activeUntil", json!(1727020800), "activeUntil"),
        ("/activeFrom", json!(-1), "activeFrom"),
        ("/counts/orders/filter", leaf("eq", "segment.vip", json!(true)), "counts.orders.filter"),
        ("/counts/recent/value", json!({"field": "data.total"}), "counts.recent.value"),
        ("/counts/month/filter", leaf("eq", "var.a", json!(1)), "counts.month"),
        ("/counts/a b", json!({"window": "campaign"}), "counts.a b"),
        (when, leaf("reaches", "count.month", json!(3)), "steps[0].when"),
        (when, leaf("every", "count.recent", json!(3)), "steps[0].when"),
        (when, leaf("gte", "count.recent", json!(257)), "steps[0].when"),
        (when, leaf("gte", "count.recent", json!(1e20)), "steps[0].when"),
        (when, leaf("reaches", "count.none", json!(3)), "steps[0].when"),
        (when, leaf("reaches", "usage.reward", json!(3)), "steps[0].when"),
        (when, leaf("gte", "usage.none", json!(3)), "steps[0].when"),
        (when, leaf("like", "var.a", json!(3)), "steps[0].when"),
        ("/steps/0/name", json!("reward"), "steps[1].name"),
        ("/steps/1/variants", json!(["c"]), "steps[1].variants"),
        ("/steps/0/actions", json!([]), "steps[0].actions"),
        ("/steps/0/actions/0/template", json!("none"), "steps[0].actions[0].template"),
        ("/steps/0/actions/0/reward", json!("R"), "steps[0].actions[0].reward"),
        ("/steps/0/actions/0/locale", json!("count.orders"), "steps[0].actions[0].locale"),
        ("/steps/0/actions/0/delay", json!({"after": "P91D"}), "steps[0].actions[0].delay"),
        (
            "/steps/0/actions/0/quiet",
            json!({"from": "22:00", "to": "22:00"}),
            "steps[0].actions[0].quiet",
        ),
        ("/steps/0/actions/0/cancel/eventTypes", json!([]), "steps[0].actions[0].cancel"),
        (
            "/steps/0/actions/0/recheck",
            leaf("gte", "count.orders", json!(1)),
            "steps[0].actions[0].recheck",
        ),
        (
            "/steps/0/actions/0/recheck",
            leaf("lt", "usage.reward", json!(1)),
            "steps[0].actions[0].recheck",
        ),
        ("/steps/1/actions/0/cancel", json!({"eventTypes": ["t"]}), "steps[1].actions[0]"),
        ("/steps/1/actions/0/cost/amount", json!(-1), "steps[1].actions[0].cost"),
        ("/steps/1/actions/1/points", json!(5), "steps[1].actions[1]"),
        ("/steps/1/actions/2/eventType", json!(""), "steps[1].actions[2].eventType"),
        ("/limits/0/step", json!("none"), "limits[0].step"),
        ("/limits/0/max", json!(0), "limits[0]"),
        ("/budgets/vouchers/max", json!(-1), "budgets.vouchers"),
        ("/experiment/coverage", json!(10_001), "experiment"),
        ("/group/name", json!(""), "group.name"),
        ("/templates/one_more", json!({}), "templates.one_more"),
        ("/templates/one_more", json!({"en": "{{ subject "}), "templates"),
        ("/templates/one_more", json!({"en": "{{ password }}"}), "templates"),
        ("/steps/1/actions/2/body", json!({"a": ["{{ nobody }}"]}), "steps[1].actions[2].body"),
    ] {
        assert_eq!(problems_with(&[(pointer, value.clone())]), [field], "{pointer} {value}");
    }
}

#[test]
fn a_member_of_a_wrong_kind_is_named() {
    for (pointer, value, field) in [
        ("/steps/1/actions/0/kind", json!("gift"), "steps[1].actions[0].kind"),
        ("/counts/orders/window", json!("year"), "counts.orders.window"),
        ("/counts/orders/window", json!({"last": "a day"}), "counts.orders.window"),
        ("/limits/0/max", json!("many"), "limits[0].max"),
        ("/state", json!("running"), "state"),
        ("/steps/0/then", json!([]), "steps[0].then"),
    ] {
        assert_eq!(problems_with(&[(pointer, value.clone())]), [field], "{pointer} {value}");
    }
}

#[test]
fn all_faults_are_reported_together() {
    let changes = [
        ("/name", json!("")),
        ("/counts/recent/value", json!(2)),
        ("/steps/0/when/lhs", json!("count.none")),
        ("/limits/0/max", json!(0)),
    ];
    assert_eq!(
        problems_with(&changes),
        ["name", "counts.recent.value", "steps[0].when", "limits[0]"]
    );
}

/// A zone that differs by subject cannot cut periods that all share.
#[test]
fn a_zone_of_a_table_is_for_conditions() {
    let zone = ("/zone", json!("table.users.zone"));
    assert_eq!(problems_with(std::slice::from_ref(&zone)), ["zone"]);
    let without = [
        zone,
        ("/counts/today/window", json!("campaign")),
        ("/steps/0/actions/0/quiet/zone", json!("UTC")),
    ];
    assert_eq!(problems_with(&without), [""; 0]);
}

#[test]
fn the_conditions_of_rule_and_step_are_counted_together() {
    let leaf = json!({"operator": "eq", "lhs": "var.a", "rhs": 1});
    let group = |count: usize| json!({"operator": "or", "conditions": vec![leaf.clone(); count]});
    assert_eq!(problems_with(&[("/rule", group(63))]), [""; 0]);
    assert_eq!(problems_with(&[("/rule", group(64))]), ["steps[0].when", "steps[1].when"]);
}

//! Documents that are refused, each for its reason.

use crate::document::ProgrammeDocument;
use serde_json::{Value as Json, json};

/// The paths of all problems of a programme with these members.
fn problems(members: Json) -> Vec<String> {
    let mut document = json!({"programme": "p"});
    let (Json::Object(all), Json::Object(more)) = (&mut document, members) else { panic!() };
    all.extend(more);
    match ProgrammeDocument::parse(&document) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.into_iter().map(|problem| problem.field).collect(),
    }
}

fn rule(members: Json) -> Vec<String> {
    let mut rule = json!({"id": 1, "name": "order", "eventType": "order", "member": "data.m",
        "amount": "data.amount"});
    let (Json::Object(all), Json::Object(more)) = (&mut rule, members) else { panic!() };
    all.extend(more);
    all.retain(|_, value| !value.is_null());
    problems(json!({"rules": [rule], "tables": {"x": {"by": ["data.x"], "rows": {"a": 1.5}},
        "y": {"by": ["tier"], "default": 1.234567890123}, "z": {"by": ["data.z"],
        "default": 1.23456789}}}))
}

#[test]
fn a_plain_programme_is_sound() {
    assert_eq!(problems(json!({})), [""; 0]);
    assert_eq!(rule(json!({"factors": ["x", "y"]})), [""; 0]);
    assert_eq!(rule(json!({"amount": null, "points": 5})), [""; 0]);
    assert_eq!(rule(json!({"amount": null, "reverses": "data.order"})), [""; 0]);
}

#[test]
fn heads_are_checked() {
    assert_eq!(problems(json!({"programme": "a b"})), ["programme"]);
    assert_eq!(problems(json!({"programme": "p".repeat(41)})), ["programme"]);
    assert_eq!(problems(json!({"unit": ""})), ["unit"]);
    assert_eq!(problems(json!({"timezone": "Asia/Atlantis"})), ["timezone"]);
    assert_eq!(problems(json!({"decimals": 5})), ["decimals"]);
    assert_eq!(problems(json!({"rounding": "up_half"})), ["rounding"]);
    assert_eq!(problems(json!({"pendingDays": 366})), ["pendingDays"]);
    assert_eq!(problems(json!({"holdHours": 0})), ["holdHours"]);
    assert_eq!(problems(json!({"arrearsFloor": 1})), ["arrearsFloor", "arrearsFloor"]);
    assert_eq!(problems(json!({"remindDays": [0]})), ["remindDays"]);
    assert_eq!(problems(json!({"adjustReview": 0.5})), ["adjustReview"]);
    assert_eq!(problems(json!({"unknown": 1})), ["unknown"]);
}

#[test]
fn expiries_are_checked() {
    let expiry = |expiry: Json| problems(json!({"expiry": expiry}));
    assert_eq!(expiry(json!({"kind": "activity"})), ["expiry.months"]);
    assert_eq!(expiry(json!({"kind": "activity", "months": 0})), ["expiry.months"]);
    assert_eq!(expiry(json!({"kind": "never", "months": 1})), ["expiry.months"]);
    assert_eq!(expiry(json!({"kind": "yearly"})), ["expiry.date"]);
    assert_eq!(expiry(json!({"kind": "yearly", "date": "02-29"})), ["expiry.date"]);
    assert_eq!(expiry(json!({"kind": "yearly", "date": "12-31"})), [""; 0]);
    let pending = |months: u16, days: u16| {
        problems(json!({"pendingDays": days,
            "expiry": {"kind": "yearly", "date": "12-31", "months": months}}))
    };
    assert_eq!(pending(1, 28), [""; 0]);
    assert_eq!(pending(1, 29), ["expiry.months"]);
    // Without months, points that are pending on the date have that of the next year.
    assert_eq!(pending(0, 30), [""; 0]);
    let until = json!({"kind": "activity", "months": 1, "until": "day"});
    assert_eq!(expiry(until), ["expiry.until"]);
    assert_eq!(expiry(json!({"kind": "never", "reinstateDays": 28})), ["expiry.reinstateDays"]);
    assert_eq!(expiry(json!({"kind": "never", "graceHours": 241})), ["expiry.graceHours"]);
}

#[test]
fn tiers_are_checked() {
    let tiers = |levels: Json| problems(json!({"tiers": {"window": "month", "levels": levels}}));
    let level = |name: &str, from: i64| json!({"name": name, "from": from});
    assert_eq!(tiers(json!([level("a", 0), level("b", 1)])), [""; 0]);
    assert_eq!(tiers(json!([level("a", 1)])), ["tiers.levels"]);
    assert_eq!(tiers(json!([level("a", 0), level("b", 0)])), ["tiers.levels"]);
    assert_eq!(tiers(json!([level("a", 0), level("a", 1)])), ["tiers.levels"]);
    let kept = json!({"tiers": {"window": "month", "keepMonths": 2, "levels": [level("a", 0)]}});
    assert_eq!(problems(kept), ["tiers.keepMonths"]);
}

#[test]
fn tables_and_rules_are_checked() {
    let table = |table: Json| problems(json!({"tables": {"x": table}}));
    assert_eq!(table(json!({"by": [], "default": 1})), ["tables.x.by"]);
    assert_eq!(table(json!({"by": ["country"], "default": 1})), ["tables.x.by[0]"]);
    assert_eq!(table(json!({"by": ["data.a"]})), ["tables.x.rows"]);
    let rows = json!({"by": ["data.a", "data.b"], "rows": {"SG": 1}});
    assert_eq!(table(rows), ["tables.x.rows.SG"]);
    assert_eq!(table(json!({"by": ["data.a"], "rows": {"SG.x": 1}})), [""; 0]);
    assert_eq!(table(json!({"by": ["data.a"], "rows": {"SG": -1}})), ["tables.x.rows.SG"]);

    assert_eq!(rule(json!({"id": 0})), ["rules[0].id"]);
    assert_eq!(rule(json!({"member": null})), ["rules[0].member"]);
    assert_eq!(rule(json!({"eventType": "raingauge.points.awarded"})), ["rules[0].eventType"]);
    assert_eq!(rule(json!({"amount": null})), ["rules[0].amount"]);
    assert_eq!(rule(json!({"points": 5})), ["rules[0].amount"]);
    assert_eq!(rule(json!({"amount": "amount"})), ["rules[0].amount"]);
    assert_eq!(rule(json!({"factors": ["none"]})), ["rules[0].factors"]);
    assert_eq!(rule(json!({"factors": ["x", "x"]})), ["rules[0].factors"]);
    assert_eq!(rule(json!({"factors": ["y", "z"]})), ["rules[0].factors"]);
    assert_eq!(rule(json!({"perEventMax": 0.5})), ["rules[0].perEventMax"]);
    assert_eq!(rule(json!({"activeFrom": "soon"})), ["rules[0].activeFrom"]);
    let filter = json!({"operator": "like", "lhs": "data.a", "rhs": 1});
    assert_eq!(rule(json!({"filter": filter})), ["rules[0].filter"]);
}

#[test]
fn partners_budgets_and_rewards_are_checked() {
    let partner = |partner: Json| problems(json!({"partners": [partner]}));
    for name in ["events", "campaigns"] {
        assert_eq!(partner(json!({ "name": name })), ["partners[0].name"]);
        assert_eq!(problems(json!({ "formerPartners": [name] })), ["formerPartners[0]"]);
    }
    assert_eq!(problems(json!({"formerPartners": ["a", "a/b"]})), ["formerPartners[1]"]);
    let own = json!({"name": "a", "ownFactors": {"max": 0}});
    assert_eq!(partner(own), ["partners[0].ownFactors.max"]);
    let rate = json!({"name": "a", "exchange": {"give": 0, "get": 1}});
    assert_eq!(partner(rate), ["partners[0].exchange"]);
    assert_eq!(problems(json!({"budgets": {"a": {"limit": -1}}})), ["budgets.a.limit"]);
    let reward = json!({"name": "a", "points": 0});
    assert_eq!(problems(json!({"rewards": [reward]})), ["rewards[0].points"]);
}

/// A programme whose own examples do not come out cannot be saved.
#[test]
fn examples_must_come_out() {
    let programme = |points: i64, tier: &str| {
        problems(json!({
            "tables": {"tier": {"by": ["tier"], "rows": {"gold": 2.25, "silver": 1.5}}},
            "tiers": {"levels": [{"name": "silver", "from": 0}, {"name": "gold", "from": 100}]},
            "rules": [{"id": 1, "name": "order", "amount": "data.amount", "factors": ["tier"]}],
            "examples": [{"rule": 1, "tier": tier, "data": {"amount": 10}, "points": points}],
        }))
    };
    assert_eq!(programme(23, "gold"), [""; 0]);
    assert_eq!(programme(15, "silver"), [""; 0]);
    assert_eq!(programme(22, "gold"), ["examples[0]"]);
    assert_eq!(programme(10, "bronze"), ["examples[0]"]);
}

#[test]
fn documents_lead_back() {
    let json = json!({"programme": "p", "expiry": {"kind": "activity", "months": 6},
        "tables": {"eppf": {"by": ["data.currency"], "rows": {"IDR": 0.00005, "SGD": 1}}}});
    let document = ProgrammeDocument::parse(&json).unwrap();
    assert_eq!(ProgrammeDocument::parse(&document.to_json()).unwrap(), document);
}

#[test]
fn names_that_addresses_have_are_refused() {
    for name in ["new", "queues", "checks", "jobs", "programmes"] {
        let problems = ProgrammeDocument::parse(&json!({"programme": name})).unwrap_err();
        assert_eq!(problems[0].field, "programme", "{name}: {problems:?}");
    }
    for name in ["newest", "rewards"] {
        ProgrammeDocument::parse(&json!({"programme": name})).unwrap();
    }
}

use super::*;
use crate::engine::{Engine, OnError};

/// A variable that may have a secret.
fn secret_name(name: &str) -> String {
    ["RAINGAUGE", "_SECRET_", name].concat()
}

fn destination() -> Json {
    json!({ "kind": "destination", "name": "rewards", "url": "https://rewards.internal/award",
            "secretEnv": secret_name("REWARDS"), "zone": "Asia/Singapore",
            "concurrency": { "min": 2, "max": 32 },
            "rate": [ { "perSecond": 500, "burst": 500 },
                      { "from": "07:00", "to": "10:00", "days": ["mon"], "perSecond": 50, "burst": 10 } ],
            "timeoutMs": 15000, "breaker": { "failedPercent": 50, "sleepMs": 5000 } })
}

fn risk() -> Json {
    json!({ "kind": "lookup", "name": "risk", "class": "http",
            "url": "https://risk.internal/users/{subject}", "ttlS": 60, "timeoutMs": 300,
            "zone": "UTC", "rate": [ { "perSecond": 200, "burst": 50 } ],
            "concurrency": { "min": 1, "max": 16 },
            "breaker": { "failedPercent": 50, "sleepMs": 5000 }, "onError": "hold" })
}

fn crm() -> Json {
    json!({ "kind": "lookup", "name": "crm", "class": "db", "connection": "crm",
            "sql": "SELECT tier, zone FROM members WHERE id = ?", "ttlS": 300, "timeoutMs": 200,
            "zone": "UTC", "concurrency": { "min": 1, "max": 16 },
            "breaker": { "failedPercent": 50, "sleepMs": 5000 }, "onError": "false" })
}

fn users() -> Json {
    json!({ "kind": "table", "name": "users", "key": "subject",
            "columns": { "tier": "text", "zone": "text", "age": "number" } })
}

fn vip() -> Json {
    json!({ "kind": "segment", "name": "vip", "key": "var.driver_id" })
}

fn campaign() -> Json {
    json!({ "id": 7, "name": "mart", "eventTypes": ["mart.order"], "zone": "table.users.zone",
            "state": "active", "holdout": "outside",
            "rule": { "operator": "and", "conditions": [
                { "operator": "eq", "lhs": "segment.vip", "rhs": true },
                { "operator": "not", "conditions": [
                    { "operator": "eq", "lhs": "http.risk.level", "rhs": "high" } ] } ] },
            "steps": [ { "name": "s", "when": { "operator": "eq", "lhs": "db.crm.tier", "rhs": "a" },
                "actions": [ { "name": "m", "kind": "message", "to": "rewards", "template": "t",
                               "locale": "table.users.tier",
                               "cost": { "budget": "all", "amount": 1 } } ] } ],
            "experiment": { "key": "k", "variants": [ { "name": "a", "weight": 5000 },
                                                      { "name": "b", "weight": 5000 } ] },
            "templates": { "t": { "en": "{{ table.users.age }}" } } })
}

fn parsed(kind: Kind, json: &Json) -> Document {
    Document::parse(kind, json).unwrap_or_else(|problems| panic!("{json}: {problems:?}"))
}

/// All documents that the campaign needs.
fn library() -> Library {
    let mut library = Library::default();
    for (kind, json) in [
        (Kind::Destination, destination()),
        (Kind::Lookup, risk()),
        (Kind::Lookup, crm()),
        (Kind::Table, users()),
        (Kind::Table, vip()),
        (Kind::Budget, json!({ "name": "all", "unit": "cents", "max": 10 })),
        (Kind::Holdout, json!({ "name": "outside", "seed": "2026", "share": 500 })),
        (Kind::Cap, json!({ "name": "calm", "destinations": ["rewards"], "max": 3 })),
        (Kind::Campaign, campaign()),
    ] {
        library.insert(parsed(kind, &json));
    }
    library
}

#[test]
fn documents_lead_back_to_themselves() {
    for (kind, json) in [
        (Kind::Destination, destination()),
        (Kind::Lookup, risk()),
        (Kind::Lookup, crm()),
        (Kind::Table, users()),
        (Kind::Table, vip()),
    ] {
        let document = parsed(kind, &json);
        assert_eq!(document.to_json(), json);
        assert_eq!((document.kind(), document.id()), (kind, json["name"].as_str().unwrap().into()));
    }

    // What is left out has a value, and the kind follows from the place.
    let small = json!({ "name": "messages", "url": "http://localhost:8080/" });
    let Document::Destination(found) = parsed(Kind::Destination, &small) else { panic!() };
    assert_eq!(found.content.timeout_ms, 15_000);
    assert_eq!(found.content.breaker, Breaker { failed_percent: 50, sleep_ms: 5_000 });
    let log = json!({ "name": "log", "url": "log:" });
    let Document::Destination(found) = parsed(Kind::Destination, &log) else { panic!() };
    assert_eq!(found.content.target(), Target::Log);
    let points = json!({ "name": "points", "url": "points:grab-sg" });
    let Document::Destination(found) = parsed(Kind::Destination, &points) else { panic!() };
    assert_eq!(found.content.target(), Target::Points("grab-sg"));
    let named = parsed(Kind::Campaign, &campaign());
    assert_eq!(named.id(), "7");
}

/// The fields of the problems after some members are replaced.
fn problems_with(kind: Kind, json: &Json, changes: &[(&str, Json)]) -> Vec<String> {
    let mut json = json.clone();
    for (member, value) in changes {
        json[*member] = value.clone();
    }
    let problems = Document::parse(kind, &json).err().unwrap_or_default();
    problems.into_iter().map(|problem| problem.field).collect()
}

#[test]
fn each_fault_of_a_destination_is_found_where_it_is() {
    let long = "x".repeat(3_000);
    for (member, value) in [
        ("name", json!("")),
        ("name", json!("a b")),
        ("kind", json!("lookup")),
        ("url", json!("ftp://a")),
        ("url", json!("points:")),
        ("url", json!("points:Grab SG")),
        ("url", json!("https:///path")),
        ("url", json!("https://user:password@a/")),
        ("url", json!("https://{subject}.example/")),
        ("url", json!("https://a/b c")),
        ("url", json!("https://a/#b")),
        ("url", json!(format!("https://a/{long}"))),
        ("secretEnv", json!(["RAINGAUGE", "_AUTH_KEY"].concat())),
        ("secretEnv", json!("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")),
        ("secretFile", json!("/run/secrets/rewards")),
        ("secretFile", json!("/run/../etc/passwd")),
        ("zone", json!("Mars/Olympus")),
        ("concurrency", json!({ "min": 3, "max": 2 })),
        ("concurrency", json!({ "min": 1, "max": 1_000 })),
        ("rate", json!([{ "perSecond": 0, "burst": 1 }])),
        ("timeoutMs", json!(0)),
        ("timeoutMs", json!(100_000)),
        ("description", json!(long)),
        ("secret", json!("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")),
    ] {
        let found = problems_with(Kind::Destination, &destination(), &[(member, value.clone())]);
        assert_eq!(found.first().map(String::as_str), Some(member), "{value}: {found:?}");
    }
    let broken = ("breaker", json!({ "failedPercent": 0, "sleepMs": 1 }));
    let found = problems_with(Kind::Destination, &destination(), &[broken]);
    assert_eq!(found, ["breaker.failedPercent", "breaker.sleepMs"]);
    assert_eq!(problems_with(Kind::Destination, &json!([]), &[]), [""]);
}

#[test]
fn each_fault_of_a_lookup_is_found_where_it_is() {
    for (member, value) in [
        ("url", json!("https://risk.internal/users")),
        ("url", json!("https://{key}/users")),
        ("url", json!("https://risk.internal/{user}/{key}")),
        ("class", json!("ftp")),
        ("connection", json!("crm")),
        ("sql", json!("SELECT 1")),
        ("ttlS", json!(100_000)),
        ("timeoutMs", json!(1)),
        ("key", json!("count.orders")),
        ("weight", json!(0)),
        ("onError", json!("true")),
    ] {
        let found = problems_with(Kind::Lookup, &risk(), &[(member, value.clone())]);
        assert_eq!(found, [member], "{value}");
    }

    let wrong = [
        "DELETE FROM members WHERE id = ?",
        "SELECTED FROM members WHERE id = ?",
        "SELECT tier FROM members",
        "SELECT tier FROM members WHERE id = '?'",
        "SELECT tier FROM members WHERE id = ? AND zone = ?",
        "SELECT tier FROM members WHERE id = ?; DROP TABLE members",
        "SELECT tier FROM members WHERE id = ? -- x",
        "SELECT tier FROM members /* x */ WHERE id = ?",
        "SELECT tier FROM members WHERE id = ? AND zone = 'open",
        "",
    ];
    for sql in wrong {
        assert_eq!(problems_with(Kind::Lookup, &crm(), &[("sql", json!(sql))]), ["sql"], "{sql}");
    }
    let quoted = json!("select tier from members where note <> 'it''s; -- ?' and id = ?");
    assert_eq!(problems_with(Kind::Lookup, &crm(), &[("sql", quoted)]), [""; 0]);
    let url = ("url", json!("https://a/{key}"));
    assert_eq!(problems_with(Kind::Lookup, &crm(), &[url]), ["url"]);
}

#[test]
fn each_fault_of_the_others_is_found_where_it_is() {
    let many: Json = (0..33).map(|n| (format!("c{n}"), json!("text"))).collect();
    for (member, value, field) in [
        ("columns", json!({}), "columns"),
        ("columns", many, "columns"),
        ("columns", json!({ "a b": "text" }), "columns.a b"),
        ("columns", json!({ "subject": "text" }), "columns.subject"),
        ("columns", json!({ "a": "date" }), "columns.a"),
        ("key", json!("nobody"), "key"),
    ] {
        assert_eq!(problems_with(Kind::Table, &users(), &[(member, value)]), [field]);
    }
    let columns = ("columns", json!({ "a": "text" }));
    assert_eq!(problems_with(Kind::Table, &vip(), &[columns]), ["columns"]);

    let budget = json!({ "name": "all", "unit": "cents", "max": 10, "period": "day" });
    assert_eq!(problems_with(Kind::Budget, &budget, &[("max", json!(-1))]), [""]);
    assert_eq!(problems_with(Kind::Budget, &budget, &[("zone", json!("here"))]), ["zone"]);
    let cap = json!({ "name": "calm", "destinations": ["a", "b"], "max": 3 });
    assert_eq!(problems_with(Kind::Cap, &cap, &[]), [""; 0]);
    assert_eq!(problems_with(Kind::Cap, &cap, &[("max", json!(0))]), ["max"]);
    let twice = ("destinations", json!(["a", "a"]));
    assert_eq!(problems_with(Kind::Cap, &cap, &[twice]), ["destinations[1]"]);
    let holdout = json!({ "name": "h", "seed": "s", "share": 10_001 });
    assert_eq!(problems_with(Kind::Holdout, &holdout, &[]), [""]);
    let large = ("description", json!("d".repeat(300_000)));
    assert_eq!(problems_with(Kind::Campaign, &campaign(), &[large]), [""]);
}

#[test]
fn a_key_stays_in_its_place_in_an_address() {
    let Document::Lookup(risk) = parsed(Kind::Lookup, &risk()) else { panic!() };
    for (key, encoded) in [
        ("u-7", "u-7"),
        ("a/../b?c=d#e", "a%2F..%2Fb%3Fc%3Dd%23e"),
        ("..", "%2E%2E"),
        ("ü {subject}%", "%C3%BC%20%7Bsubject%7D%25"),
        ("", ""),
    ] {
        let expected = format!("https://risk.internal/users/{encoded}");
        assert_eq!(risk.content.url_of(key), Some(expected));
    }
}

#[test]
fn cells_are_read_by_the_type_of_their_column() {
    let text = |text: &str| ColumnType::Text.value_of(text);
    let number = |text: &str| ColumnType::Number.value_of(text);
    assert_eq!((text(""), text("007")), (Ok(Json::Null), Ok(json!("007"))));
    assert!(text(&"x".repeat(2_000)).is_err());
    assert_eq!((number(""), number("-1.5")), (Ok(Json::Null), Ok(json!(-1.5))));
    assert_eq!((number("41"), number("1e3").is_ok()), (Ok(json!(41)), true));
    for wrong in ["x", "1,5", "0x7", "NaN", "1 ", "0.12345678901234567890", "1e999"] {
        assert!(number(wrong).is_err(), "{wrong}");
    }
    assert!(ColumnType::Text.value_of_json(&json!(7)).is_err());
    assert!(ColumnType::Number.value_of_json(&json!("7")).is_err());
    assert_eq!(ColumnType::Number.value_of_json(&json!(7.25)), Ok(json!(7.25)));
    assert_eq!(ColumnType::Text.value_of_json(&Json::Null), Ok(Json::Null));
}

#[test]
fn a_document_needs_what_it_names() {
    let full = library();
    assert_eq!(full.problems(&parsed(Kind::Campaign, &campaign())), []);

    let missing = |kind: Kind, id: &str| {
        let mut library = library();
        library.remove(kind, id);
        let problems = library.problems(&parsed(Kind::Campaign, &campaign()));
        problems.into_iter().map(|problem| problem.field).collect::<Vec<_>>()
    };
    assert_eq!(missing(Kind::Destination, "rewards"), ["steps[0].actions[0].to"]);
    assert_eq!(missing(Kind::Lookup, "risk"), ["rule"]);
    assert_eq!(missing(Kind::Lookup, "crm"), ["steps[0].when"]);
    let of_users = missing(Kind::Table, "users");
    assert_eq!(of_users, ["zone", "steps[0].actions[0].locale", "templates"]);
    assert_eq!(missing(Kind::Table, "vip"), ["rule"]);
    assert_eq!(missing(Kind::Budget, "all"), ["steps[0].actions[0].cost.budget"]);
    assert_eq!(missing(Kind::Holdout, "outside"), ["holdout"]);

    // A table is no segment, and a lookup of one class not one of the other.
    let mut other = library();
    let crm_is_http = json!({ "name": "crm", "class": "http", "url": "https://a/{key}" });
    other.insert(parsed(Kind::Lookup, &crm_is_http));
    let problems = other.problems(&parsed(Kind::Campaign, &campaign()));
    assert_eq!(problems[0].detail, "there is no lookup `crm` of class db: create it first");
}

#[test]
fn what_others_need_stays() {
    let library = library();
    for (kind, id) in [
        (Kind::Destination, "rewards"),
        (Kind::Lookup, "risk"),
        (Kind::Table, "vip"),
        (Kind::Budget, "all"),
        (Kind::Holdout, "outside"),
    ] {
        let problem = library.problem_of_deletion(kind, id).expect("it is in use");
        assert!(problem.contains("campaign 7"), "{problem}");
    }
    assert_eq!(library.problem_of_deletion(Kind::Cap, "calm"), None);
    let problem = library.problem_of_deletion(Kind::Campaign, "7");
    assert!(problem.is_some_and(|problem| problem.contains("archive")));

    // A new version of a table keeps the columns that are read.
    let without = json!({ "name": "users", "columns": { "zone": "text", "tier": "text" } });
    let problems = library.problems(&parsed(Kind::Table, &without));
    assert!(problems[0].detail.contains("column `age`"), "{problems:?}");
    let segment = json!({ "kind": "segment", "name": "users" });
    assert_eq!(library.problems(&parsed(Kind::Table, &segment)).len(), 1);
    let more = json!({ "name": "users", "columns": { "zone": "text", "tier": "text", "age": "number", "b": "text" } });
    assert_eq!(library.problems(&parsed(Kind::Table, &more)), []);
}

#[test]
fn variants_of_a_running_experiment_stay() {
    let library = library();
    let weights = |a: u16, key: &str| {
        let mut json = campaign();
        json["experiment"]["variants"] =
            json!([{ "name": "a", "weight": a }, { "name": "b", "weight": 10_000 - a }]);
        json["experiment"]["key"] = json!(key);
        library.problems(&parsed(Kind::Campaign, &json))
    };
    assert_eq!(weights(6_000, "k")[0].field, "experiment");
    assert_eq!(weights(6_000, "k2"), []);
    assert_eq!(weights(5_000, "k"), []);
}

#[test]
fn there_are_not_too_many_documents() {
    let mut library = Library::default();
    let named = |number: usize| json!({ "name": format!("d{number}"), "url": "https://a/" });
    for number in 0..crate::limits::DESTINATIONS_MAX {
        library.insert(parsed(Kind::Destination, &named(number)));
    }
    assert_eq!(library.problems(&parsed(Kind::Destination, &named(0))), []);
    let problems = library.problems(&parsed(Kind::Destination, &named(1_000)));
    assert!(problems[0].detail.contains("the most"), "{problems:?}");
}

#[test]
fn the_engine_gets_what_is_stored() {
    let budget = json!({ "kind": "budget", "name": "all", "unit": "cents", "max": 10 });
    let cap = json!({ "name": "calm", "destinations": ["rewards"], "max": 3 });
    let holdout = json!({ "name": "outside", "seed": "2026", "share": 500 });
    let newer = json!({ "id": 9, "name": "of a newer release", "orbit": 3 });
    let stored = [
        ("campaign", "7", campaign()),
        ("campaign", "9", newer),
        ("destination", "rewards", destination()),
        ("lookup", "risk", risk()),
        ("lookup", "crm", crm()),
        ("table", "users", users()),
        ("table", "vip", vip()),
        ("budget", "all", budget),
        ("cap", "calm", cap),
        ("holdout", "outside", holdout),
        ("programme", "1", json!({})),
    ];
    let stored = stored.iter().map(|(kind, id, configuration)| Stored {
        kind,
        id,
        version: 3,
        configuration,
    });

    let assembly = assemble(stored, 5);
    let documents = &assembly.documents;
    assert_eq!((documents.campaigns.len(), documents.late_after_ms), (1, 5));
    assert_eq!((documents.campaigns[0].version, documents.campaigns[0].is_warming), (3, false));
    let lookups: Vec<&str> = documents.lookups.keys().map(String::as_str).collect();
    assert_eq!(lookups, ["db.crm", "http.risk", "segment.vip", "table.users"]);
    assert_eq!(documents.lookups["db.crm"].on_error, OnError::False);
    assert_eq!(documents.lookups["segment.vip"].key.as_deref(), Some("var.driver_id"));
    assert_eq!(documents.lookups["table.users"].key, None);
    assert_eq!(
        (documents.budgets.len(), documents.caps.len(), documents.holdouts.len()),
        (1, 1, 1)
    );
    assert_eq!((assembly.destinations.len(), assembly.tables.len()), (1, 2));

    let unreadable: Vec<_> = assembly.unreadable.iter().map(|found| found.id.as_str()).collect();
    assert_eq!(unreadable, ["9"]);
    let engine = Engine::new(assembly.documents);
    assert_eq!(engine.event_types().collect::<Vec<_>>(), ["mart.order"]);
}

#[test]
fn kinds_have_names() {
    for kind in Kind::ALL {
        assert_eq!(Kind::from_name(kind.name()), Some(kind));
    }
    assert_eq!(Kind::from_name("segment"), None);
}

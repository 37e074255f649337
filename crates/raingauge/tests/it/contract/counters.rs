//! `/v1/counters`: configurations, their versions, and changes that do not run over each other.

use crate::client::{Answer, Client, at, drop_event, drops_counter, forever, now_s};
use crate::server::Home;
use serde_json::{Value, json};

fn put(client: &Client, id: u32, if_match: Option<&str>, counter: &Value) -> Answer {
    let mut headers = vec![("content-type", "application/json"), ("x-reason", "because")];
    headers.extend(if_match.map(|tag| ("if-match", tag)));
    client.send("PUT", &format!("/v1/counters/{id}"), &headers, counter.to_string().as_bytes())
}

#[test]
fn a_counter_has_the_documented_shape_and_defaults() {
    let home = Home::new();
    let server = home.start();
    let given = json!({"id": 34, "name": "count_rain_drops", "template": "rain_drops:city:{city_id}",
        "eventType": "rain_drop", "filter": {"operator": "and", "conditions": [
            {"operator": "gte", "lhs": "data.millimetres", "rhs": 1}]},
        "value": 1, "retentionDays": {"quarter": 90, "hour": 400, "day": null}, "activeFrom": null,
        "activeUntil": null, "state": "active", "owner": "weather", "description": ""});

    let began = now_s();
    let created = server.post("/v1/counters", &given);
    assert_eq!(created.header("location"), "/v1/counters/34");
    assert_eq!(created.header("etag"), "\"1\"");

    let created = created.expect(201);
    for (name, value) in given.as_object().unwrap() {
        assert_eq!(created[name], *value, "{name}");
    }
    assert_eq!((&created["version"], &created["changedBy"]), (&json!(1), &json!("anonymous")));
    assert!((began..=now_s()).contains(&created["changedAt"].as_i64().unwrap()));
    assert_eq!(server.get("/v1/counters/34").expect(200), created);

    let least = server.create(json!({"name": "n", "template": "least", "eventType": "e"}));
    for (name, value) in [
        ("filter", Value::Null),
        ("value", json!(1)),
        ("retentionDays", json!({"quarter": 90, "hour": 400, "day": null})),
        ("activeFrom", Value::Null),
        ("activeUntil", Value::Null),
        ("state", json!("active")),
        ("owner", json!("")),
        ("description", json!("")),
    ] {
        assert_eq!(least[name], value, "{name}");
    }

    assert!(
        least["id"].as_u64().is_some_and(|id| id > 0 && id != 34),
        "an id was assigned: {least}"
    );
    let list = server.get("/v1/counters").expect(200);
    assert_eq!(list["counters"].as_array().unwrap().len(), 2);

    let of = |query: &str| {
        server.get(&format!("/v1/counters?{query}")).expect(200)["counters"]
            .as_array()
            .unwrap()
            .len()
    };

    assert_eq!(
        (of("owner=weather"), of("eventType=e"), of("state=active"), of("state=draft")),
        (1, 1, 2, 0)
    );
}

#[test]
fn a_change_needs_the_version_that_it_changes() {
    let home = Home::new();
    let server = home.start();
    let created = server.create(drops_counter());
    server.post("/v1/counters", &drops_counter()).expect_problem(409, "id_taken");

    let mut changed = created.clone();
    changed["description"] = json!("drops of rain");

    let answer = put(&server, 34, Some("\"1\""), &changed);
    assert_eq!(answer.header("etag"), "\"2\"");
    assert_eq!(answer.expect(200)["version"], 2);
    changed["description"] = json!("others");

    let problem = put(&server, 34, Some("\"1\""), &changed).expect_problem(412, "version_mismatch");
    assert_eq!(problem["currentVersion"], 2);
    put(&server, 34, Some("seven"), &changed).expect_problem(400, "etag_malformed");
    server
        .send("DELETE", "/v1/counters/34", &[("if-match", "\"1\"")], b"")
        .expect_problem(412, "version_mismatch");
    assert_eq!(put(&server, 34, Some("*"), &changed).expect(200)["version"], 3);

    // The same again is no change.
    assert_eq!(put(&server, 34, Some("\"3\""), &changed).expect(200)["version"], 3);
    put(&server, 35, None, &changed).expect_problem(422, "counter_invalid");
    changed.as_object_mut().unwrap().remove("id");
    put(&server, 35, None, &changed).expect_problem(404, "counter_unknown");
    assert_eq!(server.get("/v1/counters/34").expect(200)["description"], "others");
}

#[test]
fn every_version_says_who_changed_it_when_and_why() {
    let home = Home::new();
    let server = home.start();
    let body = drops_counter().to_string();
    let reason = ("x-reason", "we want to know");

    server
        .send(
            "POST",
            "/v1/counters",
            &[("content-type", "application/json"), reason],
            body.as_bytes(),
        )
        .expect(201);
    let mut changed = drops_counter();
    changed["owner"] = json!("weather");
    put(&server, 34, None, &changed).expect(200);
    server.send("DELETE", "/v1/counters/34", &[("x-reason", "enough")], b"").expect(200);

    let check = |client: &Client| {
        let versions = client.get("/v1/counters/34/versions").expect(200);
        let versions = versions["versions"].as_array().unwrap().clone();
        let told: Vec<Value> = versions
            .iter()
            .map(|version| {
                json!([version["version"], version["state"], version["owner"], version["reason"]])
            })
            .collect();

        let expected = [
            json!([3, "archived", "weather", "enough"]),
            json!([2, "active", "weather", "because"]),
            json!([1, "active", "", "we want to know"]),
        ];

        assert_eq!(told, expected);
        assert!(versions.iter().all(|version| version["changedBy"] == "anonymous" && version["changedAt"].is_i64()));
    };

    check(&server);
    server.kill();
    check(&home.start());
}

#[test]
fn all_problems_are_reported_at_once() {
    let home = Home::new();
    let server = home.start();
    let wrong = json!({"id": "seven", "name": " ", "template": "a:{x", "filter": {"operator": "like", "lhs": "x"},
        "value": {"field": "amount", "scale": 0}, "retentionDays": {"quarter": 9, "hour": 3, "day": 0},
        "activeFrom": 10, "activeUntil": "2", "state": "asleep", "color": "red"});
    let problem = server.post("/v1/counters", &wrong).expect_problem(422, "counter_invalid");
    let problems = problem["problems"].as_array().unwrap();
    let fields: Vec<&str> =
        problems.iter().map(|problem| problem["field"].as_str().unwrap()).collect();

    for field in [
        "id",
        "name",
        "template",
        "eventType",
        "filter",
        "value",
        "retentionDays",
        "activeUntil",
        "state",
        "color",
    ] {
        assert!(fields.contains(&field), "{field} is not among {fields:?}");
    }

    let told = problems
        .iter()
        .all(|problem| problem["detail"].as_str().is_some_and(|detail| detail.len() > 5));
    assert!(told, "{problem}");
    server.post("/v1/counters", &json!([])).expect_problem(422, "counter_invalid");
}

/// States: a draft neither counts nor answers, a paused one answers, an archived one is gone.
#[test]
fn states_decide_who_counts_and_who_answers() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let noon = at("2024-09-24T12:00:00Z");
    let mut sent = 0;
    let mut send = || {
        sent += 1;
        server.count_events(&[drop_event(&sent.to_string(), noon, "oslo")]);
    };
    let set = |state: &str| {
        let mut counter = drops_counter();
        counter["state"] = json!(state);
        put(&server, 34, None, &counter).expect(200);
    };

    let result = || server.results(&[("drops:oslo", noon, noon + 900)]).remove(0);
    send();
    set("paused");
    send();
    assert_eq!(result()["count"], 1);
    set("active");
    send();
    assert_eq!(result()["count"], 2);

    for state in ["draft", "archived"] {
        set(state);
        send();
        assert_eq!(result()["error"]["code"], "key_unknown");
    }

    set("active");
    assert_eq!(result()["count"], 2, "what was counted is still there");
}

/// When a change is answered, it counts; nothing has to be restarted.
#[test]
fn a_change_is_live_when_it_is_answered() {
    let home = Home::new();
    let server = home.start();
    let noon = at("2024-09-24T12:00:00Z");
    let mut counter = drops_counter();

    for round in 1..=30 {
        counter["value"] = json!(round);

        if round == 1 {
            server.create(counter.clone());
        } else {
            put(&server, 34, None, &counter).expect(200);
        }

        server.count_events(&[drop_event(&round.to_string(), noon, "oslo")]);
        assert_eq!(server.count("drops:oslo", noon, noon + 900), (1..=round).sum::<i64>());
    }
}

/// Of many who change the same version at once, one wins each time.
#[test]
fn concurrent_changes_do_not_run_over_each_other() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let client: &Client = &server;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let mut won = 0;
                while won < 5 {
                    let current = client.get("/v1/counters/34");
                    let mut counter = current.json();
                    counter["description"] = json!(format!("{thread} {won}"));

                    let answer = put(client, 34, Some(current.header("etag")), &counter);
                    assert!([200, 412].contains(&answer.status), "{}", answer.text());
                    won += u32::from(answer.status == 200);
                }
            });
        }
    });
    assert_eq!(server.get("/v1/counters/34").json()["version"], 21);

    let versions = server.get("/v1/counters/34/versions").json();
    assert_eq!(versions["versions"].as_array().unwrap().len(), 21);
}

#[test]
fn ids_are_assigned_where_none_is_given() {
    let home = Home::new();
    let server = home.start();
    let draft = |template: &str| json!({"name": "n", "template": template, "eventType": "e", "retentionDays": forever()});
    let mut ids: Vec<u64> =
        (0..20).map(|n| server.create(draft(&format!("t{n}")))["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 20);
    server.send("DELETE", &format!("/v1/counters/{}", ids[7]), &[], b"").expect(200);
    let next = server.create(draft("next"))["id"].as_u64().unwrap();
    assert!(!ids.contains(&next), "the id of an archived counter is not given away: {next}");
}

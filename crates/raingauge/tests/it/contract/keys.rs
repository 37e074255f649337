//! Keys: how fields become parts of them, that no value forges another key, and that templates do
//! not collide.

use crate::client::{at, drop_event, drops_counter, event, forever, now_s};
use crate::server::{Home, Server, until};
use serde_json::{Value, json};

const NOON: &str = "2024-09-24T12:00:00Z";

#[test]
fn values_are_escaped_so_that_none_forges_another_key() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());
    server.create(
        json!({"name": "streets", "template": "drops:{city}:{street}", "eventType": "drop",
        "retentionDays": forever()}),
    );

    let noon = at(NOON);
    let cases = [
        (json!("a:b"), "drops:a%3Ab"),
        (json!("a%3Ab"), "drops:a%253Ab"),
        (json!("100%"), "drops:100%25"),
        (json!("tab\tline\n"), "drops:tab%09line%0A"),
        (json!("são paulo/{x} 😀"), "drops:são paulo/{x} 😀"),
        (json!(""), "drops:"),
        (json!(7), "drops:7"),
        (json!(true), "drops:true"),
        (json!(-0.5), "drops:-0.5"),
    ];

    let mut events: Vec<Value> = cases
        .iter()
        .enumerate()
        .map(|(id, (city, _))| event("drop", &id.to_string(), noon, json!({"city": city})))
        .collect();

    // Missing, null, arrays and objects give no key.
    for (id, data) in [
        json!({}),
        json!({"city": null}),
        json!({"city": [1]}),
        json!({"city": {}}),
        json!([]),
        json!("x"),
    ]
    .into_iter()
    .enumerate()
    {
        events.push(event("drop", &format!("none-{id}"), noon, data));
    }

    assert_eq!(server.count_events(&events)["accepted"], events.len());

    for (city, key) in &cases {
        assert_eq!(server.count(key, noon, noon + 900), 1, "{city} is {key}");
    }
    let keys = server.get("/v1/counters/34/keys?limit=100").expect(200);
    assert_eq!(
        keys["keys"].as_array().unwrap().len(),
        cases.len(),
        "there are no other keys: {keys}"
    );
    assert_eq!(server.count("drops:a:b", noon, noon + 900), 0, "this key is of the other counter");

    // A key that escaping cannot produce does not exist.
    for key in
        ["drops:a%3ab", "drops:%41", "drops:100%", "drops", "drops:a:b:c", "Drops:a", "", ":"]
    {
        let result = &server.results(&[(key, noon, noon + 900)])[0];
        assert_eq!(result["error"]["code"], "key_unknown", "{key}");
        assert_eq!(result["key"], *key);
    }
}

#[test]
fn numbers_are_keys_as_they_were_written() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());
    let noon = at(NOON);
    for number in ["12.50", "1e3", "12345678901234567890123", "-0.0"] {
        let line = format!(
            r#"{{"specversion":"1.0","id":"{number}","source":"s","type":"drop","time":"{NOON}","data":{{"city":{number}}}}}"#
        );
        let headers = [("content-type", "application/x-ndjson")];
        server.send("POST", "/v1/events?wait=applied", &headers, line.as_bytes()).expect(200);
        assert_eq!(server.count(&format!("drops:{number}"), noon, noon + 900), 1, "{number}");
    }
}

#[test]
fn fields_lie_inside_and_attributes_have_names() {
    let home = Home::new();
    let server = home.start();
    server.create(
        json!({"name": "n", "template": "at-{address.city}!:{source}:{subject}:{data.source}",
        "eventType": "drop", "retentionDays": forever()}),
    );
    let noon = at(NOON);
    let mut sent =
        event("drop", "1", noon, json!({"address": {"city": "oslo"}, "source": "cloud"}));
    sent["subject"] = json!("s:1");
    server.count_events(&[sent]);
    assert_eq!(server.count("at-oslo!:tests:s%3A1:cloud", noon, noon + 900), 1);
}

/// Two templates that could render one key are refused when the second one is saved.
#[test]
fn templates_that_could_meet_are_refused() {
    let home = Home::new();
    let server = home.start();
    let counter = |template: &str| json!({"name": "n", "template": template, "eventType": "other"});

    for template in ["a:{x}", "b:{x}:c", "d", "e-{x}:f:h", "{x}:g:i"] {
        server.create(counter(template));
    }

    for template in
        ["a:{y}", "a:1", "a:p-{x}", "b:1:{x}", "d", "{x}:f:h", "e-1:{x}:h", "a:g:i", "{x}:{y}"]
    {
        let problem =
            server.post("/v1/counters", &counter(template)).expect_problem(422, "counter_invalid");
        assert_eq!(problem["problems"][0]["field"], "template", "{template}");
    }

    for template in ["a", "a:{x}:b", "b:{x}:d", "d:{x}:e", "h-{x}:f:h"] {
        server.create(counter(template));
    }

    // An archived counter leaves its template to others; a draft does not.
    server.send("DELETE", "/v1/counters/3", &[], b"").expect(200);
    let again = server.create(counter("d"));
    let mut draft = counter("draft:{x}");
    draft["state"] = json!("draft");
    server.create(draft);
    server.post("/v1/counters", &counter("draft:{y}")).expect_problem(422, "counter_invalid");

    // Nor may an edit, or a counter that comes back, meet another.
    let path = format!("/v1/counters/{}", again["id"]);
    server
        .send("PUT", &path, &[], counter("a:7").to_string().as_bytes())
        .expect_problem(422, "counter_invalid");
    server
        .send("PUT", "/v1/counters/3", &[], counter("d").to_string().as_bytes())
        .expect_problem(422, "counter_invalid");
}

/// A key from outside may be of any length; none may be kept that no event could have.
#[test]
fn keys_that_are_too_long_are_refused() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let noon = at(NOON);
    let longest = format!("drops:{}", "x".repeat(512 - 6));
    server.count_events(&[event("drop", "1", noon, json!({"city": "x".repeat(512 - 6)}))]);
    server.count_events(&[event("drop", "2", noon, json!({"city": "x".repeat(512 - 5)}))]);
    assert_eq!(server.count(&longest, noon, noon + 900), 1);
    assert_eq!(
        server.metric(r#"raingauge_events_skipped_total{counter="34",reason="no_key"}"#),
        1.0
    );

    for len in [513, 70_000, 1_000_000] {
        let key = format!("drops:{}", "x".repeat(len - 6));
        let result = &server.results(&[(&key, noon, noon + 900)])[0];
        assert_eq!(result["error"]["code"], "key_too_long", "{len} bytes");

        let bucket =
            json!([{"key": key, "granularity": "day", "time": noon - noon % 86_400, "count": 1}]);
        let set = server.post("/v1/buckets", &bucket).expect(200);
        assert_eq!(set["rejected"][0]["code"], "key_too_long", "{len} bytes");
    }

    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn the_counts_of_a_key_are_erased_for_good() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let city = "drops:1";
    let other = "drops:2";
    let now = now_s() - 60;
    let drops = [drop_event("a", now, "1"), drop_event("b", now, "1"), drop_event("c", now, "2")];
    let body = drops.map(|drop| drop.to_string()).join("\n");

    let headers = [("content-type", "application/x-ndjson")];
    server.send("POST", "/v1/events?wait=applied", &headers, body.as_bytes()).expect(200);

    let count = |server: &Server, key: &str| {
        let range = format!("/v1/counts?key={key}&fromTime=0&toTime={}", now + 86_400);
        server.get(&range).expect(200)["count"].as_i64()
    };
    assert_eq!((count(&server, city), count(&server, other)), (Some(2), Some(1)));

    let erased = server.send("DELETE", "/v1/counters/34/keys/drops%3A1", &[], b"").expect(200);
    assert_eq!((&erased["counter"], &erased["key"]), (&json!(34), &json!(city)));
    assert!(erased["logForgetsAt"].as_i64() > erased["erasedAt"].as_i64(), "{erased}");
    assert_eq!((count(&server, city), count(&server, other)), (Some(0), Some(1)));
    server
        .send("DELETE", "/v1/counters/34/keys/snow%3A1", &[], b"")
        .expect_problem(404, "key_unknown");
    server
        .send("DELETE", "/v1/counters/35/keys/a", &[], b"")
        .expect_problem(404, "counter_unknown");

    server.kill();
    let server = home.start();
    assert_eq!((count(&server, city), count(&server, other)), (Some(0), Some(1)));
    server.terminate();

    let data = home.data().display().to_string();
    let ran =
        home.run(&["counters", "erase-key", "34", other, "--data-dir", &data, "--json"]).json();
    assert_eq!((&ran["counter"], &ran["key"]), (&json!(34), &json!(other)));

    let server = home.start();
    assert_eq!((count(&server, city), count(&server, other)), (Some(0), Some(0)));
}

#[test]
fn all_counts_of_a_counter_are_erased_for_good_and_an_archived_one_is_purged() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let now = now_s() - 60;
    let count = |server: &Server, key: &str| server.count(key, 0, now + 86_400);
    let erase = |server: &Server| server.send("DELETE", "/v1/counters/34/keys", &[], b"");
    server.count_events(&[drop_event("a", now, "1"), drop_event("b", now, "2")]);

    let erased = erase(&server).expect(200);
    assert_eq!((&erased["counter"], erased.get("key")), (&json!(34), None));
    assert!(erased["logForgetsAt"].as_i64() > erased["erasedAt"].as_i64(), "{erased}");
    server.count_events(&[drop_event("c", now, "2")]);
    assert_eq!(
        (count(&server, "drops:1"), count(&server, "drops:2")),
        (0, 1),
        "what comes after it counts"
    );

    server.kill();
    let server = home.start();
    assert_eq!((count(&server, "drops:1"), count(&server, "drops:2")), (0, 1));
    backfill(&server);
    assert_eq!(
        (count(&server, "drops:1"), count(&server, "drops:2")),
        (0, 1),
        "no backfill brings it back"
    );

    let keys = server.get("/v1/counters/34/keys").expect(200);
    assert_eq!(keys["keys"], json!([{"key": "drops:2", "count": 1}]));

    server
        .send("POST", "/v1/counters/34/purge", &[], b"")
        .expect_problem(409, "counter_not_archived");
    server.send("DELETE", "/v1/counters/34", &[], b"").expect(200);
    server.send("POST", "/v1/counters/34/purge", &[], b"").expect(200);
    server.send("DELETE", "/v1/counters/35/keys", &[], b"").expect_problem(404, "counter_unknown");
    server.terminate();

    // The command line, on the folder and without a server.
    let data = home.data().display().to_string();
    let ran = home.run(&["counters", "purge", "34", "--data-dir", &data, "--json"]).json();
    assert_eq!(ran["counter"], 34);

    let server = home.start();
    server.send("PUT", "/v1/counters/34", &[], drops_counter().to_string().as_bytes()).expect(200);
    backfill(&server);
    assert_eq!(count(&server, "drops:2"), 0, "it comes back with nothing");
    server.count_events(&[drop_event("d", now, "2")]);
    assert_eq!(count(&server, "drops:2"), 1);
    server.terminate();

    let ran = home.run(&["counters", "erase", "34", "--yes", "--data-dir", &data, "--json"]).json();
    assert_eq!(ran["counter"], 34);
    assert_eq!(count(&home.start(), "drops:2"), 0);
}

fn backfill(server: &Server) {
    let path = "/v1/counters/34/backfill";
    server.send("POST", path, &[], b"").expect(202);
    until("the backfill has finished", || {
        (server.get(path).expect(200)["status"] == "finished").then_some(())
    });
}

/// A template with too many values stops at the limit; existing keys, and other counters, continue.
#[test]
fn the_number_of_keys_of_a_counter_is_limited() {
    let home = Home::with(&[("events.keys_per_counter_max", "3")]);
    let server = home.start();
    server.create(drops_counter());
    server.create(json!({"id": 35, "name": "all", "template": "all", "eventType": "drop", "retentionDays": forever()}));

    let now = now_s() - 60;
    let send = |server: &Server, id: String, city: String| {
        server.count_events(&[drop_event(&id, now, &city)])
    };
    let count = |server: &Server, key: &str| server.count(key, 0, now + 86_400);
    let mut sent = 0;
    let refused = until("a new key is not counted", || {
        sent += 1;
        send(&server, sent.to_string(), sent.to_string());
        let key = format!("drops:{sent}");
        (count(&server, &key) == 0).then_some(key)
    });

    send(&server, "again".to_owned(), "1".to_owned());
    assert_eq!(
        (count(&server, "drops:1"), count(&server, "drops:3"), count(&server, "all")),
        (2, 1, sent + 1)
    );
    assert!(server.metric(r#"raingauge_counter_keys{counter="34"}"#) >= 3.0);
    assert_eq!(server.metric("raingauge_counter_keys_max"), 3.0);
    assert_eq!(
        server.metric(r#"raingauge_events_skipped_total{counter="34",reason="too_many_keys"}"#),
        1.0
    );

    let bucket =
        json!([{"key": "drops:new", "granularity": "day", "time": now - now % 86_400, "count": 1}]);
    let set = server.post("/v1/buckets", &bucket).expect(200);
    assert_eq!(set["rejected"][0]["code"], "too_many_keys");

    server.kill();
    let server = home.start();
    assert_eq!(
        (count(&server, "drops:1"), count(&server, &refused), count(&server, "all")),
        (2, 0, sent + 1)
    );
    backfill(&server);
    assert_eq!((count(&server, "drops:1"), count(&server, &refused)), (2, 0));
}

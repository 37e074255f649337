//! Previews, backfills and recounts: what the log still knows.

use crate::client::{Client, at, drop_event, drops_counter, event, forever};
use crate::server::{Home, until};
use serde_json::{Value, json};

const NOON: &str = "2024-09-24T12:00:00Z";

/// Begins a backfill, and waits until it is over.
pub fn finish_backfill(client: &Client, id: u32) -> Value {
    client.send("POST", &format!("/v1/counters/{id}/backfill"), &[], b"").expect(202);
    until("the backfill is done", || {
        let told = client.get(&format!("/v1/counters/{id}/backfill")).expect(200);
        assert!(
            told["progress"].as_f64().is_some_and(|progress| (0.0..=1.0).contains(&progress)),
            "{told}"
        );
        (told["status"] != "running").then_some(told)
    })
}

fn drops(count: usize) -> Vec<Value> {
    (0..count)
        .map(|id| {
            drop_event(&id.to_string(), at(NOON) + id as i64 % 7_200, &format!("c{}", id % 3))
        })
        .collect()
}

#[test]
fn a_new_counter_is_backfilled_from_the_log_while_events_come_in() {
    let home = Home::new();
    let server = home.start();
    server.count_events(&drops(3_000));
    server.create(drops_counter());

    let total = |client: &Client| -> i64 {
        client
            .counts(
                &["drops:c0", "drops:c1", "drops:c2"].map(|key| (key, at(NOON), at(NOON) + 7_200)),
            )
            .iter()
            .sum()
    };

    assert_eq!(total(&server), 0);
    let client: &Client = &server;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for chunk in 0..20 {
                let events: Vec<Value> = (0..50)
                    .map(|n| drop_event(&format!("live-{chunk}-{n}"), at(NOON) + n, "c0"))
                    .collect();
                client.count_events(&events);
            }
        });
        let done = finish_backfill(client, 34);
        assert_eq!(done["status"], "finished", "{done}");
    });
    assert_eq!(total(&server), 4_000);
    server.kill();

    let server = home.start();
    assert_eq!(total(&server), 4_000, "and so after a crash");
    assert_eq!(server.count_events(&drops(10))["duplicates"], 10);
}

#[test]
fn a_recount_compares_the_log_with_what_is_stored() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());
    server.count_events(&drops(300));

    let query = format!("/v1/recount?key=drops:c1&fromTime={}&toTime={}", at(NOON), at(NOON) + 900);
    let expected = json!({"key": "drops:c1", "fromTime": at(NOON), "toTime": at(NOON) + 900,
        "comparedFrom": at(NOON), "stored": 100, "recounted": 100, "equal": true, "differences": []});
    assert_eq!(server.get(&query).expect(200), expected);
    server.get(&query.replace("drops", "wind")).expect_problem(404, "key_unknown");

    // A counter that was changed since answers by what counted then; a backfill makes it as if it
    // had always been so.
    let mut changed = drops_counter();
    changed["value"] = json!(10);
    server.send("PUT", "/v1/counters/34", &[], changed.to_string().as_bytes()).expect(200);
    assert_eq!(server.get(&query).expect(200)["equal"], true);
    finish_backfill(&server, 34);

    let recount = server.get(&query).expect(200);
    assert_eq!((&recount["stored"], &recount["equal"]), (&json!(1_000), &json!(true)), "{recount}");
}

#[test]
fn a_preview_tells_what_a_draft_would_count() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let mut events = drops(300);
    events
        .extend((0..30).map(|id| event("drop", &format!("x{id}"), at(NOON), json!({"town": "t"}))));
    server.count_events(&events);

    let draft = json!({"name": "towns", "template": "drops:{town}", "eventType": "drop", "retentionDays": forever()});
    let preview = server.post("/v1/counters/preview", &draft).expect(200);
    assert!(
        preview["conflicts"][0]["detail"].is_string(),
        "it meets the template of 34: {preview}"
    );
    assert!(preview.to_string().contains("drops:t"), "{preview}");
    assert_eq!(
        server.results(&[("drops:t", at(NOON), at(NOON) + 900)])[0]["count"],
        0,
        "nothing is counted by it"
    );

    let preview = server.send("POST", "/v1/counters/34/preview", &[], b"").expect(200);
    assert_eq!(preview["conflicts"], json!([]), "a counter does not meet itself");

    for city in ["drops:c0", "drops:c1", "drops:c2"] {
        assert!(preview.to_string().contains(city), "{preview}");
    }
    server
        .post("/v1/counters/preview", &json!({"template": "{"}))
        .expect_problem(422, "counter_invalid");
    assert_eq!(server.get("/v1/counters").json()["counters"].as_array().unwrap().len(), 1);
}

#[test]
fn the_largest_keys_come_first() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let events: Vec<Value> = (0..10)
        .flat_map(|city| {
            (0..=city)
                .map(move |n| drop_event(&format!("{city}-{n}"), at(NOON), &format!("c{city}")))
        })
        .collect();

    server.count_events(&events);
    let listed = server
        .get(&format!("/v1/counters/34/keys?limit=3&fromTime={NOON}&toTime=2024-09-24T12:15:00Z"));
    let expected = json!({"keys": [{"key": "drops:c9", "count": 10}, {"key": "drops:c8", "count": 9}, {"key": "drops:c7", "count": 8}]});
    assert_eq!(listed.expect(200), expected);
}

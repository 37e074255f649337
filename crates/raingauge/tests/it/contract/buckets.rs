//! `POST /v1/buckets`: history that was counted elsewhere.

use crate::client::{Client, at, drop_event, drops_counter, forever};
use crate::server::Home;
use serde_json::{Value, json};

/// The rows that the reference prints for its worked example.
pub const ROWS: [(&str, &str, i64); 15] = [
    ("quarter", "2024-09-24T22:00:00Z", 3),
    ("quarter", "2024-09-24T22:15:00Z", 2),
    ("quarter", "2024-09-24T22:30:00Z", 4),
    ("quarter", "2024-09-24T22:45:00Z", 1),
    ("quarter", "2024-09-27T01:00:00Z", 2),
    ("quarter", "2024-09-27T01:15:00Z", 3),
    ("hour", "2024-09-24T22:00:00Z", 18),
    ("hour", "2024-09-24T23:00:00Z", 22),
    ("hour", "2024-09-25T00:00:00Z", 15),
    ("hour", "2024-09-27T00:00:00Z", 11),
    ("hour", "2024-09-27T01:00:00Z", 9),
    ("day", "2024-09-24T00:00:00Z", 214),
    ("day", "2024-09-25T00:00:00Z", 189),
    ("day", "2024-09-26T00:00:00Z", 245),
    ("day", "2024-09-27T00:00:00Z", 78),
];

pub fn rows(key: &str) -> Value {
    let row = |(granularity, time, count): &(&str, &str, i64)| {
        json!({
            "key": key, "granularity": granularity, "time": time, "count": count,
        })
    };
    ROWS.iter().map(row).collect()
}

/// The counter of the reference's worked example.
pub fn rain_drops() -> Value {
    json!({"id": 34, "name": "count_rain_drops", "template": "rain_drops:city:{city_id}", "eventType": "rain_drop",
        "retentionDays": forever()})
}

/// Asks the question of the worked example.
#[track_caller]
pub fn ask_example(client: &Client, key: &str) {
    let result = client.results(&[(key, 1_727_215_430, 1_727_400_000)]).remove(0);
    assert_eq!(
        result,
        json!({"key": key, "fromTime": 1_727_215_200, "toTime": 1_727_399_700, "count": 487})
    );
}

#[test]
fn the_worked_example_answers_487() {
    let home = Home::new();
    let server = home.start();
    server.create(rain_drops());
    let key = "rain_drops:city:111222";
    let sent = server.post("/v1/buckets", &rows(key)).expect(200);
    assert_eq!(sent, json!({"accepted": 15, "duplicates": 0, "rejected": []}));
    ask_example(&server, key);
    // The same rows again set the same counts, and so does a restart.
    server.post("/v1/buckets", &rows(key)).expect(200);
    ask_example(&server, key);
    server.kill();
    ask_example(&home.start(), key);
}

#[test]
fn a_bucket_that_is_set_stands_beside_events() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let noon = at("2024-09-24T12:00:00Z");
    let day = noon - 43_200;
    server.count_events(&[drop_event("1", noon, "oslo")]);

    let set = |granularity: &str, time: i64, count: i64| {
        let bucket = json!([{"key": "drops:oslo", "granularity": granularity, "time": time, "count": count}]);
        assert_eq!(server.post("/v1/buckets", &bucket).expect(200)["accepted"], 1);
    };
    set("day", day, 1_000);

    // Each granularity keeps its own counts.
    assert_eq!(
        server.counts(&[("drops:oslo", day, day + 86_400), ("drops:oslo", noon, noon + 900)]),
        [1_000, 1]
    );
    server.count_events(&[drop_event("2", noon, "oslo")]);
    assert_eq!(
        server.counts(&[("drops:oslo", day, day + 86_400), ("drops:oslo", noon, noon + 900)]),
        [1_001, 2]
    );
    set("quarter", noon, -7);
    set("hour", noon, i64::MAX);
    assert_eq!(
        server.counts(&[("drops:oslo", noon, noon + 900), ("drops:oslo", noon, noon + 3_600)]),
        [-7, i64::MAX]
    );
    set("day", day, 0);
    assert_eq!(server.count("drops:oslo", day, day + 86_400), 0);
}

/// The answer to a request is lost, an event is counted, and the client sends the request again.
#[test]
fn a_request_with_a_key_may_be_sent_again() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let noon = at("2024-09-24T12:00:00Z");
    let set = |server: &Client, key: &str, count: i64| {
        let bucket =
            json!([{"key": "drops:oslo", "granularity": "hour", "time": noon, "count": count}]);
        server.send(
            "POST",
            "/v1/buckets",
            &[("idempotency-key", key)],
            bucket.to_string().as_bytes(),
        )
    };

    let first = set(&server, "\"8e03978e\"", 18).expect(200);
    server.count_events(&[drop_event("1", noon, "oslo")]);

    for key in ["\"8e03978e\"", "8e03978e"] {
        assert_eq!(set(&server, key, 18).expect(200), first);
    }
    assert_eq!(server.count("drops:oslo", noon, noon + 3_600), 19);
    set(&server, "8e03978e", 20).expect_problem(422, "idempotency_key_reused");
    set(&server, &"k".repeat(256), 20).expect_problem(400, "idempotency_key_malformed");
    assert_eq!(server.count("drops:oslo", noon, noon + 3_600), 19);

    server.kill();
    let server = home.start();
    assert_eq!(set(&server, "8e03978e", 18).expect(200), first);
    assert_eq!(server.count("drops:oslo", noon, noon + 3_600), 19);
    set(&server, "another", 18).expect(200);
    assert_eq!(server.count("drops:oslo", noon, noon + 3_600), 18);
}

#[test]
fn each_bucket_is_refused_alone() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());
    server.create(json!({"name": "short", "template": "short:{x}", "eventType": "e",
        "retentionDays": {"quarter": 1, "hour": 2, "day": 3}}));

    let noon = at("2024-09-24T12:00:00Z");
    let good = json!({"key": "drops:oslo", "granularity": "quarter", "time": noon, "count": 1});
    let with = |name: &str, value: Value| {
        let mut bucket = good.clone();
        bucket[name] = value;
        bucket
    };

    let cases = [
        (json!(7), "bucket_malformed"),
        (json!({}), "bucket_malformed"),
        (with("key", json!(7)), "bucket_malformed"),
        (with("granularity", json!("week")), "bucket_malformed"),
        (with("time", json!("soon")), "bucket_malformed"),
        (with("time", json!(1.5)), "bucket_malformed"),
        (with("count", json!(1.5)), "bucket_malformed"),
        (with("count", json!(1e30)), "bucket_malformed"),
        (with("count", json!(null)), "bucket_malformed"),
        (with("key", json!("wind:oslo")), "key_unknown"),
        (with("time", json!(noon + 1)), "time_not_aligned"),
        (with("granularity", json!("day")), "time_not_aligned"),
        (with("time", json!(-900)), "time_not_aligned"),
        (with("key", json!("short:1")), "too_late"),
        (with("count", json!(i64::MIN)), "count_out_of_range"),
    ];

    let mut batch = vec![good.clone()];
    batch.extend(cases.iter().map(|(bucket, _)| bucket.clone()));
    batch.push(with("time", json!("2024-09-24T14:15:00+02:00")));

    let sent = server.post("/v1/buckets", &json!(batch)).expect(200);
    let seen: Vec<(u64, &str)> = sent["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|refused| (refused["index"].as_u64().unwrap(), refused["code"].as_str().unwrap()))
        .collect();

    let expected: Vec<(u64, &str)> =
        cases.iter().enumerate().map(|(index, (_, code))| (index as u64 + 1, *code)).collect();
    assert_eq!(seen, expected);
    assert_eq!(sent["accepted"], 2);
    assert_eq!(server.count("drops:oslo", noon, noon + 1_800), 2);
}

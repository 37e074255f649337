//! Whole requests that are refused: each limit and each kind of invalid input has its own code.

use crate::client::{at, drop_event, drops_counter, forever};
use crate::server::Home;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;

const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");
const JSON: (&str, &str) = ("content-type", "application/json");
const GZIP: (&str, &str) = ("content-encoding", "gzip");

#[test]
fn requests_that_cannot_be_read_are_refused_by_name() {
    let home = Home::new();
    let server = home.start();
    let batch = ("content-type", "application/cloudevents-batch+json");
    let post = |path: &str, headers: &[(&str, &str)], body: &[u8]| {
        server.send("POST", path, headers, body)
    };

    post("/v1/events?wait=forever", &[NDJSON], b"").expect_problem(400, "wait_unknown");
    post("/v1/events", &[("content-type", "text/csv")], b"a,b")
        .expect_problem(415, "media_type_unknown");
    post("/v1/events", &[NDJSON, ("content-encoding", "br")], b"")
        .expect_problem(415, "encoding_unknown");
    post("/v1/events", &[NDJSON, GZIP], b"not gzip").expect_problem(400, "gzip_malformed");

    for body in ["", "{}", "[", "[1", "[1,]", "[] []", "[{}]]", "[\"\\", "nonsense"] {
        post("/v1/events", &[batch], body.as_bytes()).expect_problem(400, "json_malformed");
    }
    post("/v1/events", &[batch], b"[\"\xff\"]").expect_problem(400, "json_malformed");

    for body in [
        "",
        "[]",
        "{",
        "{}",
        r#"{"requests": 1}"#,
        r#"{"requests": [1]}"#,
        r#"{"requests": [{}]} x"#,
        "\u{0}",
    ] {
        post("/v1/counts", &[JSON], body.as_bytes()).expect_problem(400, "json_malformed");
    }

    for body in ["", "{}", "[", "nonsense"] {
        post("/v1/buckets", &[JSON], body.as_bytes()).expect_problem(400, "json_malformed");
    }

    for body in ["", "{", "\"\\ud800\""] {
        post("/v1/counters", &[JSON], body.as_bytes()).expect_problem(400, "json_malformed");
    }
    server.get("/v1/nothing").expect_problem(404, "route_unknown");
    server.send("DELETE", "/v1/counts", &[], b"").expect_problem(405, "method_not_allowed");
    server
        .get("/v1/series?key=k&fromTime=0&toTime=900&granularity=year")
        .expect_problem(400, "granularity_unknown");
    server.get("/v1/counters?color=red").expect_problem(400, "parameter_unknown");
}

/// Each version and each entry of the audit log keeps a reason.
#[test]
fn a_reason_has_a_limit() {
    let home = Home::new();
    let server = home.start();
    let create = |len: usize| {
        let reason = "r".repeat(len);
        server.send(
            "POST",
            "/v1/counters",
            &[JSON, ("x-reason", &reason)],
            drops_counter().to_string().as_bytes(),
        )
    };

    create(2_001).expect_problem(400, "reason_too_long");
    create(2_000).expect(201);
}

/// Nesting that would exhaust the stack of a recursive parser, in every body and at every place in
/// it.
#[test]
fn deep_nesting_is_refused_and_the_server_lives() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    for depth in [100, 20_000, 5_000_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let event = format!(
                r#"{{"specversion":"1.0","id":"1","source":"s","type":"drop","data":{deep}}}"#
            );

            for (path, headers, body) in [
                ("/v1/events", vec![NDJSON], &event),
                ("/v1/events", vec![JSON], &event),
                (
                    "/v1/events",
                    vec![("content-type", "application/cloudevents-batch+json")],
                    &format!("[{event}]"),
                ),
                ("/v1/events", vec![JSON], &deep),
                ("/v1/events", vec![("ce-id", "1"), ("ce-specversion", "1.0"), JSON], &deep),
                ("/v1/counts", vec![JSON], &deep),
                (
                    "/v1/counts",
                    vec![JSON],
                    &format!(r#"{{"requests":[{{"key":"k","a":{deep}}}]}}"#),
                ),
                ("/v1/buckets", vec![JSON], &deep),
                ("/v1/counters", vec![JSON], &deep),
                ("/v1/counters", vec![JSON], &format!(r#"{{"name":"n","filter":{deep}}}"#)),
                ("/v1/counters/preview", vec![JSON], &deep),
            ] {
                let answer = server.send("POST", path, &headers, body.as_bytes());
                let refused =
                    (400..500).contains(&answer.status) || answer.text().contains("\"code\"");
                assert!(refused, "{path} at depth {depth}: {} {}", answer.status, answer.text());
            }

            assert_eq!(server.get("/healthz").status, 200, "the server lives at depth {depth}");
        }
    }
}

#[test]
fn bodies_have_a_limit_packed_and_unpacked() {
    let home = Home::with(&[("server.body_bytes_max", "65536")]);
    let server = home.start();
    server.create(drops_counter());

    let line = format!("{}\n", drop_event("1", at("2024-09-24T12:00:00Z"), "oslo"));
    let large = line.repeat(70_000 / line.len());
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(large.as_bytes()).unwrap();

    let packed = encoder.finish().unwrap();
    assert!(packed.len() < 2_000);

    for path in ["/v1/events", "/v1/counts", "/v1/buckets", "/v1/counters"] {
        let answer = server.send("POST", path, &[NDJSON], large.as_bytes());
        answer.expect_problem(413, "body_too_large");
    }

    server
        .send("POST", "/v1/events", &[NDJSON, GZIP], &packed)
        .expect_problem(413, "body_too_large");
    let fits = &large[..large.len() / 2];
    assert_eq!(server.send("POST", "/v1/events", &[NDJSON], fits.as_bytes()).status, 200);
}

#[test]
fn batches_have_a_limit() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let noon = at("2024-09-24T12:00:00Z");
    let events: Vec<Value> =
        (0..50_001).map(|id| drop_event(&id.to_string(), noon, "oslo")).collect();
    server.lines("/v1/events", &events).expect_problem(413, "too_many_events");
    assert_eq!(
        server.lines("/v1/events?wait=applied", &events[1..]).expect(200)["accepted"],
        50_000
    );
    assert_eq!(
        server.count("drops:oslo", noon, noon + 900),
        50_000,
        "none of the refused request was counted"
    );

    let range = json!({"key": "drops:oslo", "fromTime": noon, "toTime": noon + 900});
    let ranges = |len: usize| json!({"requests": vec![range.clone(); len]});
    server.post("/v1/counts", &ranges(1_001)).expect_problem(413, "too_many_ranges");
    assert_eq!(
        server.post("/v1/counts", &ranges(1_000)).expect(200)["results"].as_array().unwrap().len(),
        1_000
    );

    let bucket = json!({"key": "drops:bergen", "granularity": "quarter", "time": noon, "count": 1});
    server
        .post("/v1/buckets", &json!(vec![bucket.clone(); 10_001]))
        .expect_problem(413, "too_many_buckets");
    assert_eq!(
        server.post("/v1/buckets", &json!(vec![bucket; 10_000])).expect(200)["accepted"],
        10_000
    );
}

#[test]
fn counters_have_limits() {
    let home = Home::new();
    let server = home.start();
    let base =
        json!({"name": "n", "template": "t:{a}", "eventType": "e", "retentionDays": forever()});
    let condition = json!({"operator": "exists", "lhs": "data.a"});
    let deep = (0..9)
        .fold(condition.clone(), |inner, _| json!({"operator": "not", "conditions": [inner]}));

    for (member, value) in [
        ("id", json!(1_000_000)),
        ("name", json!("n".repeat(129))),
        ("template", json!("t".repeat(257))),
        ("template", json!("{a}:".repeat(9) + "x")),
        ("owner", json!("o".repeat(2_001))),
        ("description", json!("d".repeat(2_001))),
        ("eventType", json!("e".repeat(1_025))),
        ("filter", deep),
        ("filter", json!({"operator": "and", "conditions": vec![condition; 65]})),
        (
            "filter",
            json!({"operator": "in", "lhs": "data.a", "rhs": (0..1_001).collect::<Vec<_>>()}),
        ),
        ("value", json!({"field": "data.a", "scale": 1_000_000_001})),
        ("retentionDays", json!({"quarter": 36_601, "hour": null, "day": null})),
    ] {
        let mut counter = base.clone();
        counter[member] = value;
        let problem = server.post("/v1/counters", &counter).expect_problem(422, "counter_invalid");
        assert_eq!(problem["problems"][0]["field"], member, "{problem}");
    }

    assert_eq!(server.get("/v1/counters").json()["counters"], json!([]));
}

/// Input that is not HTTP, or incomplete, affects no other client.
#[test]
fn broken_requests_are_answered_or_dropped() {
    let home = Home::new();
    let server = home.start();
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET /v1/counts?key=%ff%fe&fromTime=0&toTime=900 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        b"GET /v1/counters/%00 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    ] {
        let answer = server.raw(bytes);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }

    assert_eq!(server.get("/readyz").status, 200);
}

/// Every mistake in a path or a query gets a problem document too.
#[test]
fn paths_and_queries_are_refused_as_problems() {
    let home = Home::new();
    let server = home.start();
    for path in [
        "/v1/counters/abc",
        "/v1/counters/-1",
        "/v1/counters/99999999999",
        "/v1/counters/abc/versions",
    ] {
        let answer = server.get(path);
        assert!((400..500).contains(&answer.status), "{path}: {}", answer.status);
        assert_eq!(
            answer.header("content-type"),
            "application/problem+json",
            "{path}: {}",
            answer.text()
        );
        assert!(answer.json()["code"].is_string());
    }

    server.get("/v1/counters/77").expect_problem(404, "counter_unknown");
    server.get("/v1/counters/77/versions").expect_problem(404, "counter_unknown");
    server.get("/v1/counters/77/keys").expect_problem(404, "counter_unknown");
    server.get("/v1/counters/77/backfill").expect_problem(404, "backfill_unknown");
    server
        .send("POST", "/v1/counters/77/backfill", &[], b"")
        .expect_problem(404, "counter_unknown");
    server.get("/v1/counters/77/keys?limit=0").expect_problem(400, "limit_out_of_range");
    server.get("/v1/counters/77/keys?limit=many").expect_problem(400, "limit_out_of_range");
}

/// Configurations and reasons, which every process keeps and reads, are limited in size.
#[test]
fn configurations_and_reasons_have_a_size() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let put = |counter: &Value, headers: &[(&str, &str)]| {
        server.send("PUT", "/v1/counters/34", headers, counter.to_string().as_bytes())
    };
    let mut counter = drops_counter();
    counter["filter"] = json!({ "operator": "eq", "lhs": "data.a", "rhs": "x".repeat(1_025) });
    put(&counter, &[]).expect_problem(422, "counter_invalid");

    let many: Vec<String> = (0..900).map(|number| format!("{number}{}", "x".repeat(100))).collect();
    counter["filter"] = json!({ "operator": "in", "lhs": "data.a", "rhs": many });
    put(&counter, &[]).expect_problem(422, "counter_invalid");

    let long = "x".repeat(2_001);
    put(&drops_counter(), &[("x-reason", &long)]).expect_problem(400, "reason_too_long");
    server
        .send("DELETE", "/v1/counters/34", &[("x-reason", &long)], b"")
        .expect_problem(400, "reason_too_long");
    server
        .send("PUT", "/v1/cache-policy", &[("x-reason", &long)], b"{}")
        .expect_problem(400, "reason_too_long");
    put(&drops_counter(), &[("x-reason", &long[1..])]).expect(200);

    assert_eq!(
        server.get("/v1/counters/34/versions").expect(200)["versions"].as_array().map(Vec::len),
        Some(1)
    );
}

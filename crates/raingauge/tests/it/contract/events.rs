//! `POST /v1/events`: every form of events, and the answers to those that are refused.

use crate::client::{Client, at, drop_event, drops_counter, event, now_s, rfc3339};
use crate::server::{Home, until};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};

const NOON: &str = "2024-09-24T12:00:00Z";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn post(client: &Client, headers: &[(&str, &str)], body: &[u8]) -> Value {
    client.send("POST", "/v1/events?wait=applied", headers, body).expect(200)
}

fn total(client: &Client, city: &str) -> i64 {
    client.count(&format!("drops:{city}"), at(NOON), at(NOON) + 86_400)
}

#[test]
fn every_form_of_events_is_counted_once() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let one = |id: &str| drop_event(id, at(NOON), "oslo");
    let array = |ids: &[&str]| json!(ids.iter().map(|id| one(id)).collect::<Vec<_>>()).to_string();
    let lines =
        |ids: &[&str]| ids.iter().map(|id| format!("{}\r\n\n", one(id))).collect::<String>();
    let forms: [(&str, String, usize); 9] = [
        ("application/cloudevents+json", one("1").to_string(), 1),
        ("application/cloudevents+json; charset=utf-8", one("2").to_string(), 1),
        ("application/json", one("3").to_string(), 1),
        ("application/json", array(&["4", "5"]), 2),
        ("application/cloudevents-batch+json", array(&["6", "7", "8"]), 3),
        ("Application/CloudEvents-Batch+JSON", " [ ] ".to_owned(), 0),
        ("application/x-ndjson", lines(&["9", "10"]), 2),
        ("application/x-ndjson", String::new(), 0),
        ("application/x-ndjson", one("11").to_string(), 1),
    ];

    let mut expected = 0;
    for (kind, body, len) in &forms {
        let sent = post(&server, &[("content-type", kind)], body.as_bytes());
        assert_eq!(
            sent,
            json!({"accepted": len, "duplicates": 0, "rejected": []}),
            "{kind} {body}"
        );

        let packed = gzip(body.as_bytes());
        let again = post(&server, &[("content-type", kind), ("content-encoding", "gzip")], &packed);
        assert_eq!(
            again,
            json!({"accepted": 0, "duplicates": len, "rejected": []}),
            "the same, packed: {kind}"
        );
        expected += *len as i64;
        assert_eq!(total(&server, "oslo"), expected);
    }
}

#[test]
fn gzip_of_several_members_is_one_body() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());
    let member = |id: &str| gzip(format!("{}\n", drop_event(id, at(NOON), "oslo")).as_bytes());
    let headers = [("content-type", "application/x-ndjson"), ("content-encoding", "gzip")];
    assert_eq!(post(&server, &headers, &[member("1"), member("2")].concat())["accepted"], 2);
    assert_eq!(total(&server, "oslo"), 2);
}

#[test]
fn binary_mode_takes_attributes_from_headers() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());
    server
        .create(json!({"name": "by subject", "template": "subject:{subject}", "eventType": "drop",
        "retentionDays": {"quarter": null, "hour": null, "day": null}}));

    let mut headers = vec![
        ("ce-specversion", "1.0"),
        ("ce-id", "b%201"),
        ("ce-source", "tests"),
        ("ce-type", "drop"),
        ("ce-time", NOON),
        ("ce-subject", "Euro%20%E2%82%AC%20%F0%9F%98%80"),
        ("content-type", "application/json"),
    ];

    assert_eq!(post(&server, &headers, br#"{"city": "oslo"}"#)["accepted"], 1);
    assert_eq!(total(&server, "oslo"), 1);
    assert_eq!(server.count("subject:Euro € 😀", at(NOON), at(NOON) + 900), 1);

    // The identity is the decoded one, in every mode.
    let same = event("drop", "b 1", at(NOON), json!({"city": "oslo"}));
    assert_eq!(server.count_events(&[same])["duplicates"], 1);

    // Data that is not JSON is accepted, and has no fields.
    headers[1] = ("ce-id", "2");
    headers[6] = ("content-type", "text/plain");
    assert_eq!(post(&server, &headers, b"\xff not json")["accepted"], 1);
    assert_eq!(total(&server, "oslo"), 1);
    assert_eq!(server.count("subject:Euro € 😀", at(NOON), at(NOON) + 900), 2);

    for (name, value, code) in [
        ("ce-id", "%zz", "event_malformed"),
        ("ce-id", "%ff", "event_malformed"),
        ("ce-id", "%2", "event_malformed"),
        ("ce-id", "", "attribute_missing"),
        ("ce-specversion", "0.3", "specversion_unsupported"),
        ("ce-time", "noon", "time_invalid"),
    ] {
        let mut headers = headers.clone();
        headers.iter_mut().filter(|(known, _)| *known == name).for_each(|header| header.1 = value);
        server.send("POST", "/v1/events", &headers, b"{}").expect_problem(422, code);
    }

    headers[6] = ("content-type", "application/json");
    server.send("POST", "/v1/events", &headers, b"{").expect_problem(422, "event_malformed");
}

/// The answer names a refused event by its place and a code; the others are counted.
#[test]
fn partial_failure_names_each_rejected_event() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let good = |id: &str| drop_event(id, at(NOON), "oslo");
    let without = |name: &str| {
        let mut event = good("x");
        event.as_object_mut().unwrap().remove(name);
        event
    };

    let with = |name: &str, value: Value| {
        let mut event = good("x");
        event[name] = value;
        event
    };

    let cases: [(Value, &str); 16] = [
        (json!("text"), "event_malformed"),
        (json!({}), "specversion_unsupported"),
        (without("specversion"), "specversion_unsupported"),
        (with("specversion", json!("0.3")), "specversion_unsupported"),
        (without("id"), "attribute_missing"),
        (with("id", json!("")), "attribute_missing"),
        (with("id", json!(7)), "event_malformed"),
        (without("source"), "attribute_missing"),
        (without("type"), "attribute_missing"),
        (without("time"), "attribute_missing"),
        (with("time", json!("yesterday")), "time_invalid"),
        (with("time", json!("1969-12-31T23:59:59Z")), "time_invalid"),
        (with("time", json!(rfc3339(now_s() + 3_600))), "time_in_future"),
        (with("id", json!("i".repeat(1_025))), "attribute_too_long"),
        (with("data", json!({"city": "x".repeat(70_000)})), "event_too_large"),
        (with("data", nested(100)), "event_malformed"),
    ];

    let mut batch = Vec::new();
    for (index, (bad, _)) in cases.iter().enumerate() {
        batch.extend([good(&format!("good-{index}")), bad.clone()]);
    }

    let array = json!(batch).to_string();
    for (kind, path) in
        [("application/x-ndjson", ""), ("application/cloudevents-batch+json", "again")]
    {
        let sent = match path {
            "" => server.lines("/v1/events?wait=applied", &batch),
            _ => {
                // The nesting of an array is checked before its events are read: that refuses the
                // whole array.
                let sound = array
                    .replace(&nested(100).to_string(), "7")
                    .replace(r#""data":7"#, r#""data":7,"id":7"#);
                server.send(
                    "POST",
                    "/v1/events?wait=applied",
                    &[("content-type", kind)],
                    sound.as_bytes(),
                )
            }
        };

        let sent = sent.expect(200);
        let rejected = sent["rejected"].as_array().unwrap();
        let seen: Vec<(u64, &str)> = rejected
            .iter()
            .map(|rejected| {
                (rejected["index"].as_u64().unwrap(), rejected["code"].as_str().unwrap())
            })
            .collect();

        let expected: Vec<(u64, &str)> = cases
            .iter()
            .enumerate()
            .map(|(index, (_, code))| (2 * index as u64 + 1, *code))
            .collect();

        assert_eq!(seen, expected, "{kind}");
        assert!(rejected.iter().all(|rejected| {
            rejected["detail"].as_str().is_some_and(|detail| detail.len() > 10)
        }));

        let counted = if path.is_empty() { "accepted" } else { "duplicates" };
        assert_eq!(sent[counted], cases.len());
    }

    assert_eq!(total(&server, "oslo"), cases.len() as i64);

    // A single refused event is an error of the request, with the same content.
    let answer = server.post("/v1/events", &without("id"));
    let problem = answer.expect_problem(422, "attribute_missing");
    assert_eq!((&problem["accepted"], &problem["rejected"][0]["index"]), (&json!(0), &json!(0)));
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn a_line_that_is_not_json_leaves_the_others_alone() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let good = |id: &str| drop_event(id, at(NOON), "oslo").to_string();
    let half = &good("0")[..40];
    let body =
        [good("1").as_bytes(), half.as_bytes(), b"\xff\xfe", b"null", b"[]", good("2").as_bytes()]
            .join(&b'\n');
    let sent = post(&server, &[("content-type", "application/x-ndjson")], &body);
    let indexes: Vec<&Value> =
        sent["rejected"].as_array().unwrap().iter().map(|rejected| &rejected["index"]).collect();

    assert_eq!((json!(indexes), &sent["accepted"]), (json!([1, 2, 3, 4]), &json!(2)));
    assert_eq!(total(&server, "oslo"), 2);
}

#[test]
fn a_duplicate_is_recognized_by_source_and_id_together() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let of = |source: &str, id: &str, city: &str| {
        let mut event = drop_event(id, at(NOON), city);
        event["source"] = json!(source);
        event
    };

    let batch =
        [of("a", "1", "oslo"), of("b", "1", "oslo"), of("a", "1", "bergen"), of("a1", "", "oslo")];
    let sent = server.count_events(&batch);
    assert_eq!((&sent["accepted"], &sent["duplicates"]), (&json!(2), &json!(1)));
    assert_eq!((total(&server, "oslo"), total(&server, "bergen")), (2, 0));

    // The boundary between the two names matters.
    assert_eq!(server.count_events(&[of("a", "bc", "oslo"), of("ab", "c", "oslo")])["accepted"], 2);
}

/// `wait=applied` gives read-your-writes, request by request.
#[test]
fn what_was_waited_for_is_read() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());
    for expected in 1..=200 {
        server.count_events(&[drop_event(&expected.to_string(), at(NOON), "oslo")]);
        assert_eq!(total(&server, "oslo"), expected);
    }
}

#[test]
fn without_waiting_an_event_is_readable_within_a_second() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let mut slowest = Duration::ZERO;
    for expected in 1..=20 {
        server
            .lines("/v1/events", &[drop_event(&expected.to_string(), at(NOON), "oslo")])
            .expect(200);
        let began = Instant::now();
        until("the event is counted", || (total(&server, "oslo") == expected).then_some(()));
        slowest = slowest.max(began.elapsed());
    }

    assert!(slowest < Duration::from_secs(1), "the slowest took {slowest:?}");
}

/// A server whose requests may take a second, and that has more to count than it can in that time.
pub fn busy_home() -> Home {
    Home::with(&[("server.request_timeout_s", "1"), ("server.grpc_listen", "127.0.0.1:0")])
}

/// Gives the writer more to count, which takes a while: each event has its own key in each of many
/// counters.
pub fn add_work(client: &Client, round: usize) {
    if round == 0 {
        client.create(drops_counter());
        for n in 0..30 {
            let template = format!("busy{n}:{{n}}");
            client.create(
                json!({"name": format!("busy {n}"), "template": template, "eventType": "busy"}),
            );
        }
    }

    let now = now_s();
    for batch in 0..4 {
        let one = |n: usize| {
            let id = format!("{round}-{batch}-{n}");
            event("busy", &id, now, json!({"n": id}))
        };
        let events: Vec<Value> = (0..500).map(one).collect();

        // On a busy machine the log itself may take longer than a second.
        let answer = client.lines("/v1/events", &events);
        assert!([200, 504].contains(&answer.status), "{}", answer.text());
    }
}

/// When counting takes longer than the request may, the answer has its own code and the outcome of
/// the events.
#[test]
fn events_that_are_not_counted_in_time_are_safe() {
    let home = busy_home();
    let server = home.start();
    let noon = at("2024-09-24T12:00:00Z");
    let told = (0..60).find_map(|round| {
        add_work(&server, round);
        let event = drop_event(&round.to_string(), noon, &format!("oslo-{round}"));
        let answer = server.lines("/v1/events?wait=applied", &[event, json!(7)]);
        assert!([200, 202, 504].contains(&answer.status), "{}", answer.text());

        (answer.status == 202).then(|| (round, answer.json()))
    });

    let (round, told) = told.expect("counting takes longer than a second at last");
    assert_eq!((&told["code"], &told["status"]), (&json!("not_applied_yet"), &json!(202)));
    assert_eq!((&told["accepted"], &told["duplicates"]), (&json!(1), &json!(0)));
    assert_eq!(told["rejected"][0]["index"], 1);
    assert!(told["lag"].as_u64().is_some_and(|lag| lag > 0), "{told}");
    assert!(server.metric("raingauge_errors_total{code=\"not_applied_yet\"}") >= 1.0);

    let key = format!("drops:oslo-{round}");
    until("it is counted all the same", || {
        (server.count(&key, noon, noon + 900) == 1).then_some(())
    });
}

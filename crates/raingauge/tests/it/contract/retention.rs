//! Time: events that come too late or too early, expired buckets, and when a counter is active.

use crate::client::{Client, at, drop_event, event, forever, now_s, rfc3339};
use crate::server::Home;
use serde_json::{Value, json};

const DAY_S: i64 = 86_400;

/// Quarter hours are kept for 2 days, hours for 10, days for 20. Times below keep away from the
/// edges by days, so that midnight may pass during a test.
fn short(client: &Client) -> i64 {
    client
        .create(json!({"id": 7, "name": "short", "template": "short:{city}", "eventType": "drop",
        "retentionDays": {"quarter": 2, "hour": 10, "day": 20}}));
    now_s() - now_s() % DAY_S
}

#[test]
fn an_event_counts_in_the_buckets_that_are_still_kept() {
    let home = Home::new();
    let server = home.start();
    let today = short(&server);
    let ago = |days: i64| today - days * DAY_S + 6 * 3_600;
    let sent = server.count_events(&[
        drop_event("1", ago(1), "oslo"),
        drop_event("2", ago(6), "oslo"),
        drop_event("3", ago(15), "oslo"),
        drop_event("4", ago(30), "oslo"),
    ]);

    assert_eq!(sent["accepted"], 3);
    assert_eq!(
        (&sent["rejected"][0]["index"], &sent["rejected"][0]["code"]),
        (&json!(3), &json!("too_late"))
    );

    let day = |days: i64| (ago(days) - 6 * 3_600, ago(days) + 18 * 3_600);
    for (days, hour_is_kept, quarter_is_kept) in
        [(1, true, true), (6, true, false), (15, false, false)]
    {
        let (day_from, day_to) = day(days);
        let time = ago(days);
        let results = server.results(&[
            ("short:oslo", day_from, day_to),
            ("short:oslo", time, time + 3_600),
            ("short:oslo", time, time + 900),
        ]);

        assert_eq!(results[0]["count"], 1, "{days} days ago");

        for (result, is_kept) in [(&results[1], hour_is_kept), (&results[2], quarter_is_kept)] {
            if is_kept {
                assert_eq!(result["count"], 1, "{days} days ago: {result}")
            } else {
                assert_eq!(result["error"]["code"], "range_expired", "{days} days ago: {result}")
            }
        }
    }

    let late = |granularity| {
        server.metric(&format!(
            "raingauge_late_refused_total{{counter=\"7\",granularity=\"{granularity}\"}}"
        ))
    };

    assert_eq!((late("quarter"), late("hour"), late("day")), (2.0, 1.0, 0.0));
    assert_eq!(server.metric(r#"raingauge_events_rejected_total{code="too_late"}"#), 1.0);
}

/// The finest level that still exists answers when the edges align; otherwise the error names the
/// earliest time.
#[test]
fn a_range_into_expired_time_is_answered_when_its_edges_align() {
    let home = Home::new();
    let server = home.start();
    let today = short(&server);
    let month = today - 15 * DAY_S;
    let now = now_s();

    server.count_events(&[
        drop_event("1", month + 5, "oslo"),
        drop_event("2", today - DAY_S + 5, "oslo"),
    ]);
    assert_eq!(server.count("short:oslo", month, today), 2);

    let aligned_from = server.results(&[("short:oslo", month, now - now % 900)]).remove(0);
    assert_eq!(aligned_from["count"], 2, "the fine edge lies in kept time: {aligned_from}");

    for from in [month + 900, month + 3_600, today - 6 * DAY_S + 900] {
        let result = server.results(&[("short:oslo", from, today)]).remove(0);
        let detail = result["error"]["detail"].as_str().unwrap_or_default().to_owned();
        assert_eq!(result["error"]["code"], "range_expired", "{result}");

        assert!(
            detail.contains(&rfc3339(today - 2 * DAY_S))
                || detail.contains(&rfc3339(today - 10 * DAY_S)),
            "{detail}"
        );
    }

    let gone = server.results(&[("short:oslo", today - 40 * DAY_S, today)]).remove(0);
    assert_eq!(gone["error"]["code"], "range_expired");

    let query = format!(
        "/v1/series?key=short:oslo&fromTime={}&toTime={today}&granularity=hour",
        today - 15 * DAY_S
    );
    server.get(&query).expect_problem(422, "range_expired");
}

#[test]
fn events_from_the_future_are_refused_beyond_a_clock_allowance() {
    let home = Home::with(&[("events.future_allowance_s", "600")]);
    let server = home.start();
    server.create(json!({"name": "n", "template": "drops:{city}", "eventType": "drop"}));

    let now = now_s();
    let sent = server.count_events(&[
        drop_event("1", now + 500, "oslo"),
        drop_event("2", now + 1_000, "oslo"),
        drop_event("3", at("9999-12-31T00:00:00Z"), "oslo"),
    ]);

    assert_eq!(sent["accepted"], 1);
    let codes: Vec<&Value> =
        sent["rejected"].as_array().unwrap().iter().map(|refused| &refused["code"]).collect();
    assert_eq!(json!(codes), json!(["time_in_future", "time_in_future"]));
    assert_eq!(server.count("drops:oslo", now - 900, now + 7_200), 1);
}

/// `activeFrom` and `activeUntil` apply to the time of the event, not to its arrival.
#[test]
fn a_counter_is_active_by_event_time() {
    let home = Home::new();
    let server = home.start();
    let noon = at("2024-09-24T12:00:00Z");
    let base = json!({"name": "n", "eventType": "drop", "retentionDays": forever()});

    for (template, from, until) in [
        ("from", json!(noon + 900), Value::Null),
        ("until", Value::Null, json!("2024-09-24T12:30:00Z")),
        ("between", json!(rfc3339(noon + 900)), json!(noon + 1_800)),
    ] {
        let mut counter = base.clone();
        (counter["template"], counter["activeFrom"], counter["activeUntil"]) =
            (json!(template), from, until);
        server.create(counter);
    }

    let times = [noon + 899, noon + 900, noon + 1_799, noon + 1_800];
    let events: Vec<Value> =
        times.iter().rev().map(|time| event("drop", &time.to_string(), *time, json!({}))).collect();
    server.count_events(&events);
    assert_eq!(
        server.counts(&["from", "until", "between"].map(|key| (key, noon, noon + 7_200))),
        [3, 3, 2]
    );

    assert_eq!(
        server.metric(r#"raingauge_events_skipped_total{counter="1",reason="outside_activity"}"#),
        1.0
    );
}

/// Granularities of history may be loaded at day level alone.
#[test]
fn history_may_be_of_days_only() {
    let home = Home::new();
    let server = home.start();
    let today = short(&server);
    let day = today - 15 * DAY_S;
    let bucket = |granularity: &str| json!([{"key": "short:oslo", "granularity": granularity, "time": day, "count": 5}]);
    assert_eq!(server.post("/v1/buckets", &bucket("day")).expect(200)["accepted"], 1);
    assert_eq!(
        server.post("/v1/buckets", &bucket("hour")).expect(200)["rejected"][0]["code"],
        "too_late"
    );
    assert_eq!(server.count("short:oslo", day, day + DAY_S), 5);
}

//! Range counts, one by one and in batches.

use crate::client::{at, drop_event, drops_counter, event, forever, now_s};
use crate::server::Home;
use serde_json::json;

const NOON: &str = "2024-09-24T12:00:00Z";

#[test]
fn a_batch_is_answered_in_order_and_each_item_fails_alone() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let noon = at(NOON);
    server.count_events(&[drop_event("1", noon, "oslo"), drop_event("2", noon + 899, "oslo")]);

    let requests = json!({"requests": [
        {"key": "drops:oslo", "fromTime": noon, "toTime": noon + 900},
        {"key": "drops:oslo", "fromTime": NOON, "toTime": "2024-09-24T14:15:00+02:00"},
        {"key": "drops:oslo", "fromTime": noon.to_string(), "toTime": noon as f64 + 900.7},
        {"key": "drops:nowhere", "fromTime": noon, "toTime": noon + 900},
        {"key": "wind:oslo", "fromTime": noon, "toTime": noon + 900},
        {"key": "drops:oslo", "fromTime": noon + 900, "toTime": noon},
        {"key": "drops:oslo", "fromTime": "soon", "toTime": noon},
        {"key": "drops:oslo", "fromTime": noon},
        {"fromTime": noon, "toTime": noon},
        {"key": "drops:oslo", "fromTime": 0, "toTime": 4_000_000_000_i64},
        {"key": "drops:oslo", "fromTime": -900, "toTime": 900},
        {"key": "drops:oslo", "fromTime": 0, "toTime": 1_e17},
        {"key": "drops:oslo", "fromTime": noon + 5, "toTime": noon + 5},
        {"key": "drops:oslo", "fromTime": noon + 7, "toTime": noon + 1_799, "color": "red"},
    ]});

    let answered = server.post("/v1/counts", &requests);
    let timing = answered.header("server-timing").to_owned();
    let number = |name: &str| timing.split(name).nth(1)?.split(',').next()?.parse::<usize>().ok();
    let memory = number("memory;desc=").unwrap();
    let store = number("store;desc=").unwrap();

    // A range that could not be read counts for no source.
    assert_eq!((memory + store, number("cache;desc=")), (10, Some(0)), "{timing}");
    let answer = answered.expect(200);
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), requests["requests"].as_array().unwrap().len());

    let whole = json!({"key": "drops:oslo", "fromTime": noon, "toTime": noon + 900, "count": 2});
    for index in [0, 1, 2, 13] {
        assert_eq!(results[index], whole, "item {index}");
    }
    assert_eq!(
        results[3],
        json!({"key": "drops:nowhere", "fromTime": noon, "toTime": noon + 900, "count": 0})
    );
    assert_eq!(
        results[12],
        json!({"key": "drops:oslo", "fromTime": noon, "toTime": noon, "count": 0})
    );

    let codes: Vec<&str> =
        results.iter().filter_map(|result| result["error"]["code"].as_str()).collect();
    assert_eq!(
        codes,
        [
            "key_unknown",
            "range_backwards",
            "time_invalid",
            "time_invalid",
            "key_missing",
            "range_too_long",
            "time_out_of_range",
            "time_invalid"
        ]
    );

    for result in results.iter().filter(|result| result.get("error").is_some()) {
        assert!(result["key"].is_string() && result.get("count").is_none(), "{result}");
        assert!(
            result["error"]["detail"].as_str().is_some_and(|detail| detail.len() > 5),
            "{result}"
        );
    }
}

#[test]
fn one_count_is_asked_by_its_query() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let noon = at(NOON);
    server.count_events(&[drop_event("1", noon, "são paulo & co+1")]);

    let key = "drops:s%C3%A3o+paulo%20%26%20co%2B1";
    for times in [
        "fromTime=1727179200&toTime=1727180100",
        "fromTime=2024-09-24T12:00:00Z&toTime=2024-09-24T12:29:59Z",
    ] {
        let answer = server.get(&format!("/v1/counts?key={key}&{times}")).expect(200);
        let expected = json!({"key": "drops:são paulo & co+1", "fromTime": noon, "toTime": noon + 900, "count": 1});
        assert_eq!(answer, expected);
    }

    for (query, status, code) in [
        ("key=wind:1&fromTime=0&toTime=900", 404, "key_unknown"),
        ("key=drops:1&fromTime=900&toTime=0", 422, "range_backwards"),
        ("key=drops:1&fromTime=x&toTime=0", 422, "time_invalid"),
        ("key=drops:1", 422, "time_invalid"),
        ("fromTime=0&toTime=900", 422, "key_missing"),
    ] {
        server.get(&format!("/v1/counts?{query}")).expect_problem(status, code);
    }
}

/// Ages and days count back from the request; a series begins its days in its zone.
#[test]
fn ranges_may_be_relative_to_the_request() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());
    server.count_events(&[drop_event("1", now_s() - 7_200, "oslo")]);

    let count = |from: &str, to: &str| {
        let query = format!("/v1/counts?key=drops:oslo&fromTime={from}&toTime={to}");
        server.get(&query).expect(200)["count"].clone()
    };
    assert_eq!(count("-7d", "now"), 1);
    assert_eq!(count("-2w", "-1d"), 0);
    assert_eq!(count("yesterday", "-1s"), 1);

    let ranges = json!([
        {"key": "drops:oslo", "fromTime": "-24h", "toTime": "now"},
        {"key": "drops:oslo", "fromTime": "now", "toTime": "-24h"},
        {"key": "drops:oslo", "fromTime": "-24x", "toTime": "now"},
        {"key": "drops:oslo", "fromTime": "-9999w", "toTime": "now"},
    ]);
    let answer = server.post("/v1/counts", &json!({ "requests": ranges })).expect(200);
    let results = answer["results"].as_array().expect("results");
    assert_eq!(results[0]["count"], 1);
    let codes = results[1..].iter().map(|result| result["error"]["code"].clone());
    assert_eq!(codes.collect::<Vec<_>>(), ["range_backwards", "time_invalid", "time_out_of_range"]);

    let series = "/v1/series?key=drops:oslo&fromTime=yesterday&toTime=now&timezone=Asia/Kathmandu";
    let first = server.get(series).expect(200)["points"][0]["time"].as_i64().expect("a time");
    // Clocks in Kathmandu are 5:45 hours ahead of UTC.
    assert_eq!((first + 20_700) % 86_400, 0);

    let keys = "/v1/counters/34/keys?fromTime=-7d&toTime=now";
    assert_eq!(server.get(keys).expect(200)["keys"][0]["count"], 1);
    server
        .get("/v1/counts?key=drops:oslo&fromTime=7d&toTime=now")
        .expect_problem(422, "time_invalid");
}

/// The range is half-open, and both its ends are floored: an event on an edge belongs to the range
/// that begins there.
#[test]
fn edges_belong_to_what_begins_there() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let midnight = at("2024-09-25T00:00:00Z");
    let times = [
        midnight - 1,
        midnight,
        midnight + 899,
        midnight + 900,
        midnight + 3_599,
        midnight + 3_600,
    ];

    let events: Vec<_> = times
        .iter()
        .enumerate()
        .map(|(id, time)| drop_event(&id.to_string(), *time, "oslo"))
        .collect();

    server.count_events(&events);

    for (from, to) in (-8..8).flat_map(|from| (from..8).map(move |to| (from, to))) {
        let (from, to) = (midnight + from * 450, midnight + to * 450);
        let (floor_from, floor_to) = (from - from % 900, to - to % 900);
        let expected = times.iter().filter(|time| (floor_from..floor_to).contains(*time)).count();
        assert_eq!(server.count("drops:oslo", from, to), expected as i64, "[{from}, {to})");
    }
}

/// `fresh` includes the quarter hour that is still open, and the answer says how far it reaches.
#[test]
fn fresh_counts_the_open_quarter_hour() {
    let home = Home::new();
    let server = home.start();
    server.create(json!({"name": "drops", "template": "drops:{city}", "eventType": "drop"}));

    for round in 0.. {
        // Of two consecutive rounds, one lies within a quarter hour.
        let now = now_s();
        let open = now - now % 900;
        server.count_events(&[drop_event(&round.to_string(), now, &format!("oslo{round}"))]);

        let key = format!("drops:oslo{round}");
        let to = (now + 1).min(open + 899);
        let item = json!({"key": key, "fromTime": open - 900, "toTime": to});
        let mut fresh_item = item.clone();

        fresh_item["fresh"] = json!(true);
        let settled =
            server.post("/v1/counts", &json!({"requests": [item.clone(), fresh_item]})).expect(200);
        let all_fresh =
            server.post("/v1/counts", &json!({"requests": [item], "fresh": true})).expect(200);
        let query = format!("/v1/counts?key={key}&fromTime={}&toTime={to}&fresh=true", open - 900);
        let by_query = server.get(&query).expect(200);

        if now_s() - now_s() % 900 != open || to % 900 == 0 {
            continue;
        }
        assert_eq!(settled["results"][0]["count"], 0);
        assert_eq!(settled["results"][0]["toTime"], open);

        for result in [&settled["results"][1], &all_fresh["results"][0], &by_query] {
            assert_eq!(
                (&result["count"], &result["fromTime"]),
                (&json!(1), &json!(open - 900)),
                "{result}"
            );
            let reached = result["toTime"].as_i64().unwrap();
            assert!((now..=open + 900).contains(&reached), "{result}");
        }

        return;
    }
}

#[test]
fn values_may_be_fields_and_negative() {
    let home = Home::new();
    let server = home.start();
    let base = |name: &str, value: serde_json::Value| {
        json!({"name": name, "template": format!("{name}:{{shop}}"), "eventType": "sale", "value": value,
            "retentionDays": forever()})
    };
    server.create(base("cents", json!({"field": "data.amount", "scale": 100})));
    server.create(base("down", json!(-3)));

    let noon = at(NOON);
    let amounts = ["12.36", "-2.3", "0.10", "1e1", "0.005", "\"7\"", "null", "true"];
    let events: Vec<_> = amounts
        .iter()
        .enumerate()
        .map(|(id, amount)| {
            let data =
                serde_json::from_str(&format!(r#"{{"shop": 7, "amount": {amount}}}"#)).unwrap();
            event("sale", &id.to_string(), noon + 900 * id as i64, data)
        })
        .collect();

    server.count_events(&events);

    // An amount that is no whole number of cents adds nothing, and a metric counts it.
    assert_eq!(server.count("cents:7", noon, noon + 86_400), 1_236 - 230 + 10 + 1_000);
    assert_eq!(server.count("cents:7", noon + 900, noon + 1_800), -230);
    assert_eq!(server.count("down:7", noon, noon + 86_400), -3 * amounts.len() as i64);

    assert_eq!(
        server.metric(r#"raingauge_events_skipped_total{counter="1",reason="no_value"}"#),
        4.0
    );
}

#[test]
fn a_sum_that_does_not_fit_is_an_error_and_never_wraps() {
    let home = Home::new();
    let server = home.start();
    server.create(json!({"name": "sum", "template": "sum:{shop}", "eventType": "sale",
        "value": {"field": "data.amount"}, "retentionDays": forever()}));

    let noon = at(NOON);
    let sale = |id: &str, time: i64, amount: i64| {
        event("sale", id, time, json!({"shop": 7, "amount": amount}))
    };
    server.count_events(&[
        sale("1", noon, i64::MAX),
        sale("2", noon + 900, i64::MAX),
        sale("3", noon + 3_600, 5),
    ]);

    let results = server.results(&[
        ("sum:7", noon, noon + 900),
        ("sum:7", noon, noon + 1_800),
        ("sum:7", noon, noon + 3_600),
        ("sum:7", noon + 3_600, noon + 7_200),
    ]);

    assert_eq!(results[0]["count"], i64::MAX);
    assert_eq!(
        results[1]["error"]["code"], "overflow",
        "two quarter hours do not fit together: {}",
        results[1]
    );
    assert_eq!(results[2]["error"]["code"], "overflow", "the hour overflowed: {}", results[2]);
    assert_eq!(results[3]["count"], 5, "what lies beside it is untouched");

    let query = format!("/v1/counts?key=sum:7&fromTime={noon}&toTime={}", noon + 3_600);
    server.get(&query).expect_problem(422, "overflow");

    let query = query.replace("counts", "series") + "&granularity=hour";
    server.get(&query).expect_problem(422, "overflow");

    // An overflowed bucket stays overflowed, whatever is subtracted from it.
    server.count_events(&[sale("4", noon, -i64::MAX), sale("5", noon, -i64::MAX)]);
    assert_eq!(server.results(&[("sum:7", noon, noon + 3_600)])[0]["error"]["code"], "overflow");
}

#[test]
fn filters_decide_what_is_counted() {
    let home = Home::new();
    let server = home.start();
    let condition = |operator: &str, lhs: &str, rhs: serde_json::Value| {
        json!({
            "operator": operator, "lhs": lhs, "rhs": rhs,
        })
    };
    let filters = [
        ("all", json!(null), 4),
        ("large", condition("gte", "data.mm", json!(2)), 2),
        (
            "both",
            json!({"operator": "and", "conditions": [
            condition("gt", "data.mm", json!(0.5)), condition("in", "data.city", json!(["oslo", "rome"]))]}),
            2,
        ),
        (
            "either",
            json!({"operator": "or", "conditions": [
            condition("eq", "data.city", json!("rome")), condition("lt", "data.mm", json!(1))]}),
            2,
        ),
        (
            "neither",
            json!({"operator": "not", "conditions": [condition("prefix", "data.city", json!("os"))]}),
            2,
        ),
        ("known", json!({"operator": "exists", "lhs": "data.mm"}), 3),
        ("unlike", condition("ne", "data.mm", json!(2.0)), 3),
        ("little", condition("lte", "data.mm", json!(1)), 1),
    ];

    for (name, filter, _) in &filters {
        server
            .create(json!({"name": name, "template": name, "eventType": "drop", "filter": filter,
            "retentionDays": forever()}));
    }

    let noon = at(NOON);
    let data = [
        json!({"city": "oslo", "mm": 2}),
        json!({"city": "rome", "mm": 2.5}),
        json!({"city": "oslo"}),
        json!({"city": "bari", "mm": 0.25}),
    ];

    let events: Vec<_> = data
        .iter()
        .enumerate()
        .map(|(id, data)| event("drop", &id.to_string(), noon, data.clone()))
        .collect();

    server.count_events(&events);

    for (name, _, expected) in &filters {
        assert_eq!(server.count(name, noon, noon + 900), *expected, "{name}");
    }
}

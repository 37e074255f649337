//! Counts and series over gRPC equal those over HTTP.

use super::proto::raingauge::v1::count_result::Outcome;
use super::proto::raingauge::v1::{
    CountRequest, CountResult, CountsRequest, Granularity, SeriesRequest,
};
use super::{Grpc, assert_refused, home, noon_s};
use crate::client::{Client, drop_event, drops_counter};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tonic::Code;

/// Two days of events at three cities.
fn fill(server: &Client) {
    server.create(drops_counter());
    let city = |n: i64| ["oslo", "roma", "bonn"][n as usize % 3];
    let events: Vec<Value> = (0..600)
        .map(|n| drop_event(&n.to_string(), noon_s() - (n * 7_919) % 172_800, city(n)))
        .collect();
    server.count_events(&events);
}

fn json_of(result: CountResult) -> Value {
    match result.outcome.expect("a result has an outcome") {
        Outcome::Count(count) => json!({
            "key": result.key, "fromTime": count.from_time, "toTime": count.to_time, "count": count.count,
        }),
        Outcome::Error(error) => {
            json!({"key": result.key, "error": {"code": error.code, "detail": error.detail}})
        }
    }
}

#[test]
fn a_batch_is_answered_as_by_http() {
    let home = home();
    let server = home.start();
    fill(&server);

    let grpc = Grpc::new(&server);
    let key = prop::sample::select(vec![
        "drops:oslo",
        "drops:roma",
        "drops:nowhere",
        "nobody:oslo",
        "",
        "drops:",
    ]);

    let time = prop_oneof![
        20 => noon_s() - 200_000..noon_s() + 20_000,
        1 => prop::sample::select(vec![0, -1, -900, i64::MIN, i64::MAX]),
    ];
    let item = (key, time.clone(), time, any::<bool>());
    let mut runner =
        TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
    let batch = (prop::collection::vec(item, 0..40), any::<bool>());
    let checked = runner.run(&batch, |(items, fresh)| {
        let requests = items.iter().map(|(key, from_time, to_time, fresh)| CountRequest {
            key: (*key).to_owned(),
            from_time: *from_time,
            to_time: *to_time,
            fresh: *fresh,
        });

        let answer =
            grpc.batch(CountsRequest { requests: requests.collect(), fresh }).expect("an answer");
        let results: Vec<Value> = answer.results.into_iter().map(json_of).collect();
        let requests: Vec<Value> = items
            .iter()
            .map(|(key, from, to, fresh)| {
                json!({"key": key, "fromTime": from, "toTime": to, "fresh": fresh})
            })
            .collect();
        let by_http =
            server.post("/v1/counts", &json!({"requests": requests, "fresh": fresh})).expect(200);

        prop_assert_eq!(json!(results), by_http["results"].clone());
        Ok(())
    });

    checked.unwrap_or_else(|failure| panic!("{failure}"));
    let whole = CountRequest {
        key: "drops:oslo".to_owned(),
        from_time: 0,
        to_time: noon_s() + 900,
        fresh: false,
    };

    let answer =
        grpc.batch(CountsRequest { requests: vec![whole], fresh: false }).expect("an answer");
    assert_eq!(json_of(answer.results[0].clone())["count"], 200);
}

#[test]
fn a_series_is_answered_as_by_http() {
    let home = home();
    let server = home.start();
    fill(&server);

    let grpc = Grpc::new(&server);
    let (from_time, to_time) = (noon_s() - 172_800, noon_s() + 900);
    for (granularity, name) in [
        (Granularity::Quarter, "quarter"),
        (Granularity::Hour, "hour"),
        (Granularity::Day, "day"),
        (Granularity::Week, "week"),
        (Granularity::Month, "month"),
        (Granularity::Unspecified, "hour"),
    ] {
        for timezone in ["", "UTC", "Asia/Kathmandu"] {
            let request = SeriesRequest {
                key: "drops:roma".to_owned(),
                from_time,
                to_time,
                granularity: granularity.into(),
                timezone: timezone.to_owned(),
            };

            let series = grpc.series(request).expect("a series");
            let zone = if timezone.is_empty() { "UTC" } else { timezone };
            let path = format!(
                "/v1/series?key=drops:roma&fromTime={from_time}&toTime={to_time}&granularity={name}&timezone={zone}"
            );
            let by_http = server.get(&path).expect(200);
            let points: Vec<Value> = series
                .points
                .iter()
                .map(|point| json!({"time": point.time, "count": point.count}))
                .collect();

            assert!(!points.is_empty());
            assert_eq!(
                (json!(series.key), json!(points)),
                (by_http["key"].clone(), by_http["points"].clone())
            );

            let named = Granularity::try_from(series.granularity)
                .expect("a granularity")
                .as_str_name()
                .to_lowercase();
            assert_eq!(named.strip_prefix("granularity_"), by_http["granularity"].as_str());
        }
    }

    let request = |key: &str| SeriesRequest {
        key: key.to_owned(),
        from_time,
        to_time,
        ..SeriesRequest::default()
    };

    assert_refused(grpc.series(request("nobody:x")), Code::NotFound, "key_unknown");
    let backwards =
        SeriesRequest { from_time: to_time, to_time: from_time, ..request("drops:roma") };
    assert_refused(grpc.series(backwards), Code::InvalidArgument, "range_backwards");

    let unknown = SeriesRequest { granularity: 9, ..request("drops:roma") };
    assert_refused(grpc.series(unknown), Code::InvalidArgument, "granularity_unknown");

    let zone = SeriesRequest { timezone: "Moon/Tycho".to_owned(), ..request("drops:roma") };
    assert_refused(grpc.series(zone), Code::InvalidArgument, "timezone_unknown");
}

//! `GET /v1/series`: points in any time zone, days and hours cut where its clocks cut them.

use crate::client::{Client, at, drop_event, drops_counter};
use crate::server::{Home, Server};
use serde_json::{Value, json};

/// A server with one drop in every hour of UTC, at its start, in `[from, to)`.
fn hourly(home: &Home, from: &str, to: &str) -> Server {
    let server = home.start();
    server.create(drops_counter());
    let hours = (at(from)..at(to)).step_by(3_600);
    let events: Vec<Value> =
        hours.map(|time| drop_event(&time.to_string(), time, "oslo")).collect();
    server.count_events(&events);
    server
}

fn points(client: &Client, from: &str, to: &str, rest: &str) -> Vec<(i64, i64)> {
    let query = format!("/v1/series?key=drops:oslo&fromTime={}&toTime={}&{rest}", at(from), at(to));
    let series = client.get(&query).expect(200);
    assert_eq!(series["key"], "drops:oslo");
    let points = series["points"].as_array().expect("points");
    points
        .iter()
        .map(|point| (point["time"].as_i64().unwrap(), point["count"].as_i64().unwrap()))
        .collect()
}

fn counts(points: &[(i64, i64)]) -> Vec<i64> {
    points.iter().map(|(_, count)| *count).collect()
}

#[test]
fn each_granularity_lists_every_bucket_of_the_range() {
    let home = Home::new();
    let server = hourly(&home, "2024-09-24T00:00:00Z", "2024-09-26T00:00:00Z");
    let (from, to) = ("2024-09-24T22:00:00Z", "2024-09-25T02:00:00Z");
    let hours = points(&server, from, to, "granularity=hour");

    assert_eq!(hours, (0..4).map(|hour| (at(from) + hour * 3_600, 1)).collect::<Vec<_>>());
    let quarters = points(&server, from, to, "granularity=quarter");
    assert_eq!(
        quarters,
        (0..16)
            .map(|quarter| (at(from) + quarter * 900, i64::from(quarter % 4 == 0)))
            .collect::<Vec<_>>()
    );
    assert_eq!(
        points(&server, from, to, "granularity=day"),
        [(at(from), 2), (at("2024-09-25T00:00:00Z"), 2)]
    );
    assert_eq!(points(&server, from, from, "granularity=day"), []);

    let series = server.get("/v1/series?key=drops:oslo&fromTime=0&toTime=900").expect(200);
    assert_eq!(
        series,
        json!({"key": "drops:oslo", "granularity": "hour", "points": [{"time": 0, "count": 0}]})
    );
}

/// When clocks change, a local day has 23 or 25 hours, and the sums follow it.
#[test]
fn days_follow_the_clocks_of_the_zone() {
    let home = Home::new();
    let server = hourly(&home, "2024-03-01T00:00:00Z", "2024-04-15T00:00:00Z");

    for (zone, from, to, expected) in [
        ("America/New_York", "2024-03-09T05:00:00Z", "2024-03-12T04:00:00Z", vec![24, 23, 24]),
        ("Europe/Berlin", "2024-03-29T23:00:00Z", "2024-04-01T22:00:00Z", vec![24, 23, 24]),
        ("Australia/Sydney", "2024-04-05T13:00:00Z", "2024-04-08T14:00:00Z", vec![24, 25, 24]),
        ("Asia/Kolkata", "2024-03-09T18:30:00Z", "2024-03-11T18:30:00Z", vec![24, 24]),
        ("Asia/Kathmandu", "2024-03-09T18:15:00Z", "2024-03-11T18:15:00Z", vec![24, 24]),
        // Lord Howe moves its clocks by half an hour.
        ("Australia/Lord_Howe", "2024-04-05T13:00:00Z", "2024-04-07T13:30:00Z", vec![24, 25]),
        ("UTC", "2024-03-09T00:00:00Z", "2024-03-11T00:00:00Z", vec![24, 24]),
    ] {
        let days = points(&server, from, to, &format!("granularity=day&timezone={zone}"));
        assert_eq!(counts(&days), expected, "{zone}");
        assert_eq!(days[0].0, at(from), "{zone}");

        assert_eq!(
            expected.iter().sum::<i64>(),
            server.count("drops:oslo", at(from), at(to)),
            "{zone}"
        );
    }
}

#[test]
fn weeks_and_months_are_sums_of_the_days_of_the_zone() {
    let home = Home::new();
    let server = hourly(&home, "2024-03-01T00:00:00Z", "2024-04-15T00:00:00Z");
    let (from, to) = ("2024-02-28T05:15:00Z", "2024-04-14T07:45:00Z");

    for zone in ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"] {
        let days = points(&server, from, to, &format!("granularity=day&timezone={zone}"));
        for step in ["week", "month"] {
            let rest = format!("granularity={step}&timezone={zone}");
            let sums = points(&server, from, to, &rest);
            assert!((3..=8).contains(&sums.len()), "{zone} {step} {sums:?}");

            for (place, (begin, count)) in sums.iter().enumerate() {
                let end = sums.get(place + 1).map_or(i64::MAX, |next| next.0);
                let inside = days.iter().filter(|(day, _)| (*begin..end).contains(day));
                let days: i64 = inside.map(|(_, count)| count).sum();
                assert_eq!(*count, days, "{zone} {step} {begin}");
            }
        }
    }

    // New York is behind UTC, and its clocks go forward on 10 March.
    let weeks = points(
        &server,
        "2024-03-04T05:00:00Z",
        "2024-03-18T04:00:00Z",
        "granularity=week&timezone=America/New_York",
    );
    let second = at("2024-03-11T04:00:00Z");
    assert_eq!(weeks, [(at("2024-03-04T05:00:00Z"), 167), (second, 168)]);

    let series =
        server.get("/v1/series?key=drops:oslo&fromTime=0&toTime=900&granularity=month").expect(200);
    assert_eq!(series["granularity"], "month");
}

#[test]
fn both_halves_of_an_hour_that_comes_twice_are_points_of_their_own() {
    let home = Home::new();
    let server = hourly(&home, "2024-11-02T00:00:00Z", "2024-11-05T00:00:00Z");
    let zone = "granularity=hour&timezone=America/New_York";
    let day = points(&server, "2024-11-03T04:00:00Z", "2024-11-04T05:00:00Z", zone);

    assert_eq!(day.len(), 25);
    assert!(day.windows(2).all(|pair| pair[1].0 - pair[0].0 == 3_600));
    assert!(day.iter().all(|(_, count)| *count == 1));

    // In Kolkata an hour begins at half past the hour of UTC.
    let hours = points(
        &server,
        "2024-11-03T00:00:00Z",
        "2024-11-03T02:00:00Z",
        "granularity=hour&timezone=Asia/Kolkata",
    );

    let half = at("2024-11-03T00:30:00Z");
    assert_eq!(hours, [(half - 1_800, 1), (half, 1), (half + 3_600, 0)]);
}

#[test]
fn a_range_that_cuts_a_bucket_counts_what_is_inside() {
    let home = Home::new();
    let server = hourly(&home, "2024-09-24T00:00:00Z", "2024-09-27T00:00:00Z");
    let zone = "granularity=day&timezone=Asia/Tokyo";
    let days = points(&server, "2024-09-24T06:10:00Z", "2024-09-25T17:20:00Z", zone);
    let expected =
        [("2024-09-24T06:00:00Z", 9), ("2024-09-24T15:00:00Z", 24), ("2024-09-25T15:00:00Z", 3)];
    assert_eq!(days, expected.map(|(time, count)| (at(time), count)));
}

#[test]
fn series_that_cannot_be_cut_are_refused() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    for (query, status, code) in [
        ("key=drops:oslo&fromTime=0&toTime=900&timezone=Mars/Olympus", 422, "timezone_unknown"),
        ("key=drops:oslo&fromTime=0&toTime=900000000&granularity=quarter", 422, "series_too_long"),
        ("key=wind:oslo&fromTime=0&toTime=900", 404, "key_unknown"),
        ("key=drops:oslo&fromTime=900&toTime=0", 422, "range_backwards"),
        // Until 1972 the clocks of Monrovia were 44 minutes and 30 seconds behind UTC.
        (
            "key=drops:oslo&fromTime=0&toTime=864000&granularity=day&timezone=Africa/Monrovia",
            422,
            "timezone_unaligned",
        ),
    ] {
        server.get(&format!("/v1/series?{query}")).expect_problem(status, code);
    }
}

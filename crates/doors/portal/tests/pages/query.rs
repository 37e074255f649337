//! The query page.

use crate::world::{NOW_S, World};
use raingauge_core::bucket::{DAY_S, Granularity, HOUR_S};
use raingauge_core::time::parse_time_s;
use raingauge_writer::control::Bucket;
use serde_json::json;

/// The worked example of the published description, on exactly the rows that it prints in bold.
async fn worked_example() -> World {
    let world = World::new();
    let forever = json!({ "quarter": null, "hour": null, "day": null });
    world
        .counter(json!({ "template": "rain_drops:city:{city_id}", "retentionDays": forever }))
        .await;

    let rows = [
        ("quarter", "2024-09-27T01:00:00Z", 2),
        ("hour", "2024-09-24T22:00:00Z", 18),
        ("hour", "2024-09-24T23:00:00Z", 22),
        ("hour", "2024-09-27T00:00:00Z", 11),
        ("day", "2024-09-25T00:00:00Z", 210),
        ("day", "2024-09-26T00:00:00Z", 224),
    ];

    let bucket = |(granularity, time, count): (&str, &str, i64)| {
        let time = parse_time_s(time).expect("a time");
        let granularity = Granularity::from_name(granularity).expect("a granularity");
        Bucket { key: "rain_drops:city:111222".to_owned(), granularity, time, count }
    };

    let rows = rows.map(|row| Ok(bucket(row))).into();
    let set = world.portal.counters.set_buckets(rows, None).await.expect("buckets are set");
    assert!(set.answer.rejected.is_empty(), "{set:?}");

    world
}

#[tokio::test]
async fn the_worked_example_is_drawn() {
    let world = worked_example().await;
    let page = world.get("/query?key=rain_drops:city:111222&from=1727215430&to=1727400000").await;
    page.shows("<span class=\"total\">487</span>").shows("2024-09-24 22:00 – 2024-09-27 01:15");
    page.shows("What the count reads: 40 + 434 + 11 + 2 = 487")
        .shows("Both ends were moved back to the start of their quarter hour");
    page.shows("6 cells")
        .shows("in 4 slices")
        .shows("3 rows")
        .shows("cache strategy")
        .shows("Answering took");
    page.shows("from=1727215430&amp;to=1727400000").shows("/counters/1?key=");
}

#[tokio::test]
async fn the_open_quarter_hour_is_taken_in_when_asked_for() {
    let world = World::new();
    world.counter(json!({})).await;
    world.clock.set_s(NOW_S + 300);
    world.events("rain_drop", [(NOW_S + 200, json!({ "city_id": 7 }))]).await;
    world.get("/query?key=rain:city:7&range=1h").await.shows("<span class=\"total\">0</span>");
    world
        .get("/query?key=rain:city:7&range=1h&fresh=1")
        .await
        .shows("<span class=\"total\">1</span>");
}

#[tokio::test]
async fn many_keys_are_pasted_with_errors_by_line() {
    let world = worked_example().await;
    let lines = "rain_drops:city:111222 2024-09-24T22:03:50Z 2024-09-27T01:20:00Z\nsnow:1\nrain_drops:city:1 1800 900\n<b>";
    let query: String = form_urlencoded::byte_serialize(lines.as_bytes()).collect();
    let page = world.get(&format!("/query?range=24h&batch={query}")).await;
    page.shows("4 ranges")
        .shows("<strong>487</strong>")
        .shows("no counter has a template that renders `snow:1`");
    page.shows("the range ends before it begins")
        .shows("<strong>3</strong> could not be counted")
        .lacks("<b></code>");
}

/// A relative time is one wherever a time is entered, and stays in its field.
#[tokio::test]
async fn times_may_be_relative() {
    let world = World::new();
    world.counter(json!({})).await;
    world
        .events("rain_drop", [2, 30].map(|hours| (NOW_S - hours * HOUR_S, json!({ "city_id": 7 }))))
        .await;

    let day = world.get("/query?key=rain:city:7&from=-1d&to=now").await;
    day.shows("<span class=\"total\">1</span>").shows("name=\"from\" value=\"-1d\"");
    let both = world.get("/query?key=rain:city:7&from=yesterday&to=now").await;
    both.shows("<span class=\"total\">2</span>");

    let line: String = form_urlencoded::byte_serialize(b"rain:city:7 yesterday now").collect();
    world.get(&format!("/query?batch={line}")).await.shows("<strong>2</strong>");
    let chart = world.get("/counters/1?key=rain:city:7&from=-1d&to=now").await;
    chart.shows("<span class=\"total\">1</span>").shows("name=\"from\" value=\"-1d\"");
}

#[tokio::test]
async fn too_many_lines_say_where_there_is_room() {
    let world = worked_example().await;
    let page = world.get(&format!("/query?batch={}", "a%0A".repeat(201))).await;
    page.shows("There are 201 lines, and a page takes 200").shows("POST /v1/counts");
}

#[tokio::test]
async fn keys_are_offered_while_one_types() {
    let world = World::new();
    world.counter(json!({})).await;
    world.counter(json!({ "template": "snow:{city_id}" })).await;
    world.events("rain_drop", (0..3).map(|city| (NOW_S, json!({ "city_id": city })))).await;
    world.get("/query/keys?key=rain").await.shows("value=\"rain:city:0\"").lacks("snow");
    world.get("/query/keys?prefix=rain:city:2").await.shows("rain:city:2").lacks("rain:city:1");
    world.get("/query/keys?key=hail").await.lacks("option");
}

#[tokio::test]
async fn what_cannot_be_counted_gets_advice() {
    let world = worked_example().await;
    world.get("/query").await.shows("Enter a key");
    world
        .get("/query?key=%3Cscript%3E")
        .await
        .shows("no counter has a template")
        .shows("see the templates")
        .lacks("<script>`");
    world.get("/query?key=a&range=custom").await.shows("The range has no “from”");
    world
        .get("/query?key=rain_drops:city:111222&from=soon&to=-1d")
        .await
        .shows("“soon” is not a time");

    let expired = World::new();
    expired.counter(json!({})).await;

    let (from_s, to_s) = (NOW_S - 500 * DAY_S + HOUR_S, NOW_S);
    expired
        .get(&format!("/query?key=rain:city:7&from={from_s}&to={to_s}"))
        .await
        .shows("have expired");
}

//! The page of a counter.

use crate::world::{NOW_S, World};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use proptest::prelude::*;
use raingauge_core::bucket::{DAY_S, HOUR_S};
use raingauge_core::counter::Counter;
use raingauge_core::time::parse_time_s;
use serde_json::json;

fn at(text: &str) -> i64 {
    parse_time_s(text).expect("a time")
}

/// A counter with drops in two cities over three days.
async fn rainy() -> World {
    let world = World::new();
    world
        .counter(json!({ "description": "Drops of rain, by city.",
        "filter": { "operator": "gte", "lhs": "data.millimetres", "rhs": 1 } }))
        .await;

    let drop = |hours: i64, city: i64| {
        (NOW_S - hours * HOUR_S, json!({ "city_id": city, "millimetres": 2 }))
    };
    let many = (0..60).map(|hours| drop(hours, 7)).chain((0..5).map(|hours| drop(hours, 8)));
    world.events("rain_drop", many).await;
    world
        .events(
            "rain_drop",
            [
                (NOW_S, json!({ "city_id": 7, "millimetres": 0 })),
                (NOW_S, json!({ "millimetres": 1 })),
            ],
        )
        .await;

    world
}

#[tokio::test]
async fn without_a_question_the_largest_key_answers() {
    let world = rainy().await;
    let page = world.get("/counters/1").await;
    page.shows("count_rain_drops").shows("Drops of rain, by city.").shows("millimetres ≥ 1");
    page.shows("<span class=\"total\">60</span>")
        .shows("rain:city:7")
        .shows("chart-bar")
        .shows("Show as a table");
    page.shows("Largest keys").shows("rain:city:</span>8").shows("/query?key=rain%3Acity%3A7");
}

#[tokio::test]
async fn the_range_the_bars_and_the_zone_are_chosen() {
    let world = rainy().await;
    let day = format!("/counters/1?key=rain:city:7&from={}&to={}", NOW_S - DAY_S, NOW_S);
    world
        .get(&day)
        .await
        .shows("<span class=\"total\">24</span>")
        .shows("Most in one quarter hour: 1");

    let hours = world.get(&format!("{day}&granularity=hour&zone=Asia/Tokyo")).await;
    hours
        .shows("Asia/Tokyo")
        .shows("Most in one hour: 1")
        .shows("id=\"granularity-hour\" name=\"granularity\" value=\"hour\" checked");
    world.get(&format!("{day}&granularity=day")).await.shows("Most in one day: 12");
}

/// The links carry what is on the screen, in the clock of its zone.
#[tokio::test]
async fn what_is_shown_is_recounted_and_explained_in_two_clicks() {
    let world = rainy().await;
    let page = world
        .get("/counters/1?key=rain:city:7&range=custom&from=2024-10-01T09:00&to=2024-10-02T12:00&zone=Asia/Tokyo")
        .await;
    let same = format!(
        "key=rain%3Acity%3A7&amp;from={}&amp;to={}&amp;zone=Asia%2FTokyo",
        at("2024-10-01T00:00:00Z"),
        at("2024-10-02T03:00:00Z")
    );

    page.shows(&format!("href=\"/query?{same}\""))
        .shows(&format!("href=\"/checks?{same}#recount\""));
    let form = world.get(&format!("/checks?{}", same.replace("&amp;", "&"))).await;
    form.shows("value=\"rain:city:7\"")
        .shows("value=\"2024-10-01 09:00\"")
        .shows("value=\"2024-10-02 12:00\"");
}

#[tokio::test]
async fn a_day_has_23_hours_when_the_clocks_go_forward() {
    let world = World::new();
    world.counter(json!({ "retentionDays": { "quarter": null, "hour": null, "day": null } })).await;
    let (from_s, to_s) = (at("2024-03-30T23:00:00Z"), at("2024-03-31T22:00:00Z"));
    let each_hour = (from_s - 2 * HOUR_S..to_s + 2 * HOUR_S).step_by(3_600);
    world.events("rain_drop", each_hour.map(|time_s| (time_s, json!({ "city_id": 1 })))).await;
    let address = "/counters/1/series.csv?key=rain:city:1&zone=Europe/Berlin&from=2024-03-31T00:00&to=2024-04-01T00:00";
    let days = world.get(&format!("{address}&granularity=day")).await;
    let expected = format!("2024-03-31T00:00:00+01:00,2024-04-01T00:00:00+02:00,{from_s},23\r\n");
    assert!(days.text.ends_with(&expected), "{}", days.text);
    let hours = world.get(&format!("{address}&granularity=hour")).await;
    assert_eq!(hours.text.lines().count(), 24, "{}", hours.text);
    hours.shows("2024-03-31T01:00:00+01:00,2024-03-31T03:00:00+02:00");
}

#[tokio::test]
async fn the_period_before_is_compared_with() {
    let world = rainy().await;
    let day = format!(
        "/counters/1?key=rain:city:8&from={}&to={}&compare=1",
        NOW_S - 2 * HOUR_S,
        NOW_S + 900
    );

    world
        .get(&day)
        .await
        .shows("compared with the preceding period (2)")
        .shows("chart-pale")
        .shows("preceding period");
    let two = world.get(&format!("{day}&key=rain:city:7")).await;
    two.shows("The preceding period is shown for one key at a time.")
        .shows("series-1")
        .lacks("chart-pale");
}

#[tokio::test]
async fn several_keys_are_lines_with_a_legend() {
    let world = rainy().await;
    let page = world.get("/counters/1?key=rain:city:7&key=rain:city:8&range=7d&scale=log").await;
    page.shows("class=\"legend\"")
        .shows("chart-line series-1")
        .shows("name=\"scale\" value=\"log\" checked");
    page.shows("<span class=\"total\">60</span>").shows("<span class=\"total\">5</span>");
}

#[tokio::test]
async fn uncounted_events_are_reported_by_reason() {
    let page = rainy().await.get("/counters/1").await;
    page.shows("did not pass the filter").shows("had no value for a field of the template");
}

#[tokio::test]
async fn a_key_of_nobody_and_odd_questions_get_advice() {
    let world = rainy().await;
    world
        .get("/counters/1?key=snow:%3Cb%3E")
        .await
        .shows("cannot be counted")
        .shows("no counter has a template")
        .lacks("<b>:");
    world
        .get("/counters/1?range=custom&from=soon&zone=Mars")
        .await
        .shows("“soon” is not a time")
        .shows("“Mars” is not a time zone");

    let missing = world.get("/counters/99").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    missing.shows("There is no such counter");
}

#[tokio::test]
async fn a_script_gets_the_short_address() {
    let world = rainy().await;
    let address = "/counters/1?key=rain:city:7&key=&range=1y&granularity=auto&zone=UTC&from=1&to=2";
    let request =
        Request::get(address).header("hx-request", "true").body(Body::empty()).expect("a request");
    assert_eq!(
        world.send(request).await.headers["hx-push-url"],
        "/counters/1?key=rain%3Acity%3A7&range=1y"
    );
    assert!(!world.get(address).await.headers.contains_key("hx-push-url"));
}

#[tokio::test]
async fn a_range_without_counts_leads_to_the_latest_data() {
    let page = rainy()
        .await
        .get("/counters/1?key=rain:city:7&range=custom&from=1727740800&to=1727744400")
        .await;
    page.shows("Nothing was counted in this range.")
        .shows("/counters/1?key=rain%3Acity%3A7&amp;range=latest");
}

#[tokio::test]
async fn a_draft_and_a_counter_without_events_say_why_there_is_nothing() {
    let world = World::new();
    world.counter(json!({ "state": "draft" })).await;
    world.counter(json!({ "template": "snow:{city_id}" })).await;
    world
        .get("/counters/1")
        .await
        .shows("This counter does not answer")
        .shows("until it is made active");
    world.get("/counters/2").await.shows("Nothing has been counted yet").shows("rain_drop event");
}

#[tokio::test]
async fn the_picture_and_the_file_have_the_same_question() {
    let world = rainy().await;
    let picture = world.get("/counters/1/chart.svg?key=rain:city:7&range=7d").await;
    assert_eq!(picture.headers["content-type"], "image/svg+xml");
    picture.shows("<svg xmlns=").shows("60 in total");

    let file = world
        .get("/counters/1/series.csv?key=rain:city:7&key=rain:city:8&range=7d&granularity=hour")
        .await;
    assert_eq!(file.headers["content-type"], "text/csv; charset=utf-8");
    assert!(
        file.text
            .starts_with("from (UTC),to (UTC),from (epoch seconds),rain:city:7,rain:city:8\r\n"),
        "{}",
        file.text
    );

    let sum = |column: usize| {
        file.text
            .lines()
            .skip(1)
            .map(|line| {
                line.split(',').nth(column).map_or(0, |cell| cell.parse::<i64>().unwrap_or(0))
            })
            .sum::<i64>()
    };

    assert_eq!((sum(3), sum(4)), (60, 5));
    let nothing = world.get("/counters/1/chart.svg?key=snow").await;
    assert_eq!(nothing.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_largest_keys_are_a_file() {
    let world = rainy().await;
    world.get("/counters/1?range=7d").await.shows("/counters/1/keys.csv?key=rain%3Acity%3A7");
    let file = world.get("/counters/1/keys.csv?key=rain:city:7&range=7d").await;
    assert_eq!(file.headers["content-type"], "text/csv; charset=utf-8");
    assert_eq!(file.headers["x-complete"], "true");
    assert_eq!(file.text, "key,count\r\nrain:city:7,60\r\nrain:city:8,5\r\n");
    world.counter(json!({ "state": "draft", "template": "snow:{depth}" })).await;
    assert_eq!(world.get("/counters/2/keys.csv").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_file_for_a_spreadsheet_runs_no_formula() {
    let world = World::new();
    world.counter(json!({ "template": "{city_id}" })).await;
    world.events("rain_drop", [(NOW_S, json!({ "city_id": "=cmd|' /C calc'!A0" }))]).await;
    let file = world.get("/counters/1/series.csv?range=24h").await;
    file.shows(",\"'=cmd|' /C calc'!A0\"\r\n");
    world.get("/counters/1/keys.csv?range=24h").await.shows("\r\n\"'=cmd|' /C calc'!A0\",1\r\n");
}

#[tokio::test]
async fn markup_in_events_stays_text() {
    let world = World::new();
    world.counter(json!({ "description": "</p><script>alert(1)</script>", "owner": "\"><svg onload=alert(1)>" })).await;
    world
        .events(
            "rain_drop",
            [(NOW_S, json!({ "city_id": "<script>alert('x')</script>\"onmouseover=\"a" }))],
        )
        .await;

    for address in [
        "/counters/1",
        "/counters/1/chart.svg",
        "/counters/1/versions",
        "/counters/1/cost",
        "/query/keys?key=",
    ] {
        let page = world.get(address).await;
        assert_eq!(page.status, StatusCode::OK, "{address}");
        page.lacks("<script>alert").lacks("<svg onload").lacks("\"onmouseover");
    }
}

#[tokio::test]
async fn versions_are_compared_field_by_field() {
    let world = rainy().await;
    let counter = json!({ "name": "count_rain_drops", "template": "rain:city:{city_id}", "eventType": "rain_drop",
        "owner": "climate", "value": { "field": "data.millimetres" } });
    world
        .portal
        .counters
        .replace(
            Counter { id: 1, ..Counter::from_json(&counter).expect("a counter") },
            None,
            "ada",
            "amounts <b>instead",
        )
        .await
        .expect("a version");

    let page = world.get("/counters/1").await;
    page.shows("/counters/1/versions?from=1&amp;to=2")
        .shows("amounts &lt;b&gt;instead")
        .shows("created");

    let difference = world.get("/counters/1/versions?from=1&to=2").await;
    difference
        .shows("<del>weather</del>")
        .shows("<ins>climate</ins>")
        .shows("<del>1 for each event</del>")
        .shows("<ins>millimetres</ins>");
    difference.shows("fields are the same").shows("/counters/1/roll-back?version=1");
    world.get("/counters/1/versions").await.shows("<ins>climate</ins>");

    let missing = world.get("/counters/1/versions?from=7").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    missing.shows("the versions 1 to 2");
}

#[tokio::test]
async fn the_cost_is_measured_on_the_log() {
    let world = rainy().await;
    world.get("/counters/1/cost").await.shows("Cells a day").shows("Storage a day").shows("2 keys");
    world.counter(json!({ "template": "snow:{depth}" })).await;
    world.get("/counters/2/cost").await.shows("there is nothing to measure yet");
}

#[tokio::test]
async fn examples_ask_what_the_page_shows() {
    let page = rainy().await.get("/counters/1?key=rain:city:7&from=1727999100&to=1728000000").await;
    page.shows("curl -G")
        .shows("-d fromTime=1727999100")
        .shows("urlopen")
        .shows("raingauge.v1.Counts/Batch");
}

#[test]
fn any_question_is_answered_or_gets_advice() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let world = runtime.block_on(rainy());
    let query = "((key|range|from|to|granularity|zone|compare|scale|note)=(rain:city:7|latest|24h|1y|custom|day|quarter|log|Asia/Tokyo|[0-9]{1,13}|[a-z%<:\"'-]{0,8})&?){0,8}";
    proptest!(ProptestConfig::with_cases(96), |(query in query, path in 0usize..5)| {
        let path = ["/counters/1", "/counters/1/chart.svg", "/counters/1/series.csv", "/counters/1/versions", "/query"][path];
        let uri = format!("{path}?{query}");
        if uri.parse::<axum::http::Uri>().is_ok() {
            let page = runtime.block_on(world.get(&uri));
            prop_assert!(!page.status.is_server_error(), "{} {}", uri, page.text);
        }
    });
}

//! The self-audit and its page: equal counts are quiet, a planted mismatch is found, shown and
//! followed until it is gone.

use crate::world::{NOW_S, World};
use axum::http::StatusCode;
use raingauge_core::bucket::{Granularity, HOUR_S};
use raingauge_ports::buckets::{BucketWriter as _, Cell, generation_of};
use raingauge_ports::checks::{Outcome, Selection};
use serde_json::json;
use std::time::Duration;

const ALL: Selection = Selection { outcome: None, before: None, len_max: 100 };
/// When the events of these tests happened: an hour that is over.
const THEN_S: i64 = NOW_S - 3 * HOUR_S;

/// A counter with events of two cities.
async fn rain(world: &World) -> u32 {
    let id = world.counter(json!({})).await;
    let drops = (0..30).map(|drop| (THEN_S + drop * 60, json!({ "city_id": drop % 2 })));
    world.events("rain_drop", drops).await;
    id
}

/// Changes a bucket in the store that no event has changed.
fn plant(world: &World, counter: u32, count: i64) {
    let cell =
        Cell { granularity: Granularity::Hour, time_s: Granularity::Hour.floor(THEN_S), count };
    world.buckets.set(generation_of(counter, 0), "rain:city:1", u64::MAX, cell).expect("set");
}

/// The number of the city in the hour that [`plant`] changes, as the log has it.
fn of_the_hour() -> i64 {
    (0..30)
        .filter(|drop| {
            drop % 2 == 1
                && Granularity::Hour.floor(THEN_S + drop * 60) == Granularity::Hour.floor(THEN_S)
        })
        .count() as i64
}

async fn outcomes(world: &World) -> Vec<(String, Outcome)> {
    let found = world.portal.operations.self_audit.checks().list(ALL).await.expect("listed");
    found.into_iter().map(|check| (check.key, check.outcome)).collect()
}

#[tokio::test]
async fn an_audit_of_sound_counts_is_quiet() {
    let world = World::new();
    world.get("/checks").await.shows("Nothing has been checked yet").shows("Check now");
    rain(&world).await;
    world.portal.operations.self_audit.look().await;

    let mut found = outcomes(&world).await;
    found.sort_by(|one, other| one.0.cmp(&other.0));

    let equal = |key: &str| (key.to_owned(), Outcome::Equal);
    assert_eq!(found, [equal("rain:city:0"), equal("rain:city:1")]);
    world
        .get("/checks")
        .await
        .shows("equal")
        .shows("rain:city:0")
        .shows("due in 60 min")
        .lacks("differs from the log");

    // It is not due before an hour has gone by.
    world.portal.operations.self_audit.look().await;
    assert_eq!(outcomes(&world).await.len(), 2);
    world.clock.set_s(NOW_S + HOUR_S);
    world.portal.operations.self_audit.look().await;
    assert_eq!(outcomes(&world).await.len(), 4);
}

#[tokio::test]
async fn a_planted_mismatch_is_found_shown_and_followed() {
    let world = World::new();
    let counter = rain(&world).await;
    plant(&world, counter, 999);
    world.portal.operations.self_audit.look().await;

    let found = outcomes(&world).await;
    assert!(found.contains(&("rain:city:1".to_owned(), Outcome::Differs)), "{found:?}");

    let page = world.get("/checks").await;
    page.shows("1 key differs from the log").shows("999").shows("rain:city:1").shows("difference");
    world.get("/checks?outcome=differs").await.shows("rain:city:1");
    world.get("/system").await.shows("1 key has a stored count that differs from the log");

    // Repaired, it is checked again and no longer told.
    plant(&world, counter, of_the_hour());
    world.clock.set_s(NOW_S + HOUR_S);
    world.portal.operations.self_audit.look().await;
    world.get("/checks").await.lacks("differs from the log");
    world.get("/system").await.lacks("a stored count that differs");
}

#[tokio::test]
async fn a_requested_recount_need_not_wait() {
    let world = World::new();
    rain(&world).await;

    let begun = world.post("/checks/now", &[]).await;
    assert_eq!(
        (begun.status, begun.location()),
        (StatusCode::SEE_OTHER, "/checks?note=audit-begun")
    );
    until(async || !outcomes(&world).await.is_empty()).await;

    assert!(
        world
            .portal
            .operations
            .self_audit
            .checks()
            .list(ALL)
            .await
            .expect("listed")
            .iter()
            .all(|check| check.by == "anonymous")
    );
}

/// Waits for something that happens beside the test.
async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .expect("it comes about within a minute");
}

async fn recounted(world: &World, fields: &[(&str, &str)]) -> crate::world::Page {
    let begun = world.post("/checks/recount", fields).await;
    assert_eq!(begun.status, StatusCode::SEE_OTHER, "{}", begun.text);

    let id = begun
        .location()
        .trim_start_matches("/checks/recount/")
        .split('?')
        .next()
        .unwrap_or_default()
        .to_owned();

    until(async || {
        world.portal.operations.self_audit.job(&id).is_some_and(|job| job.found.is_some())
    })
    .await;
    world.get(begun.location()).await
}

fn range() -> [(&'static str, String); 2] {
    let text = |at_s: i64| at_s.to_string();
    [("from", text(NOW_S - 24 * HOUR_S)), ("to", text(NOW_S))]
}

#[tokio::test]
async fn a_recount_shows_both_sides() {
    let world = World::new();
    let counter = rain(&world).await;
    let [from, to] = range();
    let asked = [
        ("key", "rain:city:1"),
        (from.0, from.1.as_str()),
        (to.0, to.1.as_str()),
        ("zone", "Europe/Berlin"),
    ];

    recounted(&world, &asked).await.shows("Equal: ").shows("15");
    plant(&world, counter, 999);

    let page = recounted(&world, &asked).await;
    page.shows("Different: ").shows("999").shows("in 1 bucket").shows("zone=Europe/Berlin");

    let unknown = [("key", "nobody:x"), (from.0, from.1.as_str()), (to.0, to.1.as_str())];
    recounted(&world, &unknown).await.shows("No active or paused counter has a template");

    // What people ask for is kept, too, but for keys of no counter.
    assert_eq!(outcomes(&world).await.len(), 2);
    world.get("/checks/recount/none").await.shows("not known here");
}

#[tokio::test]
async fn a_recount_without_sense_keeps_what_was_typed() {
    let world = World::new();
    let markup = "\"><script>alert(1)</script>";

    for (from, to) in [
        ("", ""),
        ("x", "y"),
        ("2024-09-24T20:00", "2024-09-24T20:10"),
        ("2001-09-24T20:00", "2024-09-24T20:10"),
    ] {
        let page =
            world.post("/checks/recount", &[("key", markup), ("from", from), ("to", to)]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        page.shows("class=\"problem\"").shows("&lt;script&gt;").lacks("<script>alert");
    }
}

#[tokio::test]
async fn keys_with_markup_stay_text() {
    let world = World::new();
    world.counter(json!({})).await;
    let evil = json!({ "city_id": "<script>alert(1)</script>\"'" });
    world.events("rain_drop", [(THEN_S, evil)]).await;
    world.portal.operations.self_audit.look().await;
    plant(&world, 1, 0);
    world.get("/checks").await.shows("&lt;script&gt;").lacks("<script>alert").lacks("style=\"");
    world
        .get("/checks?key=%3Cscript%3Ealert(1)&zone=%3Cscript%3Ealert&outcome=%3Cscript%3Ealert")
        .await
        .lacks("<script>alert");
}

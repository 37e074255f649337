//! The list of counters.

use crate::world::{NOW_S, World};
use axum::http::StatusCode;
use proptest::prelude::*;
use raingauge_ports::instances::{Instance, Instances as _};
use serde_json::json;

#[tokio::test]
async fn an_empty_portal_says_what_to_do() {
    World::new().get("/").await.shows("Nothing is counted yet").shows("href=\"/counters/new\"");
}

#[tokio::test]
async fn counters_are_listed_and_markup_in_them_stays_text() {
    let world = World::new();
    world.counter(json!({ "name": "<script>alert(1)</script>", "owner": "<img src=x>" })).await;
    let page = world.get("/").await;
    page.shows("rain:city:<b>{city_id}</b>")
        .shows("&lt;script&gt;")
        .lacks("<script>alert")
        .lacks("<img src");
}

async fn three() -> World {
    let world = World::new();
    world
        .counter(json!({ "name": "rides", "template": "taxi:zone:{zone}", "eventType": "ride", "owner": "mobility" }))
        .await;
    world.counter(json!({ "name": "Drops", "state": "paused" })).await;
    world.counter(json!({ "name": "tips", "template": "taxi:tips:{zone}", "eventType": "ride", "owner": "mobility", "state": "archived" })).await;
    world
}

#[tokio::test]
async fn every_word_of_a_search_is_looked_for_everywhere() {
    let world = three().await;
    world.get("/").await.shows("rides").shows("Drops").lacks("tips").shows("2 of 3 counters");
    world.get("/?q=TAXI+mobility").await.shows("rides").lacks("Drops").shows("1 of 3 counters");
    world.get("/?q=taxi&state=all").await.shows("rides").shows("tips").lacks("Drops");
    world.get("/?q=nowhere").await.shows("No counter matches").shows("show all counters");
    world.get("/?q=2").await.shows("Drops").lacks(">rides<");
}

#[tokio::test]
async fn everything_is_exported_as_one_file() {
    let world = three().await;
    world.get("/").await.shows("href=\"/settings.yaml\"");
    let file = world.get("/settings.yaml").await;
    assert_eq!(file.headers["content-disposition"], "attachment; filename=\"raingauge.yaml\"");
    file.shows("name: rides")
        .shows("name: Drops")
        .lacks("name: tips")
        .shows("cachePolicy:\n  strategy: live");
    world.get("/settings.yaml?all=1").await.shows("name: tips");
    world.get("/counters/1").await.shows("href=\"/counters/1/counter.yaml\"");
    world.get("/counters/1/counter.yaml").await.shows("by test\nid: 1\nname: rides").lacks("Drops");
    assert_eq!(world.get("/counters/9/counter.yaml").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn filters_narrow_and_stay_chosen() {
    let world = three().await;
    world
        .get("/?state=paused")
        .await
        .shows("Drops")
        .lacks("/counters/1\"")
        .shows("value=\"paused\" selected");
    world.get("/?owner=mobility").await.shows("rides").lacks("/counters/2\"");
    world.get("/?type=rain_drop").await.shows("Drops").lacks("/counters/1\"");
    let gone = world.get("/?owner=%3Cb%3Enobody").await;
    gone.shows("No counter matches").shows("&lt;b&gt;nobody").lacks("<b>nobody");
}

#[tokio::test]
async fn columns_sort_both_ways() {
    let world = three().await;
    let places =
        |page: &str| ["/counters/1\"", "/counters/2\""].map(|link| page.find(link).expect("a row"));
    let [rides, drops] = places(&world.get("/?sort=name").await.text);
    assert!(drops < rides);
    let page = world.get("/?sort=-name").await;
    let [rides, drops] = places(&page.text);
    assert!(rides < drops);
    page.shows("aria-sort=\"descending\"").shows("sort=name\"");
}

#[tokio::test]
async fn recent_activity_is_a_line_and_a_number() {
    let world = three().await;
    world.events("ride", (0..3).map(|zone| (NOW_S - 3_600, json!({ "zone": zone })))).await;
    assert_eq!(
        world
            .portal
            .counted
            .published
            .activity()
            .of(1)
            .expect("it counted")
            .counted
            .iter()
            .sum::<u64>(),
        3
    );

    let page = world.get("/?sort=-activity").await;
    page.shows("class=\"spark\"").shows(">3<").shows("since the writers started");
}

/// A portal that counts nothing shows what the writers announced.
#[tokio::test]
async fn recent_activity_of_other_processes_is_shown() {
    let world = three().await;
    world.get("/").await.shows("No recent activity reported");

    let recent =
        json!({ "newest": NOW_S / 900, "counted": [4, 0, 3], "skipped": { "filtered": 6 } });
    let said = json!({ "activity": { "counters": { "1": recent } } });
    for id in ["a", "b"] {
        let measures = said.to_string();
        let writer = Instance { id: id.to_owned(), seen_s: NOW_S, measures, ..Instance::default() };
        world.instances.announce(writer).await.expect("announced");
    }

    world.portal.operations.watch.listen().await;
    world
        .get("/?sort=-activity")
        .await
        .shows("class=\"spark\"")
        .shows(">14<")
        .lacks("No recent activity reported");
    world.get("/counters/1").await.shows("did not pass the filter").shows(">12<");
}

#[tokio::test]
async fn long_lists_have_pages() {
    let world = World::new();
    for number in 0..101 {
        world
            .counter(
                json!({ "name": format!("counter {number:03}"), "template": format!("rain:{number}:{{city_id}}") }),
            )
            .await;
    }

    world
        .get("/?sort=name")
        .await
        .shows("counter 099")
        .lacks("counter 100")
        .shows("Page 1 of 2")
        .shows("page=2");
    world.get("/?sort=name&page=2").await.shows("counter 100").lacks("counter 099");
    world.get("/?sort=name&page=99").await.shows("counter 100");
}

#[test]
fn any_address_shows_a_list_or_says_what_to_do() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let world = runtime.block_on(three());
    proptest!(ProptestConfig::with_cases(64), |(query in "((q|state|owner|type|sort|page)=[a-z0-9%<\"'-]{0,8}&?){0,6}")| {
        let uri = format!("/?{query}");
        if uri.parse::<axum::http::Uri>().is_ok() {
            let page = runtime.block_on(world.get(&uri));
            prop_assert_eq!(page.status, StatusCode::OK);
        }
    });
}

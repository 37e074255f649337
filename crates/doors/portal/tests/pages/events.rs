//! Event types: fresh or old, complete or late, counted or not.

use crate::world::{NOW_S, World};
use axum::http::StatusCode;
use raingauge_app::Samples;
use raingauge_core::access::Role;
use raingauge_ports::people::Filter;
use serde_json::json;

#[tokio::test]
async fn without_events_the_page_says_how_to_send_some() {
    World::new().get("/events").await.shows("No event has arrived").shows("raingauge import");
}

#[tokio::test]
async fn types_are_shown_with_freshness_and_counters() {
    let world = World::new();
    world.counter(json!({})).await;
    world
        .counter(
            json!({ "template": "sun:{city_id}", "eventType": "sunshine", "name": "count_sun" }),
        )
        .await;

    let on_time = (0..9).map(|drop| (NOW_S - drop, json!({ "city_id": "a", "millimetres": 2.5 })));
    let late = [(NOW_S - 2_000, json!({ "city_id": "b" }))];
    world.events("rain_drop", on_time.chain(late)).await;
    world.events("hail/stone", [(NOW_S - 7_200, json!({}))]).await;

    let page = world.get("/events").await;
    page.shows("rain_drop").shows("fresh").shows("90 %").shows("count_rain_drops");
    page.shows("not counted")
        .shows("/counters/new?type=hail%2Fstone")
        .shows("/events/hail%2Fstone");
    page.shows("Missing event types").shows("sunshine").shows("count_sun");

    let rain = world.get("/events/rain_drop").await;
    rain.shows("data.city_id")
        .shows("data.millimetres")
        .shows("2.5")
        .shows("90 %")
        .shows("/test")
        .shows("100 %");
    world
        .get("/events/hail%2Fstone")
        .await
        .shows("No counter counts this type")
        .shows("Its events carry no data");
    world
        .get("/events/sunshine")
        .await
        .shows("None of the newest 11 events has this type")
        .shows("count_sun");
    assert_eq!(world.get("/events/nothing").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn refused_and_repeated_events_are_reported() {
    let world = World::new();
    world.counter(json!({})).await;
    world.events("rain_drop", [(NOW_S, json!({ "city_id": "a" }))]).await;
    *world.metrics.lock() =
        "raingauge_events_rejected_total{code=\"time_in_future\"} 7\nraingauge_events_duplicate_total 5\n\
        raingauge_late_refused_total{counter=\"1\",granularity=\"quarter\"} 11\n"
            .to_owned();
    world.portal.operations.watch.listen().await;
    world.get("/events").await.shows("7 with").shows("time_in_future").shows("5 events");
    world.get("/events/rain_drop").await.shows("11");
}

#[tokio::test]
async fn event_data_stays_text() {
    let world = World::new();
    let markup = "<script>alert(1)</script>\"'";
    let data = json!({ markup: markup, "city_id": markup, "nested": { "a<b>": markup } });
    world.events(markup, [(NOW_S, data)]).await;

    let listed = world.get("/events").await;
    listed.shows("&lt;script&gt;").lacks("<script>alert");

    let (_, rest) = listed.text.split_once("href=\"/events/").expect("a link to the type");
    let address = format!("/events/{}", rest.split('"').next().unwrap_or_default());
    world
        .get(&address)
        .await
        .shows("&lt;script&gt;")
        .lacks("<script>alert")
        .lacks("<b>alert")
        .lacks("style=\"");
}

#[tokio::test]
async fn values_of_events_are_for_editors_and_written_down() {
    let world = World::with_samples(Samples::default());
    let data = json!({ "email": "zoe@rain.example", "city": "oslo" });
    world.events("signup", [(NOW_S, data)]).await;

    let mut max = world.signed_in("max", Role::Viewer).await;
    let page = max.get("/events/signup").await;
    page.is(StatusCode::OK)
        .shows("data.email")
        .lacks("zoe@rain.example")
        .lacks("oslo")
        .shows("Only editors");

    let mut ada = world.signed_in("ada", Role::Editor).await;
    for _ in 0..2 {
        ada.get("/events/signup")
            .await
            .shows("zoe@rain.example")
            .shows("oslo")
            .shows("The newest events");
    }

    let views = Filter { verb: "events.view".to_owned(), ..Filter::default() };
    let views = world.people.entries(views).await.unwrap();
    let found: Vec<(&str, &str)> =
        views.iter().map(|entry| (&*entry.who, &*entry.object)).collect();
    assert_eq!(found, [("ada", "event type signup")], "one view, and nothing of the viewer's");

    // Nor do the keys of a draft show a viewer what events say.
    let form = [("name", "mails"), ("template", "mail:{email}"), ("eventType", "signup")];
    ada.post("/drafts", &form).await.leads_to("/drafts/1?note=draft-saved");
    ada.get("/drafts/1/preview").await.shows("zoe@rain.example");

    max.get("/drafts/1/preview")
        .await
        .is(StatusCode::OK)
        .lacks("zoe@rain.example")
        .shows("keys are not shown");
}

#[tokio::test]
async fn masked_fields_are_seen_by_nobody() {
    let masked = vec!["data.email".to_owned(), "data.user".to_owned(), "subject".to_owned()];
    let world = World::with_samples(Samples { masked, ..Samples::default() });
    let data =
        json!({ "email": "zoe@rain.example", "city": "oslo", "user": { "phone": "555 0199" } });
    world.events("signup", [(NOW_S, data)]).await;

    let mut root = world.signed_in("root", Role::Admin).await;
    let page = root.get("/events/signup").await;
    page.shows("data.email").shows("oslo").shows("•••").lacks("zoe@rain.example").lacks("555 0199");

    let form = [("name", "mails"), ("template", "mail:{email}"), ("eventType", "signup")];
    root.post("/drafts", &form).await.leads_to("/drafts/1?note=draft-saved");
    root.get("/drafts/1/preview")
        .await
        .is(StatusCode::OK)
        .lacks("zoe@rain.example")
        .shows("masked");
}

#[tokio::test]
async fn values_of_events_can_be_switched_off() {
    let world = World::with_samples(Samples { are_shown: false, ..Samples::default() });
    world.events("signup", [(NOW_S, json!({ "email": "zoe@rain.example" }))]).await;
    let mut root = world.signed_in("root", Role::Admin).await;
    let page = root.get("/events/signup").await;
    page.shows("data.email").lacks("zoe@rain.example").shows("portal.show_samples");
    for address in ["/counters/new?type=signup", "/events"] {
        root.get(address).await.is(StatusCode::OK).lacks("zoe@rain.example");
    }
}

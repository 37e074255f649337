//! The page of the system, the cache rollout, and who may change what.

use crate::world::{NOW_S, World};
use axum::http::StatusCode;
use raingauge_policy::cache::Strategy;
use raingauge_ports::instances::{Instance, Instances as _};
use serde_json::json;

/// Lets the process announce itself and hear of the others, five seconds after the last time.
async fn beat(world: &World, time: i64) {
    world.clock.set_s(NOW_S + time * 5);
    world.portal.operations.watch.announce().await;
    world.portal.operations.watch.listen().await;
}

fn other(name: &str, version: &str, measures: &str) -> Instance {
    Instance {
        id: "0123456789".to_owned(),
        name: name.to_owned(),
        roles: vec!["reader".to_owned()],
        version: version.to_owned(),
        address: "10.0.0.2:8080".to_owned(),
        started_s: NOW_S,
        seen_s: NOW_S + 10,
        measures: measures.to_owned(),
    }
}

#[tokio::test]
async fn a_system_that_has_just_begun_has_a_page() {
    World::new()
        .get("/system")
        .await
        .shows("Figures appear once this process has run for a few seconds");
}

#[tokio::test]
async fn rates_latency_and_lag_are_shown() {
    let world = World::new();
    for (beats, counts) in [(1, 0), (2, 500), (3, 1_000)] {
        *world.metrics.lock() = format!(
            "raingauge_range_counts_total {counts}\nraingauge_rows_read_total {}\n\
             raingauge_log_lag_events{{partition=\"0\"}} 70\nraingauge_log_lag_seconds{{partition=\"0\"}} 4\n\
             raingauge_http_request_seconds_bucket{{route=\"/v1/counts\",le=\"0.002\"}} {counts}\n\
             raingauge_http_request_seconds_bucket{{route=\"/v1/counts\",le=\"+Inf\"}} {counts}\n\
             raingauge_errors_total{{code=\"key_unknown\"}} {}\n\
             raingauge_breaker_state{{engine=\"bucket_store\"}} 0\n",
            counts * 3,
            counts / 100,
        );
        beat(&world, beats).await;
    }

    let page = world.get("/system").await;
    page.shows("100/s")
        .shows("1 ms")
        .shows("1.98 ms")
        .shows("4 s")
        .shows("70")
        .shows("key_unknown");
    page.shows("bucket store").shows("closed").shows("all-1").shows("chart-picture");
    page.lacks("data-warning");
}

#[tokio::test]
async fn warnings_say_what_to_do() {
    let world = World::new();
    *world.metrics.lock() = "raingauge_breaker_state{engine=\"result_cache\"} 2\n\
        raingauge_log_lag_seconds{partition=\"3\"} 400\nraingauge_log_lag_events{partition=\"3\"} 9\n\
        raingauge_disk_bytes 1000\nraingauge_disk_free_bytes 20\n"
        .to_owned();

    let said = json!({ "atMs": 0, "values": {}, "choice": { "strategy": "none" }, "failure": "the disk is full" });
    world
        .instances
        .announce(other("reader-2", "9.9.9", &said.to_string()))
        .await
        .expect("announced");

    for time in 1..=3 {
        beat(&world, time).await;
    }
    let page = world.get("/system").await;
    page.shows("circuit breaker of the result cache is open")
        .shows("behind the log, and falls further behind")
        .shows("has 20 B left")
        .shows("reader-2 (012345) has stopped counting: the disk is full")
        .shows("reader-2 (012345) caches as “none”, which is not the policy")
        .shows("Processes of several versions run: 0.0.1, 9.9.9");

    // A reader that is silent for long is gone.
    world.clock.set_s(NOW_S + 100);
    world.portal.operations.watch.listen().await;
    world.get("/system").await.shows("gone").shows("did not sign off");
}

#[tokio::test]
async fn names_of_instances_engines_and_codes_stay_text() {
    let world = World::new();
    let markup = "<script>alert(1)</script>";
    *world.metrics.lock() = format!(
        "raingauge_errors_total{{code=\"{markup}\"}} 1\nraingauge_breaker_state{{engine=\"{markup}\"}} 2\n\
        raingauge_log_lag_events{{partition=\"{markup}\"}} 1\n"
    );

    let said = json!({ "failure": markup, "values": { "raingauge_errors_total": { markup: 7 } } });
    let evil = Instance {
        roles: vec![markup.to_owned()],
        address: markup.to_owned(),
        ..other(markup, markup, &said.to_string())
    };

    world.instances.announce(evil).await.expect("announced");

    for time in 1..=3 {
        beat(&world, time).await;
    }

    for address in ["/system", "/system/cache", "/system?zone=%3Cscript%3Ealert(1)"] {
        world.get(address).await.lacks("<script>alert").lacks("style=\"");
    }
}

const POLICY: [(&str, &str); 6] = [
    ("version", "0"),
    ("strategy", "result"),
    ("step-modulo", "2"),
    ("step-below", "1"),
    ("step-strategy", "live"),
    ("reason", "try <b>live</b>"),
];

#[tokio::test]
async fn a_policy_is_tried_on_paper_set_and_taken_back() {
    let world = World::new();
    for place in 0..3 {
        world.counter(json!({ "template": format!("rain{place}:{{city_id}}") })).await;
    }

    let preview = world.post("/system/cache/preview", &POLICY).await;
    assert_eq!(preview.status, StatusCode::OK);
    preview.shows("2 of 3 counters change");
    assert_eq!(world.portal.operations.policies.choice().strategy, Strategy::Live);

    let set = world.post("/system/cache", &POLICY).await;
    assert_eq!(
        (set.status, set.location()),
        (StatusCode::SEE_OTHER, "/system/cache?note=policy-set")
    );
    assert_eq!(world.portal.operations.policies.choice().strategy_of(2), Strategy::Live);
    assert_eq!(world.portal.operations.policies.choice().strategy_of(1), Strategy::Result);

    let page = world.get(set.location()).await;
    page.shows("id % 2 &lt; 1")
        .shows("try &lt;b&gt;live&lt;/b&gt;")
        .shows("in force")
        .shows("Every instance follows");

    // A person who looked at the version before is warned, and keeps what was typed.
    let late = world.post("/system/cache", &POLICY).await;
    assert_eq!(late.status, StatusCode::UNPROCESSABLE_ENTITY);
    late.shows("Someone else has set version 1 since")
        .shows("value=\"try &lt;b&gt;live&lt;/b&gt;\"");

    let back = world.post("/system/cache/back", &[("version", "1"), ("to", "0")]).await;
    assert_eq!(
        (back.status, back.location()),
        (StatusCode::SEE_OTHER, "/system/cache?note=policy-back")
    );
    assert_eq!(world.portal.operations.policies.choice().strategy_of(1), Strategy::Live);
    world
        .get("/system/cache")
        .await
        .shows("Back to version 0")
        .shows("Back to version 1, the previous one");
    assert_eq!(
        world.post("/system/cache/back", &[("version", "2"), ("to", "9")]).await.status,
        StatusCode::NOT_FOUND
    );

    assert_eq!(
        world.post("/system/cache/back", &[("version", "1"), ("to", "1")]).await.status,
        StatusCode::CONFLICT
    );
}

#[tokio::test]
async fn a_policy_that_makes_no_sense_is_not_set() {
    let world = World::new();
    for fields in [
        [("version", "0"), ("strategy", "fast"), ("reason", "x"), ("step-strategy", "live")],
        [("version", "0"), ("strategy", "live"), ("reason", ""), ("step-strategy", "live")],
        [("version", "0"), ("strategy", "live"), ("step-modulo", "0"), ("step-strategy", "live")],
    ] {
        let page = world.post("/system/cache", &fields).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        page.shows("class=\"problem\"");
    }
    assert_eq!(world.portal.counters.cache_policy().await.expect("a policy").version, 0);
}

#[tokio::test]
async fn a_process_that_compacts_nothing_says_so() {
    let page = World::new().post("/system/compaction", &[]).await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    page.shows("This process compacts nothing");
}

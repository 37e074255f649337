//! The page of the audit log, and what is written into it.

use crate::forms::Sent;
use crate::world::{NOW_S, World};
use axum::http::{StatusCode, header};
use raingauge_core::access::Role;
use raingauge_ports::people::{Entry, Filter};
use serde_json::json;

async fn entry(world: &World, at_s: i64, who: &str, verb: &str) {
    let [who, verb] = [who, verb].map(str::to_owned);
    let object = "counter 34".to_owned();
    let details = "{\"reason\":\"dry\"}".to_owned();
    let outcome = "done".to_owned();
    let entry = Entry { at_s, who, verb, object, details, outcome, ..Entry::default() };
    world.people.record(entry).await.unwrap();
}

#[tokio::test]
async fn every_change_of_people_is_written_down() {
    let world = World::closed();
    let mut admin = world.signed_in("root", Role::Admin).await;
    world.user("zoe", Role::Viewer).await;
    admin.post("/people/2/role", &[("role", "editor")]).await;
    admin.post("/people/1/disable", &[]).await.is(StatusCode::CONFLICT);
    admin.post("/people/2/disable", &[]).await;
    admin.post("/people/2/enable", &[]).await;
    admin.post("/people/2/sign-out", &[]).await;
    admin.post("/people/invite", &[("name", "max"), ("role", "viewer")]).await;
    admin.post("/tokens", &[("name", "shop"), ("scope", "admin"), ("expires", "30")]).await;
    admin.post("/tokens/1/revoke", &[]).await;

    let entries = world.people.entries(Filter::default()).await.unwrap();
    let written: Vec<String> = entries
        .iter()
        .rev()
        .map(|entry| {
            format!(
                "{} {} {} {} {}",
                entry.who, entry.address, entry.verb, entry.object, entry.outcome
            )
        })
        .collect();

    let expected = [
        "root 192.0.2.7 person.role person zoe done",
        "root 192.0.2.7 person.disable person 1 refused_409",
        "root 192.0.2.7 person.disable person zoe done",
        "root 192.0.2.7 person.enable person zoe done",
        "root 192.0.2.7 person.sign_out person zoe done",
        "root 192.0.2.7 person.invite person max done",
        "root 192.0.2.7 token.create token shop done",
        "root 192.0.2.7 token.revoke token shop done",
    ];

    assert_eq!(written, expected);
    let all = format!("{entries:?}");
    assert!(!all.contains("rg_") && !all.contains("csrf"), "{all}");

    // Who may not do something, and tries, is written down too.
    let mut max = world.signed_in("max", Role::Viewer).await;
    max.post("/people/1/role", &[("role", "viewer")]).await.is(StatusCode::FORBIDDEN);

    let newest =
        world.people.entries(Filter { limit: 1, ..Filter::default() }).await.unwrap().remove(0);
    assert_eq!((&*newest.who, &*newest.outcome), ("max", "refused_403"));
}

/// The newest entries as lines, oldest first: verb, object, outcome and details.
async fn written(world: &World) -> Vec<String> {
    let entries = world.people.entries(Filter::default()).await.unwrap();
    let line = |entry: &Entry| {
        format!("{} {} {} {}", entry.verb, entry.object, entry.outcome, entry.details)
    };
    entries.iter().rev().map(line).collect()
}

#[tokio::test]
async fn changes_of_drafts_and_counters_are_described() {
    let world = World::closed();
    let mut zoe = world.signed_in("zoe", Role::Editor).await;
    let id = world.counter(json!({})).await;
    let form = Sent::of(&zoe.get(&format!("/counters/{id}/edit")).await.text, "draft-form");
    let form = form.set("owner", "ada").set("quarter", "30");

    zoe.post("/drafts", &form.pairs()).await.leads_to("/drafts/1?note=draft-saved");

    // What leads back to the page of the draft did nothing.
    zoe.post("/drafts/1/send", &[("revision", "1"), ("reason", "")]).await;
    zoe.post("/drafts/1/send", &[("revision", "1"), ("reason", "she moved")]).await;
    zoe.post("/drafts/1/withdraw", &[("revision", "1")]).await;
    zoe.post("/drafts/1/approve", &[("revision", "2"), ("comment", "fine")]).await;
    zoe.post(&format!("/counters/{id}/pause"), &[("base", "2"), ("reason", "dry")]).await;

    let changes =
        r#""changes":{"owner":"weather → ada","retentionDays.quarter":"90 days → 30 days"}"#;
    let draft = r#""counter":1,"name":"count_rain_drops""#;
    let expected = [
        format!("draft.save draft 1 done {{{changes},{draft}}}"),
        "draft.send draft 1 refused_422 {}".to_owned(),
        format!("draft.send draft 1 done {{{draft},\"reason\":\"she moved\"}}"),
        "draft.withdraw draft 1 refused_409 {}".to_owned(),
        format!(
            "draft.approve draft 1 done {{{changes},\"comment\":\"fine\",{draft},\"reason\":\"she moved\",\"version\":2}}"
        ),
        r#"counter.pause counter 1 done {"changes":{"state":"active → paused"},"reason":"dry","version":3}"#.to_owned(),
    ];
    assert_eq!(written(&world).await, expected);
}

#[tokio::test]
async fn changes_of_the_cache_policy_are_described() {
    let world = World::closed();
    let mut root = world.signed_in("root", Role::Admin).await;

    for place in 1..=3 {
        world.counter(json!({ "template": format!("rain{place}:{{city_id}}") })).await;
    }
    let policy = [
        ("version", "0"),
        ("strategy", "live"),
        ("step-modulo", "2"),
        ("step-below", "1"),
        ("step-strategy", "none"),
        ("reason", "try it"),
    ];

    root.post("/system/cache", &policy).await.leads_to("/system/cache?note=policy-set");
    root.post("/system/cache", &policy).await.is(StatusCode::UNPROCESSABLE_ENTITY);
    root.post("/system/cache/back", &[("version", "1"), ("to", "0")]).await;
    root.post("/system/compaction", &[]).await.is(StatusCode::NOT_FOUND);

    let expected = [
        r#"cache_policy.replace cache policy done {"countersChanged":"1 of 3","policy":"live → none where id % 2 < 1; otherwise live","reason":"try it","version":1}"#,
        "cache_policy.replace cache policy refused_422 {}",
        r#"cache_policy.replace cache policy done {"countersChanged":"1 of 3","policy":"none where id % 2 < 1; otherwise live → live","reason":"Back to version 0","version":2}"#,
        "compaction.begin compaction refused_404 {}",
    ];
    assert_eq!(written(&world).await, expected);
}

#[tokio::test]
async fn who_only_asks_is_not_written_down_even_when_refused() {
    let world = World::closed();
    let mut max = world.signed_in("max", Role::Viewer).await;
    for address in ["/drafts/preview", "/drafts/form", "/system/cache/preview"] {
        max.post(address, &[]).await.is(StatusCode::FORBIDDEN);
    }
    assert_eq!(written(&world).await, [""; 0]);
    max.post("/drafts", &[]).await.is(StatusCode::FORBIDDEN);
    assert_eq!(written(&world).await, ["draft.save draft refused_403 {}"]);
}

#[tokio::test]
async fn the_log_is_filtered_and_has_pages() {
    let world = World::closed();
    let mut admin = world.signed_in("root", Role::Admin).await;
    admin.get("/audit").await.is(StatusCode::OK).shows("No entries");

    for number in 0..120 {
        let who = if number % 2 == 0 { "zoe" } else { "max" };
        entry(&world, NOW_S + number, who, &format!("counter.change_{number}.")).await;
    }

    let page = admin.get("/audit?who=zoe").await;
    page.is(StatusCode::OK)
        .shows("counter.change_118.")
        .shows("counter.change_20.")
        .lacks("counter.change_18.")
        .lacks(">max<");

    let older = page.found("/audit?who=zoe&amp;before=").replace("&amp;", "&");
    admin
        .get(&older)
        .await
        .shows("counter.change_18.")
        .shows("counter.change_0.")
        .lacks("counter.change_20.")
        .shows("Newest");
    admin.get("/audit?what=change_7.").await.shows("counter.change_7.").lacks("counter.change_17.");
    admin.get("/audit?from=2024-10-04&to=2024-10-04").await.shows("counter.change_118.");

    // Days and times are those of the zone that is asked for: noon in UTC is the evening of Tokyo.
    let tokyo = admin.get("/audit?from=2024-10-04&to=2024-10-04&zone=Asia/Tokyo").await;
    tokyo
        .shows("Time, Asia/Tokyo")
        .shows("2024-10-04 21:01")
        .shows("datetime=\"2024-10-04T12:01:59Z\"");
    tokyo.shows("/audit.csv?from=2024-10-04&amp;to=2024-10-04&amp;zone=Asia%2FTokyo");
    admin.get("/audit?to=2024-10-04&zone=Pacific/Kiritimati").await.shows("No entries");
    admin.get("/audit?from=2024-10-05&zone=Pacific/Kiritimati").await.shows("counter.change_118.");
    admin.get("/audit?from=2024-10-05").await.shows("No entries");
    admin.get("/audit?from=today").await.shows("counter.change_118.");
    admin.get("/audit?to=-1d").await.shows("No entries");
    admin.get("/audit?from=soon").await.is(StatusCode::BAD_REQUEST).shows("“soon” is not a day");
    admin.get("/audit?before=x").await.is(StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_log_is_taken_away() {
    let world = World::closed();
    let mut admin = world.signed_in("root", Role::Admin).await;

    for number in 0..1_100 {
        entry(&world, NOW_S + number, "zoe", "counter.replace").await;
    }
    entry(&world, NOW_S, "max", "counter.create").await;

    let csv = admin.get("/audit.csv?who=zoe").await;
    assert_eq!(
        csv.is(StatusCode::OK).headers[header::CONTENT_DISPOSITION],
        "attachment; filename=\"audit.csv\""
    );
    assert_eq!(csv.text.lines().count(), 1_101);
    assert!(csv.text.starts_with("id,time,who,") && !csv.text.contains("max"));

    let lines = admin.get("/audit.ndjson").await;
    assert_eq!(lines.text.lines().count(), 1_101);

    let first: serde_json::Value =
        serde_json::from_str(lines.text.lines().next().unwrap()).unwrap();
    assert_eq!((&first["who"], &first["details"]["reason"]), (&"max".into(), &"dry".into()));
}

use crate::support::{NOON_S, Services, TODAY_S, counter, event, event_x};
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::counter::Counter;
use raingauge_core::limits::{BUCKETS_PER_REQUEST_MAX, REASON_LEN_MAX, VERSIONS_PER_HOUR_MAX};
use raingauge_core::plan::Plan;
use raingauge_counters::Error;
use raingauge_memory as memory;
use raingauge_ports::catalog::{Catalog, Change};
use raingauge_ports::scans::Stop;
use raingauge_writer::belongs;
use raingauge_writer::control::Bucket;
use raingauge_writer::states::progress;
use raingauge_writer::worker::BackfillStatus;
use serde_json::json;
use std::sync::Arc;

fn bucket(key: &str, granularity: Granularity, time: i64, count: i64) -> Bucket {
    Bucket { key: key.to_owned(), granularity, time, count }
}

#[tokio::test]
async fn a_counter_counts_from_its_creation_until_it_is_archived() {
    let services = Services::start();
    services.send(&[event_x("early", NOON_S)]).await;
    services.create(counter(1, json!({}))).await;
    services.send(&[event_x("a", NOON_S)]).await;
    services.replace(counter(1, json!({"state": "paused"}))).await;
    services.send(&[event_x("b", NOON_S)]).await;
    assert_eq!(services.count("c1:x", TODAY_S, NOON_S + DAY_S).await, 1);
    services.replace(counter(1, json!({"value": 10}))).await;
    services.send(&[event_x("c", NOON_S)]).await;
    assert_eq!(services.count("c1:x", TODAY_S, NOON_S + DAY_S).await, 11);
    services.counters.archive(1, None, "me", "a test").await.unwrap();
    assert_eq!(services.published.view().ruleset.index_of_key("c1:x"), None);
    services.create(counter(2, json!({"template": "c1:{k}"}))).await;

    assert_eq!(
        services.count("c1:x", TODAY_S, NOON_S + DAY_S).await,
        0,
        "another counter has counts of its own"
    );
}

#[tokio::test]
async fn a_backfill_says_how_far_it_is_and_when_it_ended() {
    let services = Services::start();
    services.send(&[event_x("a", NOON_S), event_x("b", NOON_S)]).await;
    services.create(counter(1, json!({}))).await;

    let now = || progress(&*services.writer, &services.published, 1);
    assert_eq!(now(), None);
    services.clock.set_s(NOON_S + 60);
    services.backfill(1).await;

    let done = now().expect("one");
    assert_eq!((done.backfill.status, done.backfill.counted), (BackfillStatus::Finished, 2));
    assert_eq!(
        (done.backfill.ended_at, done.share),
        (0, 1.0),
        "by the time of a log that is dated 1970"
    );
}

#[tokio::test]
async fn what_others_change_in_the_catalog_is_followed_once() {
    let services = Services::start();
    let change = || Change { by: "another".to_owned(), reason: String::new(), at_s: NOON_S };
    for id in 1..=20 {
        let counter = Counter::from_json(&counter(id, json!({}))).unwrap();
        services.catalog.create(counter, change()).await.unwrap();
    }

    services.counters.follow().await.unwrap();
    let end = services.log.end();
    assert_eq!((end, services.published.view().ruleset.rules().len()), (20, 20));
    services.counters.follow().await.unwrap();
    assert_eq!(services.log.end(), end, "nothing has changed");

    let edited = Counter::from_json(&counter(3, json!({"value": 7}))).unwrap();
    services.catalog.replace(edited, Some(1), change()).await.unwrap();
    services.counters.follow().await.unwrap();
    services.send(&[event_x("a", NOON_S)]).await;
    assert_eq!(services.log.end(), end + 2);
    assert_eq!(services.count("c3:x", TODAY_S, NOON_S + DAY_S).await, 7);

    // Who starts again with the same catalog has nothing to tell the log.
    services.writer.stop();
    let log = Arc::clone(&services.log);
    let store = Arc::clone(&services.store);
    let again =
        Services::start_on(log, store, Arc::clone(&services.catalog), Arc::clone(&services.clock));

    again.counters.follow().await.unwrap();
    assert_eq!(again.log.end(), end + 2);
}

#[tokio::test]
async fn a_replacement_must_fit_its_counter_and_version() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;

    let replace = async |id, expected| {
        let changed = Counter::from_json(&counter(id, json!({"name": "m"}))).unwrap();
        services.counters.replace(changed, expected, "me", "").await
    };
    assert!(replace(2, None).await.is_err());
    assert!(replace(1, Some(2)).await.is_err());
    assert_eq!(replace(1, Some(1)).await.unwrap().version, 2);
    assert_eq!(services.counters.at_version(1, 1).await.unwrap().counter.name, "n");

    let unknown = services.counters.at_version(1, 3).await;
    assert!(matches!(unknown, Err(Error::VersionUnknown { id: 1, version: 3 })));
    assert!(services.counters.backfill(9).await.is_err(), "there is no counter 9");
}

#[tokio::test]
async fn buckets_are_set_and_each_bad_one_is_refused_alone() {
    let services = Services::start();
    services
        .create(counter(1, json!({"retentionDays": {"quarter": 1, "hour": 2, "day": 3}})))
        .await;

    let quarter = Granularity::Quarter;
    let hour = Granularity::Hour;
    let day = Granularity::Day;
    let buckets = vec![
        bucket("c1:x", day, TODAY_S - DAY_S, 100),
        bucket("c2:x", day, TODAY_S, 1),
        bucket("c1:x", hour, TODAY_S + 900, 1),
        bucket("c1:x", quarter, TODAY_S - 2 * DAY_S, 1),
        bucket("c1:x", quarter, NOON_S + 900, 1),
        bucket("c1:x", day, TODAY_S, i64::MIN),
        bucket("c1:x", day, TODAY_S - 3 * DAY_S, 10),
        bucket("c1:x", day, -DAY_S, 10),
    ];

    let answer = services.set(buckets).await;
    let refused: Vec<_> =
        answer.rejected.iter().map(|refused| (refused.index, refused.code.as_str())).collect();
    assert_eq!(answer.accepted, 2);

    let expected =
        ["key_unknown", "time_not_aligned", "too_late", "time_in_future", "count_out_of_range"];
    assert_eq!(refused[..5], (1..6).zip(expected).collect::<Vec<_>>());
    assert_eq!(refused[5..], [(7, "time_not_aligned")]);
    assert_eq!(services.count("c1:x", TODAY_S - 3 * DAY_S, TODAY_S).await, 110);

    let many = vec![Ok(bucket("c1:x", day, TODAY_S, 1)); BUCKETS_PER_REQUEST_MAX + 1];
    assert!(matches!(services.counters.set_buckets(many, None).await, Err(Error::TooMany)));
}

#[tokio::test]
async fn a_catalog_that_lacks_what_was_counted_does_not_belong_to_it() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;
    services.create(counter(2, json!({}))).await;
    services.replace(counter(1, json!({"description": "edited"}))).await;
    belongs::check(&*services.catalog, &services.published).await.expect("its own");

    let older = memory::Catalog::default();
    let change = Change { by: "me".to_owned(), reason: "a test".to_owned(), at_s: NOON_S };
    let create =
        |id| older.create(Counter::from_json(&counter(id, json!({}))).unwrap(), change.clone());
    create(1).await.unwrap();

    let refused = belongs::check(&older, &services.published).await.unwrap_err().to_string();
    assert!(refused.contains("counter 1 was counted at version 2"), "{refused}");
    assert!(refused.contains("the catalog has version 1; counter 2"), "{refused}");
    create(2).await.unwrap();
    assert!(belongs::check(&older, &services.published).await.is_err());
}

/// A catalog that lost a version may give its number to another configuration.
#[tokio::test]
async fn a_catalog_with_another_configuration_of_the_same_version_counts() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;
    services.writer.stop();

    let other = Arc::new(memory::Catalog::default());
    let change = Change { by: "me".to_owned(), reason: String::new(), at_s: NOON_S };
    other
        .create(Counter::from_json(&counter(1, json!({"value": 7}))).unwrap(), change)
        .await
        .unwrap();

    let log = Arc::clone(&services.log);
    let store = Arc::clone(&services.store);
    let again = Services::start_on(log, store, other, Arc::clone(&services.clock));
    again.counters.follow().await.unwrap();
    again.send(&[event_x("a", NOON_S)]).await;
    assert_eq!(again.count("c1:x", TODAY_S, NOON_S + DAY_S).await, 7);
}

#[tokio::test]
async fn versions_of_a_counter_are_made_so_often_and_no_more() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;
    services.create(counter(2, json!({}))).await;

    let change = async |id: u32, number: u32| {
        let edited = counter(id, json!({ "description": number.to_string() }));
        let edited = Counter::from_json(&edited).unwrap();
        services.counters.replace(edited, None, "me", "").await
    };

    for number in 0..VERSIONS_PER_HOUR_MAX {
        change(1, number).await.unwrap();
    }
    assert!(matches!(change(1, 0).await, Err(Error::ChangedTooOften(1))));
    assert!(change(2, 0).await.is_ok(), "each counter by itself");

    let long = "x".repeat(REASON_LEN_MAX + 1);
    assert!(matches!(
        services.counters.archive(2, None, "me", &long).await,
        Err(Error::ReasonTooLong)
    ));
    services.clock.set_s(NOON_S + 3_600);
    assert!(change(1, 0).await.is_ok());
}

#[tokio::test]
async fn an_erased_key_stays_erased() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;

    let all = async |key: &str| services.count(key, TODAY_S, NOON_S + DAY_S).await;
    services
        .send(&[event_x("a", NOON_S), event_x("b", NOON_S), event("c", NOON_S, json!({"k": "y"}))])
        .await;
    services.counters.erase(1, "c1:x").await.unwrap();
    assert_eq!((all("c1:x").await, all("c1:y").await), (0, 1));

    // What follows counts from nothing, and neither a backfill nor a recount brings back what was.
    services.send(&[event_x("d", NOON_S)]).await;
    services.backfill(1).await;
    assert_eq!((all("c1:x").await, all("c1:y").await), (1, 1));

    let range = Plan::new(TODAY_S, NOON_S + DAY_S).unwrap();
    let recount = services
        .recounter
        .recount("c1:x", range, &Stop::default())
        .await
        .unwrap()
        .expect("a counter has it");

    assert!(recount.equal && recount.recounted == 1, "{recount:?}");

    assert!(matches!(
        services.counters.erase(1, "c2:x").await,
        Err(Error::KeyOfAnother { counter: 1, .. })
    ));
    assert!(services.counters.erase(9, "c9:x").await.is_err());
}

#[tokio::test]
async fn an_erased_counter_begins_from_nothing_and_stays_so() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;

    let all = async |key: &str| services.count(key, TODAY_S, NOON_S + DAY_S).await;
    services.send(&[event_x("a", NOON_S), event("b", NOON_S, json!({"k": "y"}))]).await;
    services.set(vec![bucket("c1:z", Granularity::Day, TODAY_S, 100)]).await;
    services.counters.erase_all(1).await.unwrap();
    assert_eq!((all("c1:x").await, all("c1:y").await, all("c1:z").await), (0, 0, 0));

    // What follows counts, and neither a backfill nor a recount brings back what was.
    services.send(&[event_x("c", NOON_S)]).await;
    assert_eq!(all("c1:x").await, 1);
    services.backfill(1).await;
    assert_eq!((all("c1:x").await, all("c1:y").await, all("c1:z").await), (1, 0, 0));

    let range = Plan::new(TODAY_S, NOON_S + DAY_S).unwrap();
    for (key, count) in [("c1:x", 1), ("c1:y", 0), ("c1:z", 0)] {
        let recount = services
            .recounter
            .recount(key, range, &Stop::default())
            .await
            .unwrap()
            .expect("a counter has it");
        assert!(
            recount.equal && recount.recounted == count && recount.set_buckets == 0,
            "{recount:?}"
        );
    }

    // Again, and while a backfill is undecided, which ends.
    services.counters.backfill(1).await.unwrap();
    services.counters.erase_all(1).await.unwrap();
    assert_eq!(all("c1:x").await, 0);

    let backfill = progress(&*services.writer, &services.published, 1).expect("one").backfill;
    assert!(backfill.status != BackfillStatus::Running, "{backfill:?}");
    assert!(services.counters.erase_all(9).await.is_err(), "there is no counter 9");
}

#[tokio::test]
async fn only_an_archived_counter_is_purged() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;
    services.send(&[event_x("a", NOON_S)]).await;
    assert!(matches!(services.counters.purge(1).await, Err(Error::NotArchived(1))));
    services.counters.archive(1, None, "me", "a test").await.unwrap();
    services.counters.purge(1).await.unwrap();
    services.replace(counter(1, json!({}))).await;
    services.backfill(1).await;
    assert_eq!(
        services.count("c1:x", TODAY_S, NOON_S + DAY_S).await,
        0,
        "it comes back with nothing"
    );
    services.send(&[event_x("b", NOON_S)]).await;
    assert_eq!(services.count("c1:x", TODAY_S, NOON_S + DAY_S).await, 1);
}

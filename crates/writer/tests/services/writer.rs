use crate::support::{NOON_S, Services, counter, event_x};
use raingauge_core::bucket::DAY_S;
use raingauge_ports::buckets::BucketWriter;
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn a_writer_that_is_told_to_stop_commits_all_and_nobody_waits_for_it() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;
    let mut intake = services.ingest.begin().unwrap();
    for id in 0..1_000 {
        intake.push_json(event_x(id, NOON_S).to_string().as_bytes()).unwrap();
    }
    services.ingest.finish(intake, false).await.unwrap();
    services.writer.stop();
    services.writer.stop();
    assert_eq!(services.store.checkpoint().unwrap().position, services.log.end());
    assert!(services.published.wait_applied(services.log.end() + 1).await.is_err());
    assert!(services.ingest.begin().is_err());
    services.store.crash();
    let (log, catalog) = (Arc::clone(&services.log), Arc::clone(&services.catalog));
    let again = Services::start_on(log, Arc::clone(&services.store), catalog, Arc::clone(&services.clock));
    assert_eq!(again.quarters("c1:x").await, [(NOON_S, 1_000)]);
    // Which event was the newest is not known after a start, so the latest that was allowed is assumed.
    assert!(again.published.newest_event_s() >= NOON_S);
}

#[tokio::test]
async fn a_store_that_forgot_is_filled_from_the_log() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;
    services.send(&[event_x("a", NOON_S), event_x("b", NOON_S - DAY_S)]).await;
    services.writer.stop();
    let (log, catalog) = (Arc::clone(&services.log), Arc::clone(&services.catalog));
    let again = Services::start_on(log, Arc::default(), catalog, Arc::clone(&services.clock));
    assert_eq!(again.quarters("c1:x").await, [(NOON_S - DAY_S, 1), (NOON_S, 1)]);
}

use crate::support::{NOON_S, Services, counter, event_x};
use raingauge_core::bucket::DAY_S;
use raingauge_core::plan::Plan;
use raingauge_embedded::{LogOptions, SegmentLog};
use raingauge_ports::buckets::BucketWriter;
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::scans::Stop;
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn a_stopping_writer_commits_all_and_nobody_waits_for_it() {
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
    assert!(services.published.wait_applied(&[(0, services.log.end() + 1)]).await.is_err());
    assert!(services.ingest.begin().is_err());
    services.store.crash();

    let log = Arc::clone(&services.log);
    let catalog = Arc::clone(&services.catalog);
    let again =
        Services::start_on(log, Arc::clone(&services.store), catalog, Arc::clone(&services.clock));
    assert_eq!(again.quarters("c1:x").await, [(NOON_S, 1_000)]);

    // Which event was the newest is not known after a start, so the latest that was allowed is
    // assumed.
    assert!(again.published.newest_event_s() >= NOON_S);
}

#[tokio::test]
async fn a_store_that_forgot_is_filled_from_the_log() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;
    services.send(&[event_x("a", NOON_S), event_x("b", NOON_S - DAY_S)]).await;
    services.writer.stop();
    let log = Arc::clone(&services.log);
    let catalog = Arc::clone(&services.catalog);
    let again = Services::start_on(log, Arc::default(), catalog, Arc::clone(&services.clock));
    assert_eq!(again.quarters("c1:x").await, [(NOON_S - DAY_S, 1), (NOON_S, 1)]);
}

/// Several producers that send everything twice, while the counter is edited and backfilled all the
/// time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_counted_twice_while_everything_happens_at_once() {
    const PRODUCERS: i64 = 4;
    const BATCHES: i64 = 30;
    const EVENTS: i64 = 20;

    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at_s(NOON_S));
    let time = Arc::clone(&clock) as Arc<dyn Clock>;
    let log = Arc::new(SegmentLog::open(folder.path(), LogOptions::default(), time).unwrap());
    let services = Arc::new(Services::start_on(log, Arc::default(), Arc::default(), clock));

    services.create(counter(1, json!({}))).await;
    services.create(counter(2, json!({"value": 3}))).await;

    let produce = async |services: Arc<Services>, producer: i64| {
        for batch in 0..BATCHES {
            // Two producers share each id.
            let id = |event| ((producer / 2) * BATCHES + batch) * EVENTS + event;
            let events: Vec<_> =
                (0..EVENTS).map(|event| event_x(id(event), NOON_S - id(event) * 60)).collect();
            services.send(&events).await;
        }
    };

    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| tokio::spawn(produce(Arc::clone(&services), producer)))
        .collect();
    let conductor = services.counters.conductor().expect("a conductor");
    let conducting = tokio::spawn(async move { conductor.run().await });
    let mut edits = 0;

    while producers.iter().any(|producer| !producer.is_finished()) {
        edits += 1;
        services.counters.backfill(1).await.unwrap();
        services.counters.backfill(2).await.unwrap();
        services.replace(counter(1, json!({"description": format!("edit {edits}")}))).await;
    }

    for producer in producers {
        producer.await.unwrap();
    }
    conducting.abort();

    let count = PRODUCERS / 2 * BATCHES * EVENTS;
    let range = Plan::new(NOON_S - 30 * DAY_S, NOON_S + 900).unwrap();

    for (key, count) in [("c1:x", count), ("c2:x", 3 * count)] {
        assert_eq!(services.count(key, range.from_s, range.to_s).await, i128::from(count), "{key}");
        let recount =
            services.recounter.recount(key, range, &Stop::default()).await.unwrap().unwrap();
        assert!(recount.equal && recount.recounted == i128::from(count), "{recount:?}");
    }
}

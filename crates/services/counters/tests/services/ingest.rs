use crate::support::{ALLOWANCE_S, NOON_S, Services, counter, event, event_x};
use raingauge_core::bucket::DAY_S;
use raingauge_core::limits::EVENTS_PER_REQUEST_MAX;
use raingauge_memory as memory;
use raingauge_ports::clock::ManualClock;
use raingauge_ports::log::{EventLog, EventSink};
use raingauge_ports::published::Published;
use raingauge_writer::Ingest;
use raingauge_writer::ingest::{Error, Receipt};
use serde_json::json;
use std::sync::Arc;

fn codes(receipt: &Receipt) -> Vec<(usize, &'static str)> {
    receipt
        .rejected
        .iter()
        .map(|rejected| (rejected.index, rejected.refusal.code.as_str()))
        .collect()
}

#[tokio::test]
async fn each_event_is_counted_or_refused_with_its_place() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;

    let events = [
        event_x("a", NOON_S),
        event_x("b", NOON_S + ALLOWANCE_S + 1),
        event_x("c", NOON_S + ALLOWANCE_S),
        json!({"specversion": "1.0"}),
        event_x("a", NOON_S),
        event("d", NOON_S, json!({})),
    ];

    let receipt = services.send(&events).await;
    assert_eq!((receipt.accepted, receipt.duplicates), (3, 1));
    assert_eq!(codes(&receipt), [(1, "time_in_future"), (3, "attribute_missing")]);
    assert_eq!(services.count("c1:x", NOON_S, NOON_S + DAY_S).await, 2);

    let again = services.send(&[event_x("c", NOON_S), event_x("b", NOON_S)]).await;
    assert_eq!((again.accepted, again.duplicates), (1, 1));
    assert_eq!(services.count("c1:x", NOON_S, NOON_S + DAY_S).await, 3);
}

#[tokio::test]
async fn what_no_counter_has_a_bucket_for_is_refused() {
    let services = Services::start();
    let kept = |days: u32| json!({"retentionDays": {"quarter": days, "hour": days, "day": days}});
    services.create(counter(1, kept(3))).await;
    services.create(counter(2, kept(5))).await;

    let unheard = json!({"specversion": "1.0", "id": "u", "source": "s", "type": "unheard", "time": "1971-01-01T00:00:00Z"});
    let days = [3, 5, 6].map(|days| event_x(days, NOON_S - days * DAY_S));
    let receipt = services
        .send(&[&days[..], &[unheard, event_x("late", NOON_S - 400 * DAY_S)]].concat())
        .await;
    assert_eq!((receipt.accepted, codes(&receipt)), (3, vec![(2, "too_late"), (4, "too_late")]));

    assert!(
        receipt.rejected[0].refusal.detail.contains("2024-09-29T00:00:00Z"),
        "{}",
        receipt.rejected[0].refusal.detail
    );
}

#[tokio::test]
async fn the_number_of_events_of_a_request_is_limited() {
    let services = Services::start();
    let mut intake = services.ingest.begin().unwrap();
    assert!(intake.is_empty());
    for _ in 0..EVENTS_PER_REQUEST_MAX {
        intake.push_json(b"{}").unwrap();
    }
    assert_eq!(intake.len(), EVENTS_PER_REQUEST_MAX);
    assert!(matches!(intake.push_json(b"{}"), Err(Error::TooMany)));
    let receipt = services.ingest.finish(intake, true).await.unwrap();
    assert_eq!((receipt.accepted, receipt.rejected.len()), (0, EVENTS_PER_REQUEST_MAX));
}

#[tokio::test]
async fn a_writer_that_lags_or_stopped_takes_no_more() {
    let log = Arc::<memory::Log>::default();
    let published = Arc::<Published>::default();
    let clock = Arc::new(ManualClock::at_s(NOON_S));
    let sink = Arc::clone(&log) as Arc<dyn EventSink>;
    let counted = vec![log as Arc<dyn EventLog>];
    let ingest = Ingest::new(sink, counted, Arc::clone(&published), clock, ALLOWANCE_S, 2);

    for id in 0..3 {
        let mut intake = ingest.begin().unwrap();
        intake.push_json(event_x(id, NOON_S).to_string().as_bytes()).unwrap();
        ingest.finish(intake, false).await.unwrap();
    }

    assert!(matches!(ingest.begin(), Err(Error::Lagging { lag: 3, .. })));
    published.set_applied(0, 1);

    let mut intake = ingest.begin().unwrap();
    published.fail("the disk is full");
    assert!(
        matches!(ingest.begin(), Err(Error::Stopped(reason)) if &*reason == "the disk is full")
    );
    intake.push_json(event_x("late", NOON_S).to_string().as_bytes()).unwrap();

    assert!(
        matches!(ingest.finish(intake, true).await, Err(Error::Stopped(_))),
        "nobody waits for ever"
    );
}

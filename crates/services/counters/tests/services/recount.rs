use crate::support::{NOON_S, Services, TODAY_S, counter, event, event_x};
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::plan::Plan;
use raingauge_counters::recount::{Difference, Recount};
use raingauge_embedded::{LogOptions, SegmentLog};
use raingauge_ports::buckets::{BucketWriter, Cell};
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::log::Needs;
use raingauge_ports::scans::{Scans, Stop};
use raingauge_writer::control::Bucket;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

async fn recount(services: &Services, key: &str, from_s: i64, to_s: i64) -> Recount {
    let range = Plan::new(from_s, to_s).unwrap();
    services.recounter.recount(key, range, &Stop::default()).await.unwrap().expect("a counter")
}

fn assert_equal(recount: &Recount, count: i128) {
    assert_eq!(
        (recount.stored, recount.recounted, &recount.differences[..]),
        (count, count, &[][..])
    );
    assert!(recount.equal);
}

#[tokio::test]
async fn a_recount_follows_the_rules_that_were_in_force() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;
    services.send(&[event_x("a", NOON_S - 5 * DAY_S), event_x("b", NOON_S)]).await;
    assert_equal(&recount(&services, "c1:x", NOON_S - 9 * DAY_S, NOON_S + 900).await, 2);
    services.replace(counter(1, json!({"value": 10}))).await;
    services.send(&[event_x("c", NOON_S)]).await;
    services.replace(counter(1, json!({"template": "elsewhere:{k}"}))).await;
    services.send(&[event_x("d", NOON_S)]).await;
    services.replace(counter(1, json!({"state": "paused"}))).await;
    services.send(&[event_x("e", NOON_S)]).await;

    let bucket =
        |granularity, time| Bucket { key: "c1:x".to_owned(), granularity, time, count: 40 };
    let buckets =
        [Granularity::Quarter, Granularity::Hour].map(|granularity| bucket(granularity, NOON_S));
    services.set(buckets).await;
    assert_equal(&recount(&services, "c1:x", TODAY_S, NOON_S + 3_600).await, 40);
    assert_equal(&recount(&services, "c1:x", NOON_S - 9 * DAY_S, NOON_S).await, 1);

    let none = services
        .recounter
        .recount("nobody:x", Plan::new(0, 900).unwrap(), &Stop::default())
        .await
        .unwrap();
    assert_eq!(none, None);
}

#[tokio::test]
async fn a_recount_follows_backfills_also_of_paused_counters() {
    let services = Services::start();
    services.send(&[event_x("a", NOON_S)]).await;
    services.create(counter(1, json!({"value": 5}))).await;
    services.send(&[event_x("b", NOON_S)]).await;
    services.replace(counter(1, json!({"state": "paused"}))).await;
    services.send(&[event_x("c", NOON_S)]).await;
    assert_equal(&recount(&services, "c1:x", TODAY_S, NOON_S + 900).await, 5);
    services.backfill(1).await;
    assert_equal(&recount(&services, "c1:x", TODAY_S, NOON_S + 900).await, 3);
    services.send(&[event_x("d", NOON_S)]).await;
    assert_equal(&recount(&services, "c1:x", TODAY_S, NOON_S + 900).await, 3);
    services.replace(counter(1, json!({}))).await;
    services.send(&[event_x("e", NOON_S)]).await;
    assert_equal(&recount(&services, "c1:x", TODAY_S, NOON_S + 900).await, 4);
}

/// Until the new counts answer, a recount makes the old ones; then the new ones. It never mixes
/// them.
#[tokio::test]
async fn a_recount_is_right_at_every_step_of_a_backfill() {
    let services = Services::start();
    services.create(counter(1, json!({"value": 5}))).await;
    services.send(&[event_x("a", NOON_S)]).await;
    services.replace(counter(1, json!({"value": 7}))).await;
    services.send(&[event_x("b", NOON_S)]).await;

    let equals =
        async |count| assert_equal(&recount(&services, "c1:x", TODAY_S, NOON_S + 900).await, count);
    equals(12).await;

    // It has begun, and nobody conducts it yet.
    let begin = br#"{"kind":"backfill","counter":1}"#.to_vec();
    let end = services.log.append_control(0, begin).await.unwrap();
    services.published.wait_applied(&[(0, end)]).await.unwrap();
    equals(12).await;
    services.send(&[event_x("c", NOON_S)]).await;
    equals(19).await;

    // The old counts are still counted for those who have not switched.
    services.backfill(1).await;
    equals(21).await;
    services.send(&[event_x("d", NOON_S)]).await;
    equals(28).await;
}

/// The key once belonged to another counter, whose bucket is none of this one's.
#[tokio::test]
async fn a_recount_leaves_out_what_the_key_was_to_another_counter() {
    let services = Services::start();
    services.create(counter(1, json!({"template": "mine:{k}"}))).await;
    services.create(counter(2, json!({}))).await;

    let bucket = Bucket {
        key: "c2:x".to_owned(),
        granularity: Granularity::Quarter,
        time: TODAY_S,
        count: 40,
    };

    services.set([bucket]).await;
    services.counters.archive(2, None, "me", "").await.unwrap();
    services.replace(counter(1, json!({"template": "c2:{k}"}))).await;
    services.send(&[event_x("a", TODAY_S)]).await;
    assert_equal(&recount(&services, "c2:x", TODAY_S, TODAY_S + 900).await, 1);
}

#[tokio::test]
async fn a_count_that_was_tampered_with_is_shown_by_bucket() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;
    services.send(&[event_x("a", TODAY_S), event("b", TODAY_S, json!({"k": "y"}))]).await;

    let generation = services.generation(1);
    let cell = Cell { granularity: Granularity::Hour, time_s: TODAY_S, count: 9 };
    services.store.set(generation, "c1:x", 0, cell).unwrap();

    let surplus = Cell { granularity: Granularity::Quarter, time_s: TODAY_S + 900, count: 3 };
    services.store.set(generation, "c1:x", 0, surplus).unwrap();

    let recount = recount(&services, "c1:x", TODAY_S, TODAY_S + 3_600).await;
    let difference =
        |granularity, time, stored, recounted| Difference { granularity, time, stored, recounted };
    let expected = [
        difference(Granularity::Quarter, TODAY_S + 900, Some(3), None),
        difference(Granularity::Hour, TODAY_S, Some(9), Some(1)),
    ];
    assert_eq!((recount.stored, recount.recounted, recount.equal), (9, 1, false));
    assert_eq!(recount.differences, expected);
}

/// Events outside the range do not hold the recount up, however many there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_recounted_while_it_is_counted() {
    let services = Arc::new(Services::start());
    services.create(counter(1, json!({}))).await;
    services.send(&[event_x("old", TODAY_S)]).await;

    let sender = Arc::clone(&services);
    let sending = tokio::spawn(async move {
        for id in 0.. {
            sender.send(&[event_x(id, NOON_S)]).await;
        }
    });

    for _ in 0..20 {
        assert_equal(&recount(&services, "c1:x", TODAY_S, NOON_S).await, 1);
    }
    sending.abort();
}

#[tokio::test]
async fn only_what_the_log_still_holds_and_the_counter_still_keeps_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at_s(NOON_S));
    let retention = Duration::from_hours(3 * 24);
    let options = LogOptions { segment_bytes: 1, retention, ..LogOptions::default() };
    let time = Arc::clone(&clock) as Arc<dyn Clock>;
    let log = Arc::new(SegmentLog::open(folder.path(), options, time).unwrap());
    let services = Services::start_on(log, Arc::default(), Arc::default(), Arc::clone(&clock));

    let kept = json!({"retentionDays": {"quarter": 5, "hour": 50, "day": 50}});
    services.create(counter(1, kept.clone())).await;

    for day in 0..6 {
        clock.set_s(NOON_S + day * DAY_S);
        services
            .send(&[event_x(day, NOON_S + day * DAY_S), event_x(format!("-{day}"), NOON_S - DAY_S)])
            .await;
    }

    assert_equal(&recount(&services, "c1:x", TODAY_S - DAY_S, TODAY_S + 6 * DAY_S).await, 12);

    // A range whose quarter hours are gone is compared where it can be.
    let ragged = recount(&services, "c1:x", TODAY_S - DAY_S + 900, TODAY_S + 6 * DAY_S).await;
    assert_equal(&ragged, 6);
    assert_eq!(ragged.compared_from, TODAY_S);

    services.log.trim(Needs::of_counting(services.published.applied(0))).unwrap();
    assert!(services.log.start() > 0);

    let trimmed = recount(&services, "c1:x", TODAY_S - DAY_S, TODAY_S + 6 * DAY_S).await;
    let from_s = trimmed.compared_from;
    assert!(TODAY_S < from_s && from_s < TODAY_S + 5 * DAY_S && from_s % DAY_S == 0, "{from_s}");
    assert_equal(&trimmed, i128::from((TODAY_S + 6 * DAY_S - from_s) / DAY_S));

    // A backfill remakes the same days only, and keeps the counts before them.
    services.replace(counter(1, json!({"value": 7, "retentionDays": kept["retentionDays"]}))).await;
    services.backfill(1).await;

    let again = recount(&services, "c1:x", TODAY_S - DAY_S, TODAY_S + 6 * DAY_S).await;
    assert_equal(&again, 7 * trimmed.stored);
    assert_eq!(services.count("c1:x", TODAY_S - DAY_S, from_s).await, 12 - trimmed.stored);
}

/// A recount looks at every block whether anybody still waits for it, and what was set shows in it.
#[tokio::test]
async fn a_recount_that_nobody_waits_for_ends() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;
    services.send(&[event_x("a", NOON_S)]).await;

    let bucket =
        Bucket { key: "c1:x".to_owned(), granularity: Granularity::Day, time: TODAY_S, count: 7 };
    services.set([bucket]).await;

    let found = recount(&services, "c1:x", TODAY_S, NOON_S + 900).await;
    assert_eq!((found.equal, found.set_buckets), (true, 1));
    assert_eq!(recount(&services, "c1:x", NOON_S, NOON_S + 900).await.set_buckets, 0);

    let scans = Scans::default();
    let turn = scans.turn("anna").await.unwrap();
    let stop = turn.stop().clone();
    drop(turn);

    let range = Plan::new(TODAY_S, NOON_S + 900).unwrap();
    let ended = services.recounter.recount("c1:x", range, &stop).await.unwrap_err();
    assert!(ended.to_string().contains("nobody waits"), "{ended}");
}

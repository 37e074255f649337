use crate::support::{NOON_S, Service, model, range};
use raingauge_core::bucket::{HOUR_S, QUARTER_S};
use raingauge_reader::{Range, Sources};
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[tokio::test]
async fn a_result_is_kept_as_published() {
    let service = Service::new(json!({"strategy": "result"}));
    service.fill("c1:x");

    let (from_s, to_s) = (NOON_S - HOUR_S, NOON_S);
    let first = service.count("c1:x", from_s + 30, to_s + 400).await.unwrap();
    assert_eq!((first.from_s, first.to_s, first.count), (from_s, to_s, model(from_s, to_s)));
    service.settle().await;

    let kept = service.cache.puts.lock().unwrap().clone();
    assert_eq!(
        kept,
        [(format!("id:1:c1:x:{from_s}:{to_s}"), first.count, Duration::from_secs(300))]
    );

    // Another second of the same quarter hours is the same answer, and so is a late event's, until
    // its time is over.
    service.fill("c1:x");
    assert_eq!(service.count("c1:x", from_s + 899, to_s + 1).await.unwrap(), first);
    assert_eq!(service.remote.reads(), 1);
    service.clock.set_s(NOON_S + 400 + 300);
    assert_eq!(service.outcome("c1:x", from_s, to_s).await, Ok(2 * first.count));
    assert_eq!(service.remote.reads(), 2);
}

#[tokio::test]
async fn what_is_still_open_is_not_kept() {
    let service = Service::new(json!({"strategy": "result"}));
    service.fill("c1:x");

    let (from_s, now_s) = (NOON_S - HOUR_S, NOON_S + 400);
    let fresh = Range { fresh: true, ..range("c1:x", from_s, now_s) };
    assert_eq!(
        service.reader.counts(&[fresh]).await[0].as_ref().unwrap().count,
        model(from_s, NOON_S + QUARTER_S)
    );
    assert_eq!(
        service.outcome("c1:x", from_s, NOON_S + QUARTER_S).await,
        Ok(model(from_s, NOON_S + QUARTER_S))
    );
    service.set(json!({"strategy": "phased"}));
    assert_eq!(
        service.outcome("c1:x", from_s, NOON_S + QUARTER_S).await,
        Ok(model(from_s, NOON_S + QUARTER_S))
    );
    service.settle().await;
    assert_eq!(service.cache.gets.load(Ordering::SeqCst), 0);
    assert!(service.cache.puts.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_policy_decides_by_the_id_and_at_once() {
    let service = Service::new(json!({
        "strategy": "none",
        "rollout": [{"strategy": "result", "modulo": 4, "below": 2}],
    }));
    let keys = ["c1:x", "c2:x", "c3:x", "c4:x"];
    let ranges = keys.map(|key| range(key, NOON_S - HOUR_S, NOON_S));
    let reads = async |expected: usize| {
        let before = service.remote.reads();
        assert!(service.reader.counts(&ranges).await.iter().all(Result::is_ok));
        service.settle().await;
        assert_eq!(service.remote.reads() - before, expected);
    };

    reads(4).await;

    // 1 and 4 are below 2, modulo 4.
    reads(2).await;
    service.set(json!({"strategy": "result"}));
    reads(2).await;
    reads(0).await;
    service.set(json!({"strategy": "result", "overrides": {"reader-1": {"strategy": "none"}}}));
    reads(4).await;
    service.set(json!({"strategy": "result", "overrides": {"reader-2": {"strategy": "none"}}}));
    reads(0).await;
    service.set(json!({"strategy": "live"}));
    reads(4).await;
}

#[tokio::test]
async fn hits_and_misses_of_one_batch_come_in_their_order() {
    let service = Service::new(json!({"strategy": "result"}));
    ["c1:x", "c2:x"].iter().for_each(|key| service.fill(key));

    let known = range("c1:x", NOON_S - 3 * HOUR_S, NOON_S);
    let unknown = range("c2:x", NOON_S - 2 * HOUR_S, NOON_S);
    service.reader.counts(std::slice::from_ref(&known)).await;
    service.settle().await;

    let batch = [unknown.clone(), known.clone(), range("nobody", 0, 900), unknown, known];
    let (counts, served) = service.reader.counts_with_sources(&batch).await;
    assert_eq!(served, Sources { memory: 1, cache: 2, store: 2 });

    let counts = counts
        .into_iter()
        .map(|answer| answer.map(|answer| answer.count).map_err(|failure| failure.code.as_str()));
    let three = model(NOON_S - 3 * HOUR_S, NOON_S);
    let two = model(NOON_S - 2 * HOUR_S, NOON_S);
    assert_eq!(
        counts.collect::<Vec<_>>(),
        [Ok(two), Ok(three), Err("key_unknown"), Ok(two), Ok(three)]
    );
    assert_eq!(service.remote.reads(), 2, "the same range twice in one batch is read once");
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_fails_or_hangs_fails_no_count() {
    let service = Service::new(json!({"strategy": "result"}));
    service.fill("c1:x");

    let expected = Ok(model(NOON_S - HOUR_S, NOON_S));
    let ask = async || service.outcome("c1:x", NOON_S - HOUR_S, NOON_S).await;

    for switch in [&service.cache.fails, &service.cache.hangs] {
        switch.store(true, Ordering::SeqCst);
        let before = service.cache.gets.load(Ordering::SeqCst);

        for _ in 0..50 {
            assert_eq!(ask().await, expected);
            service.settle().await;
        }

        let asked = service.cache.gets.load(Ordering::SeqCst) - before;
        assert!(
            (1..50).contains(&asked),
            "it was asked {asked} times: the breaker opens, and not before it must"
        );
        switch.store(false, Ordering::SeqCst);
        service.clock.set_s(service.clock_s() + 10);
        assert_eq!(ask().await, expected, "the probe");
        service.settle().await;

        let reads = service.remote.reads();
        assert_eq!((ask().await, service.remote.reads()), (expected, reads), "it is used again");
        service.clock.set_s(service.clock_s() + 300);
    }
}

impl Service {
    fn clock_s(&self) -> i64 {
        raingauge_ports::clock::Clock::now_s(&*self.clock)
    }
}

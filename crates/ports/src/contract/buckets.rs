//! What every bucket store keeps.

use crate::buckets::{BucketReader, BucketWriter, Cell, Checkpoint, Error, Query};
use raingauge_core::bucket::{DAY_S, Granularity, HOUR_S, QUARTER_S};
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::retention::{Horizons, RetentionDays};

const FOREVER: Horizons = Horizons { quarter_s: 0, hour_s: 0, day_s: 0 };

/// The sum of a range, which must not overflow.
pub async fn sum(store: &dyn BucketReader, generation: u32, key: &str, from_s: i64, to_s: i64) -> i128 {
    let plan = Plan::new(from_s, to_s).expect("a range");
    let query = Query { generation, key: key.to_owned(), plan };
    let sum = store.sums(vec![query]).await.remove(0).expect("a sum");
    if let Some(cached) = store.sum_cached(generation, key, &plan) {
        assert_eq!(cached, Ok(sum), "what is in memory is what is stored");
    }
    sum
}

/// Exactly the rows that the published description prints answer 487.
pub async fn answers_the_worked_example(store: &(impl BucketReader + BucketWriter)) {
    use Granularity::{Day, Hour, Quarter};
    let key = "rain_drops:city:111222";
    let day = 1_727_136_000;
    let hours = |hours: i64| day + hours * HOUR_S;
    let rows = [
        (Quarter, hours(22), 3),
        (Quarter, hours(22) + QUARTER_S, 2),
        (Quarter, hours(22) + 2 * QUARTER_S, 4),
        (Quarter, hours(22) + 3 * QUARTER_S, 1),
        (Quarter, hours(73), 2),
        (Quarter, hours(73) + QUARTER_S, 3),
        (Hour, hours(22), 18),
        (Hour, hours(23), 22),
        (Hour, hours(24), 15),
        (Hour, hours(72), 11),
        (Hour, hours(73), 9),
        (Day, day, 214),
        (Day, hours(24), 189),
        (Day, hours(48), 245),
        (Day, hours(72), 78),
    ];
    for (granularity, time_s, count) in rows {
        store.set(34, key, Cell { granularity, time_s, count }).expect("set");
    }
    assert_eq!(sum(store, 34, key, 1_727_215_430, 1_727_400_000).await, 487);
    let days = Slice { granularity: Day, from_s: day, to_s: hours(72) };
    let cells = store.cells(34, key.to_owned(), days).await.expect("cells");
    assert_eq!(cells.iter().map(|cell| cell.count).collect::<Vec<_>>(), [214, 189, 245]);
}

/// Adding, negative values, keys and generations apart, keys by size.
pub async fn adds_what_it_is_told(store: &(impl BucketReader + BucketWriter)) {
    let noon = 20_000 * DAY_S + 12 * HOUR_S;
    for (generation, key, time_s, value) in [
        (1, "a", noon, 5),
        (1, "a", noon + 899, -2),
        (1, "a", noon + DAY_S, 10),
        (1, "b", noon, 1),
        (2, "a", noon, 100),
    ] {
        store.add(generation, key, time_s, value, &FOREVER).expect("added");
    }
    assert_eq!(sum(store, 1, "a", noon, noon + QUARTER_S).await, 3);
    assert_eq!(sum(store, 1, "a", 0, noon + 2 * DAY_S).await, 13);
    assert_eq!(sum(store, 2, "a", 0, noon + 2 * DAY_S).await, 100);
    assert_eq!(sum(store, 1, "none", 0, noon + 2 * DAY_S).await, 0);
    let all = Slice { granularity: Granularity::Day, from_s: 0, to_s: noon - 12 * HOUR_S + 2 * DAY_S };
    let largest = store.largest_keys(1, all, 5, 1_000).await.expect("keys");
    assert_eq!(largest, [("a".to_owned(), 13), ("b".to_owned(), 1)]);
}

/// A sum that does not fit 64 bits is an error, and stays one.
pub async fn refuses_to_wrap(store: &(impl BucketReader + BucketWriter)) {
    let day = 20_000 * DAY_S;
    store.add(3, "big", day, i64::MAX, &FOREVER).expect("added");
    store.add(3, "big", day + DAY_S, i64::MAX, &FOREVER).expect("added");
    assert_eq!(sum(store, 3, "big", day, day + 2 * DAY_S).await, 2 * i128::from(i64::MAX));
    store.add(3, "big", day, 1, &FOREVER).expect("added");
    store.add(3, "big", day, -10, &FOREVER).expect("added");
    let query = Query { generation: 3, key: "big".to_owned(), plan: Plan::new(day, day + DAY_S).expect("a range") };
    assert!(matches!(store.sums(vec![query]).await.remove(0), Err(Error::Overflow(_))));
}

/// Buckets that have expired take nothing, and go when they are asked to.
pub async fn forgets_what_has_expired(store: &(impl BucketReader + BucketWriter)) {
    let now_s = 20_000 * DAY_S;
    let days = RetentionDays { quarter: Some(1), hour: Some(2), day: Some(3) };
    let horizons = days.horizons(now_s);
    for age in 0..5 {
        store.add(4, "k", now_s - age * DAY_S, 1, &horizons).expect("added");
    }
    let count = async |granularity| {
        let slice = Slice { granularity, from_s: 0, to_s: now_s + DAY_S };
        store.cells(4, "k".to_owned(), slice).await.expect("cells").len()
    };
    let kept = [count(Granularity::Quarter).await, count(Granularity::Hour).await, count(Granularity::Day).await];
    assert_eq!(kept, [2, 3, 4]);
    let checkpoint = store.checkpoint().expect("a checkpoint");
    store.commit(&checkpoint).expect("committed");
    let (later, mut cursor, mut removed) = (days.horizons(now_s + DAY_S), None, 0);
    loop {
        removed += store.expire(4, &later, &mut cursor, 1).expect("expired");
        if cursor.is_none() {
            break;
        }
    }
    assert!(removed > 0);
    let kept = [count(Granularity::Quarter).await, count(Granularity::Hour).await, count(Granularity::Day).await];
    assert_eq!(kept, [1, 2, 3]);
}

/// A checkpoint is what was last committed.
pub fn remembers_its_checkpoint(store: &impl BucketWriter) {
    let checkpoint = Checkpoint { position: 77, state: b"state".to_vec() };
    store.commit(&checkpoint).expect("committed");
    assert_eq!(store.checkpoint().expect("a checkpoint"), checkpoint);
    let moved = Checkpoint { position: 78, ..checkpoint };
    store.commit(&moved).expect("committed");
    assert_eq!(store.checkpoint().expect("a checkpoint"), moved);
}

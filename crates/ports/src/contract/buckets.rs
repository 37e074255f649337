//! The contract of the bucket store. Each part begins with a store that holds nothing of the
//! generations that it uses.

use crate::buckets::{
    Addition, BucketReader, BucketRetention, BucketWriter, Cell, Checkpoint, Error, Generation,
    KeySource, Progress, Query, generation_of,
};
use raingauge_core::bucket::{DAY_S, Granularity, HOUR_S, QUARTER_S};
use raingauge_core::event::key_hash;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::retention::{Horizons, RetentionDays};

const FOREVER: Horizons = Horizons { quarter_s: 0, hour_s: 0, day_s: 0 };

/// The rows of the published worked example: granularity, start in seconds since 1970, count.
pub fn worked_example() -> Vec<Cell> {
    use Granularity::{Day, Hour, Quarter};

    let hours = |hours: i64| 1_727_136_000 + hours * HOUR_S;
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
        (Day, hours(0), 214),
        (Day, hours(24), 189),
        (Day, hours(48), 245),
        (Day, hours(72), 78),
    ];

    rows.into_iter()
        .map(|(granularity, time_s, count)| Cell { granularity, time_s, count })
        .collect()
}

/// Writes to a store as a worker does: entry by entry, each with its own offset and stamp.
pub struct Ledger<'a, S> {
    store: &'a S,
    checkpoint: Checkpoint,
}

impl<'a, S: BucketReader + BucketWriter> Ledger<'a, S> {
    pub fn new(store: &'a S) -> Self {
        Self { store, checkpoint: store.checkpoint().expect("a checkpoint") }
    }

    fn offset(&mut self) -> u64 {
        self.checkpoint.position += 1;
        self.checkpoint.stamp_us = 1_700_000_000_000_000 + self.checkpoint.position as i64;
        self.store.stamp_from(1_700_000_000_000_001);
        self.checkpoint.position - 1
    }

    pub fn add(
        &mut self,
        generation: Generation,
        key: &str,
        time_s: i64,
        value: i64,
        horizons: &Horizons,
    ) {
        let added = Addition { offset: self.offset(), time_s, value };
        self.store.add(generation, key, added, horizons).expect("added");
    }

    pub fn set(&mut self, generation: Generation, key: &str, cell: Cell) {
        let offset = self.offset();
        self.store.set(generation, key, offset, cell).expect("set");
    }

    pub fn erase(&mut self, generation: Generation, key: &str) {
        let offset = self.offset();
        self.store.erase(generation, key, offset).expect("erased");
    }

    pub fn commit(&mut self) {
        self.store.commit(&self.checkpoint).expect("committed");
    }

    async fn sum(&self, generation: Generation, key: &str, from_s: i64, to_s: i64) -> i128 {
        sum(self.store, generation, key, from_s, to_s).await
    }
}

/// The sum of a range, which must not overflow.
pub async fn sum(
    store: &dyn BucketReader,
    generation: Generation,
    key: &str,
    from_s: i64,
    to_s: i64,
) -> i128 {
    let plan = Plan::new(from_s, to_s).expect("a range");
    let query = Query { generation, key: key.to_owned(), plan };
    let sum = store.sums(vec![query]).await.remove(0).expect("a sum");
    if let Some(cached) = store.sum_cached(generation, key, &plan) {
        assert_eq!(cached, Ok(sum), "what is in memory is what is stored");
        let cached = store.sums_cached(generation, key, &[plan; 2]);
        assert_eq!(cached, Some(Ok(vec![sum; 2])), "many sums are as many times one");
    }
    sum
}

/// Exactly the rows printed in the published description sum to 487.
pub async fn answers_the_worked_example(store: &(impl BucketReader + BucketWriter)) {
    let generation = generation_of(34, 0);
    let key = "rain_drops:city:111222";
    let mut ledger = Ledger::new(store);

    for cell in worked_example() {
        ledger.set(generation, key, cell);
    }
    ledger.commit();
    assert_eq!(ledger.sum(generation, key, 1_727_215_430, 1_727_400_000).await, 487);

    let days = Slice {
        granularity: Granularity::Day,
        from_s: 1_727_136_000,
        to_s: 1_727_136_000 + 3 * DAY_S,
    };

    let cells = store.cells(generation, key.to_owned(), days).await.expect("cells");
    assert_eq!(cells.iter().map(|cell| cell.count).collect::<Vec<_>>(), [214, 189, 245]);
}

/// Adds, with negative values; separates keys and generations; orders keys by size.
pub async fn adds_every_delta(store: &(impl BucketReader + BucketWriter)) {
    let noon = 20_000 * DAY_S + 12 * HOUR_S;
    let (first, second) = (generation_of(1, 0), generation_of(1, 1));
    let mut ledger = Ledger::new(store);

    for (generation, key, time_s, value) in [
        (first, "a", noon, 5),
        (first, "a", noon + 899, -2),
        (first, "a", noon + DAY_S, 10),
        (first, "b", noon, 1),
        (second, "a", noon, 100),
    ] {
        ledger.add(generation, key, time_s, value, &FOREVER);
    }

    ledger.commit();
    ledger.add(first, "a", noon - HOUR_S, 1_000, &FOREVER);
    ledger.add(first, "a", noon, 4, &FOREVER);
    ledger.commit();
    assert_eq!(ledger.sum(first, "a", noon, noon + QUARTER_S).await, 7);
    assert_eq!(ledger.sum(first, "a", 0, noon + 2 * DAY_S).await, 1_017);
    assert_eq!(ledger.sum(second, "a", 0, noon + 2 * DAY_S).await, 100);
    assert_eq!(ledger.sum(first, "none", 0, noon + 2 * DAY_S).await, 0);

    let all =
        Slice { granularity: Granularity::Day, from_s: 0, to_s: noon - 12 * HOUR_S + 2 * DAY_S };
    let largest = store.largest_keys(first, all, 5, 1_000).await.expect("keys");
    assert_eq!(largest.keys, [("a".to_owned(), 1_017), ("b".to_owned(), 1)]);
    assert!(largest.is_complete);
}

/// A sum that does not fit into 64 bits is an error, and remains one.
pub async fn refuses_to_wrap(store: &(impl BucketReader + BucketWriter)) {
    let generation = generation_of(3, 0);
    let day = 20_000 * DAY_S;
    let mut ledger = Ledger::new(store);
    ledger.add(generation, "big", day, i64::MAX, &FOREVER);
    ledger.add(generation, "big", day + DAY_S, i64::MAX, &FOREVER);
    ledger.commit();
    assert_eq!(ledger.sum(generation, "big", day, day + 2 * DAY_S).await, 2 * i128::from(i64::MAX));
    ledger.add(generation, "big", day, 1, &FOREVER);
    ledger.add(generation, "big", day, -10, &FOREVER);
    ledger.commit();

    let query = Query {
        generation,
        key: "big".to_owned(),
        plan: Plan::new(day, day + DAY_S).expect("a range"),
    };
    assert!(matches!(store.sums(vec![query]).await.remove(0), Err(Error::Overflow(_))));
}

/// Number of cells of each granularity that a key has.
async fn lens(
    store: &impl BucketReader,
    generation: Generation,
    key: &str,
    to_s: i64,
) -> [usize; 3] {
    let len = async |granularity| {
        let slice = Slice { granularity, from_s: to_s - 10 * DAY_S, to_s };
        store.cells(generation, key.to_owned(), slice).await.expect("cells").len()
    };
    [len(Granularity::Quarter).await, len(Granularity::Hour).await, len(Granularity::Day).await]
}

/// Expired buckets accept nothing.
pub async fn keeps_what_is_to_be_kept(store: &(impl BucketReader + BucketWriter)) {
    let generation = generation_of(4, 0);
    let now_s = 20_000 * DAY_S;
    let horizons = RetentionDays { quarter: Some(1), hour: Some(2), day: Some(3) }.horizons(now_s);
    let mut ledger = Ledger::new(store);
    for age in 0..5 {
        ledger.add(generation, "k", now_s - age * DAY_S, 1, &horizons);
    }
    ledger.commit();
    assert_eq!(lens(store, generation, "k", now_s + DAY_S).await, [2, 3, 4]);
}

/// Expired buckets are removed on request, in a store where they do not expire on their own.
pub async fn forgets_what_has_expired(store: &(impl BucketReader + BucketWriter)) {
    let generation = generation_of(5, 0);
    let now_s = 20_000 * DAY_S;
    let days = RetentionDays { quarter: Some(1), hour: Some(2), day: Some(3) };
    let mut ledger = Ledger::new(store);
    for age in 0..5 {
        ledger.add(generation, "k", now_s - age * DAY_S, 1, &days.horizons(now_s));
    }
    ledger.commit();
    assert!(removed(store, generation, &days.horizons(now_s + DAY_S)) > 0);
    assert_eq!(lens(store, generation, "k", now_s + DAY_S).await, [1, 2, 3]);
}

/// A retired generation is removed as a whole; the others stay.
pub async fn removes_a_retired_generation(store: &(impl BucketReader + BucketWriter)) {
    let old = generation_of(6, 0);
    let new = generation_of(6, 1);
    let noon = 20_000 * DAY_S + 12 * HOUR_S;
    let mut ledger = Ledger::new(store);

    for key in ["a", "b", "c"] {
        ledger.add(old, key, noon, 1, &FOREVER);
        ledger.add(new, key, noon, 10, &FOREVER);
    }

    ledger.commit();
    let mut cursor = None;
    let mut removed = 0;

    loop {
        removed += store.remove(old, &mut cursor, 1).expect("removed");
        if cursor.is_none() {
            break;
        }
    }

    assert!(removed > 0);
    ledger.commit();

    for key in ["a", "b", "c"] {
        assert_eq!(ledger.sum(old, key, noon - DAY_S, noon + DAY_S).await, 0);
        assert_eq!(ledger.sum(new, key, noon - DAY_S, noon + DAY_S).await, 10);
    }
}

fn removed(store: &impl BucketRetention, generation: Generation, horizons: &Horizons) -> u64 {
    let mut cursor = None;
    let mut removed = 0;
    loop {
        removed += store.expire(generation, horizons, &mut cursor, 1).expect("expired");
        if cursor.is_none() {
            return removed;
        }
    }
}

/// Keys are listed by their hashes, including those of uncommitted changes.
pub async fn lists_its_keys(store: &(impl BucketReader + BucketWriter + KeySource)) {
    let generation = generation_of(9, 0);
    let other = generation_of(10, 0);
    let mut ledger = Ledger::new(store);
    let noon = 20_000 * DAY_S + 12 * HOUR_S;
    for (key, time_s) in [("a", noon), ("b", noon), ("a", noon - 400 * DAY_S)] {
        ledger.add(generation, key, time_s, 1, &FOREVER);
    }
    ledger.add(other, "c", noon, 1, &FOREVER);
    ledger.commit();
    ledger.add(generation, "a", noon, 1, &FOREVER);

    let mut expected = ["a", "b"].map(key_hash);
    expected.sort_unstable();
    assert_eq!(store.key_hashes(generation).await.expect("hashes"), expected);
    assert_eq!(store.key_hashes(other).await.expect("hashes"), [key_hash("c")]);
    ledger.commit();
}

/// Everything added to a key before is gone, committed or not, and later entries count from zero.
pub async fn erases_a_key(store: &(impl BucketReader + BucketWriter)) {
    let generation = generation_of(7, 0);
    let day = 20_000 * DAY_S;
    let all = async |key: &str| sum(store, generation, key, day - 400 * DAY_S, day + DAY_S).await;
    let mut ledger = Ledger::new(store);

    for key in ["rain", "rain:1", "rai"] {
        ledger.add(generation, key, day - 300 * DAY_S, 3, &FOREVER);
        ledger.add(generation, key, day, 2, &FOREVER);
    }

    ledger.commit();
    ledger.add(generation, "rain", day + HOUR_S, 5, &FOREVER);
    ledger.add(generation, "rain", day - 10 * DAY_S, 7, &FOREVER);

    ledger.erase(generation, "rain");
    assert_eq!((all("rain").await, all("rain:1").await, all("rai").await), (0, 5, 5));
    ledger.add(generation, "rain", day, 1, &FOREVER);
    ledger.commit();
    assert_eq!((all("rain").await, all("rain:1").await), (1, 5));
    ledger.erase(generation, "nobody's");
    ledger.erase(generation, "rain");
    ledger.commit();
    assert_eq!((all("rain").await, all("rai").await), (0, 5));
}

/// The checkpoint is the last committed one.
pub fn remembers_its_checkpoint(store: &impl BucketWriter) {
    let progress = Some(Progress { rank: 3, bytes: b"a third".to_vec() });
    let checkpoint = Checkpoint {
        position: 77,
        state: b"state".to_vec(),
        stamp_us: 1_700_000_000_000_900,
        progress,
    };

    store.commit(&checkpoint).expect("committed");
    assert_eq!(store.checkpoint().expect("a checkpoint"), checkpoint);

    let moved = Checkpoint { position: 78, stamp_us: checkpoint.stamp_us + 1, ..checkpoint };
    store.commit(&moved).expect("committed");
    assert_eq!(store.checkpoint().expect("a checkpoint"), moved);

    let restated = Checkpoint { state: b"other".to_vec(), stamp_us: moved.stamp_us + 1, ..moved };
    store.commit(&restated).expect("committed");
    assert_eq!(store.checkpoint().expect("a checkpoint"), restated);

    let silent = Checkpoint {
        position: 79,
        stamp_us: restated.stamp_us + 1,
        progress: None,
        ..restated.clone()
    };

    store.commit(&silent).expect("committed");
    assert_eq!(
        store.checkpoint().expect("a checkpoint").progress,
        restated.progress,
        "none leaves what is there"
    );

    let further = Some(Progress { rank: 4, bytes: b"two thirds".to_vec() });
    store.commit(&Checkpoint { progress: further.clone(), ..silent }).expect("committed");
    assert_eq!(store.checkpoint().expect("a checkpoint").progress, further);
}

//! How long the store keeps what is written, and what it makes of what the cluster refuses.

use crate::support::{Place, Store};
use crate::tables::table;
use raingauge_core::bucket::{DAY_S, Granularity, HOUR_S, QUARTER_S};
use raingauge_core::plan::Plan;
use raingauge_core::retention::{Horizons, RetentionDays};
use raingauge_ports::buckets::{
    BucketReader, BucketRetention, BucketWriter, Cell, Generation, Query, generation_of,
};
use raingauge_ports::contract::buckets::Ledger;
use raingauge_ports::tiles::writer_of;

const GENERATION: Generation = generation_of(34, 0);
/// The stamps of a ledger are of November 2023; what matters is the distance between stamp and
/// bucket.
const NOW_S: i64 = 1_700_000_000;

impl Place {
    /// The times to live of a column, in the order of the rows; `None` is for ever.
    fn ttls(&self, what: &str, table: &str, condition: &str) -> Vec<Option<i32>> {
        let keyspace = &self.options.keyspace;
        let statement = format!("SELECT TTL({what}) FROM {keyspace}.{table} WHERE {condition}");
        let session = self.cql().session_for_tests();
        let rows = self
            .block_on(session.query_unpaged(statement, ()))
            .unwrap()
            .into_rows_result()
            .unwrap();
        rows.rows::<(Option<i32>,)>().unwrap().map(|row| row.unwrap().0).collect()
    }

    /// The times to live of the tiles that partition 0 holds of key `k`.
    fn tile_ttls(&self) -> Vec<Option<i32>> {
        let writer = writer_of(GENERATION, 0);
        let ttls = self.ttls(&format!("tiles[{writer}]"), "tile_table", "key = 'k'");
        let mut spans =
            self.ttls(&format!("tiles[{writer}]"), "tile_table", "key = 'k' AND period < 0");
        let mut listed =
            self.ttls(&format!("tiles[{writer}]"), "span_table", "key = 'k' ALLOW FILTERING");

        spans.sort_unstable();
        listed.sort_unstable();
        assert_eq!(spans.len(), listed.len());

        for (span, listed) in spans.iter().zip(&listed) {
            let is_equal = listed.map_or(span.is_none(), |ttl_s| is_about(*span, ttl_s + 5));
            assert!(is_equal, "a span lasts for {span:?} s, and in its list for {listed:?} s");
        }

        ttls
    }
}

/// Seconds to the end of the day that is `days` days from now.
fn left_s(days: i64) -> i32 {
    (Granularity::Day.floor(NOW_S) + (days + 1) * DAY_S - NOW_S) as i32
}

fn is_about(ttl_s: Option<i32>, expected_s: i32) -> bool {
    ttl_s.is_some_and(|ttl_s| (expected_s - 60..=expected_s).contains(&ttl_s))
}

/// Rows go by themselves when their time has come: each lives as long as its bucket is kept, and a
/// day.
#[test]
fn what_is_written_expires_by_itself() {
    let Some(place) = Place::new() else { return };
    let store = place.store(0);
    let mut ledger = Ledger::new(&store);
    let horizons = RetentionDays { quarter: Some(1), hour: Some(2), day: None }.horizons(NOW_S);
    ledger.add(GENERATION, "k", NOW_S, 1, &horizons);
    ledger.commit();
    let [quarter, hour, day] = Granularity::ALL
        .map(|granularity| place.ttls("count", table(granularity).0, "key = 'k'")[0]);
    assert!(is_about(quarter, left_s(2)), "{quarter:?}");
    assert!(is_about(hour, left_s(3)), "{hour:?}");
    assert_eq!(day, None);
    assert!(!store.wants_commit());
}

#[test]
fn a_late_event_shortens_the_life_of_no_tile() {
    let Some(place) = Place::new() else { return };
    let store = place.store(0);
    let mut ledger = Ledger::new(&store);
    let horizons =
        RetentionDays { quarter: Some(30), hour: Some(30), day: Some(30) }.horizons(NOW_S);

    ledger.add(GENERATION, "k", NOW_S, 1, &horizons);
    ledger.commit();

    // The tile of the span is read back by the one who counts the late event.
    let store = place.store(0);
    let mut ledger = Ledger::new(&store);
    ledger.add(GENERATION, "k", NOW_S - 29 * DAY_S, 1, &horizons);
    ledger.commit();

    let mut ttls = place.tile_ttls();
    ttls.sort_unstable();
    assert_eq!(ttls.len(), 3, "a span, today and the late day: {ttls:?}");
    assert!(
        is_about(ttls[0], left_s(2))
            && is_about(ttls[1], left_s(31))
            && is_about(ttls[2], left_s(31)),
        "{ttls:?}"
    );

    let mut days = place.ttls("count", "daily_count_table", "key = 'k'");
    days.sort_unstable();
    assert!(is_about(days[0], left_s(2)) && is_about(days[1], left_s(31)), "{days:?}");
}

/// Cassandra refuses what is to expire after 2038-01-19.
#[test]
fn what_would_expire_after_2038_is_taken_and_kept() {
    let Some(place) = Place::new() else { return };
    let store = place.store(0);
    let mut ledger = Ledger::new(&store);
    for days in [4_080, 5_500, 7_250] {
        let horizons =
            RetentionDays { quarter: Some(7), hour: Some(days), day: Some(days) }.horizons(NOW_S);
        ledger.add(GENERATION, "k", NOW_S, 1, &horizons);
        ledger.commit();
    }
    let ttls = place.tile_ttls();
    assert_eq!(ttls, [None, None], "a span and a day, for ever");
}

impl Store {
    fn prolong_all(&self, generation: Generation, horizons: &Horizons) {
        let mut cursor = None;
        loop {
            self.prolong(generation, horizons, &mut cursor).expect("prolonged");
            if cursor.is_none() {
                return;
            }
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_longer_retention_reaches_what_is_stored() {
    let Some(place) = Place::new() else { return };
    let days = |quarter, hour, day| RetentionDays {
        quarter: Some(quarter),
        hour: Some(hour),
        day: Some(day),
    };

    let (short, long) = (days(2, 3, 5).horizons(NOW_S), days(300, 300, 300).horizons(NOW_S));
    let store = place.store(0);
    let mut ledger = Ledger::new(&store);

    for age in 0..6 {
        ledger.add(GENERATION, "k", NOW_S - age * DAY_S, 1, &short);
    }
    ledger.add(generation_of(34, 1), "k", NOW_S, 1, &short);
    ledger.commit();

    let sum = || {
        let plan = Plan::new(NOW_S - 10 * DAY_S, NOW_S + DAY_S).unwrap();
        let query = Query { generation: GENERATION, key: "k".to_owned(), plan };
        place.block_on(store.sums(vec![query])).remove(0).expect("a sum")
    };

    let before = sum();

    store.prolong_all(GENERATION, &long);
    let ttls: Vec<i32> =
        place.tile_ttls().into_iter().map(|ttl_s| ttl_s.expect("it expires")).collect();
    assert!(ttls.iter().all(|ttl_s| i64::from(*ttl_s) > 296 * DAY_S), "{ttls:?}");

    for granularity in Granularity::ALL {
        let own =
            format!("key = 'k' AND log_partition = {} ALLOW FILTERING", writer_of(GENERATION, 0));
        let ttls = place.ttls("count", table(granularity).0, &own);
        assert!(
            !ttls.is_empty() && ttls.iter().all(|ttl_s| i64::from(ttl_s.unwrap()) > 294 * DAY_S),
            "{ttls:?}"
        );
    }

    let other = writer_of(generation_of(34, 1), 0);
    let others = place.ttls(&format!("tiles[{other}]"), "tile_table", "key = 'k'");
    assert!(
        others.into_iter().flatten().all(|ttl_s| i64::from(ttl_s) < 8 * DAY_S),
        "another generation stays as it is"
    );
    assert_eq!(sum(), before);

    // What is counted afterwards is newer, and a bucket that is set keeps the longer life.
    ledger.set(
        GENERATION,
        "k",
        Cell { granularity: Granularity::Day, time_s: Granularity::Day.floor(NOW_S), count: 9 },
    );
    ledger.commit();
    assert_eq!(sum(), before + 8);

    let ttls: Vec<i32> = place.tile_ttls().into_iter().flatten().collect();
    assert!(ttls.iter().all(|ttl_s| i64::from(*ttl_s) > 296 * DAY_S), "{ttls:?}");
}

/// The quarter hours of three years in one commit: more statements than a batch may have.
#[test]
fn a_key_with_years_of_quarter_hours_is_committed_at_once() {
    let Some(place) = Place::new() else { return };
    let store = place.store(0);
    let mut ledger = Ledger::new(&store);
    let begin_s = 19_000 * DAY_S;
    let quarters = 95_000;
    for quarter in 0..quarters {
        ledger.add(GENERATION, "k", begin_s + quarter * QUARTER_S, 1, &Horizons::default());
    }
    ledger.commit();
    assert!(!store.wants_commit());

    let sum = |from_s, to_s| {
        let query = Query {
            generation: GENERATION,
            key: "k".to_owned(),
            plan: Plan::new(from_s, to_s).unwrap(),
        };
        place.block_on(store.sums(vec![query])).remove(0).expect("a sum")
    };

    assert_eq!(sum(begin_s, begin_s + quarters * QUARTER_S), i128::from(quarters));
    let (from_s, to_s) = (begin_s + 5 * HOUR_S + QUARTER_S, begin_s + 700 * DAY_S + 3 * QUARTER_S);
    assert_eq!(sum(from_s, to_s), i128::from((to_s - from_s) / QUARTER_S));

    // The successor reads all of it back, and counts nothing twice.
    let again = place.store(0);
    again.stamp_from(1_700_000_000_000_001);

    for offset in 0..quarters {
        let time_s = begin_s + offset * QUARTER_S;
        let offset = offset as u64;
        let added = raingauge_ports::buckets::Addition { offset, time_s, value: 1 };
        again.add(GENERATION, "k", added, &Horizons::default()).expect("added");
    }

    again.commit(&store.checkpoint().expect("a checkpoint")).expect("committed");
    assert_eq!(sum(begin_s, begin_s + quarters * QUARTER_S), i128::from(quarters));
}

/// A request that can never succeed ends counting with its reason, instead of being repeated for
/// ever.
#[test]
fn what_the_cluster_refuses_for_good_is_an_error() {
    let Some(place) = Place::new() else { return };
    let store = place.store(0);
    let mut ledger = Ledger::new(&store);
    ledger.add(GENERATION, "k", NOW_S, 1, &Horizons::default());
    place.run(&format!("ALTER TABLE {}.daily_count_table DROP count", place.options.keyspace));
    let position = 1;
    let checkpoint = raingauge_ports::buckets::Checkpoint { position, ..Default::default() };
    let error = store.commit(&checkpoint).expect_err("there is no such column").to_string();
    assert!(error.contains("a tile of k") && error.contains("count"), "{error}");
}

//! Walks over all keys of a counter: the largest ones, and the removal of a generation.

use crate::support::Place;
use crate::tables::table;
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::plan::Slice;
use raingauge_core::retention::Horizons;
use raingauge_cql::{self as cql, Options};
use raingauge_ports::buckets::{BucketReader, BucketRetention, Generation, generation_of};
use raingauge_ports::contract::buckets::Ledger;
use raingauge_ports::tiles::writer_of;
use std::collections::HashMap;
use std::time::Duration;

const BEGIN_S: i64 = 20_000 * DAY_S;
const NOTHING: Horizons = Horizons { quarter_s: i64::MAX, hour_s: i64::MAX, day_s: i64::MAX };

#[test]
fn the_largest_keys_are_right_or_said_to_be_incomplete() {
    let Some(place) = Place::new() else { return };
    let store = place.store(0);
    let generation = generation_of(1, 0);
    let len = 400;
    let mut ledger = Ledger::new(&store);

    for number in 0..len {
        ledger.add(generation, &format!("k{number}"), BEGIN_S, number, &Horizons::default());
    }
    ledger.commit();

    let slice = Slice { granularity: Granularity::Day, from_s: BEGIN_S, to_s: BEGIN_S + DAY_S };
    let largest = |reader: &cql::Reader, scan_max| {
        place.block_on(reader.largest_keys(generation, slice, 3, scan_max)).expect("keys")
    };

    let all = largest(&store.reader, 1_000);
    assert_eq!(all.keys, [399, 398, 397].map(|number| (format!("k{number}"), number)));
    assert!(all.is_complete);
    assert!(largest(&store.reader, len as usize).is_complete);
    assert!(!largest(&store.reader, len as usize - 1).is_complete);

    let hasty = Options { scan_time_max: Duration::ZERO, ..place.options.clone() };
    let hasty = cql::Reader::new(place.block_on(cql::Cluster::connect(hasty)).expect("connected"));
    assert!(!largest(&hasty, 1_000).is_complete, "it answers in time, with what it has");
}

impl Place {
    /// Spans that are listed for a generation in partition 0.
    fn listed(&self, generation: Generation) -> usize {
        let statement = format!("SELECT tiles FROM {}.span_table", self.options.keyspace);
        let session = self.cql().session_for_tests();
        let rows = self
            .block_on(session.query_unpaged(statement, ()))
            .unwrap()
            .into_rows_result()
            .unwrap();
        let rows = rows.rows::<(HashMap<i64, Vec<u8>>,)>().unwrap();
        rows.filter(|row| row.as_ref().unwrap().0.contains_key(&writer_of(generation, 0))).count()
    }
}

/// Nor does their number make it slow: the days of many keys lie side by side.
#[test]
fn the_largest_keys_are_found_without_reading_each_key() {
    let Some(mut place) = Place::new() else {
        return;
    };
    place.options.write_tables = false;

    let stores = [place.store(0), place.store(1)];
    let generation = generation_of(1, 0);
    for store in &stores {
        let mut ledger = Ledger::new(store);
        for number in 0..200 {
            for day in [0, 1, 128] {
                ledger.add(
                    generation,
                    &format!("k{number}"),
                    BEGIN_S + day * DAY_S,
                    number,
                    &Horizons::default(),
                );
            }
        }

        ledger.commit();
    }

    let all = Slice { granularity: Granularity::Day, from_s: BEGIN_S, to_s: BEGIN_S + 200 * DAY_S };
    let largest = |slice| {
        let reader = cql::Reader::new(place.cql());
        let largest =
            place.block_on(reader.largest_keys(generation, slice, 2, 1_000)).expect("keys");
        assert!(largest.is_complete);

        largest.keys
    };

    let expected = |times: i64| [199, 198].map(|number| (format!("k{number}"), number * times));
    assert_eq!(largest(all), expected(6));

    place.run(&format!("TRUNCATE {}.tile_table", place.options.keyspace));
    assert_eq!(largest(all), expected(6));
    assert_eq!(largest(Slice { to_s: BEGIN_S + DAY_S, ..all }), expected(2));
}

/// Spans that were stored before a migration are in no list.
#[test]
fn spans_that_are_not_listed_are_read_key_by_key() {
    let Some(place) = Place::new() else { return };
    let store = place.store(0);
    let generation = generation_of(1, 0);
    let mut ledger = Ledger::new(&store);

    (0..50).for_each(|number| {
        ledger.add(generation, &format!("k{number}"), BEGIN_S, number, &Horizons::default())
    });
    ledger.commit();

    let keyspace = &place.options.keyspace;
    place.run(&format!("TRUNCATE {keyspace}.span_table"));

    let next = BEGIN_S / DAY_S / 128 + 1;
    place.run(&format!("INSERT INTO {keyspace}.schema_version (id, version) VALUES (1, {next})"));

    let slice = Slice { granularity: Granularity::Day, from_s: BEGIN_S, to_s: BEGIN_S + DAY_S };
    let reader = cql::Reader::new(place.cql());
    let largest = place.block_on(reader.largest_keys(generation, slice, 1, 1_000)).expect("keys");
    assert_eq!((largest.keys, largest.is_complete), (vec![("k49".to_owned(), 49)], true));
}

/// A process may die when it has listed a span, and before it has written its tile.
#[test]
fn what_is_erased_is_not_listed() {
    let Some(place) = Place::new() else { return };
    let generation = generation_of(1, 0);
    let store = place.store(0);
    let mut ledger = Ledger::new(&store);

    ledger.add(generation, "k", BEGIN_S, 1, &Horizons::default());
    ledger.commit();
    ledger.erase(generation, "k");
    ledger.commit();
    assert_eq!(place.listed(generation), 0);

    ledger.add(generation, "k", BEGIN_S, 1, &Horizons::default());
    ledger.commit();
    assert_eq!(place.listed(generation), 1);

    for table in ["tile_table", "checkpoint_table"] {
        place.run(&format!("TRUNCATE {}.{table}", place.options.keyspace));
    }
    let store = place.store(0);
    let mut ledger = Ledger::new(&store);
    (0..3).for_each(|_| ledger.add(generation, "k", BEGIN_S, 1, &Horizons::default()));
    ledger.erase(generation, "k");
    ledger.commit();
    assert_eq!(place.listed(generation), 0);
}

/// A list may come back older than its tiles from a backup; reading the log again from the
/// checkpoint mends it.
#[test]
fn a_list_that_is_older_than_its_tiles_is_mended() {
    let Some(place) = Place::new() else { return };
    let generation = generation_of(1, 0);
    let count = || {
        let store = place.store(0);
        let mut ledger = Ledger::new(&store);
        (0..3).for_each(|_| ledger.add(generation, "k", BEGIN_S, 1, &Horizons::default()));
        ledger.commit();
    };

    count();

    for table in ["span_table", "checkpoint_table"] {
        place.run(&format!("TRUNCATE {}.{table}", place.options.keyspace));
    }
    count();

    let slice = Slice { granularity: Granularity::Day, from_s: BEGIN_S, to_s: BEGIN_S + DAY_S };
    let reader = cql::Reader::new(place.cql());
    let largest = place.block_on(reader.largest_keys(generation, slice, 1, 1_000)).expect("keys");
    assert_eq!((place.listed(generation), largest.keys), (1, vec![("k".to_owned(), 3)]));
}

#[test]
fn a_retired_generation_is_removed_beside_counting() {
    let Some(place) = Place::new() else { return };
    let store = place.store(0);
    let (old, new) = (generation_of(1, 0), generation_of(1, 1));
    let mut ledger = Ledger::new(&store);

    for number in 0..300 {
        for day in 0..3 {
            ledger.add(old, &format!("k{number}"), BEGIN_S + day * DAY_S, 1, &Horizons::default());
        }
        ledger.add(new, &format!("k{number}"), BEGIN_S, 1, &Horizons::default());
    }

    ledger.commit();

    let mut cursor = None;
    let mut removed = 0;
    removed += store.expire(old, &NOTHING, &mut cursor, 1).expect("begun");
    assert!(cursor.is_some(), "it has begun, and nobody waits for it");
    ledger.add(new, "k0", BEGIN_S, 1, &Horizons::default());
    ledger.commit();

    while cursor.is_some() {
        removed += store.expire(old, &NOTHING, &mut cursor, 1).expect("removed");
        std::thread::yield_now();
    }

    assert_eq!(removed, 300 * 4, "a span and three days of each key");

    assert_eq!((place.listed(old), place.listed(new)), (0, 300));
    let session = place.cql().session_for_tests();

    for granularity in Granularity::ALL {
        let (name, _) = table(granularity);
        let count = |generation| {
            let keyspace = &place.options.keyspace;
            let writer = writer_of(generation, 0);
            let statement = format!(
                "SELECT count(*) FROM {keyspace}.{name} WHERE log_partition = {writer} ALLOW FILTERING"
            );
            let rows = place
                .block_on(session.query_unpaged(statement, ()))
                .unwrap()
                .into_rows_result()
                .unwrap();

            rows.single_row::<(i64,)>().unwrap().0
        };
        assert_eq!((count(old), count(new)), (0, 300), "{name}");
    }
}

/// Erased counts leave nothing behind, not even the names of their keys; a key that is counted
/// again stays listed.
#[test]
fn keys_that_only_a_removed_generation_has_are_forgotten() {
    let Some(place) = Place::new() else { return };
    let store = place.store(0);
    let (old, new) = (generation_of(1, 0), generation_of(1, 1));
    let mut ledger = Ledger::new(&store);

    for number in 0..50 {
        ledger.add(old, &format!("k{number}"), BEGIN_S, 1, &Horizons::default());
    }
    ledger.add(new, "k7", BEGIN_S, 1, &Horizons::default());
    ledger.commit();

    // They were listed long ago.
    let keyspace = &place.options.keyspace;
    let listed = || {
        let statement = format!("SELECT key FROM {keyspace}.key_table");
        let rows =
            place.block_on(place.cql().session_for_tests().query_unpaged(statement, ())).unwrap();
        let rows = rows.into_rows_result().unwrap();
        let mut keys: Vec<String> =
            rows.rows::<(String,)>().unwrap().map(|row| row.unwrap().0).collect();

        keys.sort();
        keys
    };

    let statement = format!("SELECT counter, shard, key FROM {keyspace}.key_table");
    let rows =
        place.block_on(place.cql().session_for_tests().query_unpaged(statement, ())).unwrap();
    let rows = rows.into_rows_result().unwrap();
    place.run(&format!("TRUNCATE {keyspace}.key_table"));

    for row in rows.rows::<(i32, i32, String)>().unwrap() {
        let (counter, shard, key) = row.unwrap();
        place.run(&format!(
            "INSERT INTO {keyspace}.key_table (counter, shard, key) VALUES ({counter}, {shard}, '{key}') \
             USING TIMESTAMP 1700000000000000"
        ));
    }

    assert_eq!(listed().len(), 50);

    let mut cursor = None;
    store.expire(old, &NOTHING, &mut cursor, 1).expect("begun");

    while cursor.is_some() {
        store.expire(old, &NOTHING, &mut cursor, 1).expect("removed");
        std::thread::yield_now();
    }

    assert_eq!(listed(), ["k7"]);
}

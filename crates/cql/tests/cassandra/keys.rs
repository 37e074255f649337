//! Walks over all keys of a counter: the largest ones, and the removal of a generation.

use crate::support::Place;
use crate::tables::table;
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::plan::Slice;
use raingauge_core::retention::Horizons;
use raingauge_cql::{Cql, CqlReader, Options};
use raingauge_ports::buckets::{BucketReader, BucketWriter, generation_of};
use raingauge_ports::contract::buckets::Ledger;
use raingauge_ports::tiles::writer_of;
use std::time::Duration;

const BEGIN_S: i64 = 20_000 * DAY_S;
const NOTHING: Horizons = Horizons { quarter_s: i64::MAX, hour_s: i64::MAX, day_s: i64::MAX };

#[test]
fn the_largest_keys_are_right_or_said_to_be_incomplete() {
    let Some(place) = Place::new() else { return };
    let (store, generation, len) = (place.store(0), generation_of(1, 0), 400);
    let mut ledger = Ledger::new(&store);
    for number in 0..len {
        ledger.add(generation, &format!("k{number}"), BEGIN_S, number, &Horizons::default());
    }
    ledger.commit();
    let slice = Slice { granularity: Granularity::Day, from_s: BEGIN_S, to_s: BEGIN_S + DAY_S };
    let largest = |reader: &CqlReader, scan_max| {
        place.block_on(reader.largest_keys(generation, slice, 3, scan_max)).expect("keys")
    };

    let all = largest(&store.reader, 1_000);
    assert_eq!(all.keys, [399, 398, 397].map(|number| (format!("k{number}"), number)));
    assert!(all.is_complete);
    assert!(largest(&store.reader, len as usize).is_complete);
    assert!(!largest(&store.reader, len as usize - 1).is_complete);
    let hasty = Options { scan_time_max: Duration::ZERO, ..place.options.clone() };
    let hasty = CqlReader::new(place.block_on(Cql::connect(hasty)).expect("connected"));
    assert!(!largest(&hasty, 1_000).is_complete, "it answers in time, with what it has");
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

    let (mut cursor, mut removed) = (None, 0);
    removed += store.expire(old, &NOTHING, &mut cursor, 1).expect("begun");
    assert!(cursor.is_some(), "it has begun, and nobody waits for it");
    ledger.add(new, "k0", BEGIN_S, 1, &Horizons::default());
    ledger.commit();
    while cursor.is_some() {
        removed += store.expire(old, &NOTHING, &mut cursor, 1).expect("removed");
        std::thread::yield_now();
    }
    assert_eq!(removed, 300 * 4, "a span and three days of each key");

    let session = place.cql().session_for_tests();
    for granularity in Granularity::ALL {
        let (name, _) = table(granularity);
        let count = |generation| {
            let (keyspace, writer) = (&place.options.keyspace, writer_of(generation, 0));
            let statement =
                format!("SELECT count(*) FROM {keyspace}.{name} WHERE log_partition = {writer} ALLOW FILTERING");
            let rows = place.block_on(session.query_unpaged(statement, ())).unwrap().into_rows_result().unwrap();
            rows.single_row::<(i64,)>().unwrap().0
        };
        assert_eq!((count(old), count(new)), (0, 300), "{name}");
    }
}

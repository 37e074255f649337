//! Dedupe windows on a real cluster.

use crate::support::Place;
use raingauge_cql as cql;
use raingauge_ports::contract::chunks as contract;
use std::time::Duration;

#[test]
fn chunks_keep_the_contract() {
    let Some(place) = Place::new() else { return };
    let chunks = cql::Chunks::new(
        place.cql(),
        "test-log",
        Duration::from_secs(86_400),
        place.runtime.handle().clone(),
    );

    contract::keeps_what_it_is_given(&chunks);

    // Other logs have windows of their own, and all of them expire.
    let other = cql::Chunks::new(
        place.cql(),
        "other-log",
        Duration::from_secs(86_400),
        place.runtime.handle().clone(),
    );

    contract::keeps_what_it_is_given(&other);
    let statement = format!("SELECT TTL(bytes) FROM {}.window_table", place.options.keyspace);
    let session = place.cql().session_for_tests();
    let rows =
        place.block_on(session.query_unpaged(statement, ())).unwrap().into_rows_result().unwrap();
    for row in rows.rows::<(Option<i32>,)>().unwrap() {
        let ttl_s = row.unwrap().0.expect("a time to live");
        assert!((129_600..=133_200).contains(&ttl_s), "{ttl_s} s");
    }
}

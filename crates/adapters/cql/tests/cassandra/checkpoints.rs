//! The checkpoint of a partition: who writes it, and how large it may be.

use crate::support::Place;
use raingauge_cql as cql;
use raingauge_ports::buckets::{BucketWriter, Checkpoint};
use raingauge_ports::cluster::Checkpoints;

/// Commits without new entries write under later and later timestamps. Who takes over begins above
/// them.
#[test]
fn a_state_is_never_written_under_an_older_timestamp() {
    let Some(place) = Place::new() else { return };
    let checkpoint = |state: &str| Checkpoint {
        position: 7,
        state: state.into(),
        stamp_us: 1_700_000_000_000_000,
        progress: None,
    };

    let before = place.store(0);
    for progress in 0..9 {
        before.commit(&checkpoint(&format!("backfilled to {progress}"))).expect("committed");
    }

    let next = place.store(0);
    assert_eq!(next.checkpoint().expect("a checkpoint"), checkpoint("backfilled to 8"));
    next.commit(&checkpoint("finished")).expect("committed");
    assert_eq!(place.store(0).checkpoint().expect("a checkpoint"), checkpoint("finished"));

    // A writer that slept through that writes what it had in mind. The next commit of the owner
    // puts it right.
    for _ in 0..3 {
        before.commit(&checkpoint("backfilled to 8")).expect("committed");
    }
    let moved =
        Checkpoint { position: 8, stamp_us: 1_700_000_000_000_100, ..checkpoint("finished") };
    next.commit(&moved).expect("committed");
    assert_eq!(place.store(0).checkpoint().expect("a checkpoint"), moved);
}

/// More than a server takes in one mutation: half a segment of its commit log.
#[test]
fn a_state_may_be_larger_than_a_mutation() {
    let Some(place) = Place::new() else { return };
    let checkpoints = cql::Checkpoints::new(place.cql(), "test-log");
    let session = place.cql().session_for_tests();
    let rows = || {
        let statement = format!("SELECT count(*) FROM {}.state_table", place.options.keyspace);
        let rows = place
            .block_on(session.query_unpaged(statement, ()))
            .unwrap()
            .into_rows_result()
            .unwrap();
        rows.single_row::<(i64,)>().unwrap().0
    };

    let large = |letter: &str| format!("{{\"{}\": 1}}", letter.repeat(20 << 20)).into_bytes();
    let mut stamp_us = 1_700_000_000_000_000;
    let mut commit = |store: &crate::support::Store, state: Vec<u8>| {
        stamp_us += 1_000;
        let checkpoint = Checkpoint { position: 7, state, stamp_us, progress: None };
        store.commit(&checkpoint).expect("committed");
        assert_eq!(place.store(0).checkpoint().expect("a checkpoint"), checkpoint);

        let state = place.block_on(checkpoints.state(0)).expect("a state");
        assert!(state == checkpoint.state, "other processes read it too");
        rows()
    };

    let store = place.store(0);
    let first = commit(&store, large("a"));
    assert!(first > 10, "{first} rows");
    assert_eq!(commit(&store, large("b")), first, "the rows of the first are gone");

    let next = place.store(0);
    next.checkpoint().expect("a checkpoint");
    assert_eq!(commit(&next, b"{}".to_vec()), 0, "a small one needs none");
}

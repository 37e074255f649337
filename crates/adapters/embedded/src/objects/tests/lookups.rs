//! Keys of which nothing is known, which are looked up beside other work.

use super::super::layer::UNKNOWN_LEN_MIN;
use super::super::tally::Tally;
use super::*;
use std::ops::Range;

/// Replaces keys by number without a look at what was there.
fn replace(store: &ObjectFiles, numbers: Range<usize>) {
    let change = |number| put(&format!("key {number}"), "v", Old::Unknown);
    store.submit(Group { effects: numbers.map(change).collect() }).expect("taken");
}

/// How many keys are still unknown, and what the others are known to add, while none are looked up.
fn unknown(store: &ObjectFiles) -> (usize, Tally) {
    let _resolving = store.shared.resolving.lock();
    let state = store.shared.state.lock();
    let changes = state.current.generations.values();
    changes.map(|changes| (changes.unknown.len(), changes.added)).next().expect("changes")
}

#[tokio::test]
async fn many_are_looked_up_before_a_checkpoint_and_few_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    replace(&store, 0..100);
    store.checkpoint().await.expect("a checkpoint");

    // Nobody counts, and no checkpoint is due. Half of the keys are new.
    let many = 2 * UNKNOWN_LEN_MIN;
    replace(&store, 100 - UNKNOWN_LEN_MIN..100 + UNKNOWN_LEN_MIN);
    while unknown(&store).0 > 0 {
        tokio::task::yield_now().await;
    }
    let half = Tally { keys: many as i64 / 2, expiring: 0 };
    assert_eq!(unknown(&store), (0, half));
    replace(&store, 500..500 + UNKNOWN_LEN_MIN - 1);
    assert_eq!(unknown(&store).0, UNKNOWN_LEN_MIN - 1, "the rest waits for a checkpoint");

    store.checkpoint().await.expect("a checkpoint");
    let keys = 100 + UNKNOWN_LEN_MIN + UNKNOWN_LEN_MIN - 1;
    assert_eq!(key_count(&store).await, keys as u64);
    drop(store);
    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    assert_eq!(key_count(&store).await, keys as u64);
}

#[tokio::test]
async fn a_flush_may_come_between() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    replace(&store, 0..1_000);
    store.checkpoint().await.expect("a checkpoint");

    for round in 0..20 {
        replace(&store, 0..1_000);
        store.submit(Group { effects: vec![Effect::Flush { database: 0 }] }).expect("flushed");
        replace(&store, 0..round);
        assert_eq!(key_count(&store).await, round as u64);
    }
}

//! Many callers at once, while checkpoints run.

use super::super::journal::PAYLOAD_HEAD_LEN;
use super::super::state::Frozen;
use super::*;
use crate::log::segment::BLOCK_HEADER_LEN;
use std::sync::atomic::AtomicU64;

const CALLERS: u64 = 8;
const GROUPS: u64 = 150;

/// Each caller counts in keys of its own, and reads what it has written at once.
async fn count_up(
    store: Arc<ObjectFiles>,
    caller: u64,
    durability: Durability,
    least: Arc<AtomicU64>,
) {
    for number in 1..=GROUPS {
        let name = format!("key {caller} {}", number % 7);
        let text = number.to_string();
        let group = Group { effects: vec![put(&name, text.clone(), Old::Unknown)] };
        let stamp = store.submit(group).expect("it is taken");
        least.fetch_max(stamp, Ordering::Relaxed);

        let heads = store.heads(vec![Key::new(0, name)], 0).await.expect("a head");
        assert_eq!(heads, [Some(Bytes::from(text))]);
        store.durable(stamp, durability).await.expect("it is durable");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_in_parallel_lose_nothing_in_any_mode() {
    for mode in [SyncMode::Always, SyncMode::EverySecond, SyncMode::No] {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options {
            sync_mode: mode,
            memory_bytes: 0,
            checkpoint_interval: Duration::from_millis(5),
            segment_bytes: 4_000,
            tables_bytes: Some(1_000),
            ..options()
        };
        let store = Arc::new(ObjectFiles::open(folder.path(), &options).expect("opened"));
        let newest = Arc::new(AtomicU64::new(0));
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let durability = match mode {
                    SyncMode::Always => Durability::Synced,
                    _ => Durability::Written,
                };
                let call = count_up(Arc::clone(&store), caller, durability, Arc::clone(&newest));
                tokio::spawn(call)
            })
            .collect();
        for caller in callers {
            caller.await.expect("it counted");
        }
        assert_eq!(newest.load(Ordering::Relaxed), CALLERS * GROUPS);

        let check = async |store: &ObjectFiles| {
            assert_eq!(key_count(store).await, CALLERS * 7);
            for caller in 0..CALLERS {
                for part in 0..7 {
                    let last = (1..=GROUPS).rev().find(|number| number % 7 == part);
                    let expected = Bytes::from(last.unwrap_or_default().to_string());
                    let key = Key::new(0, format!("key {caller} {part}"));
                    assert_eq!(store.heads(vec![key], 0).await, Ok(vec![Some(expected)]));
                }
            }
        };
        check(&store).await;
        drop(store);
        check(&ObjectFiles::open(folder.path(), &options).expect("opened")).await;
    }
}

/// While a checkpoint does not end, callers wait for it, but not for ever.
#[tokio::test(flavor = "multi_thread")]
async fn callers_are_slowed_down_and_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { memory_bytes: 0, ..options() };
    let store = ObjectFiles::open(folder.path(), &options).expect("opened");

    // No checkpoint begins while this is held, and one seems to run.
    let resolving = store.shared.resolving.lock();
    let frozen = {
        let mut state = store.shared.state.lock();
        let layer = Arc::new(state.current.next());
        state.frozen.replace(Frozen::new(layer))
    };
    assert!(frozen.is_none());
    let effects = vec![put("a", vec![b'x'; 2 << 20], Old::Absent)];
    let stamp = store.submit(Group { effects }).expect("it is taken");

    let began = Instant::now();
    let durable = store.durable(stamp, Durability::Synced);
    raingauge_ports::contract::books::wait(durable).expect("it is durable");
    assert!(began.elapsed() >= PACE_MAX, "it was slowed down");
    drop(resolving);
    store.checkpoint().await.expect("a checkpoint");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_closed_confirms_nothing_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { sync_mode: SyncMode::No, ..options() };
    let store = ObjectFiles::open(folder.path(), &options).expect("opened");
    let effects = vec![put("a", "1", Old::Absent)];
    let stamp = store.submit(Group { effects: effects.clone() }).expect("taken");

    // The thread of the log cannot write as long as this is held.
    let writing = store.shared.writing.lock();
    let durable = store.durable(stamp, Durability::Synced);
    store.shared.close("as the test wants it");
    drop(writing);
    let closed = Err(Error::Closed("as the test wants it".to_owned()));
    assert_eq!(durable.await, closed);
    assert_eq!(store.submit(Group { effects }), closed.map(|()| 0));
    assert!(store.checkpoint().await.is_err());
    assert_eq!(store.status().closed.as_deref(), Some("as the test wants it"));
}

/// Callers that are ready at the same time submit before the first of them writes.
#[tokio::test]
async fn groups_of_callers_that_are_ready_are_written_together() {
    const BLOCK_LEN: u64 = (BLOCK_HEADER_LEN + PAYLOAD_HEAD_LEN) as u64;
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { sync_mode: SyncMode::No, segment_bytes: 1 << 20, ..options() };
    let store = Arc::new(ObjectFiles::open(folder.path(), &options).expect("opened"));
    let call = async |store: Arc<ObjectFiles>| {
        let before = store.status().log_bytes;
        let effects = vec![put("a", "1", Old::Unknown)];
        let stamp = store.submit(Group { effects }).expect("taken");
        store.durable(stamp, Durability::Written).await.expect("written");
        store.status().log_bytes - before
    };

    let alone = call(Arc::clone(&store)).await;
    let before = store.status().log_bytes;
    let callers: Vec<_> = (0..CALLERS).map(|_| tokio::spawn(call(Arc::clone(&store)))).collect();
    for caller in callers {
        caller.await.expect("it is written");
    }
    let together = store.status().log_bytes - before;
    // Once a second another thread writes what is queued.
    let blocks = (together - CALLERS * (alone - BLOCK_LEN)) / BLOCK_LEN;
    assert!(blocks <= 2, "{blocks} blocks");
}

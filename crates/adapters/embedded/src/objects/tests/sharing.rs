//! Heads whose buffers objects in memory have too.

use super::super::state::Frozen;
use super::simulator::{ShakyRecords, open as open_simulated};
use super::*;
use crate::files::copies::copy_folder;
use crate::files::simulated::Disk;

const HEAD_BYTES: usize = 32 << 10;
/// Three times the memory of a checkpoint.
const HEADS: usize = 96;

/// Checkpoints are due for 1 MiB of memory.
fn small() -> Options {
    Options { memory_bytes: 6 << 20, segment_bytes: 1 << 20, ..options() }
}

/// Objects in memory: heads of different buffers.
fn objects(len: usize) -> Vec<Bytes> {
    (0..len).map(|number| Bytes::from(vec![number as u8; HEAD_BYTES])).collect()
}

fn name(number: usize) -> String {
    format!("key {number:03}")
}

fn put_all(store: &ObjectFiles, heads: &[Bytes]) {
    for (number, head) in heads.iter().enumerate() {
        let effects = vec![put(&name(number), head.clone(), Old::Absent)];
        store.submit(Group { effects }).expect("it is taken");
    }
}

async fn wait_for_checkpoint(store: &ObjectFiles) {
    let mut completed = store.shared.checkpoints.subscribe();
    let waiting = completed.wait_for(|completed| completed.count > 0);
    let waiting = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    waiting.expect("a checkpoint is written").expect("the store is open");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_objects_share_is_written_when_they_are_evicted() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &small()).expect("opened");
    // The thread of the checkpoints has nothing to do, and waits.
    store.checkpoint().await.expect("nothing to write");
    let heads = objects(HEADS);
    put_all(&store, &heads);
    {
        let mut state = store.shared.state.lock();
        state.look();
        assert!(!store.shared.is_due(&state), "{}", state.current.alone_bytes());
        assert!(state.current.weight().bytes > 3 << 20);
        assert!(state.pending_bytes() < 100_000);
    }
    assert!(!store.shared.is_behind());
    assert_eq!(store.status().checkpoints, 0);

    drop(heads);
    wait_for_checkpoint(&store).await;
    assert_eq!(store.status().pending_bytes, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_take_memory_that_is_lent_until_it_is_needed() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &small()).expect("opened");
    store.checkpoint().await.expect("nothing to write");
    store.lend(16 << 20);
    put_all(&store, &objects(HEADS));
    {
        let mut state = store.shared.state.lock();
        state.look();
        assert!(state.current.alone_bytes() > 3 << 20);
        assert!(!store.shared.is_due(&state));
    }
    assert!(!store.shared.is_behind());

    store.lend(0);
    wait_for_checkpoint(&store).await;
    assert_eq!(store.status().pending_bytes, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_log_of_few_keys_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { log_bytes: 1 << 20, memory_bytes: 64 << 20, ..small() };
    let store = ObjectFiles::open(folder.path(), &options).expect("opened");
    let head = Bytes::from(vec![b'x'; HEAD_BYTES]);
    for _ in 0..31 {
        let effects = vec![put("a", head.clone(), Old::Unknown)];
        store.submit(Group { effects }).expect("it is taken");
    }
    assert!(!store.shared.is_due(&store.shared.state.lock()));

    let stamp = store.submit(Group { effects: vec![put("a", head, Old::Unknown)] }).expect("taken");
    store.durable(stamp, Durability::Synced).await.expect("it is durable");
    wait_for_checkpoint(&store).await;
    assert_eq!(store.status().pending_bytes, 0);
}

/// Objects may be evicted while a checkpoint writes them.
#[tokio::test(flavor = "multi_thread")]
async fn callers_are_slowed_down_when_a_frozen_layer_is_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &Options { memory_bytes: 24 << 20, ..small() });
    let store = store.expect("opened");
    let heads = objects(17 << 20 >> 15);
    put_all(&store, &heads);

    // No checkpoint begins while this is held, and one seems to run.
    let resolving = store.shared.resolving.lock();
    {
        let mut state = store.shared.state.lock();
        let next = state.current.next();
        let layer = Arc::new(std::mem::replace(&mut state.current, next));
        state.frozen = Some(Frozen::new(layer));
    }
    assert!(!store.shared.is_behind());
    let effects = vec![put("later", "1", Old::Absent)];
    store.submit(Group { effects: effects.clone() }).expect("it is taken");

    drop(heads);
    store.shared.state.lock().look();
    assert!(store.shared.is_behind());
    assert!(matches!(store.submit(Group { effects }), Err(Error::Busy { .. })));

    // It ends without having been written.
    store.shared.close("the layer is not the one of a checkpoint");
    drop(resolving);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_reads_a_long_log_takes_groups() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &small()).expect("opened");
    let heads = objects(HEADS * 3);
    put_all(&store, &heads);
    let stamp = store.progress().submitted();
    store.durable(stamp, Durability::Synced).await.expect("it is durable");
    assert_eq!(store.status().checkpoints, 0);
    let killed = tempfile::tempdir().expect("a folder");
    copy_folder(folder.path(), killed.path());

    let inspection =
        Inspection::of(open_log(killed.path()).expect("a log"), 1 << 20).expect("a sound log");
    let records = ShakyRecords::default();
    let room = Room::new(killed.path(), 0);
    let shared = recover(inspection, Box::new(records), room, &small()).expect("recovered");
    {
        // Nothing shares what was read, and it is written at once.
        let state = shared.state.lock();
        assert_eq!(state.current.weight().shared, 0);
        assert!(state.current.alone_bytes() > 9 << 20);
        assert!(shared.is_due(&state));
    }
    assert!(!shared.is_behind());
    let effects = vec![put("later", "1", Old::Absent)];
    shared.submit(Group { effects }).expect("it is taken");
    drop(shared);

    let store = ObjectFiles::open(killed.path(), &small()).expect("opened");
    let keys = (0..heads.len()).map(|number| Key::new(0, name(number))).collect();
    let found = store.heads(keys, usize::MAX).await.expect("heads");
    assert!(found.iter().flatten().eq(&heads));
    wait_for_checkpoint(&store).await;
}

/// Heads that are on the disk are no longer in memory while the checkpoint goes on.
#[test]
fn a_checkpoint_gives_memory_back_piece_by_piece() {
    let records = ShakyRecords::default();
    let mut shared = open_simulated(&Disk::new(1), &records).expect("opened");
    shared.tables_bytes = 0;
    shared.piece_bytes = 2 * HEAD_BYTES;
    let heads = objects(6);
    for (number, head) in heads.iter().enumerate() {
        let effects = vec![put(&name(number), head.clone(), Old::Unknown)];
        shared.submit(Group { effects }).expect("it is taken");
    }

    // One commit, and two of the three pieces.
    records.fail_after(3);
    checkpoints::checkpoint(&shared).expect_err("the last piece fails");
    let pending = shared.state.lock().frozen.as_ref().map_or(0, |frozen| frozen.weight.bytes);
    assert!((2 * HEAD_BYTES..3 * HEAD_BYTES).contains(&pending), "{pending}");

    let found = reader::scan(&shared, 0, None, 100).expect("names");
    let names = found.iter().map(|found| found.name.clone());
    assert!(names.eq((0..heads.len()).map(name)));
    let keys = (0..heads.len()).map(|number| Key::new(0, name(number))).collect();
    let pending = reader::pending_heads(&shared, keys);
    assert_eq!(pending.missing.len(), 4);
    let found = reader::read_missing(&shared, pending, usize::MAX).expect("heads");
    assert!(found.iter().flatten().eq(&heads));
    let count = reader::count(&shared, 0).expect("a count");
    assert_eq!(count, KeyCount { keys: 6, expiring: 0 });
}

//! A folder of an earlier version, which did not count the keys that expire.

use super::super::disk::{FjallRecords, Records, Write};
use super::*;
use crate::files::copies::copy_folder;

fn expiring(name: &str, old: Old) -> Effect {
    let key = Key::new(0, name.to_owned());
    let head = Bytes::from_static(b"v");
    Effect::PutHead { key, head, expires_ms: Some(9_000_000_000_000), wide: None, old }
}

/// Makes the position that of an earlier version.
fn forget(folder: &Path) {
    let records = FjallRecords::open(&folder.join(STATE_FOLDER), &options()).expect("records");
    let anchor = Anchor { expiring: None, ..anchor_of(&records) };
    let write = Write::put(Place::Meta, ANCHOR.to_vec(), anchor.encode());
    records.commit(vec![write]).expect("written");
}

fn anchor_of(records: &dyn Records) -> Anchor {
    let record = records.get(Place::Meta, ANCHOR).expect("read").expect("a position");
    Anchor::decode(&record).expect("a position")
}

#[tokio::test]
async fn a_folder_without_the_number_of_keys_that_expire_is_counted_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    let kept = ["a", "b", "c"].map(|name| expiring(name, Old::Absent));
    let effects = kept.into_iter().chain([put("d", "1", Old::Absent), put("e", "1", Old::Absent)]);
    store.submit(Group { effects: effects.collect() }).expect("taken");
    drop(store);
    forget(folder.path());

    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    assert_eq!(store.count(0).await, Ok(KeyCount { keys: 5, expiring: 3 }));

    // The groups of an earlier version say that a head was present whether or not it expired.
    let drop_b = Effect::DropHead { key: Key::new(0, "b"), old: Old::Present };
    let effects = vec![
        put("a", "2", Old::Present),
        drop_b,
        expiring("c", Old::Unknown),
        expiring("d", Old::Unknown),
        expiring("f", Old::Unknown),
    ];
    let stamp = store.submit(Group { effects }).expect("taken");
    store.durable(stamp, Durability::Synced).await.expect("durable");
    let killed = tempfile::tempdir().expect("a folder");
    copy_folder(folder.path(), killed.path());

    let counted = Ok(KeyCount { keys: 5, expiring: 3 });
    let store = ObjectFiles::open(killed.path(), &options()).expect("opened");
    assert_eq!(store.count(0).await, counted);
    store.checkpoint().await.expect("a checkpoint");
    assert_eq!(store.count(0).await, counted);
    assert_eq!(anchor_of(&*store.shared.records).expiring.map(|keys| keys[0]), Some(3));
    drop(store);

    let store = ObjectFiles::open(killed.path(), &options()).expect("opened");
    assert_eq!(store.count(0).await, counted);
}

/// Nobody waits for the count a second time, though nothing was written.
#[tokio::test]
async fn the_count_is_kept_without_a_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    store.submit(Group { effects: vec![expiring("a", Old::Absent)] }).expect("taken");
    drop(store);
    forget(folder.path());

    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    store.checkpoint().await.expect("a checkpoint");
    assert_eq!(anchor_of(&*store.shared.records).expiring.map(|keys| keys[0]), Some(1));
    store.checkpoint().await.expect("a checkpoint");
    assert_eq!(store.status().checkpoints, 1);
}

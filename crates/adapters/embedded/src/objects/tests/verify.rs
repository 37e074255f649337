//! What a verification finds.

use super::super::disk::{FjallRecords, Records, Write};
use super::super::keys::{DATABASES_LEN, DueKey, Head};
use super::super::verify::{Description, Difference, Summary, WideObject, verify};
use super::*;
use crate::files::copies::copy_folder;

const EXPIRES_MS: i64 = 9_000_000_000_000;

/// Heads of this test say how many entries there are in two digits, and otherwise what the store
/// knows.
fn describe(head: &Bytes) -> Result<Description, String> {
    let text = std::str::from_utf8(head).map_err(|error| error.to_string())?;
    let (kind, count) = text.split_once(' ').ok_or("it has no kind")?;
    let count = count.parse().map_err(|_| "it has no count".to_owned())?;
    Ok(Description {
        expires_ms: (kind == "expires").then_some(EXPIRES_MS),
        wide: (kind == "wide").then_some(WideObject { id: 7, count }),
    })
}

/// A folder with a string, a key that expires, a wide object of three entries and a dead one.
async fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    let head = |name: &str, head: &'static str, expires_ms, wide| Effect::PutHead {
        key: Key::new(0, name.to_owned()),
        head: Bytes::from_static(head.as_bytes()),
        expires_ms,
        wide,
        old: Old::Absent,
    };
    let entry = |id, number: u8| Effect::PutEntry {
        database: 0,
        id,
        sub: Bytes::copy_from_slice(&[number]),
        value: Bytes::from_static(b"value"),
    };
    let effects = vec![
        put("string", "string 0", Old::Absent),
        head("expires", "expires 0", Some(EXPIRES_MS), None),
        head("wide", "wide 03", None, Some(7)),
        entry(7, 1),
        entry(7, 2),
        entry(7, 3),
    ];
    store.submit(Group { effects }).expect("taken");
    store.checkpoint().await.expect("a checkpoint");
    drop(store);
    folder
}

fn verified(folder: &Path) -> Result<Summary, Difference> {
    verify(folder, &options(), &describe).expect("it can be read")
}

/// Verifies a folder whose records were changed.
async fn after(writes: impl FnOnce(&dyn Records) -> Vec<Write>) -> Difference {
    let folder = folder().await;
    let records = FjallRecords::open(&folder.path().join(STATE_FOLDER), &options());
    let records = records.expect("records");
    let writes = writes(&records);
    records.commit(writes).expect("they are changed");
    drop(records);
    verified(folder.path()).expect_err("it is found")
}

#[tokio::test]
async fn a_sound_store_is_verified_with_the_end_of_its_log() {
    let folder = folder().await;
    let expected = Summary { keys: 3, expiring: 1, wide: 1, entries: 3, dead: 0, behind: 0 };
    assert_eq!(verified(folder.path()), Ok(expected.clone()));

    // A process that was killed leaves groups behind the last checkpoint.
    let copy = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    let effects = vec![
        Effect::DropHead { key: Key::new(0, "wide"), old: Old::Present },
        Effect::Kill { database: 0, id: 7 },
        put("other", "string 0", Old::Absent),
    ];
    let stamp = store.submit(Group { effects }).expect("taken");
    store.durable(stamp, Durability::Synced).await.expect("durable");
    copy_folder(folder.path(), copy.path());
    let expected = Summary { wide: 0, entries: 0, dead: 1, behind: 1, ..expected };
    assert_eq!(verified(copy.path()), Ok(expected.clone()));
    assert_eq!(verified(copy.path()), Ok(Summary { behind: 0, ..expected }));
}

#[tokio::test]
async fn a_damaged_head_is_found() {
    let place = Place::Heads(0);
    let store = |bytes: &[u8]| {
        let bytes = bytes.to_vec();
        move |_: &dyn Records| vec![Write::put(place, keys::head(b"string"), bytes)]
    };
    let found = after(store(b"\xff")).await;
    assert_eq!(found.record, "the head of \"string\" in database 0");
    assert_eq!(found.why, "it is malformed");
    assert_eq!(after(store(b"\0string")).await.why, "it has no kind");
    let found = after(store(b"\0expires 0")).await;
    assert!(found.why.contains("but the store has it with None"), "{found:?}");

    let found = after(|_| vec![Write::remove(place, keys::head(b"string"))]).await;
    assert_eq!(found.why, "it counts 3 keys of database 0, which has 2");
    let miscounted = |records: &dyn Records| {
        let record = records.get(Place::Meta, ANCHOR).expect("read").expect("a position");
        let anchor = Anchor::decode(&record).expect("a position");
        let anchor = Anchor { expiring: Some([2; DATABASES_LEN]), ..anchor };
        vec![Write::put(Place::Meta, ANCHOR.to_vec(), anchor.encode())]
    };
    let found = after(miscounted).await;
    assert_eq!(found.why, "it counts 2 keys that expire of database 0, which has 1");
}

#[tokio::test]
async fn entries_that_no_head_counts_are_found() {
    let place = Place::Entries(0);
    let found = after(|_| vec![Write::remove(place, keys::entry(7, &[2]))]).await;
    assert_eq!(found.record, "the head of \"wide\" in database 0");
    assert_eq!(found.why, "it counts 3 entries, and 2 are stored");

    let found = after(|_| vec![Write::put(place, keys::entry(5, b"f"), Vec::new())]).await;
    assert_eq!(found.record, "the wide object 5 in database 0");
    let all = |_: &dyn Records| {
        (1..=3).map(|number| Write::remove(place, keys::entry(7, &[number]))).collect()
    };
    assert_eq!(after(all).await.why, "it counts 3 entries, and 0 are stored");
}

#[tokio::test]
async fn heads_that_the_other_records_do_not_know_are_found() {
    let found = after(|_| vec![Write::put(Place::Meta, keys::dead(0, 7), Vec::new())]).await;
    assert_eq!(found.why, "it leads to a dead object");

    let unindexed = |records: &dyn Records| {
        let mut writes = Vec::new();
        let range = keys::due_range(None, i64::MAX);
        let scanned = records.scan(Place::Meta, range, &mut |key, _| {
            writes.push(Write::remove(Place::Meta, key.to_vec()));
            Ok(ControlFlow::Continue(()))
        });
        scanned.expect("the index");
        assert_eq!(writes.len(), 1);
        writes
    };
    let found = after(unindexed).await;
    assert_eq!(found.record, "the head of \"expires\" in database 0");
    assert_eq!(found.why, "no record of the index of expiries leads to it");

    // A record of another time does not count.
    let moved = |records: &dyn Records| {
        let due =
            DueKey { due_ms: EXPIRES_MS + 1, generation: 0, name: Bytes::from_static(b"expires") };
        let mut writes = unindexed(records);
        writes.push(Write::put(Place::Meta, due.encode(), Vec::new()));
        writes
    };
    assert_eq!(after(moved).await.why, found.why);

    let unknown = Head { bytes: "wide 01".into(), expires_ms: None, wide: Some(7) };
    let mut record = Vec::new();
    unknown.write(&mut record);
    let twice =
        |_: &dyn Records| vec![Write::put(Place::Heads(0), keys::head(b"string"), record.clone())];
    let found = after(twice).await;
    assert!(found.why.contains("leads to the same wide object 7"), "{found:?}");
}

//! The contract over fjall, and what survives a reopening.

mod faults;
mod format;
mod lookups;
mod recount;
mod scene;
mod sharing;
mod simulator;
mod threads;
mod verify;

use super::*;
use raingauge_ports::contract::objects as contract;
use raingauge_ports::objects::{Effect, Old};

/// Options with which checkpoints happen on request alone.
pub fn options() -> Options {
    Options {
        checkpoint_interval: Duration::from_secs(3_600),
        segment_bytes: 1_500,
        separate_bytes: 512,
        memory_bytes: 64 << 20,
        ..Options::default()
    }
}

/// A store whose folder goes with it.
struct Owned {
    store: ObjectFiles,
    _folder: tempfile::TempDir,
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_the_contract() {
    contract::suite(async || {
        let folder = tempfile::tempdir().expect("a folder");
        let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
        Owned { store, _folder: folder }
    })
    .await;
}

impl ObjectStore for Owned {
    fn heads(
        &self,
        keys: Vec<Key>,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Option<Bytes>>, Error>> {
        self.store.heads(keys, bytes_max)
    }

    fn entries(
        &self,
        database: u8,
        id: u64,
        after: Option<Bytes>,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<EntryPage, Error>> {
        self.store.entries(database, id, after, bytes_max)
    }

    fn scan(
        &self,
        database: u8,
        after: Option<Bytes>,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<FoundHead>, Error>> {
        self.store.scan(database, after, len_max)
    }

    fn count(&self, database: u8) -> BoxFuture<'_, Result<KeyCount, Error>> {
        self.store.count(database)
    }

    fn due(&self, until_ms: i64, len_max: usize) -> BoxFuture<'_, Result<Vec<Key>, Error>> {
        self.store.due(until_ms, len_max)
    }

    fn submit(&self, group: Group) -> Result<u64, Error> {
        self.store.submit(group)
    }

    fn durable(&self, stamp: u64, durability: Durability) -> BoxFuture<'_, Result<(), Error>> {
        self.store.durable(stamp, durability)
    }

    fn progress(&self) -> &Progress {
        self.store.progress()
    }
}

impl ObjectControl for Owned {
    fn status(&self) -> Status {
        self.store.status()
    }

    fn sync_mode(&self) -> SyncMode {
        self.store.sync_mode()
    }

    fn set_sync_mode(&self, mode: SyncMode) {
        self.store.set_sync_mode(mode);
    }

    fn lend(&self, bytes: usize) {
        self.store.lend(bytes);
    }

    fn checkpoint(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.store.checkpoint()
    }
}

/// How many keys database 0 has.
pub async fn key_count(store: &ObjectFiles) -> u64 {
    store.count(0).await.expect("a count").keys
}

/// A head under a key of database 0.
pub fn put(name: &str, head: impl Into<Bytes>, old: Old) -> Effect {
    let key = Key::new(0, name.to_owned());
    Effect::PutHead { key, head: head.into(), expires_ms: None, wide: None, old }
}

#[tokio::test]
async fn only_one_process_opens_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    assert_eq!(ObjectFiles::open(folder.path(), &options()).err(), Some(Error::Locked));
    drop(store);
    ObjectFiles::open(folder.path(), &options()).expect("opened");
}

#[tokio::test]
async fn a_full_disk_takes_nothing_until_there_is_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { reserve_bytes: 1 << 30, ..options() };
    let store = ObjectFiles::open(folder.path(), &options).expect("opened");
    let group = Group { effects: vec![put("a", "1", Old::Absent)] };

    store.shared.room.pretend(5);
    let refused = store.submit(group.clone());
    assert_eq!(refused, Err(Error::Full { free_bytes: 5, reserve_bytes: 1 << 30 }));
    assert_eq!(key_count(&store).await, 0);

    store.shared.room.pretend(2 << 30);
    let stamp = store.submit(group).expect("there is room");
    store.durable(stamp, Durability::Synced).await.expect("it is durable");
}

#[tokio::test]
async fn a_full_disk_takes_what_only_removes() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { reserve_bytes: 1 << 30, ..options() };
    let store = ObjectFiles::open(folder.path(), &options).expect("opened");
    let group = Group { effects: vec![put("a", "1", Old::Absent), put("b", "1", Old::Absent)] };
    store.submit(group).expect("there is room");

    store.shared.room.pretend(1 << 28);
    let drop = Effect::DropHead { key: Key::new(0, "a"), old: Old::Present };
    let stamp = store.submit(Group { effects: vec![drop.clone()] }).expect("it makes room");
    store.durable(stamp, Durability::Synced).await.expect("it is durable");
    assert_eq!(key_count(&store).await, 1);
    let mixed = Group { effects: vec![drop.clone(), put("a", "1", Old::Absent)] };
    assert!(matches!(store.submit(mixed), Err(Error::Full { .. })));
    store.submit(Group { effects: vec![Effect::Flush { database: 0 }] }).expect("it makes room");
    store.checkpoint().await.expect("a checkpoint");
    assert_eq!(key_count(&store).await, 0);

    store.shared.room.pretend((1 << 28) - 1);
    let refused = store.submit(Group { effects: vec![drop] });
    let reserve_bytes = 1 << 28;
    assert_eq!(refused, Err(Error::Full { free_bytes: (1 << 28) - 1, reserve_bytes }));
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_gather_faster_than_they_are_written_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { memory_bytes: 0, ..options() };
    let store = ObjectFiles::open(folder.path(), &options).expect("opened");

    // No checkpoint begins while keys are looked up.
    let resolving = store.shared.resolving.lock();
    let submitted = (0..1_000).map(|number| {
        let effects = vec![put(&format!("key {number}"), vec![b'x'; 64 << 10], Old::Absent)];
        store.submit(Group { effects })
    });
    let refused = submitted.filter_map(Result::err).next();
    assert!(matches!(refused, Some(Error::Busy { .. })), "{refused:?}");
    drop(resolving);

    store.checkpoint().await.expect("a checkpoint");
    let effects = vec![put("later", "1", Old::Absent)];
    let stamp = store.submit(Group { effects }).expect("it is taken again");
    store.durable(stamp, Durability::Synced).await.expect("it is durable");
}

#[tokio::test]
async fn dead_objects_give_their_room_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    let key = Key::new(0, "h");
    let head = Effect::PutHead {
        key: key.clone(),
        head: Bytes::from_static(b"wide"),
        expires_ms: None,
        wide: Some(1),
        old: Old::Absent,
    };
    let entries = (0..5_000_u32).map(|number| Effect::PutEntry {
        database: 0,
        id: 1,
        sub: Bytes::copy_from_slice(&number.to_be_bytes()),
        value: Bytes::from_static(b"value"),
    });
    store.submit(Group { effects: std::iter::once(head).chain(entries).collect() }).expect("taken");
    store.checkpoint().await.expect("a checkpoint");

    let effects =
        vec![Effect::DropHead { key, old: Old::Present }, Effect::Kill { database: 0, id: 1 }];
    store.submit(Group { effects }).expect("taken");
    assert_eq!(store.entries(0, 1, None, 100).await, Ok(EntryPage::default()));
    store.checkpoint().await.expect("a checkpoint");

    let generation = store.shared.state.lock().current.generation(0);
    let left = || {
        let mut left = 0;
        let range = keys::entries(1, None);
        let place = Place::Entries(generation);
        let counted = store.shared.records.scan(place, range, &mut |_, _| {
            left += 1;
            Ok(ControlFlow::Continue(()))
        });
        counted.expect("entries");
        left
    };
    let patience = Instant::now() + Duration::from_secs(60);
    while store.status().dead_ids > 0 || left() > 0 {
        assert!(Instant::now() < patience, "{} are left", left());
        tokio::task::yield_now().await;
    }
    drop(store);

    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    assert_eq!(store.status().dead_ids, 0);
}

#[tokio::test]
async fn a_checkpoint_shortens_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    for number in 0..20 {
        let effects = vec![put(&format!("key {number}"), vec![b'x'; 500], Old::Absent)];
        let stamp = store.submit(Group { effects }).expect("taken");
        store.durable(stamp, Durability::Synced).await.expect("durable");
    }
    let before = store.status();
    assert!(before.log_bytes > 10_000 && before.pending_bytes > 10_000, "{before:?}");

    store.checkpoint().await.expect("a checkpoint");
    let after = store.status();
    assert!(after.log_bytes < 2_500 && after.pending_bytes == 0, "{after:?}");
    assert_eq!((after.keys, after.checkpoints), (20, before.checkpoints + 1));
}

#[tokio::test]
async fn a_log_that_does_not_belong_to_the_state_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    let effects = vec![put("a", "1", Old::Absent)];
    store.submit(Group { effects }).expect("taken");
    drop(store);

    std::fs::remove_dir_all(folder.path().join(LOG_FOLDER)).expect("removed");
    let refused = ObjectFiles::open(folder.path(), &options()).err();
    let refused = refused.expect("it is refused").to_string();
    assert!(refused.contains("includes 1 groups, but its log ends at group 0"), "{refused}");
}

#[tokio::test]
async fn a_flushed_database_gives_its_files_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    let effects =
        (0..100).map(|number| put(&format!("key {number}"), vec![b'x'; 1_000], Old::Absent));
    store.submit(Group { effects: effects.collect() }).expect("taken");
    store.checkpoint().await.expect("a checkpoint");
    assert_eq!(store.shared.records.places(), [Place::Heads(0)]);

    store.submit(Group { effects: vec![Effect::Flush { database: 0 }] }).expect("taken");
    assert_eq!(key_count(&store).await, 0);
    store.checkpoint().await.expect("a checkpoint");
    assert_eq!(store.shared.records.places(), []);
    drop(store);

    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    assert_eq!(key_count(&store).await, 0);
}

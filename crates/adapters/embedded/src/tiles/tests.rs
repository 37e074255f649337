use super::*;
use crate::allocations::allocated_bytes;
use proptest::prelude::*;
use raingauge_core::bucket::DAY_S;
use raingauge_memory as memory;
use raingauge_ports::consumers::{self, Name};
use raingauge_ports::contract::{buckets as contract, consumers as contract_of_consumers};
use std::io::Read;

mod faults;

const FOREVER: Horizons = Horizons { quarter_s: 0, hour_s: 0, day_s: 0 };

fn options(cache_bytes: usize) -> Options {
    Options { cache_bytes, block_cache_bytes: 1 << 20, ..Options::default() }
}

fn open(folder: &Path, cache_bytes: usize) -> TileStore {
    TileStore::open(folder, &options(cache_bytes)).unwrap()
}

async fn keeps_the_contract(store: &(impl BucketReader + BucketWriter + KeySource)) {
    contract::answers_the_worked_example(store).await;
    contract::adds_every_delta(store).await;
    contract::refuses_to_wrap(store).await;
    contract::keeps_what_is_to_be_kept(store).await;
    contract::forgets_what_has_expired(store).await;
    contract::removes_a_retired_generation(store).await;
    contract::erases_a_key(store).await;
    contract::lists_its_keys(store).await;
    contract::remembers_its_checkpoint(store);
}

#[tokio::test]
async fn both_stores_keep_the_contract() {
    keeps_the_contract(&memory::Buckets::default()).await;
    let folder = tempfile::tempdir().unwrap();
    keeps_the_contract(&open(folder.path(), 1 << 20)).await;
    let folder = tempfile::tempdir().unwrap();
    keeps_the_contract(&open(folder.path(), 0)).await;
}

/// The records of consumers in a store.
fn records(store: &TileStore) -> &dyn consumers::ConsumerStore {
    store
}

/// Also behind the last generation of tiles, which is scanned beside them.
#[tokio::test]
async fn both_stores_keep_the_contract_of_consumers() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = open(folder.path(), 1 << 20);
    for store in [records(&on_disk), &memory::Consumers::default()] {
        contract_of_consumers::keeps_records_with_the_position(store);
        contract_of_consumers::reads_records_in_order(store);
        contract_of_consumers::keeps_consumers_apart(store);
    }

    let name = Name::new("it").unwrap();
    let record = (b"k".to_vec(), Some(b"v".to_vec()));
    records(&on_disk).commit(&name, 5, vec![record]).unwrap();
    keeps_the_contract(&on_disk).await;
    drop(on_disk);

    let reopened = open(folder.path(), 1 << 20);
    assert_eq!(records(&reopened).positions().unwrap(), [(name.clone(), 5)]);
    assert_eq!(records(&reopened).get(&name, b"k").unwrap(), Some(b"v".to_vec()));
}

#[tokio::test]
async fn a_store_that_was_closed_goes_on_from_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1 << 20);
    store.add(1, "k", Addition { offset: 0, time_s: DAY_S, value: 5 }, &FOREVER).unwrap();
    let checkpoint = Checkpoint { position: 9, state: b"s".to_vec(), stamp_us: 77, progress: None };
    store.commit(&checkpoint).unwrap();
    store.add(1, "k", Addition { offset: 1, time_s: DAY_S, value: 70 }, &FOREVER).unwrap();
    drop(store);
    let store = open(folder.path(), 1 << 20);
    assert_eq!(store.checkpoint().unwrap(), checkpoint);
    assert_eq!(contract::sum(&store, 1, "k", 0, 3 * DAY_S).await, 5);
}

#[test]
fn a_folder_is_open_in_one_program_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let _store = open(folder.path(), 1 << 20);
    let second = TileStore::open(folder.path(), &Options::default());
    assert!(matches!(second, Err(Error::Locked)));
}

/// Ten times more tiles than the cache holds: it stays within its limit, and every sum is right.
#[tokio::test]
async fn the_cache_stays_inside_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let keys = 2_000;
    let days = 5;
    let cache_bytes = 1 << 20;
    let store = open(folder.path(), cache_bytes);

    let mut largest = 0;
    for day in 0..days {
        for key in 0..keys {
            let added = Addition { offset: 0, time_s: (18_000 + day) * DAY_S, value: key };
            store.add(1, &format!("key-{key}"), added, &FOREVER).unwrap();

            if store.wants_commit() {
                store.commit(&Checkpoint::default()).unwrap();
            }
        }
        largest = largest.max(store.cached_bytes());
    }

    store.commit(&Checkpoint::default()).unwrap();
    let written = keys as usize * days as usize * 2 * 100;
    assert!(written > cache_bytes, "this test writes {written} bytes");
    assert!(largest <= cache_bytes * 3 / 2, "{largest} bytes were held, changed tiles among them");
    assert!(store.cached_bytes() <= cache_bytes);

    for key in (0..keys).step_by(37) {
        assert_eq!(
            contract::sum(&store, 1, &format!("key-{key}"), 0, 19_000 * DAY_S).await,
            i128::from(key * days)
        );
    }

    assert!(store.cached_bytes() <= cache_bytes + 4_096);
}

#[derive(Clone, Debug)]
enum Step {
    Add(u8, i64, i64),
    Set(u8, Granularity, i64, i64),
    Commit,
    Reopen,
}

fn any_step() -> impl Strategy<Value = Step> {
    let time = (18_000 * DAY_S)..(18_300 * DAY_S);
    let granularity =
        prop_oneof![Just(Granularity::Quarter), Just(Granularity::Hour), Just(Granularity::Day)];
    prop_oneof![
        20 => (0u8..5, time.clone(), -5i64..1_000)
            .prop_map(|(key, time_s, value)| Step::Add(key, time_s, value)),
        3 => (0u8..5, granularity, time, any::<i32>())
            .prop_map(|(key, granularity, time_s, count)| {
                Step::Set(key, granularity, granularity.floor(time_s), count.into())
            }),
        2 => Just(Step::Commit),
        1 => Just(Step::Reopen),
    ]
}

fn run_step(step: &Step, store: &impl BucketWriter) {
    match *step {
        Step::Add(key, time_s, value) => {
            store
                .add(1, &key.to_string(), Addition { offset: 0, time_s, value }, &FOREVER)
                .unwrap();
        }
        Step::Set(key, granularity, time_s, count) => {
            store.set(1, &key.to_string(), 0, Cell { granularity, time_s, count }).unwrap();
        }
        Step::Commit | Step::Reopen => store.commit(&Checkpoint::default()).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// With an empty cache and a small one, through commits and restarts, the store always equals
    /// the model.
    #[test]
    fn the_store_agrees_with_the_model(
        steps in proptest::collection::vec(any_step(), 1..150),
        ranges in proptest::collection::vec(
            (0u8..5, (17_990 * DAY_S)..(18_310 * DAY_S), 0..(200 * DAY_S)),
            20,
        ),
        cache_bytes in prop_oneof![Just(0usize), Just(100_000), Just(1 << 20)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(folder.path(), cache_bytes);
        let model = memory::Buckets::default();
        for (index, step) in steps.iter().enumerate() {
            run_step(step, &model);
            run_step(step, &store);
            if matches!(step, Step::Reopen) {
                drop(store);
                store = open(folder.path(), cache_bytes);
            }
            let (key, from_s, len_s) = ranges[index % ranges.len()];
            let both = runtime.block_on(async {
                let key = key.to_string();
                (
                    contract::sum(&store, 1, &key, from_s, from_s + len_s).await,
                    contract::sum(&model, 1, &key, from_s, from_s + len_s).await,
                )
            });
            prop_assert_eq!(both.0, both.1);
        }
    }
}

/// Three commits, each of its own key, and the length of the journal behind each of them.
fn committed(folder: &Path) -> (Vec<u8>, Vec<usize>) {
    let store = open(folder, 1 << 20);
    let journal = folder.join("0.jnl");
    let mut ends = Vec::new();
    for number in 1..=3 {
        let added = Addition { offset: number, time_s: DAY_S, value: 1 };
        store.add(1, &format!("key-{number}"), added, &FOREVER).unwrap();
        store.commit(&Checkpoint { position: number, ..Checkpoint::default() }).unwrap();
        ends.push(head(&journal).iter().rposition(|byte| *byte != 0).unwrap() + 1);
    }
    drop(store);
    (head(&journal), ends)
}

/// The beginning of a journal, which is created with many zeros at its end.
fn head(journal: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    std::fs::File::open(journal).unwrap().take(64 << 10).read_to_end(&mut bytes).unwrap();
    bytes
}

/// A folder with two journals: the sealed one holds the bytes before `sealed_end`, the last one the
/// bytes behind the second commit.
fn split((journal, ends): &(Vec<u8>, Vec<usize>), folder: &Path, sealed_end: usize) {
    let mut sealed = journal[..sealed_end].to_vec();
    sealed.resize(journal.len(), 0);
    std::fs::write(folder.join("0.jnl"), sealed).unwrap();
    std::fs::write(folder.join("1.jnl"), &journal[ends[1]..]).unwrap();
}

/// fjall silently skips damage to a sealed journal; the markers of the commits reveal it.
#[tokio::test]
async fn a_hole_in_a_sealed_journal_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let written = committed(folder.path());
    split(&written, folder.path(), written.1[1]);

    let store = open(folder.path(), 1 << 20);
    for number in 1..=3 {
        assert_eq!(contract::sum(&store, 1, &format!("key-{number}"), 0, 3 * DAY_S).await, 1);
    }
    drop(store);

    let folder = tempfile::tempdir().unwrap();
    let written = committed(folder.path());
    split(&written, folder.path(), written.1[0]);

    for _ in 0..2 {
        let refused = TileStore::open(folder.path(), &options(1 << 20));
        let Err(Error::Corrupt(why)) = refused else {
            panic!("the store was opened, and lacks a commit")
        };
        assert!(why.contains("commit 2 of 3 is missing"), "{why}");
    }
}

/// Damage followed by more data is refused before anything is changed: once repaired, the store
/// opens again.
#[tokio::test]
async fn damage_to_a_sealed_journal_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let written = committed(folder.path());
    split(&written, folder.path(), written.1[1]);

    let sealed = folder.path().join("0.jnl");
    let sound = std::fs::read(&sealed).unwrap();

    // The beginning of the first commit.
    for at in written.1[0]..written.1[0] + 20 {
        let mut damaged = sound.clone();
        damaged[at..at + 8].fill(0);
        std::fs::write(&sealed, &damaged).unwrap();

        if damaged == sound {
            continue;
        }
        assert!(TileStore::open(folder.path(), &options(1 << 20)).is_err(), "zeros at {at}");
        assert_eq!(std::fs::read(&sealed).unwrap(), damaged, "zeros at {at}");
    }

    std::fs::write(&sealed, &sound).unwrap();
    let store = open(folder.path(), 1 << 20);

    for number in 1..=3 {
        assert_eq!(contract::sum(&store, 1, &format!("key-{number}"), 0, 3 * DAY_S).await, 1);
    }
}

/// A store from before there were markers opens, and has them from then on.
#[test]
fn a_store_without_markers_opens() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1 << 20);
    store.inner.disk.write_unmarked(&Checkpoint { position: 7, ..Checkpoint::default() });
    drop(store);
    let store = open(folder.path(), 1 << 20);
    assert_eq!(store.checkpoint().unwrap().position, 7);
    store.commit(&Checkpoint { position: 8, ..Checkpoint::default() }).unwrap();
    drop(store);
    assert_eq!(open(folder.path(), 1 << 20).checkpoint().unwrap().position, 8);
}

/// A process killed while it created the folder leaves the files it had created by then.
#[test]
fn a_folder_whose_creation_was_cut_short_is_made_again() {
    let journal = vec![0; 4_096];
    let made: [(&str, &[u8]); 4] =
        [("lock", b""), ("0.jnl", b""), ("0.jnl", &journal), ("version", b"")];
    for until in 0..=made.len() {
        let folder = tempfile::tempdir().unwrap();
        let tiles = folder.path().join("tiles");
        std::fs::create_dir_all(tiles.join("keyspaces")).unwrap();

        for (name, bytes) in &made[..until] {
            std::fs::write(tiles.join(name), bytes).unwrap();
        }
        let store = open(&tiles, 1 << 20);
        store.commit(&Checkpoint { position: 3, ..Checkpoint::default() }).unwrap();
        drop(store);
        assert_eq!(open(&tiles, 1 << 20).checkpoint().unwrap().position, 3, "{until}");
    }
}

#[test]
fn a_folder_with_data_is_never_made_again() {
    let folder = tempfile::tempdir().unwrap();
    committed(folder.path());
    std::fs::write(folder.path().join("version"), b"").unwrap();
    assert!(TileStore::open(folder.path(), &options(1 << 20)).is_err());
    assert!(head(&folder.path().join("0.jnl")).iter().any(|byte| *byte != 0));
}

/// The size that the cache reports equals what was allocated for it, and stays within 1.3 times its
/// limit.
#[test]
fn the_cache_accounts_for_what_it_allocates() {
    let bytes_max = 1 << 20;
    let keys = 40_000_u64;
    let before = allocated_bytes();
    let mut shard = Shard::new(bytes_max);
    let mut largest = 0;

    let mut kept = 0;
    for number in 0..keys {
        let key = format!("rain:city:{number}");
        let hash = cache::hash(1, &key);
        let record = shard.record(hash, 1, &key);

        // Some keys have one tile of each kind, and some many.
        let days = if number % 16 == 0 { 40 } else { 1 };
        for day in 0..days {
            for id in [TileId::day(19_000 + day), TileId::span(19_000)] {
                shard.fill(record, id, None);
                kept += shard.change(record, id, |tile| tile.add((number % 90) as u8, 1));
            }
        }

        shard.shrink();

        if kept > bytes_max / 4 {
            shard.settle();
            kept = 0;
        }

        let held = allocated_bytes() - before;
        largest = largest.max(held);

        let counted = shard.bytes() as isize;
        assert!(
            (counted - held).abs() <= counted / 8 + 1_024,
            "{counted} bytes are counted, {held} are held"
        );
    }

    assert!(largest <= bytes_max as isize * 13 / 10, "{largest} bytes were held");
}

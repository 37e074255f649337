use super::*;
use proptest::prelude::*;
use raingauge_core::bucket::DAY_S;
use raingauge_ports::contract::buckets as contract;
use raingauge_ports::memory::MemoryBuckets;

const FOREVER: Horizons = Horizons { quarter_s: 0, hour_s: 0, day_s: 0 };

fn open(folder: &Path, cache_bytes: usize) -> TileStore {
    TileStore::open(folder, &Options { cache_bytes, block_cache_bytes: 1 << 20 }).unwrap()
}

async fn keeps_the_contract(store: &(impl BucketReader + BucketWriter)) {
    contract::answers_the_worked_example(store).await;
    contract::adds_what_it_is_told(store).await;
    contract::refuses_to_wrap(store).await;
    contract::keeps_what_is_to_be_kept(store).await;
    contract::forgets_what_has_expired(store).await;
    contract::removes_a_retired_generation(store).await;
    contract::remembers_its_checkpoint(store);
}

#[tokio::test]
async fn both_stores_keep_the_contract() {
    keeps_the_contract(&MemoryBuckets::default()).await;
    let folder = tempfile::tempdir().unwrap();
    keeps_the_contract(&open(folder.path(), 1 << 20)).await;
    let folder = tempfile::tempdir().unwrap();
    keeps_the_contract(&open(folder.path(), 0)).await;
}

#[tokio::test]
async fn a_store_that_was_closed_goes_on_from_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1 << 20);
    store.add(1, "k", Added { offset: 0, time_s: DAY_S, value: 5 }, &FOREVER).unwrap();
    let checkpoint = Checkpoint { position: 9, state: b"s".to_vec(), stamp_us: 77 };
    store.commit(&checkpoint).unwrap();
    store.add(1, "k", Added { offset: 1, time_s: DAY_S, value: 70 }, &FOREVER).unwrap();
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

/// Ten times more tiles than the cache takes: it stays inside its bytes, and every sum is right.
#[tokio::test]
async fn the_cache_stays_inside_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (keys, days, cache_bytes) = (2_000, 5, 1 << 20);
    let store = open(folder.path(), cache_bytes);
    let mut largest = 0;
    for day in 0..days {
        for key in 0..keys {
            let added = Added { offset: 0, time_s: (18_000 + day) * DAY_S, value: key };
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
        assert_eq!(contract::sum(&store, 1, &format!("key-{key}"), 0, 19_000 * DAY_S).await, i128::from(key * days));
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
    let granularity = prop_oneof![Just(Granularity::Quarter), Just(Granularity::Hour), Just(Granularity::Day)];
    prop_oneof![
        20 => (0u8..5, time.clone(), -5i64..1_000).prop_map(|(key, time_s, value)| Step::Add(key, time_s, value)),
        3 => (0u8..5, granularity, time, any::<i32>())
            .prop_map(|(key, granularity, time_s, count)| Step::Set(key, granularity, granularity.floor(time_s), count.into())),
        2 => Just(Step::Commit),
        1 => Just(Step::Reopen),
    ]
}

fn run_step(step: &Step, store: &impl BucketWriter) {
    match *step {
        Step::Add(key, time_s, value) => {
            store.add(1, &key.to_string(), Added { offset: 0, time_s, value }, &FOREVER).unwrap();
        }
        Step::Set(key, granularity, time_s, count) => {
            store.set(1, &key.to_string(), 0, Cell { granularity, time_s, count }).unwrap();
        }
        Step::Commit | Step::Reopen => store.commit(&Checkpoint::default()).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// With a cache that holds nothing, with one that holds some, through commits and reopening: always as the model.
    #[test]
    fn the_store_agrees_with_the_model(
        steps in proptest::collection::vec(any_step(), 1..150),
        ranges in proptest::collection::vec((0u8..5, (17_990 * DAY_S)..(18_310 * DAY_S), 0..(200 * DAY_S)), 20),
        cache_bytes in prop_oneof![Just(0usize), Just(100_000), Just(1 << 20)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (mut store, model) = (open(folder.path(), cache_bytes), MemoryBuckets::default());
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
                (contract::sum(&store, 1, &key, from_s, from_s + len_s).await, contract::sum(&model, 1, &key, from_s, from_s + len_s).await)
            });
            prop_assert_eq!(both.0, both.1);
        }
    }
}

//! Faults under the tiles: see [`crate::faults`].

use super::*;
use crate::faults::Library;
use consumers::Change;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

const KEYS: u64 = 300;
const COMMITS: u64 = 40;
const OFFSETS_OF_COMMIT: u64 = 600;

/// The entry counted at an offset: a key and a time.
fn entry(offset: u64) -> (String, i64) {
    let mixed = offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    (
        format!("a-key-of-some-length-{}", mixed % KEYS),
        (18_000 + (mixed / KEYS % 40) as i64) * DAY_S + offset as i64 % DAY_S,
    )
}

fn count(store: &impl BucketWriter, offset: u64) {
    let (key, time_s) = entry(offset);
    store.add(1, &key, Addition { offset, time_s, value: 1 }, &FOREVER).expect("added");
}

fn it() -> Name {
    Name::new("it").expect("a name")
}

/// The changes that a consumer beside the tiles commits: a record of its own, and one that all of
/// them change.
fn changes(commit: u64) -> Vec<Change> {
    let record = |key: u64| (key.to_be_bytes().to_vec(), Some(commit.to_be_bytes().to_vec()));
    vec![record(commit), record(0)]
}

/// Whether a consumer has exactly what it committed up to its position.
fn has_what_it_committed(store: &TileStore, committed: u64) -> Result<(), String> {
    let store = records(store);
    let positions = store.positions().map_err(|error| error.to_string())?;
    let position = positions.first().map_or(0, |(_, position)| *position);
    let mut expected = BTreeMap::new();
    (1..=position / OFFSETS_OF_COMMIT).for_each(|commit| expected.extend(changes(commit)));

    let found = store.scan(&it(), b"", None, usize::MAX).map_err(|error| error.to_string())?;
    let found: BTreeMap<_, _> = found.into_iter().map(|(key, value)| (key, Some(value))).collect();
    if position < committed || found != expected {
        return Err(format!("a consumer is at {position} of {committed} with {found:?}"));
    }
    Ok(())
}

/// The process under faults; as a test of its own it does nothing. It reports the position of each
/// commit.
#[test]
fn a_process_under_faults() {
    let Some(folder) = std::env::var_os("FAULTS_FOLDER") else {
        return;
    };
    let Ok(store) = TileStore::open(Path::new(&folder), &options(1 << 20)) else {
        return;
    };

    for commit in 1..=COMMITS {
        let position = commit * OFFSETS_OF_COMMIT;
        (position - OFFSETS_OF_COMMIT..position).for_each(|offset| count(&store, offset));

        let checkpoint = Checkpoint { position, ..Checkpoint::default() };
        let counted = store.commit(&checkpoint).is_ok();
        if !counted || records(&store).commit(&it(), position, changes(commit)).is_err() {
            // Exits as the program does, without any cleanup.
            std::process::exit(1);
        }

        println!("\ncommitted {position}");
        std::io::stdout().flush().expect("the parent listens");
    }
}

/// Succeeds if the store holds exactly what was committed up to its position.
fn is_sound(folder: &Path, committed: u64) -> Result<(), String> {
    let store = TileStore::open(folder, &options(1 << 20)).map_err(|error| error.to_string())?;
    let position = store.checkpoint().map_err(|error| error.to_string())?.position;
    if position < committed {
        return Err(format!("{committed} was committed, and {position} is left"));
    }
    has_what_it_committed(&store, committed)?;

    let model = memory::Buckets::default();
    (0..position).for_each(|offset| count(&model, offset));

    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let keys: BTreeSet<String> = (0..KEYS * 8).map(|offset| entry(offset).0).collect();
    for key in keys {
        for (from_s, to_s) in
            [(18_000, 18_100), (18_003, 18_017)].map(|(from, to)| (from * DAY_S, to * DAY_S - 900))
        {
            let both = runtime.block_on(async {
                (
                    contract::sum(&store, 1, &key, from_s, to_s).await,
                    contract::sum(&model, 1, &key, from_s, to_s).await,
                )
            });
            if both.0 != both.1 {
                return Err(format!("{key} is {} instead of {} at {position}", both.0, both.1));
            }
        }
    }

    Ok(())
}

fn library() -> Library {
    Library::new("tiles::tests::faults::a_process_under_faults")
}

#[test]
fn no_fault_under_the_tiles_loses_or_changes_what_was_committed() {
    library().examine(&is_sound);
}

/// Data that is not synced does not survive, and this suite notices.
#[test]
fn a_sync_that_is_left_out_is_noticed() {
    library().notices_missing_syncs(&is_sound);
}

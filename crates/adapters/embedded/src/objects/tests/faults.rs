//! Faults under log and state together: see [`crate::faults`].

use super::*;
use crate::faults::Library;
use raingauge_memory::Objects;
use raingauge_ports::contract::books::wait;
use std::io::Write;

const GROUPS: u64 = 60;
const GROUPS_PER_CHECKPOINT: u64 = 7;
const KEYS: u64 = 12;

/// The group with a number: a string, a wide object that grows or dies, and now and then a flush.
fn group(number: u64) -> Group {
    let name = format!("key {}", number % KEYS);
    let text = format!("{number:>width$}", width = (number % 5 * 300) as usize);
    let mut effects = vec![put(&name, text, Old::Unknown)];

    // Ten groups fill an object, and the eleventh kills it.
    let id = number / 11;
    let key = Key::new(1, format!("wide {id}"));
    if number % 11 < 10 {
        let head = Bytes::from(number.to_string());
        let is_first = number.is_multiple_of(11) || number == 1;
        let old = if is_first { Old::Absent } else { Old::Expiring };
        let sub = Bytes::copy_from_slice(&number.to_be_bytes());
        effects.push(Effect::PutHead { key, head, expires_ms: Some(1_000), wide: Some(id), old });
        effects.push(Effect::PutEntry { database: 1, id, sub, value: name.into() });
    } else {
        effects.push(Effect::DropHead { key, old: Old::Unknown });
    }

    match number % 20 {
        13 => effects.push(Effect::Flush { database: 0 }),
        17 => effects.push(Effect::Swap { a: 0, b: 2 }),
        _ => {}
    }
    Group { effects }
}

/// Some checkpoints of the groups are batches and some are tables.
fn mixed_options() -> Options {
    Options { tables_bytes: Some(6_000), ..options() }
}

/// The process under faults; as a test of its own it does nothing. It reports the stamp of each
/// durable group.
#[test]
fn a_process_under_faults() {
    let Some(folder) = std::env::var_os("FAULTS_FOLDER") else {
        return;
    };
    let Ok(store) = ObjectFiles::open(Path::new(&folder), &mixed_options()) else {
        return;
    };

    for number in 1..=GROUPS {
        let Ok(stamp) = store.submit(group(number)) else {
            std::process::exit(1);
        };
        let durable = wait(store.durable(stamp, Durability::Synced));
        let is_checkpoint = number.is_multiple_of(GROUPS_PER_CHECKPOINT);
        if durable.is_err() || is_checkpoint && wait(store.checkpoint()).is_err() {
            // Exits as the program does, without any cleanup.
            std::process::exit(1);
        }

        println!("\ncommitted {stamp}");
        std::io::stdout().flush().expect("the parent listens");
    }
}

/// Succeeds if the store holds exactly the first groups, with all that were durable.
fn is_sound(folder: &Path, committed: u64) -> Result<(), String> {
    let store = ObjectFiles::open(folder, &mixed_options()).map_err(|error| error.to_string())?;
    let stamp = store.progress().submitted();
    if stamp < committed {
        return Err(format!("{committed} was durable, and {stamp} is left"));
    }

    let twin = Objects::new();
    for number in 1..=stamp {
        twin.submit(group(number)).expect("it is taken");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let read = |store: &dyn ObjectStore| {
        runtime.block_on(async {
            let mut found = Vec::new();
            for database in [0, 1, 2] {
                let names = store.scan(database, None, 1_000).await?;
                let keys = names.iter().map(|found| Key::new(database, found.name.clone()));
                let heads = store.heads(keys.collect(), usize::MAX).await?;
                let count = store.count(database).await?;
                found.push(format!("{database}: {count:?} {names:?} {heads:?}"));
            }
            for id in 0..=stamp / 11 {
                found.push(format!("{id}: {:?}", store.entries(1, id, None, 1 << 20).await?));
            }
            let mut due = store.due(1_000_000, 1_000).await?;
            due.sort_unstable();
            found.push(format!("{due:?}"));
            Ok(found)
        })
    };

    // Of an object whose head was dropped without being known, entries may be left until then.
    runtime.block_on(store.checkpoint()).map_err(|error| error.to_string())?;
    let found = read(&store).map_err(|error: Error| error.to_string())?;
    let expected = read(&twin).map_err(|error: Error| error.to_string())?;
    match found.iter().zip(&expected).find(|(found, expected)| found != expected) {
        Some((found, expected)) => Err(format!("{found} instead of {expected} at {stamp}")),
        None => Ok(()),
    }
}

fn library() -> Library {
    Library::new("objects::tests::faults::a_process_under_faults")
}

#[test]
fn no_fault_under_the_objects_loses_or_changes_what_was_durable() {
    library().examine(&is_sound);
}

/// Data that is not synced does not survive, and this suite notices.
#[test]
fn a_sync_that_is_left_out_is_noticed() {
    library().notices_missing_syncs(&is_sound);
}

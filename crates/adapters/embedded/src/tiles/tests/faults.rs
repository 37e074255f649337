//! Faults under fjall, which calls the file system itself and takes no port. A separate process
//! works on a store, with a library between it and the C library (`faults.c`) that ends the process
//! or fails its n-th operation. The result is opened without faults and compared with a model.

use super::*;
use consumers::Change;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU64;

const KEYS: u64 = 300;
const COMMITS: u64 = 40;
const OFFSETS_OF_COMMIT: u64 = 600;
/// Runs of each kind of fault.
const RUNS: u64 = 8;

/// The fault at the n-th operation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// The process ends before it, or after half of it.
    Kill,
    Tear,
    /// The power fails: files revert to their last synced contents.
    Power,
    /// The operation fails, or the disk is full from then on.
    Error,
    Full,
}

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

/// The library, compiled into a temporary folder.
struct Library {
    folder: tempfile::TempDir,
}

impl Library {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tiles/tests/faults.c");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(folder.path().join("faults.so"))
            .arg(source);
        let compiled = compiler.args(["-ldl", "-lpthread"]).status().expect("cc is installed");
        assert!(compiled.success());
        Self { folder }
    }

    /// Runs the process. Returns the position that it committed last.
    fn run(&self, place: &Place, fault: Fault, at: u64, lies: bool) -> u64 {
        let kind = match fault {
            Fault::Kill | Fault::Power => "kill",
            Fault::Tear => "tear",
            Fault::Error => "error",
            Fault::Full => "full",
        };

        let mut process = Command::new(std::env::current_exe().expect("this test"));
        process.args(["--exact", "tiles::tests::faults::a_process_under_faults", "--nocapture"]);
        process.env("LD_PRELOAD", self.folder.path().join("faults.so"));
        process
            .env("FAULTS_FOLDER", place.store())
            .env("FAULTS_COUNT", place.folder.path().join("operations"));
        process.env("FAULTS_KIND", kind).env("FAULTS_AT", at.to_string());

        if fault == Fault::Power {
            process.env("FAULTS_SHADOW", place.shadow());
        }

        if lies {
            process.env("FAULTS_LIES", "yes");
        }

        let mut running =
            process.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a process");
        let lines = BufReader::new(running.stdout.take().expect("its output")).lines();
        let committed = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("committed ")?.parse().ok());
        let position = committed.last().unwrap_or(0);

        running.wait().expect("it has ended");
        position
    }
}

/// The folders of one run.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().expect("a folder") };
        std::fs::create_dir(place.shadow()).expect("a folder");
        place
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("tiles")
    }

    fn shadow(&self) -> PathBuf {
        self.folder.path().join("shadow")
    }

    /// Reverts every file to its last synced contents.
    fn lose_power(&self) {
        let mut folders = vec![self.store()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let entry = entry.expect("an entry");
                let metadata = entry.metadata().expect("its metadata");
                if metadata.is_dir() {
                    folders.push(entry.path());
                    continue;
                }

                let synced = std::fs::read(self.shadow().join(metadata.ino().to_string()))
                    .unwrap_or_default();
                std::fs::write(entry.path(), synced).expect("it is put back");
            }
        }
    }

    /// Opens the result. Succeeds if it holds exactly what was committed up to its position.
    fn is_sound(&self, committed: u64) -> Result<(), String> {
        let store =
            TileStore::open(&self.store(), &options(1 << 20)).map_err(|error| error.to_string())?;
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
            for (from_s, to_s) in [(18_000, 18_100), (18_003, 18_017)]
                .map(|(from, to)| (from * DAY_S, to * DAY_S - 900))
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
}

/// Number of operations of a run without a fault.
fn operations(library: &Library) -> u64 {
    let place = Place::new();
    assert_eq!(library.run(&place, Fault::Kill, 0, false), COMMITS * OFFSETS_OF_COMMIT);
    place.is_sound(COMMITS * OFFSETS_OF_COMMIT).expect("it is sound");
    let operations =
        std::fs::read_to_string(place.folder.path().join("operations")).expect("they were counted");
    operations.parse().expect("a number")
}

#[test]
fn no_fault_under_the_tiles_loses_or_changes_what_was_committed() {
    let library = Library::new();
    let operations = operations(&library);
    let kinds = [Fault::Kill, Fault::Tear, Fault::Power, Fault::Error, Fault::Full];
    let next = AtomicU64::new(0);

    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let run = next.fetch_add(1, Ordering::Relaxed)
                    && run < RUNS * kinds.len() as u64
                {
                    // Half of the faults hit while the store is created, the others anywhere.
                    let fault = kinds[(run % 5) as usize];
                    let place = Place::new();
                    let at = if run / 5 < RUNS / 2 {
                        1 + run
                    } else {
                        1 + entry(run).1 as u64 % operations
                    };

                    let committed = library.run(&place, fault, at, false);
                    if fault == Fault::Power {
                        place.lose_power();
                    }
                    place
                        .is_sound(committed)
                        .unwrap_or_else(|why| panic!("{fault:?} at operation {at}: {why}"));
                }
            });
        }
    });
}

/// Data that is not synced does not survive, and this suite notices.
#[test]
fn a_sync_that_is_left_out_is_noticed() {
    let library = Library::new();
    let place = Place::new();
    let committed = library.run(&place, Fault::Power, 0, true);
    assert_eq!(committed, COMMITS * OFFSETS_OF_COMMIT);
    place.lose_power();
    place.is_sound(committed).expect_err("nothing was synced");
}

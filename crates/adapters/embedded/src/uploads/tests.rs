use super::*;
use crate::faults::Library;
use raingauge_ports::contract::campaigns::tables as contract;
use std::cell::Cell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const NOW_MS: i64 = 1_727_136_000_000;
const ROWS: usize = 500;
const LOADS: u64 = 20;
const TEST: &str = "uploads::tests::a_process_under_faults";

fn options() -> Options {
    Options { block_cache_bytes: 1 << 20, memtable_bytes: 1 << 20, ..Options::default() }
}

fn open(folder: &Path) -> UploadedTables {
    UploadedTables::open(folder, &options()).unwrap()
}

fn key(number: usize) -> String {
    format!("u-{number}")
}

/// Rows that all say from which load they are.
fn rows(load: u64) -> Vec<(String, TableRow)> {
    (0..ROWS).map(|number| (key(number), contract::row(&load.to_string()))).collect()
}

async fn load(tables: &UploadedTables, number: u64) -> Result<TableVersion, TableError> {
    let load = tables.begin("users").await?;
    for some in rows(number).chunks(120) {
        tables.add(&load, some.to_vec()).await?;
    }
    tables.finish(&load, NOW_MS).await
}

/// Waits until all rows on the disk are of versions that answer.
fn wait_until_removed(tables: &UploadedTables) {
    let inner = &tables.inner;
    let deadline = Instant::now() + Duration::from_secs(20);
    while !obsolete_in(&inner.store).unwrap().is_empty() {
        assert!(Instant::now() < deadline, "replaced rows are still there");
        std::thread::yield_now();
    }

    let stored = inner.store.keyspace.prefix([3]).count();
    let answering: usize = inner
        .state
        .lock()
        .current
        .values()
        .map(|version| inner.store.keyspace.prefix(keys::rows(version.version)).count())
        .sum();
    assert_eq!(stored, answering);
}

#[tokio::test]
async fn the_contract_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let number = Cell::new(0);
    contract::suite(async || {
        number.set(number.get() + 1);
        open(&folder.path().join(number.get().to_string()))
    })
    .await;
}

#[tokio::test]
async fn tables_are_there_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let tables = open(folder.path());
    load(&tables, 1).await.unwrap();
    let second = load(&tables, 2).await.unwrap();
    tables.change("users", vec![(key(0), None)]).await.unwrap();

    let unfinished = tables.begin("users").await.unwrap();
    tables.add(&unfinished, rows(3)).await.unwrap();
    assert!(matches!(UploadedTables::open(folder.path(), &options()), Err(TableError::Locked)));
    drop(tables);

    let tables = open(folder.path());
    assert_eq!(tables.list().await.unwrap(), [second]);
    let found = tables.get("users", &[key(0), key(1)]).await.unwrap();
    assert_eq!(found, [None, Some(contract::row("2"))]);
    let late = tables.finish(&unfinished, NOW_MS).await;
    assert_eq!(late, Err(TableError::Replaced("users".to_owned())));
    wait_until_removed(&tables);
    assert!(load(&tables, 4).await.unwrap().version > unfinished.version);
    wait_until_removed(&tables);
}

#[tokio::test]
async fn a_table_has_its_limit_and_the_disk_its_reserve() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { rows_max: ROWS as u64, ..options() };
    let tables = UploadedTables::open(folder.path(), &options).unwrap();
    let begun = tables.begin("users").await.unwrap();
    tables.add(&begun, rows(1)).await.unwrap();
    let more = tables.add(&begun, rows(1)[..1].to_vec()).await;
    assert!(matches!(more, Err(TableError::TooLarge(_))), "{more:?}");
    tables.finish(&begun, NOW_MS).await.unwrap();
    drop(tables);

    let options = Options { reserve_bytes: 1_000, ..options };
    let tables = UploadedTables::open(folder.path(), &options).unwrap();
    tables.inner.room.pretend(999);
    let full = TableError::Full { free_bytes: 999, reserve_bytes: 1_000 };
    assert_eq!(tables.begin("users").await, Err(full.clone()));
    let row = vec![(key(0), Some(contract::row("9")))];
    assert_eq!(tables.change("users", row).await, Err(full));
    let found = tables.get("users", &[key(0)]).await.unwrap();
    assert_eq!(found, [Some(contract::row("1"))]);
}

/// Readers of one call see one version, while others replace it and its rows are removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_answered_by_one_version() {
    let folder = tempfile::tempdir().unwrap();
    let tables = Arc::new(open(folder.path()));
    load(&tables, 0).await.unwrap();

    let reader = Arc::clone(&tables);
    let reading = tokio::spawn(async move {
        let keys: Vec<String> = (0..ROWS).map(key).collect();
        for _ in 0..200 {
            let found = reader.get("users", &keys).await.unwrap();
            let first = found[0].clone();
            assert!(first.is_some() && found.iter().all(|row| *row == first));
        }
    });
    for number in 1..30 {
        load(&tables, number).await.unwrap();
    }
    reading.await.unwrap();
    wait_until_removed(&tables);
}

/// The process under faults; as a test of its own it does nothing. It reports each load.
#[test]
fn a_process_under_faults() {
    let Some(folder) = std::env::var_os("FAULTS_FOLDER") else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let done: Result<(), TableError> = runtime.block_on(async {
        let tables = UploadedTables::open(Path::new(&folder), &options())?;
        for number in 1..=LOADS {
            load(&tables, number).await?;
            println!("\ncommitted {number}");
            std::io::stdout().flush().expect("the parent listens");
        }
        Ok(())
    });
    if done.is_err() {
        // Exits as the program does, without any cleanup.
        std::process::exit(1);
    }
}

/// SIGKILL while tables are loaded: one whole version answers, and nothing else is left.
#[test]
fn a_killed_process_leaves_one_whole_version() {
    for until in [1, 5, 12] {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Command::new(std::env::current_exe().expect("this test"));
        process.args(["--exact", TEST, "--nocapture"]).env("FAULTS_FOLDER", folder.path());
        let mut running =
            process.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a process");
        let lines = BufReader::new(running.stdout.take().expect("its output")).lines();
        let mut loaded = lines.map_while(Result::ok).filter_map(|line| {
            line.strip_prefix("committed ").and_then(|number| number.parse::<u64>().ok())
        });

        let number = loaded.nth(until - 1).expect("it has loaded");
        running.kill().expect("it is killed");
        running.wait().expect("it has ended");
        is_whole(folder.path(), number).unwrap();
    }
}

#[test]
fn no_fault_under_the_tables_leaves_half_a_version() {
    Library::new(TEST).examine(&is_whole);
}

#[test]
fn a_sync_that_is_left_out_is_noticed() {
    Library::new(TEST).notices_missing_syncs(&is_whole);
}

/// Succeeds if all rows are of one load, which is not older than `number`.
fn is_whole(folder: &Path, number: u64) -> Result<(), String> {
    let tables = UploadedTables::open(folder, &options()).map_err(|why| why.to_string())?;
    let keys: Vec<String> = (0..ROWS).map(key).collect();
    let found = tables.inner.get("users", &keys).map_err(|why| why.to_string())?;

    let first = found[0].clone();
    let tier = first.as_ref().and_then(|row| row["tier"].as_str()?.parse().ok());
    let loaded: u64 = tier.unwrap_or_default();
    if loaded < number {
        return Err(format!("{loaded} answers, and {number} was reported"));
    }
    if found.iter().any(|row| *row != first) {
        return Err(format!("some rows are not of load {loaded}"));
    }
    wait_until_removed(&tables);
    Ok(())
}

fn segment(numbers: std::ops::Range<usize>) -> Vec<(String, TableRow)> {
    numbers.map(|number| (key(number), TableRow::new())).collect()
}

async fn holds(tables: &UploadedTables, table: &str, number: usize) -> bool {
    tables.get(table, &[key(number)]).await.unwrap()[0].is_some()
}

#[tokio::test]
async fn a_segment_is_held_in_memory_and_follows_its_changes() {
    let folder = tempfile::tempdir().unwrap();
    let tables = open(folder.path());
    let is_held = |table: &str| tables.inner.held(table, &[key(0)]).is_some();
    for round in 0..2 {
        let load = tables.begin("staff").await.unwrap();
        tables.add(&load, segment(round * 50..round * 50 + 100)).await.unwrap();
        tables.finish(&load, NOW_MS).await.unwrap();
        assert!(!is_held("staff"), "a new version is read when it is asked for");
        assert_eq!(holds(&tables, "staff", 0).await, round == 0);
        assert!(is_held("staff"));
        assert!(holds(&tables, "staff", 99).await && !holds(&tables, "staff", 200).await);
    }

    let changes = vec![(key(200), Some(TableRow::new())), (key(99), None)];
    tables.change("staff", changes).await.unwrap();
    assert!(is_held("staff"));
    assert!(holds(&tables, "staff", 200).await && !holds(&tables, "staff", 99).await);
    tables.remove("staff").await.unwrap();
    assert!(!holds(&tables, "staff", 200).await);

    // A table with columns is none.
    load(&tables, 1).await.unwrap();
    assert!(holds(&tables, "users", 0).await);
    assert!(!is_held("users"));
}

#[tokio::test]
async fn segments_beyond_their_bound_are_read_from_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { segments_bytes_max: 6_000, ..options() };
    let tables = UploadedTables::open(folder.path(), &options).unwrap();
    let is_held = |table: &str| tables.inner.held(table, &[key(0)]).is_some();
    for (table, rows) in [("small", 100), ("second", 100), ("tiny", 5)] {
        let load = tables.begin(table).await.unwrap();
        tables.add(&load, segment(0..rows)).await.unwrap();
        tables.finish(&load, NOW_MS).await.unwrap();
        assert!(holds(&tables, table, rows - 1).await && !holds(&tables, table, rows).await);
    }
    assert!(is_held("small") && !is_held("second") && is_held("tiny"));

    // One that grows beyond it is dropped, and answers as before.
    let rows = segment(0..200).into_iter().map(|(key, row)| (key, Some(row))).collect();
    tables.change("tiny", rows).await.unwrap();
    assert!(is_held("small") && !is_held("tiny"));
    assert!(holds(&tables, "tiny", 199).await && !holds(&tables, "tiny", 200).await);
}

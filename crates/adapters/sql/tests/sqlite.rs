//! The catalog on real SQLite files.

mod histories;
mod points;

use histories::unless_it_waits_longer;
use proptest::prelude::*;
use raingauge_core::access::Role;
use raingauge_core::counter::{Counter, State};
use raingauge_ports::campaigns::{DatabaseError, DatabaseLookup, DocumentStore, Put};
use raingauge_ports::catalog::{Catalog, Error, Policies};
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::contract::catalog::{change, counter, increment, suite, whole_policy};
use raingauge_ports::contract::{
    books, campaigns, checks, drafts, instances, people, queues, rollouts,
};
use raingauge_ports::drafts::{Draft, Drafts, State as DraftState};
use raingauge_ports::people::Users;
use raingauge_sql::{Databases, SqliteBooks, SqliteCatalog};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::{Handle, Runtime};

async fn open(path: &Path) -> SqliteCatalog {
    SqliteCatalog::open(path).await.unwrap()
}

/// A folder and the path of a catalog in it, which does not exist yet.
fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.sqlite");
    (folder, path)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_the_contract() {
    let (folder, _) = folder();
    let made = AtomicU32::new(0);
    suite(async || {
        let name = format!("{}.sqlite", made.fetch_add(1, Ordering::Relaxed));
        open(&folder.path().join(name)).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_the_contracts_of_instances_and_checks() {
    let (folder, _) = folder();
    let made = AtomicU32::new(0);
    let fresh = async || {
        let name = format!("{}.sqlite", made.fetch_add(1, Ordering::Relaxed));
        open(&folder.path().join(name)).await
    };
    instances::suite(async || fresh().await.instances()).await;
    checks::suite(async || fresh().await.checks()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_the_contract_of_people() {
    let (folder, _) = folder();
    let made = AtomicU32::new(0);
    people::suite(async || {
        let name = format!("{}.sqlite", made.fetch_add(1, Ordering::Relaxed));
        open(&folder.path().join(name)).await.people()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_the_contract_of_drafts() {
    let (folder, _) = folder();
    let made = AtomicU32::new(0);
    drafts::suite(async || {
        let name = format!("{}.sqlite", made.fetch_add(1, Ordering::Relaxed));
        open(&folder.path().join(name)).await.drafts()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_the_contract_of_rollouts() {
    let (folder, _) = folder();
    let made = AtomicU32::new(0);
    rollouts::suite(async || {
        let name = format!("{}.sqlite", made.fetch_add(1, Ordering::Relaxed));
        open(&folder.path().join(name)).await.rollouts()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_the_contract_of_documents() {
    let (folder, _) = folder();
    let made = AtomicU32::new(0);
    campaigns::documents::suite(async || {
        let name = format!("{}.sqlite", made.fetch_add(1, Ordering::Relaxed));
        open(&folder.path().join(name)).await.documents()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_the_contract_of_databases() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crm.sqlite");
    for statement in campaigns::databases::SETUP {
        write(&path, statement).await;
    }

    let databases = Databases::open(&format!("crm=sqlite://{}", path.display())).unwrap();
    campaigns::databases::suite(&databases).await;
    assert!(Databases::open("crm=postgres://a crm2").is_err());
    assert!(Databases::open("a=sqlite:x a=sqlite:y").is_err());

    let missing = Databases::open("crm=sqlite:///nowhere/crm.sqlite").unwrap();
    let second = Duration::from_secs(1);
    let answer = missing.row("crm", "SELECT ?", "u", second).await;
    assert!(matches!(answer, Err(DatabaseError::Failed(_))), "{answer:?}");
}

/// A statement that never ends loses its connection, and the others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_statement_is_given_up() {
    let (_folder, path) = folder();
    for statement in campaigns::databases::SETUP {
        write(&path, statement).await;
    }
    let databases = Databases::open(&format!("crm=sqlite:{}", path.display())).unwrap();
    let endless = "SELECT COUNT(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 30000000) SELECT i FROM n WHERE i <> ?)";
    let late = databases.row("crm", endless, "u", Duration::from_millis(50)).await;
    assert_eq!(late, Err(DatabaseError::Late(50)));
    let sql = "SELECT tier FROM members WHERE id = ?";
    let row = databases.row("crm", sql, "u-7", Duration::from_secs(20)).await.unwrap();
    assert_eq!(row.map(|row| row["tier"].clone()), Some(json!("gold")));
}

#[tokio::test]
async fn opening_again_finds_everything() {
    // Characters that mean something in the address of a database mean nothing in a path.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a?b=c&d %41 ☔.sqlite");
    let catalog = open(&path).await;
    let first = catalog.create(counter("a:{x}"), change("first")).await.unwrap();
    let paused = Counter { state: State::Paused, ..first.counter.clone() };
    let second = catalog.replace(paused, Some(1), change("rests")).await.unwrap();

    let other = catalog.create(Counter { id: 34, ..counter("b") }, change("other")).await.unwrap();
    let policy = catalog.set_cache_policy(whole_policy(), Some(0), change("cached")).await.unwrap();
    let revision = catalog.revision().await.unwrap();
    catalog.close().await;
    assert!(matches!(catalog.list().await, Err(Error::Unavailable(_))));

    let catalog = open(&path).await;
    assert_eq!(catalog.list().await.unwrap(), [second.clone(), other]);
    assert_eq!(catalog.versions(1).await.unwrap(), [second, first]);
    assert_eq!(catalog.cache_policy().await.unwrap(), policy);
    assert_eq!(catalog.revision().await.unwrap(), revision);
    assert!(path.exists());
}

#[tokio::test]
async fn what_has_changed_is_read_and_nothing_else() {
    let (_folder, path) = folder();
    let [catalog, another] = [open(&path).await, open(&path).await];
    for number in 0..30 {
        catalog.create(counter(&format!("t{number}")), change("")).await.unwrap();
    }

    let before = catalog.revision().await.unwrap();
    let of_7 =
        Counter { description: "edited".to_owned(), ..catalog.get(7).await.unwrap().counter };
    let edited = another.replace(of_7, None, change("by another process")).await.unwrap();
    let added = catalog.create(counter("t30"), change("")).await.unwrap();

    assert_eq!(catalog.changed_since(before).await.unwrap(), [edited, added]);
    assert_eq!(catalog.changed_since(catalog.revision().await.unwrap()).await.unwrap(), []);

    let taken = catalog.create(counter("t7"), change("")).await;
    assert!(matches!(taken, Err(Error::Invalid(_))), "{taken:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_may_open_a_new_file_at_once() {
    let (_folder, path) = folder();
    let path = Arc::new(path);
    let opening: Vec<_> = (0..32)
        .map(|_| {
            let path = Arc::clone(&path);
            tokio::spawn(async move { open(&path).await.list().await.unwrap() })
        })
        .collect();
    for opened in opening {
        assert_eq!(opened.await.unwrap(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_processes_that_save_conflicting_counters_one_wins() {
    let (_folder, path) = folder();
    let handles = [open(&path).await, open(&path).await];
    for round in 0..25 {
        let saving = handles.clone().map(|handle| {
            let conflicting = counter(&format!("round{round}:{{x}}"));
            tokio::spawn(async move { handle.create(conflicting, change("race")).await })
        });
        let mut won = 0;
        for saved in saving {
            match saved.await.unwrap() {
                Ok(_) => won += 1,
                Err(Error::Invalid(problems)) => assert_eq!(problems[0].field, "template"),
                Err(error) => panic!("{error}"),
            }
        }

        assert_eq!(won, 1, "round {round}");
    }

    assert_eq!(handles[0].list().await.unwrap(), handles[1].list().await.unwrap());
    assert_eq!(handles[0].list().await.unwrap().len(), 25);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_of_two_processes_is_lost() {
    const EDITORS: usize = 6;
    const CHANGES: usize = 10;

    let (_folder, path) = folder();
    let handles = [open(&path).await, open(&path).await];
    handles[0]
        .create(Counter { description: "0".to_owned(), ..counter("a") }, change(""))
        .await
        .unwrap();

    let editing: Vec<_> = (0..EDITORS)
        .map(|editor| {
            let handle = handles[editor % handles.len()].clone();
            tokio::spawn(async move {
                for _ in 0..CHANGES {
                    increment(&handle, 1).await;
                }
            })
        })
        .collect();

    for editor in editing {
        editor.await.unwrap();
    }
    let versions = handles[1].versions(1).await.unwrap();
    assert_eq!(versions[0].counter.description, (EDITORS * CHANGES).to_string());

    let numbers: Vec<u32> = versions.iter().rev().map(|version| version.version).collect();
    assert_eq!(numbers, (1..=(EDITORS * CHANGES) as u32 + 1).collect::<Vec<_>>());
}

#[tokio::test]
async fn readers_go_on_while_another_process_writes_and_a_change_waits_for_it() {
    use sqlx::{ConnectOptions, Connection};

    let (_folder, path) = folder();
    let catalog = open(&path).await;
    let first = catalog.create(counter("a"), change("")).await.unwrap();
    let mut other =
        sqlx::sqlite::SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    let mut writing = other.begin_with("BEGIN IMMEDIATE").await.unwrap();

    sqlx::query("DELETE FROM counter_versions").execute(&mut *writing).await.unwrap();
    let mut creating = catalog.create(counter("b"), change(""));
    assert!(unless_it_waits_longer(&mut creating, 0).await.is_none());
    assert_eq!(catalog.list().await.unwrap(), std::slice::from_ref(&first));
    assert_eq!(catalog.get(1).await.unwrap(), first);
    writing.rollback().await.unwrap();
    assert_eq!(creating.await.unwrap().counter.id, 2);
}

/// A caller may hang up at any point where a change waits. That leaves neither a part of the change
/// nor its lock.
#[tokio::test]
async fn a_change_that_is_given_up_leaves_nothing_half_done() {
    let (_folder, path) = folder();
    let catalog = open(&path).await;
    catalog
        .create(Counter { description: "0".to_owned(), ..counter("a") }, change(""))
        .await
        .unwrap();

    // How often a change waits depends on how fast SQLite's thread is, so each number of waits gets
    // several tries.
    let mut given_up = 0;
    for round in 0..64 {
        let creating = catalog.create(counter(&format!("t{round}")), change("may be given up"));
        given_up += i64::from(unless_it_waits_longer(creating, round % 8).await.is_none());
        increment(&catalog, 1).await;

        let changes: u32 =
            catalog.list().await.unwrap().iter().map(|versioned| versioned.version).sum();
        assert_eq!(i64::from(changes), catalog.revision().await.unwrap());
    }

    assert!(given_up > 0);
    assert_eq!(catalog.get(1).await.unwrap().counter.description, "64");
}

#[tokio::test]
async fn a_file_of_an_older_schema_opens() {
    let (_folder, path) = folder();
    write(&path, include_str!("fixtures/schema-1.sql")).await;

    let catalog = open(&path).await;
    let versions = catalog.versions(34).await.unwrap();
    assert_eq!(catalog.list().await.unwrap(), versions[..1]);

    let newest = &versions[0];
    let first = &versions[1];
    assert_eq!((newest.version, &*newest.changed_by, newest.changed_at), (2, "max", 1_727_215_300));
    assert_eq!(
        (newest.counter.state, newest.counter.active_from),
        (State::Active, Some(1_727_215_200))
    );
    assert_eq!((first.counter.state, &*first.reason), (State::Draft, "first"));
    assert_eq!(catalog.create(counter("new"), change("")).await.unwrap().counter.id, 35);
    assert_eq!(catalog.revision().await.unwrap(), 3);

    // What schema 1 did not have is there, and a file that was brought up to date stays so.
    assert_eq!(catalog.cache_policy().await.unwrap().version, 0);
    let policy = catalog.set_cache_policy(whole_policy(), Some(0), change("cached")).await.unwrap();
    catalog.close().await;
    assert_eq!(schema_version(&path).await, 10);
    assert_eq!(open(&path).await.cache_policy().await.unwrap(), policy);
}

#[tokio::test]
async fn a_file_from_before_there_were_people_opens() {
    let (_folder, path) = folder();
    write(&path, include_str!("fixtures/schema-2.sql")).await;

    let catalog = open(&path).await;
    assert_eq!(catalog.cache_policy().await.unwrap().reason, "canary");
    assert_eq!(catalog.get(34).await.unwrap().version, 2);

    let people = catalog.people();
    assert_eq!(people.users().await.unwrap(), []);
    people.add_user(people::new_user("zoe", Role::Admin)).await.unwrap();
    catalog.close().await;
    assert_eq!(schema_version(&path).await, 10);

    assert_eq!(
        open(&path).await.people().user_called("zoe").await.unwrap().unwrap().role,
        Role::Admin
    );
}

#[tokio::test]
async fn drafts_of_an_older_schema_are_of_counters() {
    let (_folder, path) = folder();
    write(&path, include_str!("fixtures/schema-7.sql")).await;

    let catalog = open(&path).await;
    let drafts = catalog.drafts();

    let proposed = drafts.get(1).await.unwrap();
    assert_eq!(
        (&*proposed.kind, proposed.document_id(), proposed.base_version),
        ("counter", 34, 2)
    );
    assert_eq!((proposed.state, proposed.revision), (DraftState::Review, 3));
    assert_eq!(proposed.configuration["filter"]["rhs"], json!(1.5));
    assert_eq!(proposed.contributors, ["zoe", "max"]);

    let counter: Counter = serde_json::from_value(proposed.configuration).unwrap();
    assert_eq!((counter.id, counter.active_from), (34, Some(1_727_215_200)));

    let applied = drafts.get(2).await.unwrap();
    assert_eq!((&*applied.kind, applied.state), ("counter", DraftState::Applied));
    assert_eq!((applied.applied_version, applied.contributors.len()), (1, 0));
    assert_eq!(applied.writers(), ["ada"]);

    // New ones take the next id, whatever their kind.
    let new = Draft::new("campaign", json!({}), 0, "zoe", 7);
    let new = drafts.create(new).await.unwrap();
    assert_eq!((new.id, &*drafts.get(3).await.unwrap().kind), (3, "campaign"));
    catalog.close().await;
    assert_eq!(schema_version(&path).await, 10);
    let catalog = open(&path).await;
    assert_eq!(catalog.drafts().list(true, 9).await.unwrap().len(), 2);

    // So do documents of products, which schema 7 did not have.
    let documents = catalog.documents();
    assert_eq!(documents.newest().await.unwrap(), []);
    let put = documents.put(campaigns::documents::document("campaign", "", json!({})), 0).await;
    assert!(matches!(put, Ok(Put::Stored(stored)) if stored.id == "1" && stored.version == 1));
}

async fn schema_version(path: &Path) -> i64 {
    use sqlx::ConnectOptions;
    let mut connection =
        sqlx::sqlite::SqliteConnectOptions::new().filename(path).connect().await.unwrap();
    sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut connection).await.unwrap()
}

#[tokio::test]
async fn a_file_that_is_no_catalog_is_refused_with_what_to_do() {
    let (folder, path) = folder();
    open(&path).await.close().await;
    write(&path, "PRAGMA user_version = 99").await;
    refused(&path, "its schema has version 99").await;

    let foreign = folder.path().join("foreign.sqlite");
    write(&foreign, "CREATE TABLE songs (title TEXT)").await;

    let before = std::fs::read(&foreign).unwrap();
    refused(&foreign, "of another program: choose another file").await;
    assert_eq!(std::fs::read(&foreign).unwrap(), before);

    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "Rain from Tuesday on.\n".repeat(500)).unwrap();
    refused(&text, "it is no catalog of raingauge").await;

    refused(&folder.path().join("missing").join("catalog.sqlite"), "the folder must exist").await;
    refused(folder.path(), "it cannot be opened").await;
}

#[tokio::test]
async fn damage_is_reported_and_never_served() {
    let (_folder, path) = folder();
    let catalog = open(&path).await;
    for number in 0..60 {
        catalog.create(counter(&format!("t{number}")), change("")).await.unwrap();
    }
    catalog.close().await;

    let whole = std::fs::read(&path).unwrap();
    let page_len = 4_096;

    // Every page with a configuration on it, and none of the schema.
    let mut damaged = whole.clone();
    let is_of_counters = |page: &&mut [u8]| page.windows(9).any(|text| text == b"rain_drop");
    damaged.chunks_mut(page_len).filter(is_of_counters).for_each(|page| page.fill(0xa5));
    std::fs::write(&path, &damaged).unwrap();

    let catalog = open(&path).await;
    says(catalog.list().await.unwrap_err(), "it is damaged: restore it from a backup");
    says(catalog.create(counter("new"), change("")).await.unwrap_err(), "it is damaged");
    catalog.close().await;

    std::fs::write(&path, &whole[..page_len / 2]).unwrap();
    refused(&path, "restore it from a backup").await;

    std::fs::write(&path, &whole).unwrap();
    write(&path, "UPDATE counter_versions SET configuration = '{\"id\": 7}' WHERE counter_id = 7")
        .await;
    says(open(&path).await.list().await.unwrap_err(), "version 1 of counter 7 cannot be read");

    std::fs::write(&path, &whole).unwrap();
    write(
        &path,
        "INSERT INTO cache_policies VALUES (1, '{\"strategy\": \"best\"}', 'hand', '', 0)",
    )
    .await;
    says(
        open(&path).await.cache_policy().await.unwrap_err(),
        "version 1 of the cache policy cannot be read",
    );
}

async fn refused(path: &Path, sentence: &str) {
    let error = SqliteCatalog::open(path).await.unwrap_err();
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    says(error, sentence);
}

fn says(error: Error, sentence: &str) {
    assert!(error.to_string().contains(sentence), "{error}");
}

/// Runs statements on a file, which is made when it does not exist, past the catalog.
async fn write(path: &Path, statements: &'static str) {
    use sqlx::{ConnectOptions, Connection};
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut connection = options.connect().await.unwrap();
    sqlx::raw_sql(statements).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn sqlite_and_memory_answer_alike(steps in histories::steps()) {
        Runtime::new().unwrap().block_on(async {
            let (_folder, path) = folder();
            histories::compare(&open(&path).await, steps).await;
        });
    }
}

#[test]
fn sqlite_keeps_the_contract_of_books() {
    let (folder, _) = folder();
    let made = AtomicU32::new(0);
    let runtime = Runtime::new().unwrap();
    let handle = runtime.handle();
    let _entered = handle.enter();
    books::suite(|| {
        let path = folder.path().join(format!("{}.sqlite", made.fetch_add(1, Ordering::Relaxed)));
        handle.block_on(SqliteBooks::open(&path, points::BOOKS, handle.clone())).unwrap()
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_the_contract_of_queues() {
    let (folder, _) = folder();
    let made = AtomicU32::new(0);
    let clock = Arc::new(ManualClock::at_s(1_727_136_000));
    let fresh = async || {
        let path = folder.path().join(format!("{}.sqlite", made.fetch_add(1, Ordering::Relaxed)));
        let books = SqliteBooks::open(&path, 1, Handle::current()).await.unwrap();
        books.queues(clock.clone())
    };
    let pass = async |time: Duration| clock.set_s(clock.now_s() + time.as_secs() as i64);
    queues::suite(fresh, pass).await;
}

/// Tellers of several processes give the same commands, some of them are ended before they write,
/// and every command happens once.
#[test]
fn several_tellers_share_books() {
    let (_folder, path) = folder();
    let runtime = Runtime::new().unwrap();
    let handle = runtime.handle();
    let open = || {
        let opening = SqliteBooks::open(&path, points::BOOKS, handle.clone());
        points::Teller::new(handle.block_on(opening).unwrap())
    };
    let commands: Vec<u64> = (0..160).collect();

    std::thread::scope(|scope| {
        for teller in 0..3 {
            let open = &open;
            let commands = &commands;
            scope.spawn(move || {
                let teller_books = open();
                let turns: Vec<&[u64]> = commands.chunks(points::TURN).collect();
                for turn in 0..turns.len() {
                    let numbers = turns[(turn * (2 * teller + 1) + teller * 5) % turns.len()];
                    let ended = std::panic::AssertUnwindSafe(|| {
                        teller_books.turn_after(numbers, || {
                            let message = "this teller ends in the middle of a turn";
                            std::panic::resume_unwind(Box::new(message));
                        })
                    });
                    if turn % 7 == teller {
                        assert!(std::panic::catch_unwind(ended).is_err());
                    }
                    teller_books.turn(numbers).unwrap();
                }
            });
        }
    });

    let teller = open();
    for numbers in commands.chunks(points::TURN) {
        teller.turn(numbers).unwrap();
    }
    teller.examine(commands.len() as u64, handle);
}

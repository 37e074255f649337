//! What the catalog promises, on one instance and on several over one database.

use crate::histories::{self, unless_it_waits_longer};
use crate::support::{Server, name_of, sentence};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use raingauge_core::counter::{Counter, State};
use raingauge_policy::cache::Policy;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{DatabaseError, DatabaseLookup};
use raingauge_ports::catalog::{Catalog, Change, Error, Policies, Versioned, VersionedPolicy};
use raingauge_ports::contract::catalog::{change, counter, increment, suite, whole_policy};
use raingauge_ports::contract::{campaigns, checks, drafts, instances, people, rollouts};
use raingauge_sql::{Databases, MySqlCatalog, MySqlOptions};
use sqlx::Connection;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_keeps_the_contract() {
    let Some(server) = Server::shared() else {
        return;
    };
    suite(async || server.catalog().await).await;
    server.clean_up().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_keeps_the_contracts_of_instances_and_checks() {
    let Some(server) = Server::shared() else {
        return;
    };
    instances::suite(async || server.catalog().await.instances()).await;
    checks::suite(async || server.catalog().await.checks()).await;
    server.clean_up().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_keeps_the_contract_of_documents() {
    let Some(server) = Server::shared() else {
        return;
    };
    campaigns::documents::suite(async || server.catalog().await.documents()).await;
    server.clean_up().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_keeps_the_contract_of_databases() {
    let Some(server) = Server::shared() else {
        return;
    };
    let name = server.empty_database().await;
    let setup = campaigns::databases::SETUP.join(";");
    server.run(&name, &format!("ALTER DATABASE {name} CHARACTER SET utf8mb4; {setup}")).await;
    let databases = Databases::open(&format!("crm={}", server.options(&name).url)).unwrap();
    campaigns::databases::suite(&databases).await;

    // Decimals are numbers, and a slow statement is given up.
    let second = Duration::from_secs(5);
    let sql = "SELECT CAST(12.5 AS DECIMAL(6, 1)) AS d FROM members WHERE id = ?";
    let row = databases.row("crm", sql, "u-7", second).await.unwrap();
    assert_eq!(row.map(|row| row["d"].clone()), Some(serde_json::json!(12.5)));
    let slow = "SELECT SLEEP(20) AS s FROM members WHERE id = ?";
    let late = databases.row("crm", slow, "u-7", Duration::from_millis(50)).await;
    assert_eq!(late, Err(DatabaseError::Late(50)));
    drop(databases);
    server.clean_up().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_keeps_the_contract_of_people() {
    let Some(server) = Server::shared() else {
        return;
    };
    people::suite(async || server.catalog().await.people()).await;
    server.clean_up().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_keeps_the_contract_of_drafts() {
    let Some(server) = Server::shared() else {
        return;
    };
    drafts::suite(async || server.catalog().await.drafts()).await;
    server.clean_up().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_keeps_the_contract_of_rollouts() {
    let Some(server) = Server::shared() else {
        return;
    };
    rollouts::suite(async || server.catalog().await.rollouts()).await;
    server.clean_up().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_keep_the_contract_together() {
    let Some(server) = Server::shared() else {
        return;
    };
    suite(async || Two::open(&server.database().await).await).await;
    server.clean_up().await;
}

/// Two instances over one database, which answer calls by turns.
struct Two {
    instances: [MySqlCatalog; 2],
    calls: AtomicUsize,
}

impl Two {
    async fn open(options: &MySqlOptions) -> Self {
        let instances = [
            MySqlCatalog::open(options).await.unwrap(),
            MySqlCatalog::open(options).await.unwrap(),
        ];
        Self { instances, calls: AtomicUsize::new(0) }
    }

    fn next(&self) -> &MySqlCatalog {
        &self.instances[self.calls.fetch_add(1, Ordering::Relaxed) % self.instances.len()]
    }
}

impl Catalog for Two {
    fn list(&self) -> BoxFuture<'_, Result<Vec<Versioned>, Error>> {
        self.next().list()
    }

    fn get(&self, id: u32) -> BoxFuture<'_, Result<Versioned, Error>> {
        self.next().get(id)
    }

    fn versions(&self, id: u32) -> BoxFuture<'_, Result<Vec<Versioned>, Error>> {
        self.next().versions(id)
    }

    fn create(&self, counter: Counter, change: Change) -> BoxFuture<'_, Result<Versioned, Error>> {
        self.next().create(counter, change)
    }

    fn replace(
        &self,
        counter: Counter,
        expected: Option<u32>,
        change: Change,
    ) -> BoxFuture<'_, Result<Versioned, Error>> {
        self.next().replace(counter, expected, change)
    }

    fn revision(&self) -> BoxFuture<'_, Result<i64, Error>> {
        self.next().revision()
    }
}

impl Policies for Two {
    fn cache_policy(&self) -> BoxFuture<'_, Result<VersionedPolicy, Error>> {
        self.next().cache_policy()
    }

    fn cache_policies(&self, len_max: usize) -> BoxFuture<'_, Result<Vec<VersionedPolicy>, Error>> {
        self.next().cache_policies(len_max)
    }

    fn set_cache_policy(
        &self,
        policy: Policy,
        expected: Option<u32>,
        change: Change,
    ) -> BoxFuture<'_, Result<VersionedPolicy, Error>> {
        self.next().set_cache_policy(policy, expected, change)
    }
}

#[test]
fn mysql_and_memory_answer_alike() {
    let Some(server) = Server::shared() else {
        return;
    };
    let runtime = Runtime::new().unwrap();
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(12)
    });
    let compared = runner.run(&histories::steps(), |steps| {
        runtime.block_on(async { histories::compare(&server.catalog().await, steps).await });
        Ok(())
    });

    compared.unwrap_or_else(|error| panic!("{error}"));
    runtime.block_on(server.clean_up());
}

#[tokio::test]
async fn opening_again_finds_everything() {
    let Some(server) = Server::shared() else {
        return;
    };
    let options = server.database().await;
    let catalog = MySqlCatalog::open(&options).await.unwrap();
    let first = catalog.create(counter("a:{x}"), change("first")).await.unwrap();
    let paused = Counter { state: State::Paused, ..first.counter.clone() };
    let second = catalog.replace(paused, Some(1), change("rests")).await.unwrap();

    let policy = catalog.set_cache_policy(whole_policy(), Some(0), change("cached")).await.unwrap();
    let revision = catalog.revision().await.unwrap();
    catalog.close().await;
    assert!(sentence(catalog.list().await).contains("raingauge is stopping"));

    let catalog = MySqlCatalog::open(&options).await.unwrap();
    assert_eq!(catalog.list().await.unwrap(), std::slice::from_ref(&second));
    assert_eq!(catalog.versions(1).await.unwrap(), [second, first]);
    assert_eq!(catalog.cache_policy().await.unwrap(), policy);
    assert_eq!(catalog.revision().await.unwrap(), revision);
    server.clean_up().await;
}

/// Who reads a revision and then the counters finds every change up to that revision, whichever
/// instance made it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_follows_the_revision_misses_nothing() {
    const EDITORS: usize = 4;
    const CHANGES: usize = 15;

    let Some(server) = Server::shared() else {
        return;
    };
    let options = server.database().await;
    let instances =
        [MySqlCatalog::open(&options).await.unwrap(), MySqlCatalog::open(&options).await.unwrap()];

    for number in 0..EDITORS {
        let zero = Counter { description: "0".to_owned(), ..counter(&format!("t{number}")) };
        instances[0].create(zero, change("")).await.unwrap();
    }

    let editing: Vec<_> = (0..EDITORS)
        .map(|editor| {
            let instance = instances[editor % 2].clone();
            tokio::spawn(async move {
                for _ in 0..CHANGES {
                    increment(&instance, 1 + (editor as u32 / 2)).await;
                }
            })
        })
        .collect();

    let all = (EDITORS + EDITORS * CHANGES) as i64;
    let follower = MySqlCatalog::open(&options).await.unwrap();
    let mut seen = 0;
    while seen < all {
        let revision = follower.revision().await.unwrap();
        assert!(revision >= seen, "the revision fell from {seen} to {revision}");

        let changes: u32 =
            follower.list().await.unwrap().iter().map(|versioned| versioned.version).sum();
        assert!(
            i64::from(changes) >= revision,
            "{revision} was seen, and {changes} changes are there"
        );
        seen = revision;
    }

    for editor in editing {
        editor.await.unwrap();
    }
    assert_eq!(follower.revision().await.unwrap(), all);
    server.clean_up().await;
}

#[tokio::test]
async fn readers_go_on_while_a_change_waits_for_another() {
    let Some(server) = Server::shared() else {
        return;
    };
    let options = server.database().await;
    let catalog = MySqlCatalog::open(&options).await.unwrap();
    let first = catalog.create(counter("a"), change("")).await.unwrap();
    let mut other = server.connect(&name_of(&options)).await;
    let mut holding = other.begin().await.unwrap();

    sqlx::query("UPDATE catalog_revision SET revision = revision + 1")
        .execute(&mut *holding)
        .await
        .unwrap();
    let impatient = MySqlOptions { call_timeout: Duration::from_secs(1), ..options };
    let impatient = MySqlCatalog::open(&impatient).await.unwrap();

    // The server and the caller give up at about the same time; either may be the first to report
    // it.
    let refusal = sentence(impatient.create(counter("b"), change("")).await);
    assert!(
        refusal.contains("keeps it busy") || refusal.contains("did not answer within 1000 ms"),
        "{refusal}"
    );
    assert_eq!(impatient.list().await.unwrap(), std::slice::from_ref(&first));
    assert_eq!(impatient.revision().await.unwrap(), 1);

    let mut creating = catalog.create(counter("c"), change(""));
    assert!(unless_it_waits_longer(&mut creating, 0).await.is_none());
    assert_eq!(catalog.get(1).await.unwrap(), first);
    holding.rollback().await.unwrap();
    assert_eq!(creating.await.unwrap().counter.id, 2);
    assert_eq!(impatient.revision().await.unwrap(), 2);
    server.clean_up().await;
}

/// A caller may hang up at any point where a change waits. That leaves neither a part of the change
/// nor its lock.
#[tokio::test]
async fn a_change_that_is_given_up_leaves_nothing_half_done() {
    let Some(server) = Server::shared() else {
        return;
    };
    let catalog = server.catalog().await;
    catalog
        .create(Counter { description: "0".to_owned(), ..counter("a") }, change(""))
        .await
        .unwrap();

    let mut given_up = 0;
    for round in 0..48 {
        let creating = catalog.create(counter(&format!("t{round}")), change("may be given up"));
        given_up += i64::from(unless_it_waits_longer(creating, round % 16).await.is_none());
        increment(&catalog, 1).await;

        let changes: u32 =
            catalog.list().await.unwrap().iter().map(|versioned| versioned.version).sum();
        assert_eq!(i64::from(changes), catalog.revision().await.unwrap());
    }

    assert!(given_up > 0);
    assert_eq!(catalog.get(1).await.unwrap().counter.description, "48");
    server.clean_up().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_callers_than_connections_wait_for_each_other() {
    let Some(server) = Server::shared() else {
        return;
    };
    let options = MySqlOptions { connections_max: 1, ..server.database().await };
    let catalog = MySqlCatalog::open(&options).await.unwrap();
    let calls: Vec<_> = (0..32)
        .map(|number| {
            let catalog = catalog.clone();
            tokio::spawn(async move {
                catalog.create(counter(&format!("t{number}")), change("")).await.unwrap()
            })
        })
        .collect();

    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(catalog.list().await.unwrap().len(), 32);
    server.clean_up().await;
}

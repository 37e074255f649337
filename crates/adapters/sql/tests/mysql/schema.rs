//! Migrations, and databases that are not what this program expects.

use crate::support::{Server, name_of, says};
use raingauge_ports::catalog::{Catalog, Policies};
use raingauge_ports::contract::catalog::{change, counter};
use raingauge_ports::drafts::{Draft, Drafts};
use raingauge_sql::{Migrated, MySqlCatalog};
use serde_json::json;

#[tokio::test]
async fn a_second_migration_changes_nothing() {
    let Some(server) = Server::shared() else {
        return;
    };
    let options = server.options(&server.empty_database().await);
    assert_eq!(MySqlCatalog::migrate(&options).await.unwrap(), Migrated { from: 0, to: 9 });
    let catalog = MySqlCatalog::open(&options).await.unwrap();
    let created = catalog.create(counter("a"), change("")).await.unwrap();
    assert_eq!(MySqlCatalog::migrate(&options).await.unwrap(), Migrated { from: 9, to: 9 });
    assert_eq!(catalog.list().await.unwrap(), [created]);
    assert_eq!(catalog.revision().await.unwrap(), 1);
    server.clean_up().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_may_migrate_at_once() {
    let Some(server) = Server::shared() else {
        return;
    };
    let options = server.options(&server.empty_database().await);
    let migrating: Vec<_> = (0..8)
        .map(|_| {
            let options = options.clone();
            tokio::spawn(async move { MySqlCatalog::migrate(&options).await.unwrap() })
        })
        .collect();

    let mut made = 0;
    for migrated in migrating {
        made += usize::from(migrated.await.unwrap().from == 0);
    }
    assert_eq!(made, 1);
    MySqlCatalog::open(&options).await.unwrap().create(counter("a"), change("")).await.unwrap();
    server.clean_up().await;
}

#[tokio::test]
async fn a_migration_that_stopped_halfway_is_completed() {
    let Some(server) = Server::shared() else {
        return;
    };
    let options = server.database().await;
    let name = name_of(&options);
    server.run(&name, "DROP VIEW counters; DROP TABLE cache_policies; UPDATE raingauge_schema SET version = 0").await;
    says(MySqlCatalog::open(&options).await, "run `raingauge migrate`");
    assert_eq!(MySqlCatalog::migrate(&options).await.unwrap(), Migrated { from: 0, to: 9 });

    let catalog = MySqlCatalog::open(&options).await.unwrap();
    catalog.create(counter("a"), change("")).await.unwrap();
    assert_eq!(catalog.cache_policy().await.unwrap().version, 0);

    // Stopped before the first table of the catalog.
    let name = server.empty_database().await;
    server
        .run(
            &name,
            "CREATE TABLE raingauge_schema (only_row TINYINT PRIMARY KEY, version BIGINT NOT NULL)",
        )
        .await;
    assert_eq!(
        MySqlCatalog::migrate(&server.options(&name)).await.unwrap(),
        Migrated { from: 0, to: 9 }
    );
    server.clean_up().await;
}

#[tokio::test]
async fn drafts_of_an_older_schema_are_of_counters() {
    let Some(server) = Server::shared() else {
        return;
    };
    let options = server.database().await;
    let catalog = MySqlCatalog::open(&options).await.unwrap();
    let draft = Draft::new("counter", json!({ "id": 34, "name": "rain" }), 2, "zoe", 7);
    let kept = catalog.drafts().create(draft).await.unwrap();

    let name = name_of(&options);
    server.run(&name, "DROP TABLE draft_kinds; UPDATE raingauge_schema SET version = 6").await;

    assert_eq!(MySqlCatalog::migrate(&options).await.unwrap(), Migrated { from: 6, to: 9 });
    let catalog = MySqlCatalog::open(&options).await.unwrap();
    assert_eq!(catalog.drafts().get(kept.id).await.unwrap(), kept);

    // An instance of the older release goes on while others are replaced.
    server.run(&name, "DELETE FROM draft_kinds").await;
    assert_eq!(catalog.drafts().get(kept.id).await.unwrap(), kept);
    server.clean_up().await;
}

#[tokio::test]
async fn a_schema_that_does_not_fit_is_refused_with_what_to_do() {
    let Some(server) = Server::shared() else {
        return;
    };
    let name = server.empty_database().await;
    let options = server.options(&name);
    says(
        MySqlCatalog::open(&options).await,
        "it has no tables of raingauge: run `raingauge migrate`",
    );
    MySqlCatalog::migrate(&options).await.unwrap();

    let before = MySqlCatalog::open(&options).await.unwrap();
    server.run(&name, "UPDATE raingauge_schema SET version = 99").await;

    let newer = "its schema has version 99, and this raingauge knows versions up to 9";
    says(MySqlCatalog::open(&options).await, newer);
    says(MySqlCatalog::migrate(&options).await, newer);
    says(MySqlCatalog::lazy(&options).unwrap().list().await, newer);

    // Who was connected goes on, so that a migration does not stop the instances that are to be
    // replaced after it.
    assert_eq!(before.list().await.unwrap(), []);
    server.clean_up().await;
}

#[tokio::test]
async fn tables_of_another_program_are_left_alone() {
    let Some(server) = Server::shared() else {
        return;
    };
    let name = server.empty_database().await;
    server.run(&name, "CREATE TABLE counters (title TEXT)").await;
    says(MySqlCatalog::migrate(&server.options(&name)).await, "it has tables of another program");

    let mut connection = server.connect(&name).await;
    let tables: Vec<(String,)> = sqlx::query_as(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();

    assert_eq!(tables, [("counters".to_owned(),)]);
    server.clean_up().await;
}

#[tokio::test]
async fn a_row_altered_by_hand_is_named_and_never_served() {
    let Some(server) = Server::shared() else {
        return;
    };
    let options = server.database().await;
    let name = name_of(&options);
    let catalog = MySqlCatalog::open(&options).await.unwrap();

    for number in 1..=8 {
        catalog.create(counter(&format!("t{number}")), change("")).await.unwrap();
    }
    server
        .run(
            &name,
            "UPDATE counter_versions SET configuration = '{\"id\": 7}' WHERE counter_id = 7",
        )
        .await;
    says(catalog.list().await, "version 1 of counter 7 cannot be read");
    says(catalog.get(7).await, "version 1 of counter 7 cannot be read");
    says(catalog.create(counter("new"), change("")).await, "version 1 of counter 7 cannot be read");
    assert_eq!(catalog.get(6).await.unwrap().counter.id, 6);

    server
        .run(
            &name,
            "INSERT INTO cache_policies VALUES (1, '{\"strategy\": \"best\"}', 'hand', '', 0)",
        )
        .await;
    says(catalog.cache_policy().await, "version 1 of the cache policy cannot be read");

    server.run(&name, "DELETE FROM catalog_revision").await;
    says(catalog.revision().await, "its table catalog_revision does not have its one row");
    says(
        catalog.create(counter("new"), change("")).await,
        "its table catalog_revision does not have its one row",
    );

    server.run(&name, "DROP VIEW counters").await;
    says(catalog.list().await, "run `raingauge migrate`");
    server.clean_up().await;
}

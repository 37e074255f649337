//! Addresses that lead nowhere, and users who may not.

use crate::server::{PrivateServer, free_port};
use crate::support::{Server, name_of, says, sentence};
use raingauge_core::counter::Counter;
use raingauge_ports::catalog::Catalog;
use raingauge_ports::contract::catalog::{change, counter};
use raingauge_sql::{MySqlCatalog, MySqlOptions};

const PASSWORD: &str = "never-to-be-told-1";

/// The rights that docs/catalog.md lists.
const MIGRATES: &str = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, CREATE VIEW";

async fn make_user(server: &Server, name: &str) {
    server.run("", &format!("CREATE USER '{name}'@'%' IDENTIFIED BY '{PASSWORD}'")).await;
}

#[tokio::test]
async fn a_wrong_address_is_explained_without_its_password() {
    let Some(private) = PrivateServer::start(&[]).await else { return };
    let server = private.databases();
    let options = server.database().await;
    let user = "known";
    make_user(&server, user).await;
    let cases = [
        (server.options_of(user, "guessed-123", &name_of(&options)), "correct the name and the password"),
        (server.options_of("nobody_at_all", PASSWORD, &name_of(&options)), "correct the name and the password"),
        (server.options_of(user, PASSWORD, &name_of(&options)), "this user lacks a right"),
        (server.options("raingauge_test_not_there"), "there is no such database"),
        (
            MySqlOptions::new(format!("mysql://{user}:{PASSWORD}@127.0.0.1:{}/d", free_port())),
            "nothing listens there: start the server, or correct host and port",
        ),
        (
            MySqlOptions::new(format!("mysql://{user}:{PASSWORD}@no-such-host.invalid/d")),
            "it cannot be reached: correct host and port",
        ),
        (
            MySqlOptions::new(format!("mysql://{user}:{PASSWORD}@h/d?socket=/no/such/mysqld.sock")),
            "MySQL at /no/such/mysqld.sock, database d: a file that the address names cannot be opened",
        ),
    ];
    for (options, part) in cases {
        let opened = sentence(MySqlCatalog::open(&options).await);
        assert!(opened.contains(part), "{opened}");
        let catalog = MySqlCatalog::lazy(&options).unwrap();
        let called = sentence(catalog.list().await);
        assert_eq!(called, opened);
        let migrated = sentence(MySqlCatalog::migrate(&options).await);
        assert!(migrated.contains(part), "{migrated}");
        for text in [opened, migrated, format!("{catalog:?}{options:?}")] {
            assert!(!text.contains(PASSWORD) && !text.contains("guessed"), "{text}");
        }
    }
}

#[tokio::test]
async fn the_documented_rights_are_enough() {
    let Some(private) = PrivateServer::start(&[]).await else { return };
    let server = private.databases();
    let name = server.empty_database().await;
    let [migrates, serves] = ["migrates", "serves"];
    make_user(&server, migrates).await;
    make_user(&server, serves).await;
    server.run("", &format!("GRANT {MIGRATES} ON {name}.* TO '{migrates}'@'%'")).await;
    let migrating = server.options_of(migrates, PASSWORD, &name);
    MySqlCatalog::migrate(&migrating).await.unwrap();
    server
        .run(
            "",
            &format!(
                "GRANT SELECT, INSERT ON {name}.* TO '{serves}'@'%';
                 GRANT UPDATE ON {name}.catalog_revision TO '{serves}'@'%'"
            ),
        )
        .await;
    let serving = server.options_of(serves, PASSWORD, &name);
    says(MySqlCatalog::migrate(&server.options_of(serves, PASSWORD, "mysql")).await, "this user lacks a right");
    // The user who made the tables may go.
    server.run("", &format!("DROP USER '{migrates}'@'%'")).await;
    let catalog = MySqlCatalog::open(&serving).await.unwrap();
    let first = catalog.create(counter("a"), change("")).await.unwrap();
    catalog.replace(Counter { name: "b".to_owned(), ..first.counter }, None, change("")).await.unwrap();
    catalog.set_cache_policy(Default::default(), None, change("")).await.unwrap();
    assert_eq!(catalog.versions(1).await.unwrap().len(), 2);
    assert_eq!(catalog.list().await.unwrap().len(), 1);
    assert_eq!(catalog.revision().await.unwrap(), 3);
}

//! Servers that go away, come back, freeze, or may only be read.

use crate::server::PrivateServer;
use crate::support::{name_of, says, sentence};
use raingauge_ports::catalog::{Catalog, Policies};
use raingauge_ports::contract::catalog::{change, counter, suite};
use raingauge_sql::{MySqlCatalog, MySqlOptions};
use rustix::process::Signal;
use std::time::Duration;

#[tokio::test]
async fn a_server_that_went_away_and_came_back_needs_no_restart() {
    let Some(mut server) = PrivateServer::start(&[]).await else {
        return;
    };
    let options = server.databases().database().await;
    let catalog = MySqlCatalog::open(&options).await.unwrap();
    let mut kept = vec![catalog.create(counter("a"), change("before")).await.unwrap()];

    for (round, signal) in [Signal::TERM, Signal::KILL].into_iter().enumerate() {
        server.stop(signal);
        let place = format!("127.0.0.1:{}", server.port());
        for answer in [
            catalog.list().await.map(drop),
            catalog.create(counter("lost"), change("")).await.map(drop),
        ] {
            let sentence = sentence(answer);
            assert!(
                sentence.contains(&place) && sentence.contains("nothing listens there"),
                "{sentence}"
            );
        }

        says(MySqlCatalog::open(&options).await, "nothing listens there");
        server.go().await;

        // What was acknowledged is there, also after a crash.
        assert_eq!(catalog.list().await.unwrap(), kept);
        kept.push(catalog.create(counter(&format!("t{round}")), change("after")).await.unwrap());
        assert_eq!(catalog.revision().await.unwrap(), kept.len() as i64);
    }
}

#[tokio::test]
async fn a_server_that_answers_nothing_is_given_up() {
    let Some(server) = PrivateServer::start(&[]).await else {
        return;
    };
    let options = MySqlOptions {
        connections_max: 2,
        connect_timeout: Duration::from_millis(200),
        call_timeout: Duration::from_millis(400),
        ..server.databases().database().await
    };

    let catalog = MySqlCatalog::open(&options).await.unwrap();
    let first = catalog.create(counter("a"), change("")).await.unwrap();
    server.freeze();

    // More calls than there are connections: none is kept by a call that was given up.
    for _ in 0..5 {
        says(catalog.revision().await, "it did not answer within");
    }
    says(catalog.create(counter("lost"), change("")).await, "it did not answer within");
    says(MySqlCatalog::open(&options).await, "it did not answer within");
    server.thaw();

    // The time of the small limits may pass once more on a slow machine, but not for ever.
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let listed = loop {
        match catalog.list().await {
            Ok(listed) => break listed,
            Err(error) => assert!(std::time::Instant::now() < deadline, "{error}"),
        }
    };
    assert_eq!(listed, [first]);
}

#[tokio::test]
async fn a_role_may_start_before_its_database() {
    let Some(mut server) = PrivateServer::prepare(&[]) else {
        return;
    };
    let options = server.databases().options("later");
    let catalog = MySqlCatalog::lazy(&options).unwrap();
    says(catalog.list().await, "nothing listens there");
    says(MySqlCatalog::open(&options).await, "nothing listens there");
    server.go().await;
    says(catalog.list().await, "there is no such database: make it, then run `raingauge migrate`");
    server.databases().run("", "CREATE DATABASE later").await;
    says(catalog.list().await, "run `raingauge migrate`");
    MySqlCatalog::migrate(&options).await.unwrap();
    assert_eq!(catalog.list().await.unwrap(), []);
    catalog.create(counter("a"), change("")).await.unwrap();
}

#[tokio::test]
async fn a_read_only_server_is_recognized() {
    let Some(server) = PrivateServer::start(&[]).await else {
        return;
    };
    let databases = server.databases();
    let name = name_of(&databases.database().await);

    // The administrator may write even then.
    databases
        .run(
            "",
            &format!(
                "CREATE USER rain@'%' IDENTIFIED BY 'fall'; GRANT ALL ON {name}.* TO rain@'%'"
            ),
        )
        .await;
    let options = databases.options_of("rain", "fall", &name);
    let catalog = MySqlCatalog::open(&options).await.unwrap();
    let first = catalog.create(counter("a"), change("")).await.unwrap();

    databases.run("", "SET GLOBAL read_only = 1").await;
    says(catalog.create(counter("b"), change("")).await, "it may only be read, as a standby");
    says(
        catalog.set_cache_policy(Default::default(), None, change("")).await,
        "it may only be read",
    );
    assert_eq!(catalog.list().await.unwrap(), [first]);
    databases.run("", "SET GLOBAL read_only = 0").await;
    assert_eq!(catalog.create(counter("b"), change("")).await.unwrap().counter.id, 2);
}

/// What an administrator chose for other programs does not change what the catalog does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_defaults_of_the_server_do_not_matter() {
    let unusual = [
        "--autocommit=0",
        "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES",
        "--character-set-server=latin1",
        "--transaction-isolation=READ-UNCOMMITTED",
        "--default-storage-engine=MyISAM",
        "--lower-case-table-names=1",
        "--log-bin",
        "--binlog-format=STATEMENT",
    ];

    let Some(server) = PrivateServer::start(&unusual).await else {
        return;
    };
    let databases = server.databases();
    suite(async || databases.catalog().await).await;
}

#[tokio::test]
async fn what_does_not_fit_is_refused_and_never_cut_off() {
    let Some(server) = PrivateServer::start(&["--sql-mode=", "--max-allowed-packet=1M"]).await
    else {
        return;
    };
    let catalog = server.databases().catalog().await;
    let long = "x".repeat(2_000_000);
    says(catalog.create(counter("a"), change(&long)).await, "max_allowed_packet");
    let created = catalog.create(counter("a"), change(&long[..500_000])).await.unwrap();
    assert_eq!(catalog.get(1).await.unwrap(), created);
}

#[tokio::test]
async fn a_server_that_is_full_says_so() {
    let Some(server) = PrivateServer::start(&["--max-connections=10"]).await else {
        return;
    };
    let databases = server.databases();
    let options = databases.database().await;
    let catalog = MySqlCatalog::lazy(&options).unwrap();

    // One more than the limit is kept for the administrator, whom the tests are.
    let mut held = Vec::new();
    for _ in 0..11 {
        held.push(databases.connect(&name_of(&options)).await);
    }
    says(catalog.list().await, "it has no connection left");
    drop(held);

    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while let Err(error) = catalog.list().await {
        assert!(std::time::Instant::now() < deadline, "{error}");
    }
}

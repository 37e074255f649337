use crate::server::{AMPLE, Server, free_port, is_installed, open, until, works};
use crate::single::keeps_the_contract;
use raingauge_ports::cache::ResultCache;
use raingauge_redis as redis;
use rustix::process::Signal;
use std::process::{Command, Stdio};
use std::time::Duration;

const KEPT: Duration = Duration::from_secs(60);

/// Three masters.
async fn start() -> Vec<Server> {
    let server = |_| {
        let bus = free_port().to_string();
        Server::start(&[
            "--cluster-enabled",
            "yes",
            "--cluster-port",
            &bus,
            "--cluster-node-timeout",
            "60000",
        ])
    };

    let servers: Vec<Server> = (0..3).map(server).collect();
    let mut command = Command::new("redis-cli");
    command.args(["--cluster", "create"]);
    command.args(servers.iter().map(|server| format!("127.0.0.1:{}", server.port)));
    command.args(["--cluster-replicas", "0", "--cluster-yes"]).stdout(Stdio::null());
    assert!(command.status().expect("redis-cli runs").success());

    for server in &servers {
        until("the cluster", async || {
            server.ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
        })
        .await;
    }

    servers
}

fn urls(servers: &[Server]) -> Vec<String> {
    servers.iter().map(Server::url).collect()
}

fn entries() -> Vec<(String, i64)> {
    (0..200).map(|number| (format!("id:1:c1:{number}:900:1800"), number)).collect()
}

/// How many of the entries there are.
async fn found(cache: &redis::Cache) -> Option<usize> {
    let entries = entries();
    let found = cache.get(entries.iter().map(|(key, _)| key.clone()).collect()).await.ok()?;
    let right = found
        .iter()
        .zip(&entries)
        .all(|(found, (_, value))| found.is_none_or(|found| found == *value));
    assert!(right, "what is found is what was kept");
    Some(found.iter().flatten().count())
}

#[tokio::test]
async fn a_cluster_keeps_the_contract() {
    if !is_installed() {
        return;
    }
    let servers = start().await;
    // One address is enough to find the others.
    let cache = open(&urls(&servers[..1]), true, AMPLE);
    keeps_the_contract(&cache).await;
    for server in &servers {
        let keys: usize = server.ask(&["DBSIZE"]).parse().expect("a number");
        assert!(keys > 100, "keys are spread over all nodes");
    }
}

#[tokio::test]
async fn the_named_cluster_keeps_the_contract() {
    match std::env::var("RAINGAUGE_TEST_REDIS_CLUSTER") {
        Ok(urls) => {
            let urls: Vec<String> = urls.split(',').map(str::to_owned).collect();
            keeps_the_contract(&open(&urls, true, AMPLE)).await;
        }
        Err(_) => println!("skipped: RAINGAUGE_TEST_REDIS_CLUSTER names no servers"),
    }
}

#[tokio::test]
async fn a_node_that_sleeps_or_dies_costs_its_own_keys_alone() {
    if !is_installed() {
        return;
    }
    let mut servers = start().await;
    for server in &servers {
        // So that the others go on without it.
        server.ask(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }

    let cache = open(&urls(&servers), true, Duration::from_millis(200));
    until("a connection", async || works(&cache).await).await;
    until("all entries", async || {
        cache.put(entries(), KEPT).await.is_ok() && found(&cache).await == Some(200)
    })
    .await;
    servers[0].signal(Signal::STOP);
    until("an answer of the others", async || {
        found(&cache).await.is_some_and(|found| (80..200).contains(&found))
    })
    .await;
    servers[0].signal(Signal::CONT);
    until("all entries again", async || found(&cache).await == Some(200)).await;
    servers[0].kill();
    until("an answer of the others", async || {
        found(&cache).await.is_some_and(|found| (80..200).contains(&found))
    })
    .await;
    servers[1].kill();
    servers[2].kill();
    until("an error", async || found(&cache).await.is_none()).await;
}

#[tokio::test]
async fn keys_that_move_are_found() {
    if !is_installed() {
        return;
    }
    let servers = start().await;
    let cache = open(&urls(&servers), true, AMPLE);
    until("all entries", async || {
        cache.put(entries(), KEPT).await.is_ok() && found(&cache).await == Some(200)
    })
    .await;

    let id = |server: &Server| server.ask(&["CLUSTER", "MYID"]);
    let moved = Command::new("redis-cli")
        .args(["--cluster", "reshard", &format!("127.0.0.1:{}", servers[0].port)])
        .args(["--cluster-from", &id(&servers[0]), "--cluster-to", &id(&servers[1])])
        .args(["--cluster-slots", "2000", "--cluster-yes"])
        .stdout(Stdio::null())
        .status();

    assert!(moved.expect("redis-cli runs").success());
    until("all entries where they are now", async || found(&cache).await == Some(200)).await;
    assert!(cache.put(entries(), KEPT).await.is_ok() && found(&cache).await == Some(200));
}

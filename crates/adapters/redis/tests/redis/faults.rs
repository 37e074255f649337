use crate::server::{AMPLE, Server, free_port, is_installed, open, until, works};
use raingauge_ports::cache::ResultCache;
use raingauge_redis as redis;
use rustix::process::Signal;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(100);
const KEPT: Duration = Duration::from_secs(60);

/// Both kinds of call fail; neither takes longer than it may, by far.
async fn fails(cache: &redis::Cache) -> bool {
    let calls = async {
        let got = cache.get(vec!["works".to_owned()]).await;
        let put = cache.put(vec![("works".to_owned(), 2)], KEPT).await;
        got.is_err() && put.is_err()
    };
    tokio::time::timeout(AMPLE, calls).await.expect("a call ends in its time")
}

#[tokio::test]
async fn a_server_that_was_killed_is_found_again() {
    if !is_installed() {
        return;
    }
    let mut server = Server::start(&[]);
    let cache = open(&[server.url()], false, SHORT);
    until("a connection", async || works(&cache).await).await;
    for _ in 0..3 {
        server.kill();
        assert!(fails(&cache).await);
        server.revive();
        until("a new connection", async || works(&cache).await).await;
    }
}

#[tokio::test]
async fn a_server_that_sleeps_holds_nobody_up() {
    if !is_installed() {
        return;
    }
    let server = Server::start(&[]);
    let cache = open(&[server.url()], false, SHORT);
    until("a connection", async || works(&cache).await).await;

    for _ in 0..3 {
        server.signal(Signal::STOP);

        for _ in 0..5 {
            assert!(fails(&cache).await);
        }
        server.signal(Signal::CONT);
        until("an answer", async || works(&cache).await).await;
    }
}

#[tokio::test]
async fn it_need_not_be_there_at_the_start() {
    if !is_installed() {
        return;
    }
    let mut server = Server::start(&[]);
    server.kill();
    let cache = open(&[server.url()], false, SHORT);
    assert!(fails(&cache).await && fails(&cache).await);
    server.revive();
    until("a connection", async || works(&cache).await).await;
}

#[tokio::test]
async fn a_wrong_password_and_a_wrong_address_fail_in_time() {
    if !is_installed() {
        return;
    }
    let server = Server::start(&["--requirepass", "open sesame"]);
    let with = |user: &str| format!("redis://{user}127.0.0.1:{}", server.port);
    let cache = open(&[with(":open%20sesame@")], false, SHORT);

    until("a connection", async || works(&cache).await).await;

    for user in [":wrong@", ""] {
        let cache = open(&[with(user)], false, AMPLE);
        let error = cache.get(vec!["a".to_owned()]).await.expect_err("refused").to_string();
        assert!(error.contains("out of reach") && !error.contains("wrong"), "{error}");
    }

    let nobody = format!("redis://127.0.0.1:{}", free_port());
    for url in [nobody, "redis://no-such-host.invalid:6379".to_owned()] {
        assert!(fails(&open(std::slice::from_ref(&url), false, SHORT)).await);
        assert!(fails(&open(&[url], true, SHORT)).await);
    }
}

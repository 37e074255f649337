use crate::server::{AMPLE, Server, is_installed, open, until, works};
use raingauge_ports::cache::ResultCache;
use raingauge_ports::contract::cache as contract;
use raingauge_redis::{self as redis, Error, Options};
use std::time::Duration;

/// The whole contract, under keys of this process.
pub async fn keeps_the_contract(cache: &redis::Cache) {
    until("a connection", async || works(cache).await).await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time");
    let prefix = format!("{}:{}", std::process::id(), now.as_nanos());
    contract::keeps_what_is_put(cache, &prefix).await;
    contract::takes_many_at_once(cache, &prefix).await;
    contract::forgets_in_time(cache, &prefix, async || {
        tokio::time::sleep(Duration::from_millis(20)).await
    })
    .await;
}

#[tokio::test]
async fn a_server_keeps_the_contract() {
    if is_installed() {
        let server = Server::start(&[]);
        keeps_the_contract(&open(&[server.url()], false, AMPLE)).await;
    }
}

#[tokio::test]
async fn the_named_server_keeps_the_contract() {
    match std::env::var("RAINGAUGE_TEST_REDIS") {
        Ok(url) => keeps_the_contract(&open(&[url], false, AMPLE)).await,
        Err(_) => println!("skipped: RAINGAUGE_TEST_REDIS names no server"),
    }
}

#[tokio::test]
async fn a_sum_is_stored_as_published() {
    if !is_installed() {
        return;
    }
    let server = Server::start(&[]);
    let cache = open(&[server.url()], false, AMPLE);
    let key = "id:34:rain_drops:city:111222:1727215200:1727399700";

    cache.put(vec![(key.to_owned(), 487)], Duration::from_secs(300)).await.expect("put");
    assert_eq!(server.ask(&["GET", key]), "487");

    let ttl_s: i64 = server.ask(&["TTL", key]).parse().expect("a number");
    assert!((290..=300).contains(&ttl_s), "{ttl_s}");

    let fast = Options { clock_factor: 600, timeout: AMPLE, ..Options::new([server.url()]) };
    let fast = redis::Cache::open(&fast).expect("options that can be used");
    fast.put(vec![(key.to_owned(), 487)], Duration::from_secs(60_000)).await.expect("put");

    let ttl_ms: i64 = server.ask(&["PTTL", key]).parse().expect("a number");
    assert!((90_000..=100_000).contains(&ttl_ms), "{ttl_ms}");
}

#[tokio::test]
async fn what_is_no_number_counts_as_nothing() {
    if !is_installed() {
        return;
    }
    let server = Server::start(&[]);
    let cache = open(&[server.url()], false, AMPLE);

    for (key, value) in [
        ("text", "many"),
        ("empty", ""),
        ("big", "9223372036854775808"),
        ("half", "1.5"),
        ("good", "7"),
    ] {
        server.ask(&["SET", key, value]);
    }

    server.ask(&["RPUSH", "list", "1"]);
    let keys = ["text", "empty", "big", "half", "list", "good"].map(str::to_owned);
    assert_eq!(
        cache.get(keys.to_vec()).await.expect("got"),
        [None, None, None, None, None, Some(7)]
    );
}

#[tokio::test]
async fn addresses_are_checked() {
    let refused = |urls: &[&str], cluster| {
        redis::Cache::open(&Options { cluster, ..Options::new(urls.iter().copied()) })
            .err()
            .expect("refused")
    };

    assert!(matches!(refused(&[], false), Error::NoUrl));
    assert!(matches!(refused(&["redis://a:1", "redis://b:1"], false), Error::ManyUrls(2)));

    for cluster in [false, true] {
        let error = refused(&["http://user:secret@host"], cluster).to_string();
        assert!(error.contains("redis://host:6379") && !error.contains("secret"), "{error}");
    }

    let told = format!("{:?}", Options::new(["redis://:secret@host:1"]));
    assert!(!told.contains("secret"), "{told}");
}

//! The result cache of this program on the Redis door of another one: the contract of its port.

use super::home;
use super::oracle::resp_address;
use crate::server::PATIENCE;
use raingauge_ports::cache::ResultCache;
use raingauge_ports::contract::cache as contract;
use raingauge_redis::{Cache, Options};
use std::time::{Duration, Instant};

/// The whole contract on a door that addresses slots, or none.
async fn keeps_the_contract(cluster: bool) {
    let mut home = home();
    home.set("resp.cluster", if cluster { "single" } else { "no" });
    let server = home.start();
    let url = resp_address(&server).to_string();
    let options = Options { cluster, timeout: Duration::from_secs(5), ..Options::new([url]) };
    let cache = Cache::open(&options).expect("options that can be used");

    let deadline = Instant::now() + PATIENCE;
    while cache.put(vec![("first".to_owned(), 1)], PATIENCE).await.is_err() {
        assert!(Instant::now() < deadline, "the cache does not connect");
        tokio::task::yield_now().await;
    }

    contract::keeps_what_is_put(&cache, "kept").await;
    contract::takes_many_at_once(&cache, "many").await;
    contract::forgets_in_time(&cache, "forgotten", async || {
        tokio::time::sleep(Duration::from_millis(20)).await
    })
    .await;
}

#[tokio::test]
async fn one_server_keeps_the_contract_of_the_cache() {
    keeps_the_contract(false).await;
}

#[tokio::test]
async fn a_cluster_of_one_keeps_the_contract_of_the_cache() {
    keeps_the_contract(true).await;
}

//! A Redis Cluster: keys are split by slot, and each node gets one pipeline with the keys of its
//! slots.
//!
//! A cache needs less of a cluster than a store does. A key whose slot has moved counts as not
//! cached, and so do the keys of a node that does not answer; no request is repeated, and no node
//! waits for another one. After any failure the slots are looked up again in the background.

mod slots;

use crate::answer::{Answers, failed, too_slow};
use crate::options::{CONNECT_TIMEOUT, Error, Options, refused};
use crate::single::{connect, set};
use arc_swap::ArcSwap;
use futures_util::future::join_all;
use raingauge_ports::cache;
use raingauge_resp::slot;
use redis::aio::ConnectionManager;
use redis::{Pipeline, RedisResult, TlsCertificates, Value};
use slots::{Address, Owners};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Shortest time between two lookups of the slots.
const LOOK_UP_INTERVAL: Duration = Duration::from_millis(200);

pub struct Cluster {
    shared: Arc<Shared>,
    unanswered: metrics::Counter,
}

struct Shared {
    /// The nodes to ask while none is known.
    seeds: Vec<ConnectionManager>,
    /// The first address, from which the others are derived.
    url: String,
    certificates: Option<TlsCertificates>,
    timeout: Duration,
    map: ArcSwap<Map>,
    is_looking_up: AtomicBool,
    /// The node that is asked first next time.
    turn: AtomicUsize,
}

/// Which node holds which slot.
#[derive(Default)]
struct Map {
    nodes: Vec<Node>,
    owners: Owners,
}

#[derive(Clone)]
struct Node {
    address: Address,
    connection: ConnectionManager,
}

impl Cluster {
    pub fn open(options: &Options) -> Result<Self, Error> {
        let certificates = options.certificates()?;
        let seed = |url: &String| connect(url, certificates.as_ref(), options.timeout);
        let seeds: RedisResult<Vec<ConnectionManager>> = options.urls.iter().map(seed).collect();
        let shared = Arc::new(Shared {
            seeds: seeds.map_err(|error| refused(&error))?,
            url: options.urls[0].clone(),
            certificates,
            timeout: options.timeout,
            map: ArcSwap::default(),
            is_looking_up: AtomicBool::new(false),
            turn: AtomicUsize::new(0),
        });

        shared.look_up();
        Ok(Self { shared, unanswered: metrics::counter!("raingauge_redis_unanswered_keys_total") })
    }

    pub async fn get(&self, keys: &[String]) -> Result<Answers, cache::Error> {
        let ask = |pipeline: &mut Pipeline, place: usize| {
            pipeline.cmd("GET").arg(&keys[place]);
        };
        self.ask(keys.iter().map(String::as_str), ask).await
    }

    pub async fn put(&self, entries: &[(String, i64)], ttl_ms: u64) -> Result<(), cache::Error> {
        let ask = |pipeline: &mut Pipeline, place: usize| set(pipeline, &entries[place], ttl_ms);
        self.ask(entries.iter().map(|(key, _)| key.as_str()), ask).await.map(drop)
    }

    /// Asks the nodes concurrently for their keys: one command per key. It is an error when none
    /// answers.
    async fn ask<'k>(
        &self,
        keys: impl Iterator<Item = &'k str>,
        command: impl Fn(&mut Pipeline, usize),
    ) -> Result<Answers, cache::Error> {
        let map = self.shared.map.load_full();
        let mut parts = vec![(redis::pipe(), Vec::new()); map.nodes.len()];
        let mut asked = 0;

        for (place, key) in keys.enumerate() {
            asked += 1;
            if let Some(node) = map.owners.of(slot::of(key.as_bytes())) {
                command(&mut parts[node].0, place);
                parts[node].1.push(place);
            }
        }

        let parts: Vec<_> =
            map.nodes.iter().zip(parts).filter(|(_, (_, places))| !places.is_empty()).collect();
        let calls = parts.iter().map(|(node, (pipeline, _))| self.call(node, pipeline));
        let mut found = vec![None; asked];
        let mut error = None;

        for ((_, (_, places)), answers) in parts.iter().zip(join_all(calls).await) {
            let answers = answers.unwrap_or_else(|failed| {
                error = Some(failed);
                Vec::new()
            });
            for (place, answer) in places.iter().zip(answers) {
                match answer {
                    Ok(value) => found[*place] = Some(value),
                    Err(refused) => error = Some(failed(&refused)),
                }
            }
        }

        let unanswered = found.iter().filter(|answer| answer.is_none()).count();
        if unanswered > 0 {
            self.unanswered.increment(unanswered as u64);
            self.shared.look_up();
        }

        if unanswered < asked {
            return Ok(found);
        }
        Err(error.unwrap_or_else(|| cache::Error("no node of the cluster is known yet".to_owned())))
    }

    async fn call(
        &self,
        node: &Node,
        pipeline: &Pipeline,
    ) -> Result<Vec<RedisResult<Value>>, cache::Error> {
        let mut connection = node.connection.clone();
        let mut pipeline = pipeline.clone();
        let call = async { pipeline.ignore_errors().query_async(&mut connection).await };
        match tokio::time::timeout(self.shared.timeout, call).await {
            Ok(answers) => answers.map_err(|error| failed(&error)),
            Err(_) => Err(too_slow(self.shared.timeout)),
        }
    }
}

impl Shared {
    /// Looks up in the background which node holds which slot, unless a lookup is already running.
    fn look_up(self: &Arc<Self>) {
        if self.is_looking_up.swap(true, Ordering::AcqRel) {
            return;
        }
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            if !shared.ask_for_slots().await {
                tracing::warn!(
                    "no node of the Redis Cluster tells who holds which slot; counts are answered without it"
                );
            }

            tokio::time::sleep(LOOK_UP_INTERVAL).await;
            shared.is_looking_up.store(false, Ordering::Release);
        });
    }

    /// Asks one node after the other, beginning with a different one each time. Returns whether any
    /// has answered.
    async fn ask_for_slots(&self) -> bool {
        let before = self.map.load_full();
        let known =
            before.nodes.iter().map(|node| (node.address.0.clone(), node.connection.clone()));
        let host = host_of(&self.url);
        let everybody: Vec<_> =
            known.chain(self.seeds.iter().map(|seed| (host.clone(), seed.clone()))).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);

        for step in 0..everybody.len() {
            let (host, connection) = &everybody[(turn + step) % everybody.len()];
            let mut connection = connection.clone();
            let mut command = redis::cmd("CLUSTER");
            let answer = command.arg("SLOTS").query_async::<Value>(&mut connection);
            let Ok(Ok(answer)) = tokio::time::timeout(CONNECT_TIMEOUT, answer).await else {
                continue;
            };
            let Some((addresses, owners)) = Owners::read(&answer, host) else {
                continue;
            };
            let nodes: RedisResult<Vec<Node>> =
                addresses.into_iter().map(|address| self.node(&before, address)).collect();
            if let Ok(nodes) = nodes {
                self.map.store(Arc::new(Map { nodes, owners }));
                return true;
            }
        }

        false
    }

    /// Returns the node at an address, over the existing connection if there is one.
    fn node(&self, before: &Map, address: Address) -> RedisResult<Node> {
        if let Some(node) = before.nodes.iter().find(|node| node.address == address) {
            return Ok(node.clone());
        }
        let connection =
            connect(&url_of(&self.url, &address), self.certificates.as_ref(), self.timeout)?;
        Ok(Node { address, connection })
    }
}

fn host_of(url: &str) -> String {
    let host = redis::parse_redis_url(url).and_then(|url| url.host_str().map(str::to_owned));
    host.unwrap_or_default()
}

/// The address of another node, with the scheme, the user and the password of this one.
fn url_of(url: &str, (host, port): &Address) -> String {
    let Some(mut other) = redis::parse_redis_url(url) else {
        return url.to_owned();
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    // Neither can fail: this is an address with a host, and the new host is the name of a node.
    let _ = (other.set_host(Some(&host)), other.set_port(Some(*port)));
    other.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_nodes_are_reached_as_the_first_one() {
        let address = |host: &str| (host.to_owned(), 7_001);
        assert_eq!(url_of("redis://127.0.0.1:7000", &address("10.0.0.2")), "redis://10.0.0.2:7001");
        assert_eq!(url_of("rediss://u:p%20w@a:7000", &address("b")), "rediss://u:p%20w@b:7001");
        assert_eq!(url_of("redis://a", &address("::1")), "redis://[::1]:7001");
        assert_eq!(host_of("redis://u:p@a:7000"), "a");
    }
}

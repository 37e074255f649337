//! Large values: 25 connections, SET and GET of 100 KB to 2 MB, on one node and by the slots of
//! several.

use super::record::{Curve, Finding, Panel, Record, shown};
use super::servers::Named;
use crate::experiment::report::rules::Verdict;
use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use raingauge_resp_client::{Address, Connection, Reply, slot};
use std::time::Instant;

/// Distinct keys, as many as requests of a connection are in flight over all nodes.
const KEYS: usize = 100;
/// Significant digits of latencies.
const LATENCIES_DIGITS: u8 = 3;
const SIZES: [usize; 5] = [100_000, 200_000, 500_000, 1_000_000, 2_000_000];

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// A server, as NAME=HOST:PORT; of a cluster one node is enough. May be repeated
    #[arg(long = "server", required = true)]
    pub servers: Vec<Named>,
    /// Bytes of a value, one measurement for each
    #[arg(long, value_delimiter = ',', default_values_t = SIZES)]
    pub bytes: Vec<usize>,
    /// Connections, each with one request in flight
    #[arg(long, default_value_t = 25)]
    pub connections: usize,
    /// Requests per measurement
    #[arg(long, default_value_t = 1_000)]
    pub requests: usize,
}

/// The nodes of a server, and which slots each has.
struct Nodes {
    ranges: Vec<(u16, u16, Address)>,
}

/// What one size of values gave.
struct Measured {
    requests_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// Measures every server with every size.
pub fn run(options: &Options) -> Result<Record> {
    let mut record = Record::new(
        "redis-cluster",
        "Large values on 25 connections",
        "Requests per second, and megabytes per second, over the size of a value, on one node or by the slots of several.",
    );
    record.set("connections", options.connections);
    record.set("requests", options.requests);
    record.columns = vec!["bytes", "requests/s", "MB/s", "p50 ms", "p99 ms"];

    let mut panels = [("SET", Vec::new()), ("GET", Vec::new())];
    for server in &options.servers {
        let nodes = Nodes::of(server)?;
        let title = format!("{}, {} node(s)", server.name, nodes.count());
        for (verb, curves) in &mut panels {
            let mut curve = Curve { name: title.clone(), points: Vec::new() };
            for bytes in &options.bytes {
                let measured = measure(&nodes, verb, *bytes, options)?;
                let megabytes = measured.requests_per_s * *bytes as f64 / 1e6;
                record.row(
                    &title,
                    verb.to_owned(),
                    vec![
                        *bytes as f64,
                        measured.requests_per_s,
                        megabytes,
                        measured.p50_ms,
                        measured.p99_ms,
                    ],
                );
                curve.points.push((*bytes as f64 / 1_000.0, measured.requests_per_s));
            }
            finding(&title, verb, &curve, &mut record);
            curves.push(curve);
        }
    }

    for (verb, curves) in panels {
        let title = format!("{verb}: requests per second");
        record.panels.push(Panel { title, x: "value, KB", is_logarithmic: true, curves });
    }
    Ok(record)
}

fn finding(title: &str, verb: &str, curve: &Curve, record: &mut Record) {
    let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) else {
        return;
    };
    let share = last.1 / first.1;
    record.findings.push(Finding {
        claim: format!("{title}: {verb} becomes slower with larger values"),
        reference: "requests per second fall with the size; GET on two nodes by less than half at 20 times the size",
        here: format!("{} x at {:.0} times the size", shown(share), last.0 / first.0),
        verdict: Verdict::of(share < 1.0),
        rule: "fewer requests per second at the largest size than at the smallest",
    });
}

fn measure(nodes: &Nodes, verb: &str, bytes: usize, options: &Options) -> Result<Measured> {
    let value: Vec<u8> = (0..bytes).map(|place| (place * 131 % 251) as u8).collect();
    if verb == "GET" {
        let mut connections = nodes.connect()?;
        for key in 0..KEYS {
            let name = key_name(key, bytes);
            nodes.pick(&mut connections, &name)?.done(&[b"SET", name.as_bytes(), &value])?;
        }
    }

    let began = Instant::now();
    let share = options.requests.div_ceil(options.connections.max(1));
    let histograms = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.connections.max(1))
            .map(|worker| {
                let value = &value;
                scope.spawn(move || work(nodes, verb, worker, share, value))
            })
            .collect();
        let joined = workers
            .into_iter()
            .map(|worker| worker.join().map_err(|_| anyhow::anyhow!("a connection panicked"))?);
        joined.collect::<Result<Vec<Histogram<u64>>>>()
    })?;

    let elapsed_s = began.elapsed().as_secs_f64();
    let mut all = Histogram::<u64>::new(LATENCIES_DIGITS)?;
    for histogram in &histograms {
        all.add(histogram)?;
    }
    let ms = |quantile: f64| all.value_at_quantile(quantile) as f64 / 1_000.0;
    let requests_per_s = all.len() as f64 / elapsed_s;
    Ok(Measured { requests_per_s, p50_ms: ms(0.5), p99_ms: ms(0.99) })
}

/// The requests of one connection. Every value is compared.
fn work(
    nodes: &Nodes,
    verb: &str,
    worker: usize,
    requests: usize,
    value: &[u8],
) -> Result<Histogram<u64>> {
    let mut connections = nodes.connect()?;
    let mut latencies = Histogram::<u64>::new(LATENCIES_DIGITS)?;
    for request in 0..requests {
        let name = key_name((worker * 31 + request) % KEYS, value.len());
        let connection = nodes.pick(&mut connections, &name)?;
        let began = Instant::now();
        let reply = if verb == "GET" {
            connection.done(&[b"GET", name.as_bytes()])?
        } else {
            connection.done(&[b"SET", name.as_bytes(), value])?
        };

        latencies.record(began.elapsed().as_micros() as u64)?;
        let is_right = verb != "GET" || reply == Reply::Bulk(value.to_vec());
        ensure!(is_right, "WRONG VALUE: {name} has another value");
    }
    Ok(latencies)
}

fn key_name(key: usize, bytes: usize) -> String {
    format!("lab:large:{bytes}:{key}")
}

impl Nodes {
    /// The nodes that a server lists, or it alone.
    fn of(server: &Named) -> Result<Self> {
        let mut connection = server.connect()?;
        let is_cluster = server.info("cluster_enabled")?.is_some_and(|text| text == "1");
        if !is_cluster {
            return Ok(Self { ranges: vec![(0, u16::MAX, server.address.clone())] });
        }
        let ranges = slot::ranges(&mut connection)?.into_iter().map(|(first, last, host, port)| {
            let host = if host.is_empty() { server.address.host.clone() } else { host };
            (first, last, Address { host, port, ..server.address.clone() })
        });
        Ok(Self { ranges: ranges.collect() })
    }

    fn count(&self) -> usize {
        let mut ports: Vec<u16> = self.ranges.iter().map(|(.., address)| address.port).collect();
        ports.sort_unstable();
        ports.dedup();
        ports.len()
    }

    fn connect(&self) -> Result<Vec<Connection>> {
        self.ranges.iter().map(|(.., address)| Ok(Connection::open(address)?)).collect()
    }

    /// The connection to the node that has a key.
    fn pick<'a>(&self, connections: &'a mut [Connection], key: &str) -> Result<&'a mut Connection> {
        let slot = slot::of(key.as_bytes());
        let place =
            self.ranges.iter().position(|(first, last, _)| (*first..=*last).contains(&slot));
        let place = place.with_context(|| format!("no node has the slot {slot}"))?;
        connections.get_mut(place).context("a connection to each node")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::server::Redis;

    #[test]
    fn values_are_written_and_read_in_every_size() {
        let Some(redis) = Redis::start(&[]).unwrap() else {
            return;
        };
        let server = Named { name: "redis".to_owned(), address: redis.address() };
        let options = Options {
            servers: vec![server],
            bytes: vec![1_000, 100_000],
            connections: 4,
            requests: 40,
        };
        let record = run(&options).unwrap();
        assert_eq!((record.rows.len(), record.panels.len(), record.findings.len()), (4, 2, 2));
        assert!(record.rows.iter().all(|row| row.values[1] > 0.0));
    }
}

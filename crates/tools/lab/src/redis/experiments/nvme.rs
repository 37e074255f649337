//! A cache that is larger than memory, in memtier_benchmark's shape: objects of 1 KB are loaded,
//! then read only, then read and written 80:20, by 20 threads of 50 connections each.
//!
//! A thousand connections in a closed loop at 100,000 operations a second wait 10 ms each by
//! arithmetic, whatever the server. So each workload is measured twice: in the closed loop of the
//! reference, and in an open loop at a share of the rate that the closed one reached.

use super::record::{Curve, Finding, Panel, Record, shown};
use super::servers::Named;
use crate::experiment::report::rules::Verdict;
use crate::measure::{Measurement, Pace, Run};
use crate::redis::load;
use crate::redis::strings::{Pattern, Shape, Strings, key_name};
use anyhow::{Result, ensure};
use std::str::FromStr;
use std::time::{Duration, Instant};

const LOAD_PIPELINE: usize = 200;
const LOAD_CONNECTIONS: usize = 4;
const PATTERNS: [Keys; 3] = [Keys::Uniform, Keys::Zipf, Keys::Sequential];
/// Longest mean latency of the open loop.
const MEAN_MAX_US: f64 = 10_000.0;
/// Keys that are looked at after loading.
const SAMPLES: u64 = 16;

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// A server, as NAME=HOST:PORT; may be repeated
    #[arg(long = "server", required = true)]
    pub servers: Vec<Named>,
    /// Objects; the reference had 1,000,000,000
    #[arg(long, default_value_t = 10_000_000)]
    pub keys: u64,
    /// Bytes of a value
    #[arg(long, default_value_t = 1_000)]
    pub bytes: usize,
    /// Connections; the reference had 20 threads of 50 each
    #[arg(long, default_value_t = 1_000)]
    pub connections: usize,
    /// Commands in flight on each connection
    #[arg(long, default_value_t = 1)]
    pub pipeline: usize,
    /// Which keys are used: uniform, zipf or sequential; may be repeated
    #[arg(long, value_delimiter = ',', default_values_t = PATTERNS)]
    pub pattern: Vec<Keys>,
    /// Duration of each measurement, in seconds
    #[arg(long, default_value_t = 30)]
    pub seconds: u64,
    /// Rate of the open loop as a share of the greatest rate
    #[arg(long, default_value_t = 0.7)]
    pub share: f64,
    /// Skip loading: the objects are there
    #[arg(long)]
    pub skip_load: bool,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// A pattern of keys by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Keys {
    Uniform,
    /// With the exponent 0.99
    Zipf,
    Sequential,
}

impl Keys {
    fn pattern(self) -> Pattern {
        match self {
            Self::Uniform => Pattern::Uniform,
            Self::Zipf => Pattern::Zipf(0.99),
            Self::Sequential => Pattern::Sequential,
        }
    }
}

impl std::fmt::Display for Keys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
            Self::Sequential => "sequential",
        })
    }
}

impl FromStr for Keys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        clap::ValueEnum::from_str(text, true)
    }
}

/// Measures every server.
pub fn run(options: &Options) -> Result<Record> {
    let mut record = Record::new(
        "redis-nvme",
        "A cache that is larger than memory",
        "Operations per second of a closed loop, and the mean latency of an open loop at a share of that rate, for \
         reads alone and for 80 % reads, by the pattern of keys.",
    );
    record.set("keys", options.keys);
    record.set("bytes", options.bytes);
    record.set("connections", options.connections);
    record.set("pipeline", options.pipeline);
    record.set("seconds", options.seconds);
    record.set("share", options.share);
    record.columns = vec!["ops/s", "mean ms", "p99 ms", "max ms", "misses", "memory MB"];

    for server in &options.servers {
        if !options.skip_load {
            let (rate, seconds) = populate(server, options)?;
            let memory = memory_mb(server)?;
            let nothing = f64::NAN;
            let values = vec![rate, nothing, nothing, nothing, nothing, memory];
            record.row(&server.name, format!("load, {seconds:.1} s"), values);
        }
        // Each workload draws keys of its own. With those of another one, it would find in memory
        // what that one has read.
        let mut seed = options.seed;
        for keys in &options.pattern {
            for reads in [1.0, 0.8] {
                seed += 1;
                workload(server, &Options { seed, ..options.clone() }, *keys, reads, &mut record)?;
            }
        }
    }
    panels(&mut record);
    Ok(record)
}

/// Writes every object, in pipelines. Returns the rate per second, and the time in seconds.
fn populate(server: &Named, options: &Options) -> Result<(f64, f64)> {
    let mut connections =
        (0..LOAD_CONNECTIONS).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
    let mut strings = Strings::new(Shape {
        keys: options.keys,
        value_len: options.bytes,
        pattern: Pattern::Sequential,
        reads: 0.0,
        pipeline: LOAD_PIPELINE,
        connections: LOAD_CONNECTIONS,
        seed: options.seed,
    });

    let began = Instant::now();
    let turns = options.keys.div_ceil((LOAD_PIPELINE * LOAD_CONNECTIONS) as u64) + 1;
    let mut bytes = Vec::new();
    for _ in 0..turns {
        for (slot, connection) in connections.iter_mut().enumerate() {
            bytes.clear();
            load::Work::fill(&mut strings, slot, &mut bytes);
            connection.send(&bytes)?;
        }
        for connection in &mut connections {
            for _ in 0..LOAD_PIPELINE {
                let reply = connection.reply()?;
                ensure!(reply.error().is_none(), "an object could not be written: {reply:?}");
            }
        }
    }

    let seconds = began.elapsed().as_secs_f64();
    let connection = &mut connections[0];
    for sample in 0..SAMPLES {
        let name = key_name(sample * (options.keys - 1) / SAMPLES);
        let len = connection.done(&[b"STRLEN", name.as_bytes()])?.integer();
        ensure!(len == Some(options.bytes.max(16) as i64), "{name} has {len:?} bytes");
    }
    Ok((options.keys as f64 / seconds, seconds))
}

fn workload(
    server: &Named,
    options: &Options,
    keys: Keys,
    reads: f64,
    record: &mut Record,
) -> Result<()> {
    let mut strings = Strings::new(Shape {
        keys: options.keys,
        value_len: options.bytes,
        pattern: keys.pattern(),
        reads,
        pipeline: options.pipeline.max(1),
        connections: options.connections,
        seed: options.seed,
    });
    let mut measure = |pace: Pace| -> Result<Measurement> {
        let duration = Duration::from_secs(options.seconds);
        let run = Run { pace, warm_up: duration / 5, duration };
        let load = load::run(server.socket()?, options.connections, &run, &mut strings)?;
        Ok(load.measured)
    };

    let closed = measure(Pace::Closed)?;
    // A server that stood still all the time is asked all the same.
    let rate = (closed.requests_per_s * options.share).max(1.0);
    let open = measure(Pace::Open(rate))?;
    let misses = strings.misses as f64;
    let memory = memory_mb(server)?;

    let mix = if reads == 1.0 { "100 % GET" } else { "80:20" };
    for (loop_name, measured) in [("closed", &closed), ("open", &open)] {
        let latency = &measured.latency;
        let ms = |us: f64| us / 1_000.0;
        record.row(
            &server.name,
            format!("{mix}, {keys}, {loop_name}"),
            vec![
                measured.units_per_s,
                ms(latency.mean_us),
                ms(latency.p99_us),
                ms(latency.max_us),
                misses,
                memory,
            ],
        );
    }

    record.findings.push(Finding {
        claim: format!("{}: {mix}, {keys}: mean below 10 ms", server.name),
        reference: "100,000 ops/s and below 10 ms on 64 virtual processors",
        here: format!(
            "{} ops/s in a closed loop; mean {} ms at {:.0} % of it",
            shown(closed.units_per_s),
            shown(open.latency.mean_us / 1_000.0),
            options.share * 100.0
        ),
        verdict: Verdict::of(open.latency.mean_us < MEAN_MAX_US && open.unanswered == 0),
        rule: "mean latency of the open loop, every request answered",
    });
    Ok(())
}

fn memory_mb(server: &Named) -> Result<f64> {
    Ok(server.memory_bytes()?.map_or(f64::NAN, |bytes| bytes as f64 / 1e6))
}

/// Rates and latencies over the workloads, numbered in the order of the table.
fn panels(record: &mut Record) {
    let mut names: Vec<String> = record.rows.iter().map(|row| row.server.clone()).collect();
    names.dedup();
    let curves = |ending: &str, column: usize| {
        let of = |name: &String| {
            let rows = record.rows.iter();
            let values = rows.filter(|row| row.server == *name && row.what.ends_with(ending));
            let points = values.enumerate().map(|(place, row)| (place as f64, row.values[column]));
            Curve { name: name.clone(), points: points.collect() }
        };
        names.iter().map(of).collect::<Vec<_>>()
    };

    let x = "workload, in the order of the table";
    let panels =
        [("Operations per second, closed loop", "closed", 0), ("Mean ms, open loop", "open", 1)]
            .map(|(title, ending, column)| Panel {
                title: title.to_owned(),
                x,
                is_logarithmic: true,
                curves: curves(ending, column),
            });
    record.panels.extend(panels);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::server::Redis;

    #[test]
    fn objects_are_loaded_and_read_under_both_loops() {
        let Some(redis) = Redis::start(&[]).unwrap() else {
            return;
        };
        let server = Named { name: "redis".to_owned(), address: redis.address() };
        let options = Options {
            servers: vec![server],
            keys: 2_000,
            bytes: 100,
            connections: 8,
            pipeline: 2,
            pattern: vec![Keys::Uniform, Keys::Zipf],
            seconds: 1,
            share: 0.5,
            skip_load: false,
            seed: 1,
        };
        let record = run(&options).unwrap();
        assert_eq!((record.rows.len(), record.findings.len(), record.panels.len()), (9, 4, 2));
        let measured = &record.rows[1..];
        assert!(
            measured.iter().all(|row| row.values[0] > 0.0 && row.values[4] == 0.0),
            "{measured:?}"
        );
    }
}

//! The commands of `raingauge lab` about the Redis door.

use super::write_json;
use crate::measure::{Pace, Run};
#[cfg(feature = "experiments")]
use crate::redis::experiments::{Record, churn, cluster, cost, nvme, pipeline, record};
use crate::redis::{counts, histories, oracle, server::Redis};
use crate::workload::{Settings, Workload};
use crate::{cores, http, now_s, server};
use anyhow::{Context, Result, bail};
use clap::Subcommand;
use raingauge_resp_client::Address;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Sends the same random commands to a Redis and to another server, and compares every reply.
    /// Removes all objects of both
    #[command(
        name = "redis-oracle",
        after_help = "Example: raingauge lab redis-oracle --against 127.0.0.1:6380 --seconds 600"
    )]
    Oracle {
        /// The server under test, of which all objects are removed
        #[arg(long)]
        against: Address,
        /// A real Redis, of which all objects are removed; default: one is started
        #[arg(long)]
        redis: Option<Address>,
        /// Duration, in seconds
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// The first case; default: a random one
        #[arg(long)]
        seed: Option<u64>,
        /// Cases at most; 1 replays a seed
        #[arg(long, default_value_t = u64::MAX)]
        cases: u64,
        /// Leaves commands out, such as those whose differences are known
        #[arg(long, value_delimiter = ',')]
        without: Vec<String>,
    },
    /// Records what concurrent clients see, and checks that an order of all operations explains it
    #[command(
        name = "redis-histories",
        after_help = "Example: raingauge lab redis-histories --against 127.0.0.1:6380 --rounds 100"
    )]
    Histories {
        /// The server
        #[arg(long)]
        against: Address,
        /// Histories, each on keys of its own
        #[arg(long, default_value_t = 10)]
        rounds: u64,
        /// Clients of each history
        #[arg(long, default_value_t = 8)]
        clients: usize,
        /// Operations of each client
        #[arg(long, default_value_t = 200)]
        operations: usize,
    },
    /// The counts of `lab counts` over the Redis door, as RAIN.COUNT or RAIN.COUNTS in pipelines
    #[command(
        name = "redis-counts",
        after_help = "Example: raingauge lab redis-counts --server 127.0.0.1:8080 --resp 127.0.0.1:6380 --pipeline 100"
    )]
    Counts {
        /// Address of the HTTP door, by which the history is loaded
        #[arg(long)]
        server: SocketAddr,
        /// Bearer token, if the server requires one
        #[arg(long, env = "RAINGAUGE_TOKEN")]
        token: Option<String>,
        /// Address of the Redis door
        #[arg(long)]
        resp: SocketAddr,
        /// Counts of a pipeline
        #[arg(long, default_value_t = 100)]
        pipeline: usize,
        /// Counts of a command: RAIN.COUNT for one, RAIN.COUNTS for more
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
        together: u64,
        #[arg(long, default_value_t = 8)]
        connections: usize,
        /// Duration of each measurement, in seconds
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// Core to pin this program to
        #[arg(long)]
        core: Option<usize>,
        /// Skip loading the history; counts are then not compared with the expected values
        #[arg(long)]
        skip_load: bool,
        /// File for the measurements, as JSON
        #[arg(long)]
        json: Option<PathBuf>,
        #[command(flatten)]
        settings: Settings,
    },
    /// 1,500 commands on a sorted set for each message: one by one, in 3 batches and in 2
    #[cfg(feature = "experiments")]
    #[command(
        name = "redis-pipeline",
        after_help = "Example: raingauge lab redis-pipeline --server raingauge=127.0.0.1:6380 --server redis=127.0.0.1:6379 --out report"
    )]
    Pipeline {
        #[command(flatten)]
        options: pipeline::Options,
        #[command(flatten)]
        place: Place,
    },
    /// A cache that is larger than memory: loaded, read, and read and written 80:20
    #[cfg(feature = "experiments")]
    #[command(
        name = "redis-nvme",
        after_help = "Example: raingauge lab redis-nvme --server raingauge=127.0.0.1:6380 --keys 1000000 --out report"
    )]
    Nvme {
        #[command(flatten)]
        options: nvme::Options,
        #[command(flatten)]
        place: Place,
    },
    /// Values of 100 KB to 2 MB on 25 connections, on one node or by the slots of several
    #[cfg(feature = "experiments")]
    #[command(
        name = "redis-cluster",
        after_help = "Example: raingauge lab redis-cluster --server raingauge=127.0.0.1:6380 --requests 1000 --out report"
    )]
    Cluster {
        #[command(flatten)]
        options: cluster::Options,
        #[command(flatten)]
        place: Place,
    },
    /// A sorted set that gains and loses members for minutes: does the rate last?
    #[cfg(feature = "experiments")]
    #[command(
        name = "redis-churn",
        after_help = "Example: raingauge lab redis-churn --server raingauge=127.0.0.1:6380 --seconds 600 --out report"
    )]
    Churn {
        #[command(flatten)]
        options: churn::Options,
        #[command(flatten)]
        place: Place,
    },
    /// How many nodes a cache needs by memory, disk and cores, and what they cost
    #[cfg(feature = "experiments")]
    #[command(
        name = "redis-cost",
        after_help = "Example: raingauge lab redis-cost --objects 1e9 --bytes 1000 --rate 100000"
    )]
    Cost {
        #[command(flatten)]
        options: cost::Options,
        /// File for the answer, as JSON
        #[arg(long)]
        json: Option<PathBuf>,
    },
}

/// Where an experiment runs, and where its record goes.
#[cfg(feature = "experiments")]
#[derive(Debug, clap::Args)]
pub struct Place {
    /// Folder for the record, its tables and its figure
    #[arg(long)]
    out: PathBuf,
    /// Core to pin this program to
    #[arg(long)]
    core: Option<usize>,
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Oracle { against, redis, seconds, seed, cases, without } => {
            let duration = Duration::from_secs(seconds);
            let started = if redis.is_none() { Redis::start(&[])? } else { None };
            let redis = redis
                .or_else(|| started.as_ref().map(Redis::address))
                .context("there is no Redis to compare with: name one with --redis")?;
            let seed = seed.unwrap_or_else(rand::random);
            compare(&oracle::Options { redis, against, seed, duration, cases_max: cases, without })
        }
        Command::Histories { against, rounds, clients, operations } => {
            check(&against, rounds, clients, operations)
        }
        Command::Counts {
            server,
            token,
            resp,
            pipeline,
            together,
            connections,
            seconds,
            core,
            skip_load,
            json,
            settings,
        } => {
            if let Some(core) = core {
                cores::pin_self(core)?;
            }
            let workload = Workload::new(settings, now_s());
            if !skip_load {
                let target = http::Target { address: server, token };
                server::Lab::prepare(&target, &workload)?.load_history(&workload)?;
            }
            let duration = Duration::from_secs(seconds);
            let run = Run { pace: Pace::Closed, warm_up: duration / 5, duration };
            let shape = counts::Shape { pipeline, together: together as usize };
            let (measured, checked) =
                counts::measure(&workload, resp, connections, shape, &run, !skip_load)?;
            let title = format!("pipelines of {pipeline} counts, {together} a command");
            super::print(&title, &measured, 0);
            println!("counts compared: {checked}");
            write_json(&measured, json)
        }
        #[cfg(feature = "experiments")]
        Command::Pipeline { options, place } => place.run(|| pipeline::run(&options)),
        #[cfg(feature = "experiments")]
        Command::Nvme { options, place } => place.run(|| nvme::run(&options)),
        #[cfg(feature = "experiments")]
        Command::Cluster { options, place } => place.run(|| cluster::run(&options)),
        #[cfg(feature = "experiments")]
        Command::Churn { options, place } => place.run(|| churn::run(&options)),
        #[cfg(feature = "experiments")]
        Command::Cost { options, json } => {
            let (prices, answers) = cost::run(&options)?;
            print!("{}", cost::markdown(&prices, &answers));
            write_json(&answers, json)
        }
    }
}

fn compare(options: &oracle::Options) -> Result<()> {
    let agreed = oracle::run(options, None)?;
    println!(
        "seed {}: {} cases, {} replies are the same",
        options.seed, agreed.cases, agreed.replies
    );
    Ok(())
}

fn check(against: &Address, rounds: u64, clients: usize, operations: usize) -> Result<()> {
    let run: u64 = rand::random();
    for round in 0..rounds {
        let options = histories::Options {
            clients,
            keys: 3,
            operations,
            seed: run.wrapping_add(round),
            prefix: format!("{run:x}:{round}"),
        };
        let events = histories::record(&options, &|| against.clone(), |_| Ok(()))?;
        if let Err(violation) = histories::check(&events) {
            bail!("no order explains the history of key {}: {violation:#?}", violation.key);
        }
    }
    println!("{rounds} histories of {clients} clients have an order");
    Ok(())
}

#[cfg(feature = "experiments")]
impl Place {
    fn run(&self, experiment: impl FnOnce() -> Result<Record>) -> Result<()> {
        if let Some(core) = self.core {
            cores::pin_self(core)?;
        }
        let made = experiment()?;
        record::write(&made, &self.out)?;
        print!("{}", made.markdown());
        Ok(())
    }
}

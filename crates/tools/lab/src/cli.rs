//! `raingauge lab`: arguments and output.

#[cfg(feature = "experiments")]
mod experiments;
mod redis;

use crate::events::Drops;
use crate::http::Target;
use crate::measure::{Measurement, Pace};
use crate::report::{grouped, milliseconds};
use crate::server;
use crate::traffic::recording;
use crate::workload::{Settings, Workload};
use crate::{campaigns, cores, counts, faults, ingest, now_s, pages, points, replay, rollout};
use anyhow::{Context, Result, ensure};
use clap::Subcommand;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Lab {
    /// Only checks the arguments; scripts do so before they start servers
    #[arg(long, global = true, overrides_with = "check_arguments")]
    check_arguments: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Batches of ten ranges by POST /v1/counts: the maximum rate, then latencies at a fixed rate
    #[command(after_help = "Example: raingauge lab counts --server 127.0.0.1:8080 --core 1")]
    Counts {
        #[command(flatten)]
        server: ServerArguments,
        #[command(flatten)]
        settings: Settings,
        /// Batches per second of the open loop; default: half of the maximum rate measured
        #[arg(long)]
        rate: Option<f64>,
        /// Skip loading the history; counts are then not compared with the expected values
        #[arg(long)]
        skip_load: bool,
    },
    /// NDJSON bodies of new events by POST /v1/events, durable when acknowledged
    #[command(
        after_help = "Example: raingauge lab ingest --server 127.0.0.1:8080 --body-events 1000 --applied"
    )]
    Ingest {
        #[command(flatten)]
        server: ServerArguments,
        #[command(flatten)]
        settings: Settings,
        /// Events per body
        #[arg(long, default_value_t = 1_000)]
        body_events: usize,
        /// Events per second of an open loop; default: as many as the server accepts
        #[arg(long)]
        rate: Option<f64>,
        /// Wait until the counts include every acknowledged event
        #[arg(long)]
        applied: bool,
    },
    /// Events that 10,000 campaigns decide on: the maximum rate, latencies at half of it, and the
    /// rate of deliveries
    #[command(
        after_help = "Example: raingauge lab campaigns --server 127.0.0.1:8080 --connections 8"
    )]
    Campaigns {
        #[command(flatten)]
        server: ServerArguments,
        #[command(flatten)]
        options: campaigns::Options,
    },
    /// Awards of points in batches and one at a time, balances, and a sweep
    #[command(
        after_help = "Example: raingauge lab points --server 127.0.0.1:8080 --members 1000000 --skew 1"
    )]
    Points {
        #[command(flatten)]
        server: ServerArguments,
        #[command(flatten)]
        options: points::Options,
        /// File for the measurements, as JSON
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Pages of the portal with 1,000 counters and a year of data: response time of each page
    #[command(after_help = "Example: raingauge lab pages --server 127.0.0.1:8080 --core 1")]
    Pages {
        #[command(flatten)]
        server: ServerArguments,
        /// Minimum number of counters in the list
        #[arg(long, default_value_t = 1_000)]
        counters: usize,
        /// Requests per page
        #[arg(long, default_value_t = 200)]
        requests: u32,
    },
    /// Begins a guarded rollout of a cache strategy on a live service, and follows it: step by
    /// step, and back when limits are exceeded
    #[command(
        after_help = "Example: raingauge lab rollout --server 127.0.0.1:8080 --to live --shares 5,25,100 --hold-s 600"
    )]
    Rollout {
        #[command(flatten)]
        options: Box<rollout::Options>,
    },
    /// Replays recorded requests at their recorded times, and reports their latencies
    #[command(
        after_help = "Example: raingauge lab replay requests.ndjson --server 127.0.0.1:8080 --speed 2"
    )]
    Replay {
        /// Lines of {"atMs":…,"requests":[{"key":…,"fromTime":…,"toTime":…}]}; times up to 0 are
        /// seconds relative to the request
        file: PathBuf,
        #[command(flatten)]
        server: ServerArguments,
        /// Speed of the replay as a multiple of the recorded speed
        #[arg(long, default_value_t = 1.0)]
        speed: f64,
    },
    /// Repeatedly injects faults into a cluster under load, and compares every count with a model;
    /// fails on any difference
    #[command(
        after_help = "Example: scripts/services start servers --cassandra 3 --kafka --mariadb --redis && \
                      raingauge lab faults --services servers --faults 100"
    )]
    Faults {
        #[command(flatten)]
        options: Box<faults::Options>,
    },
    #[command(flatten)]
    Redis(redis::Command),
    #[cfg(feature = "experiments")]
    #[command(flatten)]
    Experiments(experiments::Command),
}

#[derive(Debug, clap::Args)]
pub struct ServerArguments {
    /// Address of a running raingauge
    #[arg(long)]
    server: SocketAddr,
    /// Bearer token, if the server requires one
    #[arg(long, env = "RAINGAUGE_TOKEN")]
    token: Option<String>,
    /// Persistent connections, each with one request in flight
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Duration of each measurement, in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Core to pin this program to
    #[arg(long)]
    core: Option<usize>,
}

impl ServerArguments {
    fn target(&self) -> Result<Target> {
        if let Some(core) = self.core {
            cores::pin_self(core)?;
        }
        Ok(Target { address: self.server, token: self.token.clone() })
    }

    fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

pub fn run(lab: Lab) -> Result<()> {
    if lab.check_arguments {
        return Ok(());
    }

    match lab.command {
        Command::Counts { server, settings, rate, skip_load } => {
            run_counts(&server, settings, rate, skip_load)
        }
        Command::Ingest { server, settings, body_events, rate, applied } => {
            run_ingest(&server, settings, body_events, rate, applied)
        }
        Command::Campaigns { server, options } => run_campaigns(&server, &options),
        Command::Points { server, options, json } => run_points(&server, &options, json),
        Command::Pages { server, counters, requests } => run_pages(&server, counters, requests),
        Command::Rollout { options } => run_rollout(&options),
        Command::Replay { file, server, speed } => run_replay(&file, &server, speed),
        Command::Faults { options } => run_faults(&options),
        Command::Redis(command) => redis::run(command),
        #[cfg(feature = "experiments")]
        Command::Experiments(command) => experiments::run(command),
    }
}

fn run_counts(
    server: &ServerArguments,
    settings: Settings,
    rate: Option<f64>,
    skip_load: bool,
) -> Result<()> {
    let target = server.target()?;
    let workload = Workload::new(settings, now_s());
    if !skip_load {
        let loaded = server::Lab::prepare(&target, &workload)?.load_history(&workload)?;
        eprintln!("lab: {loaded} buckets loaded");
    }

    let measure = |pace| {
        counts::measure(&workload, &target, server.connections, pace, server.duration(), !skip_load)
    };
    let rate = match rate {
        Some(rate) => rate,
        None => {
            let greatest = measure(Pace::Closed)?;
            print("closed loop, batches", &greatest.measured, greatest.pushed_back);
            greatest.measured.requests_per_s / 2.0
        }
    };

    let paced = measure(Pace::Open(rate))?;
    print(&format!("open loop at {rate:.0}/s, batches"), &paced.measured, paced.pushed_back);
    println!("answers checked in full at that rate: {}", paced.answers_checked);

    Ok(())
}

fn run_ingest(
    server: &ServerArguments,
    settings: Settings,
    body_events: usize,
    rate: Option<f64>,
    applied: bool,
) -> Result<()> {
    let target = server.target()?;
    let now_s = now_s();
    let workload = Workload::new(Settings { history: 0, ..settings }, now_s);
    let mut lab = server::Lab::prepare(&target, &workload)?;
    let drops = Drops::new(settings.keys, body_events, settings.seed, now_s);

    let pace = rate.map_or(Pace::Closed, |rate| Pace::Open(rate / body_events as f64));
    let ingested =
        ingest::measure(&mut lab, &drops, server.connections, pace, server.duration(), applied)?;
    print(
        &format!("bodies of {body_events} events, {} bytes", ingested.body_bytes_mean),
        &ingested.measured,
        ingested.pushed_back,
    );
    println!(
        "acknowledged: {} events, {} events/s",
        grouped(ingested.accepted as f64),
        grouped(ingested.acknowledged_per_s)
    );

    if let Some(applied_per_s) = ingested.applied_per_s {
        println!("until all are counted: {} events/s", grouped(applied_per_s));
    }
    Ok(())
}

fn run_campaigns(server: &ServerArguments, options: &campaigns::Options) -> Result<()> {
    let target = server.target()?;
    let report = campaigns::run(&target, server.connections, server.duration(), options)?;
    print!("{}", report.text());
    Ok(())
}

fn run_points(
    server: &ServerArguments,
    options: &points::Options,
    json: Option<PathBuf>,
) -> Result<()> {
    let target = server.target()?;
    let report = points::run(&target, server.connections, server.duration(), options)?;
    write_json(&report, json)?;
    print!("{}", report.text());
    Ok(())
}

fn run_pages(server: &ServerArguments, counters: usize, requests: u32) -> Result<()> {
    let target = server.target()?;
    let now_s = now_s();
    let id = pages::load(&target, counters, now_s)?;
    println!("| page | bytes | p50 ms | p95 ms | max ms |\n|---|--:|--:|--:|--:|");
    for page in pages::measure(&target, id, requests, now_s)? {
        let bytes = grouped(page.bytes as f64);
        println!(
            "| {} | {bytes} | {:.2} | {:.2} | {:.2} |",
            page.what, page.p50_ms, page.p95_ms, page.max_ms
        );
    }
    Ok(())
}

fn run_rollout(options: &rollout::Options) -> Result<()> {
    let report = rollout::run(options)?;
    write_json(&report.json, options.json.clone())?;
    print!("{}", report.rollout.markdown());
    match report.failure() {
        Some(failure) => anyhow::bail!(failure),
        None => Ok(()),
    }
}

fn run_replay(file: &Path, server: &ServerArguments, speed: f64) -> Result<()> {
    ensure!(speed.is_finite() && speed > 0.0, "--speed must be above 0");
    let lines =
        std::fs::File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let recording =
        recording::read(BufReader::new(lines)).with_context(|| file.display().to_string())?;
    let (load, failed) = replay::run(&server.target()?, server.connections, &recording, speed)?;

    print(
        &format!("{} batches at {speed} times the recorded speed", recording.len()),
        &load.measured,
        load.pushed_back,
    );
    println!("ranges that failed: {failed}");
    Ok(())
}

fn run_faults(options: &faults::Options) -> Result<()> {
    let report = faults::run(options)?;
    print!("{}", report.markdown());
    match report.fault() {
        Some(fault) => anyhow::bail!(fault),
        None => Ok(()),
    }
}

fn print(what: &str, measured: &Measurement, pushed_back: u64) {
    let latency = &measured.latency;
    println!(
        "{what}: {}/s ({} units/s); ms p50 {} p99 {} p99.9 {} max {}; unanswered {}, pushed back {pushed_back}",
        grouped(measured.requests_per_s),
        grouped(measured.units_per_s),
        milliseconds(latency.p50_us),
        milliseconds(latency.p99_us),
        milliseconds(latency.p999_us),
        milliseconds(latency.max_us),
        measured.unanswered,
    );
}

fn write_json(report: &impl serde::Serialize, path: Option<PathBuf>) -> Result<()> {
    if let Some(path) = path {
        std::fs::write(path, serde_json::to_vec_pretty(report)?)?;
    }
    Ok(())
}

//! `raingauge lab`: what it takes, and what it prints.

use crate::capacity::{self, Model};
use crate::events::Drops;
use crate::experiment::prices::Prices;
use crate::experiment::record::Record;
use crate::experiment::scenario::Scenario;
use crate::experiment::{cases, report};
use crate::http::Target;
use crate::measure::{Measured, Pace};
use crate::peers::{self, report::Report};
use crate::report::{grouped, milliseconds};
use crate::server::Lab;
use crate::traffic::recording;
use crate::workload::{Settings, Workload};
use crate::{cores, counts, experiment, faults, ingest, now_s, pages, replay, rollout, strategies};
use anyhow::{Context, Result, ensure};
use clap::Subcommand;
use serde_json::json;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Batches of ten ranges by POST /v1/counts: the greatest rate, then latencies at a fixed rate
    #[command(after_help = "Example: raingauge lab counts --server 127.0.0.1:8080 --core 1")]
    Counts {
        #[command(flatten)]
        server: ServerArguments,
        #[command(flatten)]
        settings: Settings,
        /// Batches per second of the open loop; default: half of the greatest rate found
        #[arg(long)]
        rate: Option<f64>,
        /// Do not load the history first; counts are then not compared with the right ones
        #[arg(long)]
        skip_load: bool,
    },
    /// NDJSON bodies of new events by POST /v1/events, durable when acknowledged
    #[command(after_help = "Example: raingauge lab ingest --server 127.0.0.1:8080 --body-events 1000 --applied")]
    Ingest {
        #[command(flatten)]
        server: ServerArguments,
        #[command(flatten)]
        settings: Settings,
        /// Events in one body
        #[arg(long, default_value_t = 1_000)]
        body_events: usize,
        /// Events per second of an open loop; default: as many as the server takes
        #[arg(long)]
        rate: Option<f64>,
        /// Wait until the counts show every acknowledged event
        #[arg(long)]
        applied: bool,
    },
    /// raingauge beside the systems that one might count with instead: the same events and questions in one run
    #[command(
        after_help = "Example: scripts/peers install && raingauge lab peers --json peers.json --pictures pictures"
    )]
    Peers {
        #[command(flatten)]
        options: peers::run::Options,
        /// File for all results as JSON
        #[arg(long)]
        json: Option<PathBuf>,
        /// Folder for pictures, as SVG and PNG
        #[arg(long)]
        pictures: Option<PathBuf>,
        /// Measures nothing: tables and pictures of results that --json wrote before
        #[arg(long)]
        from: Option<PathBuf>,
    },
    /// Pages of the portal with 1,000 counters and a year of data: how long the server takes for each
    #[command(after_help = "Example: raingauge lab pages --server 127.0.0.1:8080 --core 1")]
    Pages {
        #[command(flatten)]
        server: ServerArguments,
        /// Counters that the list has at least
        #[arg(long, default_value_t = 1_000)]
        counters: usize,
        /// Requests of each page
        #[arg(long, default_value_t = 200)]
        requests: u32,
    },
    /// Measures a reader of a cluster under each cache strategy, and by the plain plan, in one run
    #[command(
        after_help = "Example: scripts/services start servers --cassandra 1 --kafka --mariadb --redis --warm && \
                      raingauge lab strategies --services servers"
    )]
    Strategies {
        #[command(flatten)]
        options: strategies::Options,
        /// File for all results as JSON
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// The published experiment: a result cache is taken away configuration by configuration; figures and a report
    #[command(
        after_help = "Example: scripts/services start servers --cassandra 1 --heap 1024 --warm --kafka --mariadb --redis && \
                      raingauge lab cache-removal --services servers --out report"
    )]
    CacheRemoval {
        #[command(flatten)]
        options: experiment::Arguments,
    },
    /// Every cache strategy and plan at the turn of quarter hours, on a cluster and embedded: load, latency, cost
    #[command(
        after_help = "Example: scripts/services start servers --cassandra 1 --heap 1024 --warm --kafka --mariadb --redis && \
                      raingauge lab turns --services servers --out turns"
    )]
    Turns {
        #[command(flatten)]
        options: experiment::Arguments,
        /// Prices of cores and memory; default: usual ones
        #[arg(long)]
        prices: Option<PathBuf>,
    },
    /// Draws the figures of an experiment again, and writes its report
    #[command(after_help = "Example: raingauge lab report report")]
    Report {
        /// The folder with its record.json
        folder: PathBuf,
    },
    /// How many machines a load needs, by a model that is fitted to the run of an experiment
    #[command(
        after_help = "Example: raingauge lab capacity --record report --check report-2 --events 20000 --counts 50000 --keys 5000000"
    )]
    Capacity {
        /// The folder of a run, with its record.json
        #[arg(long)]
        record: PathBuf,
        /// The folder of another run, with which the model is compared
        #[arg(long)]
        check: Option<PathBuf>,
        #[command(flatten)]
        wanted: Box<capacity::Wanted>,
        /// Prices of cores and memory; default: usual ones
        #[arg(long)]
        prices: Option<PathBuf>,
        /// File for the model, its error and its answer as JSON
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Rolls a cache strategy out on a live service, step by step, and back by itself when limits are broken
    #[command(
        after_help = "Example: raingauge lab rollout --server 127.0.0.1:8080 --to live --shares 5,25,100 --hold-s 600"
    )]
    Rollout {
        #[command(flatten)]
        options: Box<rollout::Options>,
    },
    /// Asks recorded requests again at their moments, and says how long they took
    #[command(after_help = "Example: raingauge lab replay requests.ndjson --server 127.0.0.1:8080 --speed 2")]
    Replay {
        /// Lines of {"atMs":…,"requests":[{"key":…,"fromTime":…,"toTime":…}]}; times up to 0 are seconds before the asking
        file: PathBuf,
        #[command(flatten)]
        server: ServerArguments,
        /// How many times as fast as they were recorded
        #[arg(long, default_value_t = 1.0)]
        speed: f64,
    },
    /// Writes what a traffic model asks, as a recording
    #[command(after_help = "Example: raingauge lab traffic --seconds 60 > requests.ndjson")]
    Traffic {
        /// A scenario, of which the traffic is taken; default: the published one
        #[arg(long)]
        scenario: Option<PathBuf>,
        /// From the beginning of the scenario on
        #[arg(long, default_value_t = 60)]
        seconds: i64,
    },
    /// Breaks a cluster under load, again and again, and compares every count with a model; fails when one differs
    #[command(after_help = "Example: scripts/services start servers --cassandra 3 --kafka --mariadb --redis && \
                      raingauge lab faults --services servers --faults 100")]
    Faults {
        #[command(flatten)]
        options: Box<faults::Options>,
    },
}

#[derive(Debug, clap::Args)]
pub struct ServerArguments {
    /// Address of a running raingauge
    #[arg(long)]
    server: SocketAddr,
    /// Bearer token, where the server asks for one
    #[arg(long, env = "RAINGAUGE_TOKEN")]
    token: Option<String>,
    /// Kept connections, each with one request in flight
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// How long each measurement takes, in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Core to run this program on
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

/// The program that is running: it is also what is measured, unless another one is named.
pub fn this_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "raingauge".into())
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Counts { server, settings, rate, skip_load } => run_counts(&server, settings, rate, skip_load),
        Command::Ingest { server, settings, body_events, rate, applied } => {
            run_ingest(&server, settings, body_events, rate, applied)
        }
        Command::Peers { options, json, pictures, from } => {
            run_peers(options, json, pictures.as_deref(), from.as_deref())
        }
        Command::Pages { server, counters, requests } => run_pages(&server, counters, requests),
        Command::Strategies { options, json } => {
            let report = strategies::run(&options)?;
            write_json(&report, json)?;
            print!("{}", report.markdown());
            Ok(())
        }
        Command::CacheRemoval { options } => run_cache_removal(&options),
        Command::Turns { options, prices } => run_turns(&options, prices.as_deref()),
        Command::Report { folder } => write_report(&report::read(&folder)?, &folder),
        Command::Capacity { record, check, wanted, prices, json } => {
            let model = Model::fitted(&report::read(&record)?)?;
            let errors =
                check.map(|folder| Ok::<_, anyhow::Error>(model.check(&report::read(&folder)?))).transpose()?;
            let answer = model.answer(&wanted, &prices.as_deref().map_or_else(Prices::usual, Prices::read)?);
            print!("{}", capacity::markdown(&model, errors.as_ref(), &answer));
            write_json(&json!({ "model": model, "errors": errors, "wanted": wanted, "answer": answer }), json)
        }
        Command::Rollout { options } => run_rollout(&options),
        Command::Replay { file, server, speed } => run_replay(&file, &server, speed),
        Command::Traffic { scenario, seconds } => {
            let scenario = scenario.as_deref().map_or_else(Scenario::published, Scenario::read)?;
            let from_s = scenario.from_ms()?.div_euclid(1_000);
            let mut out = std::io::stdout().lock();
            replay::write(&scenario.traffic, from_s, seconds, &mut out).map(drop)
        }
        Command::Faults { options } => run_faults(&options),
    }
}

fn run_counts(server: &ServerArguments, settings: Settings, rate: Option<f64>, skip_load: bool) -> Result<()> {
    let target = server.target()?;
    let workload = Workload::new(settings, now_s());
    if !skip_load {
        let loaded = Lab::prepare(&target, &workload)?.load_history(&workload)?;
        eprintln!("lab: {loaded} buckets loaded");
    }
    let measure = |pace| counts::measure(&workload, &target, server.connections, pace, server.duration(), !skip_load);
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
    let mut lab = Lab::prepare(&target, &workload)?;
    let drops = Drops::new(settings.keys, body_events, settings.seed, now_s);
    let pace = rate.map_or(Pace::Closed, |rate| Pace::Open(rate / body_events as f64));
    let ingested = ingest::measure(&mut lab, &drops, server.connections, pace, server.duration(), applied)?;
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
        println!("until every one showed in the counts: {} events/s", grouped(applied_per_s));
    }
    Ok(())
}

fn run_pages(server: &ServerArguments, counters: usize, requests: u32) -> Result<()> {
    let (target, now_s) = (server.target()?, now_s());
    let id = pages::load(&target, counters, now_s)?;
    println!("| page | bytes | p50 ms | p95 ms | max ms |\n|---|--:|--:|--:|--:|");
    for page in pages::measure(&target, id, requests, now_s)? {
        let bytes = grouped(page.bytes as f64);
        println!("| {} | {bytes} | {:.2} | {:.2} | {:.2} |", page.what, page.p50_ms, page.p95_ms, page.max_ms);
    }
    Ok(())
}

fn run_cache_removal(arguments: &experiment::Arguments) -> Result<()> {
    let scenario = arguments.scenario.as_deref().map_or_else(Scenario::published, Scenario::read)?;
    let mut record = experiment::run(&scenario, &arguments.options())?;
    let file = arguments.scenario.as_ref().map(|path| format!(" --scenario {}", path.display())).unwrap_or_default();
    record.traffic.insert("command".to_owned(), format!("scripts/lab cache-removal{file}"));
    write_report(&record, &arguments.out)
}

fn write_report(record: &Record, out: &Path) -> Result<()> {
    let summary = report::write(record, out)?;
    for finding in &summary.findings {
        println!("{:<14} {}", finding.verdict.words(), finding.claim);
    }
    println!("{}", out.join("index.html").display());
    Ok(())
}

fn run_turns(arguments: &experiment::Arguments, prices: Option<&Path>) -> Result<()> {
    let scenario = arguments.scenario.as_deref().map_or_else(Scenario::turns, Scenario::read)?;
    let prices = prices.map_or_else(Prices::usual, Prices::read)?;
    let options = arguments.options();
    let mut rows = cases::on_cluster(&scenario, &options, &cases::ON_CLUSTER, &prices)?;
    rows.extend(cases::embedded(&scenario, &options, &cases::EMBEDDED, &prices)?);
    write_json(&rows, Some(arguments.out.join("turns.json")))?;
    print!("{}", cases::markdown(&rows));
    Ok(())
}

fn run_rollout(options: &rollout::Options) -> Result<()> {
    let report = rollout::run(options)?;
    write_json(&report, options.json.clone())?;
    print!("{}", report.rollout.markdown());
    match report.why_back() {
        Some(why) => anyhow::bail!("rolled back: {why}"),
        None => Ok(()),
    }
}

fn run_replay(file: &Path, server: &ServerArguments, speed: f64) -> Result<()> {
    ensure!(speed.is_finite() && speed > 0.0, "--speed must be above 0");
    let lines = std::fs::File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let recording = recording::read(BufReader::new(lines)).with_context(|| file.display().to_string())?;
    let (load, failed) = replay::run(&server.target()?, server.connections, &recording, speed)?;
    print(&format!("{} batches at {speed} times their pace", recording.len()), &load.measured, load.pushed_back);
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

fn print(what: &str, measured: &Measured, pushed_back: u64) {
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

fn run_peers(
    options: peers::run::Options,
    json: Option<PathBuf>,
    pictures: Option<&Path>,
    from: Option<&Path>,
) -> Result<()> {
    let report: Report = match from {
        Some(path) => serde_json::from_slice(&std::fs::read(path)?).with_context(|| path.display().to_string())?,
        None => peers::run::run(options)?,
    };
    write_json(&report, json)?;
    print!("{}", report.markdown());
    pictures.map_or(Ok(()), |folder| peers::figure::write(&report, folder))
}

fn write_json(report: &impl serde::Serialize, path: Option<PathBuf>) -> Result<()> {
    if let Some(path) = path {
        std::fs::write(path, serde_json::to_vec_pretty(report)?)?;
    }
    Ok(())
}

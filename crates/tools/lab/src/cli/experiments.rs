//! The commands of `raingauge lab` that run other systems or draw figures: the feature
//! `experiments`.

use super::write_json;
use crate::capacity::{self, Model};
use crate::experiment::cases::Comparison;
use crate::experiment::prices::Prices;
use crate::experiment::record::Record;
use crate::experiment::scenario::Scenario;
use crate::experiment::{self, cases, report};
use crate::peers::{self, report::Report};
use crate::{points, replay};
use anyhow::{Context, Result};
use clap::Subcommand;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compares raingauge with alternative systems: the same events and questions in one run
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
        /// Measures nothing: renders tables and pictures from a file written by --json
        #[arg(long)]
        from: Option<PathBuf>,
    },
    /// The awards of `lab points` on a database, as its users would make them
    #[command(
        after_help = "Example: raingauge lab points-peer --members 1000000 postgresql --port 5432"
    )]
    PointsPeer {
        #[command(flatten)]
        options: Box<points::peers::Options>,
    },
    /// The published experiment: removes a result cache in steps; writes figures and a report
    #[command(
        after_help = "Example: scripts/services start servers --cassandra 1 --heap 1024 --warm --kafka --mariadb --redis && \
                      raingauge lab cache-removal --services servers --out report"
    )]
    CacheRemoval {
        #[command(flatten)]
        options: experiment::Options,
    },
    /// Every cache strategy and plan, on a cluster and embedded: load, latency and cost at the turn
    /// of quarter hours, or the maximum rate
    #[command(
        after_help = "Example: scripts/services start servers --cassandra 1 --heap 1024 --warm --kafka --mariadb --redis && \
                      raingauge lab turns --services servers --out turns"
    )]
    Turns {
        #[command(flatten)]
        options: experiment::Options,
        /// Prices of cores and memory; default: typical ones
        #[arg(long)]
        prices: Option<PathBuf>,
        /// Measures the maximum rate instead, on a closed loop of this many seconds, and the
        /// latencies at half of the first maximum; no quarter hour begins during it
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=300))]
        closed_loop: Option<u32>,
        /// Number of times that everything is measured
        #[arg(long, default_value_t = 1)]
        rounds: usize,
    },
    /// Redraws the figures of an experiment, and rewrites its report
    #[command(after_help = "Example: raingauge lab report report")]
    Report {
        /// The folder with its record.json
        folder: PathBuf,
    },
    /// How many machines a load needs, by a model fitted to the run of an experiment
    #[command(
        after_help = "Example: raingauge lab capacity --record report --check report-2 --events 20000 --counts 50000 --keys 5000000"
    )]
    Capacity {
        /// The folder of a run, with its record.json
        #[arg(long)]
        record: PathBuf,
        /// The folder of another run, against which the model is checked
        #[arg(long)]
        check: Option<PathBuf>,
        #[command(flatten)]
        wanted: Box<capacity::Demand>,
        /// Prices of cores and memory; default: typical ones
        #[arg(long)]
        prices: Option<PathBuf>,
        /// File for the model, its error and its answer as JSON
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Writes the requests of a traffic model as a recording
    #[command(after_help = "Example: raingauge lab traffic --seconds 60 > requests.ndjson")]
    Traffic {
        /// The scenario whose traffic is used; default: the published one
        #[arg(long)]
        scenario: Option<PathBuf>,
        /// Seconds to write, from the start of the scenario
        #[arg(long, default_value_t = 60)]
        seconds: i64,
    },
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Peers { options, json, pictures, from } => {
            run_peers(options, json, pictures.as_deref(), from.as_deref())
        }
        Command::PointsPeer { options } => {
            let measured = points::peers::run(&options)?;
            write_json(&measured, options.json.clone())?;
            print!("{}", points::peers::text(&measured));
            Ok(())
        }
        Command::CacheRemoval { options } => run_cache_removal(&options),
        Command::Turns { options, prices, closed_loop, rounds } => {
            run_turns(&options, prices.as_deref(), closed_loop, rounds)
        }
        Command::Report { folder } => write_report(&report::read(&folder)?, &folder),
        Command::Capacity { record, check, wanted, prices, json } => {
            let model = Model::fitted(&report::read(&record)?)?;
            let errors = check
                .map(|folder| Ok::<_, anyhow::Error>(model.check(&report::read(&folder)?)))
                .transpose()?;
            let answer =
                model.answer(&wanted, &prices.as_deref().map_or_else(Prices::usual, Prices::read)?);
            print!("{}", capacity::markdown(&model, errors.as_ref(), &answer));

            write_json(
                &json!({ "model": model, "errors": errors, "wanted": wanted, "answer": answer }),
                json,
            )
        }
        Command::Traffic { scenario, seconds } => {
            let scenario = scenario.as_deref().map_or_else(Scenario::published, Scenario::read)?;
            let from_s = scenario.from_ms()?.div_euclid(1_000);
            let mut out = std::io::stdout().lock();
            replay::write(&scenario.traffic, from_s, seconds, &mut out).map(drop)
        }
    }
}

fn run_cache_removal(options: &experiment::Options) -> Result<()> {
    let scenario = options.scenario.as_deref().map_or_else(Scenario::published, Scenario::read)?;
    let mut record = experiment::run(&scenario, options)?;
    let file = options
        .scenario
        .as_ref()
        .map(|path| format!(" --scenario {}", path.display()))
        .unwrap_or_default();
    record.traffic.insert("command".to_owned(), format!("scripts/lab cache-removal{file}"));
    write_report(&record, &options.out)
}

fn write_report(record: &Record, out: &Path) -> Result<()> {
    let summary = report::write(record, out)?;
    for finding in &summary.findings {
        println!("{:<14} {}", finding.verdict.name(), finding.claim);
    }
    println!("{}", out.join("index.html").display());
    Ok(())
}

fn run_turns(
    options: &experiment::Options,
    prices: Option<&Path>,
    closed_loop: Option<u32>,
    rounds: usize,
) -> Result<()> {
    let mut scenario = options.scenario.as_deref().map_or_else(Scenario::turns, Scenario::read)?;
    if closed_loop.is_some() {
        scenario.factor = 1;
    }

    let comparison = Comparison {
        scenario: &scenario,
        options,
        prices: &prices.map_or_else(Prices::usual, Prices::read)?,
        closed_loop,
    };
    let mut rows = comparison.on_cluster(&cases::ON_CLUSTER.repeat(rounds))?;
    rows.extend(comparison.embedded(&cases::EMBEDDED.repeat(rounds))?);

    write_json(&rows, Some(options.out.join("turns.json")))?;
    print!("{}", cases::markdown(&rows));
    Ok(())
}

fn run_peers(
    options: peers::run::Options,
    json: Option<PathBuf>,
    pictures: Option<&Path>,
    from: Option<&Path>,
) -> Result<()> {
    let report: Report = match from {
        Some(path) => serde_json::from_slice(&std::fs::read(path)?)
            .with_context(|| path.display().to_string())?,
        None => peers::run::run(options)?,
    };

    write_json(&report, json)?;
    print!("{}", report.markdown());

    if let Some(folder) = pictures {
        peers::figure::write(&report, folder)?;
    }

    match report.fault() {
        Some(fault) => anyhow::bail!("the comparison is incomplete: {fault}"),
        None => Ok(()),
    }
}

//! A guarded rollout from the command line: the service conducts it, and this command follows it
//! through the public API to its end.

use crate::http::Target;
use crate::http::client::Client;
use anyhow::{Context, Result, anyhow};
use raingauge_policy::cache::Strategy;
use raingauge_policy::rollout::{End, Limits, Phase, Plan, Rollout, WatchedStage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the service is asked for progress.
const POLL: Duration = Duration::from_secs(1);
/// How long a portal may be away before the command gives up.
const AWAY_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Address of a portal, which conducts the rollout
    #[arg(long)]
    pub server: SocketAddr,
    /// Bearer token with the scope admin, if the service requires one
    #[arg(long, env = "RAINGAUGE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    #[command(flatten)]
    pub plan: PlanOptions,
    /// File for the report as JSON
    #[arg(long)]
    pub json: Option<PathBuf>,
}

/// The body of `POST /v1/rollouts`.
#[derive(Debug, Clone, clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanOptions {
    /// The new strategy of the counters: none, result, phased or live
    #[arg(long, value_parser = strategy)]
    to: Strategy,
    /// Percentages of the counters, in the order of the steps; ids decide which counters
    #[arg(long, value_delimiter = ',', default_values_t = Plan::SHARES)]
    shares: Vec<u32>,
    /// Duration of the canary before each step, which covers one percent more, in seconds; 0 for no
    /// canary
    #[arg(long, default_value_t = Plan::CANARY_S)]
    canary_s: f64,
    /// How long each step is observed, and the service before the first one, in seconds
    #[arg(long, default_value_t = Plan::HOLD_S)]
    hold_s: f64,
    #[command(flatten)]
    limits: LimitOptions,
}

#[derive(Debug, Clone, Copy, clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitOptions {
    /// Maximum 99th percentile of batches, as a multiple of the value before
    #[arg(long, default_value_t = Limits::DEFAULT.p99_times)]
    p99_times: f64,
    /// A 99th percentile below this many milliseconds is always acceptable
    #[arg(long, default_value_t = Limits::DEFAULT.p99_free_ms)]
    p99_free_ms: f64,
    /// Maximum increase of the share of failed counts
    #[arg(long, default_value_t = Limits::DEFAULT.failed_share)]
    failed_share: f64,
    /// Maximum requests to the store per count, as a multiple of the value before; up to six are
    /// always acceptable
    #[arg(long, default_value_t = Limits::DEFAULT.store_times)]
    store_times: f64,
    /// Maximum number of circuit breakers that may open
    #[arg(long, default_value_t = Limits::DEFAULT.breakers)]
    breakers: f64,
    /// Minimum number of batches in a window; with fewer, the rollout waits for more
    #[arg(long, default_value_t = Limits::DEFAULT.batches_min)]
    batches_min: f64,
}

fn strategy(name: &str) -> Result<Strategy> {
    let names = || Strategy::ALL.map(Strategy::name).join(", ");
    Strategy::from_name(name).ok_or_else(|| anyhow!("must be one of {}", names()))
}

/// A rollout that has ended.
pub struct Report {
    /// As the service reports it.
    pub json: Value,
    pub rollout: Rollout,
}

impl Report {
    /// Why the strategy does not apply to all the planned counters.
    pub fn failure(&self) -> Option<String> {
        match &self.rollout.phase {
            Phase::Ended { end, why } if *end != End::Finished => {
                Some(format!("{}: {why}", end.name()))
            }
            _ => None,
        }
    }
}

/// Begins a rollout and follows it until it has ended.
pub fn run(options: &Options) -> Result<Report> {
    let target = Target { address: options.server, token: options.token.clone() };
    let plan = serde_json::to_vec(&options.plan)?;
    let mut json = Client::connect(&target)?.json("POST", "/v1/rollouts", &plan)?;
    let path = format!("/v1/rollouts/{}", json["id"]);
    eprintln!("rollout: the service conducts it; POST {path}/stop ends it");

    let mut progress = Progress::default();
    loop {
        let rollout = Rollout::deserialize(&json).context("not a rollout")?;
        progress.print(&rollout);
        if rollout.end().is_some() {
            return Ok(Report { json, rollout });
        }

        std::thread::sleep(POLL);
        json = state(&target, &path)?;
    }
}

/// The state of a rollout, which outlasts a restart of the portal.
fn state(target: &Target, path: &str) -> Result<Value> {
    let deadline = Instant::now() + AWAY_MAX;
    loop {
        let answer = Client::connect(target).and_then(|mut client| client.json("GET", path, b""));
        match answer {
            Err(_) if Instant::now() < deadline => std::thread::sleep(POLL),
            answer => return answer.context("the service may still conduct the rollout"),
        }
    }
}

/// What has been printed of a rollout.
#[derive(Default)]
struct Progress {
    /// The version of the policy, and how many stages are over.
    version: Option<u32>,
    stages: usize,
}

impl Progress {
    fn print(&mut self, rollout: &Rollout) {
        for WatchedStage { stage, window, .. } in rollout.watched.iter().skip(self.stages) {
            eprintln!(
                "rollout: {}: p99 {:.1} ms, {:.0} counts/s",
                stage.words(),
                window.p99_ms,
                window.counts_per_s
            );
        }
        self.stages = rollout.watched.len();

        let is_set = self.version.replace(rollout.version).is_some_and(|it| it != rollout.version);
        match (&rollout.phase, rollout.stage()) {
            (Phase::Ended { .. }, _) => {}
            (Phase::Returning { why, .. }, _) => eprintln!("rollout: rolled back: {why}"),
            (_, Some(stage)) if is_set => {
                let strategy = rollout.plan.to.name();
                eprintln!("rollout: {strategy} for {} % of the counters", stage.share);
            }
            _ => {}
        }
    }
}

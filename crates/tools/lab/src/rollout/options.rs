//! Command-line options of a rollout.

use anyhow::{Result, anyhow, ensure};
use raingauge_policy::cache::Strategy;
use raingauge_policy::rollout::{Limits, Plan};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Address of a portal, through which the policy is set
    #[arg(long)]
    pub server: SocketAddr,
    /// Bearer token with the scope admin, if the service requires one
    #[arg(long, env = "RAINGAUGE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Addresses of the readers to observe; default: the portal's
    #[arg(long, value_delimiter = ',')]
    pub readers: Vec<SocketAddr>,
    /// The new strategy of the counters: none, result, phased or live
    #[arg(long, value_parser = strategy)]
    pub to: Strategy,
    /// Percentages of the counters, in the order of the steps; ids decide which counters
    #[arg(long, value_delimiter = ',', default_values_t = Plan::SHARES)]
    pub shares: Vec<u32>,
    /// Duration of the canary before each step, which covers one percent more, in seconds; 0 for no
    /// canary
    #[arg(long, default_value_t = Plan::CANARY_S)]
    pub canary_s: f64,
    /// How long each step is observed, and the service before the first one, in seconds
    #[arg(long, default_value_t = Plan::HOLD_S)]
    pub hold_s: f64,
    #[command(flatten)]
    pub limits: LimitOptions,
    /// File for the report as JSON
    #[arg(long)]
    pub json: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::Args)]
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

impl Options {
    /// Returns the plan, if it is valid.
    pub fn plan(&self) -> Result<Plan> {
        let LimitOptions {
            p99_times,
            p99_free_ms,
            failed_share,
            store_times,
            breakers,
            batches_min,
        } = self.limits;

        let limits =
            Limits { p99_times, p99_free_ms, failed_share, store_times, breakers, batches_min };
        let shares = self.shares.clone();
        let canary_s = self.canary_s;
        let hold_s = self.hold_s;
        let plan = Plan { to: self.to, shares, canary_s, hold_s, limits };
        let problems = plan.problems();
        let told: Vec<String> = problems
            .iter()
            .map(|problem| format!("--{} {}", kebab(&problem.field), problem.detail))
            .collect();

        ensure!(told.is_empty(), "{}", told.join("; "));
        Ok(plan)
    }
}

/// Converts a JSON member name to an option name: `p99Times` to `p99-times`.
fn kebab(field: &str) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_uppercase() {
            format!("-{}", letter.to_ascii_lowercase())
        } else {
            letter.to_string()
        }
    };
    field.chars().map(letter).collect()
}

fn strategy(name: &str) -> Result<Strategy> {
    let names = || Strategy::ALL.map(Strategy::name).join(", ");
    let found = Strategy::ALL.into_iter().find(|strategy| strategy.name() == name);
    found.ok_or_else(|| anyhow!("must be one of {}", names()))
}

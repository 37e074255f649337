//! What a rollout is told on the command line.

use anyhow::{Result, anyhow, ensure};
use raingauge_policy::cache::Strategy;
use raingauge_policy::rollout::{Limits, Plan};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Address of a portal, where the policy is set
    #[arg(long)]
    pub server: SocketAddr,
    /// Bearer token with the scope admin, where the service asks for one
    #[arg(long, env = "RAINGAUGE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Addresses of the readers that are watched; default: the portal's
    #[arg(long, value_delimiter = ',')]
    pub readers: Vec<SocketAddr>,
    /// The strategy that counters get: none, result, phased or live
    #[arg(long, value_parser = strategy)]
    pub to: Strategy,
    /// Hundredths of the counters, by arithmetic on their ids, in the order of the steps
    #[arg(long, value_delimiter = ',', default_values_t = Plan::SHARES)]
    pub shares: Vec<u32>,
    /// How long a canary of one hundredth more is watched before each step, in seconds; 0 for no
    /// canary
    #[arg(long, default_value_t = Plan::CANARY_S)]
    pub canary_s: f64,
    /// How long each step is watched, and the service before the first one, in seconds
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
    /// The 99th percentile of batches may be so many times that of before
    #[arg(long, default_value_t = Limits::DEFAULT.p99_times)]
    p99_times: f64,
    /// And below so many milliseconds it never matters
    #[arg(long, default_value_t = Limits::DEFAULT.p99_free_ms)]
    p99_free_ms: f64,
    /// Of the counts, so great a share may fail more than before
    #[arg(long, default_value_t = Limits::DEFAULT.failed_share)]
    failed_share: f64,
    /// Requests to the store for each count may be so many times those of before, or at most six
    #[arg(long, default_value_t = Limits::DEFAULT.store_times)]
    store_times: f64,
    /// So many circuit breakers may open
    #[arg(long, default_value_t = Limits::DEFAULT.breakers)]
    breakers: f64,
    /// A window of fewer batches says nothing: the rollout waits for more
    #[arg(long, default_value_t = Limits::DEFAULT.batches_min)]
    batches_min: f64,
}

impl Options {
    /// The plan, if it is one.
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

/// A member of JSON as an option: `p99Times` is `p99-times`.
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
    found.ok_or_else(|| anyhow!("is one of {}", names()))
}

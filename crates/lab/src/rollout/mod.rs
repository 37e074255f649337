//! A cache strategy is rolled out on a live service, step by step, and back by itself when the service suffers: what the
//! reference did by hand over eight days.
//!
//! ```text
//!   as it is ──▶ for each share: canary ──▶ share ──▶ as it is at the end
//!      │                          │            │
//!   baseline                    within the limits? ── no ──▶ the policy of before, and an error
//! ```
//!
//! It works over the public doors: the policy at a portal, the metrics of the readers.

mod limits;
mod window;

use crate::http::Target;
use crate::http::client::Client;
use crate::policy::{self, MODULO};
use anyhow::{Context, Result, ensure};
pub use limits::Limits;
use serde::Serialize;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use window::{Reading, Window};

const POLL: Duration = Duration::from_millis(100);
/// A window is drawn out until enough was asked, but not beyond so many times its length.
const PATIENCE: u32 = 10;

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
    #[arg(long)]
    pub to: String,
    /// Hundredths of the counters, by arithmetic on their ids, in the order of the steps
    #[arg(long, value_delimiter = ',', default_values_t = [5, 25, 35, 75, 100])]
    pub shares: Vec<u32>,
    /// How long a canary of one hundredth more is watched before each step, in seconds; 0 for no canary
    #[arg(long, default_value_t = 300.0)]
    pub canary_s: f64,
    /// How long each step is watched, and the service before the first one, in seconds
    #[arg(long, default_value_t = 1_800.0)]
    pub hold_s: f64,
    #[command(flatten)]
    pub limits: Limits,
    /// File for the report as JSON
    #[arg(long)]
    pub json: Option<PathBuf>,
}

/// What was done, and what was seen of it.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub started: String,
    pub to: String,
    pub limits: Limits,
    pub baseline: Window,
    pub steps: Vec<Watched>,
    /// Why it was rolled back; empty when it went through.
    pub broken: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Watched {
    pub share: u32,
    pub is_canary: bool,
    pub window: Window,
}

impl Report {
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "| | counts/s | failed | p99 ms | mean ms | requests to the store/s | breakers |\n|---|--:|--:|--:|--:|--:|--:|\n",
        );
        let mut row = |what: &str, window: &Window| {
            text += &format!(
                "| {what} | {:.0} | {:.3} % | {:.1} | {:.2} | {:.0} | {:.0} |\n",
                window.counts_per_s,
                100.0 * window.failed_share,
                window.p99_ms,
                window.mean_ms,
                window.store_requests_per_s,
                window.breakers_opened
            );
        };
        row("before", &self.baseline);
        for step in &self.steps {
            row(&format!("{} %{}", step.share, if step.is_canary { ", canary" } else { "" }), &step.window);
        }
        match self.broken.is_empty() {
            true => text += &format!("\n`{}` is in force.\n", self.to),
            false => text += &format!("\nRolled back: {}.\n", self.broken.join("; ")),
        }
        text
    }
}

/// Rolls out, and answers what was seen. Whatever goes wrong on the way, the policy of before is set again.
pub fn run(options: &Options) -> Result<Report> {
    ensure!(options.shares.is_sorted() && !options.shares.is_empty(), "--shares must grow from step to step");
    ensure!(options.shares.iter().all(|share| *share <= MODULO), "--shares are hundredths, at most {MODULO}");
    let rollout = Rollout::new(options)?;
    let mut report = Report {
        started: jiff::Timestamp::now().to_string(),
        to: options.to.clone(),
        limits: options.limits,
        baseline: rollout.watch(options.hold_s)?,
        steps: Vec::new(),
        broken: Vec::new(),
    };
    eprintln!("rollout: before: p99 {:.1} ms, {:.0} counts/s", report.baseline.p99_ms, report.baseline.counts_per_s);
    match rollout.go(&mut report) {
        Ok(()) if report.broken.is_empty() => Ok(report),
        Ok(()) => {
            rollout.back(&report.broken.join("; "))?;
            Ok(report)
        }
        Err(error) => {
            rollout.back(&format!("{error:#}"))?;
            Err(error.context("the policy of before is in force again"))
        }
    }
}

struct Rollout<'a> {
    options: &'a Options,
    portal: Target,
    readers: Vec<Target>,
    /// The policy that was in force.
    before: Value,
}

impl<'a> Rollout<'a> {
    fn new(options: &'a Options) -> Result<Self> {
        let target = |address: &SocketAddr| Target { address: *address, token: options.token.clone() };
        let portal = target(&options.server);
        let readers: Vec<Target> = options.readers.iter().map(target).collect();
        let readers = if readers.is_empty() { vec![portal.clone()] } else { readers };
        let before = Client::connect(&portal)?.json("GET", "/v1/cache-policy", b"")?;
        Ok(Self { options, portal, readers, before })
    }

    /// Step by step, until all are done or a limit is broken.
    fn go(&self, report: &mut Report) -> Result<()> {
        let mut share_before = 0;
        for share in &self.options.shares {
            let canary = (share_before + 1).min(*share);
            let parts = [(canary, true, self.options.canary_s), (*share, false, self.options.hold_s)];
            for (share, is_canary, seconds) in parts {
                if is_canary && (seconds <= 0.0 || canary == share_before) {
                    continue;
                }
                self.set(&self.policy(share), &format!("rollout of {}: {share} %", self.options.to))?;
                let window = self.watch(seconds)?;
                let what = if is_canary { "canary" } else { "step" };
                eprintln!(
                    "rollout: {what} {share} %: p99 {:.1} ms, {:.0} counts/s",
                    window.p99_ms, window.counts_per_s
                );
                report.steps.push(Watched { share, is_canary, window });
                report.broken = self.options.limits.broken(&report.baseline, &window);
                if !report.broken.is_empty() {
                    return Ok(());
                }
            }
            share_before = *share;
        }
        Ok(())
    }

    /// The policy of before, but for the counters of a share. When it is all of them, nothing of the old one is left but the
    /// exceptions of single instances.
    fn policy(&self, share: u32) -> Value {
        let (mut policy, to) = (self.before.clone(), &self.options.to);
        if share >= MODULO {
            policy["strategy"] = json!(to);
            policy["rollout"] = json!([]);
        } else {
            let step = json!({ "strategy": to, "modulo": MODULO, "below": share });
            let rest = policy["rollout"].as_array().cloned().unwrap_or_default();
            policy["rollout"] = std::iter::once(step).chain(rest).collect();
        }
        policy
    }

    fn back(&self, why: &str) -> Result<()> {
        eprintln!("rollout: back, because {why}");
        self.set(&self.before, &format!("rolled back: {why}")).context("the policy of before could not be set again")
    }

    /// Sets a policy, and waits until every reader follows it.
    fn set(&self, policy: &Value, reason: &str) -> Result<()> {
        policy::wait_followed(&self.readers, policy::set(&self.portal, policy, reason)?)
    }

    /// Watches for so long, and longer while too little was asked to say anything.
    fn watch(&self, seconds: f64) -> Result<Window> {
        let length = Duration::from_secs_f64(seconds.max(0.0));
        let before = Reading::take(&self.readers)?;
        for _ in 0..PATIENCE {
            std::thread::sleep(length.max(POLL));
            let window = Window::between(&before, &Reading::take(&self.readers)?);
            if self.options.limits.suffice(&window) {
                return Ok(window);
            }
        }
        anyhow::bail!(
            "fewer than {} batches were asked within {:.0} s: nothing can be said of the service",
            self.options.limits.batches_min,
            seconds * f64::from(PATIENCE)
        )
    }
}

//! A guarded rollout from the command line, through the public API: the policy of a portal, the
//! metrics of the readers. The decisions are those of `raingauge_policy::rollout`, as in the
//! portal.

mod options;
mod reading;

use crate::http::Target;
use crate::http::client::Client;
use crate::policy;
use anyhow::{Context, Result};
pub use options::Options;
use raingauge_policy::cache::Policy;
use raingauge_policy::rollout::{End, Phase, Rollout, Tally};
use reading::Reading;
use serde::Serialize;
use serde_json::json;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Number of observations per stage, within limits on their interval.
const BEATS: f64 = 10.0;
const BEAT_S_MIN: f64 = 0.1;
const BEAT_S_MAX: f64 = 5.0;

/// What the rollout did, and what it observed.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub started: String,
    #[serde(flatten)]
    pub rollout: Rollout,
}

impl Report {
    /// Why the strategy does not apply to all the planned counters.
    pub fn failure(&self) -> Option<&str> {
        match &self.rollout.phase {
            Phase::Ended { end, why } if *end != End::Finished => Some(why),
            _ => None,
        }
    }
}

/// Performs a rollout, and returns the observations. If anything fails, the previous policy is
/// restored.
pub fn run(options: &Options) -> Result<Report> {
    let mut conductor = Conductor::new(options)?;
    let started = jiff::Timestamp::now().to_string();
    let ended = conductor.run_stages();
    if let Err(error) = &ended {
        conductor.rollout.fail(format!("{error:#}"));
        conductor.apply_orders().context("the previous policy could not be restored")?;
    }
    ended.context("the previous policy is restored")?;
    Ok(Report { started, rollout: conductor.rollout })
}

struct Conductor {
    portal: Target,
    readers: Vec<Target>,
    rollout: Rollout,
    /// The totals of each reader at the last observation.
    seen: Vec<Tally>,
    began: Instant,
}

impl Conductor {
    fn new(options: &Options) -> Result<Self> {
        let plan = options.plan()?;
        let target =
            |address: &SocketAddr| Target { address: *address, token: options.token.clone() };
        let portal = target(&options.server);
        let readers: Vec<Target> = options.readers.iter().map(target).collect();
        let readers = if readers.is_empty() { vec![portal.clone()] } else { readers };

        let (before, version, _) = policy_at(&portal)?;
        if let Some(refusal) = plan.refusal(&before) {
            anyhow::bail!(refusal);
        }

        let seen =
            readers.iter().map(|reader| Ok(Reading::take(reader)?.tally)).collect::<Result<_>>()?;
        Ok(Self {
            portal,
            readers,
            rollout: Rollout::new(plan, before, version, 0),
            seen,
            began: Instant::now(),
        })
    }

    fn now_ms(&self) -> i64 {
        self.began.elapsed().as_millis() as i64
    }

    /// Runs stage by stage until the rollout has ended.
    fn run_stages(&mut self) -> Result<()> {
        while let Some(stage) = self.rollout.stage() {
            std::thread::sleep(Duration::from_secs_f64(
                (stage.seconds / BEATS).clamp(BEAT_S_MIN, BEAT_S_MAX),
            ));
            let over = self.rollout.watched.len();
            self.observe()?;

            for watched in &self.rollout.watched[over..] {
                let what = watched.stage.words();
                let window = &watched.window;
                eprintln!(
                    "rollout: {what}: p99 {:.1} ms, {:.0} counts/s",
                    window.p99_ms, window.counts_per_s
                );
            }

            self.apply_orders()?;
        }
        Ok(())
    }

    /// Observes every reader once.
    fn observe(&mut self) -> Result<()> {
        let readings = self.readers.iter().map(Reading::take).collect::<Result<Vec<_>>>()?;
        if readings.iter().any(|reading| reading.version > self.rollout.version) {
            let (policy, version, by) = policy_at(&self.portal)?;
            if self.rollout.is_overruled(version, &policy) {
                self.rollout.overrule(version, &by);
                return Ok(());
            }
        }

        let mut grown = Tally::default();
        for (seen, reading) in self.seen.iter_mut().zip(&readings) {
            grown.add(&reading.tally.since(seen));
            seen.clone_from(&reading.tally);
        }

        let read = self.readers.iter().zip(&readings);
        let lagging = read.filter(|(_, reading)| reading.version < self.rollout.version);
        let lagging = lagging.map(|(reader, _)| reader.address.to_string()).collect();
        self.rollout.beat(self.now_ms(), &grown, lagging);

        Ok(())
    }

    /// Sets the policies that the rollout orders.
    fn apply_orders(&mut self) -> Result<()> {
        while let Some(order) = self.rollout.order() {
            let reason = format!("rollout: {}", order.reason);
            eprintln!("{reason}");
            let version = policy::set(&self.portal, &json!(order.policy), &reason)?;
            self.rollout.ordered(version as u32, self.now_ms());
        }
        Ok(())
    }
}

/// Returns the current policy, its version, and the user who set it.
fn policy_at(portal: &Target) -> Result<(Policy, u32, String)> {
    let found = Client::connect(portal)?.json("GET", "/v1/cache-policy", b"")?;
    let mut policy = json!({ "strategy": found["strategy"] });
    for member in ["rollout", "overrides"] {
        if let Some(value) = found.get(member) {
            policy[member] = value.clone();
        }
    }
    let policy = Policy::from_json(&policy).map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
    let version = found["version"].as_u64().and_then(|version| u32::try_from(version).ok());
    let version = version.with_context(|| format!("a policy without a version: {found}"))?;
    Ok((policy, version, found["changedBy"].as_str().unwrap_or("an unknown user").to_owned()))
}

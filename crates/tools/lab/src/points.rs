//! Points on a running server: awards in batches and one at a time, balances, and a sweep.
//!
//! Awards go to members that are drawn evenly, or by Zipf's law, so that few members have many of
//! them. One award of a hundred is sent twice and must be awarded once. Each answer is checked, and
//! afterwards the server must have issued exactly what was awarded.

mod awards;
mod members;
#[cfg(feature = "experiments")]
pub mod peers;

pub use members::Members;

use crate::http::Target;
use crate::http::client::Client;
use crate::http::load::{self, Load};
use crate::measure::{Measurement, Pace, Run};
use crate::report::{grouped, milliseconds};
use anyhow::{Context, Result, bail, ensure};
use awards::{Awards, Balances};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The programme that is awarded, and that belongs to this program.
pub const PROGRAMME: &str = "lab";
/// Points of each award.
pub const POINTS: u64 = 5;
/// Most awards of a batch that the server takes.
const BATCH_MAX: usize = 1_000;
/// Longest wait until a sweep has ended.
const SWEEP_MAX: Duration = Duration::from_secs(1_800);

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Members that the awards are for
    #[arg(long, default_value_t = 1_000_000)]
    pub members: u64,
    /// Exponent of Zipf's law by which members are drawn; 0 draws them evenly
    #[arg(long, default_value_t = 0.0)]
    pub skew: f64,
    /// Awards per request, one measurement for each
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 1_000])]
    pub batches: Vec<usize>,
    /// Awards of a hundred that are sent twice
    #[arg(long, default_value_t = 1)]
    pub repeated_percent: u32,
    /// Also begins a sweep, and measures how long it takes; points expire by the server's clock
    #[arg(long)]
    pub sweep: bool,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub members: u64,
    pub skew: f64,
    pub awards: Vec<AwardsReport>,
    /// Balances of one member a request.
    pub balances: Measurement,
    pub sweep: Option<SweepReport>,
}

#[derive(Debug, Clone, Serialize)]
pub struct AwardsReport {
    pub batch: usize,
    pub awards_per_s: f64,
    pub measured: Measurement,
}

#[derive(Debug, Clone, Serialize)]
pub struct SweepReport {
    pub wallets: u64,
    pub seconds: f64,
}

impl Options {
    pub fn check(&self) -> Result<()> {
        ensure!(self.members > 0, "--members must be at least 1");
        ensure!((0.0..=3.0).contains(&self.skew), "--skew lies between 0 and 3");
        ensure!(self.repeated_percent <= 100, "--repeated-percent is at most 100");
        let is_batch = |batch: &usize| (1..=BATCH_MAX).contains(batch);
        ensure!(self.batches.iter().all(is_batch), "a batch has 1 to {BATCH_MAX} awards");
        Ok(())
    }
}

pub fn run(
    target: &Target,
    connections: usize,
    duration: Duration,
    options: &Options,
) -> Result<Report> {
    options.check()?;
    let mut client = Client::connect(target)?;
    prepare(&mut client)?;
    let issued_before = issued(&mut client)?;

    let run = Run { pace: Pace::Closed, warm_up: Duration::ZERO, duration };
    let mut awarded = 0;
    let mut awards = Vec::new();
    for batch in &options.batches {
        let mut source = Awards::new(target, connections, *batch, options);
        let load: Load = load::run(target.address, connections, &run, &mut source)?;
        ensure!(
            load.measured.unanswered == 0,
            "{} requests have no answer",
            load.measured.unanswered
        );
        awarded += source.awarded();
        awards.push(AwardsReport {
            batch: *batch,
            awards_per_s: load.measured.units_per_s,
            measured: load.measured,
        });
    }

    let issued = issued(&mut client)? - issued_before;
    let expected = awarded * POINTS;
    ensure!(issued == expected as i64, "{issued} points were issued, and {expected} awarded");

    let mut source = Balances::new(target, connections, options);
    let balances = load::run(target.address, connections, &run, &mut source)?.measured;
    let sweep = options.sweep.then(|| sweep(&mut client)).transpose()?;
    Ok(Report { members: options.members, skew: options.skew, awards, balances, sweep })
}

/// Creates the programme, unless an earlier run did, and waits until it is in force.
fn prepare(client: &mut Client) -> Result<()> {
    let path = format!("/v1/points/programmes/{PROGRAMME}");
    if client.call("GET", &path, b"")?.status == 200 {
        return Ok(());
    }
    let document = json!({
        "programme": PROGRAMME, "unit": "points", "timezone": "UTC",
        "expiry": {"kind": "activity", "months": 6}, "rules": [],
    });
    let answer = client.call("POST", "/v1/points/programmes", document.to_string().as_bytes())?;
    ensure!(
        answer.status == 201,
        "POST /v1/points/programmes answered {}: {}",
        answer.status,
        answer.text()
    );
    Ok(())
}

/// Points that the programme has issued so far.
fn issued(client: &mut Client) -> Result<i64> {
    let found = client.json("GET", &format!("/v1/points/{PROGRAMME}/liability"), b"")?;
    found["issued"].as_i64().with_context(|| format!("no number of issued points in {found}"))
}

/// Begins a sweep, and waits for its end.
fn sweep(client: &mut Client) -> Result<SweepReport> {
    let began = Instant::now();
    let begun = client.json("POST", "/v1/points/sweeps", b"{}")?;
    let started_at = begun["startedAt"].clone();
    loop {
        let listed = client.json("GET", "/v1/points/sweeps", b"")?;
        let sweeps = listed["sweeps"].as_array().map(Vec::as_slice).unwrap_or_default();
        let own = sweeps.iter().find(|sweep| sweep["startedAt"] == started_at);
        if let Some(done) = own.filter(|sweep| sweep["finishedAt"] != Value::Null) {
            let wallets = done["wallets"].as_u64().context("a sweep says no number of wallets")?;
            return Ok(SweepReport { wallets, seconds: began.elapsed().as_secs_f64() });
        }
        if began.elapsed() > SWEEP_MAX {
            bail!("the sweep has not ended in {SWEEP_MAX:?}: {listed}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Report {
    pub fn text(&self) -> String {
        let latency = |measured: &Measurement| {
            format!(
                "ms p50 {} p99 {} max {}",
                milliseconds(measured.latency.p50_us),
                milliseconds(measured.latency.p99_us),
                milliseconds(measured.latency.max_us),
            )
        };
        let mut text = String::new();
        for AwardsReport { batch, awards_per_s, measured } in &self.awards {
            let rate = grouped(*awards_per_s);
            text += &format!("batches of {batch}: {rate} awards/s; {}\n", latency(measured));
        }
        let rate = grouped(self.balances.requests_per_s);
        text += &format!("balances: {rate}/s; {}\n", latency(&self.balances));
        if let Some(SweepReport { wallets, seconds }) = self.sweep {
            let wallets = grouped(wallets as f64);
            text += &format!("sweep: {wallets} wallets in {seconds:.1} s\n");
        }
        text
    }
}

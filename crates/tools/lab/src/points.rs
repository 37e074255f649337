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
use anyhow::{Context, Result, ensure};
use awards::{Awards, Balances};
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

/// The programme that is awarded, and that belongs to this program.
pub const PROGRAMME: &str = "lab";
/// The programme that is awarded while the other one is swept.
const LIVE_PROGRAMME: &str = "lab-live";
const LIVE_RATE_PER_S: f64 = 200.0;
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
    /// Only sweeps: waits until all points of an earlier run have expired by the server's clock,
    /// with awards of another programme beside it
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
    pub balances: Option<Measurement>,
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
    pub points: i64,
    pub seconds: f64,
    /// Single awards at a fixed rate while the sweep ran, by two seconds.
    pub live: Vec<Measurement>,
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
    if options.sweep {
        let sweep = sweep(target, &mut client, connections, options)?;
        let Options { members, skew, .. } = *options;
        return Ok(Report { members, skew, awards: vec![], balances: None, sweep: Some(sweep) });
    }
    prepare(&mut client, PROGRAMME)?;
    let issued_before = liability(&mut client, "issued")?;

    let run = Run { pace: Pace::Closed, warm_up: Duration::ZERO, duration };
    let mut awarded = 0;
    let mut awards = Vec::new();
    for batch in &options.batches {
        let mut source = Awards::new(target, connections, *batch, PROGRAMME, options);
        let load: Load = load::run(target.address, connections, &run, &mut source)?;
        let unanswered = load.measured.unanswered;
        ensure!(unanswered == 0, "{unanswered} requests have no answer");
        awarded += source.awarded();
        awards.push(AwardsReport {
            batch: *batch,
            awards_per_s: load.measured.units_per_s,
            measured: load.measured,
        });
    }

    let issued = liability(&mut client, "issued")? - issued_before;
    let expected = awarded * POINTS;
    ensure!(issued == expected as i64, "{issued} points were issued, and {expected} awarded");

    let mut source = Balances::new(target, connections, options);
    let balances = load::run(target.address, connections, &run, &mut source)?.measured;
    let Options { members, skew, .. } = *options;
    Ok(Report { members, skew, awards, balances: Some(balances), sweep: None })
}

/// Creates the programme, unless an earlier run did, and waits until it is in force.
fn prepare(client: &mut Client, programme: &str) -> Result<()> {
    let path = format!("/v1/points/programmes/{programme}");
    if client.call("GET", &path, b"")?.status == 200 {
        return Ok(());
    }
    let document = json!({
        "programme": programme, "unit": "points", "timezone": "UTC",
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

/// A figure of what the programme owes and has issued.
fn liability(client: &mut Client, figure: &str) -> Result<i64> {
    let found = client.json("GET", &format!("/v1/points/{PROGRAMME}/liability"), b"")?;
    found[figure].as_i64().with_context(|| format!("no number in {figure:?} of {found}"))
}

/// Begins a sweep, and waits until the programme owes nothing, with awards of another programme
/// beside it.
fn sweep(
    target: &Target,
    client: &mut Client,
    connections: usize,
    options: &Options,
) -> Result<SweepReport> {
    prepare(client, LIVE_PROGRAMME)?;
    let points = liability(client, "total")?;
    let began = Instant::now();
    client.json("POST", "/v1/points/sweeps", b"{}")?;

    let mut live = Awards::new(target, connections, 1, LIVE_PROGRAMME, options);
    let run = Run {
        // The server may have all cores.
        pace: Pace::OpenShared(LIVE_RATE_PER_S),
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(2),
    };
    let mut measured = vec![load::run(target.address, connections, &run, &mut live)?.measured];
    while liability(client, "total")? != 0 {
        ensure!(began.elapsed() < SWEEP_MAX, "the sweep has not ended in {SWEEP_MAX:?}");
        measured.push(load::run(target.address, connections, &run, &mut live)?.measured);
    }
    Ok(SweepReport { points, seconds: began.elapsed().as_secs_f64(), live: measured })
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
        if let Some(balances) = &self.balances {
            let rate = grouped(balances.requests_per_s);
            text += &format!("balances: {rate}/s; {}\n", latency(balances));
        }
        if let Some(SweepReport { points, seconds, live }) = &self.sweep {
            let points = grouped(*points as f64);
            text += &format!("sweep: {points} points in {seconds:.1} s\n");
            let mut live: Vec<&Measurement> = live.iter().collect();
            live.sort_by(|one, other| one.latency.p99_us.total_cmp(&other.latency.p99_us));
            for (which, place) in [("median", live.len() / 2), ("worst", live.len() - 1)] {
                let latency = latency(live[place]);
                text += &format!("awards beside it, {which} of two seconds: {latency}\n");
            }
        }
        text
    }
}

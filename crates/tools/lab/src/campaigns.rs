//! Campaigns on a running server: how fast it decides on events, how long a caller waits for the
//! decision, and how fast it delivers.
//!
//! ```text
//!   this program ── events, ?wait=decided ──▶ raingauge ── deliveries ──▶ a sink in this program
//! ```
//!
//! Each campaign has a nested rule and a count; one campaign of each type acts on a known share of
//! the events. So the number of deliveries is known, and each of them must arrive exactly once.

mod documents;
mod events;
mod sink;

use crate::http::Target;
use crate::http::client::Client;
use crate::http::load::{self, Load};
use crate::measure::{Measurement, Pace, Run};
use crate::report::{grouped, milliseconds};
use anyhow::{Result, ensure};
use events::{EventSource, Orders};
use serde::Serialize;
use sink::Sink;
use std::time::{Duration, Instant};

/// Longest wait until everything is delivered; after that the run fails.
const DELIVERED_MAX: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Options {
    /// Campaigns that are created, on a server that has none
    #[arg(long, default_value_t = 10_000)]
    pub campaigns: u32,
    /// Types of events that they are spread over
    #[arg(long, default_value_t = 8)]
    pub types: u32,
    /// Subjects that the events are about
    #[arg(long, default_value_t = 100_000)]
    pub subjects: u32,
    /// Events per body
    #[arg(long, default_value_t = 500)]
    pub body_events: usize,
    /// Events of a hundred that cause an action
    #[arg(long, default_value_t = 1)]
    pub triggers_percent: u32,
    /// Events per second of the open loop; default: half of the greatest rate measured
    #[arg(long)]
    pub rate: Option<f64>,
    /// Events that each cause an action, to measure deliveries with
    #[arg(long, default_value_t = 50_000)]
    pub deliveries: usize,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Bodies, as fast as the server decides.
    pub greatest: Measurement,
    pub greatest_events_per_s: f64,
    /// Bodies at a fixed rate.
    pub paced: Measurement,
    pub paced_events_per_s: f64,
    pub deliveries: usize,
    pub deliveries_per_s: f64,
}

pub fn run(
    target: &Target,
    connections: usize,
    duration: Duration,
    options: &Options,
) -> Result<Report> {
    ensure!((1..=100).contains(&options.triggers_percent), "--triggers-percent lies in 1..=100");
    let has_types = (1..=options.campaigns).contains(&options.types);
    ensure!(
        has_types && options.body_events > 0,
        "each type has a campaign, and bodies have events"
    );

    let sink = Sink::start()?;
    documents::prepare(target, &sink.url(), options)?;
    let mut orders = Orders::new(options);

    let run = |pace| Run { pace, warm_up: Duration::ZERO, duration };
    let (greatest, granted) = measure(target, connections, &run(Pace::Closed), &mut orders)?;
    let mut expected = granted;
    wait_delivered(&sink, expected)?;
    let greatest_events_per_s = per_second(&greatest, options.body_events);

    let rate = options.rate.unwrap_or(greatest_events_per_s / 2.0);
    let pace = Pace::Open(rate / options.body_events as f64);
    let (paced, granted) = measure(target, connections, &run(pace), &mut orders)?;
    expected += granted;
    wait_delivered(&sink, expected)?;

    let mut all = Orders::new(&Options { triggers_percent: 100, ..*options });
    let mut client = Client::connect(target)?;
    let began = Instant::now();
    let bodies = options.deliveries.div_ceil(options.body_events);
    for _ in 0..bodies {
        let body = all.body();
        let answer = client.call_with(crate::http::NDJSON, "POST", "/v1/events", &body)?;
        ensure!(answer.status == 200, "POST /v1/events answered {}", answer.status);
    }
    let deliveries = bodies * options.body_events;
    wait_delivered(&sink, expected + deliveries)?;
    let deliveries_per_s = deliveries as f64 / began.elapsed().as_secs_f64();

    Ok(Report {
        greatest: greatest.measured,
        greatest_events_per_s,
        paced: paced.measured,
        paced_events_per_s: per_second(&paced, options.body_events),
        deliveries,
        deliveries_per_s,
    })
}

/// Sends bodies, each of which is answered when its events are decided. Returns how many actions
/// they caused.
fn measure(
    target: &Target,
    connections: usize,
    run: &Run,
    orders: &mut Orders,
) -> Result<(Load, usize)> {
    let mut source = EventSource::new(target, connections, orders);
    let load = load::run(target.address, connections, run, &mut source)?;
    Ok((load, source.granted()))
}

fn per_second(load: &Load, body_events: usize) -> f64 {
    load.measured.requests_per_s * body_events as f64
}

/// Waits until the sink has as many different deliveries as were granted, and no others.
fn wait_delivered(sink: &Sink, expected: usize) -> Result<()> {
    let deadline = Instant::now() + DELIVERED_MAX;
    loop {
        let (found, repeated) = sink.counts();
        ensure!(found <= expected, "{found} actions were delivered, and {expected} granted");
        ensure!(repeated == 0, "{repeated} deliveries came more than once");
        if found == expected {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "only {found} of {expected} deliveries arrived in {DELIVERED_MAX:?}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Report {
    pub fn text(&self) -> String {
        let line = |what: &str, events_per_s: f64, measured: &Measurement| {
            format!(
                "{what}: {} events/s decided; ms p50 {} p99 {} max {}; unanswered {}\n",
                grouped(events_per_s),
                milliseconds(measured.latency.p50_us),
                milliseconds(measured.latency.p99_us),
                milliseconds(measured.latency.max_us),
                measured.unanswered,
            )
        };
        line("closed loop", self.greatest_events_per_s, &self.greatest)
            + &line("open loop", self.paced_events_per_s, &self.paced)
            + &format!(
                "{} deliveries: {}/s from their events on, each exactly once\n",
                grouped(self.deliveries as f64),
                grouped(self.deliveries_per_s)
            )
    }
}

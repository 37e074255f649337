//! Ingestion: NDJSON bodies of live events by `POST /v1/events`, durable when acknowledged.

use crate::events::{Drops, Ids, RenderedBody, check_receipt};
use crate::http::load::{self, Outcome, Reply, Source};
use crate::http::{NDJSON, Target};
use crate::measure::{Measurement, Pace, Run};
use crate::server::Lab;
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Longest wait until the counts include every acknowledged event; after that the run fails.
const APPLIED_MAX: Duration = Duration::from_secs(120);

struct IngestSource {
    /// The bodies that are not in use; each belongs to at most one slot at a time, because its ids
    /// are overwritten.
    free: VecDeque<RenderedBody>,
    current: Vec<Option<RenderedBody>>,
    ids: Ids,
    accepted: u64,
}

impl Source for IngestSource {
    fn prepare(&mut self, slot: usize, _due: Instant) {
        // The least recently returned body is used next. There are at least as many bodies as
        // slots.
        if let Some(mut body) = self.free.pop_front() {
            body.renew(&mut self.ids);
            self.current[slot] = Some(body);
        }
    }

    fn bytes(&self, slot: usize) -> &[u8] {
        self.current[slot].as_ref().map_or(&[], |body| &body.bytes)
    }

    fn judge(&mut self, slot: usize, &Reply { status, body, .. }: &Reply<'_>) -> Result<Outcome> {
        match status {
            200..=202 => {}
            429 | 503 => return Ok(Outcome::PushedBack),
            _ => bail!("POST /v1/events answered {status}: {}", String::from_utf8_lossy(body)),
        }

        let sent = self.current[slot].take().context("an answer without a request")?;
        let accepted = check_receipt(body, sent.events())?;
        self.free.push_back(sent);
        self.accepted += accepted;
        Ok(Outcome::Done(accepted))
    }
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct IngestLoad {
    pub measured: Measurement,
    pub accepted: u64,
    /// Acknowledged events per second, from the first request to the last answer.
    pub acknowledged_per_s: f64,
    /// The same events per second, measured until the counts include all of them.
    pub applied_per_s: Option<f64>,
    pub pushed_back: u64,
    pub body_events: usize,
    pub body_bytes_mean: usize,
}

/// `applied`: also waits until the counts include every acknowledged event, which verifies them as
/// well.
pub fn measure(
    lab: &mut Lab,
    drops: &Drops,
    connections: usize,
    pace: Pace,
    duration: Duration,
    applied: bool,
) -> Result<IngestLoad> {
    let before = if applied { lab.total()? } else { 0 };
    let target = lab.target.clone();
    let mut bodies: Vec<RenderedBody> =
        drops.batches.iter().map(|batch| render(batch, &target)).collect();
    while bodies.len() < connections {
        bodies.extend(drops.batches.iter().map(|batch| render(batch, &target)));
    }

    let body_bytes_mean = bodies.iter().map(|body| body.bytes.len()).sum::<usize>() / bodies.len();
    let body_events = bodies[0].events();
    let mut source = IngestSource {
        free: bodies.into(),
        current: (0..connections).map(|_| None).collect(),
        ids: Ids::new(rand::random()),
        accepted: 0,
    };

    let start = Instant::now();
    let run = Run { pace, warm_up: Duration::ZERO, duration };
    let load = load::run(target.address, connections, &run, &mut source)?;
    let accepted = source.accepted;
    let applied_per_s = if applied {
        Some(accepted as f64 / wait_applied(lab, start, before + accepted as i64)?.as_secs_f64())
    } else {
        None
    };

    Ok(IngestLoad {
        measured: load.measured,
        accepted,
        acknowledged_per_s: accepted as f64 / load.total.as_secs_f64(),
        applied_per_s,
        pushed_back: load.pushed_back,
        body_events,
        body_bytes_mean,
    })
}

fn render(batch: &[crate::events::Drop], target: &Target) -> RenderedBody {
    RenderedBody::new(batch, |length| target.head("POST", "/v1/events", NDJSON, length))
}

/// Returns the time from `start` until the counts add up to `expected`.
fn wait_applied(lab: &mut Lab, start: Instant, expected: i64) -> Result<Duration> {
    let deadline = Instant::now() + APPLIED_MAX;
    loop {
        let total = lab.total()?;
        if total == expected {
            return Ok(start.elapsed());
        }
        ensure!(total < expected, "WRONG COUNT: {total} counted, {expected} acknowledged");
        ensure!(
            Instant::now() < deadline,
            "only {total} of {expected} events are counted after {APPLIED_MAX:?}"
        );
    }
}

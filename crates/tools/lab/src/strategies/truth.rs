//! The correct value of every count, and a stream of events that continues during the measurement.

use crate::events::{Drop, Ids, RenderedBody};
use crate::http::client::Client;
use crate::http::{NDJSON, Target};
use crate::plan::{self, QUARTER_S};
use crate::workload::{Popularity, Workload};
use anyhow::{Context, Result, bail, ensure};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Sends per second.
const SENDS_PER_S: usize = 10;
const RETRY_PAUSE: Duration = Duration::from_millis(50);
const SEND_MAX: Duration = Duration::from_secs(60);

/// The history, and the events sent since.
pub struct Truth<'a> {
    workload: &'a Workload,
    sent: BTreeMap<(u32, i64), i64>,
}

impl<'a> Truth<'a> {
    pub fn new(workload: &'a Workload) -> Self {
        Self { workload, sent: BTreeMap::new() }
    }

    pub fn add(&mut self, drops: &[Drop]) {
        for drop in drops {
            *self.sent.entry((drop.city, plan::floor(drop.time_s, QUARTER_S))).or_default() += 1;
        }
    }

    /// Counts `[from_s, to_s)`, both ends floored to quarter hours.
    pub fn count(&self, city: u32, from_s: i64, to_s: i64) -> i64 {
        let (from_s, to_s) = (plan::floor(from_s, QUARTER_S), plan::floor(to_s, QUARTER_S));
        let sent: i64 = self.sent.range((city, from_s)..(city, to_s)).map(|(_, count)| count).sum();
        sent + self.workload.count(city, from_s, to_s)
    }
}

/// Sends current events to a writer until it is stopped.
pub struct Stream {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Drop>>>,
}

impl Stream {
    pub fn start(target: &Target, keys: u32, events_per_s: usize, seed: u64) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let mut sender = Sender {
            client: Client::connect(target)?,
            popularity: Popularity::new(keys),
            random: StdRng::seed_from_u64(seed),
            ids: Ids::new(rand::random()),
        };

        let batch_events = (events_per_s / SENDS_PER_S).max(1);
        let thread = std::thread::Builder::new().name("stream".to_owned()).spawn(move || {
            let began = Instant::now();
            let mut sent = Vec::new();
            for number in 1.. {
                let is_last = stopped.load(Ordering::Acquire);

                // Waiting for the last batch also waits for all batches before it in the log.
                let path = if is_last { "/v1/events?wait=applied" } else { "/v1/events" };
                sent.extend(sender.send(path, batch_events)?);

                if is_last {
                    break;
                }
                let due = began + Duration::from_secs(1) * number / SENDS_PER_S as u32;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }

            Ok(sent)
        })?;
        Ok(Self { stop, thread })
    }

    /// Stops the stream, waits until everything is counted, and returns the events sent.
    pub fn stop(self) -> Result<Vec<Drop>> {
        self.stop.store(true, Ordering::Release);
        self.thread
            .join()
            .map_err(|_| anyhow::anyhow!("the stream of events panicked"))?
            .context("the stream of events")
    }
}

struct Sender {
    client: Client,
    popularity: Popularity,
    random: StdRng,
    ids: Ids,
}

impl Sender {
    fn send(&mut self, path: &str, len: usize) -> Result<Vec<Drop>> {
        let time_s = crate::now_s();
        let city = |random: &mut StdRng| self.popularity.pick(random);
        let drops: Vec<Drop> = (0..len)
            .map(|_| Drop { city: city(&mut self.random), time_s, amount_cents: 100 })
            .collect();
        let mut body = RenderedBody::new(&drops, |_| Vec::new());

        body.renew(&mut self.ids);
        let deadline = Instant::now() + SEND_MAX;

        loop {
            let answer = self.client.call_with(NDJSON, "POST", path, &body.bytes)?;
            match answer.status {
                200 => {
                    let counted: Value = serde_json::from_slice(&answer.body)?;
                    ensure!(counted["accepted"] == len, "of {len} events: {counted}");
                    return Ok(drops);
                }
                429 | 503 if Instant::now() < deadline => std::thread::sleep(RETRY_PAUSE),
                status => bail!("POST {path} answered {status}: {}", answer.text()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Settings;

    #[test]
    fn what_was_sent_counts_beside_the_history() {
        let workload = Workload::new(Settings { keys: 20, history: 5_000, seed: 1 }, 1_795_000_123);
        let mut truth = Truth::new(&workload);
        let end_s = workload.end_s;
        let before = truth.count(4, end_s - 86_400, end_s + 1_800);
        let drop = |city, time_s| Drop { city, time_s, amount_cents: 1 };

        truth.add(&[
            drop(4, end_s + 5),
            drop(4, end_s + 899),
            drop(5, end_s + 5),
            drop(4, end_s + 1_800),
        ]);
        assert_eq!(truth.count(4, end_s - 86_400, end_s + 1_800), before + 2);
        assert_eq!(truth.count(4, end_s + 900, end_s + 2_700), 1);
    }
}

//! A stream of events that continues while counts are served.

use crate::fast::Fast;
use crate::http::client::Client;
use crate::http::{NDJSON, Target};
use crate::traffic::Model;
use crate::traffic::questions::{Keys, Questions};
use crate::traffic::shape::Shape;
use anyhow::{Result, bail, ensure};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SENDS_PER_S: u32 = 20;
/// Keeps the events independent of the seed of the questions.
const SEED: u64 = 0xe7e7;
const RETRY_PAUSE: Duration = Duration::from_millis(50);
const SEND_MAX: Duration = Duration::from_secs(60);

/// The key's rank, the time of the event in seconds, and the time of sending in milliseconds, both
/// by the service's clock.
pub type SentEvent = (u32, i64, i64);

pub struct Stream<'a> {
    keys: &'a Keys,
    client: Client,
    shape: Shape,
    random: Questions,
    clock: Fast,
    per_send: f64,
    /// The fraction of an event that is carried over to the next send.
    owed: f64,
    /// Identifies this run, so that its ids differ from those of other runs.
    run: u64,
    number: u64,
}

impl<'a> Stream<'a> {
    pub fn new(model: &Model, keys: &'a Keys, clock: Fast, target: &Target) -> Result<Self> {
        Ok(Self {
            keys,
            client: Client::connect(target)?,
            shape: Shape::new(model)?,
            random: Questions::new(&Model { seed: model.seed ^ SEED, ..model.clone() }),
            clock,
            per_send: model.events_per_s / f64::from(SENDS_PER_S),
            owed: 0.0,
            run: rand::random(),
            number: 0,
        })
    }

    /// Sends until it is stopped, waits until everything is counted, and returns the events sent.
    pub fn run(mut self, stop: &AtomicBool) -> Result<Vec<SentEvent>> {
        let began = Instant::now();
        let mut all = Vec::new();
        for turn in 1.. {
            let is_last = stop.load(Ordering::Acquire);
            let sent = self.happen(is_last);
            if !sent.is_empty() {
                // Waiting for the last events also waits for all events before them in the log.
                self.send(&sent, if is_last { "/v1/events?wait=applied" } else { "/v1/events" })?;
                all.extend(sent);
            }

            if is_last {
                break;
            }
            let due = began + Duration::from_secs(1) * turn / SENDS_PER_S;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }

        Ok(all)
    }

    /// The events that are due now; the last call returns at least one, which can be waited for.
    fn happen(&mut self, is_last: bool) -> Vec<SentEvent> {
        let now_ms = self.clock.now_ms();
        self.owed += self.per_send * self.shape.at(now_ms);
        let len = self.owed.floor();
        self.owed -= len;
        let len = (len as usize).max(usize::from(is_last));
        (0..len).map(|_| (self.random.event(self.keys), now_ms.div_euclid(1_000), now_ms)).collect()
    }

    fn send(&mut self, sent: &[SentEvent], path: &str) -> Result<()> {
        let mut body = String::new();
        for (rank, time_s, _) in sent {
            self.number += 1;
            body += &self.keys.event(&format!("{:016x}-{}", self.run, self.number), *rank, *time_s);
        }

        let deadline = Instant::now() + SEND_MAX;
        loop {
            let answer = self.client.call_with(NDJSON, "POST", path, body.as_bytes())?;
            match answer.status {
                200 => {
                    let counted: Value = serde_json::from_slice(&answer.body)?;
                    ensure!(
                        counted["accepted"] == sent.len(),
                        "of {} events: {counted}",
                        sent.len()
                    );
                    return Ok(());
                }
                429 | 503 if Instant::now() < deadline => std::thread::sleep(RETRY_PAUSE),
                status => bail!("POST {path} answered {status}: {}", answer.text()),
            }
        }
    }
}

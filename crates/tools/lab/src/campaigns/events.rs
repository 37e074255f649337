//! The events: new ones in each body.

use super::Options;
use crate::events::check_receipt;
use crate::http::load::{Outcome, Reply, Source};
use crate::http::{NDJSON, Target};
use anyhow::{Result, bail};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::io::Write as _;
use std::time::Instant;

/// Makes bodies of events whose ids never repeat, of which every hundred cause a known number of
/// actions.
pub struct Orders {
    options: Options,
    random: StdRng,
    /// Sets the ids of this run apart from those of others.
    run: u64,
    next: u64,
    /// Events so far that cause an action.
    granted: usize,
}

impl Orders {
    pub fn new(options: &Options) -> Self {
        Self {
            options: *options,
            random: StdRng::seed_from_u64(1),
            run: rand::random(),
            next: 0,
            granted: 0,
        }
    }

    /// A body of new events.
    pub fn body(&mut self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.options.body_events * 360);
        let time = jiff::Timestamp::now();
        for _ in 0..self.options.body_events {
            let acts = self.next % 100 < u64::from(self.options.triggers_percent);
            self.granted += usize::from(acts);
            let id = self.next;
            self.next += 1;

            let run = self.run;
            let mut below = |end: u32| self.random.random_range(0..end);
            let kind = below(self.options.types);
            let user = below(self.options.subjects);
            let country = below(12);
            let taxi = below(8);
            let amount = below(40_000);
            let payment = below(5);
            let platform = below(3);
            // Writing into memory does not fail.
            let _ = writeln!(
                body,
                "{{\"specversion\":\"1.0\",\"id\":\"{run:016x}-{id}\",\"source\":\"lab\",\
                 \"type\":\"lab.order.{kind}\",\"time\":\"{time:.3}\",\"data\":{{\
                 \"user_id\":\"u-{user}\",\"acts\":{acts},\"country\":\"c{country}\",\
                 \"taxi\":{taxi},\"amount\":{}.{:02},\"payment\":\"p{payment}\",\
                 \"platform\":\"o{platform}\"}}}}",
                amount / 100,
                amount % 100,
            );
        }
        body
    }
}

/// Sends bodies that are answered when their events are decided.
pub struct EventSource<'o> {
    target: Target,
    orders: &'o mut Orders,
    before: usize,
    current: Vec<Vec<u8>>,
}

impl<'o> EventSource<'o> {
    pub fn new(target: &Target, connections: usize, orders: &'o mut Orders) -> Self {
        let before = orders.granted;
        let current = vec![Vec::new(); connections];
        Self { target: target.clone(), orders, before, current }
    }

    /// Actions that the events caused.
    pub fn granted(&self) -> usize {
        self.orders.granted - self.before
    }
}

impl Source for EventSource<'_> {
    fn prepare(&mut self, slot: usize, _due: Instant) {
        let body = self.orders.body();
        self.current[slot] = self.target.request("POST", "/v1/events?wait=decided", NDJSON, &body);
    }

    fn bytes(&self, slot: usize) -> &[u8] {
        &self.current[slot]
    }

    fn judge(&mut self, _slot: usize, &Reply { status, body, .. }: &Reply<'_>) -> Result<Outcome> {
        match status {
            200 => check_receipt(body, self.orders.options.body_events).map(Outcome::Done),
            429 | 503 => Ok(Outcome::PushedBack),
            _ => bail!("POST /v1/events answered {status}: {}", String::from_utf8_lossy(body)),
        }
    }
}

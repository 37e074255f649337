//! Requests for awards and for balances.

use super::{Members, Options, POINTS, PROGRAMME};
use crate::http::load::{Outcome, Reply, Source};
use crate::http::{JSON, Target};
use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use std::fmt::Write as _;
use std::time::Instant;

/// Sends batches of awards, each with a key of its own but for those that are repeated.
pub struct Awards {
    target: Target,
    batch: usize,
    programme: &'static str,
    members: Members,
    repeated_percent: u32,
    random: StdRng,
    /// Sets the keys of this run apart from those of others.
    run: u64,
    next: u64,
    awarded: u64,
    slots: Vec<Slot>,
}

/// The request of a connection.
#[derive(Clone, Default)]
struct Slot {
    bytes: Vec<u8>,
    /// Awards of the request that repeat one before them.
    repeated: usize,
}

impl Awards {
    pub fn new(
        target: &Target,
        connections: usize,
        batch: usize,
        programme: &'static str,
        options: &Options,
    ) -> Self {
        Self {
            target: target.clone(),
            batch,
            programme,
            members: Members::new(options.members, options.skew),
            repeated_percent: options.repeated_percent,
            random: StdRng::seed_from_u64(batch as u64),
            run: rand::random(),
            next: 0,
            awarded: 0,
            slots: vec![Slot::default(); connections],
        }
    }

    /// Awards that the server has acknowledged, each once.
    pub fn awarded(&self) -> u64 {
        self.awarded
    }
}

impl Source for Awards {
    fn prepare(&mut self, slot: usize, _due: Instant) {
        let mut body = String::with_capacity(self.batch * 100);
        body.push_str("{\"awards\":[");
        let mut repeated = 0;
        let mut last = (0, 0);
        for place in 0..self.batch {
            // The first of a batch has nothing to repeat.
            let repeats = place > 0 && self.random.random_range(0..100) < self.repeated_percent;
            if repeats {
                repeated += 1;
            } else {
                last = (self.next, self.members.draw(&mut self.random));
                self.next += 1;
            }
            let (key, member) = last;
            let Self { run, programme, .. } = self;
            let comma = if place == 0 { "" } else { "," };
            // Writing into memory does not fail.
            let _ = write!(
                body,
                "{comma}{{\"programme\":\"{programme}\",\"member\":\"m-{member}\",\
                 \"key\":\"{run:016x}-{key}\",\"points\":{POINTS}}}"
            );
        }
        body.push_str("]}");
        let bytes = self.target.request("POST", "/v1/points/awards", JSON, body.as_bytes());
        self.slots[slot] = Slot { bytes, repeated };
    }

    fn bytes(&self, slot: usize) -> &[u8] {
        &self.slots[slot].bytes
    }

    fn judge(&mut self, slot: usize, &Reply { status, body, .. }: &Reply<'_>) -> Result<Outcome> {
        match status {
            200 => {
                let repeated = self.slots[slot].repeated;
                check(body, self.batch, repeated)?;
                self.awarded += (self.batch - repeated) as u64;
                Ok(Outcome::Done(self.batch as u64))
            }
            429 | 503 => Ok(Outcome::PushedBack),
            _ => {
                let text = String::from_utf8_lossy(body);
                bail!("POST /v1/points/awards answered {status}: {text}")
            }
        }
    }
}

/// Checks that each award has its entry, and that repeated ones say so. Entries are counted, not
/// parsed: the client must not be slower than the server.
fn check(body: &[u8], awards: usize, repeated: usize) -> Result<()> {
    let count = |word: &str| memmem::find_iter(body, word).count();
    let done = count("\"entry\":");
    let replayed = count("\"replayed\":true");
    let refused = count("\"error\":");
    ensure!(
        (done, replayed, refused) == (awards, repeated, 0),
        "of {awards} awards with {repeated} repeated ones, {done} have an entry, {replayed} are \
         replayed, {refused} refused: {}",
        String::from_utf8_lossy(&body[..body.len().min(400)])
    );
    Ok(())
}

/// Asks for the balance of one member at a time.
pub struct Balances {
    target: Target,
    members: Members,
    random: StdRng,
    slots: Vec<Vec<u8>>,
}

impl Balances {
    pub fn new(target: &Target, connections: usize, options: &Options) -> Self {
        Self {
            target: target.clone(),
            members: Members::new(options.members, options.skew),
            random: StdRng::seed_from_u64(7),
            slots: vec![Vec::new(); connections],
        }
    }
}

impl Source for Balances {
    fn prepare(&mut self, slot: usize, _due: Instant) {
        let member = self.members.draw(&mut self.random);
        let path = format!("/v1/points/{PROGRAMME}/members/m-{member}");
        self.slots[slot] = self.target.request("GET", &path, JSON, b"");
    }

    fn bytes(&self, slot: usize) -> &[u8] {
        &self.slots[slot]
    }

    /// Each award is of the same number of points, so a balance is a multiple of it.
    fn judge(&mut self, _slot: usize, &Reply { status, body, .. }: &Reply<'_>) -> Result<Outcome> {
        ensure!(status == 200, "a balance answered {status}: {}", String::from_utf8_lossy(body));
        let found: Value = serde_json::from_slice(body)?;
        let available = found["available"].as_u64().context("no points in a balance")?;
        ensure!(available.is_multiple_of(POINTS), "a balance of {available} points is wrong");
        Ok(Outcome::Done(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_checked() {
        let answer = br#"{"results":[{"entry":"lab:0:1","replayed":false},
            {"entry":"lab:0:1","replayed":true}]}"#;
        assert!(check(answer, 2, 1).is_ok());
        assert!(check(answer, 2, 0).is_err());
        assert!(check(answer, 3, 1).is_err());
        assert!(check(br#"{"results":[{"error":{"code":"x"}}]}"#, 1, 0).is_err());
    }
}

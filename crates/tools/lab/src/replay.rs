//! Replays recorded requests at their recorded times: an open loop, so a slow answer delays no
//! other request.

use crate::fast::Fast;
use crate::http::load::{self, Load, Outcome, Reply, Sockets, Source};
use crate::http::{JSON, Target};
use crate::traffic::Model;
use crate::traffic::arrivals::Clients;
use crate::traffic::questions::{Keys, Questions};
use crate::traffic::recording::{self, RecordedBatch, Replay, Request};
use anyhow::{Result, bail};
use memchr::memmem;
use std::io::Write;
use std::time::Instant;

/// Replays a recording at `speed` times its pace. The second result is the number of failed items.
pub fn run(
    target: &Target,
    connections: usize,
    recording: &[RecordedBatch],
    speed: f64,
) -> Result<(Load, u64)> {
    let sockets = Sockets::open(target.address, connections)?;
    let start = Instant::now();
    let replay = Replay::new(start, speed, recording);
    let duration = replay.duration() + std::time::Duration::from_millis(1);
    let mut asking = Asking {
        recording,
        target: target.clone(),
        next: 0,
        slots: vec![Vec::new(); connections],
        lens: vec![0; connections],
        failed: 0,
    };

    let load = load::follow(sockets, (start, duration), Box::new(replay), &mut asking)?;
    Ok((load, asking.failed))
}

/// Writes the requests of a traffic model for `seconds` seconds from `from_s` on. The times of
/// ranges are relative to the time of the request.
pub fn write(model: &Model, from_s: i64, seconds: i64, out: &mut impl Write) -> Result<usize> {
    let from_ms = from_s * 1_000;
    let keys = Keys::new(model);
    let mut questions = Questions::new(model);
    let clients =
        Clients::new(model, Fast::starting(from_ms, 1), from_ms, from_ms + seconds * 1_000)?;
    let mut len = 0;

    for due_ms in clients.moments_ms() {
        let now_s = due_ms.div_euclid(1_000);
        let request = |asked: &crate::traffic::questions::RangeQuery| Request {
            key: keys.key(asked.rank),
            from_time: asked.from_s - now_s,
            to_time: asked.to_s - now_s,
        };

        let requests = questions.batch(&keys, now_s).iter().map(request).collect();
        recording::write(out, &RecordedBatch { at_ms: (due_ms - from_ms) as u64, requests })?;
        len += 1;
    }

    Ok(len)
}

struct Asking<'a> {
    recording: &'a [RecordedBatch],
    target: Target,
    next: usize,
    slots: Vec<Vec<u8>>,
    lens: Vec<u64>,
    failed: u64,
}

impl Source for Asking<'_> {
    fn prepare(&mut self, slot: usize, _due: Instant) {
        let recorded = &self.recording[self.next.min(self.recording.len() - 1)];
        self.next += 1;
        self.lens[slot] = recorded.requests.len() as u64;
        let body = recorded.body(crate::now_s());
        self.slots[slot] = self.target.request("POST", "/v1/counts", JSON, body.as_bytes());
    }

    fn bytes(&self, slot: usize) -> &[u8] {
        &self.slots[slot]
    }

    fn judge(&mut self, slot: usize, reply: &Reply<'_>) -> Result<Outcome> {
        match reply.status {
            200 => self.failed += memmem::find_iter(reply.body, b"\"error\":").count() as u64,
            429 | 503 => self.failed += self.lens[slot],
            status => {
                bail!("POST /v1/counts answered {status}: {}", String::from_utf8_lossy(reply.body))
            }
        }
        Ok(Outcome::Done(self.lens[slot]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::tests::model;

    #[test]
    fn what_a_model_asks_is_a_recording_and_the_same_by_the_same_seed() {
        let made = || {
            let mut file = Vec::new();
            let len = write(&model(), 1_730_768_400, 10, &mut file).unwrap();
            (len, file)
        };

        let (len, file) = made();
        assert_eq!(made().1, file);

        let found = recording::read(&file[..]).unwrap();
        assert_eq!(found.len(), len);
        assert!(
            found
                .iter()
                .all(|recorded| recorded.at_ms < 10_000
                    && (6..=14).contains(&recorded.requests.len()))
        );

        let request = &found[0].requests[0];
        assert!(request.from_time < request.to_time && request.to_time <= 0);
    }
}

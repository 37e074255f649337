//! Sends the traffic's batches, and records for each when it was due, how long it took and what
//! answered it.

use crate::counts::Answer;
use crate::experiment::record::BatchRecord;
use crate::fast::Fast;
use crate::http::load::{Outcome, Reply, Source};
use crate::http::{JSON, Target};
use crate::traffic::questions::{self, Keys, Questions, RangeQuery};
use anyhow::Result;
use memchr::memmem;
use std::time::Instant;

/// Every `KEEP_EVERY`th batch is kept with its counts and compared with the truth afterwards.
const KEEP_EVERY: usize = 16;

/// An answered count.
#[derive(Debug, Clone, Copy)]
pub struct SampledCount {
    pub asked: RangeQuery,
    /// The range that the answer covers.
    pub from_s: i64,
    pub to_s: i64,
    pub count: i64,
    /// When the answer arrived, by the service's clock.
    pub at_ms: i64,
}

#[derive(Default)]
struct Slot {
    bytes: Vec<u8>,
    batch: Vec<RangeQuery>,
    due: Option<Instant>,
}

pub struct Asking<'a> {
    keys: &'a Keys,
    questions: Questions,
    clock: Fast,
    target: Target,
    slots: Vec<Slot>,
    pub answers: Vec<BatchRecord>,
    pub kept: Vec<SampledCount>,
}

impl<'a> Asking<'a> {
    pub fn new(
        keys: &'a Keys,
        questions: Questions,
        clock: Fast,
        target: Target,
        connections: usize,
    ) -> Self {
        let slots = (0..connections).map(|_| Slot::default()).collect();
        Self { keys, questions, clock, target, slots, answers: Vec::new(), kept: Vec::new() }
    }

    fn keep(&mut self, slot: usize, reply: &Reply<'_>) -> Result<()> {
        let answer: Answer = serde_json::from_slice(reply.body)?;
        let at_ms = self.clock.at_ms(reply.at);
        for (asked, item) in self.slots[slot].batch.iter().zip(answer.results) {
            if let (Some(from_s), Some(to_s), Some(count)) = (item.from_s, item.to_s, item.count) {
                self.kept.push(SampledCount { asked: *asked, from_s, to_s, count, at_ms });
            }
        }
        Ok(())
    }
}

impl Source for Asking<'_> {
    fn prepare(&mut self, slot: usize, due: Instant) {
        let now_s = self.clock.at_ms(due).div_euclid(1_000);
        let batch = self.questions.batch(self.keys, now_s);
        let body = questions::body(self.keys, &batch, false);
        let bytes = self.target.request("POST", "/v1/counts", JSON, body.as_bytes());
        self.slots[slot] = Slot { bytes, batch, due: Some(due) };
    }

    fn bytes(&self, slot: usize) -> &[u8] {
        &self.slots[slot].bytes
    }

    fn judge(&mut self, slot: usize, reply: &Reply<'_>) -> Result<Outcome> {
        let len = self.slots[slot].batch.len() as u16;
        let due = self.slots[slot].due.unwrap_or(reply.at);
        let waited = reply.at.saturating_duration_since(due).as_micros();
        let answered = BatchRecord {
            due_ms: self.clock.at_ms(due),
            latency_us: u32::try_from(waited).unwrap_or(u32::MAX),
            ..match reply.status {
                200 => served(reply),
                _ => BatchRecord { failed: len, ..EMPTY },
            }
        };

        self.answers.push(answered);

        if reply.status == 200 && self.answers.len().is_multiple_of(KEEP_EVERY) {
            self.keep(slot, reply)?;
        }
        Ok(Outcome::Done(len.into()))
    }
}

const EMPTY: BatchRecord =
    BatchRecord { due_ms: 0, latency_us: 0, memory: 0, cache: 0, store: 0, failed: 0 };

/// What answered the ranges, according to the header. Failed ranges had been sent to the store.
fn served(reply: &Reply<'_>) -> BatchRecord {
    let number = |name: &str| -> u16 {
        let found =
            memmem::find(reply.head, name.as_bytes()).map(|at| &reply.head[at + name.len()..]);
        let digits = found.unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0_u16, |number, digit| {
            number.saturating_mul(10).saturating_add(u16::from(digit - b'0'))
        })
    };

    let failed = memmem::find_iter(reply.body, b"\"error\":").count() as u16;
    let store = number("store;desc=");
    BatchRecord {
        memory: number("memory;desc="),
        cache: number("cache;desc="),
        store: store.saturating_sub(failed),
        failed,
        ..EMPTY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_says_who_answered() {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nserver-timing: memory;desc=1, cache;desc=12, store;desc=3\r\n\r\n";
        let body =
            br#"{"results":[{"key":"k","error":{"code":"deadline"}},{"key":"k","count":3}]}"#;
        let served = served(&Reply { status: 200, head, body, at: Instant::now() });
        assert_eq!((served.memory, served.cache, served.store, served.failed), (1, 12, 2, 1));
        assert_eq!(served.ranges(), 16);
    }
}

//! Live events: the same drops for every system, as CloudEvents in NDJSON for raingauge and as
//! plain values for its peers. Bodies are rendered once; before each send, only their ids are
//! overwritten.

use crate::plan::{self, HOUR_S, QUARTER_S};
use crate::workload::{Popularity, city_name};
use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Deserialize;

pub const EVENT_TYPE: &str = "lab.drop";
pub const SOURCE: &str = "lab";
/// The age of the oldest live events.
const SPREAD_S: i64 = 3 * HOUR_S;
/// Number of distinct events to cycle through; only their ids change.
const EVENTS_DIFFERENT: usize = 200_000;
const ID_DIGITS: usize = 16;
const ID_PREFIX: &str = "lab-";

/// One drop without its id, which changes with every send.
#[derive(Debug, Clone, Copy)]
pub struct Drop {
    pub city: u32,
    pub time_s: i64,
    pub amount_cents: u32,
}

/// Batches of drops, to be sent in turn.
pub struct Drops {
    pub batches: Vec<Vec<Drop>>,
}

impl Drops {
    /// Times lie in the three hours before the last full quarter hour, so a range that ends there
    /// counts all drops.
    pub fn new(keys: u32, batch_events: usize, seed: u64, now_s: i64) -> Self {
        let mut random = StdRng::seed_from_u64(seed ^ 0x5eed);
        let popularity = Popularity::new(keys);
        let end_s = plan::floor(now_s, QUARTER_S);
        let batches = (0..EVENTS_DIFFERENT.div_ceil(batch_events))
            .map(|_| {
                (0..batch_events)
                    .map(|_| Drop {
                        city: popularity.pick(&mut random),
                        time_s: end_s - random.random_range(1..=SPREAD_S),
                        amount_cents: random.random_range(100..10_000),
                    })
                    .collect()
            })
            .collect();

        Self { batches }
    }
}

/// Generates ids that are unique within a run and, with overwhelming probability, between runs.
#[derive(Debug, Clone)]
pub struct Ids {
    next: u64,
}

impl Ids {
    /// `start` should be random.
    pub fn new(start: u64) -> Self {
        Self { next: start }
    }

    pub fn take(&mut self) -> u64 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        scatter(number)
    }
}

/// The finalizer of splitmix64: a bijection, so different numbers give different ids, in an order
/// that gives no index an advantage (<https://prng.di.unimi.it/splitmix64.c>).
fn scatter(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The id as text, as the peers store it.
pub fn id_text(id: u64) -> String {
    format!("{ID_PREFIX}{id:016x}")
}

/// A rendered request (head and NDJSON body) whose ids can be replaced in place.
pub struct RenderedBody {
    pub bytes: Vec<u8>,
    id_offsets: Vec<usize>,
}

impl RenderedBody {
    /// `head` renders the HTTP head for a body of the given length.
    pub fn new(drops: &[Drop], head: impl Fn(usize) -> Vec<u8>) -> Self {
        let mut body = Vec::with_capacity(drops.len() * 224);
        let mut id_offsets = Vec::with_capacity(drops.len());
        for drop in drops {
            body.extend_from_slice(br#"{"specversion":"1.0","id":""#);
            body.extend_from_slice(ID_PREFIX.as_bytes());
            id_offsets.push(body.len());
            body.extend_from_slice(&[b'0'; ID_DIGITS]);
            body.extend_from_slice(rest_of_event(drop).as_bytes());
        }

        let mut bytes = head(body.len());
        id_offsets.iter_mut().for_each(|offset| *offset += bytes.len());
        bytes.extend_from_slice(&body);

        Self { bytes, id_offsets }
    }

    pub fn events(&self) -> usize {
        self.id_offsets.len()
    }

    /// Gives every event in the body a new id.
    pub fn renew(&mut self, ids: &mut Ids) {
        for &offset in &self.id_offsets {
            let id = ids.take();
            for (digit, place) in self.bytes[offset..offset + ID_DIGITS].iter_mut().enumerate() {
                let nibble = (id >> (60 - 4 * digit)) & 0xf;
                *place = b"0123456789abcdef"[nibble as usize];
            }
        }
    }
}

/// The answer to `POST /v1/events`.
#[derive(Deserialize)]
struct Receipt {
    accepted: u64,
    duplicates: u64,
    rejected: Vec<serde_json::Value>,
}

/// Checks that every event of a body of new events was accepted.
pub fn check_receipt(body: &[u8], events: usize) -> Result<u64> {
    let text = || format!("of {events} new events: {}", String::from_utf8_lossy(body));
    let Receipt { accepted, duplicates, rejected } =
        serde_json::from_slice(body).with_context(text)?;
    let all_new = accepted == events as u64 && duplicates == 0 && rejected.is_empty();
    ensure!(all_new, "{}", text());
    Ok(accepted)
}

fn rest_of_event(drop: &Drop) -> String {
    let time =
        jiff::Timestamp::from_second(drop.time_s).map(|time| time.to_string()).unwrap_or_default();
    format!(
        "\",\"source\":\"{SOURCE}\",\"type\":\"{EVENT_TYPE}\",\"datacontenttype\":\"application/json\",\"time\":\"{time}\",\
         \"data\":{{\"city\":\"{}\",\"amount\":{}.{:02}}}}}\n",
        city_name(drop.city),
        drop.amount_cents / 100,
        drop.amount_cents % 100,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_renewal_makes_every_event_new_and_the_lines_stay_json() {
        let drops = Drops::new(10, 100, 1, 1_795_000_000);
        let mut rendered = RenderedBody::new(&drops.batches[0], |_| b"HEAD\r\n\r\n".to_vec());
        let mut ids = Ids::new(u64::MAX - 50);
        let mut seen = HashSet::new();

        for _ in 0..3 {
            rendered.renew(&mut ids);
            let body = std::str::from_utf8(&rendered.bytes[8..]).unwrap();
            for line in body.lines() {
                let event: serde_json::Value = serde_json::from_str(line).unwrap();
                assert_eq!(event["type"], EVENT_TYPE);
                assert!(event["data"]["city"].as_str().unwrap().starts_with('c'));
                assert!(seen.insert(event["id"].as_str().unwrap().to_owned()));
            }
        }

        assert_eq!(seen.len(), 300);
        let mut again = Ids::new(u64::MAX - 50);
        assert!(seen.contains(&id_text(again.take())));
    }

    #[test]
    fn events_are_about_two_hundred_bytes_and_lie_in_closed_quarter_hours() {
        let now_s = 1_795_000_123;
        let drops = Drops::new(10, 100, 1, now_s);
        let rendered = RenderedBody::new(&drops.batches[0], |_| Vec::new());
        let bytes_mean = rendered.bytes.len() / rendered.events();

        assert!((170..=210).contains(&bytes_mean), "{bytes_mean}");
        let end_s = plan::floor(now_s, QUARTER_S);
        assert!(
            drops
                .batches
                .iter()
                .flatten()
                .all(|drop| drop.time_s < end_s && drop.time_s >= end_s - SPREAD_S)
        );
    }
}

//! GET and SET of strings with numbers as names, as memtier_benchmark makes them.

use super::load::{self, Work};
use crate::points::Members;
use anyhow::{Result, ensure};
use raingauge_resp_client::command;
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use std::collections::VecDeque;

/// Bytes at the beginning of a value that say which key it belongs to.
const HEAD_LEN: usize = 16;

/// Which keys are used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pattern {
    /// All keys alike.
    Uniform,
    /// By Zipf's law with this exponent; popular keys lie anywhere.
    Zipf(f64),
    /// Each connection walks through a range of its own, as memtier's `P:P` does.
    Sequential,
}

#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub keys: u64,
    pub value_len: usize,
    pub pattern: Pattern,
    /// Share of GET among the commands.
    pub reads: f64,
    /// Commands of a pipeline.
    pub pipeline: usize,
    pub connections: usize,
    pub seed: u64,
}

pub struct Strings {
    shape: Shape,
    members: Members,
    random: StdRng,
    /// Incompressible bytes that values are cut from.
    filler: Vec<u8>,
    value: Vec<u8>,
    /// Next key of each connection's own range.
    next: Vec<u64>,
    /// What is in flight on each connection: keys that are read, or `None` for writes.
    asked: Vec<VecDeque<Option<u64>>>,
    /// Values that were found, and those that were not.
    pub hits: u64,
    pub misses: u64,
}

impl Strings {
    pub fn new(shape: Shape) -> Self {
        let skew = if let Pattern::Zipf(skew) = shape.pattern { skew } else { 0.0 };
        let mut random = StdRng::seed_from_u64(shape.seed);
        let mut filler = vec![0; shape.value_len * 2 + 4_096];
        random.fill_bytes(&mut filler);

        let connections = shape.connections.max(1) as u64;
        let next = (0..connections).map(|slot| slot * shape.keys / connections).collect();
        Self {
            shape,
            members: Members::new(shape.keys, skew),
            random,
            filler,
            value: Vec::new(),
            next,
            asked: vec![VecDeque::new(); shape.connections],
            hits: 0,
            misses: 0,
        }
    }

    fn key(&mut self, slot: usize) -> u64 {
        let Shape { keys, pattern, connections, .. } = self.shape;
        match pattern {
            Pattern::Uniform => self.members.draw(&mut self.random),
            // A prime that does not divide the number of keys scatters the popular ones.
            Pattern::Zipf(_) => {
                let drawn = self.members.draw(&mut self.random);
                (u128::from(drawn) * 2_654_435_761 % u128::from(keys)) as u64
            }
            Pattern::Sequential => {
                let slots = connections.max(1) as u64;
                let first = slot as u64 * keys / slots;
                let end = (slot as u64 + 1) * keys / slots;
                let key = self.next[slot];
                self.next[slot] = if key + 1 >= end { first } else { key + 1 };
                key
            }
        }
    }

    /// The value of a key, whose first bytes name it.
    fn value_of(&mut self, key: u64) {
        let len = self.shape.value_len;
        let start = (key % 4_096) as usize;
        self.value.clear();
        self.value.extend_from_slice(&name(key));
        self.value.extend_from_slice(&self.filler[start..start + len]);
        self.value.truncate(len.max(HEAD_LEN));
    }
}

fn name(key: u64) -> [u8; HEAD_LEN] {
    let mut text = [b'0'; HEAD_LEN];
    let mut rest = key;
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}

/// The name of a key in the store.
pub fn key_name(key: u64) -> String {
    format!("memtier-{key}")
}

impl Work for Strings {
    fn fill(&mut self, slot: usize, bytes: &mut Vec<u8>) -> usize {
        self.asked[slot].clear();
        for _ in 0..self.shape.pipeline {
            let key = self.key(slot);
            let name = key_name(key);
            if self.random.random_bool(self.shape.reads) {
                command(bytes, &[b"GET", name.as_bytes()]);
                self.asked[slot].push_back(Some(key));
            } else {
                self.value_of(key);
                command(bytes, &[b"SET", name.as_bytes(), &self.value]);
                self.asked[slot].push_back(None);
            }
        }
        self.shape.pipeline
    }

    fn check(&mut self, slot: usize, replies: &[u8]) -> Result<usize> {
        let mut rest = replies;
        while let Some(asked) = self.asked[slot].pop_front() {
            let Some(key) = asked else {
                let (done, after) = load::line(rest)?;
                ensure!(done == b"+OK", "SET was answered with {}", done.escape_ascii());
                rest = after;
                continue;
            };

            let (value, after) = load::bulk(rest)?;
            rest = after;
            match value {
                None => self.misses += 1,
                Some(value) => {
                    let is_right = value.starts_with(&name(key));
                    ensure!(is_right, "WRONG VALUE: key {key} has the value of another one");
                    let expected = self.shape.value_len.max(HEAD_LEN);
                    ensure!(value.len() == expected, "WRONG VALUE: {} bytes", value.len());
                    self.hits += 1;
                }
            }
        }
        Ok(self.shape.pipeline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(pattern: Pattern) -> Shape {
        Shape {
            keys: 1_000,
            value_len: 100,
            pattern,
            reads: 0.5,
            pipeline: 10,
            connections: 4,
            seed: 1,
        }
    }

    #[test]
    fn sequential_connections_cover_every_key_once() {
        let mut strings = Strings::new(shape(Pattern::Sequential));
        let mut keys: Vec<u64> = (0..4)
            .flat_map(|slot| (0..250).map(move |_| slot))
            .map(|slot| strings.key(slot))
            .collect();
        keys.sort_unstable();
        assert_eq!(keys, (0..1_000).collect::<Vec<_>>());
        assert_eq!(strings.key(0), 0);
    }

    #[test]
    fn popular_keys_are_drawn_often_and_a_wrong_value_is_noticed() {
        let mut strings = Strings::new(shape(Pattern::Zipf(0.99)));
        let mut counts = std::collections::BTreeMap::<u64, u32>::new();
        for _ in 0..5_000 {
            *counts.entry(strings.key(0)).or_default() += 1;
        }
        assert!(counts.values().max().unwrap() > &300);

        strings.value_of(7);
        let reply = |value: &[u8]| [b"$100\r\n", value, b"\r\n"].concat();
        let right = reply(&strings.value.clone());
        strings.asked[0] = VecDeque::from([Some(7)]);
        strings.check(0, &right).unwrap();
        strings.asked[0] = VecDeque::from([Some(8)]);
        assert!(strings.check(0, &right).unwrap_err().to_string().contains("WRONG VALUE"));
        assert_eq!(strings.hits, 1);
    }
}

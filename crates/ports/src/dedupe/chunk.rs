//! A chunk as bytes, version 1.
//!
//! ```text
//! ┌─────────┬───────┬────────┬──────┬──────┬────────────────────┬───────────────┬──────────┐
//! │ version │ rules │ number │ last │ runs │ runs x             │ fingerprints  │ checksum │
//! │ 1 u8    │ u64   │ u64    │ u64  │ u32  │ (appended_ms i64,  │ 12 bytes each │ xxh3 u64 │
//! │         │       │        │      │      │  count u32)        │               │          │
//! └─────────┴───────┴────────┴──────┴──────┴────────────────────┴───────────────┴──────────┘
//! ```
//!
//! Numbers are little-endian. `last` is the offset behind the last message, 0 when the chunk has
//! none. A run is messages with one append time, and how many of them have an identity.

use super::window::Fingerprint;
use crate::log::Offset;
use xxhash_rust::xxh3::xxh3_64;

const VERSION: u8 = 1;
const RUN_BYTES: usize = 8 + 4;

/// A chunk to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// A hash of the rules that decide which messages have an identity. Other rules make other
    /// chunks.
    pub rules: u64,
    pub number: u64,
    /// Append time of the last message read, in milliseconds since 1970.
    pub appended_ms: i64,
    pub bytes: Vec<u8>,
}

/// Consecutive messages with one append time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub appended_ms: i64,
    /// How many of them have an identity.
    pub count: u32,
}

/// The decoded contents of a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The offset behind the last message; 0 if there is none.
    pub last: Offset,
    pub runs: Vec<Run>,
    pub fingerprints: Vec<Fingerprint>,
}

impl Content {
    /// Appends the message at an offset.
    pub fn push(&mut self, offset: Offset, appended_ms: i64, fingerprint: Option<Fingerprint>) {
        self.last = offset + 1;
        if self.runs.last().is_none_or(|run| run.appended_ms != appended_ms) {
            self.runs.push(Run { appended_ms, count: 0 });
        }
        if let (Some(fingerprint), Some(run)) = (fingerprint, self.runs.last_mut()) {
            run.count += 1;
            self.fingerprints.push(fingerprint);
        }
    }

    /// The last message: its offset and its append time.
    pub fn last_message(&self) -> Option<(Offset, i64)> {
        Some((self.last.checked_sub(1)?, self.runs.last()?.appended_ms))
    }

    pub fn encode(&self, rules: u64, number: u64) -> Vec<u8> {
        let len = 41 + self.runs.len() * RUN_BYTES + self.fingerprints.len() * Fingerprint::BYTES;
        let mut bytes = Vec::with_capacity(len);
        bytes.push(VERSION);

        for word in [rules, number, self.last] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&(self.runs.len() as u32).to_le_bytes());

        for run in &self.runs {
            bytes.extend_from_slice(&run.appended_ms.to_le_bytes());
            bytes.extend_from_slice(&run.count.to_le_bytes());
        }

        for fingerprint in &self.fingerprints {
            bytes.extend_from_slice(&fingerprint.to_bytes());
        }
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// Decodes bytes that are an intact chunk with these rules and this number.
    pub fn decode(bytes: &[u8], rules: u64, number: u64) -> Option<Self> {
        let (body, checksum) = bytes.split_last_chunk::<8>()?;
        if xxh3_64(body) != u64::from_le_bytes(*checksum) {
            return None;
        }

        let (&version, mut rest) = body.split_first()?;
        let mut word =
            || rest.split_off(..8).and_then(|word| word.try_into().ok()).map(u64::from_le_bytes);
        let known_rules = word()?;
        let known_number = word()?;
        let last = word()?;

        if (version, known_rules, known_number) != (VERSION, rules, number) {
            return None;
        }

        let (runs, rest) = rest.split_first_chunk::<4>()?;
        let (runs, rest) = rest.split_at_checked(u32::from_le_bytes(*runs) as usize * RUN_BYTES)?;
        let (fingerprints, []) = rest.as_chunks::<{ Fingerprint::BYTES }>() else {
            return None;
        };
        let runs: Vec<Run> = runs.as_chunks::<RUN_BYTES>().0.iter().map(run).collect();
        let counted = runs.iter().map(|run| run.count as usize).sum::<usize>();

        let fingerprints: Vec<_> =
            fingerprints.iter().map(|bytes| Fingerprint::from_bytes(*bytes)).collect();
        (counted == fingerprints.len()).then_some(Self { last, runs, fingerprints })
    }
}

fn run(bytes: &[u8; RUN_BYTES]) -> Run {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
    let appended_ms = i64::from_le_bytes([a, b, c, d, e, f, g, h]);
    Run { appended_ms, count: u32::from_le_bytes([i, j, k, l]) }
}

//! Markers of commits, which prove that none of the newest commits is missing.
//!
//! ```text
//! 0x00 "commits"                    → number of the newest commit u64
//! 0x00 "ring" number mod RING_LEN   → number u64
//! ```
//!
//! fjall keeps a sealed journal until its memory table is written, and replays all journals when it
//! opens. A damaged sealed journal ends at the damage without an error, and replay continues with
//! the next: commits in the middle are lost, while the position is that of the newest. Each commit
//! includes a marker, and missing markers below the newest one reveal such a hole. A store that
//! lost all of its newest commits has a lower position as well, and reads the log again from there.

use super::Fault;
use fjall::{Keyspace, OwnedWriteBatch};

const NEWEST_KEY: &[u8] = b"\0commits";
const RING_PREFIX: &[u8] = b"\0ring";
/// Number of markers kept: far more than the commits in journals that wait for their tables.
const RING_LEN: u64 = 16_384;

/// Adds the marker of the commit with this number.
pub fn put(batch: &mut OwnedWriteBatch, keyspace: &Keyspace, number: u64) {
    batch.insert(keyspace, NEWEST_KEY, number.to_le_bytes());
    batch.insert(keyspace, ring_key(number), number.to_le_bytes());
}

/// Returns the number of the newest commit, if none before it is missing. A store from before there
/// were markers has 0.
pub fn check(keyspace: &Keyspace, advice: &str) -> Result<u64, Fault> {
    let newest = keyspace.get(NEWEST_KEY)?;
    let newest = newest.map_or(Ok(0), |value| number_of(&value))?;
    let mut found = Vec::new();

    for guard in keyspace.prefix(RING_PREFIX) {
        let (_, value) = guard.into_inner()?;
        found.push(number_of(&value)?);
    }

    found.sort_unstable();

    let oldest = newest.saturating_sub(RING_LEN - 1).max(1);
    let missing = (oldest..=newest).find(|number| found.binary_search(number).is_err());
    match missing {
        None => Ok(newest),
        Some(number) => Err(Fault::Corrupt(format!(
            "commit {number} of {newest} is missing, since a journal is damaged: {advice}"
        ))),
    }
}

fn ring_key(number: u64) -> Vec<u8> {
    // The remainder fits.
    let place = (number % RING_LEN) as u16;
    [RING_PREFIX, &place.to_be_bytes()].concat()
}

fn number_of(value: &[u8]) -> Result<u64, Fault> {
    let malformed = |_| Fault::Corrupt("the marker of a commit is malformed".to_owned());
    value.try_into().map(u64::from_le_bytes).map_err(malformed)
}

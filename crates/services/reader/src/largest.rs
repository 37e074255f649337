//! The largest keys of a counter.

use crate::storage::Storage;
use raingauge_core::bucket::Granularity;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::plan::{Plan, Slice};
use raingauge_ports::published::View;
use serde::Serialize;
use std::collections::HashMap;

/// Most tiles that are looked at to find the largest keys.
const SCAN_MAX: usize = 2_000_000;

/// A key and its count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    pub key: String,
    pub count: i64,
}

/// The keys of a counter with the largest counts, largest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LargestKeys {
    pub keys: Vec<Key>,
    /// Whether every key was looked at. Left out of the JSON unless larger keys may be missing.
    #[serde(rename = "complete", skip_serializing_if = "Clone::clone")]
    pub is_complete: bool,
}

impl Default for LargestKeys {
    /// A counter without keys.
    fn default() -> Self {
        Self { keys: Vec::new(), is_complete: true }
    }
}

/// Reads the keys with the largest counts over the UTC days that touch the range.
pub async fn read(
    storage: &Storage,
    view: &View,
    counter: u32,
    (from_s, to_s): (i64, i64),
    len_max: usize,
) -> Result<LargestKeys, Refusal> {
    Plan::new(from_s, to_s)?;
    let index = view.ruleset.index_of(counter).ok_or_else(|| {
        let detail = format!("counter {counter} does not answer: is it active?");
        Refusal::new(Code::CounterUnknown, detail)
    })?;

    let first_s = Granularity::Day.floor(from_s);
    let end_s = Granularity::Day.ceil(to_s);
    let parts: Vec<_> = view.timelines[index].split(first_s, end_s).collect();

    // The largest of each part suffice, unless a key is large only in the sum of several parts,
    // which few ranges have.
    let len_each = if parts.len() == 1 { len_max } else { SCAN_MAX };

    let mut sums = HashMap::<String, i64>::new();
    let mut is_complete = true;
    for (generation, from_s, to_s) in parts {
        let slice = Slice { granularity: Granularity::Day, from_s, to_s };
        let read = storage.buckets.largest_keys(generation, slice, len_each, SCAN_MAX);
        let largest = storage.alone(read).await?;
        is_complete &= largest.is_complete;

        for (key, sum) in largest.keys {
            let known = sums.entry(key).or_default();
            *known = known.saturating_add(sum);
        }
    }

    let mut keys: Vec<Key> = sums.into_iter().map(|(key, count)| Key { key, count }).collect();
    keys.sort_unstable_by(|left, right| {
        right.count.cmp(&left.count).then_with(|| left.key.cmp(&right.key))
    });
    keys.truncate(len_max);

    Ok(LargestKeys { keys, is_complete })
}

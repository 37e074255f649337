//! How often callers ask for each counter, estimated from a sample: one range of each batch stands
//! for the whole batch. That is enough to say which share of the counts a change of the cache
//! policy concerns, and costs next to nothing.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, Default)]
pub struct Frequencies {
    counts: Mutex<BTreeMap<u32, u64>>,
    turn: AtomicUsize,
}

impl Frequencies {
    /// The place of the range that stands for a batch of this length. Each place has its turn.
    pub fn place(&self, ranges: usize) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed) % ranges.max(1)
    }

    /// Notes a batch of this length, whose sampled range is of this counter. Skips the batch rather
    /// than wait for another thread.
    pub fn note(&self, counter: u32, ranges: usize) {
        if let Some(mut counts) = self.counts.try_lock() {
            *counts.entry(counter).or_default() += ranges as u64;
        }
    }

    pub fn counts(&self) -> BTreeMap<u32, u64> {
        self.counts.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_range_of_equal_batches_has_its_turn() {
        let frequencies = Frequencies::default();
        for _ in 0..30 {
            let counters = [7, 8, 7];
            let place = frequencies.place(counters.len());
            frequencies.note(counters[place], counters.len());
        }
        assert_eq!(frequencies.counts(), BTreeMap::from([(7, 60), (8, 30)]));
    }
}

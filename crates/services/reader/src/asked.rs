//! How often each counter is asked for, by a sample: one range of each batch stands for all of it. Enough to say what
//! share of the counts a change of the cache policy concerns, and too little to be felt.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Asked {
    counts: Mutex<BTreeMap<u32, u64>>,
    turn: AtomicUsize,
}

impl Asked {
    /// The place of the range that stands for a batch of so many. Each place has its turn.
    pub fn place(&self, ranges: usize) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed) % ranges.max(1)
    }

    /// A batch of so many ranges, one of which is of this counter. A batch that would have to wait is left out.
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
        let asked = Asked::default();
        for _ in 0..30 {
            let counters = [7, 8, 7];
            let place = asked.place(counters.len());
            asked.note(counters[place], counters.len());
        }
        assert_eq!(asked.counts(), BTreeMap::from([(7, 60), (8, 30)]));
    }
}

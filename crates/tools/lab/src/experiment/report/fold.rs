//! All quarter hours of a phase, superimposed: values by time since the start of the quarter hour.
//!
//! ```text
//!   10:00 ├──▂▁▁▁▁▁▁▁▁▁▁▁──┤  full hours      clients send more at the turn of an hour
//!   10:15 ├──▂▁▁▁▁▁▁▁▁▁▁▁──┤  ┐
//!   10:30 ├──▂▁▁▁▁▁▁▁▁▁▁▁──┤  ├ the others    a rise here is caused by the start of a quarter hour
//!   10:45 ├──▂▁▁▁▁▁▁▁▁▁▁▁──┤  ┘
//! ```

use super::bins::{QUARTER_MS, Tally, ratio};
use super::phase::Phase;
use super::zone::Zone;
use crate::experiment::record::BatchRecord;
use serde::Serialize;

pub const SLOT_MS: i64 = 30_000;
pub const SLOTS: usize = (QUARTER_MS / SLOT_MS) as usize;
/// The first five minutes: the lifetime of a result in the reference.
const EARLY_SLOTS: usize = 10;

/// The complete quarter hours of one phase.
#[derive(Debug, Clone)]
pub struct Fold {
    /// The quarter hours that start a full hour, and the others.
    pub full_hours: FoldedQuarters,
    pub others: FoldedQuarters,
}

#[derive(Debug, Clone)]
pub struct FoldedQuarters {
    pub quarters: usize,
    pub slots: [Tally; SLOTS],
}

/// A value after the start of a quarter hour, relative to the mean of the phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spike {
    pub first_30_s: Option<f64>,
    pub first_5_min: Option<f64>,
}

/// The measured quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    /// Counts answered by the store.
    StoreLoad,
    /// Mean latency.
    Latency,
}

impl Fold {
    pub fn new(answers: &[BatchRecord], phase: &Phase, zone: &Zone) -> Self {
        let first_ms =
            phase.from_ms + (QUARTER_MS - phase.from_ms.rem_euclid(QUARTER_MS)) % QUARTER_MS;
        let len = ((phase.to_ms - first_ms).max(0) / QUARTER_MS) as usize;
        let end_ms = first_ms + len as i64 * QUARTER_MS;
        let is_full: Vec<bool> =
            (0..len).map(|place| zone.is_full_hour(first_ms + place as i64 * QUARTER_MS)).collect();
        let mut fold =
            Self { full_hours: FoldedQuarters::default(), others: FoldedQuarters::default() };

        for full in &is_full {
            fold.side(*full).quarters += 1;
        }

        for answer in answers.iter().filter(|answer| (first_ms..end_ms).contains(&answer.due_ms)) {
            let since_ms = answer.due_ms - first_ms;
            let full = is_full[(since_ms / QUARTER_MS) as usize];
            fold.side(full).slots[(since_ms % QUARTER_MS / SLOT_MS) as usize].add(answer);
        }

        fold
    }

    fn side(&mut self, is_full: bool) -> &mut FoldedQuarters {
        if is_full { &mut self.full_hours } else { &mut self.others }
    }

    pub fn quarters(&self) -> usize {
        self.full_hours.quarters + self.others.quarters
    }

    /// The mean over all quarter hours of the phase, including full hours.
    fn mean(&self, measure: Measure) -> Option<f64> {
        let slots = || self.full_hours.slots.iter().chain(&self.others.slots);
        match measure {
            Measure::StoreLoad => {
                ratio(total(slots(), |slot| slot.store), (self.quarters() * SLOTS) as f64)
            }
            Measure::Latency => {
                ratio(total(slots(), |slot| slot.latency_us), total(slots(), |slot| slot.batches))
            }
        }
    }

    /// Each slot relative to the mean of the phase.
    pub fn relative(&self, folded: &FoldedQuarters, measure: Measure) -> Vec<Option<f64>> {
        let mean = self.mean(measure);
        folded
            .slots
            .iter()
            .map(|slot| ratio(folded.value(std::slice::from_ref(slot), measure)?, mean?))
            .collect()
    }

    pub fn spike(&self, folded: &FoldedQuarters, measure: Measure) -> Spike {
        let over = |slots: &[Tally]| ratio(folded.value(slots, measure)?, self.mean(measure)?);
        Spike {
            first_30_s: over(&folded.slots[..1]),
            first_5_min: over(&folded.slots[..EARLY_SLOTS]),
        }
    }
}

impl Default for FoldedQuarters {
    fn default() -> Self {
        Self { quarters: 0, slots: [Tally::default(); SLOTS] }
    }
}

impl FoldedQuarters {
    /// Counts per slot, or microseconds per batch.
    fn value(&self, slots: &[Tally], measure: Measure) -> Option<f64> {
        match measure {
            Measure::StoreLoad => {
                ratio(total(slots.iter(), |slot| slot.store), (self.quarters * slots.len()) as f64)
            }
            Measure::Latency => ratio(
                total(slots.iter(), |slot| slot.latency_us),
                total(slots.iter(), |slot| slot.batches),
            ),
        }
    }
}

fn total<'a>(slots: impl Iterator<Item = &'a Tally>, part: impl Fn(&Tally) -> u64) -> f64 {
    slots.map(part).sum::<u64>() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(due_ms: i64, store: u16, latency_us: u32) -> BatchRecord {
        BatchRecord { due_ms, latency_us, memory: 0, cache: 0, store, failed: 0 }
    }

    fn fold(answers: &[BatchRecord], from_ms: i64, to_ms: i64) -> Fold {
        Fold::new(answers, &Phase { share: 0.0, from_ms, to_ms }, &Zone::new("UTC"))
    }

    /// Ten counts in every slot, plus `more` in the first slot of each quarter hour.
    fn quarters(len: i64, more: impl Fn(i64) -> u16) -> Vec<BatchRecord> {
        let slots = (0..len * SLOTS as i64).map(|slot| (slot / SLOTS as i64, slot % SLOTS as i64));
        let store = |(quarter, slot)| if slot == 0 { 10 + more(quarter) } else { 10 };
        slots
            .map(|(quarter, slot)| {
                answer(quarter * QUARTER_MS + slot * SLOT_MS, store((quarter, slot)), 1_000)
            })
            .collect()
    }

    #[test]
    fn full_hours_are_kept_apart() {
        let fold =
            fold(&quarters(8, |quarter| if quarter % 4 == 0 { 30 } else { 0 }), 0, 8 * QUARTER_MS);
        assert_eq!((fold.full_hours.quarters, fold.others.quarters), (2, 6));
        let mean = 10.0 + 30.0 * 2.0 / (8 * SLOTS) as f64;
        assert_eq!(fold.spike(&fold.full_hours, Measure::StoreLoad).first_30_s, Some(40.0 / mean));
        assert_eq!(fold.spike(&fold.others, Measure::StoreLoad).first_30_s, Some(10.0 / mean));
        assert_eq!(fold.spike(&fold.others, Measure::Latency).first_5_min, Some(1.0));
    }

    #[test]
    fn only_whole_quarter_hours_are_laid_on_each_other() {
        let fold = fold(&quarters(3, |_| 5), 1, 3 * QUARTER_MS - 1);
        assert_eq!(fold.quarters(), 1);
        assert_eq!(fold.others.slots.iter().map(|slot| slot.batches).sum::<u64>(), SLOTS as u64);
    }

    #[test]
    fn without_quarter_hours_there_is_no_statement() {
        let fold = fold(&[], 0, QUARTER_MS - 1);
        assert_eq!(fold.spike(&fold.others, Measure::StoreLoad), Spike::default());
        assert_eq!(fold.relative(&fold.others, Measure::Latency), [None; SLOTS]);
    }
}

//! Erases all counts of a counter.
//!
//! An empty generation replaces those that answered. They are counted until every partition has
//! erased, and then removed, like a generation that a backfill has replaced. No later backfill
//! counts the entries before the erasure.

use super::{CounterState, Outgoing, Part, RuleSince, State};
use raingauge_ports::buckets::generation_of;
use raingauge_ports::log::Offset;
use serde::{Deserialize, Serialize};

/// The reason shown for a backfill that was cancelled by an erasure.
const ERASED: &str = "the counts of the counter were erased";

/// An erasure of all counts of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erasure {
    /// The number of the generation that began empty.
    pub number: u32,
    /// The offset of the entry: nothing before it counts.
    pub offset: Offset,
}

impl State {
    /// Makes a counter begin from zero at an offset, which was appended at `now_s`. Changes nothing
    /// when the number is not newer than the newest one, or when the partition does not answer by
    /// `replaces` yet: earlier switches of partition 0 come first.
    pub fn erase(&mut self, counter: u32, erasure: Erasure, replaces: Option<u32>, now_s: i64) {
        let is_due = |state: &CounterState| {
            let is_newer = erasure.number > state.newest;
            is_newer && replaces.is_none_or(|number| number == state.answers_by())
        };
        if !self.counters.get(&counter).is_some_and(is_due) {
            return;
        }
        self.cancel_undecided(counter, ERASED, now_s);

        let Some(state) = self.counters.get_mut(&counter) else {
            return;
        };

        let Erasure { number, offset } = erasure;
        let rules = vec![RuleSince { since: offset, counter: state.counter.clone() }];
        let empty = Part { from_s: 0, generation: generation_of(counter, number), number, rules };
        let parts = std::mem::replace(&mut state.parts, vec![empty]);
        let kept_from = state.kept_from;

        state.outgoing.push(Outgoing { replaced_by: number, parts, kept_from, is_erased: true });
        (state.newest, state.erased) = (number, Some(erasure));
    }
}

impl CounterState {
    /// Returns the offset before which everything was erased; 0 without an erasure.
    pub fn erased_before(&self) -> Offset {
        self.erased.map_or(0, |erased| erased.offset)
    }
}

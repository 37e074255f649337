//! Erasing all that was counted of a counter.
//!
//! An empty generation takes the place of those that answered, which are counted until every
//! partition has erased, and then removed: the same way as that of a generation that a backfill has
//! replaced. What stands before the entry is counted by no later backfill.

use super::{CounterState, Outgoing, Part, RuleSince, State};
use raingauge_ports::buckets::generation_of;
use raingauge_ports::log::Offset;
use serde::{Deserialize, Serialize};

/// Why an erasure cancels a backfill, for those who asked for it.
const ERASED: &str = "the counts of the counter were erased";

/// All that was counted of a counter is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erasure {
    /// The number of the generation that began empty.
    pub number: u32,
    /// The offset of the entry: nothing before it counts.
    pub offset: Offset,
}

impl State {
    /// Lets a counter begin from nothing at an offset, which was appended at `now_s`. A number that
    /// is not newer than the newest one changes nothing, nor does an erasure of a partition that
    /// does not answer by `replaces` yet: what partition 0 switched to before is switched to first.
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
    /// The offset before which everything was erased; 0 without an erasure.
    pub fn erased_before(&self) -> Offset {
        self.erased.map_or(0, |erased| erased.offset)
    }
}

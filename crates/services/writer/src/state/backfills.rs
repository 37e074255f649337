//! Backfills in the state: begun, decided, retired. Every step is an entry of the log.
//!
//! ```text
//!            Backfill            Switch                       Retire           Removed
//!   ─────────────┼─────────────────┼────────────────────────────┼─────────────────┼──▶ log
//!    old counts  │ new ones filled │ new ones answer            │ old ones are    │ nothing is
//!    answer      │ behind the log  │ old ones are still counted │ removed         │ left of them
//! ```
//!
//! Partition 0 decides: a backfill is begun, switched or cancelled in the others only after its
//! state shows it.

use super::{CounterState, Part, RuleSince, State, counting, timeline_of};
use raingauge_core::counter::Counter;
use raingauge_core::retention::Horizons;
use raingauge_ports::buckets::{GENERATIONS_PER_COUNTER, Generation, generation_of};
use raingauge_ports::log::Offset;
use raingauge_ports::published::Timeline;
use serde::{Deserialize, Serialize};

/// A backfill, undecided or decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backfill {
    pub status: BackfillStatus,
    /// The generation that the backfill fills, and its number.
    pub generation: Generation,
    #[serde(default)]
    pub number: u32,
    /// The offset at which it begins to read the log.
    #[serde(default)]
    pub from: Offset,
    /// The offset up to which it has read the log.
    #[serde(default)]
    pub position: Offset,
    /// Only buckets from this second on are recounted: the log holds all their events. 0 is
    /// everything.
    pub after_s: i64,
    /// Events counted so far.
    #[serde(default)]
    pub counted: u64,
    /// The stamp of an entry before the one that began the backfill is this plus its offset, which
    /// is no later than the stamp of the entry itself.
    #[serde(default)]
    pub stamp_base_us: i64,
    /// The offset of the entry that began it. Entries before it are counted by the first rule.
    #[serde(default)]
    pub begun: Offset,
    /// The configurations and the offsets from which they count, while it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleSince>,
    /// Buckets before these horizons had expired under a configuration that was replaced while the
    /// backfill runs.
    #[serde(default)]
    pub kept_from: Horizons,
    /// When it finished or was cancelled, in seconds since 1970; 0 while it runs.
    #[serde(default)]
    pub ended_at: i64,
    /// Why it was cancelled.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackfillStatus {
    #[default]
    Running,
    Finished,
    /// The counter was changed while the backfill ran, or the log could not be read.
    Cancelled,
}

/// A timeline that was replaced. It is counted for readers that have not switched yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    /// The number of the generation that replaced it.
    pub replaced_by: u32,
    pub parts: Vec<Part>,
    pub kept_from: Horizons,
    /// Whether it was erased, and not counted again by a backfill.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_erased: bool,
}

impl Outgoing {
    /// The number of the newest generation that answered.
    pub fn answered_by(&self) -> u32 {
        self.parts.iter().map(|part| part.number).max().unwrap_or(0)
    }
}

/// The start of a backfill.
#[derive(Default)]
pub struct Begin {
    pub number: Option<u32>,
    pub configuration: Option<Counter>,
    pub after_s: i64,
    /// The offset of the entry, and the base to which earlier offsets are added for a stamp.
    pub offset: Offset,
    pub stamp_base_us: i64,
}

impl Backfill {
    pub fn is_running(&self) -> bool {
        self.status == BackfillStatus::Running
    }
}

impl State {
    /// Returns the backfill that is being filled: the first undecided one.
    pub fn front(&self) -> Option<(u32, &Backfill)> {
        let id = *self.queue.first()?;
        Some((id, self.counters.get(&id)?.backfill.as_ref()?))
    }

    pub fn is_front(&self, counter: u32, number: u32) -> bool {
        self.front().is_some_and(|(id, backfill)| (id, backfill.number) == (counter, number))
    }

    /// Begins a backfill, or puts it into the queue. Changes nothing when its number is not newer
    /// than the newest, or when the counter's last backfill is undecided.
    pub fn begin_backfill(&mut self, counter: u32, begin: Begin) {
        let Some(state) = self.counters.get_mut(&counter) else {
            return;
        };
        let is_old = begin.number.is_some_and(|number| number <= state.newest);
        if is_old || state.running_backfill().is_some() {
            return;
        }

        let used: Vec<Generation> =
            state.generations().chain(self.retired.iter().copied()).collect();
        let number = begin
            .number
            .unwrap_or_else(|| next_number(counter, state.newest, |slot| used.contains(&slot)));
        let current = state.counter.clone();
        let counts_before = counting(&begin.configuration.unwrap_or_else(|| current.clone()));

        // No rule counts the entries before an erasure.
        let mut rules = vec![RuleSince { since: state.erased_before(), counter: counts_before }];
        if rules[0].counter != current {
            rules.push(RuleSince { since: begin.offset, counter: current });
        }
        state.newest = number;
        state.backfill = Some(Backfill {
            status: BackfillStatus::Running,
            generation: generation_of(counter, number),
            number,
            after_s: begin.after_s,
            stamp_base_us: begin.stamp_base_us,
            begun: begin.offset,
            rules,
            ..Backfill::default()
        });
        self.begun += u64::from(self.queue.is_empty());
        self.queue.push(counter);
    }

    /// Makes the generation at the front answer from here on. What it replaces continues to be
    /// counted.
    pub fn switch(&mut self, counter: u32, number: u32, now_s: i64) {
        if !self.is_front(counter, number) {
            return;
        }
        let Some(state) = self.counters.get_mut(&counter) else {
            return;
        };
        let before = state.parts.clone();
        let kept_before = state.kept_from;
        let Some(backfill) = state.running_backfill() else {
            return;
        };

        (backfill.status, backfill.ended_at) = (BackfillStatus::Finished, now_s);
        let (part, kept_from) = backfill.take_part();

        // The retentions since its beginning shaped the new part.
        state.kept_from = Horizons {
            quarter_s: kept_before.quarter_s.min(part.from_s),
            hour_s: kept_before.hour_s.min(part.from_s),
            day_s: kept_before.day_s.min(part.from_s),
        }
        .max(kept_from);
        state.parts.truncate(state.parts.partition_point(|old| old.from_s < part.from_s));
        state.parts.push(part);

        let before = Outgoing {
            replaced_by: number,
            parts: before,
            kept_from: kept_before,
            is_erased: false,
        };

        state.outgoing.push(before);
        self.leave_queue(counter);
    }

    /// Gives the generation up: it will not answer. One that has not begun here can no longer
    /// begin.
    pub fn cancel(&mut self, counter: u32, number: u32, reason: &str, now_s: i64) {
        let Some(state) = self.counters.get_mut(&counter) else {
            return;
        };
        match &state.backfill {
            Some(backfill) if backfill.is_running() && backfill.number == number => {
                self.cancel_undecided(counter, reason, now_s);
            }
            _ => state.newest = state.newest.max(number),
        }
    }

    pub(super) fn cancel_undecided(&mut self, counter: u32, reason: &str, now_s: i64) {
        let Some(backfill) =
            self.counters.get_mut(&counter).and_then(CounterState::running_backfill)
        else {
            return;
        };
        (backfill.status, backfill.ended_at) = (BackfillStatus::Cancelled, now_s);
        reason.clone_into(&mut backfill.reason);
        backfill.rules.clear();
        self.retired.push(backfill.generation);
        self.leave_queue(counter);
    }

    fn leave_queue(&mut self, counter: u32) {
        let was_front = self.queue.first() == Some(&counter);
        self.queue.retain(|waiting| *waiting != counter);
        self.begun += u64::from(was_front && !self.queue.is_empty());
    }

    /// Stops counting what the generation of this number, and earlier ones, replaced.
    pub fn retire(&mut self, counter: u32, number: u32) {
        let Some(state) = self.counters.get_mut(&counter) else {
            return;
        };
        let (gone, kept) = state
            .outgoing
            .drain(..)
            .partition(|outgoing: &Outgoing| outgoing.replaced_by <= number);
        state.outgoing = kept;

        let counted: Vec<Generation> = state.generations().collect();
        for part in gone.into_iter().flat_map(|outgoing| outgoing.parts) {
            if !counted.contains(&part.generation) && !self.retired.contains(&part.generation) {
                self.retired.push(part.generation);
            }
        }
    }

    pub fn forget_removed(&mut self, generation: Generation) {
        self.retired.retain(|retired| *retired != generation);
    }

    /// Returns the counters with a backfill about which something remains to be decided or written.
    pub fn open(&self) -> Vec<u32> {
        let outgoing =
            self.counters.iter().filter(|(_, state)| !state.outgoing.is_empty()).map(|(id, _)| *id);
        self.queue.iter().copied().chain(outgoing).collect()
    }
}

impl Backfill {
    /// Takes the counts as a part of the timeline, and the horizons before which they had expired.
    fn take_part(&mut self) -> (Part, Horizons) {
        let from_s = self.after_s;
        let generation = self.generation;
        let number = self.number;
        (
            Part { from_s, generation, number, rules: std::mem::take(&mut self.rules) },
            self.kept_from,
        )
    }
}

impl CounterState {
    pub fn running_backfill(&mut self) -> Option<&mut Backfill> {
        self.backfill.as_mut().filter(|backfill| backfill.is_running())
    }

    /// Returns the number of the newest generation that answers.
    pub fn answers_by(&self) -> u32 {
        self.parts.iter().map(|part| part.number).max().unwrap_or(0)
    }

    /// Returns the parts that answered when the newest generation was `number`, and the horizons
    /// before which they had expired; the current ones when those are no longer counted.
    pub fn as_of(&self, number: u32) -> (&[Part], Horizons) {
        let found = self.outgoing.iter().find(|outgoing| outgoing.answered_by() == number);
        match found.filter(|_| self.answers_by() > number) {
            Some(outgoing) => (&outgoing.parts, outgoing.kept_from),
            None => (&self.parts, self.kept_from),
        }
    }

    /// Returns the timelines that are counted beside the one that answers.
    pub(super) fn beside(&self, is_filled: bool) -> Vec<Timeline> {
        let outgoing = self
            .outgoing
            .iter()
            .map(|outgoing| timeline_of(&outgoing.parts).kept_from(outgoing.kept_from));
        let incoming =
            self.backfill.iter().filter(|backfill| is_filled && backfill.is_running()).map(
                |backfill| {
                    let mut parts: Vec<(i64, Generation)> =
                        self.parts.iter().map(|part| (part.from_s, part.generation)).collect();
                    parts.truncate(parts.partition_point(|(from_s, _)| *from_s < backfill.after_s));
                    parts.push((backfill.after_s, backfill.generation));

                    Timeline::new(parts).kept_from(backfill.kept_from)
                },
            );
        outgoing.chain(incoming).collect()
    }

    /// Returns every generation that is counted, or will be.
    fn generations(&self) -> impl Iterator<Item = Generation> + '_ {
        let outgoing = self.outgoing.iter().flat_map(|outgoing| &outgoing.parts);
        let running = self.backfill.iter().filter(|backfill| backfill.is_running());
        let counted = self.parts.iter().chain(outgoing).map(|part| part.generation);
        counted.chain(running.map(|backfill| backfill.generation))
    }
}

/// Returns the first number after the newest whose generation is unused. Numbers always grow;
/// generations are used again when the store holds nothing of them.
pub fn next_number(counter: u32, newest: u32, is_used: impl Fn(Generation) -> bool) -> u32 {
    let candidates = (newest + 1..).take(GENERATIONS_PER_COUNTER as usize);
    let mut free = candidates.filter(|number| !is_used(generation_of(counter, *number)));
    free.next().unwrap_or(newest + 1)
}

/// Returns every generation of a counter that a state still counts, fills or removes.
pub fn used(state: &State, counter: u32) -> Vec<Generation> {
    let counted = state.counters.get(&counter).into_iter().flat_map(CounterState::generations);
    counted.chain(state.retired.iter().copied()).collect()
}

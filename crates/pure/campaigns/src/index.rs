//! The index over rules: which of ten thousand can hold for an event, in microseconds.
//!
//! Each rule is brought to [rows](rows): conjunctions of conditions on values that are at hand for
//! every event. For each slot, the event's value selects a set of rows that it allows. The
//! intersection of these sets has the rows that hold:
//!
//! ```text
//!                      rows   0 1 2 3 4 5 6 7
//!   country = sg        ──▶   1 1 0 1 1 0 1 1   rows without a condition on it are in every set
//!   total = 12.50       ──▶   1 0 1 1 1 0 0 1
//!   count reached 3     ──▶   1 0 0 1 0 0 0 0   rows that wait for an edge, and those that do not
//!                             ───────────────
//!   candidates                1 0 0 1 0 0 0 0
//! ```
//!
//! The sets are stored, so that an event costs a few operations on words for each slot, whatever
//! the rules look like. Candidates are a superset: leaves that have to be loaded, and alternatives
//! that are too wide, are left to the [evaluation](crate::tree).

mod axis;
mod bits;
mod rows;

pub use rows::Sight;

use crate::rule::{Leaf, Rule};
use crate::values::Values;
use crate::window::Change;
use axis::Axis;
use hashbrown::HashMap;
use rows::{Condition, Edge, Row};

/// The rules of one event type, by numbers that the caller gives them.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// The rule of each row. Rows of one rule are neighbours.
    rules: Vec<u32>,
    /// The slots that any row has a condition on.
    axes: Vec<(usize, Axis)>,
    /// Rows that wait for no edge.
    level: Box<[u64]>,
    edges: HashMap<usize, Waiting>,
}

/// Rows that wait for edges of one count, in the order of the edges.
#[derive(Clone, Debug, Default)]
struct Waiting {
    reaches: Vec<(i64, u32)>,
    every: Vec<(i64, u32)>,
}

/// Memory that [`Index::candidates`] uses again for each event.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    alive: Vec<u64>,
    set: Vec<u64>,
}

/// Collects rules for an [`Index`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    rows: Vec<Row>,
    rules: Vec<u32>,
}

impl Builder {
    /// Adds a rule under a number. `sight` says where the value of a leaf is at hand.
    pub fn add(&mut self, number: u32, rule: &Rule, sight: &dyn Fn(&Leaf) -> Sight) {
        for row in rows::rows_of(rule, sight) {
            self.rows.push(row);
            self.rules.push(number);
        }
    }

    pub fn build(self) -> Index {
        let mut by_slot: Vec<Vec<(usize, &Condition)>> = Vec::new();
        let mut level = vec![0; bits::words_for(self.rows.len())];
        let mut edges: HashMap<usize, Waiting> = HashMap::new();

        for (number, row) in self.rows.iter().enumerate() {
            for (slot, condition) in &row.conditions {
                if by_slot.len() <= *slot {
                    by_slot.resize_with(slot + 1, Vec::new);
                }
                by_slot[*slot].push((number, condition));
            }
            match row.edge {
                None => bits::set(&mut level, number),
                Some(edge) => edges.entry(edge.count).or_default().add(edge, number as u32),
            }
        }

        let conditioned =
            by_slot.iter().enumerate().filter(|(_, conditions)| !conditions.is_empty());
        let axes = conditioned
            .map(|(slot, conditions)| (slot, Axis::new(conditions, self.rows.len())))
            .collect();
        edges.values_mut().for_each(Waiting::sort);
        Index { axes, level: level.into(), edges, rules: self.rules }
    }
}

impl Waiting {
    fn add(&mut self, edge: Edge, row: u32) {
        let edges = if edge.reaches { &mut self.reaches } else { &mut self.every };
        edges.push((edge.at, row));
    }

    fn sort(&mut self) {
        self.reaches.sort_unstable();
        self.every.sort_unstable();
    }

    /// Wakes the rows whose edge a change takes.
    fn wake(&self, change: Change, alive: &mut [u64]) {
        let from = self.reaches.partition_point(|(at, _)| *at <= change.before);
        for (at, row) in &self.reaches[from..] {
            if *at > change.after {
                break;
            }
            bits::set(alive, *row as usize);
        }

        for (at, row) in &self.every {
            if change.after.div_euclid(*at) > change.before.div_euclid(*at) {
                bits::set(alive, *row as usize);
            }
        }
    }
}

impl Index {
    /// How many rows the rules have become.
    pub fn rows(&self) -> usize {
        self.rules.len()
    }

    /// Finds the rules that can hold, in ascending order of their rows. `values` are those of the
    /// slots; `changes` are the counts that the event changed, by their numbers.
    pub fn candidates(
        &self,
        values: &Values<'_>,
        changes: impl IntoIterator<Item = (usize, Change)>,
        scratch: &mut Scratch,
        mut each: impl FnMut(u32),
    ) {
        let Scratch { alive, set } = scratch;
        alive.clear();
        alive.extend_from_slice(&self.level);
        set.resize(alive.len(), 0);

        for (count, change) in changes {
            if let Some(waiting) = self.edges.get(&count) {
                waiting.wake(change, alive);
            }
        }
        for (slot, axis) in &self.axes {
            axis.keep(values, *slot, alive, set);
        }

        let mut last = None;
        for row in bits::rows(alive) {
            let rule = self.rules[row];
            if last != Some(rule) {
                last = Some(rule);
                each(rule);
            }
        }
    }
}

#[cfg(test)]
#[path = "index/tests.rs"]
mod tests;

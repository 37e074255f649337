//! Lazy evaluation of a rule, the cheapest values first.
//!
//! A value is loaded only when it can still change the result, and never while a cheaper one could
//! settle it. Leaves are tested in the order of their weights, wherever they stand in the tree; a
//! group that is settled takes the leaves below it out of the order.
//!
//! ```text
//! A & (B | C) & (D | E)      weights B < D < E < C < A
//!
//! B no            (B | C) is open
//! D yes           (D | E) holds: E is skipped
//! C no            (B | C) fails, and so does the rule: A is never loaded
//! ```
//!
//! Sets of leaves and groups are words of 64 bits, so that an evaluation is a few words, and can
//! wait for a lookup at no cost.

use crate::rule::{Leaf, Rule};

/// A rule as it is evaluated. Leaves are numbered in the order in which they are tested.
#[derive(Clone, Debug)]
pub struct Tree {
    leaves: Box<[Leaf]>,
    /// The group of each leaf.
    parents: Box<[u8]>,
    /// The first is the whole rule. A group stands before those inside it.
    groups: Box<[Group]>,
}

#[derive(Clone, Debug)]
struct Group {
    /// Whether one member suffices. Otherwise all must hold.
    any: bool,
    parent: u8,
    /// Direct members.
    leaves: u64,
    groups: u64,
    /// All leaves below.
    below: u64,
}

/// How far the evaluation of a [`Tree`] has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    tested: u64,
    /// Of the tested leaves, those whose condition holds, before negation.
    held: u64,
    /// Leaves that cannot change the result any more.
    closed: u64,
    /// Groups that are settled, and those that hold.
    settled: u64,
    holding: u64,
}

impl Progress {
    /// The result, once it is known.
    pub fn result(&self) -> Option<bool> {
        (self.settled & 1 == 1).then_some(self.holding & 1 == 1)
    }

    /// The tested leaves in the order in which they were tested, and whether each one's condition
    /// holds before negation.
    pub fn trace(&self) -> impl Iterator<Item = (usize, bool)> {
        let held = self.held;
        ones(self.tested).map(move |leaf| (leaf, held >> leaf & 1 == 1))
    }

    /// Whether a leaf was passed over because its group was settled without it.
    pub fn skips(&self, leaf: usize) -> bool {
        (self.closed & !self.tested) >> leaf & 1 == 1
    }
}

/// The numbers of the bits that are set, in ascending order.
pub(crate) fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}

impl Tree {
    /// Orders the leaves of a rule, which has at most 64, by weight and by their place in the text.
    pub fn new(rule: &Rule) -> Self {
        let mut leaves = Vec::new();
        rule.each_leaf(&mut |leaf| leaves.push(leaf));
        assert!(leaves.len() <= 64, "a rule of {} leaves was not checked", leaves.len());

        let mut order: Vec<usize> = (0..leaves.len()).collect();
        order.sort_by_key(|place| leaves[*place].weight);
        let mut numbers = vec![0; leaves.len()];
        for (number, place) in order.iter().enumerate() {
            numbers[*place] = number;
        }

        let leaves_in_order = order.iter().map(|place| leaves[*place].clone()).collect();
        let mut builder = Builder {
            numbers: numbers.into_iter(),
            parents: vec![0; leaves.len()],
            groups: Vec::new(),
        };
        builder.open(matches!(rule, Rule::Any(_)), 0);
        builder.add(rule, 0);

        Self {
            leaves: leaves_in_order,
            parents: builder.parents.into(),
            groups: builder.groups.into(),
        }
    }

    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// The beginning of an evaluation.
    pub fn start(&self) -> Progress {
        let mut progress = Progress::default();
        if self.leaves.is_empty() {
            progress.settled = 1;
            progress.holding = 1;
        }
        progress
    }

    /// The leaf to test next; `None` when the result is known.
    pub fn next(&self, progress: &Progress) -> Option<usize> {
        let leaf = (!(progress.tested | progress.closed)).trailing_zeros() as usize;
        (leaf < self.leaves.len()).then_some(leaf)
    }

    /// The leaves that may still be tested, in their order.
    pub fn open(&self, progress: &Progress) -> impl Iterator<Item = usize> {
        let open = !(progress.tested | progress.closed);
        ones(open).take_while(|leaf| *leaf < self.leaves.len())
    }

    /// Notes that the condition of a leaf holds or not, and settles what follows from it.
    pub fn note(&self, progress: &mut Progress, leaf: usize, holds: bool) {
        progress.tested |= 1 << leaf;
        progress.held |= u64::from(holds) << leaf;

        let holds = holds != self.leaves[leaf].negated;
        let mut number = usize::from(self.parents[leaf]);
        loop {
            let group = &self.groups[number];
            let open =
                group.leaves & !progress.tested != 0 || group.groups & !progress.settled != 0;
            // One member that holds settles an `or`, and one that fails an `and`. The last member
            // settles both, and then the group is what this member is.
            if holds != group.any && open {
                return;
            }

            progress.settled |= 1 << number;
            progress.holding |= u64::from(holds) << number;
            progress.closed |= group.below;
            if number == 0 {
                return;
            }
            number = usize::from(group.parent);
        }
    }

    /// Evaluates with values that are at hand, as far as `test` has answers. Returns the leaf whose
    /// value has to be loaded, or `None` when the result is known.
    pub fn advance(
        &self,
        progress: &mut Progress,
        mut test: impl FnMut(usize) -> Option<bool>,
    ) -> Option<usize> {
        while let Some(leaf) = self.next(progress) {
            match test(leaf) {
                Some(holds) => self.note(progress, leaf, holds),
                None => return Some(leaf),
            }
        }
        None
    }

    /// The fewest leaves whose conditions would have to turn around for the rule to hold, as bits.
    /// `held` has a bit for each leaf whose condition holds.
    pub fn nearest(&self, held: u64) -> u64 {
        self.nearest_in(0, held)
    }

    fn nearest_in(&self, number: usize, held: u64) -> u64 {
        let group = &self.groups[number];
        let leaves = ones(group.leaves).map(|leaf| {
            let holds = (held >> leaf & 1 == 1) != self.leaves[leaf].negated;
            if holds { 0 } else { 1 << leaf }
        });
        let members = leaves.chain(ones(group.groups).map(|inner| self.nearest_in(inner, held)));
        if group.any {
            members.min_by_key(|change| change.count_ones()).unwrap_or(0)
        } else {
            members.fold(0, |all, change| all | change)
        }
    }
}

struct Builder {
    /// The numbers of the leaves, in the order of the text.
    numbers: std::vec::IntoIter<usize>,
    parents: Vec<u8>,
    groups: Vec<Group>,
}

impl Builder {
    fn open(&mut self, any: bool, parent: usize) -> usize {
        let number = self.groups.len();
        self.groups.push(Group { any, parent: parent as u8, leaves: 0, groups: 0, below: 0 });
        number
    }

    /// Adds the members of a rule to a group, and answers the leaves below. A group inside one of
    /// its own kind, or with one member, is joined with the one around it: so there are fewer
    /// groups than leaves, besides the first.
    fn add(&mut self, rule: &Rule, group: usize) -> u64 {
        let below = match rule {
            Rule::Leaf(_) => {
                let number = self.numbers.next().expect("each leaf has a number");
                self.parents[number] = group as u8;
                self.groups[group].leaves |= 1 << number;
                1 << number
            }
            Rule::All(rules) | Rule::Any(rules) => {
                let any = matches!(rule, Rule::Any(_));
                if rules.len() == 1 || any == self.groups[group].any {
                    rules.iter().fold(0, |below, rule| below | self.add(rule, group))
                } else {
                    let inner = self.open(any, group);
                    self.groups[group].groups |= 1 << inner;
                    rules.iter().fold(0, |below, rule| below | self.add(rule, inner))
                }
            }
        };
        self.groups[group].below |= below;
        below
    }
}

#[cfg(test)]
#[path = "tree/tests.rs"]
mod tests;

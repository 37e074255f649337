//! An inner node of the order: its children, and what they hold.

use super::order::{Node, Place};

/// Children, with the first place and the number of places below each. Apart from the nodes, since
/// a descent looks at many of the numbers and at one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Inner {
    lows: Vec<Place>,
    counts: Vec<u32>,
    nodes: Vec<Node>,
}

impl Inner {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The first place below the node.
    pub(super) fn low(&self) -> Option<Place> {
        self.lows.first().copied()
    }

    /// The number of places below the node.
    pub(super) fn count(&self) -> usize {
        sum(&self.counts)
    }

    pub(super) fn node(&self, at: usize) -> &Node {
        &self.nodes[at]
    }

    /// The last child whose first place passes a test, with the number of places before it.
    pub(super) fn last_where(&self, holds: impl Fn(Place) -> bool) -> Option<(&Node, usize)> {
        let at = self.lows.partition_point(|low| holds(*low)).checked_sub(1)?;

        Some((&self.nodes[at], sum(&self.counts[..at])))
    }

    /// The child that holds the place at a rank, and the rank within it.
    pub(super) fn child_with(&self, mut rank: usize) -> (usize, usize) {
        let mut at = 0;
        while rank >= self.counts[at] as usize {
            rank -= self.counts[at] as usize;
            at += 1;
        }

        (at, rank)
    }

    /// The child in which to insert at a rank, and the rank within it: at the end of one rather
    /// than at the beginning of the next.
    pub(super) fn child_for(&self, mut rank: usize) -> (usize, usize) {
        let mut at = 0;
        while rank > self.counts[at] as usize {
            rank -= self.counts[at] as usize;
            at += 1;
        }

        (at, rank)
    }

    /// Changes a child, and notes what it holds then.
    pub(super) fn change<T>(
        &mut self,
        at: usize,
        by: i32,
        change: impl FnOnce(&mut Node) -> T,
    ) -> T {
        let changed = change(&mut self.nodes[at]);
        self.counts[at] = self.counts[at].wrapping_add_signed(by);
        if let Some(low) = self.nodes[at].low() {
            self.lows[at] = low;
        }

        changed
    }

    /// Counts what a child holds again.
    pub(super) fn recount(&mut self, at: usize) {
        self.counts[at] = count_of(&self.nodes[at]);
    }

    /// Inserts a node that is not empty.
    pub(super) fn insert(&mut self, at: usize, node: Node) {
        self.lows.insert(at, node.low().expect("no child is empty"));
        self.counts.insert(at, count_of(&node));
        self.nodes.insert(at, node);
    }

    pub(super) fn push(&mut self, node: Node) {
        self.insert(self.len(), node);
    }

    pub(super) fn remove(&mut self, at: usize) -> Node {
        self.lows.remove(at);
        self.counts.remove(at);

        self.nodes.remove(at)
    }

    pub(super) fn split_off(&mut self, at: usize) -> Inner {
        Inner {
            lows: self.lows.split_off(at),
            counts: self.counts.split_off(at),
            nodes: self.nodes.split_off(at),
        }
    }

    /// Whether it knows its children right.
    #[cfg(test)]
    pub(super) fn check(&self) {
        for ((node, low), count) in self.nodes.iter().zip(&self.lows).zip(&self.counts) {
            assert_eq!(node.low(), Some(*low));
            assert_eq!(count_of(node), *count);
            assert!(*count > 0);
        }
    }

    pub(super) fn append(&mut self, mut right: Inner) {
        self.lows.append(&mut right.lows);
        self.counts.append(&mut right.counts);
        self.nodes.append(&mut right.nodes);
    }
}

fn sum(counts: &[u32]) -> usize {
    counts.iter().map(|count| *count as usize).sum()
}

fn count_of(node: &Node) -> u32 {
    u32::try_from(node.count()).expect("an object has fewer than 2^32 entries")
}

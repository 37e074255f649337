//! The order of a sorted set: a B+ tree whose inner nodes count what lies below them.
//!
//! It is a sequence of places that are kept in order by the caller. Each node knows the first place
//! and the number of places of each child, so that finding a place, its rank, the place at a rank,
//! inserting and removing take O(log n). A place is the sortable bits of a score, and the slot that
//! holds the member. The tree compares no members: the caller hands over a predicate.

use std::ops::Range;

use super::inner::Inner;

/// Places of a leaf, at most.
const LEAF_MAX: usize = 64;
/// Children of an inner node, at most.
const INNER_MAX: usize = 64;
/// How full the nodes of a tree are that is built at once: two thirds, so that the first inserts
/// split none.
const FILL: usize = 43;

/// One entry of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The score as bits that sort.
    pub(super) score: u64,
    /// The slot of the member.
    pub(super) slot: u32,
}

/// Places in order.
#[derive(Clone, Debug)]
pub(super) struct Order {
    root: Node,
    len: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Leaf(Vec<Place>),
    Inner(Inner),
}

impl Order {
    pub(super) fn new() -> Order {
        Order { root: Node::Leaf(Vec::new()), len: 0 }
    }

    /// The order of places that are sorted already. O(n).
    pub(super) fn from_sorted(places: &[Place]) -> Order {
        let leaves = pieces(places.len()).map(|piece| Node::Leaf(places[piece].to_vec()));
        let mut nodes: Vec<Node> = leaves.collect();

        while nodes.len() > 1 {
            let len = nodes.len();
            let mut rest = nodes.into_iter();
            nodes = pieces(len).map(|piece| inner_of(rest.by_ref().take(piece.len()))).collect();
        }

        Order { root: nodes.pop().unwrap_or(Node::Leaf(Vec::new())), len: places.len() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number of places at the front for which `holds` is true; it must be false for all behind
    /// them.
    pub(super) fn partition_point(&self, holds: impl Fn(Place) -> bool) -> usize {
        let mut rank = 0;
        let mut node = &self.root;

        loop {
            match node {
                Node::Leaf(places) => return rank + places.partition_point(|place| holds(*place)),
                Node::Inner(inner) => match inner.last_where(&holds) {
                    Some((child, before)) => {
                        rank += before;
                        node = child;
                    }
                    None => return rank,
                },
            }
        }
    }

    /// The places of one leaf, from the one at `rank` on, and the places of it before that one.
    pub(super) fn leaf_at(&self, rank: usize) -> Option<(&[Place], usize)> {
        if rank >= self.len {
            return None;
        }
        let mut rank = rank;
        let mut node = &self.root;

        loop {
            match node {
                Node::Leaf(places) => return Some((places, rank)),
                Node::Inner(inner) => {
                    let (at, within) = inner.child_with(rank);
                    node = inner.node(at);
                    rank = within;
                }
            }
        }
    }

    pub(super) fn get(&self, rank: usize) -> Option<Place> {
        self.leaf_at(rank).map(|(places, at)| places[at])
    }

    /// Gives the place at `rank` another slot, for a member that moved.
    pub(super) fn set_slot(&mut self, rank: usize, slot: u32) {
        assert!(rank < self.len, "a rank of the order");
        self.root.set_slot(rank, slot);
    }

    /// Inserts a place before the one that stands at `rank`, at most [`Order::len`].
    pub(super) fn insert(&mut self, rank: usize, place: Place) {
        assert!(rank <= self.len, "a rank of the order");

        if let Some(right) = self.root.insert(rank, place, true) {
            let left = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
            self.root = inner_of([left, right]);
        }
        self.len += 1;
    }

    /// Removes the place at `rank`, which must be below [`Order::len`].
    pub(super) fn remove(&mut self, rank: usize) -> Place {
        assert!(rank < self.len, "a rank of the order");
        let place = self.root.remove(rank);
        self.len -= 1;

        while let Node::Inner(inner) = &mut self.root
            && inner.len() < 2
        {
            let only = if inner.len() == 1 { inner.remove(0) } else { Node::Leaf(Vec::new()) };
            self.root = only;
        }

        place
    }
}

impl Node {
    pub(super) fn low(&self) -> Option<Place> {
        match self {
            Node::Leaf(places) => places.first().copied(),
            Node::Inner(inner) => inner.low(),
        }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Node::Leaf(places) => places.len(),
            Node::Inner(inner) => inner.count(),
        }
    }

    /// Inserts a place, and returns the right half of the node if it had to be split. `last` says
    /// that nothing in the tree stands behind this node.
    fn insert(&mut self, rank: usize, place: Place, last: bool) -> Option<Node> {
        match self {
            Node::Leaf(places) => insert_into_leaf(places, rank, place, last).map(Node::Leaf),
            Node::Inner(inner) => {
                let (at, rank) = inner.child_for(rank);
                let last = last && at + 1 == inner.len();
                let right = inner.change(at, 1, |node| node.insert(rank, place, last))?;

                inner.recount(at);
                inner.insert(at + 1, right);
                let half = inner.len() / 2;
                (inner.len() > INNER_MAX).then(|| Node::Inner(inner.split_off(half)))
            }
        }
    }

    fn remove(&mut self, rank: usize) -> Place {
        match self {
            Node::Leaf(places) => places.remove(rank),
            Node::Inner(inner) => {
                let (at, rank) = inner.child_with(rank);
                let place = inner.change(at, -1, |node| node.remove(rank));

                if inner.node(at).low().is_none() {
                    inner.remove(at);
                } else if inner.node(at).is_thin() {
                    join(inner, at);
                }
                place
            }
        }
    }

    fn set_slot(&mut self, rank: usize, slot: u32) {
        match self {
            Node::Leaf(places) => places[rank].slot = slot,
            Node::Inner(inner) => {
                let (at, rank) = inner.child_with(rank);
                inner.change(at, 0, |node| node.set_slot(rank, slot));
            }
        }
    }

    /// Whether the node is filled to less than a quarter.
    fn is_thin(&self) -> bool {
        match self {
            Node::Leaf(places) => places.len() < LEAF_MAX / 4,
            Node::Inner(inner) => inner.len() < INNER_MAX / 4,
        }
    }

    /// Takes over what the right neighbour holds, and returns half of all where it is too much for
    /// one node. Not filled to the brim, or the next insert would split the node again.
    fn absorb(&mut self, right: Node) -> Option<Node> {
        match (self, right) {
            (Node::Leaf(left), Node::Leaf(right)) => {
                left.extend(right);
                let half = left.len() / 2;
                let rest = (left.len() > LEAF_MAX / 4 * 3).then(|| left.split_off(half));

                left.shrink_to(LEAF_MAX);
                rest.map(Node::Leaf)
            }
            (Node::Inner(left), Node::Inner(right)) => {
                left.append(right);
                let half = left.len() / 2;
                (left.len() > INNER_MAX / 4 * 3).then(|| Node::Inner(left.split_off(half)))
            }
            _ => unreachable!("all leaves of the tree have one depth"),
        }
    }
}

/// A node of some children, none of them empty.
fn inner_of(nodes: impl IntoIterator<Item = Node>) -> Node {
    let mut inner = Inner::default();
    for node in nodes {
        inner.push(node);
    }

    Node::Inner(inner)
}

fn insert_into_leaf(
    places: &mut Vec<Place>,
    rank: usize,
    place: Place,
    last: bool,
) -> Option<Vec<Place>> {
    if places.len() < LEAF_MAX {
        places.insert(rank, place);
        return None;
    }

    // Scores that only grow, such as times, would leave every leaf half full: at the very end a new
    // leaf begins.
    let mut right =
        if last && rank == places.len() { Vec::new() } else { places.split_off(LEAF_MAX / 2) };
    match rank.checked_sub(places.len()) {
        Some(at) => right.insert(at, place),
        None => places.insert(rank, place),
    }

    Some(right)
}

/// Joins a thin child with a neighbour.
fn join(inner: &mut Inner, at: usize) {
    let left = at.saturating_sub(1);
    if left + 1 >= inner.len() {
        return;
    }

    let right = inner.remove(left + 1);
    let rest = inner.change(left, 0, |node| node.absorb(right));
    inner.recount(left);
    if let Some(rest) = rest {
        inner.insert(left + 1, rest);
    }
}

/// Ranges that cut `len` things into pieces of about [`FILL`].
fn pieces(len: usize) -> impl Iterator<Item = Range<usize>> {
    let count = len.div_ceil(FILL);

    (0..count).map(move |piece| len * piece / count..len * (piece + 1) / count)
}

#[cfg(test)]
mod tests {
    use super::{INNER_MAX, LEAF_MAX, Node, Order, Place};
    use proptest::prelude::*;

    fn place(score: u64) -> Place {
        Place { score, slot: 7 }
    }

    fn all(order: &Order) -> Vec<u64> {
        (0..order.len()).map(|rank| order.get(rank).unwrap().score).collect()
    }

    /// Checks sizes, counts and first places of every node; returns the depth.
    fn check(node: &Node, is_root: bool) -> usize {
        match node {
            Node::Leaf(places) => {
                assert!(places.len() <= LEAF_MAX);
                0
            }
            Node::Inner(inner) => {
                assert!(inner.len() <= INNER_MAX);
                assert!(!is_root || inner.len() > 1, "a root of one child");
                inner.check();

                let nodes = (0..inner.len()).map(|at| inner.node(at));
                let depths: Vec<usize> = nodes.map(|node| check(node, false)).collect();
                assert!(depths.iter().all(|depth| *depth == depths[0]), "one depth");

                depths[0] + 1
            }
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Insert(u64),
        Remove(usize),
        Move(usize, u32),
        /// Many removals in a row, so that nodes are joined.
        Drain(usize, usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            12 => (0u64..5000).prop_map(Step::Insert),
            3 => any::<usize>().prop_map(Step::Remove),
            1 => (any::<usize>(), any::<u32>()).prop_map(|(at, slot)| Step::Move(at, slot)),
            1 => (any::<usize>(), 0usize..200).prop_map(|(at, len)| Step::Drain(at, len)),
        ];

        prop::collection::vec(step, 0..1500)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn the_tree_is_a_sorted_vector(start in 0usize..6000, steps in steps()) {
            let mut model: Vec<u64> = (0..start as u64).map(|score| score / 2).collect();
            let places: Vec<Place> = model.iter().map(|score| place(*score)).collect();
            let mut order = Order::from_sorted(&places);
            check(&order.root, true);

            for step in steps {
                match step {
                    Step::Insert(score) => {
                        let rank = order.partition_point(|place| place.score < score);
                        prop_assert_eq!(rank, model.partition_point(|known| *known < score));
                        order.insert(rank, place(score));
                        model.insert(rank, score);
                    }
                    Step::Remove(at) if !model.is_empty() => {
                        let at = at % model.len();
                        prop_assert_eq!(order.remove(at).score, model.remove(at));
                    }
                    Step::Drain(at, len) if !model.is_empty() => {
                        let at = at % model.len();
                        for _ in 0..len.min(model.len() - at) {
                            prop_assert_eq!(order.remove(at).score, model.remove(at));
                        }
                    }
                    Step::Move(at, slot) if !model.is_empty() => {
                        let at = at % model.len();
                        order.set_slot(at, slot);
                        prop_assert_eq!(order.get(at), Some(Place { score: model[at], slot }));
                    }
                    Step::Remove(_) | Step::Move(..) | Step::Drain(..) => {}
                }
            }

            check(&order.root, true);
            prop_assert_eq!(all(&order), model);
        }
    }

    #[test]
    fn growing_scores_fill_the_leaves() {
        let mut order = Order::new();
        for score in 0..10_000 {
            order.insert(order.len(), place(score));
        }

        let depth = check(&order.root, true);
        assert_eq!(
            depth, 2,
            "10,000 places need 157 full leaves, and these two inner nodes and a root"
        );
        assert_eq!(order.leaf_at(0).unwrap().0.len(), LEAF_MAX);
    }

    #[test]
    fn a_tree_that_shrinks_loses_its_levels() {
        let places: Vec<Place> = (0..100_000).map(place).collect();
        let mut order = Order::from_sorted(&places);
        assert_eq!(check(&order.root, true), 3);

        // From the inside out, which leaves thin nodes on either side.
        while order.len() > 10 {
            order.remove(order.len() / 2);
        }

        assert!(check(&order.root, true) <= 1);
        assert_eq!(all(&order), [0, 1, 2, 3, 4, 99_995, 99_996, 99_997, 99_998, 99_999]);
    }
}

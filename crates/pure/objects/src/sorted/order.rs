//! The order of a sorted set: a B+ tree whose inner nodes count what lies below them.
//!
//! It is a sequence of places that are kept in order by the caller. Each node knows the first place
//! and the number of places of each child, so that finding a place, its rank, the place at a rank,
//! inserting and removing take O(log n). A place is the sortable bits of a score, and the slot that
//! holds the member. The tree compares no members: the caller hands over a predicate.

use std::ops::Range;

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
enum Node {
    Leaf(Vec<Place>),
    Inner(Vec<Child>),
}

#[derive(Clone, Debug)]
struct Child {
    /// The first place below.
    low: Place,
    /// The number of places below.
    count: usize,
    node: Node,
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
            let mut rest = nodes.into_iter().map(Child::of);
            let sizes: Vec<usize> = pieces(rest.len()).map(|piece| piece.len()).collect();
            nodes = sizes
                .into_iter()
                .map(|size| Node::Inner(rest.by_ref().take(size).collect()))
                .collect();
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
                Node::Inner(children) => {
                    let after = children.partition_point(|child| holds(child.low));
                    let Some(at) = after.checked_sub(1) else { return rank };

                    rank += children[..at].iter().map(|child| child.count).sum::<usize>();
                    node = &children[at].node;
                }
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
                Node::Inner(children) => {
                    let at = child_with(children, &mut rank);
                    node = &children[at].node;
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
        let mut rank = rank;
        let mut node = &mut self.root;

        loop {
            match node {
                Node::Leaf(places) => {
                    places[rank].slot = slot;
                    return;
                }
                Node::Inner(children) => {
                    let at = child_with(children, &mut rank);
                    let child = &mut children[at];
                    // The first place of a child is known to its parents too.
                    if rank == 0 {
                        child.low.slot = slot;
                    }
                    node = &mut child.node;
                }
            }
        }
    }

    /// Inserts a place before the one that stands at `rank`, at most [`Order::len`].
    pub(super) fn insert(&mut self, rank: usize, place: Place) {
        assert!(rank <= self.len, "a rank of the order");

        if let Some(right) = self.root.insert(rank, place, true) {
            let left = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
            self.root = Node::Inner(vec![Child::of(left), Child::of(right)]);
        }
        self.len += 1;
    }

    /// Removes the place at `rank`, which must be below [`Order::len`].
    pub(super) fn remove(&mut self, rank: usize) -> Place {
        assert!(rank < self.len, "a rank of the order");
        let place = self.root.remove(rank);
        self.len -= 1;

        while let Node::Inner(children) = &mut self.root {
            if children.len() > 1 {
                break;
            }
            self.root = children.pop().map_or(Node::Leaf(Vec::new()), |child| child.node);
        }

        place
    }
}

impl Node {
    fn low(&self) -> Option<Place> {
        match self {
            Node::Leaf(places) => places.first().copied(),
            Node::Inner(children) => children.first().map(|child| child.low),
        }
    }

    fn count(&self) -> usize {
        match self {
            Node::Leaf(places) => places.len(),
            Node::Inner(children) => children.iter().map(|child| child.count).sum(),
        }
    }

    /// Inserts a place, and returns the right half of the node if it had to be split. `last` says
    /// that nothing in the tree stands behind this node.
    fn insert(&mut self, rank: usize, place: Place, last: bool) -> Option<Node> {
        match self {
            Node::Leaf(places) => insert_into_leaf(places, rank, place, last).map(Node::Leaf),
            Node::Inner(children) => {
                let mut rank = rank;
                let at = child_for(children, &mut rank);
                let last = last && at + 1 == children.len();
                let child = &mut children[at];

                let Some(right) = child.node.insert(rank, place, last) else {
                    child.count += 1;
                    child.low = child.node.low().unwrap_or(place);
                    return None;
                };
                child.refresh();
                children.insert(at + 1, Child::of(right));

                (children.len() > INNER_MAX)
                    .then(|| Node::Inner(children.split_off(children.len() / 2)))
            }
        }
    }

    fn remove(&mut self, rank: usize) -> Place {
        match self {
            Node::Leaf(places) => places.remove(rank),
            Node::Inner(children) => {
                let mut rank = rank;
                let at = child_with(children, &mut rank);
                let child = &mut children[at];
                let place = child.node.remove(rank);
                child.count -= 1;

                match child.node.low() {
                    None => drop(children.remove(at)),
                    Some(low) => {
                        child.low = low;
                        if child.node.is_thin() {
                            join(children, at);
                        }
                    }
                }
                place
            }
        }
    }

    /// Whether the node is filled to less than a quarter.
    fn is_thin(&self) -> bool {
        match self {
            Node::Leaf(places) => places.len() < LEAF_MAX / 4,
            Node::Inner(children) => children.len() < INNER_MAX / 4,
        }
    }

    /// Takes over the entries of the right neighbour, and returns half of all where they are too
    /// many for one node.
    fn absorb(&mut self, right: Node) -> Option<Node> {
        match (self, right) {
            (Node::Leaf(left), Node::Leaf(right)) => absorb(left, right, LEAF_MAX).map(Node::Leaf),
            (Node::Inner(left), Node::Inner(right)) => {
                absorb(left, right, INNER_MAX).map(Node::Inner)
            }
            _ => unreachable!("all leaves of the tree have one depth"),
        }
    }
}

impl Child {
    /// A child for a node that is not empty.
    fn of(node: Node) -> Child {
        let mut child = Child { low: Place { score: 0, slot: 0 }, count: 0, node };
        child.refresh();

        child
    }

    fn refresh(&mut self) {
        self.low = self.node.low().expect("no child is empty");
        self.count = self.node.count();
    }
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
fn join(children: &mut Vec<Child>, at: usize) {
    let left = at.saturating_sub(1);
    if left + 1 >= children.len() {
        return;
    }

    let right = children.remove(left + 1);
    let rest = children[left].node.absorb(right.node);
    children[left].refresh();
    if let Some(rest) = rest {
        children.insert(left + 1, Child::of(rest));
    }
}

fn absorb<T>(left: &mut Vec<T>, right: Vec<T>, len_max: usize) -> Option<Vec<T>> {
    left.extend(right);
    // Not filled to the brim, or the next insert would split the node again.
    if left.len() <= len_max * 3 / 4 {
        return None;
    }
    let right = left.split_off(left.len() / 2);
    left.shrink_to(len_max);

    Some(right)
}

/// The child that holds the place at `rank`, which becomes the rank within it.
fn child_with(children: &[Child], rank: &mut usize) -> usize {
    let mut at = 0;
    while *rank >= children[at].count {
        *rank -= children[at].count;
        at += 1;
    }

    at
}

/// The child in which to insert at `rank`: at the end of one rather than at the beginning of the
/// next.
fn child_for(children: &[Child], rank: &mut usize) -> usize {
    let mut at = 0;
    while *rank > children[at].count {
        *rank -= children[at].count;
        at += 1;
    }

    at
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
            Node::Inner(children) => {
                assert!(children.len() <= INNER_MAX);
                assert!(!is_root || children.len() > 1, "a root of one child");

                let depths: Vec<usize> = children
                    .iter()
                    .map(|child| {
                        assert_eq!(Some(child.low), child.node.low());
                        assert_eq!(child.count, child.node.count());
                        assert!(child.count > 0);
                        check(&child.node, false)
                    })
                    .collect();
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

//! Walks over the members of a range of ranks, in either direction.

use std::ops::Range;

use super::order::Place;
use super::{Collection, Sorted};

/// Members with their scores, as [`Sorted::range`] and [`Sorted::range_back`] return them. Knows
/// its length.
///
/// It finds a leaf of the order by its rank and walks along it, so that k members cost O(log n +
/// k).
#[derive(Debug, Clone)]
pub struct Members<'a> {
    sorted: &'a Sorted,
    /// What is left of the leaf.
    leaf: &'a [Place],
    /// The ranks behind the leaf, or before it on the way back.
    ranks: Range<usize>,
    back: bool,
}

impl<'a> Members<'a> {
    pub(super) fn new(sorted: &'a Sorted, ranks: Range<usize>, back: bool) -> Members<'a> {
        let end = ranks.end.min(sorted.len());

        Members { sorted, leaf: &[], ranks: ranks.start.min(end)..end, back }
    }

    /// Takes as much of the next leaf as lies in the range.
    fn next_leaf(&mut self) -> Option<()> {
        let Range { start, end } = self.ranks;
        if start >= end {
            return None;
        }
        let sought = if self.back { end - 1 } else { start };
        let (places, at) = self.sorted.order.leaf_at(sought)?;

        if self.back {
            let first = (at + 1).saturating_sub(end - start);
            self.leaf = &places[first..=at];
            self.ranks.end -= self.leaf.len();
        } else {
            let last = places.len().min(at + (end - start));
            self.leaf = &places[at..last];
            self.ranks.start += self.leaf.len();
        }
        Some(())
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], f64);

    fn next(&mut self) -> Option<Self::Item> {
        if self.leaf.is_empty() {
            self.next_leaf()?;
        }
        let (place, rest) =
            if self.back { self.leaf.split_last()? } else { self.leaf.split_first()? };
        self.leaf = rest;

        Some(self.sorted.entry(*place))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.leaf.len() + self.ranks.len();

        (len, Some(len))
    }
}

impl ExactSizeIterator for Members<'_> {}

//! Sorted sets: members with scores, in order of score and then of name.
//!
//! ```text
//!   scores   member ─▶ score             a hash map whose entries have indexes, the slots
//!   order    score, slot … in order      a counted tree: ranks and ranges in O(log n)
//! ```
//!
//! On disk the order is nowhere: packed, a set is its members with their scores; wide, a member is
//! a record whose value is the score. The order is built when the set is loaded.

mod inner;
mod iter;
mod order;
mod range;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::ops::Range;

use bytes::Bytes;
use indexmap::IndexMap;

pub use iter::Members;
pub use range::{LexBound, LexRange, ScoreRange};

use crate::limits::RESERVED_ENTRIES_MAX;
use crate::touched::Touched;
use crate::{Blob, Change, Collection, Damaged, cursor, heap_bytes, score, shrunk, varint};
use order::{Order, Place};

/// Bytes of memory for a member, without a name that lies on the heap, as measured with a million:
/// 40 in the entries of the map and some in reserve, 8 in its table, 24 in the order, whose nodes
/// are two thirds full.
const MEMBER_BYTES: usize = 84;
/// Entries and longest member up to which clients see the encoding as `listpack`.
const LISTPACK_ENTRIES_MAX: usize = 128;
const LISTPACK_LEN_MAX: usize = 64;
/// Bytes of a score in a record.
const SCORE_BYTES: usize = 8;

/// Members, each with a score that is any number but NaN.
#[derive(Debug, Clone)]
pub struct Sorted {
    scores: IndexMap<Blob, f64, foldhash::fast::RandomState>,
    /// One place for each entry of `scores`, but while the set is being loaded.
    order: Order,
    packed_len: usize,
    heap_bytes: usize,
    /// Whether it once outgrew what clients know as `listpack`.
    large: bool,
    touched: Touched,
}

impl Default for Sorted {
    fn default() -> Sorted {
        Sorted::new()
    }
}

impl Sorted {
    pub fn new() -> Sorted {
        Sorted {
            scores: IndexMap::default(),
            order: Order::new(),
            packed_len: 0,
            heap_bytes: 0,
            large: false,
            touched: Touched::default(),
        }
    }

    /// A set of members in any order; the last score of a member counts. O(n log n), but faster
    /// than inserts.
    pub fn from_scores(scores: impl IntoIterator<Item = (Blob, f64)>) -> Sorted {
        let mut sorted = Sorted::new();
        for (member, score) in scores {
            sorted.add_unordered(member, score);
        }
        sorted.build_order();

        sorted
    }

    pub fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    pub fn contains(&self, member: &[u8]) -> bool {
        self.scores.contains_key(member)
    }

    /// How many members stand before this one, and its score. O(log n).
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let score = self.score(member)?;

        Some((self.rank_of(score, member), score))
    }

    /// The member at a rank, the lowest first. O(log n).
    pub fn at(&self, rank: usize) -> Option<(&[u8], f64)> {
        self.order.get(rank).map(|place| self.entry(place))
    }

    /// All members in order.
    pub fn iter(&self) -> Members<'_> {
        self.range(0..self.order.len())
    }

    /// The members of a range of ranks, which is cut to those that there are. O(log n + k).
    pub fn range(&self, ranks: Range<usize>) -> Members<'_> {
        Members::new(self, ranks, false)
    }

    /// The same members, the highest first.
    pub fn range_back(&self, ranks: Range<usize>) -> Members<'_> {
        Members::new(self, ranks, true)
    }

    /// The ranks of the members within a range of scores. O(log n).
    pub fn ranks_by_score(&self, range: ScoreRange) -> Range<usize> {
        let from = self.order.partition_point(|place| range.is_below(place.score));
        let to = self.order.partition_point(|place| !range.is_above(place.score));

        from..to.max(from)
    }

    /// The ranks of the members within a range of names, which has a meaning where all scores are
    /// equal. O(log n).
    pub fn ranks_by_name(&self, range: LexRange<'_>) -> Range<usize> {
        let from = self.order.partition_point(|place| range.is_below(self.name(place)));
        let to = self.order.partition_point(|place| !range.is_above(self.name(place)));

        from..to.max(from)
    }

    /// Gives a member a score, which must not be NaN; a negative zero becomes zero. Returns the
    /// former score. O(log n).
    pub fn insert(&mut self, member: &[u8], score: f64) -> Option<f64> {
        assert!(!score.is_nan(), "a score is a number");
        let score = score + 0.0;
        let known = self.scores.get_full(member).map(|(slot, _, former)| (slot, *former));

        let slot = match known {
            Some((_, former)) if former == score => return Some(former),
            Some((slot, former)) => {
                self.order.remove(self.rank_of(former, member));
                self.scores[slot] = score;
                slot
            }
            None => self.add_name(Blob::from_slice(member), score),
        };

        let rank = self.rank_of(score, member);
        self.order.insert(rank, place(score, slot));
        self.touched.touch(member);

        known.map(|(_, former)| former)
    }

    /// Removes a member, and returns its score. O(log n).
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let (rank, score) = self.rank(member)?;
        self.remove_at(rank);

        Some(score)
    }

    /// Removes and returns the member at a rank.
    pub fn pop(&mut self, rank: usize) -> Option<(Blob, f64)> {
        (rank < self.order.len()).then(|| self.remove_at(rank))
    }

    /// Removes the members of a range of ranks, and returns how many these were. O(k log n), and
    /// O(n) at most.
    pub fn remove_range(&mut self, ranks: Range<usize>) -> usize {
        let to = ranks.end.min(self.order.len());
        let count = to.saturating_sub(ranks.start);
        if count < self.order.len() / 8 {
            for rank in (ranks.start..to).rev() {
                self.remove_at(rank);
            }
            return count;
        }

        // Many: what stays is ordered at once.
        let doomed: Vec<Blob> = self.range(ranks).map(|(name, _)| Blob::from_slice(name)).collect();
        self.order = Order::new();
        for name in &doomed {
            self.forget_name(name);
            self.touched.touch(name);
        }
        self.shrink();
        self.build_order();

        count
    }

    /// Visits up to `count` members from a cursor on; all of them, in order, while clients see a
    /// `listpack`. Returns the cursor for the next call, zero at the end.
    pub fn scan<'a>(
        &'a self,
        cursor: u64,
        load: u16,
        count: usize,
        mut visit: impl FnMut(&'a [u8], f64),
    ) -> u64 {
        if !self.large {
            self.iter().for_each(|(name, score)| visit(name, score));
            return 0;
        }
        let start = cursor::position(cursor, load, self.scores.len());
        let end = start.saturating_sub(count);

        for slot in (end..start).rev() {
            if let Some((name, score)) = self.scores.get_index(slot) {
                visit(name, *score);
            }
        }
        cursor::at(end, load)
    }

    /// The encoding that `OBJECT ENCODING` reports.
    pub fn encoding(&self) -> &'static str {
        if self.large { "skiplist" } else { "listpack" }
    }

    /// Where a score and a member stand, or would stand.
    fn rank_of(&self, score: f64, member: &[u8]) -> usize {
        let bits = score::to_bits(score);

        self.order.partition_point(|place| match place.score.cmp(&bits) {
            Ordering::Less => true,
            Ordering::Equal => self.name(place) < member,
            Ordering::Greater => false,
        })
    }

    fn entry(&self, place: Place) -> (&[u8], f64) {
        let slot = place.slot as usize;
        let (name, score) =
            self.scores.get_index(slot).expect("a place names a slot that is taken");

        (name, *score)
    }

    fn name(&self, place: Place) -> &[u8] {
        self.entry(place).0
    }

    fn remove_at(&mut self, rank: usize) -> (Blob, f64) {
        let slot = self.order.get(rank).expect("a rank of the set").slot as usize;
        let last = self.scores.len() - 1;

        // The last entry moves into the slot that becomes free, and its place says so.
        if slot != last {
            let (moved, score) = self.scores.get_index(last).expect("the last entry");
            let moved_rank = self.rank_of(*score, moved);
            self.order.set_slot(moved_rank, slot as u32);
        }
        self.order.remove(rank);

        let (name, score) = self.scores.swap_remove_index(slot).expect("a slot that is taken");
        self.subtract(&name);
        self.touched.touch(&name);
        self.shrink();
        (name, score)
    }

    /// Adds a member that is new, and returns its slot.
    fn add_name(&mut self, member: Blob, score: f64) -> usize {
        self.packed_len += record_len(&member);
        self.heap_bytes += heap_bytes(&member);
        self.large |= member.len() > LISTPACK_LEN_MAX;

        let (slot, _) = self.scores.insert_full(member, score);
        self.large |= slot >= LISTPACK_ENTRIES_MAX;
        slot
    }

    fn forget_name(&mut self, member: &[u8]) {
        if let Some((name, _)) = self.scores.swap_remove_entry(member) {
            self.subtract(&name);
        }
    }

    fn subtract(&mut self, name: &Blob) {
        self.packed_len -= record_len(name);
        self.heap_bytes -= heap_bytes(name);
    }

    fn shrink(&mut self) {
        if let Some(capacity) = shrunk(self.scores.len(), self.scores.capacity()) {
            self.scores.shrink_to(capacity);
        }
    }

    /// Adds a member whose place follows with [`Sorted::build_order`]. Returns whether it is new.
    fn add_unordered(&mut self, member: Blob, score: f64) -> bool {
        if let Some(known) = self.scores.get_mut(&member) {
            *known = score + 0.0;
            return false;
        }
        self.add_name(member, score + 0.0);

        true
    }

    fn build_order(&mut self) {
        let slots = self.scores.values().enumerate();
        let mut places: Vec<Place> = slots.map(|(slot, score)| place(*score, slot)).collect();

        places.sort_unstable_by(|left, right| {
            let by_name = || self.name(*left).cmp(self.name(*right));
            left.score.cmp(&right.score).then_with(by_name)
        });
        self.order = Order::from_sorted(&places);
    }
}

impl Collection for Sorted {
    fn len(&self) -> usize {
        self.scores.len()
    }

    fn weight(&self) -> usize {
        size_of::<Sorted>() + self.scores.len() * MEMBER_BYTES + self.heap_bytes
    }

    fn packed_len(&self) -> usize {
        self.packed_len
    }

    fn pack(&self, packed: &mut Vec<u8>) {
        for (name, score) in self.iter() {
            varint::write_blob(name, packed);
            packed.extend_from_slice(&score::to_bytes(score));
        }
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (Bytes, Bytes)> + '_> {
        Box::new(
            self.scores
                .iter()
                .map(|(name, score)| (Bytes::copy_from_slice(name), score_record(*score))),
        )
    }

    fn track(&mut self) {
        // A set that is being loaded has no order yet.
        if self.order.len() < self.scores.len() {
            self.build_order();
        }
        self.touched.track();
    }

    fn untrack(&mut self) {
        self.touched.untrack();
    }

    fn take_changes(&mut self) -> Vec<Change> {
        let touched = self.touched.take().into_iter();

        let change = |name: Blob| Change {
            value: self.scores.get(&name).map(|score| score_record(*score)),
            sub: Bytes::copy_from_slice(&name),
        };
        touched.map(change).collect()
    }

    fn unpack(packed: &[u8]) -> Result<Sorted, Damaged> {
        let mut sorted = Sorted::new();
        let mut rest = packed;

        while !rest.is_empty() {
            let name = varint::read_blob(&mut rest)?;
            let (score, behind) =
                rest.split_at_checked(SCORE_BYTES).ok_or(Damaged("a score is cut off"))?;
            sorted.add_entry(name, score)?;
            rest = behind;
        }
        sorted.build_order();
        Ok(sorted)
    }

    fn begin(_meta: &[u8], count: usize) -> Result<Sorted, Damaged> {
        let mut sorted = Sorted::new();
        sorted.scores.reserve(count.min(RESERVED_ENTRIES_MAX));

        Ok(sorted)
    }

    fn add_entry(&mut self, sub: &[u8], value: &[u8]) -> Result<(), Damaged> {
        let score = score::from_bytes(value).ok_or(Damaged("a score is no number"))?;
        if !self.add_unordered(Blob::from_slice(sub), score) {
            return Err(Damaged("a member of a sorted set is there twice"));
        }

        Ok(())
    }
}

fn place(score: f64, slot: usize) -> Place {
    let slot = u32::try_from(slot).expect("an object has fewer than 2^32 entries");

    Place { score: score::to_bits(score), slot }
}

/// Bytes of a member in the packed form.
fn record_len(member: &[u8]) -> usize {
    varint::blob_len(member) + SCORE_BYTES
}

fn score_record(score: f64) -> Bytes {
    Bytes::copy_from_slice(&score::to_bytes(score))
}

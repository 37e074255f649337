//! Tiles: up to 128 neighbouring cells of one key, packed, and summed as they lie.
//!
//! ```text
//!  byte 0          1 … 16                17 …
//! ┌───────────────┬─────────────────────┬─────────────────────────────┐
//! │ version│width │ which cells exist   │ their values, first to last │
//! └───────────────┴─────────────────────┴─────────────────────────────┘
//!   4 bits  4 bits  128 bits, little end   1, 2, 4 or 8 bytes each, signed, little end
//! ```
//!
//! A *day tile* holds the 96 quarter hours and 24 hours of one day. A *span tile* holds the counts
//! of 128 days. What lies on disk, in memory and under a sum is the same bytes: nothing is decoded
//! to answer a range, a sum is two population counts and an addition of neighbouring numbers.
//!
//! A cell that overflowed 64 bits holds [`OVERFLOWED`] for ever after, and every range over it is
//! an error.

pub mod id;

use crate::code::{Code, Refusal};
use crate::plan::Run;
use smallvec::SmallVec;

/// Version of the layout, in the high four bits of the first byte.
const VERSION: u8 = 1;
const HEADER_LEN: usize = 17;
/// A tile of up to 23 small counts lies where its owner lies, without a place of its own on the
/// heap.
const INLINE_LEN: usize = 40;
/// Cells in a tile.
pub const TILE_CELLS: u32 = 128;
/// The value that marks a cell whose count no longer fits 64 bits.
pub const OVERFLOWED: i64 = i64::MIN;

/// A count that does not fit 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the count does not fit 64 bits: ask for a shorter range")]
pub struct Overflow;

impl From<Overflow> for Refusal {
    fn from(overflow: Overflow) -> Self {
        Self::new(Code::Overflow, overflow.to_string())
    }
}

/// Bytes that are not a tile of a version this program knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("a tile of {0} bytes is shorter than its header says")]
    Truncated(usize),
    #[error(
        "a tile has version {0}; this program reads version {VERSION}: use the program that wrote it"
    )]
    Version(u8),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// As on disk.
    bytes: SmallVec<[u8; INLINE_LEN]>,
}

impl Default for Tile {
    fn default() -> Self {
        let mut bytes = SmallVec::from_elem(0, HEADER_LEN);
        bytes[0] = VERSION << 4;
        Self { bytes }
    }
}

impl Tile {
    /// Takes bytes that were written by [`as_bytes`](Self::as_bytes).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() < HEADER_LEN {
            return Err(Error::Truncated(bytes.len()));
        }
        if bytes[0] >> 4 != VERSION || bytes[0] & 0xf > 3 {
            return Err(Error::Version(bytes[0] >> 4));
        }
        let tile = Self { bytes: SmallVec::from_slice(bytes) };
        if tile.bytes.len() != HEADER_LEN + tile.len() * tile.width() {
            return Err(Error::Truncated(bytes.len()));
        }
        Ok(tile)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that the tile takes on the heap.
    pub fn heap_len(&self) -> usize {
        if self.bytes.spilled() { self.bytes.capacity() } else { 0 }
    }

    /// Number of cells that exist.
    pub fn len(&self) -> usize {
        self.present().count_ones() as usize
    }

    pub fn is_empty(&self) -> bool {
        self.present() == 0
    }

    /// Sum of the cells in `run` that exist.
    #[inline]
    pub fn sum(&self, run: Run) -> Result<i128, Overflow> {
        let present = self.present();
        let below_first = mask_below(run.first);
        let first = (present & below_first).count_ones() as usize;
        let len = (present & mask_below(run.end) & !below_first).count_ones() as usize;
        if len == 0 {
            return Ok(0);
        }

        let width = self.width();
        let values = &self.bytes[HEADER_LEN + first * width..HEADER_LEN + (first + len) * width];
        Ok(i128::from(match width {
            1 => values.iter().map(|byte| i64::from(*byte as i8)).sum::<i64>(),
            2 => chunks::<2>(values).map(|chunk| i64::from(i16::from_le_bytes(chunk))).sum(),
            4 => chunks::<4>(values).map(|chunk| i64::from(i32::from_le_bytes(chunk))).sum(),
            _ => return sum_wide(values),
        }))
    }

    /// Whether any cell in `run` exists.
    pub fn has_any(&self, run: Run) -> bool {
        self.present() & mask_below(run.end) & !mask_below(run.first) != 0
    }

    /// The cells that exist, first to last. An overflowed one is an error.
    pub fn cells(&self) -> impl Iterator<Item = (u8, Result<i64, Overflow>)> + '_ {
        let mut left = self.present();
        (0..self.len()).map(move |index| {
            let cell = left.trailing_zeros() as u8;
            left &= left - 1;
            let value = self.value_at(index);
            (cell, if value == OVERFLOWED { Err(Overflow) } else { Ok(value) })
        })
    }

    /// Adds to a cell, which exists from then on. A cell that cannot hold the sum is marked
    /// overflowed.
    pub fn add(&mut self, cell: u8, delta: i64) {
        let before = self.raw(cell).unwrap_or(0);
        let after = if before == OVERFLOWED {
            OVERFLOWED
        } else {
            before.checked_add(delta).unwrap_or(OVERFLOWED)
        };
        self.put(cell, after);
    }

    /// Sets a cell to a count that was computed elsewhere.
    pub fn set(&mut self, cell: u8, count: i64) {
        self.put(cell, count);
    }

    /// Forgets the cells in `run`.
    pub fn remove(&mut self, run: Run) {
        let kept: Vec<(u8, i64)> = self
            .cells()
            .map(|(cell, value)| (cell, value.unwrap_or(OVERFLOWED)))
            .filter(|(cell, _)| !(run.first..run.end).contains(cell))
            .collect();
        *self = Self::default();
        for (cell, value) in kept {
            self.put(cell, value);
        }
    }

    fn present(&self) -> u128 {
        let mut bits = [0; 16];
        bits.copy_from_slice(&self.bytes[1..HEADER_LEN]);
        u128::from_le_bytes(bits)
    }

    fn width(&self) -> usize {
        1 << (self.bytes[0] & 0xf)
    }

    /// The stored value of a cell; `None` when the cell does not exist.
    fn raw(&self, cell: u8) -> Option<i64> {
        let present = self.present();
        if present & (1 << cell) == 0 {
            return None;
        }
        Some(self.value_at((present & mask_below(cell)).count_ones() as usize))
    }

    fn value_at(&self, index: usize) -> i64 {
        let width = self.width();
        let at = HEADER_LEN + index * width;
        read(&self.bytes[at..at + width])
    }

    fn put(&mut self, cell: u8, value: i64) {
        debug_assert!(u32::from(cell) < TILE_CELLS);
        let width = width_of(value);
        if width > self.width() {
            self.widen(width);
        }

        let width = self.width();
        let present = self.present();
        let index = (present & mask_below(cell)).count_ones() as usize;
        let at = HEADER_LEN + index * width;

        if present & (1 << cell) == 0 {
            self.bytes.insert_from_slice(at, &[0; 8][..width]);
            self.bytes[1..HEADER_LEN].copy_from_slice(&(present | 1 << cell).to_le_bytes());
        }

        self.bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }

    fn widen(&mut self, width: usize) {
        let values: Vec<i64> = (0..self.len()).map(|index| self.value_at(index)).collect();
        self.bytes.truncate(HEADER_LEN);
        self.bytes[0] = VERSION << 4 | width.trailing_zeros() as u8;
        for value in values {
            self.bytes.extend_from_slice(&value.to_le_bytes()[..width]);
        }
    }
}

/// Bits of all cells below `cell`, which may be 128 or less.
const fn mask_below(cell: u8) -> u128 {
    if cell as u32 >= TILE_CELLS { u128::MAX } else { (1 << cell) - 1 }
}

fn width_of(value: i64) -> usize {
    if i8::try_from(value).is_ok() {
        1
    } else if i16::try_from(value).is_ok() {
        2
    } else if i32::try_from(value).is_ok() {
        4
    } else {
        8
    }
}

fn chunks<const N: usize>(values: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    values.as_chunks::<N>().0.iter().copied()
}

fn sum_wide(values: &[u8]) -> Result<i128, Overflow> {
    let mut sum = 0;
    for value in chunks::<8>(values).map(i64::from_le_bytes) {
        if value == OVERFLOWED {
            return Err(Overflow);
        }
        sum += i128::from(value);
    }
    Ok(sum)
}

fn read(bytes: &[u8]) -> i64 {
    match *bytes {
        [a] => i64::from(a as i8),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => {
            let mut wide = [0; 8];
            wide.copy_from_slice(bytes);
            i64::from_le_bytes(wide)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_tile_is_as_small_as_its_largest_value() {
        let mut tile = Tile::default();
        tile.add(3, 1);
        tile.add(100, -128);
        assert_eq!(tile.as_bytes().len(), HEADER_LEN + 2);
        tile.add(3, 127);
        assert_eq!(tile.as_bytes().len(), HEADER_LEN + 4);
        tile.add(127, i64::MAX);
        assert_eq!(tile.as_bytes().len(), HEADER_LEN + 24);
    }

    #[test]
    fn overflow_is_an_error_and_stays_one() {
        let mut tile = Tile::default();
        tile.add(0, i64::MAX);
        tile.add(1, 1);
        assert_eq!(tile.sum(Run { first: 0, end: 2 }), Ok(i128::from(i64::MAX) + 1));
        tile.add(0, 1);
        tile.add(0, -5);
        assert_eq!(tile.sum(Run { first: 0, end: 2 }), Err(Overflow));
        assert_eq!(tile.sum(Run { first: 1, end: 2 }), Ok(1));
        assert_eq!(tile.cells().next(), Some((0, Err(Overflow))));
    }

    /// A tile written by the first version still opens, and reads as it did.
    #[test]
    fn a_tile_of_version_1_still_opens() {
        let bytes = [&[0x11, 0b1001][..], &[0; 15], &[0x39, 0x30, 0xff, 0xff]].concat();
        let tile = Tile::from_bytes(&bytes).unwrap();
        assert_eq!(tile.cells().collect::<Vec<_>>(), [(0, Ok(12_345)), (3, Ok(-1))]);
        assert_eq!(Tile::from_bytes(&bytes[..20]), Err(Error::Truncated(20)));
        assert_eq!(Tile::from_bytes(&[0x21; 17]), Err(Error::Version(2)));
    }

    #[derive(Clone, Debug)]
    enum Change {
        Add(u8, i64),
        Set(u8, i64),
        Remove(u8, u8),
    }

    fn any_count() -> impl Strategy<Value = i64> {
        prop_oneof![-3i64..3, -200i64..200, -40_000i64..40_000, -(1i64 << 40)..(1i64 << 40)]
    }

    fn any_change() -> impl Strategy<Value = Change> {
        prop_oneof![
            8 => (0u8..128, any_count()).prop_map(|(cell, count)| Change::Add(cell, count)),
            3 => (0u8..128, any_count()).prop_map(|(cell, count)| Change::Set(cell, count)),
            1 => (0u8..=128, 0u8..=128).prop_map(|(first, end)| Change::Remove(first, end)),
        ]
    }

    proptest! {
        #[test]
        fn a_tile_agrees_with_a_map(
            changes in proptest::collection::vec(any_change(), 0..200),
            first in 0u8..=128,
            end in 0u8..=128,
        ) {
            let mut tile = Tile::default();
            let mut map = BTreeMap::new();
            for change in changes {
                match change {
                    Change::Add(cell, count) => {
                        tile.add(cell, count);
                        *map.entry(cell).or_insert(0) += count;
                    }
                    Change::Set(cell, count) => {
                        tile.set(cell, count);
                        map.insert(cell, count);
                    }
                    Change::Remove(first, end) => {
                        tile.remove(Run { first, end });
                        map.retain(|cell, _| !(first..end).contains(cell));
                    }
                }
            }
            let cells: Vec<(u8, Result<i64, Overflow>)> =
                map.iter().map(|(cell, count)| (*cell, Ok(*count))).collect();
            prop_assert_eq!(tile.cells().collect::<Vec<_>>(), cells);
            let sum: i64 = map
                .iter()
                .filter(|(cell, _)| (first..end).contains(*cell))
                .map(|(_, count)| count)
                .sum();
            prop_assert_eq!(tile.sum(Run { first, end }), Ok(i128::from(sum)));
            prop_assert_eq!(Tile::from_bytes(tile.as_bytes()), Ok(tile));
        }

        #[test]
        fn any_bytes_are_a_tile_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
            head in 0x10u8..0x14,
        ) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = head;
            }
            if let Ok(tile) = Tile::from_bytes(&bytes) {
                let _ = (tile.sum(Run { first: 0, end: 128 }), tile.cells().count());
            }
        }
    }
}

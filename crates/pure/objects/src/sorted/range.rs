//! Ranges of scores and of names.

use std::ops::Bound;

use crate::score;

/// Scores from a lowest to a highest, either of them in the range or just outside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreRange {
    pub min: Bound<f64>,
    pub max: Bound<f64>,
}

impl ScoreRange {
    /// Whether a score, as bits that sort, lies below the range.
    pub(super) fn is_below(&self, bits: u64) -> bool {
        match self.min {
            Bound::Unbounded => false,
            Bound::Included(min) => bits < score::to_bits(min),
            Bound::Excluded(min) => bits <= score::to_bits(min),
        }
    }

    /// Whether a score, as bits that sort, lies above the range.
    pub(super) fn is_above(&self, bits: u64) -> bool {
        match self.max {
            Bound::Unbounded => false,
            Bound::Included(max) => bits > score::to_bits(max),
            Bound::Excluded(max) => bits >= score::to_bits(max),
        }
    }
}

/// An end of a range of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// Before every name.
    Lowest,
    Included(&'a [u8]),
    Excluded(&'a [u8]),
    /// Behind every name.
    Highest,
}

/// Names from a first to a last, compared byte by byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LexRange<'a> {
    pub min: LexBound<'a>,
    pub max: LexBound<'a>,
}

impl LexRange<'_> {
    pub(super) fn is_below(&self, name: &[u8]) -> bool {
        match self.min {
            LexBound::Lowest => false,
            LexBound::Included(min) => name < min,
            LexBound::Excluded(min) => name <= min,
            LexBound::Highest => true,
        }
    }

    pub(super) fn is_above(&self, name: &[u8]) -> bool {
        match self.max {
            LexBound::Lowest => true,
            LexBound::Included(max) => name > max,
            LexBound::Excluded(max) => name >= max,
            LexBound::Highest => false,
        }
    }
}

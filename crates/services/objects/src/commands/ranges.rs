//! Ranges as commands write them: of positions, scores and names, and how much of them to take.

use std::ops::{Bound, Range};

use raingauge_resp::{Arguments, Failure};
use raingauge_values::sorted::{LexBound, LexRange, ScoreRange};

/// The positions from `start` to `stop`, both of them within the range. A negative one counts from
/// the end.
pub(super) fn positions(start: i64, stop: i64, len: usize) -> Range<usize> {
    let from_end = |index: i64| index.checked_add_unsigned(len as u64).filter(|index| *index >= 0);

    let first = if start < 0 { from_end(start).unwrap_or(0) } else { start };
    let last = if stop < 0 { from_end(stop) } else { Some(stop) };
    let start = usize::try_from(first).unwrap_or(len).min(len);
    let end =
        last.map_or(0, |last| usize::try_from(last).unwrap_or(len).saturating_add(1).min(len));

    start.min(end)..end
}

/// The same for a walk from the end, whose positions are counted from there.
pub(super) fn positions_back(start: i64, stop: i64, len: usize) -> Range<usize> {
    let counted = positions(start, stop, len);

    len - counted.end..len - counted.start
}

/// The bytes or bits of a string from `start` to `end`, both of them within the range. A negative
/// one counts from the end, and one before the first is the first.
pub(super) fn clamped(start: i64, end: i64, len: usize) -> Range<usize> {
    let position = |index: i64| {
        let index = if index < 0 { index.saturating_add_unsigned(len as u64) } else { index };
        usize::try_from(index.max(0)).unwrap_or(len)
    };
    let end = position(end).saturating_add(1).min(len);

    position(start).min(end)..end
}

/// Whether a range that is counted from the end ends before it starts. It is empty, even where both
/// ends lie before the first position.
pub(super) fn is_reversed(start: i64, end: i64) -> bool {
    start < 0 && end < 0 && start > end
}

/// What `LIMIT offset count` leaves of a range. A negative offset leaves nothing, a negative count
/// everything.
pub(super) fn limited(range: Range<usize>, offset: i64, count: i64, back: bool) -> Range<usize> {
    let len = range.len();
    let skipped = usize::try_from(offset).unwrap_or(len).min(len);
    let taken = usize::try_from(count).unwrap_or(len).min(len - skipped);

    if back {
        let end = range.end - skipped;
        end - taken..end
    } else {
        let start = range.start + skipped;
        start..start + taken
    }
}

/// A range of scores: each end a number, behind a `(` if it does not belong to the range.
pub(super) fn scores(min: &[u8], max: &[u8]) -> Result<ScoreRange, Failure> {
    let end = |text| score_bound(text).ok_or(Failure::text("ERR min or max is not a float"));

    Ok(ScoreRange { min: end(min)?, max: end(max)? })
}

/// A range of names: each end `-`, `+`, or a name behind `[` or `(`.
pub(super) fn names<'a>(min: &'a [u8], max: &'a [u8]) -> Result<LexRange<'a>, Failure> {
    let refused = Failure::text("ERR min or max not valid string range item");
    let end = |text| lex_bound(text).ok_or(refused.clone());

    Ok(LexRange { min: end(min)?, max: end(max)? })
}

/// An integer of at least `min`; a smaller one, or none at all, is refused with a line of the
/// command.
pub(super) fn at_least(
    arguments: Arguments<'_>,
    index: usize,
    min: i64,
    refusal: &'static str,
) -> Result<i64, Failure> {
    let number = arguments.integer(index).ok().filter(|number| *number >= min);

    number.ok_or(Failure::text(refusal))
}

/// A count that may not be negative.
pub(super) fn count(arguments: Arguments<'_>, index: usize) -> Result<usize, Failure> {
    let count = at_least(arguments, index, 0, "ERR value is out of range, must be positive")?;

    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// The number of keys at an index, and the keys behind it, which a word follows: the indexes of the
/// keys, so that the end of the range is that of the word.
pub(super) fn keys_before_word(
    arguments: Arguments<'_>,
    index: usize,
) -> Result<Range<usize>, Failure> {
    let len = at_least(arguments, index, 1, "ERR numkeys should be greater than 0")?;
    let end = usize::try_from(len).ok().and_then(|len| len.checked_add(index + 1));
    let end = end.filter(|end| *end < arguments.len()).ok_or(Failure::Syntax)?;

    Ok(index + 1..end)
}

/// Reads `COUNT n`, or nothing, up to the end of a command that takes from the first of some keys.
pub(super) fn parse_count(arguments: Arguments<'_>, first: usize) -> Result<usize, Failure> {
    if arguments.len() == first {
        return Ok(1);
    }
    if !arguments.is(first, "count") || arguments.len() == first + 1 {
        return Err(Failure::Syntax);
    }
    let count = at_least(arguments, first + 1, 1, "ERR count should be greater than 0")?;
    if arguments.len() > first + 2 {
        return Err(Failure::Syntax);
    }

    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// An integer other than the smallest, which has no positive counterpart.
pub(super) fn symmetric(arguments: Arguments<'_>, index: usize) -> Result<i64, Failure> {
    let refused = "ERR value is out of range, value must between -9223372036854775807 and \
                   9223372036854775807";
    let number = arguments.integer(index)?;

    if number == i64::MIN { Err(Failure::text(refused)) } else { Ok(number) }
}

fn score_bound(text: &[u8]) -> Option<Bound<f64>> {
    match text.strip_prefix(b"(") {
        Some(text) => bound_number(text).map(Bound::Excluded),
        None => bound_number(text).map(Bound::Included),
    }
}

/// A number as the C library reads it: with spaces before it, infinite if it is too large, and zero
/// if it is empty.
fn bound_number(text: &[u8]) -> Option<f64> {
    if text.is_empty() {
        return Some(0.0);
    }
    let number: f64 = std::str::from_utf8(text.trim_ascii_start()).ok()?.parse().ok()?;

    (!number.is_nan()).then_some(number)
}

fn lex_bound(text: &[u8]) -> Option<LexBound<'_>> {
    match text.split_first()? {
        (b'-', []) => Some(LexBound::Lowest),
        (b'+', []) => Some(LexBound::Highest),
        (b'[', name) => Some(LexBound::Included(name)),
        (b'(', name) => Some(LexBound::Excluded(name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use super::{clamped, limited, positions, positions_back, score_bound};

    #[test]
    fn negative_positions_count_from_the_end() {
        assert_eq!(positions(0, -1, 5), 0..5);
        assert_eq!(positions(-2, -1, 5), 3..5);
        assert_eq!(positions(1, 2, 5), 1..3);
        assert_eq!(positions(-100, 100, 5), 0..5);
        assert_eq!(positions(-100, -6, 5), 0..0);
        assert!(positions(3, 1, 5).is_empty());
        assert!(positions(5, 9, 5).is_empty());
        assert!(positions(0, -1, 0).is_empty());
        assert_eq!(positions(i64::MIN, i64::MAX, 5), 0..5);
        assert!(positions(i64::MAX, i64::MIN, 5).is_empty());
    }

    #[test]
    fn walks_back_count_from_the_end() {
        assert_eq!(positions_back(0, 0, 5), 4..5);
        assert_eq!(positions_back(0, -1, 5), 0..5);
        assert_eq!(positions_back(1, 2, 5), 2..4);
        assert!(positions_back(7, 9, 5).is_empty());
    }

    #[test]
    fn positions_before_a_string_are_its_first() {
        assert_eq!(clamped(0, -1, 5), 0..5);
        assert_eq!(clamped(-3, -2, 5), 2..4);
        assert_eq!(clamped(-100, -6, 5), 0..1);
        assert_eq!(clamped(1, 100, 5), 1..5);
        assert_eq!(clamped(i64::MIN, i64::MAX, 5), 0..5);
        assert!(clamped(3, 2, 5).is_empty());
        assert!(clamped(5, 9, 5).is_empty());
        assert!(clamped(0, -1, 0).is_empty());
        assert!(clamped(i64::MAX, i64::MIN, 5).is_empty());
    }

    #[test]
    fn a_limit_skips_and_takes() {
        assert_eq!(limited(2..9, 1, 3, false), 3..6);
        assert_eq!(limited(2..9, 1, 3, true), 5..8);
        assert_eq!(limited(2..9, 0, -1, false), 2..9);
        assert!(limited(2..9, -1, 3, false).is_empty());
        assert!(limited(2..9, 7, 3, true).is_empty());
        assert!(limited(2..9, 0, 0, false).is_empty());
    }

    #[test]
    fn ends_of_scores_read_as_the_c_library_reads_them() {
        assert_eq!(score_bound(b"1.5"), Some(Bound::Included(1.5)));
        assert_eq!(score_bound(b"(-inf"), Some(Bound::Excluded(f64::NEG_INFINITY)));
        assert_eq!(score_bound(b""), Some(Bound::Included(0.0)));
        assert_eq!(score_bound(b" 7"), Some(Bound::Included(7.0)));
        assert_eq!(score_bound(b"1e999"), Some(Bound::Included(f64::INFINITY)));

        for text in ["nan", "7 ", " ", "abc", "((1", "1x"] {
            assert_eq!(score_bound(text.as_bytes()), None, "{text}");
        }
    }
}

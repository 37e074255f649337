//! The longest common subsequence of two strings.

use std::ops::Range;

/// Lengths of the longest common subsequences of all pairs of prefixes of two strings.
///
/// Takes time and four bytes of memory for each pair; callers bound the product of the lengths by
/// [`crate::limits::LCS_CELLS_MAX`].
#[derive(Debug)]
pub struct Table<'a> {
    a: &'a [u8],
    b: &'a [u8],
    cells: Vec<u32>,
}

/// A run of the subsequence that is contiguous in both strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    pub a: Range<usize>,
    pub b: Range<usize>,
}

impl<'a> Table<'a> {
    pub fn new(a: &'a [u8], b: &'a [u8]) -> Table<'a> {
        let width = b.len() + 1;
        let mut cells = vec![0; (a.len() + 1) * width];

        for (row, byte) in a.iter().enumerate() {
            let (done, rest) = cells.split_at_mut((row + 1) * width);
            let above = &done[row * width..];
            let current = &mut rest[..width];
            for (column, other) in b.iter().enumerate() {
                current[column + 1] = if byte == other {
                    above[column] + 1
                } else {
                    above[column + 1].max(current[column])
                };
            }
        }
        Table { a, b, cells }
    }

    /// The length of the longest common subsequence.
    pub fn len(&self) -> usize {
        self.at(self.a.len(), self.b.len()) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The subsequence itself.
    pub fn subsequence(&self) -> Vec<u8> {
        let mut subsequence = Vec::with_capacity(self.len());
        self.walk(|a, _| subsequence.push(self.a[a]));
        subsequence.reverse();
        subsequence
    }

    /// The runs of the subsequence, from the last to the first.
    pub fn matches(&self) -> Vec<Match> {
        let mut matches: Vec<Match> = Vec::new();
        self.walk(|a, b| match matches.last_mut() {
            Some(run) if run.a.start == a + 1 && run.b.start == b + 1 => {
                run.a.start = a;
                run.b.start = b;
            }
            _ => matches.push(Match { a: a..a + 1, b: b..b + 1 }),
        });
        matches
    }

    /// Visits the positions of the subsequence in both strings, from the last to the first.
    fn walk(&self, mut visit: impl FnMut(usize, usize)) {
        let mut a = self.a.len();
        let mut b = self.b.len();
        while a > 0 && b > 0 {
            if self.a[a - 1] == self.b[b - 1] {
                a -= 1;
                b -= 1;
                visit(a, b);
            } else if self.at(a - 1, b) > self.at(a, b - 1) {
                a -= 1;
            } else {
                b -= 1;
            }
        }
    }

    fn at(&self, a: usize, b: usize) -> u32 {
        self.cells[a * (self.b.len() + 1) + b]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_subsequence(part: &[u8], whole: &[u8]) -> bool {
        let mut whole = whole.iter();
        part.iter().all(|byte| whole.any(|other| other == byte))
    }

    /// By its definition, without a table.
    fn longest(a: &[u8], b: &[u8]) -> usize {
        match (a.split_first(), b.split_first()) {
            (Some((x, a_rest)), Some((y, b_rest))) if x == y => 1 + longest(a_rest, b_rest),
            (Some((_, a_rest)), Some((_, b_rest))) => longest(a_rest, b).max(longest(a, b_rest)),
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn it_is_common_and_the_longest(a in "[a-c]{0,8}", b in "[a-c]{0,8}") {
            let (a, b) = (a.as_bytes(), b.as_bytes());
            let table = Table::new(a, b);
            let subsequence = table.subsequence();
            prop_assert!(is_subsequence(&subsequence, a) && is_subsequence(&subsequence, b));
            prop_assert_eq!(subsequence.len(), table.len());
            prop_assert_eq!(table.len(), longest(a, b));

            let mut joined = Vec::new();
            for run in table.matches().iter().rev() {
                prop_assert_eq!(&a[run.a.clone()], &b[run.b.clone()]);
                joined.extend_from_slice(&a[run.a.clone()]);
            }
            prop_assert_eq!(joined, subsequence);
        }
    }

    #[test]
    fn the_known_example() {
        let table = Table::new(b"ohmytext", b"mynewtext");
        assert_eq!(table.subsequence(), b"mytext");
        assert_eq!(table.matches(), [Match { a: 4..8, b: 5..9 }, Match { a: 2..4, b: 0..2 }]);
    }
}

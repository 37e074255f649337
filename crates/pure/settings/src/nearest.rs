//! What the user probably meant by a name that does not exist.

/// Returns the one of `words` that the user probably meant.
pub(crate) fn nearest_word<'a>(asked: &str, words: &[&'a str]) -> Option<&'a str> {
    let best = words.iter().min_by_key(|word| edits(asked, word))?;
    is_near(edits(asked, best), asked).then_some(*best)
}

/// Most letters of a name that are compared; longer than any name here, so that a page of text
/// costs nothing.
const CHARS_MAX: usize = 64;

/// Up to a third of the letters may be wrong; beyond that a suggestion is a guess.
pub(crate) fn is_near(edits: usize, asked: &str) -> bool {
    edits <= (asked.chars().count().min(CHARS_MAX) / 3).max(1)
}

/// Letters to insert, delete, replace, or swap with their neighbour, to come from one word to the
/// other (the "optimal string alignment" distance).
pub(crate) fn edits(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().take(CHARS_MAX).collect();
    let to: Vec<char> = to.chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];

    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }

        rows.push(row);
    }

    rows[from.len()][to.len()]
}

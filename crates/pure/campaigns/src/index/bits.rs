//! Sets of rows as words of 64 bits.

/// Bits of a word.
const WORD: usize = 64;

pub fn words_for(rows: usize) -> usize {
    rows.div_ceil(WORD)
}

pub fn set(words: &mut [u64], row: usize) {
    words[row / WORD] |= 1 << (row % WORD);
}

pub fn flip(words: &mut [u64], row: usize) {
    words[row / WORD] ^= 1 << (row % WORD);
}

/// Keeps the rows that are in both sets.
pub fn keep(words: &mut [u64], allowed: &[u64]) {
    for (word, allowed) in words.iter_mut().zip(allowed) {
        *word &= allowed;
    }
}

/// The rows of a set in ascending order.
pub fn rows(words: &[u64]) -> impl Iterator<Item = usize> {
    words
        .iter()
        .enumerate()
        .flat_map(|(place, word)| crate::tree::ones(*word).map(move |bit| place * WORD + bit))
}

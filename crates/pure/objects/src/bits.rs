//! Bits of strings: the first bit is the highest of the first byte.

use crate::text::Buffer;

/// How `BITOP` combines strings. Shorter ones count as padded with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combination {
    And,
    Or,
    Xor,
    Not,
}

/// The bit at an offset. Bits behind the end are zero.
pub fn get(bytes: &[u8], offset: u64) -> bool {
    let byte = usize::try_from(offset / 8).ok().and_then(|byte| bytes.get(byte));
    byte.is_some_and(|byte| byte & mask(offset) != 0)
}

/// Sets the bit at an offset, and grows the string up to there. Returns the former bit.
pub fn set(buffer: &mut Buffer, offset: u64, bit: bool) -> bool {
    let byte = (offset / 8) as usize;
    if buffer.len() <= byte {
        buffer.resize(byte + 1, 0);
    }
    let former = buffer[byte] & mask(offset) != 0;
    if former != bit {
        buffer[byte] ^= mask(offset);
    }
    former
}

/// Number of ones.
pub fn count(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words: u32 = words.iter().map(|word| u64::from_ne_bytes(*word).count_ones()).sum();
    let in_rest: u32 = rest.iter().map(|byte| byte.count_ones()).sum();
    u64::from(in_words) + u64::from(in_rest)
}

/// Number of ones among the bits from `start` to `end`, the last included, which must exist.
pub fn count_range(bytes: &[u8], start: u64, end: u64) -> u64 {
    let first = (start / 8) as usize;
    let last = (end / 8) as usize;
    let before = u64::from((bytes[first] & !head_mask(start)).count_ones());
    let behind = u64::from((bytes[last] & !tail_mask(end)).count_ones());
    count(&bytes[first..=last]) - before - behind
}

/// The first bit that is one, or zero, from `start` to `end`, the last included, which must exist.
pub fn position(bytes: &[u8], bit: bool, start: u64, end: u64) -> Option<u64> {
    let first = (start / 8) as usize;
    let last = (end / 8) as usize;
    // A byte in which no bit is the one that is looked for.
    let skipped = if bit { 0x00 } else { 0xff };
    let found = |byte: u8| if bit { byte } else { !byte };

    for (index, &byte) in bytes.iter().enumerate().take(last + 1).skip(first) {
        if byte == skipped {
            continue;
        }
        let mut candidates = found(byte);
        if index == first {
            candidates &= head_mask(start);
        }
        if index == last {
            candidates &= tail_mask(end);
        }
        if candidates != 0 {
            return Some(index as u64 * 8 + u64::from(candidates.leading_zeros()));
        }
    }
    None
}

/// Combines strings into one as long as the longest. `Not` takes the first alone.
pub fn combine(combination: Combination, sources: &[&[u8]]) -> Vec<u8> {
    let len = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    let Some((first, others)) = sources.split_first() else {
        return Vec::new();
    };
    let mut combined = Vec::with_capacity(len);
    combined.extend_from_slice(first);
    combined.resize(len, 0);

    for source in others {
        let (shared, rest) = combined.split_at_mut(source.len());
        match combination {
            Combination::And => {
                shared.iter_mut().zip(*source).for_each(|(byte, other)| *byte &= other);
                rest.fill(0);
            }
            Combination::Or => {
                shared.iter_mut().zip(*source).for_each(|(byte, other)| *byte |= other);
            }
            Combination::Xor => {
                shared.iter_mut().zip(*source).for_each(|(byte, other)| *byte ^= other);
            }
            Combination::Not => {}
        }
    }
    if combination == Combination::Not {
        combined.iter_mut().for_each(|byte| *byte = !*byte);
    }
    combined
}

fn mask(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

/// The bits of a byte from an offset on.
fn head_mask(offset: u64) -> u8 {
    0xff >> (offset % 8)
}

/// The bits of a byte up to an offset.
fn tail_mask(offset: u64) -> u8 {
    0xff << (7 - offset % 8)
}

#[cfg(test)]
mod tests;

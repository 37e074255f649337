//! Names of keys, with their bytes and the count of their holders in one place.
//!
//! A name that is compared is about to be shared with a group of effects as well, so both are read
//! from memory together.

use bytes::Bytes;

/// A short name.
struct Short<const LEN_MAX: usize> {
    bytes: [u8; LEN_MAX],
    len: u8,
}

impl<const LEN_MAX: usize> AsRef<[u8]> for Short<LEN_MAX> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

fn short<const LEN_MAX: usize>(name: &[u8]) -> Bytes {
    let mut bytes = [0; LEN_MAX];
    bytes[..name.len()].copy_from_slice(name);
    Bytes::from_owner(Short { bytes, len: name.len() as u8 })
}

/// A copy of a name. With its length and the count of its holders, a short one takes 32, 48, 64 or
/// 96 bytes, which are sizes of the allocator.
pub(super) fn copy_of(name: &[u8]) -> Bytes {
    match name.len() {
        0..=23 => short::<23>(name),
        24..=39 => short::<39>(name),
        40..=55 => short::<55>(name),
        56..=87 => short::<87>(name),
        _ => Bytes::copy_from_slice(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_lengths_are_copied() {
        let long = [b'x'; 300];
        for len in 0..=long.len() {
            assert_eq!(copy_of(&long[..len]), long[..len]);
        }
    }
}

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

/// A copy of a name. The places of short ones are as long as those of the allocator.
pub(super) fn copy_of(name: &[u8]) -> Bytes {
    match name.len() {
        0..=15 => short::<15>(name),
        16..=31 => short::<31>(name),
        32..=47 => short::<47>(name),
        48..=79 => short::<79>(name),
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

//! The hash over the entries of a book, one after the other.

use sha2::{Digest, Sha256};
use std::fmt;

/// A SHA-256 hash that covers every entry so far: that of the previous hash and the next entry. It
/// is the same in all engines, and proves that nothing before it has changed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Chain(pub [u8; 32]);

impl Chain {
    /// The chain behind the entry with this encoding.
    pub fn after(&self, entry: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(entry);
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

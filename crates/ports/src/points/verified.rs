//! What a verification of books finds.

use super::Chain;
use crate::log::Offset;
use std::fmt;

/// Books in which everything is what follows from the entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifiedBooks {
    pub entries: u64,
    /// Records that follow from them, such as wallets, keys, references and sums.
    pub records: u64,
    /// When the last entry was recorded, in milliseconds since 1970.
    pub recorded_ms: i64,
    /// The event log is included up to here.
    pub position: Offset,
    /// The hash over all entries of one book, or over the hashes of several books in their order.
    pub chain: Chain,
    /// Entries that the records lacked, as after a crash; the next start applies them.
    pub behind: u64,
}

/// The first record that is not what follows from the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookDifference {
    /// The record, for people.
    pub record: String,
    /// Its value as it follows from the entries; `None` if it has none.
    pub expected: Option<String>,
    pub found: Option<String>,
}

/// What a verification that read everything has found.
pub type Verified = Result<VerifiedBooks, BookDifference>;

impl fmt::Display for BookDifference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [expected, found] =
            [&self.expected, &self.found].map(|value| value.as_deref().unwrap_or("nothing"));
        let record = &self.record;
        write!(
            out,
            "{record} is not what follows from the journal: expected {expected}, found {found}"
        )
    }
}

//! Consumers of the event log: each reads every entry at its own pace, and commits its results
//! together with its position.
//!
//! Counting is the first consumer, and keeps its checkpoint in the bucket store. The others keep
//! their own records here.

use crate::log::Offset;
use std::fmt;

/// Longest name, in characters.
pub const NAME_LEN_MAX: usize = 32;
/// Longest key of a record, in bytes.
pub const KEY_LEN_MAX: usize = 1_024;

/// The records of consumers could not be read or written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the records of a consumer could not be read or written: {0}")]
pub struct Error(pub String);

/// The name of a consumer: 2 to [`NAME_LEN_MAX`] characters of `a` to `z`, `0` to `9` and `-`,
/// beginning with a letter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// `None` if the text is not a valid name.
    pub fn new(text: &str) -> Option<Self> {
        let is_word = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let is_name = (2..=NAME_LEN_MAX).contains(&text.len())
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.bytes().all(is_word);
        is_name.then(|| Self(text.to_owned()))
    }

    /// The consumer that counts.
    pub fn counting() -> Self {
        Self("counting".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A key and its value, in the consumer's own format.
pub type Record = (Vec<u8>, Vec<u8>);

/// A record to write, or to remove if the value is `None`.
pub type Change = (Vec<u8>, Option<Vec<u8>>);

/// Stores the records and positions of the consumers of one partition of the log. The records of
/// each consumer are separate. A consumer has one caller; several consumers may work at once.
pub trait ConsumerStore: Send + Sync {
    /// Returns the consumers that have committed, with their positions.
    fn positions(&self) -> Result<Vec<(Name, Offset)>, Error>;

    /// The value of a key.
    fn get(&self, consumer: &Name, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    /// Returns the records whose keys begin with `prefix`, in the order of their keys, at most
    /// `len_max` of them: from the first one, or from the one behind the key `after`.
    fn scan(
        &self,
        consumer: &Name,
        prefix: &[u8],
        after: Option<&[u8]>,
        len_max: usize,
    ) -> Result<Vec<Record>, Error>;

    /// Makes changes durable together with the position up to which they include the log,
    /// atomically. Of two changes of one key the later one wins.
    fn commit(&self, consumer: &Name, position: Offset, changes: Vec<Change>) -> Result<(), Error>;

    /// Removes a consumer that no longer runs, with its records and its position.
    fn remove(&self, consumer: &Name) -> Result<(), Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_words() {
        for name in ["counting", "a1", "points-awarding", &"a".repeat(NAME_LEN_MAX)] {
            assert_eq!(Name::new(name).map(|name| name.to_string()).as_deref(), Some(name));
        }
        for text in ["", "a", "1a", "-a", "Ab", "a_b", "a\0b", "ä1", &"a".repeat(NAME_LEN_MAX + 1)]
        {
            assert_eq!(Name::new(text), None, "{text:?}");
        }
        assert_eq!(Name::new("counting"), Some(Name::counting()));
    }
}

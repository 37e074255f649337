//! Consumers of the event log: each reads every entry at its own pace, and commits what it makes of
//! them together with its position.
//!
//! Counting is the first consumer, and the bucket store is where it keeps its checkpoint. Further
//! ones keep records of their own here.

use crate::log::Offset;
use std::fmt;

/// Most characters of a name.
pub const NAME_LEN_MAX: usize = 32;
/// Most bytes of a record's key.
pub const KEY_LEN_MAX: usize = 1_024;

/// The records of consumers could not be read or written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the records of a consumer could not be read or written: {0}")]
pub struct Error(pub String);

/// The name of a consumer: 2 to [`NAME_LEN_MAX`] of `a` to `z`, `0` to `9` and `-`, a letter first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// `None` when the text is no name.
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

/// A key and its value, in forms of the consumer's own.
pub type Record = (Vec<u8>, Vec<u8>);

/// A record that is written, or removed where the value is `None`.
pub type Change = (Vec<u8>, Option<Vec<u8>>);

/// Where the consumers of one partition of the log keep their records and their positions. The
/// records of each are apart from those of the others. A consumer has one caller, and several
/// consumers may be at work at once.
pub trait ConsumerStore: Send + Sync {
    /// The consumers that have committed, and the position of each.
    fn positions(&self) -> Result<Vec<(Name, Offset)>, Error>;

    /// The value of a key.
    fn get(&self, consumer: &Name, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    /// The records whose keys begin with `prefix`, in the order of their keys, at most `len_max` of
    /// them: from the first one on, or from the one behind the key `after`.
    fn scan(
        &self,
        consumer: &Name,
        prefix: &[u8],
        after: Option<&[u8]>,
        len_max: usize,
    ) -> Result<Vec<Record>, Error>;

    /// Makes changes durable together with the position up to which they include the log: all of
    /// it, or nothing. Of two changes of one key the later one counts.
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

//! What every engine checks of a turn before it writes it.

use super::{Error, Head};
use raingauge_points::Turn;
use std::collections::HashSet;

/// A turn whose entries follow the heads of its books, with their encodings.
#[derive(Clone, Debug, Default)]
pub struct EncodedTurn {
    /// The heads after it, in the order of the heads before it.
    pub heads: Vec<Head>,
    /// The encoded entries, one behind the other.
    bytes: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl EncodedTurn {
    /// Refuses a turn that does not follow the heads, or contradicts itself. A defect of whatever
    /// decided it must not become a part of the books.
    pub fn of(heads: &[Head], turn: &Turn) -> Result<Self, Error> {
        let mut encoded = Self { heads: heads.to_vec(), ..Self::default() };
        let mut keys = HashSet::new();

        for entry in &turn.entries {
            let name = || format!("entry {} of book {}", entry.sequence, entry.book);
            let invalid = |why: &str| Err(Error::Invalid(format!("{}: {why}", name())));
            let Some(head) = encoded.heads.iter_mut().find(|head| head.book == entry.book) else {
                return invalid("its book takes no part in the turn");
            };

            if entry.sequence != head.sequence + 1 {
                return invalid(&format!("the one before it is {}", head.sequence));
            }
            if entry.recorded_ms < head.recorded_ms || entry.recorded_ms != turn.recorded_ms {
                return invalid("its time is not that of the turn, or goes back");
            }
            if !entry.is_balanced() {
                return invalid("its postings do not add up to 0");
            }
            if entry.key.as_ref().is_some_and(|key| !keys.insert(key.hash)) {
                return invalid("another entry of the turn has its key");
            }

            let from = encoded.bytes.len();
            entry.encode(&mut encoded.bytes);
            head.apply(entry, &encoded.bytes[from..]);
            encoded.ends.push(encoded.bytes.len());
        }

        encoded.move_position(turn)?;
        Ok(encoded)
    }

    fn move_position(&mut self, turn: &Turn) -> Result<(), Error> {
        let Some(position) = turn.position else {
            return Ok(());
        };
        for head in &mut self.heads {
            if position < head.position {
                let why = format!("the position goes back from {} to {position}", head.position);
                return Err(Error::Invalid(why));
            }
            head.position = position;
        }
        Ok(())
    }

    /// The encodings of the entries, in their order.
    pub fn entries(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.bytes[begin..*end])
    }
}

//! The arguments of one command.

use bytes::Bytes;

use crate::buffers::{Buffers, Span};
use crate::failure::Failure;
use crate::number;

/// The arguments of one command, the name among them: ranges of the drain that they were read
/// into.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    pub(crate) buffers: &'a Buffers,
    pub(crate) spans: &'a [Span],
}

impl<'a> Arguments<'a> {
    /// How many there are, with the name.
    pub fn len(self) -> usize {
        self.spans.len()
    }

    /// Whether there are none, not even a name.
    pub fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    /// The argument of an index; 0 is the name.
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|span| self.buffers.slice(*span))
    }

    /// As [`Arguments::get`], for an index that the arity of the command promises.
    pub fn at(self, index: usize) -> &'a [u8] {
        self.buffers.slice(self.spans[index])
    }

    /// The arguments from an index on; none when there are fewer.
    pub fn from(self, index: usize) -> Arguments<'a> {
        let spans = self.spans.get(index..).unwrap_or_default();

        Arguments { buffers: self.buffers, spans }
    }

    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        self.spans.iter().map(move |span| self.buffers.slice(*span))
    }

    /// An argument as bytes to keep: shared when it was read into a buffer of its own, else a
    /// copy, so that a small value never keeps a large buffer.
    pub fn bytes(self, index: usize) -> Bytes {
        self.buffers.bytes(self.spans[index])
    }

    /// Whether the argument is this word, in any case.
    pub fn is(self, index: usize, word: &str) -> bool {
        self.get(index).is_some_and(|argument| argument.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// The argument as an integer.
    pub fn integer(self, index: usize) -> Result<i64, Failure> {
        self.get(index).and_then(number::parse_i64).ok_or(Failure::NotInteger)
    }

    /// The argument as the cursor of a walk.
    pub fn cursor(self, index: usize) -> Result<u64, Failure> {
        self.get(index).and_then(number::parse_cursor).ok_or(Failure::InvalidCursor)
    }

    /// The argument as a decimal number, infinities included.
    pub fn float(self, index: usize) -> Result<f64, Failure> {
        self.get(index).and_then(number::parse_f64).ok_or(Failure::NotFloat)
    }
}

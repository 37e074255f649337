//! Strings: short ones in place, integers as such, longer ones as their record, large ones as the
//! bytes that arrived.

use std::ops::Deref;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::number::parse_i64;

/// Length from which a string keeps the buffer that it arrived in, instead of a copy.
pub const SHARED_LEN_MIN: usize = 64 << 10;
/// Length from which a new string is kept as a part of its own head, so that the store needs no
/// copy.
pub const HEADED_LEN_MIN: usize = 128;
/// Bytes of a head in front of a string that does not expire.
const HEAD_LEN: usize = 2;
/// Longest string that clients see as `embstr`.
const EMBEDDED_LEN_MAX: usize = 44;

/// A buffer of bytes; up to 24 lie in place.
pub type Buffer = SmallVec<[u8; 24]>;

/// A string of bytes.
#[derive(Debug, Clone)]
pub struct Text(Form);

#[derive(Debug, Clone)]
enum Form {
    /// The canonical decimal form of a number.
    Integer(i64),
    /// As it was set.
    Plain(Buffer),
    /// Changed in place since it was set.
    Edited(Buffer),
    /// A slice of a larger buffer that nobody changes.
    Shared(Bytes),
    /// The head of the string as long as it does not expire.
    Headed(Bytes),
}

/// The bytes of a [`Text`]: borrowed, or the digits of a number.
#[derive(Debug, Clone)]
pub enum TextBytes<'a> {
    Borrowed(&'a [u8]),
    /// Digits, and how many of them count.
    Digits([u8; 20], usize),
}

impl Text {
    /// A copy of bytes. Integers in canonical form are kept as such.
    pub fn new(bytes: &[u8]) -> Text {
        Text(match parse_i64(bytes) {
            Some(number) => Form::Integer(number),
            None => Form::Plain(Buffer::from_slice(bytes)),
        })
    }

    /// Bytes that are kept as they are, without copying.
    pub fn shared(bytes: Bytes) -> Text {
        Text(Form::Shared(bytes))
    }

    /// The string in a head, which says that it does not expire, from [`HEADED_LEN_MIN`] bytes on.
    pub(crate) fn headed(head: Bytes) -> Text {
        debug_assert!(head.len() >= HEAD_LEN + HEADED_LEN_MIN);
        Text(Form::Headed(head))
    }

    /// The head of the string, if it is kept with one.
    pub(crate) fn as_headed(&self) -> Option<&Bytes> {
        match &self.0 {
            Form::Headed(head) => Some(head),
            _ => None,
        }
    }

    pub fn integer(number: i64) -> Text {
        Text(Form::Integer(number))
    }

    /// A copy of bytes that is no integer for [`Text::encoding`], whatever it holds.
    pub fn plain(bytes: &[u8]) -> Text {
        Text(Form::Plain(Buffer::from_slice(bytes)))
    }

    /// A buffer, as if it had been written in place.
    pub fn edited(buffer: Vec<u8>) -> Text {
        Text(Form::Edited(Buffer::from_vec(buffer)))
    }

    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Integer(number) => digits_len(*number),
            Form::Plain(buffer) | Form::Edited(buffer) => buffer.len(),
            Form::Shared(bytes) => bytes.len(),
            Form::Headed(head) => head.len() - HEAD_LEN,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bytes(&self) -> TextBytes<'_> {
        match &self.0 {
            Form::Integer(number) => digits_of(*number),
            Form::Plain(buffer) | Form::Edited(buffer) => TextBytes::Borrowed(buffer),
            Form::Shared(bytes) => TextBytes::Borrowed(bytes),
            Form::Headed(head) => TextBytes::Borrowed(&head[HEAD_LEN..]),
        }
    }

    /// The first byte of its buffer; `None` for a number, which has none.
    pub fn first_of_buffer(&self) -> Option<u8> {
        match &self.0 {
            Form::Integer(_) => None,
            Form::Plain(buffer) | Form::Edited(buffer) => buffer.first().copied(),
            Form::Shared(bytes) | Form::Headed(bytes) => bytes.first().copied(),
        }
    }

    /// The number that the string is the canonical form of.
    pub fn as_integer(&self) -> Option<i64> {
        match &self.0 {
            Form::Integer(number) => Some(*number),
            Form::Plain(buffer) | Form::Edited(buffer) => parse_i64(buffer),
            Form::Shared(_) | Form::Headed(_) => None,
        }
    }

    /// The buffer of a large string, which a reply may refer to instead of copying it.
    pub fn as_shared(&self) -> Option<&Bytes> {
        match &self.0 {
            Form::Shared(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The bytes as a buffer that changes in place. A shared string is copied once for it.
    pub fn edit(&mut self) -> &mut Buffer {
        let buffer = match &mut self.0 {
            Form::Integer(number) => {
                Buffer::from_slice(itoa::Buffer::new().format(*number).as_bytes())
            }
            Form::Plain(buffer) | Form::Edited(buffer) => std::mem::take(buffer),
            Form::Shared(bytes) => Buffer::from_slice(bytes),
            Form::Headed(head) => Buffer::from_slice(&head[HEAD_LEN..]),
        };
        self.0 = Form::Edited(buffer);
        match &mut self.0 {
            Form::Edited(buffer) => buffer,
            _ => unreachable!("the string was just made editable"),
        }
    }

    pub fn append(&mut self, bytes: &[u8]) {
        self.edit().extend_from_slice(bytes);
    }

    /// Writes bytes at an offset. A gap behind the end of the string is filled with zeros.
    pub fn set_range(&mut self, offset: usize, bytes: &[u8]) {
        let buffer = self.edit();
        let end = offset + bytes.len();
        if buffer.len() < end {
            buffer.resize(end, 0);
        }
        buffer[offset..end].copy_from_slice(bytes);
    }

    /// Bytes of memory beyond the object itself.
    pub fn weight(&self) -> usize {
        match &self.0 {
            Form::Integer(_) => 0,
            Form::Plain(buffer) | Form::Edited(buffer) if buffer.spilled() => buffer.capacity(),
            Form::Plain(_) | Form::Edited(_) => 0,
            Form::Shared(bytes) | Form::Headed(bytes) => bytes.len(),
        }
    }

    /// The encoding that `OBJECT ENCODING` reports.
    pub fn encoding(&self) -> &'static str {
        match &self.0 {
            Form::Integer(_) => "int",
            Form::Plain(buffer) if buffer.len() <= EMBEDDED_LEN_MAX => "embstr",
            _ => "raw",
        }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        *self.bytes() == *other.bytes()
    }
}

impl Eq for Text {}

impl Deref for TextBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            TextBytes::Borrowed(bytes) => bytes,
            TextBytes::Digits(digits, len) => &digits[..*len],
        }
    }
}

fn digits_of(number: i64) -> TextBytes<'static> {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(number).as_bytes();
    let mut digits = [0; 20];
    digits[..text.len()].copy_from_slice(text);
    TextBytes::Digits(digits, text.len())
}

fn digits_len(number: i64) -> usize {
    let digits = number.unsigned_abs().checked_ilog10().map_or(1, |digits| digits as usize + 1);
    digits + usize::from(number < 0)
}

#[cfg(test)]
mod tests;

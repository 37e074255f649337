//! The bytes that the arguments of commands lie in.

use bytes::{Bytes, BytesMut};

/// One buffer that arguments share, and those arguments that have buffers of their own.
#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) shared: BytesMut,
    pub(crate) large: Vec<Bytes>,
}

/// Where an argument lies: in the buffer, or as a whole in one of the large ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// A place in the buffer, or the index of a large one.
    pub(crate) start: u32,
    /// `LARGE` for a large one.
    pub(crate) len: u32,
}

impl Span {
    /// The length that tells large arguments from others, which are shorter.
    pub(crate) const LARGE: u32 = u32::MAX;
}

impl Buffers {
    pub(crate) fn slice(&self, span: Span) -> &[u8] {
        let start = span.start as usize;

        match span.len {
            Span::LARGE => &self.large[start],
            len => &self.shared[start..start + len as usize],
        }
    }

    /// An argument as bytes to keep: a copy of a small one.
    pub(crate) fn bytes(&self, span: Span) -> Bytes {
        match span.len {
            Span::LARGE => self.large[span.start as usize].clone(),
            _ => Bytes::copy_from_slice(self.slice(span)),
        }
    }

    /// Bytes of all arguments.
    pub(crate) fn len(&self) -> usize {
        self.shared.len() + self.large.iter().map(Bytes::len).sum::<usize>()
    }

    pub(crate) fn clear(&mut self) {
        self.shared = BytesMut::new();
        self.large.clear();
    }
}

/// A place in a buffer. Buffers of a drain stay far below 4 GiB: what is read at once, and the
/// queue of a transaction, are bounded.
pub(crate) fn u32_of(place: usize) -> u32 {
    u32::try_from(place).expect("a drain is below 4 GiB")
}

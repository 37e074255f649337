//! Replies as bytes, in the protocol of their connection.

use bytes::{Bytes, BytesMut};

use crate::number::Decimal;
use crate::{Failure, Protocol};

/// Values from this length on are sent from where they lie, without a copy.
const SHARED_BYTES_MIN: usize = 4096;
const CRLF: &[u8] = b"\r\n";

/// Replies that wait to be sent, in the order of their commands.
///
/// Handlers append to it. What a handler wrote before it failed is taken back by its caller with
/// [`Replies::mark`] and [`Replies::roll_back`].
pub struct Replies {
    protocol: Protocol,
    /// Finished buffers, before `tail`.
    chunks: Vec<Bytes>,
    chunks_len: usize,
    tail: BytesMut,
    /// Length beyond which strings are left out.
    len_max: usize,
    is_cut: bool,
}

/// A place in [`Replies`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    chunks: usize,
    chunks_len: usize,
    /// Bytes of the tail, or of the chunk that it became.
    tail: usize,
}

impl Replies {
    pub fn new(protocol: Protocol) -> Replies {
        Replies {
            protocol,
            chunks: Vec::new(),
            chunks_len: 0,
            tail: BytesMut::new(),
            len_max: usize::MAX,
            is_cut: false,
        }
    }

    /// Bounds what the next command may answer: strings that exceed it are left out.
    pub fn bound(&mut self, bytes_max: usize) {
        self.len_max = self.len().saturating_add(bytes_max);
    }

    /// Removes the bound. Returns whether strings were left out, so that the answer has to be taken
    /// back.
    pub fn unbound(&mut self) -> bool {
        self.len_max = usize::MAX;
        std::mem::take(&mut self.is_cut)
    }

    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Changes the protocol of the replies that follow.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Bytes of all replies.
    pub fn len(&self) -> usize {
        self.chunks_len + self.tail.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A status, such as `OK`.
    pub fn simple(&mut self, status: &str) {
        self.line(b'+', status.as_bytes());
    }

    pub fn ok(&mut self) {
        self.tail.extend_from_slice(b"+OK\r\n");
    }

    pub fn integer(&mut self, value: i64) {
        self.header(b':', value);
    }

    pub fn bulk(&mut self, value: &[u8]) {
        if self.len().saturating_add(value.len()) > self.len_max {
            self.is_cut = true;
            return;
        }

        self.tail.reserve(value.len() + 16);
        self.header(b'$', length(value.len()));

        self.tail.extend_from_slice(value);
        self.tail.extend_from_slice(CRLF);
    }

    /// A string that is shared with its owner instead of copied, from 4 KiB on.
    pub fn shared(&mut self, value: Bytes) {
        if value.len() < SHARED_BYTES_MIN {
            return self.bulk(&value);
        }

        self.header(b'$', length(value.len()));
        let head = self.tail.split().freeze();

        self.chunks_len += head.len() + value.len();
        self.chunks.push(head);
        self.chunks.push(value);
        self.tail.extend_from_slice(CRLF);
    }

    /// An integer as a string.
    pub fn bulk_integer(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// No value.
    pub fn null(&mut self) {
        self.tail.extend_from_slice(match self.protocol {
            Protocol::Two => b"$-1\r\n",
            Protocol::Three => b"_\r\n",
        });
    }

    /// No array, where RESP2 tells it from no value.
    pub fn null_array(&mut self) {
        self.tail.extend_from_slice(match self.protocol {
            Protocol::Two => b"*-1\r\n",
            Protocol::Three => b"_\r\n",
        });
    }

    /// The head of an array; its elements follow.
    pub fn array(&mut self, len: usize) {
        self.header(b'*', length(len));
    }

    /// The head of a map; `pairs` times a name and a value follow.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Two => self.header(b'*', length(pairs * 2)),
            Protocol::Three => self.header(b'%', length(pairs)),
        }
    }

    /// The head of a set; its elements follow.
    pub fn set(&mut self, len: usize) {
        match self.protocol {
            Protocol::Two => self.header(b'*', length(len)),
            Protocol::Three => self.header(b'~', length(len)),
        }
    }

    /// The head of a message that answers no command, such as one of a channel.
    pub fn push(&mut self, len: usize) {
        match self.protocol {
            Protocol::Two => self.header(b'*', length(len)),
            Protocol::Three => self.header(b'>', length(len)),
        }
    }

    /// A decimal number; a string in RESP2.
    pub fn double(&mut self, value: f64) {
        let text = Decimal::new(value);

        match self.protocol {
            Protocol::Two => self.bulk(text.as_ref()),
            Protocol::Three => self.line(b',', text.as_ref()),
        }
    }

    /// A truth value; 0 or 1 in RESP2.
    pub fn boolean(&mut self, value: bool) {
        match self.protocol {
            Protocol::Two => self.integer(i64::from(value)),
            Protocol::Three => self.line(b'#', if value { b"t" } else { b"f" }),
        }
    }

    /// Text for people; a string in RESP2.
    pub fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Two => self.bulk(text.as_bytes()),
            Protocol::Three => {
                self.header(b'=', length(text.len() + 4));
                self.tail.extend_from_slice(b"txt:");
                self.tail.extend_from_slice(text.as_bytes());
                self.tail.extend_from_slice(CRLF);
            }
        }
    }

    /// An error, with its code word and without a leading `-`. Ends of lines become spaces.
    pub fn error(&mut self, line: &str) {
        self.tail.extend_from_slice(b"-");

        for byte in line.bytes() {
            let byte = if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
            self.tail.extend_from_slice(&[byte]);
        }

        self.tail.extend_from_slice(CRLF);
    }

    pub fn fail(&mut self, failure: &Failure) {
        self.error(&failure.to_string());
    }

    /// Bytes that are replies already, in the protocol of this connection.
    pub fn raw(&mut self, replies: &[u8]) {
        self.tail.extend_from_slice(replies);
    }

    /// The end of what was written so far.
    pub fn mark(&self) -> Mark {
        Mark { chunks: self.chunks.len(), chunks_len: self.chunks_len, tail: self.tail.len() }
    }

    /// Takes back what was written behind a mark.
    pub fn roll_back(&mut self, mark: Mark) {
        if self.chunks.len() == mark.chunks {
            self.tail.truncate(mark.tail);
            return;
        }

        self.chunks.truncate(mark.chunks + 1);
        self.tail.clear();
        self.tail.extend_from_slice(&self.chunks[mark.chunks][..mark.tail]);
        self.chunks.truncate(mark.chunks);
        self.chunks_len = mark.chunks_len;
    }

    /// Takes all replies out, as buffers in the order in which they are sent.
    pub fn take(&mut self) -> Vec<Bytes> {
        if !self.tail.is_empty() {
            self.chunks.push(self.tail.split().freeze());
        }

        self.chunks_len = 0;
        std::mem::take(&mut self.chunks)
    }

    /// Takes the first `len` bytes out.
    pub fn take_first(&mut self, len: usize) -> Vec<Bytes> {
        let mut taken = Vec::new();
        let mut missing = len.min(self.len());
        let mut whole = 0;

        for chunk in &mut self.chunks {
            if missing == 0 {
                break;
            }

            if chunk.len() <= missing {
                missing -= chunk.len();
                taken.push(chunk.clone());
                whole += 1;
            } else {
                taken.push(chunk.split_to(missing));
                missing = 0;
            }
        }

        self.chunks.drain(..whole);
        if missing > 0 {
            taken.push(self.tail.split_to(missing).freeze());
        }

        self.chunks_len = self.chunks.iter().map(Bytes::len).sum();
        taken
    }

    fn header(&mut self, kind: u8, value: i64) {
        self.line(kind, itoa::Buffer::new().format(value).as_bytes());
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.tail.reserve(text.len() + 3);
        self.tail.extend_from_slice(&[kind]);
        self.tail.extend_from_slice(text);
        self.tail.extend_from_slice(CRLF);
    }
}

fn length(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}

impl std::fmt::Debug for Replies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replies")
            .field("protocol", &self.protocol)
            .field("len", &self.len())
            .finish()
    }
}

#[cfg(test)]
#[path = "replies_tests.rs"]
mod tests;

//! Requests, as they arrive.

use bytes::buf::Limit;
use bytes::{BufMut, BytesMut};

use crate::buffers::{Span, u32_of};
use crate::limits::{
    RESP_ARGUMENTS_MAX, RESP_GUEST_ARGUMENT_BYTES_MAX, RESP_GUEST_ARGUMENTS_MAX,
    RESP_INLINE_BYTES_MAX, RESP_LARGE_BYTES_MIN, RESP_READ_BYTES_MAX, RESP_READ_BYTES_MIN,
};
use crate::{Drain, Failure, inline, number};

/// Bytes behind a line and behind an argument.
const END_LEN: usize = 2;

/// Turns the bytes of a connection into commands, however they are cut.
///
/// Read into [`Parser::space`], then call [`Parser::drain`]. After a failure the rest of the
/// connection has no meaning: answer what came before, answer the failure, and close.
pub struct Parser {
    limits: ParserLimits,
    /// What was read behind the last finished command.
    buffer: BytesMut,
    /// Up to where the unfinished command at the front of the buffer was read.
    at: usize,
    /// The arguments of the unfinished command that are still missing.
    missing: usize,
    /// The others.
    spans: Vec<Span>,
    large: Vec<bytes::Bytes>,
    /// Bytes of those.
    large_len: usize,
    /// The large argument that is being read.
    reading: Option<Reading>,
    /// What is read at once.
    read_len: usize,
    /// Length of the buffer if the last read fills what it was offered.
    filled_len: usize,
}

/// Bounds of requests that settings or a login change.
#[derive(Clone, Copy, Debug)]
pub struct ParserLimits {
    /// Whether the caller has logged in. Others send one command at a time, and short ones.
    pub trusted: bool,
    /// Bytes of an argument.
    pub bulk_bytes_max: usize,
}

/// A large argument, until all of it is there.
struct Reading {
    bytes: BytesMut,
    len: usize,
}

/// What a step of the parser came to.
enum Step {
    /// More bytes are needed.
    Incomplete,
    /// A command is complete.
    Command,
    /// The bytes stood for no command, as an empty line does.
    Nothing,
}

impl Parser {
    pub fn new(limits: ParserLimits) -> Parser {
        Parser {
            limits,
            buffer: BytesMut::new(),
            at: 0,
            missing: 0,
            spans: Vec::new(),
            large: Vec::new(),
            large_len: 0,
            reading: None,
            read_len: RESP_READ_BYTES_MIN,
            filled_len: usize::MAX,
        }
    }

    pub fn limits(&self) -> ParserLimits {
        self.limits
    }

    /// Changes the bounds of the commands that were not parsed yet.
    pub fn set_limits(&mut self, limits: ParserLimits) {
        self.limits = limits;
    }

    /// Bytes that were read and belong to no finished command.
    pub fn pending_len(&self) -> usize {
        let reading_len = self.reading.as_ref().map_or(0, |reading| reading.bytes.len());

        self.buffer.len() + self.large_len + reading_len
    }

    /// Where the next bytes of the connection go.
    pub fn space(&mut self) -> Limit<&mut BytesMut> {
        if let Some(reading) = &mut self.reading
            && reading.bytes.len() < reading.len
        {
            let missing = reading.len - reading.bytes.len();
            return (&mut reading.bytes).limit(missing);
        }

        self.buffer.reserve(self.read_len);
        self.filled_len = self.buffer.len() + self.read_len;
        (&mut self.buffer).limit(self.read_len)
    }

    /// Fills a drain with all commands that are complete. Without a login it is one at most: call
    /// again until there is none, since that command may have been the login.
    pub fn drain(&mut self, drain: &mut Drain) -> Result<(), Failure> {
        drain.clear();
        self.adapt();
        let mut done = 0;

        let result = loop {
            match self.step() {
                Ok(Step::Incomplete) => break Ok(()),
                Ok(Step::Nothing) => {}
                Err(failure) => break Err(failure),
                Ok(Step::Command) => {
                    self.finish(drain);
                    done = self.at;

                    if !self.limits.trusted {
                        break Ok(());
                    }
                }
            }
        };

        // What was read of the next command keeps its place behind the bytes that go.
        let begun = self.missing > 0 || !self.spans.is_empty();
        let done = if begun { done } else { self.at };
        let taken = self.buffer.split_to(done);

        for span in self.spans.iter_mut().filter(|span| span.len != Span::LARGE) {
            span.start -= u32_of(done);
        }

        self.at -= done;
        drain.buffers.shared = taken;
        drain.look_up();
        result
    }

    /// Offers a connection that filled what it was offered twice as much the next time, and others
    /// half as much.
    fn adapt(&mut self) {
        if self.buffer.len() >= self.filled_len {
            self.read_len = (self.read_len * 2).min(RESP_READ_BYTES_MAX);
        } else {
            self.read_len = (self.read_len / 2).max(RESP_READ_BYTES_MIN);
        }

        self.filled_len = usize::MAX;
    }

    /// Moves the finished command into the drain.
    fn finish(&mut self, drain: &mut Drain) {
        let large = u32_of(drain.buffers.large.len());
        let first = drain.spans.len();

        drain.spans.extend(self.spans.drain(..).map(|span| match span.len {
            Span::LARGE => Span { start: span.start + large, ..span },
            _ => span,
        }));
        drain.buffers.large.append(&mut self.large);
        self.large_len = 0;
        drain.begin(first);
    }

    fn step(&mut self) -> Result<Step, Failure> {
        if self.missing == 0 {
            match self.buffer.get(self.at) {
                None => return Ok(Step::Incomplete),
                Some(b'*') => {
                    if !self.count()? {
                        return Ok(Step::Incomplete);
                    }
                    if self.missing == 0 {
                        return Ok(Step::Nothing);
                    }
                }
                Some(_) => return self.inline(),
            }
        }

        while self.missing > 0 {
            if !self.argument()? {
                return Ok(Step::Incomplete);
            }
            self.missing -= 1;
        }

        Ok(Step::Command)
    }

    /// Reads the number of arguments; false if its line is not complete.
    fn count(&mut self) -> Result<bool, Failure> {
        let Some((text, behind)) = self.line("too big mbulk count string")? else {
            return Ok(false);
        };
        let count = number::parse_i64(&text[1..]);
        let guest = !self.limits.trusted;

        let max = RESP_ARGUMENTS_MAX as i64;
        let count = match count {
            Some(count) if count > max => return Err(broken("invalid multibulk length")),
            Some(count) if guest && count > RESP_GUEST_ARGUMENTS_MAX as i64 => {
                return Err(broken("unauthenticated multibulk length"));
            }
            Some(count) => count,
            None => return Err(broken("invalid multibulk length")),
        };

        self.at = behind;
        self.missing = usize::try_from(count).unwrap_or(0);
        Ok(true)
    }

    /// Reads one argument; false if it is not complete.
    fn argument(&mut self) -> Result<bool, Failure> {
        if self.reading.is_some() {
            return Ok(self.end_large());
        }

        let Some((text, behind)) = self.line("too big bulk count string")? else {
            return Ok(false);
        };
        if text[0] != b'$' {
            let found = char::from(text[0]);
            return Err(Failure::owned(format!("ERR Protocol error: expected '$', got '{found}'")));
        }

        let len = number::parse_i64(&text[1..]).and_then(|len| usize::try_from(len).ok());
        let len = match len {
            Some(len) if len > self.limits.bulk_bytes_max => return Err(bad_length()),
            Some(len) if !self.limits.trusted && len > RESP_GUEST_ARGUMENT_BYTES_MAX => {
                return Err(broken("unauthenticated bulk length"));
            }
            Some(len) => len,
            None => return Err(bad_length()),
        };

        if len >= RESP_LARGE_BYTES_MIN {
            self.begin_large(len, behind);
            return Ok(self.end_large());
        }

        if self.buffer.len() < behind + len + END_LEN {
            return Ok(false);
        }

        self.spans.push(Span { start: u32_of(behind), len: u32_of(len) });
        self.at = behind + len + END_LEN;
        Ok(true)
    }

    /// Moves what was read of a large argument into a buffer of its size.
    fn begin_large(&mut self, len: usize, from: usize) {
        let there = len.min(self.buffer.len() - from);
        let mut bytes = BytesMut::with_capacity(len);
        bytes.extend_from_slice(&self.buffer[from..from + there]);

        if there < len {
            self.buffer.truncate(from);
            self.at = from;
        } else {
            self.at = from + len;
        }

        self.reading = Some(Reading { bytes, len });
    }

    /// Whether the large argument and what ends it are there.
    fn end_large(&mut self) -> bool {
        let ended = self.buffer.len() >= self.at + END_LEN;
        let Some(reading) =
            self.reading.take_if(|reading| reading.bytes.len() == reading.len && ended)
        else {
            return false;
        };

        self.spans.push(Span { start: u32_of(self.large.len()), len: Span::LARGE });
        self.large_len += reading.len;
        self.large.push(reading.bytes.freeze());
        self.at += END_LEN;
        true
    }

    /// The line from the present place on, and the place behind its end.
    fn line(&self, too_long: &'static str) -> Result<Option<(&[u8], usize)>, Failure> {
        let rest = &self.buffer[self.at..];
        let seen = &rest[..rest.len().min(RESP_INLINE_BYTES_MAX)];

        match memchr::memchr(b'\r', seen) {
            None if rest.len() > RESP_INLINE_BYTES_MAX => Err(broken(too_long)),
            None => Ok(None),
            // The byte behind is taken for the line feed, as Redis does.
            Some(len) if rest.len() < len + END_LEN => Ok(None),
            Some(0) => Err(Failure::owned("ERR Protocol error: expected '$', got '\r'".into())),
            Some(len) => Ok(Some((&rest[..len], self.at + len + END_LEN))),
        }
    }

    /// Reads a command that a person typed.
    fn inline(&mut self) -> Result<Step, Failure> {
        let rest = &self.buffer[self.at..];
        let seen = &rest[..rest.len().min(RESP_INLINE_BYTES_MAX)];

        let Some(len) = memchr::memchr(b'\n', seen) else {
            if rest.len() > RESP_INLINE_BYTES_MAX {
                return Err(broken("too big inline request"));
            }
            return Ok(Step::Incomplete);
        };

        let from = self.at;
        let end = if len > 0 && rest[len - 1] == b'\r' { len - 1 } else { len };
        let line = &mut self.buffer[from..from + end];
        inline::split(line, |start, len| {
            self.spans.push(Span { start: u32_of(from + start), len: u32_of(len) });
        })
        .map_err(|_| broken("unbalanced quotes in request"))?;

        self.at = from + len + 1;
        Ok(if self.spans.is_empty() { Step::Nothing } else { Step::Command })
    }
}

fn broken(what: &'static str) -> Failure {
    Failure::owned(format!("ERR Protocol error: {what}"))
}

fn bad_length() -> Failure {
    broken("invalid bulk length")
}

#[cfg(test)]
#[path = "parser_tests.rs"]
mod tests;

//! Replies of both protocols.

use crate::Error;
use memchr::memchr;
use std::fmt;

/// Deepest nesting that is parsed.
const DEPTH_MAX: usize = 32;

/// A reply with its type on the wire. Equal replies had equal bytes.
#[derive(Clone, PartialEq)]
pub enum Reply {
    Simple(Vec<u8>),
    /// With its code word, as in `ERR syntax error`.
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    /// `$-1` of RESP2.
    NullBulk,
    /// `*-1` of RESP2.
    NullArray,
    /// `_` of RESP3.
    Null,
    /// The text of a double, as it was sent.
    Double(Vec<u8>),
    Boolean(bool),
    BigNumber(Vec<u8>),
    /// With its format, as in `txt:words`.
    Verbatim(Vec<u8>),
    Array(Vec<Reply>),
    /// Keys and values alternate.
    Map(Vec<Reply>),
    Set(Vec<Reply>),
    Push(Vec<Reply>),
}

impl Reply {
    /// Parses the reply at the start of `bytes`, and returns it with its length; `None` while it is
    /// incomplete.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Error> {
        let mut parser = Parser { bytes, position: 0 };
        let reply = parser.reply(0)?;
        Ok(reply.map(|reply| (reply, parser.position)))
    }

    /// The bytes of a string of any kind.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Simple(text)
            | Self::Error(text)
            | Self::Bulk(text)
            | Self::Double(text)
            | Self::BigNumber(text)
            | Self::Verbatim(text) => Some(text),
            _ => None,
        }
    }

    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The elements of an array, a set, a map (alternating) or a push.
    pub fn elements(&self) -> Option<&[Reply]> {
        match self {
            Self::Array(all) | Self::Map(all) | Self::Set(all) | Self::Push(all) => Some(all),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::NullBulk | Self::NullArray)
    }

    /// The text of an error.
    pub fn error(&self) -> Option<String> {
        match self {
            Self::Error(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        }
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Parser<'a> {
    fn reply(&mut self, depth: usize) -> Result<Option<Reply>, Error> {
        if depth > DEPTH_MAX {
            return Err(Error::Malformed(format!("nested deeper than {DEPTH_MAX}")));
        }
        let Some((kind, line)) = self.line()? else {
            return Ok(None);
        };

        let text = || line.to_vec();
        let reply = match kind {
            b'+' => Reply::Simple(text()),
            b'-' => Reply::Error(text()),
            b':' => Reply::Integer(number(line)?),
            b'_' => Reply::Null,
            b',' => Reply::Double(text()),
            b'(' => Reply::BigNumber(text()),
            b'#' => Reply::Boolean(line == b"t"),
            b'$' | b'=' | b'!' => return self.bulk(kind, number(line)?),
            b'*' | b'~' | b'>' | b'%' => {
                let Ok(len) = usize::try_from(number(line)?) else {
                    return Ok(Some(Reply::NullArray));
                };
                return self.elements(kind, len, depth);
            }
            other => return Err(Error::Malformed(format!("type {:?}", char::from(other)))),
        };

        Ok(Some(reply))
    }

    /// The type and the text of the next line.
    fn line(&mut self) -> Result<Option<(u8, &'a [u8])>, Error> {
        let rest = &self.bytes[self.position..];
        let Some(end) = memchr(b'\n', rest) else {
            return Ok(None);
        };
        if end < 2 || rest[end - 1] != b'\r' {
            return Err(Error::Malformed("a line without carriage return".to_owned()));
        }

        self.position += end + 1;
        Ok(Some((rest[0], &rest[1..end - 1])))
    }

    fn bulk(&mut self, kind: u8, len: i64) -> Result<Option<Reply>, Error> {
        let Ok(len) = usize::try_from(len) else {
            return Ok(Some(Reply::NullBulk));
        };
        let Some(text) = self.bytes.get(self.position..self.position + len + 2) else {
            return Ok(None);
        };
        if !text.ends_with(b"\r\n") {
            return Err(Error::Malformed("a string longer than announced".to_owned()));
        }

        self.position += len + 2;
        let text = text[..len].to_vec();
        Ok(Some(match kind {
            b'=' => Reply::Verbatim(text),
            b'!' => Reply::Error(text),
            _ => Reply::Bulk(text),
        }))
    }

    fn elements(&mut self, kind: u8, len: usize, depth: usize) -> Result<Option<Reply>, Error> {
        let len = if kind == b'%' { len * 2 } else { len };
        let mut all = Vec::with_capacity(len.min(1_024));
        for _ in 0..len {
            match self.reply(depth + 1)? {
                Some(reply) => all.push(reply),
                None => return Ok(None),
            }
        }

        Ok(Some(match kind {
            b'~' => Reply::Set(all),
            b'>' => Reply::Push(all),
            b'%' => Reply::Map(all),
            _ => Reply::Array(all),
        }))
    }
}

fn number(line: &[u8]) -> Result<i64, Error> {
    let wrong = || Error::Malformed(format!("{:?} is not a number", String::from_utf8_lossy(line)));
    std::str::from_utf8(line).ok().and_then(|text| text.parse().ok()).ok_or_else(wrong)
}

/// As `redis-cli` would show it, on one line.
impl fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |formatter: &mut fmt::Formatter<'_>, open: &str, all: &[Reply]| {
            write!(formatter, "{open}")?;
            formatter.debug_list().entries(all).finish()
        };
        match self {
            Self::Simple(text) => write!(formatter, "+{}", text.escape_ascii()),
            Self::Error(text) => write!(formatter, "-{}", text.escape_ascii()),
            Self::Integer(number) => write!(formatter, ":{number}"),
            Self::Bulk(text) => write!(formatter, "\"{}\"", text.escape_ascii()),
            Self::NullBulk => write!(formatter, "$-1"),
            Self::NullArray => write!(formatter, "*-1"),
            Self::Null => write!(formatter, "_"),
            Self::Double(text) => write!(formatter, ",{}", text.escape_ascii()),
            Self::Boolean(value) => write!(formatter, "#{value}"),
            Self::BigNumber(text) => write!(formatter, "({}", text.escape_ascii()),
            Self::Verbatim(text) => write!(formatter, "={}", text.escape_ascii()),
            Self::Array(all) => list(formatter, "*", all),
            Self::Map(all) => list(formatter, "%", all),
            Self::Set(all) => list(formatter, "~", all),
            Self::Push(all) => list(formatter, ">", all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_parsed_once_it_is_whole() {
        let bytes = b"*3\r\n$2\r\na\r\r\n$-1\r\n:-12\r\n%1\r\n+k\r\n,1.5\r\n~1\r\n#t\r\n_\r\n=5\r\ntxt:a\r\n";
        let whole = [
            Reply::Array(vec![Reply::Bulk(b"a\r".to_vec()), Reply::NullBulk, Reply::Integer(-12)]),
            Reply::Map(vec![Reply::Simple(b"k".to_vec()), Reply::Double(b"1.5".to_vec())]),
            Reply::Set(vec![Reply::Boolean(true)]),
            Reply::Null,
            Reply::Verbatim(b"txt:a".to_vec()),
        ];

        let mut position = 0;
        for expected in whole {
            let (reply, len) = Reply::parse(&bytes[position..]).unwrap().unwrap();
            for cut in 0..len {
                let part = &bytes[position..position + cut];
                assert_eq!(Reply::parse(part).unwrap(), None, "{reply:?} cut at {cut}");
            }
            assert_eq!(reply, expected);
            position += len;
        }
        assert_eq!(position, bytes.len());
    }

    #[test]
    fn malformed_replies_are_errors() {
        for wrong in [&b"?1\r\n"[..], b":x\r\n", b"+a\n", b"$1\r\nabc\r\n"] {
            assert!(Reply::parse(wrong).is_err(), "{}", wrong.escape_ascii());
        }
        assert!(Reply::parse(&b"*1\r\n".repeat(40)).is_err());
    }
}

//! Parses only the necessary parts of an HTTP/1.1 response: its status and the position of its
//! body.

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;

/// Longest head that is accepted.
const HEAD_BYTES_MAX: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    pub body_start: usize,
    pub body_bytes: usize,
}

impl Head {
    pub fn end(&self) -> usize {
        self.body_start + self.body_bytes
    }
}

/// The start of a response.
pub struct Start {
    pub status: u16,
    pub body_start: usize,
    /// `None` for a body in chunks.
    pub body_bytes: Option<usize>,
}

/// Parses the head of a response that has a content-length; `None` while it is incomplete.
pub fn parse_head(bytes: &[u8]) -> Result<Option<Head>> {
    let Some(Start { status, body_start, body_bytes }) = parse(bytes)? else {
        return Ok(None);
    };
    let body_bytes = body_bytes.context(
        "the response is chunked; this client reads only responses with a content-length",
    )?;
    Ok(Some(Head { status, body_start, body_bytes }))
}

/// Parses the head of the response at the start of `bytes`; `None` while it is incomplete.
pub fn parse(bytes: &[u8]) -> Result<Option<Start>> {
    let Some(head_end) = memmem::find(bytes, b"\r\n\r\n") else {
        if bytes.len() > HEAD_BYTES_MAX {
            bail!("a response head of more than {HEAD_BYTES_MAX} bytes");
        }
        return Ok(None);
    };

    let head = &bytes[..head_end];
    let mut lines = head.split(|&byte| byte == b'\n');
    let status = parse_status(lines.next().unwrap_or_default())?;
    let mut length = matches!(status, 204 | 304).then_some(0);
    let mut is_chunked = false;

    for line in lines {
        let Some(colon) = memchr::memchr(b':', line) else {
            continue;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            length = Some(parse_number(value).context("content-length is not a number")?);
        }
        is_chunked |= name.eq_ignore_ascii_case(b"transfer-encoding");
    }

    ensure!(is_chunked || length.is_some(), "a response without content-length");
    let body_bytes = length.filter(|_| !is_chunked);
    Ok(Some(Start { status, body_start: head_end + 4, body_bytes }))
}

fn parse_status(line: &[u8]) -> Result<u16> {
    let digits = line.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
    let status = digits.and_then(parse_number);
    match status {
        Some(status) => Ok(status as u16),
        None => bail!("not an HTTP/1.1 status line: {:?}", String::from_utf8_lossy(line)),
    }
}

fn parse_number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESPONSE: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCONTENT-LENGTH:  12 \r\ndate: now\r\n\r\n{\"a\":\"b\"}   ";

    #[test]
    fn a_head_is_found_only_once_it_is_complete() {
        let head = parse_head(RESPONSE).unwrap().unwrap();
        assert_eq!((head.status, head.body_bytes), (200, 12));
        assert_eq!(&RESPONSE[head.body_start..head.end()], b"{\"a\":\"b\"}   ");
        for length in 0..head.body_start {
            assert_eq!(parse_head(&RESPONSE[..length]).unwrap(), None, "{length}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_not_a_wrong_length() {
        assert!(parse_head(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(parse_head(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(parse_head(b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n").is_err());
        assert!(parse_head(b"SSH-2.0-OpenSSH\r\n\r\n").is_err());
        assert!(parse_head(&vec![b'x'; HEAD_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn an_answer_without_content_has_an_empty_body() {
        let head = parse_head(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap().unwrap();
        assert_eq!((head.status, head.body_bytes), (204, 0));
    }
}

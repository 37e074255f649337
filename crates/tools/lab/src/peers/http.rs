//! HTTP/1.1 over one persistent connection, for peers that use it. Unlike the load generator for
//! raingauge's own figures, it reads chunked answers, which most of them send.

use super::question::Question;
use crate::http::response::{self, Start};
use anyhow::{Context, Result, ensure};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A question as a rendered request.
pub struct Asking {
    pub request: Vec<u8>,
    pub question: Question,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Connection {
    pub async fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))
            .await
            .with_context(|| format!("no server at port {port}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(64 * 1024) })
    }

    /// Sends a complete request, expects success, and returns the body of the answer.
    pub async fn call(&mut self, request: &[u8]) -> Result<Vec<u8>> {
        self.stream.write_all(request).await?;
        loop {
            if let Some((response, used)) = parse(&self.buffer)? {
                self.buffer.drain(..used);
                let text = || {
                    String::from_utf8_lossy(&response.body).chars().take(500).collect::<String>()
                };
                ensure!(
                    (200..300).contains(&response.status),
                    "answered {}: {}",
                    response.status,
                    text()
                );
                return Ok(response.body);
            }
            ensure!(
                self.stream.read_buf(&mut self.buffer).await? > 0,
                "the server closed the connection"
            );
        }
    }
}

pub fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").into_bytes()
}

pub fn post(path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let mut request = head(path, content_type, body.len());
    request.extend_from_slice(body);
    request
}

pub fn head(path: &str, content_type: &str, length: usize) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
    )
    .into_bytes()
}

/// Parses the response at the start of `bytes`, and returns it with its length; `None` while it is
/// incomplete.
fn parse(bytes: &[u8]) -> Result<Option<(Response, usize)>> {
    let Some(Start { status, body_start, body_bytes }) = response::parse(bytes)? else {
        return Ok(None);
    };
    let body = match body_bytes {
        Some(length) => {
            bytes.get(body_start..body_start + length).map(|body| (body.to_vec(), length))
        }
        None => chunks(&bytes[body_start..])?,
    };
    Ok(body.map(|(body, length)| (Response { status, body }, body_start + length)))
}

/// Joins the chunks of a body, and returns it with the number of bytes consumed.
fn chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>> {
    let mut body = Vec::new();
    let mut at = 0;

    loop {
        let Some(line_end) = memmem::find(&bytes[at..], b"\r\n") else {
            return Ok(None);
        };
        let line = std::str::from_utf8(&bytes[at..at + line_end])
            .context("a chunk's length is not text")?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let length =
            usize::from_str_radix(digits, 16).context("a chunk's length is not a number")?;

        at += line_end + 2;
        let Some(chunk) = bytes.get(at..at + length + 2) else {
            return Ok(None);
        };
        body.extend_from_slice(&chunk[..length]);
        at += length + 2;

        if length == 0 {
            return Ok(Some((body, at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Option<(Response, usize)> {
        parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn answers_are_read_whole_or_waited_for() {
        let plain = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        let response = Response { status: 200, body: b"abc".to_vec() };
        assert_eq!(whole(&format!("{plain}HTTP")), Some((response, plain.len())));
        assert_eq!(whole(&plain[..plain.len() - 1]), None);
        assert_eq!(whole("HTTP/1.1 204 No Content\r\n\r\n").unwrap().0.status, 204);
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn chunks_are_put_together() {
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n";
        let (response, used) = whole(text).unwrap();
        assert_eq!((response.body.as_slice(), used), (&b"abc0123456789"[..], text.len()));
        for end in 0..text.len() {
            assert_eq!(whole(&text[..end]), None, "{end}");
        }
    }

    #[test]
    fn requests_are_complete() {
        assert!(get("/x").starts_with(b"GET /x HTTP/1.1\r\n"));
        assert!(post("/x", "text/plain", b"abc").ends_with(b"content-length: 3\r\n\r\nabc"));
    }
}

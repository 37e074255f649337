//! A simple blocking client on one persistent connection, for the work before and after measuring.

use super::response::{self, Head};
use super::{JSON, Target};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Client {
    target: Target,
    timeout: Duration,
    stream: TcpStream,
    buffer: Vec<u8>,
}

pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub fn connect(target: &Target) -> Result<Self> {
        Self::connect_within(target, TIMEOUT)
    }

    /// A client with a timeout for each step: the connection, a write, a read.
    pub fn connect_within(target: &Target, timeout: Duration) -> Result<Self> {
        let stream = open(target, timeout)?;
        Ok(Self { target: target.clone(), timeout, stream, buffer: Vec::new() })
    }

    pub fn call(&mut self, method: &str, path: &str, body: &[u8]) -> Result<Answer> {
        self.call_with(JSON, method, path, body)
    }

    /// Sends a request whose body is not JSON.
    pub fn call_with(
        &mut self,
        content_type: &str,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<Answer> {
        let request = self.target.request(method, path, content_type, body);
        if self.is_closed()? {
            self.stream = open(&self.target, self.timeout)?;
        }
        self.stream.write_all(&request).with_context(|| format!("cannot send {method} {path}"))?;
        let head = self.read().with_context(|| format!("no answer to {method} {path}"))?;
        let body = self.buffer[head.body_start..head.end()].to_vec();
        self.buffer.clear();
        Ok(Answer { status: head.status, body })
    }

    /// Whether the server has closed the connection, as it does with idle ones.
    fn is_closed(&self) -> Result<bool> {
        self.stream.set_nonblocking(true)?;
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false)?;
        Ok(match peeked {
            Ok(count) => count == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        })
    }

    /// Sends a request, expects success, and parses the JSON in the answer.
    pub fn json(&mut self, method: &str, path: &str, body: &[u8]) -> Result<Value> {
        let answer = self.call(method, path, body)?;
        if !matches!(answer.status, 200..=202) {
            bail!("{method} {path} answered {}: {}", answer.status, answer.text());
        }
        serde_json::from_slice(&answer.body)
            .with_context(|| format!("{method} {path} did not return JSON"))
    }

    fn read(&mut self) -> Result<Head> {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            if let Some(head) = response::parse_head(&self.buffer)?
                && self.buffer.len() >= head.end()
            {
                return Ok(head);
            }
            match self.stream.read(&mut chunk)? {
                0 => bail!("the server closed the connection"),
                count => self.buffer.extend_from_slice(&chunk[..count]),
            }
        }
    }
}

fn open(target: &Target, timeout: Duration) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&target.address, timeout)
        .with_context(|| format!("cannot connect to {}", target.address))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::mpsc;

    #[test]
    fn a_connection_that_the_server_closed_is_made_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target { address: listener.local_addr().unwrap(), token: None };
        let (closed, is_closed) = mpsc::channel();
        let server = std::thread::spawn(move || {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 1_024];
                assert!(stream.read(&mut request).unwrap() > 0);
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
                drop(stream);
                closed.send(()).unwrap();
            }
        });

        let mut client = Client::connect(&target).unwrap();
        for _ in 0..2 {
            assert_eq!(client.call("GET", "/", b"").unwrap().status, 200);
            is_closed.recv().unwrap();
        }

        server.join().unwrap();
    }
}

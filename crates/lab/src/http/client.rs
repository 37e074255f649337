//! A plain blocking client on one kept connection, for what is done before and after measuring.

use super::response::{self, Head};
use super::{JSON, Target};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Client {
    target: Target,
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

    /// A client that waits no longer than so long for each step: the connection, a write, a part of the answer.
    pub fn connect_within(target: &Target, timeout: Duration) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&target.address, timeout)
            .with_context(|| format!("cannot connect to {}", target.address))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Self { target: target.clone(), stream, buffer: Vec::new() })
    }

    pub fn call(&mut self, method: &str, path: &str, body: &[u8]) -> Result<Answer> {
        self.call_with(JSON, method, path, body)
    }

    /// Calls with a body of another media type than JSON.
    pub fn call_with(&mut self, content_type: &str, method: &str, path: &str, body: &[u8]) -> Result<Answer> {
        let request = self.target.request(method, path, content_type, body);
        self.stream.write_all(&request).with_context(|| format!("cannot send {method} {path}"))?;
        let head = self.read().with_context(|| format!("no answer to {method} {path}"))?;
        let body = self.buffer[head.body_start..head.end()].to_vec();
        self.buffer.clear();
        Ok(Answer { status: head.status, body })
    }

    /// Calls, expects 200 or 201, and reads the JSON in the answer.
    pub fn json(&mut self, method: &str, path: &str, body: &[u8]) -> Result<Value> {
        let answer = self.call(method, path, body)?;
        if !matches!(answer.status, 200..=202) {
            bail!("{method} {path} answered {}: {}", answer.status, answer.text());
        }
        serde_json::from_slice(&answer.body).with_context(|| format!("{method} {path} answered no JSON"))
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

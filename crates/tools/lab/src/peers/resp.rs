//! A minimal Redis client that pipelines commands and reads their replies, with less work on the
//! client's core than a general one.

use anyhow::{Context, Result, bail};
pub use raingauge_resp_client::command;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// A simple string, such as OK.
    Done,
    Nil,
    Integer(i64),
    /// An array header: this many replies follow.
    Array(usize),
}

pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    position: usize,
}

impl Connection {
    pub async fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))
            .await
            .with_context(|| format!("no Redis at port {port}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(64 * 1024), position: 0 })
    }

    pub async fn send(&mut self, commands: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(commands).await?)
    }

    /// Reads the next reply. Bulk strings must hold integers, as counts do.
    pub async fn reply(&mut self) -> Result<Reply> {
        loop {
            if let Some((reply, used)) = parse(&self.buffer[self.position..])? {
                self.position += used;
                return Ok(reply);
            }
            self.buffer.drain(..self.position);
            self.position = 0;
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("Redis closed the connection");
            }
        }
    }
}

/// Parses the reply at the start of `bytes`, and returns it with its length; `None` while it is
/// incomplete.
fn parse(bytes: &[u8]) -> Result<Option<(Reply, usize)>> {
    let Some(end) = memchr::memchr(b'\n', bytes) else {
        return Ok(None);
    };
    let kind = bytes[0];
    let line = &bytes[1..end.max(1)];
    let used = end + 1;
    let reply = match kind {
        b'+' => Reply::Done,
        b':' => Reply::Integer(integer(line)?),
        b'*' => Reply::Array(integer(line)?.try_into().context("a null array")?),
        b'$' => match integer(line)? {
            -1 => Reply::Nil,
            length => {
                let end = used + usize::try_from(length).context("a negative length")?;
                let Some(value) = bytes.get(used..end + 2) else {
                    return Ok(None);
                };
                return Ok(Some((Reply::Integer(integer(value)?), end + 2)));
            }
        },
        _ => bail!("Redis answered {}", String::from_utf8_lossy(&bytes[..end])),
    };

    Ok(Some((reply, used)))
}

fn integer(digits: &[u8]) -> Result<i64> {
    let text = std::str::from_utf8(digits.trim_ascii())?;
    text.parse().with_context(|| format!("not an integer: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_once_they_are_whole() {
        let bytes = b"*3\r\n$2\r\n-7\r\n$-1\r\n:12\r\n+OK\r\n";
        let mut position = 0;
        let mut replies = Vec::new();
        while let Some((reply, used)) = parse(&bytes[position..]).unwrap() {
            replies.push(reply);
            position += used;
        }
        use Reply::*;
        assert_eq!(replies, [Array(3), Integer(-7), Nil, Integer(12), Done]);
        assert_eq!(parse(b"$2\r\n-7").unwrap(), None);
        assert!(parse(b"-ERR no such command\r\n").is_err());
    }
}

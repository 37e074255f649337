//! Load on a Redis server: one thread, many connections, a pipeline in flight on each, every reply
//! checked.

use crate::http::load::{self, Load, Outcome, Reply, Source};
use crate::http::response::Head;
use crate::measure::Run;
use anyhow::{Result, bail};
use raingauge_resp_client::Scanner;
use std::net::SocketAddr;
use std::time::Instant;

/// Produces pipelines and checks their replies. A slot is one connection.
pub trait Work {
    /// Appends the commands of the slot's next pipeline. Returns their number.
    fn fill(&mut self, slot: usize, bytes: &mut Vec<u8>) -> usize;
    /// Checks the replies, of which none is an error, and returns how many units they are.
    fn check(&mut self, slot: usize, replies: &[u8]) -> Result<usize>;
}

struct Pipelines<'a, W> {
    work: &'a mut W,
    slots: Vec<Slot>,
}

#[derive(Default, Clone)]
struct Slot {
    bytes: Vec<u8>,
    commands: usize,
    scanner: Scanner,
}

/// Runs the load. Units are those of the work.
pub fn run<W: Work>(
    address: SocketAddr,
    connections: usize,
    run: &Run,
    work: &mut W,
) -> Result<Load> {
    let mut source = Pipelines { work, slots: vec![Slot::default(); connections] };
    load::run(address, connections, run, &mut source)
}

impl<W: Work> Source for Pipelines<'_, W> {
    fn prepare(&mut self, slot: usize, _due: Instant) {
        let place = &mut self.slots[slot];
        place.bytes.clear();
        place.commands = self.work.fill(slot, &mut place.bytes);
        place.scanner.clear();
    }

    fn bytes(&self, slot: usize) -> &[u8] {
        &self.slots[slot].bytes
    }

    fn frame(&mut self, slot: usize, received: &[u8]) -> Result<Option<Head>> {
        let place = &mut self.slots[slot];
        let is_complete = place.scanner.advance(received)? >= place.commands;
        let body_bytes = place.scanner.position();
        Ok(is_complete.then_some(Head { status: 0, body_start: 0, body_bytes }))
    }

    fn judge(&mut self, slot: usize, reply: &Reply<'_>) -> Result<Outcome> {
        let place = &mut self.slots[slot];
        let errors = place.scanner.errors();
        place.scanner.clear();
        if errors > 0 {
            let text = reply.body.escape_ascii().to_string();
            // The server asks for a pause. Pipelines of this load may be repeated.
            if text.starts_with("-BUSY") {
                return Ok(Outcome::PushedBack);
            }
            bail!("{errors} commands failed: {}", text.chars().take(200).collect::<String>());
        }

        Ok(Outcome::Done(self.work.check(slot, reply.body)? as u64))
    }
}

/// Splits the first reply off, which must be a bulk string; `None` for a null.
pub fn bulk(replies: &[u8]) -> Result<(Option<&[u8]>, &[u8])> {
    let malformed = || anyhow::anyhow!("not a string: {}", replies.escape_ascii());
    let end = memchr::memchr(b'\n', replies).ok_or_else(malformed)?;
    let line = replies.get(1..end.saturating_sub(1)).ok_or_else(malformed)?;
    if replies[0] == b'_' || line == b"-1" {
        return Ok((None, &replies[end + 1..]));
    }

    let len: usize = std::str::from_utf8(line)?.parse()?;
    let text = replies.get(end + 1..end + 1 + len).ok_or_else(malformed)?;
    Ok((Some(text), replies.get(end + 3 + len..).ok_or_else(malformed)?))
}

/// Splits the first reply off, which must be a line.
pub fn line(replies: &[u8]) -> Result<(&[u8], &[u8])> {
    match memchr::memchr(b'\n', replies) {
        Some(end) => Ok((replies[..end].trim_ascii_end(), &replies[end + 1..])),
        None => bail!("not a line: {}", replies.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_taken_one_by_one() {
        let replies = b"$3\r\na\nb\r\n$-1\r\n_\r\n+OK\r\n";
        let (first, rest) = bulk(replies).unwrap();
        assert_eq!(first, Some(&b"a\nb"[..]));
        let (second, rest) = bulk(rest).unwrap();
        let (third, rest) = bulk(rest).unwrap();
        assert_eq!((second, third), (None, None));
        assert_eq!(line(rest).unwrap(), (&b"+OK"[..], &b""[..]));
        assert!(bulk(b"$9\r\nabc\r\n").is_err() && line(b"+OK").is_err());
    }
}

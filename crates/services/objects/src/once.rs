//! RAIN.ONCE: a command that happens once for its id, however often it is sent.
//!
//! The reply is kept as a string of the internal database, in the group of the command's effects:
//! after a crash both are there, or neither.

use crate::commands::{handler, reply_nothing};
use crate::limits::ONCE_ID_LEN_MAX;
use crate::turn::{Outcome, Turn};
use raingauge_ports::objects::INTERNAL_DATABASE;
use raingauge_resp::{Arguments, Command, Failure, Id, Protocol, Replies};
use raingauge_values::{Object, Text, Value};
use xxhash_rust::xxh3::Xxh3;

/// Bytes before the reply: the protocol, and the hash of the command.
const HEAD_LEN: usize = 1 + 16;

/// Runs a command, or answers what it answered the first time. `weight` is what its keys take in
/// memory.
pub(crate) fn run(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    weight: usize,
    out: &mut Replies,
) -> Outcome {
    let id = arguments.at(1);
    if id.is_empty() || id.len() > ONCE_ID_LEN_MAX {
        let line = format!("ERR the id of RAIN.ONCE has 1 to {ONCE_ID_LEN_MAX} bytes");
        return Err(Failure::owned(line));
    }

    let inner = arguments.from(2);
    let spec = Command::of(inner).check()?;
    let hash = hash_of(turn.database(), inner);
    if let Some(kept) = kept_reply(turn, id) {
        return repeat(&kept, hash, out);
    }

    let handler = match spec.id {
        Id::Flushall | Id::Flushdb | Id::Swapdb | Id::RainOnce => None,
        id if spec.is_write() => handler(id),
        _ => None,
    };
    let Some(handler) = handler else {
        return Err(Failure::owned(format!(
            "ERR RAIN.ONCE runs a command that writes keys by itself, and '{}' is none",
            spec.name
        )));
    };

    if spec.denies_oom() {
        turn.check_growth(spec, inner, weight)?;
    }

    let mut reply = Replies::new(out.protocol());
    handler(turn, inner, &mut reply)?;
    if turn.take_wait().is_some() {
        reply_nothing(spec.id, &mut reply);
    }

    let reply: Vec<u8> = reply.take().concat();
    keep_reply(turn, id, hash, &reply, out.protocol());
    out.raw(&reply);
    Ok(())
}

/// What a command is recognized by.
fn hash_of(database: u8, inner: Arguments<'_>) -> [u8; 16] {
    let mut hasher = Xxh3::new();
    hasher.update(&[database]);
    for (at, argument) in inner.iter().enumerate() {
        hasher.update(&(argument.len() as u64).to_be_bytes());
        match at {
            0 => hasher.update(&argument.to_ascii_lowercase()),
            _ => hasher.update(argument),
        }
    }
    hasher.digest128().to_be_bytes()
}

fn kept_reply(turn: &Turn<'_>, id: &[u8]) -> Option<Vec<u8>> {
    match &turn.get_in(INTERNAL_DATABASE, id)?.value {
        Value::Text(text) => Some(text.bytes().to_vec()),
        _ => None,
    }
}

fn keep_reply(turn: &mut Turn<'_>, id: &[u8], hash: [u8; 16], reply: &[u8], protocol: Protocol) {
    let mut kept = Vec::with_capacity(HEAD_LEN + reply.len());
    kept.push(protocol_byte(protocol));
    kept.extend_from_slice(&hash);
    kept.extend_from_slice(reply);

    let once_ms = i64::try_from(turn.limits().once.as_millis()).unwrap_or(i64::MAX);
    let expires_ms = Some(turn.now_ms().saturating_add(once_ms));
    let object = Object { expires_ms, ..Object::new(Value::Text(Text::new(&kept))) };
    turn.put_in(INTERNAL_DATABASE, id, object);
}

/// Answers as the first time.
fn repeat(kept: &[u8], hash: [u8; 16], out: &mut Replies) -> Result<(), Failure> {
    let damaged = || Failure::text("ERR the reply that RAIN.ONCE kept cannot be read");
    let (protocol, rest) = kept.split_first().ok_or_else(damaged)?;
    let (kept_hash, reply) = rest.split_first_chunk::<16>().ok_or_else(damaged)?;
    if *kept_hash != hash {
        return Err(Failure::text(
            "ERR RAIN.ONCE has run another command under this id: each command needs an id of its \
             own",
        ));
    }

    match (*protocol == protocol_byte(Protocol::Three), out.protocol()) {
        (true, Protocol::Two) => {
            let converted = in_resp2(reply).ok_or_else(damaged)?;
            out.raw(&converted);
        }
        (false, Protocol::Three) if matches!(reply, b"$-1\r\n" | b"*-1\r\n") => out.null(),
        _ => out.raw(reply),
    }
    Ok(())
}

fn protocol_byte(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Two => 2,
        Protocol::Three => 3,
    }
}

/// A reply of RESP3 as a connection of RESP2 reads it.
fn in_resp2(mut reply: &[u8]) -> Option<Vec<u8>> {
    let mut converted = Vec::with_capacity(reply.len());
    while !reply.is_empty() {
        let end = reply.windows(2).position(|window| window == b"\r\n")?;
        let line = &reply[..end];
        let (kind, text) = line.split_first()?;
        reply = &reply[end + 2..];
        match kind {
            b'_' => converted.extend_from_slice(b"$-1\r\n"),
            b'#' => converted.extend_from_slice(if text == b"t" { b":1\r\n" } else { b":0\r\n" }),
            b',' => {
                converted.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
                converted.extend_from_slice(text);
                converted.extend_from_slice(b"\r\n");
            }
            b'%' | b'~' | b'>' => {
                let len: usize = std::str::from_utf8(text).ok()?.parse().ok()?;
                let len = if *kind == b'%' { len * 2 } else { len };
                converted.extend_from_slice(format!("*{len}\r\n").as_bytes());
            }
            b'$' => {
                let len: usize = std::str::from_utf8(text).ok()?.parse().ok()?;
                let value = reply.get(..len + 2)?;
                converted.extend_from_slice(line);
                converted.extend_from_slice(b"\r\n");
                converted.extend_from_slice(value);
                reply = &reply[len + 2..];
            }
            _ => {
                converted.extend_from_slice(line);
                converted.extend_from_slice(b"\r\n");
            }
        }
    }
    Some(converted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_resp3_are_readable_in_resp2() {
        let reply = b"%1\r\n$1\r\na\r\n~2\r\n,1.5\r\n#t\r\n_\r\n:7\r\n";
        let converted = in_resp2(reply).expect("a reply");
        assert_eq!(converted, b"*2\r\n$1\r\na\r\n*2\r\n$3\r\n1.5\r\n:1\r\n$-1\r\n:7\r\n");
        assert_eq!(in_resp2(b"$9\r\nab\r\n"), None);
    }
}

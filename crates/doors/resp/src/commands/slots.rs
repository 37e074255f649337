//! The keys of a slot. They are found by a walk over all keys: no index is kept for the rare
//! question.

use bytes::BufMut;
use raingauge_resp::{
    Arguments, Command, Controls, Drain, Failure, Parser, ParserLimits, Protocol, Replies, Spec,
    slot,
};

use crate::desk::Desk;

/// Keys of one step of the walk.
const STEP_KEYS: &[u8] = b"1000";

/// The keys that a walk found.
#[derive(Default)]
struct Found {
    count: i64,
    keys: Vec<Vec<u8>>,
}

/// Walks over all keys, if the command asks for those of a slot.
pub(super) async fn prepare(desk: &mut Desk, arguments: Arguments<'_>) {
    desk.slot_keys = Vec::new();
    desk.slot_count = 0;
    let Ok(asked) = asked_slot(arguments) else {
        return;
    };

    let keys_max = arguments.integer(3).ok().and_then(|max| usize::try_from(max).ok()).unwrap_or(0);
    let found = walk(desk, asked, keys_max).await;
    desk.slot_keys = found.keys;
    desk.slot_count = found.count;
}

/// `CLUSTER COUNTKEYSINSLOT slot`.
pub(super) fn count(
    desk: &Desk,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    asked_slot(arguments)?;

    replies.integer(desk.slot_count);
    Ok(())
}

/// `CLUSTER GETKEYSINSLOT slot count`.
pub(super) fn keys(
    desk: &Desk,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    asked_slot(arguments)?;
    if arguments.integer(3)? < 0 {
        return Err(Failure::text("ERR Invalid number of keys"));
    }

    replies.array(desk.slot_keys.len());
    desk.slot_keys.iter().for_each(|key| replies.bulk(key));
    Ok(())
}

fn asked_slot(arguments: Arguments<'_>) -> Result<u16, Failure> {
    let slot = arguments.integer(2).ok().and_then(|slot| u16::try_from(slot).ok());

    slot.filter(|slot| *slot < slot::COUNT).ok_or(Failure::text("ERR Invalid slot"))
}

async fn walk(desk: &Desk, asked: u16, keys_max: usize) -> Found {
    let objects = &desk.server.objects;
    let mut session = objects.session();
    let mut found = Found::default();
    let mut cursor = b"0".to_vec();

    loop {
        let drain = Drain::of(&[&[b"SCAN", &cursor, b"COUNT", STEP_KEYS]]);
        let mut replies = Replies::new(Protocol::Two);
        objects.run(&mut session, &mut NoControls, &drain, 0, &mut replies).await;

        let Some((next, keys)) = read_step(&replies.take().concat()) else {
            return found;
        };
        for key in keys.commands().flat_map(|command| command.arguments.iter()) {
            if slot::of(key) == asked {
                found.count += 1;
                if found.keys.len() < keys_max {
                    found.keys.push(key.to_vec());
                }
            }
        }

        if next == b"0" {
            return found;
        }
        cursor = next;
    }
}

/// The cursor and the keys of a reply to `SCAN`. An array of strings is a request, too.
fn read_step(reply: &[u8]) -> Option<(Vec<u8>, Drain)> {
    let reply = reply.strip_prefix(b"*2\r\n$")?;
    let end = memchr::memchr(b'\r', reply)?;
    let len = std::str::from_utf8(&reply[..end]).ok()?.parse::<usize>().ok()?;
    let cursor = reply.get(end + 2..end + 2 + len)?;
    let mut rest = reply.get(end + 2 + len + 2..)?;

    let mut parser = Parser::new(ParserLimits { trusted: true, bulk_bytes_max: usize::MAX });
    let mut keys = Drain::new();
    while !rest.is_empty() {
        let mut space = parser.space();
        let taken = rest.len().min(space.remaining_mut());
        space.put_slice(&rest[..taken]);
        rest = &rest[taken..];
        parser.drain(&mut keys).ok()?;
    }

    Some((cursor.to_vec(), keys))
}

/// The walk has no commands of the door.
struct NoControls;

impl Controls for NoControls {
    fn control(&mut self, command: Command<'_>, _replies: &mut Replies) -> Result<(), Failure> {
        Err(command.unknown())
    }

    fn ran(&mut self, _spec: &'static Spec, _duration_us: u64, _failed: bool) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_walk_is_read() {
        let (cursor, keys) =
            read_step(b"*2\r\n$2\r\n17\r\n*2\r\n$1\r\na\r\n$2\r\nbc\r\n").expect("a step");
        assert_eq!(cursor, b"17");
        let keys: Vec<_> = keys.get(0).arguments.iter().collect();
        assert_eq!(keys, [b"a".as_slice(), b"bc"]);

        let (cursor, keys) = read_step(b"*2\r\n$1\r\n0\r\n*0\r\n").expect("a step");
        assert!(cursor == b"0" && keys.is_empty());
        assert!(read_step(b"-ERR no\r\n").is_none());
    }
}

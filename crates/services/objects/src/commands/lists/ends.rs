//! What happens at the ends of lists: pushes, pops and moves from one list to another.

use std::ops::Range;

use bytes::Bytes;
use raingauge_resp::{Arguments, Failure, Replies};
use raingauge_values::list::Side;
use raingauge_values::{Collection, List};

use super::side;
use crate::commands::ranges::{count, keys_before_word, parse_count};
use crate::notify::Class;
use crate::turn::{Outcome, Turn};

pub(super) fn lpush(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    push(turn, arguments, Side::Left, replies)
}

pub(super) fn rpush(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    push(turn, arguments, Side::Right, replies)
}

pub(super) fn lpushx(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    push_to_known(turn, arguments, Side::Left, replies)
}

pub(super) fn rpushx(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    push_to_known(turn, arguments, Side::Right, replies)
}

pub(super) fn lpop(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    pop(turn, arguments, Side::Left, "lpop", replies)
}

pub(super) fn rpop(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    pop(turn, arguments, Side::Right, "rpop", replies)
}

pub(super) fn lmpop(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let keys = keys_before_word(arguments, 1)?;
    let side = side(arguments, keys.end)?;
    let count = parse_count(arguments, keys.end + 1)?;

    match first_list(turn, arguments, keys)? {
        Some(key) => reply_popped(turn, key, side, count, replies)?,
        None => replies.null_array(),
    }
    Ok(())
}

pub(super) fn lmove(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let from = side(arguments, 3)?;
    let to = side(arguments, 4)?;

    move_entry(turn, arguments, from, to, replies)
}

pub(super) fn rpoplpush(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    move_entry(turn, arguments, Side::Right, Side::Left, replies)
}

fn push(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    side: Side,
    replies: &mut Replies,
) -> Outcome {
    let key = arguments.at(1);
    let list = turn.list_or_new(key)?;
    for index in 2..arguments.len() {
        list.push(side, arguments.bytes(index));
    }

    replies.integer(list.len() as i64);
    turn.notify(Class::List, push_event(side), key);
    Ok(())
}

fn push_to_known(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    side: Side,
    replies: &mut Replies,
) -> Outcome {
    if turn.list(arguments.at(1))?.is_none() {
        replies.integer(0);
        return Ok(());
    }

    push(turn, arguments, side, replies)
}

fn pop(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    side: Side,
    name: &'static str,
    replies: &mut Replies,
) -> Outcome {
    if arguments.len() > 3 {
        return Err(Failure::Arity(name));
    }
    let asked = if arguments.len() == 3 { Some(count(arguments, 2)?) } else { None };
    let key = arguments.at(1);

    if turn.list(key)?.is_none() {
        match asked {
            Some(_) => replies.null_array(),
            None => replies.null(),
        }
        return Ok(());
    }
    match asked {
        Some(0) => replies.array(0),
        Some(count) => reply_entries(replies, take(turn, key, side, count)?),
        None => take(turn, key, side, 1)?.into_iter().for_each(|entry| replies.shared(entry)),
    }
    Ok(())
}

/// The first of some keys that has a list.
pub(super) fn first_list<'a>(
    turn: &Turn<'_>,
    arguments: Arguments<'a>,
    keys: Range<usize>,
) -> Result<Option<&'a [u8]>, Failure> {
    for index in keys {
        let key = arguments.at(index);
        if turn.list(key)?.is_some() {
            return Ok(Some(key));
        }
    }

    Ok(None)
}

/// Removes entries of a key, and replies the key and them.
pub(super) fn reply_popped(
    turn: &mut Turn<'_>,
    key: &[u8],
    side: Side,
    count: usize,
    replies: &mut Replies,
) -> Outcome {
    replies.array(2);
    replies.bulk(key);
    reply_entries(replies, take(turn, key, side, count)?);
    Ok(())
}

/// Removes entries from an end of a list, with the event of it.
pub(super) fn take(
    turn: &mut Turn<'_>,
    key: &[u8],
    side: Side,
    count: usize,
) -> Result<Vec<Bytes>, Failure> {
    let mut entries = Vec::new();
    if let Some(list) = turn.list_mut(key)? {
        entries.extend((0..count.min(list.len())).map_while(|_| list.pop(side)));
    }

    turn.notify(Class::List, pop_event(side), key);
    Ok(entries)
}

/// Moves an entry from the first key to the second, which may be the same.
pub(super) fn move_entry(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    from: Side,
    to: Side,
    replies: &mut Replies,
) -> Outcome {
    let source = arguments.at(1);
    let target = arguments.at(2);
    if turn.list(source)?.is_none() {
        replies.null();
        return Ok(());
    }
    turn.list(target)?;
    let moved = turn.list(source)?.and_then(|list| match from {
        Side::Left => list.iter().next(),
        Side::Right => list.iter().next_back(),
    });
    if let Some(entry) = moved.filter(|_| source != target) {
        turn.check_entry(target, entry.len())?;
    }

    let Some(entry) = turn.list_mut(source)?.and_then(|list: &mut List| list.pop(from)) else {
        replies.null();
        return Ok(());
    };
    turn.list_or_new(target)?.push(to, entry.clone());

    turn.notify(Class::List, push_event(to), target);
    turn.notify(Class::List, pop_event(from), source);
    replies.shared(entry);
    Ok(())
}

fn reply_entries(replies: &mut Replies, entries: Vec<Bytes>) {
    replies.array(entries.len());
    for entry in entries {
        replies.shared(entry);
    }
}

fn push_event(side: Side) -> &'static str {
    match side {
        Side::Left => "lpush",
        Side::Right => "rpush",
    }
}

fn pop_event(side: Side) -> &'static str {
    match side {
        Side::Left => "lpop",
        Side::Right => "rpop",
    }
}

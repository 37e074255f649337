//! Members with the lowest or highest scores, removed and returned.

use std::ops::Range;

use raingauge_resp::{Arguments, Failure, Replies};
use raingauge_values::{Blob, Collection};

use super::reply_members;
use crate::commands::ranges::{count, keys_before_word, parse_count};
use crate::notify::Class;
use crate::turn::{Outcome, Turn};

/// The end of the order that members are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Lowest,
    Highest,
}

pub(super) fn zpopmin(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    pop(turn, arguments, End::Lowest, replies)
}

pub(super) fn zpopmax(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    pop(turn, arguments, End::Highest, replies)
}

pub(super) fn zmpop(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let keys = keys_before_word(arguments, 1)?;
    let end = end(arguments, keys.end)?;
    let count = parse_count(arguments, keys.end + 1)?;

    match first_sorted(turn, arguments, keys)? {
        Some(key) => reply_popped(turn, key, end, count, replies)?,
        None => replies.null_array(),
    }
    Ok(())
}

/// Reads `MIN` or `MAX`.
pub(super) fn end(arguments: Arguments<'_>, index: usize) -> Result<End, Failure> {
    if arguments.is(index, "min") {
        Ok(End::Lowest)
    } else if arguments.is(index, "max") {
        Ok(End::Highest)
    } else {
        Err(Failure::Syntax)
    }
}

/// The first of some keys that has a sorted set.
pub(super) fn first_sorted<'a>(
    turn: &Turn<'_>,
    arguments: Arguments<'a>,
    keys: Range<usize>,
) -> Result<Option<&'a [u8]>, Failure> {
    for index in keys {
        let key = arguments.at(index);
        if turn.sorted(key)?.is_some() {
            return Ok(Some(key));
        }
    }

    Ok(None)
}

/// Removes members of a key, and replies the key and them.
pub(super) fn reply_popped(
    turn: &mut Turn<'_>,
    key: &[u8],
    end: End,
    count: usize,
    replies: &mut Replies,
) -> Outcome {
    let members = take(turn, key, end, count)?;

    replies.array(2);
    replies.bulk(key);
    replies.array(members.len());
    for (name, score) in members {
        replies.array(2);
        replies.bulk(&name);
        replies.double(score);
    }
    Ok(())
}

fn pop(turn: &mut Turn<'_>, arguments: Arguments<'_>, end: End, replies: &mut Replies) -> Outcome {
    if arguments.len() > 3 {
        return Err(Failure::Syntax);
    }
    let key = arguments.at(1);
    let asked = if arguments.len() == 3 { Some(count(arguments, 2)?) } else { None };

    if turn.sorted(key)?.is_none() || asked == Some(0) {
        replies.array(0);
        return Ok(());
    }
    let members = take(turn, key, end, asked.unwrap_or(1))?;
    match (asked, members.first()) {
        (None, Some((name, score))) => {
            replies.array(2);
            replies.bulk(name);
            replies.double(*score);
        }
        _ => reply_members(replies, members.iter().map(|(name, score)| (&name[..], *score)), true),
    }
    Ok(())
}

/// Removes members from an end of the order, with the event of it.
pub(super) fn take(
    turn: &mut Turn<'_>,
    key: &[u8],
    end: End,
    count: usize,
) -> Result<Vec<(Blob, f64)>, Failure> {
    let mut members = Vec::new();
    if let Some(sorted) = turn.sorted_mut(key)? {
        for _ in 0..count.min(sorted.len()) {
            let rank = if end == End::Lowest { 0 } else { sorted.len() - 1 };
            members.extend(sorted.pop(rank));
        }
    }

    let event = if end == End::Lowest { "zpopmin" } else { "zpopmax" };
    turn.notify(Class::Sorted, event, key);
    Ok(members)
}

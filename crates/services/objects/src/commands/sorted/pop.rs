//! Members with the lowest or highest scores, removed and returned.

use raingauge_resp::{Arguments, Failure, Replies};
use raingauge_values::{Blob, Collection};

use super::reply_members;
use crate::commands::ranges::{at_least, count, parse_count};
use crate::notify::Class;
use crate::turn::Turn;

/// The end of the order that members are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Lowest,
    Highest,
}

pub(super) fn zpopmin(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    pop(turn, arguments, End::Lowest, replies)
}

pub(super) fn zpopmax(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    pop(turn, arguments, End::Highest, replies)
}

pub(super) fn zmpop(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    let keys_len = at_least(arguments, 1, 1, "ERR numkeys should be greater than 0")?;
    let word = usize::try_from(keys_len).ok().and_then(|len| len.checked_add(2));
    let word = word.filter(|word| *word < arguments.len()).ok_or(Failure::Syntax)?;
    let end = if arguments.is(word, "min") {
        End::Lowest
    } else if arguments.is(word, "max") {
        End::Highest
    } else {
        return Err(Failure::Syntax);
    };
    let count = parse_count(arguments, word + 1)?;

    for index in 2..word {
        let key = arguments.at(index);
        if turn.sorted(key)?.is_some() {
            let members = take(turn, key, end, count)?;
            replies.array(2);
            replies.bulk(key);
            reply_pairs(replies, &members);
            return Ok(());
        }
    }
    replies.null_array();
    Ok(())
}

fn pop(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    end: End,
    replies: &mut Replies,
) -> Result<(), Failure> {
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

fn take(
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

/// Members as pairs in either protocol.
fn reply_pairs(replies: &mut Replies, members: &[(Blob, f64)]) {
    replies.array(members.len());
    for (name, score) in members {
        replies.array(2);
        replies.bulk(name);
        replies.double(*score);
    }
}

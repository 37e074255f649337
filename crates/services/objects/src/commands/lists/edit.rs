//! Changes in the middle of lists.

use raingauge_resp::{Arguments, Failure, Replies};
use raingauge_values::{Collection, List};

use super::{position, too_many_moves};
use crate::commands::ranges::positions;
use crate::notify::Class;
use crate::turn::{Outcome, Turn};

pub(super) fn lset(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let key = arguments.at(1);
    let len = turn.list(key)?.ok_or(Failure::NoSuchKey)?.len();
    let position = position(arguments.integer(2)?, len).ok_or(Failure::IndexOutOfRange)?;

    if let Some(list) = turn.list_mut(key)? {
        list.set(position, arguments.bytes(3));
    }
    turn.notify(Class::List, "lset", key);
    replies.ok();
    Ok(())
}

pub(super) fn linsert(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let behind = if arguments.is(2, "after") {
        1
    } else if arguments.is(2, "before") {
        0
    } else {
        return Err(Failure::Syntax);
    };
    let key = arguments.at(1);
    let Some(list) = turn.list(key)? else {
        replies.integer(0);
        return Ok(());
    };
    let pivot = arguments.at(3);
    let Some(found) = list.iter().position(|entry| entry == pivot) else {
        replies.integer(-1);
        return Ok(());
    };

    if let Some(list) = turn.list_mut(key)? {
        list.insert(found + behind, arguments.bytes(4)).map_err(too_many_moves)?;
        replies.integer(list.len() as i64);
    }
    turn.notify(Class::List, "linsert", key);
    Ok(())
}

pub(super) fn lrem(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let key = arguments.at(1);
    let count = arguments.integer(2)?;
    let list = turn.list(key)?;
    let doomed = list.map_or_else(Vec::new, |list| matches(list, arguments.at(3), count));

    replies.integer(doomed.len() as i64);
    if !doomed.is_empty()
        && let Some(list) = turn.list_mut(key)?
    {
        list.remove(&doomed).map_err(too_many_moves)?;
        turn.notify(Class::List, "lrem", key);
    }
    Ok(())
}

pub(super) fn ltrim(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let start = arguments.integer(2)?;
    let stop = arguments.integer(3)?;
    let key = arguments.at(1);

    if let Some(len) = turn.list(key)?.map(|list| list.len()) {
        let kept = positions(start, stop, len);
        if let Some(list) = turn.list_mut(key)? {
            list.keep(kept);
        }
        turn.notify(Class::List, "ltrim", key);
    }
    replies.ok();
    Ok(())
}

/// The positions of entries that equal a string, in rising order: the first ones, or the last ones
/// if the count is negative, or all of them if it is zero.
fn matches(list: &List, sought: &[u8], count: i64) -> Vec<usize> {
    let max = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let positions = list.iter().enumerate().filter(|(_, entry)| *entry == sought);
    let positions = positions.map(|(position, _)| position);

    match count {
        0 => positions.collect(),
        1.. => positions.take(max).collect(),
        _ => {
            let all: Vec<usize> = positions.collect();
            all[all.len().saturating_sub(max)..].to_vec()
        }
    }
}

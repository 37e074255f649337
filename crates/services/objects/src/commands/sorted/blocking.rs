//! Pops that wait until a sorted set has a member.

use raingauge_resp::{Arguments, Replies};

use super::pop::{End, end, first_sorted, reply_popped, take};
use crate::commands::ranges::{keys_before_word, parse_count};
use crate::commands::timeouts;
use crate::turn::{Outcome, Turn};

pub(super) fn bzpopmin(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    pop(turn, arguments, End::Lowest, replies)
}

pub(super) fn bzpopmax(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    pop(turn, arguments, End::Highest, replies)
}

pub(super) fn bzmpop(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let keys = keys_before_word(arguments, 2)?;
    let end = end(arguments, keys.end)?;
    let count = parse_count(arguments, keys.end + 1)?;
    let timeout_ms = timeouts::parse(arguments, 1, turn.now_ms())?;

    match first_sorted(turn, arguments, keys)? {
        Some(key) => reply_popped(turn, key, end, count, replies)?,
        None => turn.wait(timeout_ms),
    }
    Ok(())
}

fn pop(turn: &mut Turn<'_>, arguments: Arguments<'_>, end: End, replies: &mut Replies) -> Outcome {
    let last = arguments.len() - 1;
    let timeout_ms = timeouts::parse(arguments, last, turn.now_ms())?;

    let Some(key) = first_sorted(turn, arguments, 1..last)? else {
        turn.wait(timeout_ms);
        return Ok(());
    };
    for (name, score) in take(turn, key, end, 1)? {
        replies.array(3);
        replies.bulk(key);
        replies.bulk(&name);
        replies.double(score);
    }
    Ok(())
}

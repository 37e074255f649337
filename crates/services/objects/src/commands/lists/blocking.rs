//! Pops and moves that wait until a list has an entry.

use raingauge_resp::{Arguments, Replies};
use raingauge_values::list::Side;

use super::ends::{first_list, move_entry, reply_popped, take};
use super::side;
use crate::commands::ranges::{keys_before_word, parse_count};
use crate::commands::timeouts;
use crate::turn::{Outcome, Turn};

pub(super) fn blpop(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    pop(turn, arguments, Side::Left, replies)
}

pub(super) fn brpop(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    pop(turn, arguments, Side::Right, replies)
}

pub(super) fn blmpop(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let keys = keys_before_word(arguments, 2)?;
    let side = side(arguments, keys.end)?;
    let count = parse_count(arguments, keys.end + 1)?;
    let timeout_ms = timeouts::parse(arguments, 1, turn.now_ms())?;

    match first_list(turn, arguments, keys)? {
        Some(key) => reply_popped(turn, key, side, count, replies)?,
        None => turn.wait(timeout_ms),
    }
    Ok(())
}

pub(super) fn blmove(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let from = side(arguments, 3)?;
    let to = side(arguments, 4)?;
    let timeout_ms = timeouts::parse(arguments, 5, turn.now_ms())?;

    move_or_wait(turn, arguments, from, to, timeout_ms, replies)
}

pub(super) fn brpoplpush(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let timeout_ms = timeouts::parse(arguments, 3, turn.now_ms())?;

    move_or_wait(turn, arguments, Side::Right, Side::Left, timeout_ms, replies)
}

fn pop(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    side: Side,
    replies: &mut Replies,
) -> Outcome {
    let last = arguments.len() - 1;
    let timeout_ms = timeouts::parse(arguments, last, turn.now_ms())?;

    let Some(key) = first_list(turn, arguments, 1..last)? else {
        turn.wait(timeout_ms);
        return Ok(());
    };
    replies.array(2);
    replies.bulk(key);
    take(turn, key, side, 1)?.into_iter().for_each(|entry| replies.shared(entry));
    Ok(())
}

fn move_or_wait(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    from: Side,
    to: Side,
    timeout_ms: i64,
    replies: &mut Replies,
) -> Outcome {
    if turn.list(arguments.at(1))?.is_none() {
        turn.wait(timeout_ms);
        return Ok(());
    }

    move_entry(turn, arguments, from, to, replies)
}

//! Strings that change in place, parts of them, and numbers.

use raingauge_resp::number::Real;
use raingauge_resp::{Arguments, Failure, Id, Replies};
use raingauge_values::limits::LCS_CELLS_MAX;
use raingauge_values::{Text, lcs};

use super::ranges::{clamped, is_reversed};
use super::strings::{check_len, text_of};
use crate::notify::Class;
use crate::turn::{Handler, Outcome, Turn};

pub(super) const COMMANDS: &[(Id, Handler)] = &[
    (Id::Append, append),
    (Id::Getrange, getrange),
    (Id::Substr, getrange),
    (Id::Setrange, setrange),
    (Id::Incr, incr),
    (Id::Decr, decr),
    (Id::Incrby, incrby),
    (Id::Decrby, decrby),
    (Id::Incrbyfloat, incrbyfloat),
    (Id::Lcs, longest_common_subsequence),
];

fn append(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let addition = arguments.at(2);
    let held = turn.text(key)?.map(|text| text.len());
    check_len(turn, held.unwrap_or(0) + addition.len())?;

    let text = turn.text_or_new(key)?;
    match held {
        Some(_) => text.append(addition),
        None => *text = text_of(arguments, 2),
    }
    let len = text.len();
    turn.notify(Class::Text, "append", key);
    replies.integer(len as i64);
    Ok(())
}

fn getrange(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let start = arguments.integer(2)?;
    let end = arguments.integer(3)?;
    let Some(text) = turn.text(arguments.at(1))? else {
        replies.bulk(b"");
        return Ok(());
    };

    let bytes = text.bytes();
    let range = if is_reversed(start, end) { 0..0 } else { clamped(start, end, bytes.len()) };
    match text.as_shared() {
        Some(shared) => replies.shared(shared.slice(range)),
        None => replies.bulk(&bytes[range]),
    }
    Ok(())
}

fn setrange(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let bytes = arguments.at(3);
    let offset = arguments.integer(2)?;
    let offset =
        usize::try_from(offset).map_err(|_| Failure::text("ERR offset is out of range"))?;

    let held = turn.text(key)?.map_or(0, |text| text.len());
    if bytes.is_empty() {
        replies.integer(held as i64);
        return Ok(());
    }
    let end = offset.saturating_add(bytes.len());
    check_len(turn, end)?;
    turn.check_bytes(key, end)?;

    let text = turn.text_or_new(key)?;
    text.set_range(offset, bytes);
    let len = text.len();
    turn.notify(Class::Text, "setrange", key);
    replies.integer(len as i64);
    Ok(())
}

fn incr(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    add(turn, arguments.at(1), 1, replies)
}

fn decr(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    add(turn, arguments.at(1), -1, replies)
}

fn incrby(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    add(turn, arguments.at(1), arguments.integer(2)?, replies)
}

fn decrby(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let decrement = arguments.integer(2)?;
    let increment = decrement.checked_neg().ok_or(Failure::text("ERR decrement would overflow"))?;
    add(turn, arguments.at(1), increment, replies)
}

fn add(turn: &mut Turn<'_>, key: &[u8], increment: i64, replies: &mut Replies) -> Outcome {
    let held = match turn.text(key)? {
        Some(text) => text.as_integer().ok_or(Failure::NotInteger)?,
        None => 0,
    };
    let sum = held.checked_add(increment).ok_or(Failure::Overflow)?;

    *turn.text_or_new(key)? = Text::integer(sum);
    turn.notify(Class::Text, "incrby", key);
    replies.integer(sum);
    Ok(())
}

fn incrbyfloat(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let held = match turn.text(key)? {
        Some(text) => Real::parse(&text.bytes()).ok_or(Failure::NotFloat)?,
        None => Real::parse(b"0").ok_or(Failure::NotFloat)?,
    };
    let increment = Real::parse(arguments.at(2)).ok_or(Failure::NotFloat)?;
    let sum = held.plus(increment).ok_or(Failure::SumNotFinite)?.to_string();

    *turn.text_or_new(key)? = Text::plain(sum.as_bytes());
    turn.notify(Class::Text, "incrbyfloat", key);
    replies.bulk(sum.as_bytes());
    Ok(())
}

#[derive(Default)]
struct LcsOptions {
    len: bool,
    matches: bool,
    match_len_min: usize,
    match_lens: bool,
}

impl LcsOptions {
    fn parse(arguments: Arguments<'_>) -> Result<LcsOptions, Failure> {
        let mut options = LcsOptions::default();
        let mut index = 3;
        while index < arguments.len() {
            if arguments.is(index, "idx") {
                options.matches = true;
            } else if arguments.is(index, "len") {
                options.len = true;
            } else if arguments.is(index, "withmatchlen") {
                options.match_lens = true;
            } else if arguments.is(index, "minmatchlen") && index + 1 < arguments.len() {
                index += 1;
                options.match_len_min = arguments.integer(index)?.max(0) as usize;
            } else {
                return Err(Failure::Syntax);
            }
            index += 1;
        }

        if options.len && options.matches {
            return Err(Failure::text(
                "ERR If you want both the length and indexes, please just use IDX.",
            ));
        }
        Ok(options)
    }
}

fn longest_common_subsequence(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let not_text = |_| Failure::text("ERR The specified keys must contain string values");
    let a = turn.text(arguments.at(1)).map_err(not_text)?;
    let b = turn.text(arguments.at(2)).map_err(not_text)?;
    let options = LcsOptions::parse(arguments)?;

    let a = a.map(|text| text.bytes());
    let b = b.map(|text| text.bytes());
    let a = a.as_deref().unwrap_or_default();
    let b = b.as_deref().unwrap_or_default();
    if (a.len() + 1).saturating_mul(b.len() + 1) > LCS_CELLS_MAX {
        return Err(Failure::text(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }

    let table = lcs::Table::new(a, b);
    if options.matches {
        reply_matches(&table, &options, replies);
    } else if options.len {
        replies.integer(table.len() as i64);
    } else {
        replies.bulk(&table.subsequence());
    }
    Ok(())
}

fn reply_matches(table: &lcs::Table<'_>, options: &LcsOptions, replies: &mut Replies) {
    let mut matches = table.matches();
    matches.retain(|run| run.a.len() >= options.match_len_min);

    replies.map(2);
    replies.bulk(b"matches");
    replies.array(matches.len());
    for run in &matches {
        replies.array(2 + usize::from(options.match_lens));
        for range in [&run.a, &run.b] {
            replies.array(2);
            replies.integer(range.start as i64);
            replies.integer(range.end as i64 - 1);
        }
        if options.match_lens {
            replies.integer(run.a.len() as i64);
        }
    }
    replies.bulk(b"len");
    replies.integer(table.len() as i64);
}

//! Scores, ranks, random members and walks: what is read of a sorted set without a range.

use raingauge_resp::{Arguments, Failure, Replies};
use raingauge_values::Collection;

use super::reply_members;
use crate::commands::picks::Picks;
use crate::commands::walk::{self, Walk};
use crate::turn::{Outcome, Turn};

pub(super) fn zscore(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let sorted = turn.sorted(arguments.at(1))?;

    reply_score(replies, sorted.and_then(|sorted| sorted.score(arguments.at(2))));
    Ok(())
}

pub(super) fn zmscore(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let sorted = turn.sorted(arguments.at(1))?;
    let members = arguments.from(2).iter();

    replies.array(members.len());
    for member in members {
        reply_score(replies, sorted.and_then(|sorted| sorted.score(member)));
    }
    Ok(())
}

pub(super) fn zcard(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let sorted = turn.sorted(arguments.at(1))?;

    replies.integer(sorted.map_or(0, |sorted| sorted.len() as i64));
    Ok(())
}

pub(super) fn zrank(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    reply_rank(turn, arguments, "zrank", |rank, _| rank, replies)
}

pub(super) fn zrevrank(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    reply_rank(turn, arguments, "zrevrank", |rank, len| len - 1 - rank, replies)
}

pub(super) fn zrandmember(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let key = arguments.at(1);
    if arguments.len() == 2 {
        return reply_random(turn, key, replies);
    }

    let picks = Picks::parse(arguments, 2)?;
    let with_scores = match arguments.len() {
        3 => false,
        4 if arguments.is(3, "withscores") => {
            Picks::parse_pairs(arguments, 2)?;
            true
        }
        _ => return Err(Failure::Syntax),
    };

    let len = turn.sorted(key)?.map_or(0, |sorted| sorted.len());
    let ranks = picks.positions(len, turn.random());
    match turn.sorted(key)? {
        Some(sorted) => {
            let members: Vec<_> = ranks.into_iter().filter_map(|rank| sorted.at(rank)).collect();
            reply_members(replies, members.into_iter(), with_scores);
        }
        None => replies.array(0),
    }
    Ok(())
}

pub(super) fn zscan(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let cursor = arguments.cursor(2)?;
    let key = arguments.at(1);
    let Some(sorted) = turn.sorted(key)? else {
        walk::reply_end(replies);
        return Ok(());
    };

    let walk = Walk::parse(arguments, 3)?;
    let mut entries = Vec::new();
    let next = sorted.scan(cursor, turn.load_number(key), walk.count, |name, score| {
        entries.push((name, score));
    });
    entries.retain(|(name, _)| walk.admits(name));

    walk::reply_cursor(next, replies);
    replies.array(2 * entries.len());
    for (name, score) in entries {
        replies.bulk(name);
        replies.bulk(raingauge_resp::number::format_f64(score).as_ref());
    }
    Ok(())
}

fn reply_score(replies: &mut Replies, score: Option<f64>) {
    match score {
        Some(score) => replies.double(score),
        None => replies.null(),
    }
}

/// Replies the rank of a member, counted as `count` says, of all members that there are.
fn reply_rank(
    turn: &Turn<'_>,
    arguments: Arguments<'_>,
    name: &'static str,
    count: fn(usize, usize) -> usize,
    replies: &mut Replies,
) -> Result<(), Failure> {
    let with_score = match arguments.len() {
        3 => false,
        4 if arguments.is(3, "withscore") => true,
        4 => return Err(Failure::Syntax),
        _ => return Err(Failure::Arity(name)),
    };

    let sorted = turn.sorted(arguments.at(1))?;
    let found = sorted.and_then(|sorted| Some((sorted.rank(arguments.at(2))?, sorted.len())));
    match found {
        Some(((rank, score), len)) => {
            if with_score {
                replies.array(2);
            }
            replies.integer(count(rank, len) as i64);
            if with_score {
                replies.double(score);
            }
        }
        None if with_score => replies.null_array(),
        None => replies.null(),
    }
    Ok(())
}

/// Replies one random member, if there is any.
fn reply_random(turn: &mut Turn<'_>, key: &[u8], replies: &mut Replies) -> Outcome {
    let len = turn.sorted(key)?.map_or(0, |sorted| sorted.len());
    let ranks = Picks::Distinct(1).positions(len, turn.random());
    let sorted = turn.sorted(key)?;

    match ranks.first().and_then(|rank| sorted?.at(*rank)) {
        Some((name, _)) => replies.bulk(name),
        None => replies.null(),
    }
    Ok(())
}
